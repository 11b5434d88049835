//! Executes attempts: runs each in its step kind, with a slot and a timeout, and reports the outcome.

use super::host_guard::{FETCH, PolicyGuard};
use super::permit::{Approved, CallRequest, GateApprovals, Stop, check_rights, permit};
use super::secret_access::{CallSecrets, sign};
use super::slots::Given;
use super::step::{Principal, Resumed, StepCall, StepKind, Suspended, Until};
use super::{Executor, trace};
use crate::access::{Actor, actors};
use crate::error::Error;
use crate::run::{Live, Message, Runner, Slot, drive};
use crate::secrets::{Mask, Reveal, UsedSecrets, outcome_size};
use crate::workflows::{Connections, Origin, hide_password};
use async_trait::async_trait;
use futures_util::FutureExt;
use serde_json::Value;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use stepwell_core::event::{Deferral, Failure, Outcome};
use stepwell_core::graph::Kind;
use stepwell_core::run::{Phase, StepState};
use stepwell_core::time::{Millis, Time};
use stepwell_core::value::{Payload, check_size};
use stepwell_store::{Hint, NodeId, OrgId, RunId, WorkKey, panic_message};
use tokio_util::sync::CancellationToken;

/// Pause after the store did not answer.
const PAUSE: Duration = Duration::from_millis(500);
/// Every dialect gives calls a timeout. This one is for a graph that no dialect produced.
const FALLBACK_TIMEOUT: Millis = Millis::from_secs(120);
/// Bytes of text that are searched for secrets on a thread of the runtime.
const MASKED_AT_ONCE: usize = 64 << 10;

