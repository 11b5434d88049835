//! The view of a run for users and programs.

use crate::access::Starter;
use crate::run::{Live, Room, status};
use crate::triggers::{SCHEDULE, WEBHOOK};
use serde::Serialize;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use stepwell_core::event::{Failure, FailureKind};
use stepwell_core::fact::Output;
use stepwell_core::run::{At, Phase, Row, StepState, Waiting, WaitingFor, error};
use stepwell_core::time::Time;
use stepwell_core::value::ValueId;
use stepwell_store::{DefinitionRow, LoadedRun, RunRow, StepRow};

/// The statuses of runs.
pub const STATUSES: [&str; 8] =
    ["scheduled", "queued", "running", "paused", "completed", "failed", "cancelled", "timeout"];
/// The status of an attempt that never reported.
const LOST: &str = "lost";

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RunView {
    pub id: Arc<str>,
    /// `wf_…`.
    pub workflow_id: String,
    pub workflow: String,
    pub workflow_version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow_deleted_at: Option<Time>,
    pub status: &'static str,
    pub created_by: String,
    pub created_at: Time,
    /// When it begins or began, if it was scheduled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduled_for: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
    /// When it times out, or would have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
    pub started_by: StartedBy,
    /// The user who retried it last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retried_by: Option<Arc<str>>,
    pub input: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Value>,
    /// Why it is not finished; empty if it is.
    pub waiting_for: Vec<WaitingFor>,
    /// Why its open requests may not reach anyone who can answer them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<RunWarning>,
    /// In the order of the definition.
    pub tasks: Vec<StepView>,
    /// Grows with each retry of the run.
    pub generation: u32,
    /// Number of its commits.
    pub version: i64,
    /// As `name=value`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub erased_at: Option<Time>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub test: bool,
    /// The step that started it, while its run is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentView>,
    /// The memory for its payloads.
    #[serde(skip)]
    pub(super) room: Room,
}

/// Who or what started a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct StartedBy {
    #[serde(flatten)]
    pub starter: Starter,
    pub how: How,
    /// The schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    Request,
    Schedule,
    Webhook,
    /// A step of another run.
    Run,
    /// A test run.
    Test,
}

/// A problem that does not stop the run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RunWarning {
    /// The path of the step.
    pub step: String,
    pub message: String,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ParentView {
    pub run: String,
    pub step: String,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct StepView {
    pub path: String,
    /// The `ctx` variable of its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variable: Option<Arc<str>>,
    pub kind: &'static str,
    pub status: &'static str,
    pub attempt: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_code: Option<u16>,
    /// Whether the output was truncated because of its size.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Value>,
    /// Headers of the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers: Option<Value>,
    /// The URL that ends its wait; only for callers who may deliver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub callback_url: Option<String>,
    /// The run that its last attempt started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub child_run: Option<String>,
    /// Who approved the call that a policy held, each as `{by, comment, data}`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<Value>,
    /// What an approver changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed: Option<ChangedCall>,
    /// Its log lines, each as `{level, text}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<Value>,
    /// Its input, output, log and other payloads are not here, because the view of the run would be too large.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub omitted: bool,
    /// Oldest first; only if there were several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<AttemptView>,
}

/// A held call that an approver changed.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ChangedCall {
    pub by: Arc<str>,
    /// The input that the definition gave it.
    pub from: Value,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct AttemptView {
    pub attempt: u32,
    pub status: String,
    /// Why it did not succeed: `lost`, `timeout`, `refused`, or `failed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    pub started_at: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_code: Option<u16>,
    /// Headers of the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers: Option<Value>,
    /// The run that it started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub child_run: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<Value>,
}

/// The attempts of each step.
pub type Attempts<'a> = HashMap<&'a str, Vec<&'a StepRow>>;

pub fn by_path(attempts: &[StepRow]) -> Attempts<'_> {
    let mut by_path = Attempts::new();
    for attempt in attempts {
        by_path.entry(&attempt.path).or_default().push(attempt);
    }
    by_path
}

/// The view of a step whose payloads are in memory.
pub fn step_view(live: &Live, path: String, at: At, attempts: &Attempts<'_>) -> Option<StepView> {
    let rows = attempts.get(path.as_str()).map(Vec::as_slice).unwrap_or_default();
    let graph = &live.compiled.definition.graph;
    let (def, state) = (&graph.step(at.step).def, live.run.step(graph, at)?);
    Some(StepView { variable: def.output_variable.clone(), ..step(live, path, def.kind.name(), state, rows) })
}

