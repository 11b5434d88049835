//! Single steps: waking them, delivering to them, and settling or overriding stuck steps.

use super::change::run_audit;
use super::input::{check_text, invalid};
use super::runs::{find, find_with_right, load};
use super::{Decision, Gates, Steps};
use crate::access::Right;
use crate::error::Error;
use crate::rooms::Rooms;
use crate::run::{Live, Message};
use serde_json::{Value, json};
use std::sync::Arc;
use stepwell_core::event::{Failure, Ignored, Outcome, Reply, Verdict};
use stepwell_core::graph::Kind;
use stepwell_core::plan::DEFERRED;
use stepwell_core::run::{Phase, Status, StepState};
use stepwell_core::value::check_size;
use stepwell_store::NewAudit;

/// The result to set for a stuck step.
#[derive(Clone, PartialEq, Debug)]
pub struct Override {
    /// Its output, or the reason of its failure.
    pub outcome: Result<Value, String>,
    /// A comment for the log.
    pub comment: Option<String>,
}

impl Steps<'_> {
    /// Continues a waiting step: approves a gate, ends a sleep or a retry backoff, or delivers an empty call to a wait.
    /// Refused for other steps. Needs the right to run, or for a gate the right to answer it.
    pub async fn ready(&self, run: &str, step: &str) -> Result<(), Error> {
        let id = find(self.rooms, self.caller, run).await?;
        let live = load(self.rooms, id, run).await?;
        let (path, state) = step_named(&live, step)?;
        let attempt = state.attempt;
        match state.phase {
            Phase::Gate => {
                let decision = Decision { approve: true, ..Decision::default() };
                Gates::new(self.rooms, self.caller).answer(run, step, decision).await
            }
            Phase::Backoff if state.failure().is_some_and(|failure| &*failure.code == DEFERRED) => {
                Err(Error::NotNow("a policy's rate limit is reached, and the call has an assigned time".into()))
            }
            Phase::Sleeping | Phase::Backoff => {
                self.caller.check(Right::Run)?;
                let audit = run_audit(self.rooms, self.caller, "step.wake", run, json!({"step": path}));
                self.rooms
                    .runner
                    .command(id, Message::Wake { path, attempt, by: self.caller.name.clone() }, audit)
                    .await
            }
            Phase::Webhook => {
                self.caller.check(Right::Run)?;
                let audit = run_audit(self.rooms, self.caller, "step.deliver", run, json!({"step": path}));
                self.rooms
                    .runner
                    .command(id, Message::Deliver { path, body: Arc::new(json!({})), truncated: false }, audit)
                    .await
            }
            Phase::Done(_) => {
                refuse_repeated(&live, &path, state)?;
                Err(Ignored::StepFinished.into())
            }
            Phase::Idle | Phase::Running | Phase::Unsure | Phase::Child | Phase::Open => {
                Err(Ignored::NotWaiting.into())
            }
        }
    }

    /// Sets the outcome of a call that may have happened and must not be made twice. Needs the right to approve;
    /// refused for agents.
    pub async fn settle(&self, run: &str, step: &str, verdict: Verdict) -> Result<(), Error> {
        let id = find_with_right(self.rooms, self.caller, Right::Approve, run).await?;
        if self.caller.grants.is_agent() {
            return Err(Error::Refused("an agent may not decide whether a call happened".into()));
        }
        let live = load(self.rooms, id, run).await?;
        let (path, state) = step_named(&live, step)?;
        if let Verdict::Happened { body } = &verdict {
            check_size(body).map_err(|failure| invalid("body", &failure.message))?;
        }
        let (attempt, by) = (state.attempt, self.caller.name.clone());
        let audit =
            run_audit(self.rooms, self.caller, "step.settle", run, json!({"step": path, "verdict": verdict.name()}));
        self.rooms.runner.command(id, Message::Settle { path, attempt, verdict, by }, audit).await
    }

    /// Delivers a call to a waiting step without its URL. Needs the right to run.
    pub async fn deliver_to(&self, run: &str, step: &str, body: Value) -> Result<(), Error> {
        let id = find_with_right(self.rooms, self.caller, Right::Run, run).await?;
        let live = load(self.rooms, id, run).await?;
        let (path, state) = step_named(&live, step)?;
        refuse_repeated(&live, &path, state)?;
        let audit = run_audit(self.rooms, self.caller, "step.deliver", run, json!({"step": path}));
        deliver(self.rooms, &live, path, body.into(), audit).await
    }

    /// Ends a stuck step with a given result. Needs the right to administer.
    pub async fn override_step(&self, run: &str, step: &str, how: Override) -> Result<(), Error> {
        self.caller.check(Right::Admin)?;
        let id = find(self.rooms, self.caller, run).await?;
        let live = load(self.rooms, id, run).await?;
        let (path, state) = step_named(&live, step)?;
        if state.phase == Phase::Unsure {
            self.caller.check(Right::Approve)?;
        }
        if state.phase == Phase::Gate {
            return Err(Error::Refused("a gate cannot be overridden: it must be answered by its approvers".into()));
        }
        let Override { outcome, comment } = how;
        check_text("comment", comment.as_deref())?;
        check_text("error", outcome.as_ref().err().map(String::as_str))?;
        let detail = json!({"step": path, "success": outcome.is_ok(), "comment": comment});
        let outcome = match outcome {
            Ok(output) => {
                check_size(&output).map_err(|failure| invalid("output", &failure.message))?;
                Outcome::Success(Reply::body(output))
            }
            Err(message) => Outcome::Failure { failure: Failure::new("overridden", message), reply: None },
        };
        let audit = run_audit(self.rooms, self.caller, "step.override", run, detail);
        let (attempt, by) = (state.attempt, self.caller.name.clone());
        let message = Message::Override { path, attempt, outcome, by, comment: comment.map(Into::into) };
        self.rooms.runner.command(id, message, audit).await
    }
}

