//! The state of one run: the current state of every step, without its history.
//!
//! State changes only by [`Run::apply`]ing facts, so folding the log gives the same state as having planned it.
//! Decisions are made in `plan`; this module only does the bookkeeping, in constant time per fact.

mod agenda;
mod apply;
mod code;
mod log;
mod paths;
mod reset;
mod snapshot;
mod view;
mod waiting;

pub(crate) use agenda::Decision;
pub use log::{LogError, StoredFact, handle_name};
pub use snapshot::{InstanceRow, Row, ScopeRow, Snapshot, SnapshotError};
pub use view::{OwnResult, View, error};
pub use waiting::{Waiting, WaitingFor};

use crate::event::Failure;
use crate::expr::StepIx;
use crate::fact::{End, Output, SkipReason};
use crate::graph::{Graph, Handle, Out, ScopeIx};
use crate::plan::{DEFERRED, NOT_THERE, UNDER_WAY};
use crate::time::Time;
use crate::value::{ValueId, Values};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// One step in one instance of its scope.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct At {
    pub instance: u32,
    pub step: StepIx,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Created but not yet triggered.
    New,
    /// Begins at its time.
    Scheduled,
    Queued,
    Running,
    Completed,
    Failed,
    Cancelled,
    Timeout,
}

impl RunStatus {
    pub fn is_terminal(self) -> bool {
        match self {
            RunStatus::New | RunStatus::Scheduled | RunStatus::Queued | RunStatus::Running => false,
            RunStatus::Completed | RunStatus::Failed | RunStatus::Cancelled | RunStatus::Timeout => true,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            RunStatus::New => "new",
            RunStatus::Scheduled => "scheduled",
            RunStatus::Queued => "queued",
            RunStatus::Running => "running",
            RunStatus::Completed => "completed",
            RunStatus::Failed => "failed",
            RunStatus::Cancelled => "cancelled",
            RunStatus::Timeout => "timeout",
        }
    }
}

/// How a step ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Success,
    Failed,
    Timeout,
    Denied,
    TemplateError,
    Skipped,
    Cancelled,
}

impl Status {
    pub fn name(self) -> &'static str {
        match self {
            Status::Success => "success",
            Status::Failed => "failed",
            Status::Timeout => "timeout",
            Status::Denied => "denied",
            Status::TemplateError => "template_error",
            Status::Skipped => "skipped",
            Status::Cancelled => "cancelled",
        }
    }

    pub fn is_failure(self) -> bool {
        match self {
            Status::Failed | Status::Timeout | Status::Denied | Status::TemplateError => true,
            Status::Success | Status::Skipped | Status::Cancelled => false,
        }
    }
}

/// The phase of a step's life cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    Idle,
    /// Dispatched; the store tracks whether a node has claimed it.
    Running,
    /// Between two attempts.
    Backoff,
    Sleeping,
    Webhook,
    Gate,
    /// A person has to decide whether a call happened.
    Unsure,
    Child,
    /// A loop or for_each with open instances.
    Open,
    #[serde(untagged)]
    Done(Status),
}

impl Phase {
    pub fn is_active(self) -> bool {
        !matches!(self, Phase::Idle | Phase::Done(_))
    }

    /// The phase as the API shows it.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Idle | Phase::Backoff => "pending",
            Phase::Running | Phase::Open | Phase::Child => "running",
            Phase::Sleeping => "sleeping",
            Phase::Webhook | Phase::Gate | Phase::Unsure => "waiting",
            Phase::Done(status) => status.name(),
        }
    }
}

/// The effect of a step's end on its out-edges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// Not decided: the step has not ended, or was cancelled.
    Open,
    /// Edges on this handle are live, the others untaken.
    Took(Handle),
    /// All edges failed.
    Failed,
    /// All edges are untaken.
    Untaken,
    /// The loop was left: each edge has the state of its inner edge in the last pass.
    Left,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EdgeState {
    Open,
    Live,
    Untaken,
    Failed,
}

