//! Executes attempts: gives them to their step kind, within a slot and a time, and reports what came of it.

use crate::engine::Inner;
use crate::mask::Mask;
use crate::rights::{Actor, Grants, Need, Right, actors};
use crate::runs::{Live, What};
use crate::step::{Principal, StepCall, StepKind};
use crate::{drive, people, trace};
use futures_util::FutureExt;
use serde_json::Value;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use stepwell_core::event::{Failure, Outcome};
use stepwell_core::graph::Kind;
use stepwell_core::run::Phase;
use stepwell_core::template::Resolved;
use stepwell_core::time::Millis;
use stepwell_core::value::{Payload, check_size};
use stepwell_store::{Hint, NodeId, OrgId, RunId, WorkKey};
use tokio_util::sync::CancellationToken;

/// After the store did not answer.
const PAUSE: Duration = Duration::from_millis(500);

/// Takes ready work from the store whenever there are slots for it.
pub async fn claim(inner: Arc<Inner>) {
    while !inner.stop.is_cancelled() {
        while let Some(asked) = inner.slots.claim(inner.node.id()) {
            match inner.store.claim(asked.claim).await {
                Ok(claimed) => {
                    let more = inner.slots.claimed(asked, claimed.iter().map(|work| work.org));
                    if more && !inner.slots.has_room() {
                        inner.tell(Hint { ready: true, ..Hint::default() });
                    }
                    // They were left ready some time ago, and rights may have been taken away since.
                    if inner.shared {
                        claimed.iter().for_each(|work| inner.epochs.forget(work.org));
                    }
                    for work in claimed {
                        inner.send(work.run, What::Start { key: work.key, org: work.org, node: asked.claim.node });
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "ready steps cannot be claimed");
                    inner.pause(PAUSE).await;
                    if inner.stop.is_cancelled() {
                        return;
                    }
                }
            }
        }
        tokio::select! {
            biased;
            () = inner.stop.cancelled() => {}
            () = inner.slots.wanted.notified() => {}
        }
    }
}

/// One attempt, and what it needs to run without the run.
struct Execution {
    run: RunId,
    org: OrgId,
    key: WorkKey,
    kind: Option<Arc<dyn StepKind>>,
    kind_name: &'static str,
    payload: Payload,
    timeout: Millis,
    call: StepCall,
}

/// Begins an attempt for which a slot is taken, and which was given to this node under this id. One that no longer counts,
/// or runs already, gives the slot back; and so does one that was given to who this node was before it was given up: it may
/// have been begun and dropped then, and an attempt is executed once.
pub fn begin(inner: &Arc<Inner>, live: &Live, key: WorkKey, node: NodeId) {
    let cancel = CancellationToken::new();
    let Some(execution) = prepare(inner, live, &key, &cancel) else { return inner.slots.release(live.org) };
    let may = || inner.node.id() == node && !inner.stop.is_cancelled();
    if !inner.runs.begin(live.id, key, cancel, may) {
        return inner.slots.release(live.org);
    }
    tokio::spawn(run(inner.clone(), execution));
}

fn prepare(inner: &Inner, live: &Live, key: &WorkKey, cancel: &CancellationToken) -> Option<Execution> {
    let graph = &live.compiled.definition.graph;
    let at = live.run.find(graph, &key.path)?;
    let state = live.run.step(graph, at)?;
    if state.phase != Phase::Running || state.attempt != key.attempt {
        return None;
    }
    let def = &graph.step(at.step).def;
    let Kind::Call { call, .. } = &def.kind else { return None };
    let payload = state.input.and_then(|input| live.run.values.payload(input)).cloned();
    let timeout = def.timeout.unwrap_or(inner.call_timeout);
    let again = if live.run.generation > 0 { format!(":{}", live.run.generation) } else { String::new() };
    Some(Execution {
        run: live.id,
        org: live.org,
        key: key.clone(),
        kind: inner.kinds.get(call.name()).cloned(),
        kind_name: call.name(),
        payload: payload.unwrap_or_else(|| Value::Null.into()),
        timeout,
        call: StepCall {
            run: live.run.id.clone(),
            path: key.path.clone(),
            attempt: key.attempt,
            idempotency_key: format!("{}:{}{again}", live.run.id, key.path),
            input: Arc::default(),
            caller: Principal {
                org: live.org,
                name: live.run.by.clone(),
                actors: actors(&live.acts_as).collect(),
                author: Actor::parse(&live.compiled.row.author),
            },
            traceparent: inner.traced.then(|| trace::traceparent(&live.run.id, &key.path, key.attempt)),
            timeout,
            cancel: cancel.clone(),
        },
    })
}

async fn run(inner: Arc<Inner>, execution: Execution) {
    let Execution { run, org, .. } = execution;
    let (key, cancel) = (execution.key.clone(), execution.call.cancel.clone());
    let measure = Measure::begin(execution.kind_name);
    let outcome = tokio::select! {
        biased;
        () = cancel.cancelled() => None,
        outcome = attempt(&inner, execution) => Some(outcome),
    };
    measure.end(outcome.as_ref());
    inner.slots.release(org);
    if inner.runs.report(run, key, outcome) {
        drive::drive(&inner, run, None).await;
    }
}

/// What is counted of one attempt.
struct Measure {
    kind: &'static str,
    begun: tokio::time::Instant,
}

