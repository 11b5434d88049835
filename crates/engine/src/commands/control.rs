//! Moving runs on: cancel, retry, deliver calls, signal that a step is ready.

use super::look::find;
use super::people::bad;
use super::{Caller, Decision, Right, Source, Started, Trigger};
use crate::callback::Named;
use crate::engine::{Engine, Inner};
use crate::error::Error;
use crate::runs::{Live, What};
use crate::{drive, plans, secrets};
use serde_json::{Value, json};
use std::sync::Arc;
use stepwell_core::event::{Ignored, Retrier, Verdict};
use stepwell_core::plan::DEFERRED;
use stepwell_core::plan::{Standing, standing};
use stepwell_core::run::{Phase, Status, StepState};
use stepwell_core::value::check_size;
use stepwell_store::{NewAudit, RunId};

/// On which version a retried run goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Retry {
    SameVersion,
    Newest,
}

impl Engine {
    pub async fn cancel(&self, caller: &Caller, run: &str, reason: Option<&str>) -> Result<(), Error> {
        let id = self.reach(caller, Right::Run, run).await?;
        let what = What::Cancel { by: caller.name.clone(), reason: reason.map(Into::into) };
        let audit = self.trail(caller, "run.cancel", run, json!({"reason": reason}));
        self.inner.command(id, what, audit).await
    }

    /// Goes on with a run that did not complete: what failed or was cancelled runs again.
    pub async fn retry(&self, caller: &Caller, run: &str, retry: Retry) -> Result<(), Error> {
        let id = self.reach(caller, Right::Run, run).await?;
        if self.inner.store.run(id).await?.is_some_and(|row| row.erased.is_some()) {
            return Err(Error::NotNow("the run's payloads were erased: there is nothing to go on with".into()));
        }
        let (_, limits) = plans::limits_of(&self.inner, caller.org).await?;
        plans::check_run(&self.inner, caller.org, &limits).await?;
        let onto = match retry {
            Retry::SameVersion => None,
            Retry::Newest if live_is_test(&self.inner, id, run).await? => {
                return Err(Error::NotNow("a test run has no newer version: start another test".into()));
            }
            Retry::Newest => Some(newest(&self.inner, &*load(&self.inner, id, run).await?).await?),
        };
        let version = onto.as_ref().map(|onto| onto.row.version);
        // Nobody gets more done by another's run than they may themselves.
        let by = Retrier { name: caller.name.clone(), acts: Some(caller.actor().to_string().into()) };
        let audit = self.trail(caller, "run.retry", run, json!({"onto_version": version}));
        self.inner.command(id, What::Retry { by, onto }, audit).await
    }

    /// Which steps would stand if the run went on under the newest version, and which would run again.
    pub async fn retry_preview(&self, caller: &Caller, run: &str) -> Result<Standing, Error> {
        let id = self.reach(caller, Right::Read, run).await?;
        let live = load(&self.inner, id, run).await?;
        let onto = newest(&self.inner, &live).await?;
        Ok(standing(&live.compiled.definition.graph, &onto.definition.graph, &live.run)?)
    }

    /// Starts a fresh run with the same input, or another.
    pub async fn rerun(&self, caller: &Caller, run: &str, input: Option<Value>) -> Result<Started, Error> {
        let id = self.reach(caller, Right::Run, run).await?;
        if self.inner.store.run(id).await?.is_some_and(|row| row.erased.is_some()) {
            return Err(Error::NotNow("the run's payloads were erased: there is no input to start with".into()));
        }
        let live = load(&self.inner, id, run).await?;
        let value = |id| live.run.values.get(id).cloned();
        if live.test {
            let source = Source { text: &live.compiled.row.source, file: None };
            let input = input.or(live.run.input.and_then(value)).unwrap_or_default();
            return self.test_run(caller, source, input).await;
        }
        let input = input.or(live.run.input.and_then(value)).unwrap_or_default();
        let headers = live.run.headers.and_then(value);
        let trigger = Trigger { headers, ..Trigger::new(&live.compiled.row.workflow, input) };
        self.trigger(caller, trigger).await
    }

    /// One signal for whatever a step waits for: a gate is approved, a sleep or a pause between attempts ends now, a wait
    /// gets an empty call. Anything else is refused, with the reason.
    pub async fn step_ready(&self, caller: &Caller, run: &str, step: &str) -> Result<(), Error> {
        let id = find(&self.inner, caller, run).await?;
        let live = load(&self.inner, id, run).await?;
        let (path, state) = step_named(&live, step)?;
        let attempt = state.attempt;
        match state.phase {
            Phase::Gate => {
                let decision = Decision { approve: true, ..Decision::default() };
                self.answer(caller, run, step, decision).await
            }
            Phase::Backoff if state.failure().is_some_and(|failure| &*failure.code == DEFERRED) => Err(Error::NotNow(
                "too many such calls are made at present, and a policy gave this one its time".into(),
            )),
            Phase::Sleeping | Phase::Backoff => {
                caller.check(Right::Run)?;
                let audit = self.trail(caller, "step.wake", run, json!({"step": path}));
                self.inner.command(id, What::Wake { path, attempt, by: caller.name.clone() }, audit).await
            }
            Phase::Webhook => {
                caller.check(Right::Run)?;
                let audit = self.trail(caller, "step.deliver", run, json!({"step": path}));
                self.inner.command(id, What::Deliver { path, body: Arc::default() }, audit).await
            }
            Phase::Done(_) => Err(Ignored::StepFinished.into()),
            Phase::Idle | Phase::Running | Phase::Unsure | Phase::Child | Phase::Open => {
                Err(Ignored::NotWaiting.into())
            }
        }
    }

