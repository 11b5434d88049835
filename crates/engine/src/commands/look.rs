//! Looking at runs: one in full, lists, the log, and waiting for the end.

use super::view::{ParentView, RunView, view};
use super::{Caller, Right};
use crate::definitions::Compiled;
use crate::drive;
use crate::engine::{Engine, Inner};
use crate::error::Error;
use crate::switches::switches;
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;
use stepwell_core::run::RunStatus;
use stepwell_core::time::Time;
use stepwell_store::{NodeRow, RunFilter, RunId, RunRow, Version};

/// Rows of a page at the most.
const MAX_PAGE: u32 = 1_000;

/// Which runs to list, newest first.
#[derive(Clone, Default, Debug)]
pub struct RunQuery {
    /// One of these; any if there are none.
    pub status: Vec<String>,
    /// By name or `wf_…`.
    pub workflow: Option<String>,
    pub by: Option<String>,
    /// All of these, as `name=value`.
    pub labels: Vec<String>,
    /// Part of its id, its creator's name or one of its labels.
    pub text: Option<String>,
    pub since: Option<Time>,
    pub until: Option<Time>,
    pub tests: bool,
    /// Started by steps of this run.
    pub parent: Option<String>,
    /// The last run of the page before.
    pub before: Option<RunId>,
    pub limit: u32,
}

/// One fact of a run's log.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct EventView {
    /// The commit it came with.
    pub version: i64,
    pub at: Time,
    #[serde(flatten)]
    pub fact: Value,
}

impl Engine {
    /// Who executes on this store, by id.
    pub async fn nodes(&self, caller: &Caller) -> Result<Vec<NodeRow>, Error> {
        caller.check(Right::Read)?;
        Ok(self.inner.store.nodes().await?)
    }

    pub async fn status(&self, caller: &Caller, run: &str) -> Result<RunView, Error> {
        caller.check(Right::Read)?;
        let id = find(&self.inner, caller, run).await?;
        look(&self.inner, id, run).await
    }

    /// The version that a run is of, whether or not the workflow is still there.
    pub async fn definition_of(&self, caller: &Caller, run: &str) -> Result<Arc<Compiled>, Error> {
        caller.check(Right::Read)?;
        let none = || Error::NotFound { what: "run", name: run.to_string() };
        let id = find(&self.inner, caller, run).await?;
        let row = self.inner.store.run(id).await?.ok_or_else(none)?;
        self.inner.definitions.get(&*self.inner.store, row.definition).await
    }

    pub async fn runs(&self, caller: &Caller, query: RunQuery) -> Result<Vec<RunRow>, Error> {
        caller.check(Right::Read)?;
        let workflow = match &query.workflow {
            // A workflow that is gone is still known by its id.
            Some(id) if id.starts_with("wf_") && !self.inner.store.versions(caller.org, id).await?.is_empty() => {
                Some(id.clone())
            }
            Some(name) => {
                let found = self.inner.definitions.newest(&self.inner, caller.org, name).await?;
                Some(found.row.workflow.clone())
            }
            None => None,
        };
        let parent = match &query.parent {
            Some(run) => Some(find(&self.inner, caller, run).await?),
            None => None,
        };
        let filter = RunFilter {
            org: caller.org,
            status: query.status,
            workflow,
            by: query.by,
            labels: query.labels,
            text: query.text,
            since: query.since,
            until: query.until,
            tests: query.tests,
            parent,
            before: query.before,
            limit: query.limit.clamp(1, MAX_PAGE),
        };
        Ok(self.inner.store.runs(filter).await?)
    }

    /// Facts of the log after a version, in order.
    pub async fn events(&self, caller: &Caller, run: &str, after: i64, limit: u32) -> Result<Vec<EventView>, Error> {
        caller.check(Right::Read)?;
        let id = find(&self.inner, caller, run).await?;
        let rows = self.inner.store.tail(id, Version(after), limit.clamp(1, MAX_PAGE)).await?;
        let mut events = Vec::new();
        for row in rows {
            let facts: Vec<Value> = serde_json::from_str(&row.row.facts)
                .map_err(|error| Error::Broken(format!("log row {} of {run}: {error}", row.version.0)))?;
            let (version, at) = (row.version.0, row.row.at);
            events.extend(facts.into_iter().map(|fact| EventView { version, at, fact }));
        }
        Ok(events)
    }

    /// Waits for the end of a run.
    pub async fn wait(&self, caller: &Caller, run: &str) -> Result<(), Error> {
        caller.check(Right::Read)?;
        let id = find(&self.inner, caller, run).await?;
        self.end_of(id).await?.reached().await
    }
}

/// A run by its public id. Runs of others are not there.
pub(super) async fn find(inner: &Inner, caller: &Caller, run: &str) -> Result<RunId, Error> {
    let none = || Error::NotFound { what: "run", name: run.to_string() };
    let id = inner.store.find_run(run).await?.ok_or_else(none)?;
    let row = inner.store.run(id).await?.ok_or_else(none)?;
    if row.org == caller.org { Ok(id) } else { Err(none()) }
}

async fn look(inner: &Inner, id: RunId, run: &str) -> Result<RunView, Error> {
    let none = || Error::NotFound { what: "run", name: run.to_string() };
    // One reading for row and steps, so that they fit each other.
    let stored = inner.store.load(id).await?.ok_or_else(none)?;
    let live = drive::revive(inner, &stored).await?;
    let attempts = inner.store.attempts(id).await?;
    let mut view = view(&stored.row, &live, &attempts);
    if let Some(parent) = &stored.row.parent {
        let row = inner.store.run(parent.run).await?;
        view.parent = row.map(|row| ParentView { run: row.public, step: parent.path.clone() });
    }
    if live.run.status == RunStatus::Queued {
        let switches = switches(inner, live.org, &live.compiled.row.workflow).await?;
        if switches.hold(live.group.as_deref()).is_some() {
            let resumed = "someone who resumes the workflow, which is paused";
            view.waiting_for.iter_mut().for_each(|waiting| waiting.moved_on_by = resumed);
        }
    }
    Ok(view)
}
