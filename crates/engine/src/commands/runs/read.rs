//! Reading runs: single runs, lists, the log, and waiting for the end.

use super::super::Runs;
use super::super::deleted::deleted_at;
use super::payloads::{Opened, StepPage, StepQuery, open};
use super::view::{ParentView, RunView, RunWarning, STATUSES, StepView, by_path, unread, view};
use crate::access::{Caller, Grants, Right};
use crate::error::Error;
use crate::notify;
use crate::rooms::Rooms;
use crate::run::start::end_of;
use crate::run::{Live, callbacks, drive, recovery, scheduled_for};
use crate::workflows::Compiled;
use serde::Serialize;
use serde_json::Value;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use stepwell_core::graph::Kind;
use stepwell_core::run::{Phase, RunStatus, Waiting, WaitingFor};
use stepwell_core::time::Time;
use stepwell_store::{DefinitionRow, RunFilter, RunId, RunRow, Version};

/// Maximum number of rows in a page.
const MAX_PAGE: u32 = 1_000;
/// Bytes of the facts in a page of a run's log, and the rows that are read at a time.
const MAX_FACTS: usize = 2 << 20;
const MAX_TAIL: u32 = 50;
/// Rows of a page of runs whose caller sets no limit.
const DEFAULT_PAGE: u32 = 50;
/// The kind of steps with callback URLs.
const WAIT: &str = "wait_for_webhook";
/// Child runs of a run that are named in its view.
const MAX_CHILDREN: usize = 10_000;
/// Open requests of a run that are checked for warnings.
const MAX_WARNED: usize = 20;

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

/// The public parameters of a list of runs, as REST, MCP and the command line receive them.
#[derive(Clone, Default, Debug)]
pub struct RunFilters {
    /// One status or several, separated by commas.
    pub status: Option<String>,
    /// By name or `wf_…`.
    pub workflow: Option<String>,
    pub since: Option<Time>,
    pub until: Option<Time>,
    pub created_by: Option<String>,
    /// `name=value`, several separated by commas.
    pub label: Option<String>,
    pub text: Option<String>,
    pub tests: bool,
    pub parent: Option<String>,
    pub limit: Option<u32>,
    /// `next` of the previous page.
    pub cursor: Option<String>,
}

impl RunFilters {
    /// Checks the parameters.
    pub fn query(self) -> Result<RunQuery, Error> {
        let status = split(self.status.as_deref());
        if let Some(unknown) = status.iter().find(|status| !STATUSES.contains(&status.as_str())) {
            return Err(input("status", format!("{unknown:?} is not one of {}", STATUSES.join(", "))));
        }
        let labels = split(self.label.as_deref());
        if let Some(bad) = labels.iter().find(|label| !label.contains('=')) {
            return Err(input("label", format!("{bad:?} is not name=value")));
        }
        Ok(RunQuery {
            status,
            workflow: self.workflow,
            by: self.created_by,
            labels,
            text: self.text.filter(|text| !text.is_empty()),
            since: self.since,
            until: self.until,
            tests: self.tests,
            parent: self.parent,
            before: self.cursor.as_deref().map(cursor_run).transpose()?,
            limit: page_size(self.limit, DEFAULT_PAGE)?,
        })
    }
}

/// A run as lists show it.
#[derive(Clone, PartialEq, Debug)]
pub struct RunSummary {
    pub row: RunRow,
    /// `wf_…`. This and the two below are empty if the definition is gone.
    pub workflow_id: String,
    pub workflow: String,
    pub workflow_version: u32,
    pub workflow_deleted_at: Option<Time>,
    /// When a scheduled run begins.
    pub scheduled_for: Option<Time>,
}

/// A page of runs, newest first.
#[derive(Clone, PartialEq, Debug)]
pub struct RunPage {
    pub runs: Vec<RunSummary>,
    /// The cursor of the next page, if this one is full.
    pub next: Option<String>,
}

/// A part of a run's log.
#[derive(Clone, PartialEq, Debug)]
pub struct EventPage {
    pub events: Vec<EventView>,
    /// The version after which more may follow.
    pub next: Option<i64>,
}

/// One fact of a run's log.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct EventView {
    /// The name of the run's workflow.
    pub workflow: Arc<str>,
    /// The commit that wrote it.
    pub version: i64,
    pub at: Time,
    #[serde(flatten)]
    pub fact: Value,
}

