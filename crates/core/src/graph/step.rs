//! The parts of a step that its author wrote: kind, join, condition, retry.

use super::ScopeIx;
use crate::expr::{Expr, Operator, Pattern};
use crate::limits;
use crate::template::Template;
use crate::time::Millis;
use serde_json::Value;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct StepDef {
    pub name: Arc<str>,
    pub kind: Kind,
    pub join: Join,
    /// `if`: false skips the step. Never together with [`Join::Any`].
    pub condition: Option<Expr>,
    pub on_fail: OnFail,
    pub retry: Retry,
    /// Per attempt. Waits and gates have their own.
    pub timeout: Option<Millis>,
    /// The timeout that the author set. It also bounds, in all, what a call leads to: questions, tasks, and waiting for
    /// a service that is not there.
    pub bound: Option<Millis>,
    /// Set by `at_most_once`: what to do if the outcome of the single dispatch is unknown.
    pub at_most_once: Option<OnUnknown>,
    /// The result also becomes `ctx.<name>`.
    pub output_variable: Option<Arc<str>>,
    /// Flow's `branch`: chooses the handle from the result. Empty means plain success.
    pub branches: Vec<Arm>,
    /// Names of the handles, starting at [`Handle::FIRST_NAMED`].
    pub handles: Vec<Arc<str>>,
    /// Whether the step ends a path and its result becomes the run's output (flow's `done`).
    pub done: bool,
    /// The step as written, to tell whether a newer version changed it.
    pub written: Arc<Value>,
}

impl StepDef {
    /// A step with a name and a kind, and defaults for the rest.
    pub fn new(name: impl Into<Arc<str>>, kind: Kind) -> StepDef {
        StepDef {
            name: name.into(),
            kind,
            join: Join::Every,
            condition: None,
            on_fail: OnFail::Route,
            retry: Retry::NEVER,
            timeout: None,
            bound: None,
            at_most_once: None,
            output_variable: None,
            branches: Vec::new(),
            handles: Vec::new(),
            done: false,
            written: Arc::default(),
        }
    }
}

/// Which out-edges a finished step takes. Numbers are local to a step.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Handle(pub u16);

impl Handle {
    pub const SUCCESS: Handle = Handle(0);
    pub const ERROR: Handle = Handle(1);
    pub const DENIED: Handle = Handle(2);
    pub const FIRST_NAMED: u16 = 3;
}

/// When a step with in-edges starts (rule R2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Join {
    Every,
    Some,
    Any,
    Settled,
}

/// What a failure does beyond the step itself (rule R3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnFail {
    Route,
    Abort,
    /// Like `Route`, but a failure without an edge counts as handled: the path ends there.
    Tolerate,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnUnknown {
    Fail,
    Ask,
}

#[derive(Clone, Debug)]
pub enum Kind {
    /// A call made by an executor; the planner sees only its input and result.
    Call {
        call: Call,
        input: Template,
    },
    /// Ends immediately: start, a fork without a tool, a disabled step.
    Pass {
        output: Option<Template>,
    },
    /// Chooses a handle; without a match the path ends.
    Condition {
        arms: Vec<Arm>,
    },
    /// Adds to the run's output.
    End {
        outputs: Vec<(Arc<str>, Template)>,
    },
    Sleep(Sleep),
    Webhook {
        timeout: Option<Millis>,
    },
    Gate(Gate),
    /// A run of another workflow.
    Child {
        workflow: Arc<str>,
        input: Template,
    },
    Each(Each),
    /// Made from a cycle by the builder.
    Loop {
        body: ScopeIx,
        limit: u32,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call {
    Http,
    Tool,
    Javascript,
    Query,
}

impl Call {
    pub fn name(self) -> &'static str {
        match self {
            Call::Http => "http",
            Call::Tool => "tool",
            Call::Javascript => "javascript",
            Call::Query => "query",
        }
    }
}

impl Kind {
    pub fn name(&self) -> &'static str {
        match self {
            Kind::Call { call, .. } => call.name(),
            Kind::Pass { .. } => "pass",
            Kind::Condition { .. } => "condition",
            Kind::End { .. } => "end",
            Kind::Sleep(_) => "sleep",
            Kind::Webhook { .. } => "wait_for_webhook",
            Kind::Gate(_) => "approval",
            Kind::Child { .. } => "workflow",
            Kind::Each(_) => "for_each",
            Kind::Loop { .. } => "loop",
        }
    }

    pub fn body(&self) -> Option<ScopeIx> {
        match self {
            Kind::Each(each) => Some(each.body),
            Kind::Loop { body, .. } => Some(*body),
            _ => None,
        }
    }
}

/// One entry of a condition or branch: the first entry whose test holds determines the handle.
#[derive(Clone, Debug)]
pub struct Arm {
    pub handle: Handle,
    pub test: Test,
}

#[derive(Clone, Debug)]
pub enum Test {
    /// The default entry.
    Always,
    Expr(Expr),
    /// Rules of a graph editor: all of them must hold, or any one.
    Rules {
        all: bool,
        rules: Vec<Rule>,
    },
}