#[derive(Clone, PartialEq, Debug)]
pub struct StepState {
    pub phase: Phase,
    pub exit: Exit,
    /// In-edges by state; the rest are untaken.
    pub open: u32,
    pub live: u32,
    pub failed: u32,
    /// The number of the newest attempt; 0 before the first. Never decreases.
    pub attempt: u32,
    /// Attempts that do not count against the retry limit: attempts before a retry of the run, and lost, held or
    /// deferred ones.
    pub uncounted: u32,
    /// How many attempts in a row were lost.
    pub losses: u8,
    pub since: Time,
    /// When the timer of the wait is due.
    pub due: Option<Time>,
    pub input: Option<ValueId>,
    pub output: Option<Output>,
    /// Position in the order in which steps ended; determines which write to `ctx` is the last.
    pub ended: u32,
    pub more: Option<Box<More>>,
}

/// State that few steps have.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct More {
    pub failure: Option<Failure>,
    pub skipped: Option<SkipReason>,
    pub variable: Option<ValueId>,
    /// A message that arrived early.
    pub mail: Option<ValueId>,
    pub mail_truncated: bool,
    /// The approvers so far, and their answers.
    pub approvals: Vec<(Arc<str>, ValueId)>,
    /// Users who approved the call when it was held before.
    pub earlier: Vec<Arc<str>>,
    pub escalate: Option<Time>,
    pub escalated: bool,
    /// The approval request of a held call.
    pub ask: Option<ValueId>,
    /// The approval request, once it was approved.
    pub approved: Option<ValueId>,
    /// Who changed the held call last, and its input as the definition has it.
    pub changed: Option<(Arc<str>, ValueId)>,
    /// Progress that the next attempt resumes from.
    pub note: Option<ValueId>,
    /// The last request was a question from the callee, so `approvals` holds answers to it: they approve nothing.
    pub question: bool,
    /// Whether the outcome of the call was unknown at some time.
    pub unsure: bool,
    pub scope: Option<ScopeState>,
}

/// The progress of a loop or for_each.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct ScopeState {
    /// Instances by pass or item; instances from `opened` on are left over from before a reset.
    pub instances: Vec<u32>,
    pub opened: u32,
    /// Items of a for_each that may be open or have been: what a transition does not open, the next one does.
    pub due: u32,
    pub running: u32,
    /// The number of items of a for_each.
    pub count: Option<u32>,
    /// For each opened instance: how it ended, and an item's result.
    pub closed: Vec<Option<(End, Option<ValueId>)>>,
    /// How many instances ended without success, and how many of those were denied.
    pub unsuccessful: u32,
    pub denied: u32,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Instance {
    pub scope: ScopeIx,
    /// The loop or for_each step, and the number of this pass or item.
    pub parent: Option<(At, u32)>,
    /// The instance whose names and `ctx` are used here; see [`crate::graph::Scope::frame`].
    pub frame: u32,
    /// The path prefix of its steps: `each[3].`
    pub prefix: Arc<str>,
    /// Steps that are idle or active.
    pub remaining: u32,
    pub steps: Vec<StepState>,
    /// Steps that ended without success, in order.
    pub failures: Vec<StepIx>,
    pub names: Names,
}

/// Per frame: what names inside loops and `ctx` refer to now.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Names {
    /// The latest finished (or, failing that, skipped) instance of steps inside loops.
    pub latest: HashMap<StepIx, At>,
    pub ctx: Vec<Option<CtxValue>>,
}

/// The last write to a `ctx` variable, and the step that wrote it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CtxValue {
    pub value: ValueId,
    pub step: StepIx,
    pub truncated: bool,
}