/// A wait that has received its call refuses another one with the same code on every route.
fn refuse_repeated(live: &Live, path: &str, state: &StepState) -> Result<(), Error> {
    let graph = &live.compiled.definition.graph;
    let waits =
        live.run.find(graph, path).is_some_and(|at| matches!(graph.step(at.step).def.kind, Kind::Webhook { .. }));
    let received = waits && state.phase == Phase::Done(Status::Success);
    if received { Err(Ignored::Repeated.into()) } else { Ok(()) }
}

/// The body of a call to a step that waits for one.
#[derive(Clone, Debug)]
pub struct CallBody {
    pub value: Value,
    /// Only the beginning of a longer body.
    pub truncated: bool,
}

impl From<Value> for CallBody {
    fn from(value: Value) -> CallBody {
        CallBody { value, truncated: false }
    }
}

/// Delivers the body of a call to a step that waits for one.
pub(super) async fn deliver(
    rooms: &Rooms,
    live: &Live,
    path: String,
    body: CallBody,
    audit: Option<NewAudit>,
) -> Result<(), Error> {
    let CallBody { value: mut body, truncated } = body;
    // A service may send back secrets it was given.
    rooms.secrets.mask(live.org, &live.compiled.secrets).await.value(&mut body);
    check_size(&body).map_err(|failure| invalid("body", &failure.message))?;
    rooms.runner.command(live.id, Message::Deliver { path, body: Arc::new(body), truncated }, audit).await
}

/// A step by its path, or by its name if exactly one step of that name is active.
pub(super) fn step_named<'a>(live: &'a Live, step: &str) -> Result<(String, &'a StepState), Error> {
    let graph = &live.compiled.definition.graph;
    if let Some(at) = live.run.find(graph, step)
        && let Some(state) = live.run.step(graph, at)
    {
        return Ok((step.to_string(), state));
    }
    let named = live.run.steps(graph).filter(|(at, _)| &*graph.step(at.step).def.name == step);
    let waiting: Vec<_> = named.filter(|(_, state)| state.phase.is_active()).collect();
    match waiting.as_slice() {
        [(at, state)] => Ok((live.run.path(graph, *at), state)),
        [] => Err(Error::NotFound { what: "step", name: step.to_string() }),
        [(first, _), ..] => {
            let example = live.run.path(graph, *first);
            Err(invalid(
                "step",
                &format!("several steps are named {step:?}; give the path of one, such as {example:?}"),
            ))
        }
    }
}