impl Runs<'_> {
    /// Returns a run with its steps, or what its row says if the rest cannot be read. Needs the right to read.
    pub async fn get(&self, run: &str) -> Result<RunView, Error> {
        self.caller.check(Right::Read)?;
        let id = find(self.rooms, self.caller, run).await?;
        let (mut view, urls) = match read(self.rooms, id, run).await {
            Err(Error::Broken(why)) => {
                let none = || Error::NotFound { what: "run", name: run.to_string() };
                let stored = self.rooms.cluster.store.head(id).await?.ok_or_else(none)?;
                let definition = self.rooms.cluster.store.definition(stored.row.definition).await?;
                return Ok(unread(&stored, definition, &why));
            }
            answer => answer?,
        };
        self.add_urls(&mut view.tasks, urls);
        Ok(view)
    }

    /// A caller who knows the URL of a wait can deliver to it.
    fn add_urls(&self, steps: &mut [StepView], urls: impl Fn(&str) -> String) {
        if self.caller.may(Right::Run) {
            let waits = steps.iter_mut().filter(|step| step.status == "waiting" && step.kind == WAIT);
            waits.for_each(|step| step.callback_url = Some(urls(&step.path)));
        }
    }

    /// Returns a page of a run's steps with their payloads; none of a run that cannot be read. Needs the right to read.
    pub async fn steps(&self, run: &str, query: &StepQuery) -> Result<StepPage, Error> {
        self.caller.check(Right::Read)?;
        let id = find(self.rooms, self.caller, run).await?;
        let none = || Error::NotFound { what: "run", name: run.to_string() };
        let mut opened = match open(self.rooms, id).await {
            Err(Error::Broken(_)) => return Ok(StepPage::default()),
            opened => opened?.ok_or_else(none)?,
        };
        let mut page = opened.page(self.rooms, query).await?;
        add_children(self.rooms, &opened.live, &mut page.steps).await?;
        self.add_urls(&mut page.steps, callbacks::urls(&self.rooms.runner.base_url, &opened.live));
        Ok(page)
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
                    && self.rooms.cluster.store.first_defined(self.caller.org, id).await?.is_some() =>
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

    /// A page of runs with the names of their workflows.
    pub async fn page(&self, query: RunQuery) -> Result<RunPage, Error> {
        let limit = query.limit.clamp(1, MAX_PAGE) as usize;
        let rows = self.list(query).await?;
        let next = rows.last().filter(|_| rows.len() == limit).map(|last| cursor(last.id));
        let mut definitions: HashMap<i64, Option<(DefinitionRow, Option<Time>)>> = HashMap::new();
        let mut runs = Vec::with_capacity(rows.len());
        for row in rows {
            let definition = match definitions.entry(row.definition) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => unknown.insert(self.definition_of(&row).await?),
            };
            let named = definition.as_ref().map(|(of, at)| (of.workflow.clone(), of.name.clone(), of.version, *at));
            let (workflow_id, workflow, workflow_version, workflow_deleted_at) = named.unwrap_or_default();
            let scheduled_for = match &*row.status {
                "scheduled" => {
                    let head = self.rooms.cluster.store.head(row.id).await?;
                    head.and_then(|head| scheduled_for(&head).ok()).flatten()
                }
                _ => None,
            };
            runs.push(RunSummary { row, workflow_id, workflow, workflow_version, workflow_deleted_at, scheduled_for });
        }
        Ok(RunPage { runs, next })
    }

    /// The version that a run uses, and when its workflow was deleted.
    async fn definition_of(&self, run: &RunRow) -> Result<Option<(DefinitionRow, Option<Time>)>, Error> {
        let Some(row) = self.rooms.cluster.store.definition(run.definition).await? else { return Ok(None) };
        let deleted = if run.test { None } else { deleted_at(self.rooms, row.org, &row.workflow).await? };
        Ok(Some((row, deleted)))
    }

    /// The facts of the log after a version, in order: those of at most `limit` commits, and fewer if they are many.
    /// Needs the right to read.
    pub async fn events(&self, run: &str, after: i64, limit: u32) -> Result<EventPage, Error> {
        self.caller.check(Right::Read)?;
        let id = find(self.rooms, self.caller, run).await?;
        let workflow: Arc<str> = self.definition(run).await?.row.name.as_str().into();
        let limit = limit.clamp(1, MAX_PAGE);
        let (mut events, mut last, mut rows, mut bytes) = (Vec::new(), after, 0, 0);
        while rows < limit {
            let wanted = (limit - rows).min(MAX_TAIL);
            let tail = self.rooms.cluster.store.tail(id, Version(last), wanted).await?;
            let is_end = tail.len() < wanted as usize;
            for row in tail {
                bytes += row.row.facts.len();
                if bytes > MAX_FACTS && rows > 0 {
                    return Ok(EventPage { events, next: Some(last) });
                }
                let facts: Vec<Value> = serde_json::from_str(&row.row.facts)
                    .map_err(|error| Error::Broken(format!("log row {} of {run}: {error}", row.version.0)))?;
                (last, rows) = (row.version.0, rows + 1);
                let (version, at) = (row.version.0, row.row.at);
                events.extend(facts.into_iter().map(|fact| EventView {
                    workflow: workflow.clone(),
                    version,
                    at,
                    fact,
                }));
            }
            if is_end {
                return Ok(EventPage { events, next: None });
            }
        }
        Ok(EventPage { events, next: Some(last) })
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
                step.headers = None;
                step.approvals.clear();
                step.attempts.iter_mut().for_each(|attempt| (attempt.output, attempt.headers) = (None, None));
            }
        }
        Ok(view)
    }
}