#[derive(Clone, Debug)]
pub struct Run {
    pub id: Arc<str>,
    /// Determines jitter; part of the run so that planning stays pure.
    pub seed: u64,
    /// How long the run may take once it leaves the queue.
    pub max_duration: crate::time::Millis,
    pub status: RunStatus,
    /// Incremented by each retry.
    pub generation: u32,
    pub by: Arc<str>,
    /// What the client called itself that asked for the run.
    pub client: Option<Arc<str>>,
    /// The user who retried the run last.
    pub retried_by: Option<Arc<str>>,
    /// The users whose permissions limit the run since it was retried, in addition to earlier limits.
    pub retried_as: Vec<Arc<str>>,
    pub input: Option<ValueId>,
    pub headers: Option<ValueId>,
    /// What the definition's `vars` came to when the run started.
    pub vars: Option<ValueId>,
    pub query: Option<ValueId>,
    pub output: Option<ValueId>,
    pub failure: Option<Failure>,
    /// When it begins or began, if it was not to begin at once.
    pub scheduled: Option<Time>,
    pub expires: Option<Time>,
    pub values: Values,
    pub(crate) instances: Vec<Instance>,
    /// The number of steps that ended so far.
    pub(crate) ended: u32,
    /// Attempts of steps that the run's version no longer has; if such a step comes back, its count continues.
    pub(crate) retired: BTreeMap<String, u32>,
    pub(crate) gates: u32,
    pub(crate) working: u32,
    /// Steps in all instances.
    pub(crate) states: usize,
    agenda: agenda::Agenda,
}

impl Run {
    pub fn new(id: impl Into<Arc<str>>, seed: u64, max_duration: crate::time::Millis) -> Run {
        Run {
            id: id.into(),
            seed,
            max_duration,
            status: RunStatus::New,
            generation: 0,
            by: "".into(),
            client: None,
            retried_by: None,
            retried_as: Vec::new(),
            input: None,
            headers: None,
            vars: None,
            query: None,
            output: None,
            failure: None,
            scheduled: None,
            expires: None,
            values: Values::default(),
            instances: Vec::new(),
            ended: 0,
            retired: BTreeMap::new(),
            gates: 0,
            working: 0,
            states: 0,
            agenda: agenda::Agenda::default(),
        }
    }

    fn retried(&mut self, by: &Arc<str>, acts: Option<&Arc<str>>) {
        self.retried_by = Some(by.clone());
        if let Some(acts) = acts.filter(|acts| !self.retried_as.contains(acts)) {
            self.retried_as.push(acts.clone());
        }
    }

    /// Whether this user started or retried the run.
    pub fn is_started_or_retried_by(&self, name: &str) -> bool {
        *self.by == *name || self.retried_by.as_deref() == Some(name)
    }

    /// Whether a gate is open and nothing is ready or running.
    pub fn is_paused(&self) -> bool {
        self.status == RunStatus::Running && self.gates > 0 && self.working == 0 && !self.has_decisions_left()
    }