/// The payloads that the view of a step shows.
pub fn payloads_of(state: &StepState, rows: &[&StepRow]) -> Vec<ValueId> {
    let of = |output: Output| [Some(output.body), output.headers, output.log];
    let mut ids = vec![state.input, state.more.as_ref().and_then(|more| more.ask)];
    ids.extend(state.output.into_iter().flat_map(of));
    ids.extend(state.more.iter().flat_map(|more| &more.approvals).map(|(_, id)| Some(*id)));
    if rows.len() > 1 {
        for row in rows {
            let output = serde_json::from_str::<Row>(&row.state).ok().and_then(|state| state.output);
            ids.push(row.output);
            ids.extend(output.into_iter().flat_map(of).skip(1));
        }
    }
    ids.into_iter().flatten().collect()
}

/// The view of a run. Steps whose payloads were left out are in `omitted`.
pub fn view(row: &RunRow, live: &Live, attempts: &Attempts<'_>, omitted: &HashSet<String>) -> RunView {
    let (run, graph) = (&live.run, &live.compiled.definition.graph);
    let value = |id: Option<ValueId>| id.and_then(|id| run.values.get(id)).cloned();
    let tasks = run.steps(graph).filter_map(|(at, _)| {
        let step = step_view(live, run.path(graph, at), at, attempts)?;
        Some(StepView { omitted: omitted.contains(&step.path), ..step })
    });
    RunView {
        id: run.id.clone(),
        workflow_id: live.compiled.row.workflow.clone(),
        workflow: live.compiled.row.name.clone(),
        workflow_version: live.compiled.row.version,
        workflow_deleted_at: None,
        status: status(run),
        created_by: row.by.clone(),
        created_at: row.created,
        scheduled_for: run.scheduled,
        started_at: row.started,
        finished_at: row.finished,
        expires_at: run.expires,
        started_by: started_by(row, live),
        retried_by: run.retried_by.clone(),
        input: value(run.input).unwrap_or_default(),
        output: value(run.output),
        error: run.failure.as_ref().map(error),
        waiting_for: if run.status.is_terminal() { Vec::new() } else { run.waiting_for(graph) },
        warnings: Vec::new(),
        tasks: tasks.collect(),
        generation: run.generation,
        version: live.version.0,
        labels: row.labels.clone(),
        erased_at: row.erased,
        test: row.test,
        parent: None,
        room: live.room.clone(),
    }
}

/// All that the run itself says about its start.
fn started_by(row: &RunRow, live: &Live) -> StartedBy {
    let headers = live.run.headers.and_then(|id| live.run.values.get(id));
    let header = |name: &str| headers.and_then(|headers| headers.get(name)?.as_str());
    let schedule = header(SCHEDULE).map(str::to_string);
    let started = from_row(row);
    let how = match started.how {
        How::Request if schedule.is_some() => How::Schedule,
        How::Request if header(WEBHOOK).is_some() => How::Webhook,
        how => how,
    };
    StartedBy { how, schedule, starter: starter(live) }
}

/// Who asked for a run. Its key has no name yet.
pub fn starter(live: &Live) -> Starter {
    Starter::of(&live.run.by, &live.acts_as, live.run.client.as_deref())
}

/// What the row says about the start of its run: not whether a schedule or a webhook made the request.
fn from_row(row: &RunRow) -> StartedBy {
    let how = match () {
        () if row.parent.is_some() => How::Run,
        () if row.test => How::Test,
        () => How::Request,
    };
    StartedBy { starter: Starter::of(&row.by, &row.acts_as, None), how, schedule: None }
}

