//! Controlling runs: cancel, retry, rerun, label, erase, discard.

use super::super::change::{change, run_audit};
use super::super::input::check_text;
use super::super::{Runs, Source};
use super::{Trigger, find, find_with_right, load};
use crate::access::Right;
use crate::error::Error;
use crate::rooms::Rooms;
use crate::run::start::{End, Started, end_of};
use crate::run::{Cancellation, Live, Message, cancel_unread, recovery};
use crate::workflows::{Compiled, label_list};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use stepwell_core::event::Retrier;
use stepwell_core::plan::{Standing, retry_standing, standing};
use stepwell_store::{Change, RunFilter};

/// The version with which a retried run continues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Retry {
    SameVersion,
    Newest,
}

const PAGE_SIZE: u32 = 500;

const ERASED: &str = "the run's payloads were erased: it cannot continue";

impl Runs<'_> {
    /// Cancels a run. Needs the right to run.
    pub async fn cancel(&self, run: &str, reason: Option<&str>) -> Result<(), Error> {
        let id = find_with_right(self.rooms, self.caller, Right::Run, run).await?;
        check_text("reason", reason)?;
        let message = Message::Cancel { by: self.caller.name.clone(), reason: reason.map(Into::into) };
        let audit = run_audit(self.rooms, self.caller, "run.cancel", run, json!({"reason": reason}));
        match self.rooms.runner.command(id, message, audit.clone()).await {
            Err(Error::Broken(why)) => {
                cancel_unread(&self.rooms.runner, Cancellation { run: id, by: self.caller.name.clone(), why, audit })
                    .await
            }
            answer => answer,
        }
    }

    /// Ends the quarantine of a run: it is driven again. Needs the right to run; refused for agents.
    pub async fn release(&self, run: &str) -> Result<(), Error> {
        let id = find_with_right(self.rooms, self.caller, Right::Run, run).await?;
        if self.caller.grants.is_agent() {
            return Err(Error::Refused("an agent may not release a run from quarantine".into()));
        }
        if recovery::quarantined(&self.rooms.runner, id).await?.is_none() {
            return Err(Error::NotNow("the run is not quarantined".into()));
        }
        let audit = run_audit(self.rooms, self.caller, "run.release", run, json!({}));
        let records = recovery::released(id);
        let update = Change { records, audit: audit.into_iter().collect(), ..Change::default() };
        change(self.rooms, update, "run", run).await?;
        recovery::resume(&self.rooms.runner, id);
        Ok(())
    }

    /// Continues a run that did not complete: failed and cancelled steps run again. Needs the right to run.
    pub async fn retry(&self, run: &str, retry: Retry) -> Result<(), Error> {
        let id = find_with_right(self.rooms, self.caller, Right::Run, run).await?;
        if self.rooms.cluster.store.run(id).await?.is_some_and(|row| row.erased.is_some()) {
            return Err(Error::NotNow(ERASED.into()));
        }
        let (_, limits) = self.rooms.access.limits_of(self.caller.org).await?;
        self.rooms.access.check_run(self.caller.org, &limits).await?;
        let onto = match retry {
            Retry::SameVersion => None,
            Retry::Newest => Some(newest(self.rooms, &*load(self.rooms, id, run).await?).await?),
        };
        let version = onto.as_ref().map(|onto| onto.row.version);
        // The retried run is limited to the rights of the user who retries it.
        let by = Retrier { name: self.caller.name.clone(), acts: Some(self.caller.actor().to_string().into()) };
        let audit = run_audit(self.rooms, self.caller, "run.retry", run, json!({"onto_version": version}));
        self.rooms.runner.command(id, Message::Retry { by, onto }, audit).await
    }

    /// Which steps would keep their result in this retry, and which would run again. Needs the right to read.
    pub async fn retry_preview(&self, run: &str, retry: Retry) -> Result<Standing, Error> {
        let id = find_with_right(self.rooms, self.caller, Right::Read, run).await?;
        if self.rooms.cluster.store.run(id).await?.is_some_and(|row| row.erased.is_some()) {
            return Err(Error::NotNow(ERASED.into()));
        }
        let live = load(self.rooms, id, run).await?;
        let graph = &live.compiled.definition.graph;
        let onto = match retry {
            Retry::SameVersion => None,
            Retry::Newest => Some(newest(self.rooms, &live).await?).filter(|onto| onto.row.id != live.compiled.row.id),
        };
        Ok(match onto {
            None => retry_standing(graph, &live.run)?,
            Some(onto) => standing(graph, &onto.definition.graph, &live.run)?,
        })
    }

    /// Resolves when the run ends, or at once if it has ended. Needs the right to run.
    pub async fn end(&self, run: &str) -> Result<End, Error> {
        let id = find_with_right(self.rooms, self.caller, Right::Run, run).await?;
        end_of(&self.rooms.runner, id).await
    }

    /// Starts a new run with the same input, or with another. Needs the right to run.
    pub async fn rerun(&self, run: &str, input: Option<Value>) -> Result<Started, Error> {
        let id = find_with_right(self.rooms, self.caller, Right::Run, run).await?;
        if self.rooms.cluster.store.run(id).await?.is_some_and(|row| row.erased.is_some()) {
            return Err(Error::NotNow("the run's payloads were erased: it has no input to start with".into()));
        }
        let live = load(self.rooms, id, run).await?;
        let value = |id| live.run.values.get(id).cloned();
        if live.test {
            let source = Source { text: &live.compiled.row.source, file: None };
            let input = input.or(live.run.input.and_then(value)).unwrap_or_default();
            return self.test(source, input).await;
        }
        let input = input.or(live.run.input.and_then(value)).unwrap_or_default();
        let (headers, query) = (live.run.headers.and_then(value), live.run.query.and_then(value));
        let trigger = Trigger { headers, query, ..Trigger::new(&live.compiled.row.workflow, input) };
        self.trigger(trigger).await
    }

    /// Replaces the labels of a run. Needs the right to run.
    pub async fn label(&self, run: &str, labels: &BTreeMap<String, String>) -> Result<(), Error> {
        self.caller.check(Right::Run)?;
        let id = find(self.rooms, self.caller, run).await?;
        let labels = label_list(labels)?;
        let audit = self.caller.audit(self.rooms.cluster.clock.now(), "run.label", run, json!({"labels": labels}));
        let found = self.rooms.cluster.store.label(id, labels, vec![audit]).await?;
        if found { Ok(()) } else { Err(Error::NotFound { what: "run", name: run.to_string() }) }
    }

    /// Erases the payloads of a finished run. Its log is kept, with the digests. Needs the right to administer.
    pub async fn erase(&self, run: &str) -> Result<(), Error> {
        self.caller.check(Right::Admin)?;
        let id = find(self.rooms, self.caller, run).await?;
        let now = self.rooms.cluster.clock.now();
        let audit = vec![self.caller.audit(now, "run.erase", run, json!({}))];
        let done = self.rooms.cluster.store.erase(id, now, audit).await?;
        let running = "the run has not ended: cancel it first";
        if done { Ok(()) } else { Err(Error::NotNow(running.into())) }
    }

    /// Stops a test run and removes all its data. Needs the right to define.
    pub async fn discard(&self, run: &str) -> Result<(), Error> {
        self.caller.check(Right::Define)?;
        let id = find(self.rooms, self.caller, run).await?;
        let live = load(self.rooms, id, run).await?;
        if !live.test {
            return Err(Error::NotNow(
                "only test runs can be discarded; other runs are purged after their retention period".into(),
            ));
        }
        let now = self.rooms.cluster.clock.now();
        // Each run is stopped before its children are listed, so that it starts no more.
        let (mut runs, mut next) = (vec![(id, run.to_string())], 0);
        while let Some((id, run)) = runs.get(next).cloned() {
            match self.cancel(&run, Some("discarded")).await {
                Ok(()) | Err(Error::Conflict(_) | Error::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
            self.rooms.cluster.store.expire(id, now).await?;
            let mut before = None;
            loop {
                let all = RunFilter::all(self.caller.org, PAGE_SIZE);
                let page =
                    self.rooms.cluster.store.runs(RunFilter { tests: true, parent: Some(id), before, ..all }).await?;
                before = page.last().map(|child| child.id);
                let last = page.len() < PAGE_SIZE as usize;
                runs.extend(page.into_iter().map(|child| (child.id, child.public)));
                if last {
                    break;
                }
            }
            next += 1;
        }
        let audit = vec![self.caller.audit(now, "run.discard", run, json!({}))];
        let _ = self.rooms.cluster.store.change(Change { audit, ..Change::default() }).await?;
        for (id, _) in runs {
            while self.rooms.cluster.store.run(id).await?.is_some()
                && self.rooms.cluster.store.purge(now, PAGE_SIZE).await? > 0
            {}
        }
        Ok(())
    }
}

async fn newest(rooms: &Rooms, live: &Live) -> Result<Arc<Compiled>, Error> {
    if live.test {
        return Err(Error::NotNow("a test run has no newer version: start a new test run".into()));
    }
    rooms.workflows.newest(live.org, &live.compiled.row.workflow).await
}