    pub fn step<'a>(&'a self, graph: &Graph, at: At) -> Option<&'a StepState> {
        let instance = self.instances.get(at.instance as usize)?;
        let step = graph.steps.get(at.step.0 as usize).filter(|step| step.scope == instance.scope)?;
        instance.steps.get(step.local as usize)
    }

    pub(crate) fn state(&self, graph: &Graph, at: At) -> &StepState {
        &self.instances[at.instance as usize].steps[graph.step(at.step).local as usize]
    }

    pub(crate) fn state_mut(&mut self, graph: &Graph, at: At) -> &mut StepState {
        &mut self.instances[at.instance as usize].steps[graph.step(at.step).local as usize]
    }

    /// The approval request of a gate or a held step: its message, who may answer, the calls that depend on it, its
    /// digest.
    pub fn ask(&self, state: &StepState) -> Option<&serde_json::Value> {
        let held = state.more.as_ref().and_then(|more| more.ask);
        self.values.get(held.or(state.input)?)
    }

    /// Every step of every instance that is part of the run now.
    pub fn steps<'a>(&'a self, graph: &'a Graph) -> impl Iterator<Item = (At, &'a StepState)> {
        self.instances.iter().enumerate().flat_map(move |(i, instance)| {
            let steps = &graph.scope(instance.scope).steps;
            let at = move |&step| At { instance: i as u32, step };
            steps.iter().map(at).zip(&instance.steps).filter(move |_| self.is_open(graph, i as u32))
        })
    }

    /// Derived state per open instance, as text, for tests of recovery.
    pub(crate) fn derived(&self, graph: &Graph) -> Vec<(String, String)> {
        let mut all = vec![("[run]".to_string(), format!("{} {} {}", self.gates, self.working, self.ended))];
        all.push(("[agenda]".to_string(), self.agenda_text(graph)));
        let open = self.instances.iter().enumerate().filter(|(id, _)| self.is_open(graph, *id as u32));
        for (_, instance) in open {
            let names = &instance.names;
            let latest: BTreeMap<StepIx, String> =
                names.latest.iter().map(|(&step, &at)| (step, self.path(graph, at))).collect();
            let ctx: Vec<_> = names.ctx.iter().flatten().collect();
            let text = format!("{} {:?} {latest:?} {ctx:?}", instance.remaining, instance.failures);
            all.push((format!("[{}]", instance.prefix), text));
        }
        all
    }

    /// Whether the instance is part of the run. False if it is left over from before its scope step was reset.
    pub(crate) fn is_open(&self, graph: &Graph, instance: u32) -> bool {
        let mut instance = instance;
        while let Some((owner, index)) = self.instances[instance as usize].parent {
            let opened = self.state(graph, owner).scope().map_or(0, |scope| scope.opened);
            if index >= opened {
                return false;
            }
            instance = owner.instance;
        }
        true
    }

    pub(crate) fn edge(&self, graph: &Graph, from: At, out: &Out) -> EdgeState {
        let mut state = self.state(graph, from);
        let mut out = out;
        while state.exit == Exit::Left {
            // A nested loop may have been left by an edge of the inner loop.
            let (Some((step, pos)), Some(last)) = (out.inner, state.scope().and_then(ScopeState::last)) else {
                return EdgeState::Untaken;
            };
            state = self.state(graph, At { instance: last, step });
            out = &graph.step(step).outs[pos as usize];
        }
        match state.exit {
            Exit::Open => EdgeState::Open,
            Exit::Failed => EdgeState::Failed,
            Exit::Untaken | Exit::Left => EdgeState::Untaken,
            Exit::Took(handle) if out.handle == handle => EdgeState::Live,
            Exit::Took(_) => EdgeState::Untaken,
        }
    }
}

impl StepState {
    /// Whether a person has to decide because its node was lost several times in a row. A step that must not run twice
    /// waits for a person at the first loss.
    pub fn is_quarantined(&self) -> bool {
        self.phase == Phase::Unsure && self.losses > 0
    }

    pub(crate) fn idle(in_edges: u32) -> StepState {
        StepState {
            phase: Phase::Idle,
            exit: Exit::Open,
            open: in_edges,
            live: 0,
            failed: 0,
            attempt: 0,
            uncounted: 0,
            losses: 0,
            since: Time::default(),
            due: None,
            input: None,
            output: None,
            ended: 0,
            more: None,
        }
    }

    pub fn status(&self) -> Option<Status> {
        match self.phase {
            Phase::Done(status) => Some(status),
            _ => None,
        }
    }

    /// Whether the step ran: it was neither skipped nor left idle. A cancelled step ran if it had begun.
    pub fn ran(&self) -> bool {
        match self.phase {
            Phase::Idle | Phase::Done(Status::Skipped) => false,
            Phase::Done(Status::Cancelled) => self.attempt > self.uncounted,
            _ => true,
        }
    }

    pub fn failure(&self) -> Option<&Failure> {
        self.more.as_ref()?.failure.as_ref()
    }

    /// Whether the step is deferred, or was until just now.
    pub fn is_deferred(&self) -> bool {
        self.failure().is_some_and(|failure| matches!(&*failure.code, DEFERRED | UNDER_WAY | NOT_THERE))
    }

    pub fn scope(&self) -> Option<&ScopeState> {
        self.more.as_ref()?.scope.as_ref()
    }

    pub fn mail(&self) -> Option<ValueId> {
        self.more.as_ref()?.mail
    }

    pub(crate) fn more(&mut self) -> &mut More {
        self.more.get_or_insert_with(Box::default)
    }
}

impl ScopeState {
    fn count_end(&mut self, end: End) {
        self.unsuccessful += u32::from(end != End::Success);
        self.denied += u32::from(end == End::Denied);
    }

    /// The instance opened last.
    pub fn last(&self) -> Option<u32> {
        self.opened.checked_sub(1).and_then(|k| self.instances.get(k as usize)).copied()
    }
}