impl Measure {
    fn begin(kind: &'static str) -> Measure {
        metrics::counter!("stepwell_steps_started_total", "kind" => kind).increment(1);
        metrics::gauge!("stepwell_steps_running").increment(1.0);
        Measure { kind, begun: tokio::time::Instant::now() }
    }

    fn end(self, outcome: Option<&Outcome>) {
        let outcome = match outcome {
            Some(Outcome::Success(_)) => "success",
            Some(Outcome::Failure { .. }) => "failure",
            None => "aborted",
        };
        metrics::gauge!("stepwell_steps_running").decrement(1.0);
        metrics::histogram!("stepwell_step_seconds", "kind" => self.kind).record(self.begun.elapsed().as_secs_f64());
        metrics::counter!("stepwell_steps_ended_total", "kind" => self.kind, "outcome" => outcome).increment(1);
    }
}

async fn attempt(inner: &Inner, execution: Execution) -> Outcome {
    let Execution { kind, kind_name, payload, timeout, mut call, org, .. } = execution;
    let Some(kind) = kind else {
        let message = format!("steps of kind {kind_name} cannot be executed here");
        return failed(Failure::new("unknown_kind", message));
    };
    if let Err(failure) = permit(inner, &call.caller, kind_name, &payload).await {
        return failed(failure);
    }
    let mask;
    (call.input, mask) = match reveal(inner, org, payload).await {
        Ok(revealed) => revealed,
        Err(failure) => return failed(failure),
    };
    let work = AssertUnwindSafe(kind.run(call)).catch_unwind();
    match tokio::time::timeout(Duration::from_millis(timeout.0), work).await {
        Ok(Ok(outcome)) => readable(mask.outcome(outcome)),
        Ok(Err(_)) => {
            let mut failure = Failure::new("internal", "the executor of this step broke down");
            failure.may_have_happened = true;
            failed(failure)
        }
        Err(_) => failed(Failure::timeout(timeout)),
    }
}

/// Whether everyone in whose name the call would be made has the right to it, now.
async fn permit(inner: &Inner, caller: &Principal, kind: &str, payload: &Payload) -> Result<(), Failure> {
    let name = |field: &str| payload.value.get(field).and_then(Value::as_str).unwrap_or_default();
    let mut needs: Vec<Need<'_>> = payload.secrets.iter().map(|slot| Need::Secret(&slot.name)).collect();
    match kind {
        "tool" => needs.push(Need::Tool(name("tool"))),
        "query" => {
            needs.push(Need::Connection(name("connection")));
            if payload.value.get("write").and_then(Value::as_bool).unwrap_or_default() {
                needs.push(Need::Write(name("connection")));
            }
        }
        _ => {}
    }
    if caller.actors.is_empty() {
        return Err(Failure::new("forbidden", "nobody answers for this run"));
    }
    for actor in caller.actors.iter().filter(|actor| !actor.is_local()) {
        let grants = grants_of(inner, caller.org, actor).await?;
        may(&grants, actor, Need::Right(Right::Run))?;
        needs.iter().try_for_each(|need| may(&grants, actor, *need))?;
    }
    if !needs.is_empty() && !caller.author.is_local() {
        let grants = grants_of(inner, caller.org, &caller.author).await?;
        needs.iter().try_for_each(|need| may(&grants, &caller.author, *need))?;
    }
    Ok(())
}

async fn grants_of(inner: &Inner, org: OrgId, actor: &Actor) -> Result<Arc<Grants>, Failure> {
    let found = people::grants(inner, org, actor).await;
    let gone = || Failure::new("forbidden", format!("the user {:?} is gone or disabled", actor.user));
    found.map_err(|error| Failure::retryable("unavailable", error.to_string()))?.ok_or_else(gone)
}

fn may(grants: &Grants, actor: &Actor, need: Need<'_>) -> Result<(), Failure> {
    if grants.allow(need) {
        return Ok(());
    }
    Err(Failure::new("forbidden", format!("{} may not do this: the right {need} is missing", actor.user)))
}

/// The input as it is sent, with secrets in their places.
async fn reveal(inner: &Inner, org: OrgId, payload: Payload) -> Result<(Arc<Value>, Mask), Failure> {
    let mut mask = Mask::default();
    if payload.secrets.is_empty() {
        return Ok((payload.value, mask));
    }
    let mut known = std::collections::BTreeMap::new();
    for slot in &payload.secrets {
        if let Some(secret) = inner.secrets.secret(org, &slot.name).await {
            mask.hide(&slot.name, &secret);
            known.insert(slot.name.to_string(), secret);
        }
    }
    let resolved = Resolved { value: payload.value, secrets: payload.secrets };
    let unknown = |name: String| Failure::new("unknown_secret", format!("there is no secret named {name}"));
    let input = resolved.reveal(|name| known.get(name).cloned()).map_err(unknown)?;
    Ok((Arc::new(input), mask))
}

/// A result that could not be read back must not be written.
fn readable(outcome: Outcome) -> Outcome {
    let reply = match &outcome {
        Outcome::Success(reply) => Some(reply),
        Outcome::Failure { reply, .. } => reply.as_ref(),
    };
    let parts = reply.into_iter().flat_map(|reply| [Some(&reply.body), reply.headers.as_ref()]).flatten();
    let too_much = parts.map(|part| check_size(part)).find_map(Result::err);
    match too_much {
        Some(mut failure) => {
            failure.may_have_happened = true;
            failed(failure)
        }
        None => outcome,
    }
}

fn failed(failure: Failure) -> Outcome {
    Outcome::Failure { failure, reply: None }
}