    /// Says what became of a call that may have happened and may not be made twice.
    pub async fn settle(&self, caller: &Caller, run: &str, step: &str, verdict: Verdict) -> Result<(), Error> {
        let id = self.reach(caller, Right::Approve, run).await?;
        if caller.grants.is_agent() {
            return Err(Error::Refused("whether a call happened is for a person to say, not for an agent".into()));
        }
        let live = load(&self.inner, id, run).await?;
        let (path, state) = step_named(&live, step)?;
        if let Verdict::Happened { body } = &verdict {
            check_size(body).map_err(|failure| bad("body", &failure.message))?;
        }
        let (attempt, by) = (state.attempt, caller.name.clone());
        let audit = self.trail(caller, "step.settle", run, json!({"step": path, "verdict": verdict.name()}));
        self.inner.command(id, What::Settle { path, attempt, verdict, by }, audit).await
    }

    /// Takes a call to a wait's URL. Who knows the token needs no other right.
    pub async fn deliver_webhook(&self, token: &str, body: Value) -> Result<(), Error> {
        let (live, path) = self.called(token).await?;
        let audit = NewAudit {
            org: live.org,
            at: self.inner.clock.now(),
            by: "callback".into(),
            action: "step.deliver".into(),
            target: live.run.id.to_string(),
            detail: json!({"step": path}).to_string(),
        };
        match self.deliver(&live, path, body, Some(audit)).await {
            // Whether it was this call that the step has had, or it is over without one.
            Err(Error::Conflict(Ignored::StepFinished | Ignored::RunFinished)) => {
                self.callback_open(token).await?;
                Err(Ignored::StepFinished.into())
            }
            answer => answer,
        }
    }

    /// Whether a call to this URL would count. A step that had its call says so, one that is over without it as well.
    pub async fn callback_open(&self, token: &str) -> Result<(), Error> {
        let (live, path) = self.called(token).await?;
        let graph = &live.compiled.definition.graph;
        let state = live.run.find(graph, &path).and_then(|at| live.run.step(graph, at));
        match state.map(|state| state.phase) {
            Some(Phase::Done(Status::Success)) => Err(Ignored::Repeated.into()),
            Some(Phase::Done(_)) => Err(Ignored::StepFinished.into()),
            _ if live.run.status.is_terminal() => Err(Ignored::RunFinished.into()),
            _ => Ok(()),
        }
    }

    /// The run and the path of the step that a genuine token names.
    async fn called(&self, token: &str) -> Result<(Box<Live>, String), Error> {
        let unknown = || Error::NotFound { what: "callback", name: token.chars().take(60).collect() };
        let named = Named::parse(token).ok_or_else(unknown)?;
        let id = self.inner.store.find_run(&named.run).await?.ok_or_else(unknown)?;
        let live = load(&self.inner, id, &named.run).await?;
        if named.is_genuine(&live.secret) { Ok((live, named.path)) } else { Err(unknown()) }
    }

    /// Delivers a call by the name of its step: for those who may run the workflow and do not have the URL.
    pub async fn deliver_to(&self, caller: &Caller, run: &str, step: &str, body: Value) -> Result<(), Error> {
        let id = self.reach(caller, Right::Run, run).await?;
        let live = load(&self.inner, id, run).await?;
        let (path, _) = step_named(&live, step)?;
        let audit = self.trail(caller, "step.deliver", run, json!({"step": path}));
        self.deliver(&live, path, body, audit).await
    }

    async fn deliver(&self, live: &Live, path: String, mut body: Value, audit: Option<NewAudit>) -> Result<(), Error> {
        // A service may send back what it was given.
        secrets::mask(&self.inner, live.org, &live.compiled.secrets).await.value(&mut body);
        check_size(&body).map_err(|failure| bad("body", &failure.message))?;
        self.inner.command(live.id, What::Deliver { path, body: Arc::new(body) }, audit).await
    }

    /// A row for the audit trail. The person at the machine itself leaves none for what a run's own log says.
    pub(super) fn trail(&self, caller: &Caller, action: &str, target: &str, detail: Value) -> Option<NewAudit> {
        (!caller.is_local()).then(|| caller.audit(self.inner.clock.now(), action, target, detail))
    }

    /// A run of the caller's organisation, if they have the right.
    pub(super) async fn reach(&self, caller: &Caller, right: Right, run: &str) -> Result<RunId, Error> {
        caller.check(right)?;
        find(&self.inner, caller, run).await
    }
}

pub(super) async fn load(inner: &Inner, id: RunId, run: &str) -> Result<Box<Live>, Error> {
    let gone = || Error::NotFound { what: "run", name: run.to_string() };
    drive::load(inner, id).await?.ok_or_else(gone)
}

async fn live_is_test(inner: &Inner, id: RunId, run: &str) -> Result<bool, Error> {
    Ok(load(inner, id, run).await?.test)
}

async fn newest(inner: &Inner, live: &Live) -> Result<Arc<crate::Compiled>, Error> {
    inner.definitions.newest(inner, live.org, &live.compiled.row.workflow).await
}

/// A step by its path; or by its name, if one step of that name waits for someone.
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
            Err(bad("step", &format!("several steps are called {step:?}; give the path of one, such as {example:?}")))
        }
    }
}