/// Claims ready work from the store whenever slots are free.
pub async fn claim(executor: Arc<Executor>) {
    while !executor.cluster.stop.is_cancelled() {
        while let Some(pending) = executor.slots.claim(executor.cluster.node.id()) {
            match executor.cluster.store.claim(pending.claim.clone()).await {
                Ok(claimed) => {
                    let Given { slots, more } = executor.slots.claimed(&pending, claimed.iter().map(|work| work.org));
                    if more && !executor.slots.has_room() {
                        executor.cluster.send_hint(Hint { ready: true, ..Hint::default() });
                    }
                    // The work was left ready some time ago: rights may have been revoked since.
                    if executor.cluster.shared {
                        claimed.iter().for_each(|work| executor.access.forget_epoch(work.org));
                    }
                    for (work, slot) in claimed.into_iter().zip(slots) {
                        let start = Message::Start { key: work.key, node: pending.claim.node, slot };
                        executor.runner.send(work.run, start);
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot claim ready steps; will retry");
                    executor.cluster.pause(PAUSE).await;
                    if executor.cluster.stop.is_cancelled() {
                        return;
                    }
                }
            }
        }
        tokio::select! {
            biased;
            () = executor.cluster.stop.cancelled() => {}
            () = executor.slots.wanted.notified() => {}
        }
    }
}

/// One attempt, with all data it needs, so that the run need not be in memory.
struct Execution {
    run: RunId,
    org: OrgId,
    key: WorkKey,
    kind: Option<Arc<dyn StepKind>>,
    kind_name: &'static str,
    payload: Payload,
    timeout: Millis,
    approved: Option<Approved>,
    deferred: bool,
    secrets: Arc<CallSecrets>,
    origin: Origin,
    call: StepCall,
}

impl Executor {
    /// Begins an attempt that is claimed under this node id, unless it is obsolete or runs already. The same applies to
    /// an attempt claimed under this node's previous id: it may have been begun and dropped then, and an attempt is
    /// executed once.
    pub fn begin(self: &Arc<Executor>, live: &Live, key: WorkKey, node: NodeId, slot: Slot) {
        let cancel = CancellationToken::new();
        let Some(execution) = prepare(self, live, &key, &cancel) else { return };
        let may = || self.cluster.node.id() == node && !self.cluster.stop.is_cancelled();
        if self.runner.mailboxes.begin(live.id, key, cancel, may) {
            tokio::spawn(run(self.clone(), execution, slot));
        }
    }
}

/// `None` if the attempt is obsolete.
fn prepare(executor: &Arc<Executor>, live: &Live, key: &WorkKey, cancel: &CancellationToken) -> Option<Execution> {
    let graph = &live.compiled.definition.graph;
    let at = live.run.find(graph, &key.path)?;
    let state = live.run.step(graph, at)?;
    if state.phase != Phase::Running || state.attempt != key.attempt {
        return None;
    }
    let def = &graph.step(at.step).def;
    let Kind::Call { call, .. } = &def.kind else { return None };
    let payload = state.input.and_then(|input| live.run.values.payload(input)).cloned();
    let timeout = def.timeout.unwrap_or(FALLBACK_TIMEOUT);
    let secrets = Arc::new(CallSecrets::new(executor, &principal(live)));
    Some(Execution {
        run: live.id,
        org: live.org,
        key: key.clone(),
        kind: executor.kinds.get(call.name()).cloned(),
        kind_name: call.name(),
        payload: payload.unwrap_or_else(|| Value::Null.into()),
        timeout,
        approved: Approved::of_held(live, state),
        deferred: state.is_deferred(),
        secrets: secrets.clone(),
        origin: live.origin(),
        call: StepCall {
            resumed: resumed(live, state),
            cancel: cancel.clone(),
            ..step_call(executor, live, key, secrets)
        },
    })
}

/// The users that the calls of a run act for.
pub(super) fn principal(live: &Live) -> Principal {
    Principal {
        org: live.org,
        name: live.run.by.clone(),
        actors: actors(&live.actors()).collect(),
        author: Actor::parse(&live.compiled.row.author),
    }
}

/// A call of a step, without its input.
pub(super) fn step_call(executor: &Executor, live: &Live, key: &WorkKey, secrets: Arc<CallSecrets>) -> StepCall {
    let graph = &live.compiled.definition.graph;
    let def = live.run.find(graph, &key.path).map(|at| &graph.step(at.step).def);
    let generation = if live.run.generation > 0 { format!(":{}", live.run.generation) } else { String::new() };
    // A service that saw the call before it was changed must not take this one for a repetition.
    let state = live.run.find(graph, &key.path).and_then(|at| live.run.step(graph, at));
    let changed = state.filter(|state| state.more.as_ref().is_some_and(|more| more.changed.is_some()));
    let changed = changed.and_then(|state| state.input).map(|input| format!(":c{}", input.0)).unwrap_or_default();
    let millis = |length: Millis| Duration::from_millis(length.0);
    StepCall {
        run: live.run.id.clone(),
        path: key.path.clone(),
        attempt: key.attempt,
        idempotency_key: format!("{}:{}{generation}{changed}", live.run.id, key.path),
        input: Arc::default(),
        caller: principal(live),
        secrets: UsedSecrets::default(),
        traceparent: executor.traced.then(|| trace::traceparent(&live.run.id, &key.path, key.attempt)),
        timeout: millis(def.and_then(|def| def.timeout).unwrap_or(FALLBACK_TIMEOUT)),
        bound: def.and_then(|def| def.bound).map(millis),
        allow_hosts: live.compiled.definition.allow_hosts.clone(),
        secret_access: secrets,
        guard: None,
        resumed: None,
        cancel: CancellationToken::new(),
    }
}

/// The note of an earlier attempt, and the answers to its questions.
fn resumed(live: &Live, state: &StepState) -> Option<Resumed> {
    let more = state.more.as_ref()?;
    let note = live.run.values.payload(more.note?)?.value.clone();
    let answers = more
        .approvals
        .iter()
        .filter(|_| more.question)
        .filter_map(|(_, id)| live.run.values.get(*id)?.get("data").cloned());
    Some(Resumed { note, answers: answers.collect() })
}

async fn run(executor: Arc<Executor>, execution: Execution, slot: Slot) {
    let run = execution.run;
    let (key, cancel) = (execution.key.clone(), execution.call.cancel.clone());
    let mut metrics = AttemptMetrics::begin(execution.kind_name);
    let attempted = async {
        tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            attempted = attempt(&executor, execution) => Some(attempted),
        }
    };
    // Includes the checks before the call, masking, and dropping the call.
    let attempted = AssertUnwindSafe(attempted).catch_unwind().await.unwrap_or_else(|panic| {
        tracing::error!(run = run.0, step = %key.path, panic = panic_message(&*panic), "an attempt panicked");
        (!cancel.is_cancelled()).then(|| Ok(panicked()))
    });
    metrics.outcome = outcome_name(attempted.as_ref());
    drop((metrics, slot));
    let message = attempted.map(|attempted| match attempted {
        Ok(outcome) => Message::Report { key: key.clone(), outcome },
        Err(Stop::Failure(failure)) => Message::Report { key: key.clone(), outcome: failed(failure) },
        Err(Stop::Held { ask, timeout, note }) => Message::Held { key: key.clone(), ask, timeout, note },
        Err(Stop::Later { due, why, note }) => Message::Deferred { key: key.clone(), due, why, note },
    });
    if let Some(driver) = executor.runner.report(run, &key, message) {
        drive::drive(driver, None).await;
    }
}