/// The size of a page: as requested, or the default.
pub fn page_size(requested: Option<u32>, default: u32) -> Result<u32, Error> {
    match requested {
        Some(0) | Some(1_001..) => Err(input("limit", "a page has 1 to 1000 entries".into())),
        requested => Ok(requested.unwrap_or(default)),
    }
}

fn input(path: &str, message: String) -> Error {
    Error::Input { path: path.into(), message }
}

fn split(text: Option<&str>) -> Vec<String> {
    let parts = text.into_iter().flat_map(|text| text.split(',')).map(str::trim);
    parts.filter(|part| !part.is_empty()).map(str::to_string).collect()
}

/// The run that a cursor names: the last one of the previous page.
fn cursor_run(cursor: &str) -> Result<RunId, Error> {
    let bad = || input("cursor", "this is not the `next` of an earlier page".into());
    cursor.strip_prefix('r').and_then(|number| i64::from_str_radix(number, 36).ok()).map(RunId).ok_or_else(bad)
}

fn cursor(run: RunId) -> String {
    let (mut left, mut digits) = (run.0.unsigned_abs(), Vec::new());
    while left > 0 {
        digits.push(char::from_digit((left % 36) as u32, 36).unwrap_or('0'));
        left /= 36;
    }
    format!("r{}", digits.iter().rev().collect::<String>())
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

/// The view of a run, and the callback URLs of its waits by path.
async fn read(rooms: &Rooms, id: RunId, run: &str) -> Result<(RunView, impl Fn(&str) -> String + use<>), Error> {
    let none = || Error::NotFound { what: "run", name: run.to_string() };
    let mut opened = open(rooms, id).await?.ok_or_else(none)?;
    let omitted = opened.read_run(rooms).await?;
    let Opened { row, live, attempts, .. } = opened;
    let mut view = view(&row, &live, &by_path(&attempts), &omitted);
    if let Some(parent) = &row.parent {
        let row = rooms.cluster.store.run(parent.run).await?;
        view.parent = row.map(|row| ParentView { run: row.public, step: parent.path.clone() });
    }
    if !live.test {
        view.workflow_deleted_at = deleted_at(rooms, live.org, &live.compiled.row.workflow).await?;
    }
    view.warnings = warnings(rooms, &live).await?;
    rooms.access.name_key(live.org, &mut view.started_by.starter).await?;
    add_children(rooms, &live, &mut view.tasks).await?;
    if !live.run.status.is_terminal()
        && let Some(quarantine) = recovery::quarantined(&rooms.runner, id).await?
    {
        view.waiting_for.insert(
            0,
            WaitingFor {
                step: String::new(),
                what: Waiting::Quarantine,
                since: Some(quarantine.since),
                until: None,
                moved_on_by: "a person who releases or cancels the run",
                message: None,
            },
        );
    }
    let is_due = live.run.scheduled.is_some_and(|at| at <= rooms.cluster.clock.now());
    if live.run.status == RunStatus::Queued || live.run.status == RunStatus::Scheduled && is_due {
        let switches = rooms.access.switches(live.org, &live.compiled.row.workflow).await?;
        if switches.hold(live.group.as_deref()).is_some() {
            let resumed = "someone who resumes the workflow, which is paused";
            view.waiting_for.iter_mut().for_each(|waiting| waiting.moved_on_by = resumed);
        }
    }
    Ok((view, callbacks::urls(&rooms.runner.base_url, &live)))
}

/// Names the runs that steps have started, as long as those are kept.
async fn add_children(rooms: &Rooms, live: &Live, steps: &mut [StepView]) -> Result<(), Error> {
    let graph = &live.compiled.definition.graph;
    if !graph.steps.iter().any(|step| matches!(step.def.kind, Kind::Child { .. })) {
        return Ok(());
    }
    let mut children: HashMap<(String, u32), String> = HashMap::new();
    let mut before = None;
    while children.len() < MAX_CHILDREN {
        let filter =
            RunFilter { parent: Some(live.id), tests: live.test, before, ..RunFilter::all(live.org, MAX_PAGE) };
        let page = rooms.cluster.store.runs(filter).await?;
        before = page.last().map(|row| row.id);
        let full = page.len() == MAX_PAGE as usize;
        let named = page.into_iter().filter_map(|row| row.parent.map(|by| ((by.path, by.attempt), row.public)));
        children.extend(named);
        if !full {
            break;
        }
    }
    for step in steps {
        let of = |attempt: u32| children.get(&(step.path.clone(), attempt)).cloned();
        step.child_run = of(step.attempt);
        step.attempts.iter_mut().for_each(|attempt| attempt.child_run = of(attempt.attempt));
    }
    Ok(())
}

/// The warnings about the open requests of a run.
async fn warnings(rooms: &Rooms, live: &Live) -> Result<Vec<RunWarning>, Error> {
    let mut warnings = Vec::new();
    if live.run.status.is_terminal() {
        return Ok(warnings);
    }
    let graph = &live.compiled.definition.graph;
    let open = live.run.steps(graph).filter(|(_, state)| state.phase == Phase::Gate).take(MAX_WARNED);
    for (at, state) in open {
        let Some(ask) = live.run.ask(state) else { continue };
        let step = live.run.path(graph, at);
        let found = notify::unreached(&rooms.notifier, live.org, ask).await?;
        warnings.extend(found.into_iter().map(|message| RunWarning { step: step.clone(), message }));
    }
    Ok(warnings)
}

pub(in crate::commands) async fn load(rooms: &Rooms, id: RunId, run: &str) -> Result<Box<Live>, Error> {
    let none = || Error::NotFound { what: "run", name: run.to_string() };
    drive::load(&rooms.runner, id).await?.ok_or_else(none)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_leads_back_to_its_run() {
        for run in [1, 35, 36, 123_456_789_012_345, i64::MAX] {
            assert_eq!(cursor_run(&cursor(RunId(run))).unwrap(), RunId(run));
        }
        assert!(cursor_run("x").is_err());
        assert!(cursor_run("r!").is_err());
    }

    #[test]
    fn filters_are_split_and_checked() {
        let filters = RunFilters { status: Some("failed, ,timeout".into()), ..RunFilters::default() };
        let query = filters.query().unwrap();
        assert_eq!((query.status, query.limit), (vec!["failed".to_string(), "timeout".into()], DEFAULT_PAGE));
        let refused = |filters: RunFilters| match filters.query() {
            Err(Error::Input { path, .. }) => path,
            other => panic!("{other:?}"),
        };
        assert_eq!(refused(RunFilters { status: Some("done".into()), ..RunFilters::default() }), "status");
        assert_eq!(refused(RunFilters { label: Some("a=1,b".into()), ..RunFilters::default() }), "label");
        assert_eq!(refused(RunFilters { cursor: Some("7".into()), ..RunFilters::default() }), "cursor");
        assert_eq!(refused(RunFilters { limit: Some(1_001), ..RunFilters::default() }), "limit");
    }
}
