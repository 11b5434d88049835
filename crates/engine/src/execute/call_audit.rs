//! What the audit trail says of calls: those that a policy speaks of, and those that were refused. Every other call is in
//! the log of its run, which is chained, too.

use super::policies::{Policies, subjects};
use crate::run::Live;
use serde_json::json;
use stepwell_core::event::Failure;
use stepwell_core::fact::{Fact, Reason};
use stepwell_core::graph::Kind;
use stepwell_core::plan::{DEFERRED, Effect, Transition, UNDER_WAY};
use stepwell_core::run::{At, Status};
use stepwell_core::time::Time;
use stepwell_store::NewAudit;

/// Codes of failures before anything was called, unless the failure says otherwise.
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

/// What became of one attempt.
struct Call {
    at: At,
    attempt: u32,
    action: &'static str,
    outcome: &'static str,
    /// Said whether a policy speaks of it or not.
    always: bool,
}

pub fn calls(policies: &Policies, live: &Live, transition: &Transition, now: Time) -> Vec<NewAudit> {
    let (facts, effects) = (&transition.facts, &transition.effects);
    let overridden = |at: At| facts.iter().any(|fact| matches!(fact, Fact::Overridden { step, .. } if *step == at));
    // What somebody says of a step is no call; the trail has who said it.
    let decided = facts.iter().filter_map(decided).filter(|call| !overridden(call.at));
    let aborted = effects.iter().filter_map(|effect| match effect {
        Effect::Abort { at, attempt } => Some(Call::new((*at, *attempt), "call.aborted", "unknown")),
        _ => None,
    });
    decided.chain(aborted).filter_map(|call| row(policies, live, call, now)).collect()
}

impl Call {
    fn new((at, attempt): (At, u32), action: &'static str, outcome: &'static str) -> Call {
        Call { at, attempt, action, outcome, always: false }
    }

    fn always(self) -> Call {
        Call { always: true, ..self }
    }
}

fn decided(fact: &Fact) -> Option<Call> {
    match fact {
        Fact::Held { step, attempt, .. } => Some(Call::new((*step, *attempt), "call.held", "held").always()),
        Fact::Retrying { step, attempt, failure, .. } => failed((*step, *attempt), failure, "failed"),
        Fact::Again { step, attempt, reason: Reason::WorkerLost, .. } => {
            Some(Call::new((*step, attempt - 1), "call.lost", "unknown"))
        }
        Fact::Unsure { step, attempt } => Some(Call::new((*step, *attempt), "call.lost", "unknown")),
        // Before there was anything to call.
        Fact::Finished { status: Status::TemplateError, .. } => None,
        Fact::Finished { step, attempt, status: Status::Denied, .. } => {
            Some(Call::new((*step, *attempt), "call.denied", "denied"))
        }
        Fact::Finished { step, attempt, failure: Some(failure), status, .. } => {
            failed((*step, *attempt), failure, status.name())
        }
        Fact::Finished { step, attempt, status, .. } => Some(Call::new((*step, *attempt), "call.made", status.name())),
        _ => None,
    }
}

fn failed(which: (At, u32), failure: &Failure, outcome: &'static str) -> Option<Call> {
    match &*failure.code {
        DEFERRED => None,
        UNDER_WAY => Some(Call::new(which, "call.made", "under_way")),
        "forbidden" | "denied_by_policy" if !failure.may_have_happened => {
            Some(Call::new(which, "call.refused", "refused").always())
        }
        code if NOT_MADE.contains(&code) && !failure.may_have_happened => {
            Some(Call::new(which, "call.refused", "refused"))
        }
        "outcome_unknown" | "worker_lost" => Some(Call::new(which, "call.lost", "unknown")),
        _ => Some(Call::new(which, "call.made", outcome)),
    }
}

fn row(policies: &Policies, live: &Live, said: Call, now: Time) -> Option<NewAudit> {
    let graph = &live.compiled.definition.graph;
    let Kind::Call { call, .. } = &graph.step(said.at.step).def.kind else { return None };
    if !said.always && policies.is_empty() {
        return None;
    }
    let input = live.run.values.get(live.run.step(graph, said.at)?.input?)?;
    let subjects = subjects(call.name(), input);
    // Which connection a saved query used is not known here.
    let named = input.get("saved").is_none();
    if !said.always && named && policies.on(&subjects).is_empty() {
        return None;
    }
    let target = subjects.first().map(|subject| subject.name.clone()).unwrap_or_default();
    let Call { attempt, outcome, action, .. } = said;
    let step = live.run.path(graph, said.at);
    let detail = json!({"run": &*live.run.id, "step": step, "attempt": attempt, "outcome": outcome}).to_string();
    Some(NewAudit { org: live.org, at: now, by: live.run.by.to_string(), action: action.into(), target, detail })
}
