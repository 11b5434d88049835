//! What people need now and then: labels, many runs at once, ending a stuck step, erasing payloads.

use super::labels::label_list;
use super::look::find;
use super::people::bad;
use super::{Caller, Retry, Right, RunQuery, RunView};
use crate::engine::Engine;
use crate::error::Error;
use crate::rights::Grants;
use crate::runs::What;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use stepwell_core::event::{Failure, Outcome, Reply};
use stepwell_core::run::Phase;
use stepwell_core::value::check_size;
use stepwell_store::{Change, RunFilter};

/// Runs that one call may be about.
const MOST_AT_ONCE: usize = 10_000;
const PAGE: u32 = 500;

/// How a stuck step is said to have ended.
#[derive(Clone, PartialEq, Debug)]
pub struct Override {
    /// What it gave back, or why it failed.
    pub outcome: Result<Value, String>,
    /// For whoever asks later.
    pub comment: Option<String>,
}

/// What came of a call about many runs.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Bulk {
    pub done: Vec<String>,
    /// Those that were refused, and why.
    pub refused: Vec<(String, String)>,
    /// There are more: ask again.
    pub more: bool,
}

/// What is done to each of many runs.
#[derive(Clone, Copy)]
enum Act<'a> {
    Cancel(Option<&'a str>),
    Retry(Retry),
}

impl Engine {
    /// Gives a run other labels.
    pub async fn label(&self, caller: &Caller, run: &str, labels: &BTreeMap<String, String>) -> Result<(), Error> {
        caller.check(Right::Run)?;
        let id = find(&self.inner, caller, run).await?;
        let labels = label_list(labels)?;
        let audit = caller.audit(self.inner.clock.now(), "run.label", run, json!({"labels": labels}));
        let there = self.inner.store.label(id, labels, vec![audit]).await?;
        if there { Ok(()) } else { Err(Error::NotFound { what: "run", name: run.to_string() }) }
    }

    /// Cancels every run that fits and has not ended.
    pub async fn cancel_all(&self, caller: &Caller, query: RunQuery, reason: Option<&str>) -> Result<Bulk, Error> {
        caller.check(Right::Run)?;
        let open = ["queued", "running", "paused"].map(String::from).to_vec();
        let query = RunQuery { status: narrowed(query.status, open), ..query };
        self.each(caller, query, Act::Cancel(reason)).await
    }

    /// Retries every run that fits and did not complete.
    pub async fn retry_all(&self, caller: &Caller, query: RunQuery, retry: Retry) -> Result<Bulk, Error> {
        caller.check(Right::Run)?;
        let over = ["failed", "cancelled", "timeout"].map(String::from).to_vec();
        let query = RunQuery { status: narrowed(query.status, over), ..query };
        self.each(caller, query, Act::Retry(retry)).await
    }

    async fn each(&self, caller: &Caller, query: RunQuery, act: Act<'_>) -> Result<Bulk, Error> {
        let mut bulk = Bulk::default();
        let mut before = query.before;
        // No status fits: nothing is meant.
        if query.status.is_empty() {
            return Ok(bulk);
        }
        loop {
            let page = self.runs(caller, RunQuery { before, limit: PAGE, ..query.clone() }).await?;
            before = page.last().map(|run| run.id);
            let last = page.len() < PAGE as usize;
            for run in page {
                if bulk.done.len() + bulk.refused.len() >= MOST_AT_ONCE {
                    bulk.more = true;
                    return Ok(bulk);
                }
                let done = match act {
                    Act::Cancel(reason) => self.cancel(caller, &run.public, reason).await,
                    Act::Retry(retry) => self.retry(caller, &run.public, retry).await,
                };
                match done {
                    Ok(()) => bulk.done.push(run.public),
                    Err(error @ (Error::Unavailable(_) | Error::Forbidden { .. })) => return Err(error),
                    Err(error) => bulk.refused.push((run.public, error.to_string())),
                }
            }
            if last {
                return Ok(bulk);
            }
        }
    }

