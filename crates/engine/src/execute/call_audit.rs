//! Audit rows for calls: calls that a policy matches, and calls that were refused. All other calls are only in the log
//! of their run, which is hash-chained as well.

use super::policies::{Policies, subjects};
use crate::run::Live;
use serde_json::json;
use stepwell_core::event::Failure;
use stepwell_core::fact::{Fact, Reason};
use stepwell_core::graph::Kind;
use stepwell_core::plan::{DEFERRED, Effect, NOT_THERE, Transition, UNDER_WAY};
use stepwell_core::run::{At, Status};
use stepwell_core::time::Time;
use stepwell_store::NewAudit;

/// Codes of failures before the call was made, unless the failure may have happened after it.
const NOT_MADE: [&str; 18] = [
    "approval_required",
    "bad_arguments",
    "bad_request",
    "bad_signing_secret",
    "egress_refused",
    "host_refused",
    "no_credentials",
    "rate_limited",
    "secret_bound",
    "secret_locked",
    "tls_unavailable",
    "tool_changed",
    "tool_new",
    "unavailable",
    "unknown_kind",
    "unknown_query",
    "unknown_secret",
    "unknown_tool",
];

/// The outcome of one attempt, for the audit trail.
struct Call {
    at: At,
    attempt: u32,
    action: &'static str,
    outcome: &'static str,
    /// Audited even if no policy matches the call.
    always: bool,
}

/// The audit rows for the calls in a transition.
pub fn calls(policies: &Policies, live: &Live, transition: &Transition, now: Time) -> Vec<NewAudit> {
    let (facts, effects) = (&transition.facts, &transition.effects);
    let overridden = |at: At| facts.iter().any(|fact| matches!(fact, Fact::Overridden { step, .. } if *step == at));
    // An override is not a call, and has an audit row of its own.
    let decided = facts.iter().filter_map(decided).filter(|call| !overridden(call.at));
    let aborted = effects.iter().filter_map(|effect| match effect {
        Effect::Abort { at, attempt } => Some(Call::new(*at, *attempt, "call.aborted", "unknown")),
        _ => None,
    });
    decided.chain(aborted).filter_map(|call| row(policies, live, call, now)).collect()
}

impl Call {
    fn new(at: At, attempt: u32, action: &'static str, outcome: &'static str) -> Call {
        Call { at, attempt, action, outcome, always: false }
    }

    fn always(self) -> Call {
        Call { always: true, ..self }
    }
}

fn decided(fact: &Fact) -> Option<Call> {
    match fact {
        Fact::Held { step, attempt, .. } => Some(Call::new(*step, *attempt, "call.held", "held").always()),
        Fact::Retrying { step, attempt, failure, .. } => failed(*step, *attempt, failure, "failed"),
        Fact::Again { step, attempt, reason: Reason::WorkerLost | Reason::WorkerStopped, .. } => {
            Some(Call::new(*step, attempt - 1, "call.lost", "unknown"))
        }
        Fact::Unsure { step, attempt } => Some(Call::new(*step, *attempt, "call.lost", "unknown")),
        // The call was not made: its input could not be built.
        Fact::Finished { status: Status::TemplateError, .. } => None,
        Fact::Finished { step, attempt, status: Status::Denied, .. } => {
            Some(Call::new(*step, *attempt, "call.denied", "denied"))
        }
        Fact::Finished { step, attempt, failure: Some(failure), status, .. } => {
            failed(*step, *attempt, failure, status.name())
        }
        Fact::Finished { step, attempt, status, .. } => Some(Call::new(*step, *attempt, "call.made", status.name())),
        _ => None,
    }
}

fn failed(at: At, attempt: u32, failure: &Failure, outcome: &'static str) -> Option<Call> {
    let call = |action, outcome| Call::new(at, attempt, action, outcome);
    match &*failure.code {
        DEFERRED | NOT_THERE => None,
        UNDER_WAY => Some(call("call.made", "under_way")),
        "forbidden" | "denied_by_policy" if !failure.may_have_happened => {
            Some(call("call.refused", "refused").always())
        }
        code if NOT_MADE.contains(&code) && !failure.may_have_happened => Some(call("call.refused", "refused")),
        "outcome_unknown" | "worker_lost" => Some(call("call.lost", "unknown")),
        _ => Some(call("call.made", outcome)),
    }
}

fn row(policies: &Policies, live: &Live, audited: Call, now: Time) -> Option<NewAudit> {
    let graph = &live.compiled.definition.graph;
    let Kind::Call { call, .. } = &graph.step(audited.at.step).def.kind else { return None };
    if !audited.always && !policies.has_stored() {
        return None;
    }
    let input = live.run.values.get(live.run.step(graph, audited.at)?.input?)?;
    let subjects = subjects(call.name(), input);
    // The connection of a saved query is not known here.
    let connection_known = input.get("saved").is_none();
    if !audited.always && connection_known && policies.on(&subjects).is_empty() {
        return None;
    }
    let target = subjects.first().map(|subject| subject.name.clone()).unwrap_or_default();
    let Call { attempt, outcome, action, .. } = audited;
    let step = live.run.path(graph, audited.at);
    let detail = json!({"run": &*live.run.id, "step": step, "attempt": attempt, "outcome": outcome}).to_string();
    Some(NewAudit { org: live.org, at: now, by: live.run.by.to_string(), action: action.into(), target, detail })
}
