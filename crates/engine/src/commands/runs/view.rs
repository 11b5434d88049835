//! The view of a run for users and programs.

use crate::run::{Live, status};
use serde::Serialize;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use stepwell_core::event::Failure;
use stepwell_core::run::{Phase, Row, StepState, Waiting, WaitingFor, error};
use stepwell_core::time::Time;
use stepwell_core::value::ValueId;
use stepwell_store::{DefinitionRow, LoadedRun, RunRow, StepRow};

/// The statuses of runs.
pub const STATUSES: [&str; 7] = ["queued", "running", "paused", "completed", "failed", "cancelled", "timeout"];
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
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
    /// Its log lines, each as `{level, text}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<Value>,
    /// Oldest first; only if there were several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<AttemptView>,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct AttemptView {
    pub attempt: u32,
    pub status: String,
    pub started_at: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<Value>,
}

pub fn view(row: &RunRow, live: &Live, attempts: &[StepRow]) -> RunView {
    let (run, graph) = (&live.run, &live.compiled.definition.graph);
    let value = |id: Option<ValueId>| id.and_then(|id| run.values.get(id)).cloned();
    let mut by_path: HashMap<&str, Vec<&StepRow>> = HashMap::new();
    for attempt in attempts {
        by_path.entry(&attempt.path).or_default().push(attempt);
    }
    let tasks = run.steps(graph).map(|(at, state)| {
        let path = run.path(graph, at);
        let rows = by_path.get(path.as_str()).map(Vec::as_slice).unwrap_or_default();
        step(live, path, graph.step(at.step).def.kind.name(), state, rows)
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
        started_at: row.started,
        finished_at: row.finished,
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
    }
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
        started_at: row.started,
        finished_at: row.finished,
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
    }
}

fn step(live: &Live, path: String, kind: &'static str, state: &StepState, rows: &[&StepRow]) -> StepView {
    let value = |id: ValueId| live.run.values.get(id).cloned();
    let begun = rows.iter().rev().find(|row| row.attempt == state.attempt);
    let started = begun.map(|row| row.since);
    let finished = state.status().and(begun).and_then(|row| row.ended);
    let newest = begun.map(|row| row.since);
    let attempts = rows.iter().map(|row| AttemptView {
        status: if is_lost(row, state, newest) { LOST.into() } else { row.status.clone() },
        ..attempt(live, row)
    });
    let attempts = if rows.len() > 1 { attempts.collect() } else { Vec::new() };
    StepView {
        path,
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
        log: state.output.and_then(|output| value(output.log?)),
        attempts,
    }
}

/// An attempt that never reported, although the step has gone on: its process died or lost its lease. No row says so,
/// because the process that would write it is gone.
fn is_lost(row: &StepRow, state: &StepState, newest: Option<Time>) -> bool {
    let running = row.ended.is_none() && row.status == Phase::Running.name();
    running && (state.status().is_some() || newest != Some(row.since) || row.attempt != state.attempt)
}

fn attempt(live: &Live, row: &StepRow) -> AttemptView {
    let state = serde_json::from_str::<Row>(&row.state).ok();
    let log = state.as_ref().and_then(|state| state.output?.log);
    let failure = state.and_then(|state| state.failure);
    AttemptView {
        attempt: row.attempt,
        status: row.status.clone(),
        started_at: row.since,
        finished_at: row.ended,
        output: row.output.and_then(|output| live.run.values.get(output)).cloned(),
        error: failure.as_ref().map(error),
        log: log.and_then(|log| live.run.values.get(log)).cloned(),
    }
}
