//! Reading runs: single runs, lists, the log, and waiting for the end.

use super::super::Runs;
use super::view::{ParentView, RunView, view};
use crate::access::{Caller, Grants, Right};
use crate::error::Error;
use crate::rooms::Rooms;
use crate::run::start::end_of;
use crate::run::{Live, drive};
use crate::workflows::Compiled;
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;
use stepwell_core::run::RunStatus;
use stepwell_core::time::Time;
use stepwell_store::{RunFilter, RunId, RunRow, Version};

/// Maximum number of rows in a page.
const MAX_PAGE: u32 = 1_000;

/// Which runs to list, newest first.
#[derive(Clone, Default, Debug)]
pub struct RunQuery {
    /// One of these; empty for any.
    pub status: Vec<String>,
    /// The name or id (`wf_…`).
    pub workflow: Option<String>,
    pub by: Option<String>,
    /// All of these, as `name=value`.
    pub labels: Vec<String>,
    /// Part of the run's id, its creator's name or one of its labels.
    pub text: Option<String>,
    pub since: Option<Time>,
    pub until: Option<Time>,
    pub tests: bool,
    /// Only runs started by steps of this run.
    pub parent: Option<String>,
    /// The last run of the previous page.
    pub before: Option<RunId>,
    pub limit: u32,
}

/// One fact of a run's log.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct EventView {
    /// The commit that wrote it.
    pub version: i64,
    pub at: Time,
    #[serde(flatten)]
    pub fact: Value,
}

impl Runs<'_> {
    /// Returns a run with its steps. Needs the right to read.
    pub async fn get(&self, run: &str) -> Result<RunView, Error> {
        self.caller.check(Right::Read)?;
        let id = find(self.rooms, self.caller, run).await?;
        read(self.rooms, id, run).await
    }

    /// The version that a run uses, even if the workflow was deleted. Needs the right to read.
    pub async fn definition(&self, run: &str) -> Result<Arc<Compiled>, Error> {
        self.caller.check(Right::Read)?;
        let none = || Error::NotFound { what: "run", name: run.to_string() };
        let id = find(self.rooms, self.caller, run).await?;
        let row = self.rooms.cluster.store.run(id).await?.ok_or_else(none)?;
        self.rooms.workflows.version(row.definition).await
    }

    /// Lists runs, newest first. Needs the right to read.
    pub async fn list(&self, query: RunQuery) -> Result<Vec<RunRow>, Error> {
        self.caller.check(Right::Read)?;
        let workflow = match &query.workflow {
            // A deleted workflow can still be found by its id.
            Some(id)
                if id.starts_with("wf_")
                    && !self.rooms.cluster.store.versions(self.caller.org, id).await?.is_empty() =>
            {
                Some(id.clone())
            }
            Some(name) => {
                let found = self.rooms.workflows.newest(self.caller.org, name).await?;
                Some(found.row.workflow.clone())
            }
            None => None,
        };
        let parent = match &query.parent {
            Some(run) => Some(find(self.rooms, self.caller, run).await?),
            None => None,
        };
        let filter = RunFilter {
            org: self.caller.org,
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
        Ok(self.rooms.cluster.store.runs(filter).await?)
    }

    /// The facts of the log after a version, in order. Needs the right to read.
    pub async fn events(&self, run: &str, after: i64, limit: u32) -> Result<Vec<EventView>, Error> {
        self.caller.check(Right::Read)?;
        let id = find(self.rooms, self.caller, run).await?;
        let rows = self.rooms.cluster.store.tail(id, Version(after), limit.clamp(1, MAX_PAGE)).await?;
        let mut events = Vec::new();
        for row in rows {
            let facts: Vec<Value> = serde_json::from_str(&row.row.facts)
                .map_err(|error| Error::Broken(format!("log row {} of {run}: {error}", row.version.0)))?;
            let (version, at) = (row.version.0, row.row.at);
            events.extend(facts.into_iter().map(|fact| EventView { version, at, fact }));
        }
        Ok(events)
    }

    /// Waits for the end of a run. Needs the right to read.
    pub async fn wait(&self, run: &str) -> Result<(), Error> {
        self.caller.check(Right::Read)?;
        let id = find(self.rooms, self.caller, run).await?;
        end_of(&self.rooms.runner, id).await?.reached().await
    }

    /// The view of a run after a command, without payloads if the caller may not read. Needs no right.
    pub async fn get_after_change(&self, run: &str) -> Result<RunView, Error> {
        let reader = self.caller.with_grants(Grants::new([Right::Read.name().to_string()]));
        let mut view = Runs::new(self.rooms, &reader).get(run).await?;
        if !self.caller.may(Right::Read) {
            (view.input, view.output) = (Value::Null, None);
            for step in &mut view.tasks {
                (step.input, step.output) = (None, None);
                step.attempts.iter_mut().for_each(|attempt| attempt.output = None);
            }
        }
        Ok(view)
    }
}

/// A run by its public id. Runs of other organisations are not found.
pub(in crate::commands) async fn find(rooms: &Rooms, caller: &Caller, run: &str) -> Result<RunId, Error> {
    let none = || Error::NotFound { what: "run", name: run.to_string() };
    let id = rooms.cluster.store.find_run(run).await?.ok_or_else(none)?;
    let row = rooms.cluster.store.run(id).await?.ok_or_else(none)?;
    if row.org == caller.org { Ok(id) } else { Err(none()) }
}

/// A run of the caller's organisation, if the caller has the right.
pub(in crate::commands) async fn find_with_right(
    rooms: &Rooms,
    caller: &Caller,
    right: Right,
    run: &str,
) -> Result<RunId, Error> {
    caller.check(right)?;
    find(rooms, caller, run).await
}

async fn read(rooms: &Rooms, id: RunId, run: &str) -> Result<RunView, Error> {
    let none = || Error::NotFound { what: "run", name: run.to_string() };
    // Row and steps are read together, so that they are consistent.
    let stored = rooms.cluster.store.load(id).await?.ok_or_else(none)?;
    let live = drive::revive(&rooms.runner, &stored).await?;
    let attempts = rooms.cluster.store.attempts(id).await?;
    let mut view = view(&stored.row, &live, &attempts);
    if let Some(parent) = &stored.row.parent {
        let row = rooms.cluster.store.run(parent.run).await?;
        view.parent = row.map(|row| ParentView { run: row.public, step: parent.path.clone() });
    }
    if live.run.status == RunStatus::Queued {
        let switches = rooms.access.switches(live.org, &live.compiled.row.workflow).await?;
        if switches.hold(live.group.as_deref()).is_some() {
            let resumed = "someone who resumes the workflow, which is paused";
            view.waiting_for.iter_mut().for_each(|waiting| waiting.moved_on_by = resumed);
        }
    }
    Ok(view)
}

pub(in crate::commands) async fn load(rooms: &Rooms, id: RunId, run: &str) -> Result<Box<Live>, Error> {
    let none = || Error::NotFound { what: "run", name: run.to_string() };
    drive::load(&rooms.runner, id).await?.ok_or_else(none)
}