/// The view of a run whose state or definition cannot be read.
pub fn unread(stored: &LoadedRun, definition: Option<DefinitionRow>, why: &str) -> RunView {
    let row = &stored.row;
    let known = definition.map(|row| (row.workflow, row.name, row.version));
    let (workflow_id, workflow, workflow_version) = known.unwrap_or_default();
    let ended = row.finished.is_some();
    let waits = WaitingFor {
        step: String::new(),
        what: Waiting::Unreadable,
        since: None,
        until: None,
        moved_on_by: "a person who cancels the run, or an operator who repairs the database",
        message: Some(why.into()),
    };
    RunView {
        id: row.public.as_str().into(),
        workflow_id,
        workflow,
        workflow_version,
        workflow_deleted_at: None,
        status: STATUSES.into_iter().find(|status| *status == row.status).unwrap_or_default(),
        created_by: row.by.clone(),
        created_at: row.created,
        scheduled_for: None,
        started_at: row.started,
        finished_at: row.finished,
        expires_at: None,
        started_by: from_row(row),
        retried_by: None,
        input: Value::Null,
        output: None,
        error: ended.then(|| error(&Failure::new("unreadable", why))),
        waiting_for: if ended { Vec::new() } else { vec![waits] },
        warnings: Vec::new(),
        tasks: Vec::new(),
        generation: 0,
        version: stored.version.0,
        labels: row.labels.clone(),
        erased_at: row.erased,
        test: row.test,
        parent: None,
        room: Room::default(),
    }
}

fn step(live: &Live, path: String, kind: &'static str, state: &StepState, rows: &[&StepRow]) -> StepView {
    let value = |id: ValueId| live.run.values.get(id).cloned();
    let begun = rows.iter().rev().find(|row| row.attempt == state.attempt);
    let started = begun.map(|row| row.since);
    let finished = state.status().and(begun).and_then(|row| row.ended);
    let newest = begun.map(|row| row.since);
    let attempts = rows.iter().map(|row| AttemptView { ..attempt(live, row, is_lost(row, state, newest)) });
    let attempts = if rows.len() > 1 { attempts.collect() } else { Vec::new() };
    let said = state.more.iter().flat_map(|more| &more.approvals).filter_map(|(_, id)| value(*id));
    StepView {
        path,
        variable: None,
        kind,
        status: state.phase.name(),
        attempt: state.attempt,
        status_code: state.output.and_then(|output| output.status_code),
        truncated: state.output.is_some_and(|output| output.truncated),
        started_at: started,
        finished_at: finished,
        duration_ms: started.zip(finished).map(|(start, end)| end.0 - start.0),
        input: state.input.and_then(value),
        // A failed step that only wrote a log has no output.
        output: state
            .output
            .and_then(|output| value(output.body))
            .filter(|body| state.failure().is_none() || !body.is_null()),
        error: state.failure().map(error),
        headers: state.output.and_then(|output| value(output.headers?)).filter(Value::is_object),
        callback_url: None,
        child_run: None,
        approvals: said.collect(),
        changed: state.more.as_ref().and_then(|more| {
            let (by, first) = more.changed.as_ref()?;
            Some(ChangedCall { by: by.clone(), from: value(*first).unwrap_or_default() })
        }),
        log: state.output.and_then(|output| value(output.log?)),
        omitted: false,
        attempts,
    }
}

/// An attempt that never reported, although the step has gone on: its process died or lost its lease. No row says so,
/// because the process that would write it is gone.
fn is_lost(row: &StepRow, state: &StepState, newest: Option<Time>) -> bool {
    let running = row.ended.is_none() && row.status == Phase::Running.name();
    running && (state.status().is_some() || newest != Some(row.since) || row.attempt != state.attempt)
}

fn attempt(live: &Live, row: &StepRow, lost: bool) -> AttemptView {
    let value = |id: ValueId| live.run.values.get(id).cloned();
    let state = serde_json::from_str::<Row>(&row.state).ok();
    let output = state.as_ref().and_then(|state| state.output);
    let failure = state.and_then(|state| state.failure);
    AttemptView {
        attempt: row.attempt,
        status: if lost { LOST.into() } else { row.status.clone() },
        reason: reason(failure.as_ref(), lost),
        started_at: row.since,
        finished_at: row.ended,
        duration_ms: row.ended.map(|end| end.0 - row.since.0),
        status_code: output.and_then(|output| output.status_code),
        headers: output.and_then(|output| value(output.headers?)).filter(Value::is_object),
        child_run: None,
        output: row.output.and_then(value),
        error: failure.as_ref().map(error),
        log: output.and_then(|output| value(output.log?)),
    }
}

/// Why an attempt did not succeed.
fn reason(failure: Option<&Failure>, lost: bool) -> Option<&'static str> {
    match failure {
        _ if lost => Some(LOST),
        Some(failure) if failure.kind == FailureKind::Timeout => Some("timeout"),
        Some(failure) if failure.is_refusal() => Some("refused"),
        Some(_) => Some("failed"),
        None => None,
    }
}