/// The outcome of an attempt that panicked.
fn panicked() -> Outcome {
    let mut failure = Failure::new("internal", "the executor of this step panicked");
    failure.may_have_happened = true;
    failed(failure)
}

/// Records the metrics of one attempt when it is dropped.
struct AttemptMetrics {
    kind: &'static str,
    begun: tokio::time::Instant,
    outcome: &'static str,
}

fn outcome_name(attempted: Option<&Result<Outcome, Stop>>) -> &'static str {
    match attempted {
        Some(Ok(Outcome::Success(_))) => "success",
        Some(Ok(Outcome::Failure { .. }) | Err(Stop::Failure(_))) => "failure",
        Some(Err(Stop::Held { .. } | Stop::Later { .. })) => "held",
        None => "aborted",
    }
}

impl AttemptMetrics {
    fn begin(kind: &'static str) -> AttemptMetrics {
        metrics::counter!("stepwell_steps_started_total", "kind" => kind).increment(1);
        metrics::gauge!("stepwell_steps_running").increment(1.0);
        AttemptMetrics { kind, begun: tokio::time::Instant::now(), outcome: "aborted" }
    }
}

impl Drop for AttemptMetrics {
    fn drop(&mut self) {
        let outcome = self.outcome;
        metrics::gauge!("stepwell_steps_running").decrement(1.0);
        metrics::histogram!("stepwell_step_seconds", "kind" => self.kind).record(self.begun.elapsed().as_secs_f64());
        metrics::counter!("stepwell_steps_ended_total", "kind" => self.kind, "outcome" => outcome).increment(1);
    }
}

async fn attempt(executor: &Arc<Executor>, execution: Execution) -> Result<Outcome, Stop> {
    let Execution { run, kind, kind_name, payload, timeout, secrets, origin, mut call, org, .. } = execution;
    let (approved, deferred) = (execution.approved, execution.deferred);
    let Some(kind) = kind else {
        let message = format!("steps of kind {kind_name} cannot be executed here");
        return Err(Stop::Failure(Failure::new("unknown_kind", message)));
    };
    let saved = match kind_name {
        "query" => executor.runner.workflows.saved_query(org, &payload).await.map_err(Stop::Failure)?,
        _ => None,
    };
    let sent = saved.as_ref().unwrap_or(&payload);
    check_rights(&executor.access, &call.caller, kind_name, sent).await?;
    let mask = connection_mask(executor, org, kind_name, sent).await.map_err(Stop::Failure)?;
    let reveal = Reveal { org, kind: kind_name, named: &origin.compiled.secrets, mask };
    (call.input, call.secrets) = executor.secrets.reveal(reveal, sent).await.map_err(Stop::Failure)?;
    let request = CallRequest {
        path: &call.path,
        kind: kind_name,
        payload: &payload,
        sent,
        input: &call.input,
        caller: &call.caller,
        origin: &origin,
        approved: approved.as_ref(),
        note: call.resumed.as_ref().map(|resumed| &resumed.note),
        deferred,
    };
    let checked_host = permit(executor, &request, &RunGates { runner: &executor.runner, run }).await?;
    let tools = if kind_name == "javascript" { FETCH } else { &[] };
    call.guard = Some(Arc::new(PolicyGuard {
        executor: executor.clone(),
        org,
        origin: Some((origin, call.caller.clone())),
        step: Some(call.path.clone()),
        tools,
        checked_host,
    }));
    if kind_name == "http" {
        sign(executor, &mut call).await.map_err(Stop::Failure)?;
    }
    let mask = call.secrets.mask.clone();
    let limit = call.timeout;
    let work = kind.attempt(call);
    let ended = if kind.keeps_time() { Ok(work.await) } else { tokio::time::timeout(limit, work).await };
    Ok(match ended {
        Ok(Ok(outcome)) => masked(mask, secrets, outcome).await,
        Ok(Err(suspended)) => return Err(suspend(executor, &mask, suspended)),
        Err(_) => failed(Failure::timeout(timeout)),
    })
}