#[derive(Clone, Debug)]
pub struct Rule {
    pub left: Template,
    pub operator: Operator,
    pub right: Template,
    /// For `matches_regex`: compiled when the workflow is defined.
    pub pattern: Option<Pattern>,
}

#[derive(Clone, Debug)]
pub enum Sleep {
    For(Millis),
    /// A duration (`"5m"`, or seconds) known when the step starts.
    ForValue(Template),
    /// An RFC 3339 instant known when the step starts.
    Until(Template),
}

#[derive(Clone, Debug)]
pub struct Gate {
    /// The approval request, with who may answer it: `message, approvers, escalate_to, form, allow_self, notify`.
    pub ask: Template,
    pub timeout: Option<Millis>,
    pub on_timeout: OnTimeout,
    /// The gate escalates after this time. Without a `timeout` it then stays open.
    pub escalate_after: Option<Millis>,
    /// How many different people must approve.
    pub approvals: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnTimeout {
    Deny,
    Approve,
}

impl OnTimeout {
    pub fn name(self) -> &'static str {
        match self {
            OnTimeout::Deny => "deny",
            OnTimeout::Approve => "approve",
        }
    }
}

#[derive(Clone, Debug)]
pub struct Each {
    pub items: Template,
    pub max_parallel: u32,
    pub on_item_error: OnItemError,
    /// More items than this fail the step.
    pub limit: u32,
    /// An item's result; without it, the object of its steps' bodies.
    pub output: Option<Template>,
    pub item_variable: Option<Arc<str>>,
    pub index_variable: Option<Arc<str>>,
    pub body: ScopeIx,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnItemError {
    Stop,
    Continue,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Retry {
    pub attempts: u32,
    pub backoff: Backoff,
    /// Randomises each delay to 50–100 % of its length, so that many runs do not retry at the same instant.
    pub jitter: bool,
    /// Which failures are retried; if empty, the executor decides.
    pub on: Vec<RetryOn>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Backoff {
    Exponential {
        first: Millis,
        cap: Millis,
    },
    Fixed(Millis),
    /// One delay per failed attempt; the last repeats.
    List(Vec<Millis>),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RetryOn {
    Timeout,
    Network,
    Status(u16),
    /// `4xx`, `5xx`: the first digit.
    StatusClass(u16),
    Any,
}

impl Retry {
    pub const NEVER: Retry = Retry { attempts: 1, backoff: Backoff::Fixed(Millis(0)), jitter: false, on: Vec::new() };

    pub fn exponential(attempts: u32, first: Millis) -> Retry {
        let backoff = Backoff::Exponential { first, cap: limits::DEFAULT_BACKOFF_CAP };
        Retry { attempts, backoff, jitter: false, on: Vec::new() }
    }

    /// The delay after the `failed`-th counted failure (from 1). `salt` determines the jitter.
    pub fn pause(&self, failed: u32, salt: u64) -> Millis {
        let failed = failed.max(1);
        let full = match &self.backoff {
            Backoff::Fixed(pause) => *pause,
            Backoff::List(pauses) => pauses.get(failed as usize - 1).or(pauses.last()).copied().unwrap_or_default(),
            Backoff::Exponential { first, cap } => {
                let doubled = first.0.saturating_mul(1u64.checked_shl(failed - 1).unwrap_or(u64::MAX));
                Millis(doubled.min(cap.0))
            }
        };
        if !self.jitter || full.0 < 2 {
            return full;
        }
        let half = full.0 / 2;
        Millis(full.0 - mix(salt ^ u64::from(failed)) % (half + 1))
    }
}

/// The finalizer of splitmix64: spreads a counter over all bits.
fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_up_to_its_cap_and_a_list_repeats_its_last_delay() {
        let check = |backoff: Backoff, expected: [u64; 4]| {
            let retry = Retry { attempts: 9, backoff, jitter: false, on: vec![] };
            assert_eq!([1, 2, 3, 80].map(|n| retry.pause(n, 7).0), expected);
        };
        check(Backoff::Exponential { first: Millis(10), cap: Millis(35) }, [10, 20, 35, 35]);
        check(Backoff::Fixed(Millis(5)), [5, 5, 5, 5]);
        check(Backoff::List(vec![Millis(30), Millis(120)]), [30, 120, 120, 120]);
    }

    #[test]
    fn jitter_is_deterministic_and_keeps_a_delay_between_half_and_full_length() {
        let retry = Retry { attempts: 9, backoff: Backoff::Fixed(Millis(1_000)), jitter: true, on: vec![] };
        let pauses: Vec<u64> = (0..100).map(|salt| retry.pause(1, salt).0).collect();
        assert!(pauses.iter().all(|p| (500..=1_000).contains(p)));
        assert!(pauses.iter().any(|p| *p < 700) && pauses.iter().any(|p| *p > 800));
        assert_eq!(retry.pause(1, 42), retry.pause(1, 42));
    }
}