    /// Ends a step that is stuck, with a result that somebody answers for.
    pub async fn override_step(&self, caller: &Caller, run: &str, step: &str, how: Override) -> Result<(), Error> {
        caller.check(Right::Admin)?;
        let id = find(&self.inner, caller, run).await?;
        let live = super::control::load(&self.inner, id, run).await?;
        let (path, state) = super::control::step_named(&live, step)?;
        if state.phase == Phase::Unsure {
            caller.check(Right::Approve)?;
        }
        if state.phase == Phase::Gate {
            return Err(Error::Refused("a gate is answered by those who may, not overridden".into()));
        }
        let Override { outcome, comment } = how;
        let detail = json!({"step": path, "success": outcome.is_ok(), "comment": comment});
        let outcome = match outcome {
            Ok(output) => {
                check_size(&output).map_err(|failure| bad("output", &failure.message))?;
                Outcome::Success(Reply::body(output))
            }
            Err(message) => Outcome::Failure { failure: Failure::new("overridden", message), reply: None },
        };
        let audit = self.trail(caller, "step.override", run, detail);
        let (attempt, by) = (state.attempt, caller.name.clone());
        let what = What::Override { path, attempt, outcome, by, comment: comment.map(Into::into) };
        self.inner.command(id, what, audit).await
    }

    /// Takes away all that a finished run was given and gave back. Its log, and the digests in it, stay.
    pub async fn erase(&self, caller: &Caller, run: &str) -> Result<(), Error> {
        caller.check(Right::Admin)?;
        let id = find(&self.inner, caller, run).await?;
        let now = self.inner.clock.now();
        let audit = vec![caller.audit(now, "run.erase", run, json!({}))];
        let done = self.inner.store.erase(id, now, audit).await?;
        let running = "the run has not ended: cancel it first";
        if done { Ok(()) } else { Err(Error::NotNow(running.into())) }
    }

    /// Stops a test run and removes all of it.
    pub async fn discard(&self, caller: &Caller, run: &str) -> Result<(), Error> {
        caller.check(Right::Define)?;
        let id = find(&self.inner, caller, run).await?;
        let live = super::control::load(&self.inner, id, run).await?;
        if !live.test {
            return Err(Error::NotNow("only test runs can be discarded; others go when their time is over".into()));
        }
        let now = self.inner.clock.now();
        // Each is stopped before its children are looked for, so that no more of them come.
        let (mut family, mut next) = (vec![(id, run.to_string())], 0);
        while let Some((id, run)) = family.get(next).cloned() {
            match self.cancel(caller, &run, Some("discarded")).await {
                Ok(()) | Err(Error::Conflict(_) | Error::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
            self.inner.store.expire(id, now).await?;
            let mut before = None;
            loop {
                let all = RunFilter::all(caller.org, PAGE);
                let page = self.inner.store.runs(RunFilter { tests: true, parent: Some(id), before, ..all }).await?;
                before = page.last().map(|child| child.id);
                let last = page.len() < PAGE as usize;
                family.extend(page.into_iter().map(|child| (child.id, child.public)));
                if last {
                    break;
                }
            }
            next += 1;
        }
        let audit = vec![caller.audit(now, "run.discard", run, json!({}))];
        let _ = self.inner.store.change(Change { audit, ..Change::default() }).await?;
        for (id, _) in family {
            while self.inner.store.run(id).await?.is_some() && self.inner.store.purge(now, PAGE).await? > 0 {}
        }
        Ok(())
    }

    /// The view of a run after something was done to it; without payloads for those who may not read.
    pub async fn look_again(&self, caller: &Caller, run: &str) -> Result<RunView, Error> {
        let reader = Caller { grants: Grants::new([Right::Read.name().to_string()]), ..caller.clone() };
        let mut view = self.status(&reader, run).await?;
        if !caller.may(Right::Read) {
            (view.input, view.output) = (Value::Null, None);
            for step in &mut view.tasks {
                (step.input, step.output) = (None, None);
                step.attempts.iter_mut().for_each(|attempt| attempt.output = None);
            }
        }
        Ok(view)
    }
}

/// Those of the asked for that make sense; all of them if nothing was asked for.
fn narrowed(asked: Vec<String>, sensible: Vec<String>) -> Vec<String> {
    if asked.is_empty() { sensible } else { asked.into_iter().filter(|status| sensible.contains(status)).collect() }
}