/// Masks secrets in an outcome and checks its size: on another thread if there is much to search.
async fn masked(mask: Arc<Mask>, secrets: Arc<CallSecrets>, outcome: Outcome) -> Outcome {
    let large = outcome_size(&outcome) > MASKED_AT_ONCE;
    let work = move || check_outcome_size(secrets.outcome(mask.outcome(outcome)));
    match large {
        false => work(),
        true => tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // Only when the process ends.
            Err(error) => failed(Failure::retryable("unavailable", error.to_string())),
        }),
    }
}

/// The approvals given at gates of a run, loaded only when a policy requires one.
struct RunGates<'a> {
    runner: &'a Runner,
    run: RunId,
}

#[async_trait]
impl GateApprovals for RunGates<'_> {
    async fn approvals(&self) -> Result<Vec<Approved>, Error> {
        let live = drive::load(self.runner, self.run).await?;
        Ok(live.map(|live| Approved::of_gates(&live)).unwrap_or_default())
    }
}

/// A mask that hides the password of the connection that a query uses.
async fn connection_mask(
    executor: &Executor,
    org: OrgId,
    kind: &str,
    payload: &Payload,
) -> Result<Option<Mask>, Failure> {
    let name = payload.value.get("connection").and_then(Value::as_str).filter(|_| kind == "query");
    let Some(name) = name else { return Ok(None) };
    let mut mask = Mask::default();
    match executor.secrets.sealed.connection(org, name).await {
        Ok(found) => found.into_iter().for_each(|found| hide_password(&mut mask, name, &found.url)),
        Err(Error::Unavailable(why)) => return Err(Failure::retryable("unavailable", why)),
        // The step kind does not find the connection either, and reports that.
        Err(_) => {}
    }
    Ok(Some(mask))
}

/// Converts a suspension, with secrets masked.
fn suspend(executor: &Executor, mask: &Mask, suspended: Suspended) -> Stop {
    let masked = |mut value: Value| {
        mask.value(&mut value);
        check_size(&value).map(|()| Arc::new(value))
    };
    let too_large = |failure: Failure| Stop::Failure(Failure { may_have_happened: true, ..failure });
    let note = match masked(suspended.note) {
        Ok(note) => Some(note),
        Err(failure) => return too_large(failure),
    };
    match suspended.until {
        Until::Later { pause, status } => {
            let status = status.map(|status| mask.shown(&status).into());
            Stop::Later { due: after(executor, pause), why: Deferral::UnderWay(status), note }
        }
        Until::Available { pause, why } => {
            let why = Deferral::Unavailable(mask.shown(&why).into());
            Stop::Later { due: after(executor, pause), why, note }
        }
        Until::Answered { ask, timeout } => match masked(question(ask)) {
            Ok(ask) => Stop::Held { ask, timeout, note },
            Err(failure) => too_large(failure),
        },
    }
}

fn after(executor: &Executor, pause: Duration) -> Time {
    let pause = Millis(u64::try_from(pause.as_millis()).unwrap_or(u64::MAX));
    executor.cluster.clock.now() + pause.min(Millis::DAY)
}

/// Keeps the fields that the called service may set. It must not choose the approvers or their number.
fn question(mut ask: Value) -> Value {
    if let Some(ask) = ask.as_object_mut() {
        ask.retain(|name, _| ["message", "form", "server", "tool"].contains(&name.as_str()));
    }
    ask
}

/// Fails an outcome that is too large to be written and read back.
fn check_outcome_size(outcome: Outcome) -> Outcome {
    let reply = match &outcome {
        Outcome::Success(reply) => Some(reply),
        Outcome::Failure { reply, .. } => reply.as_ref(),
    };
    let parts =
        reply.into_iter().flat_map(|reply| [Some(&reply.body), reply.headers.as_ref(), reply.log.as_ref()]).flatten();
    let too_large = parts.map(|part| check_size(part)).find_map(Result::err);
    match too_large {
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
