//! What the engine tells about runs. Times are RFC 3339.

use serde_json::Value;
use std::fmt;
use stepwell_engine::commands::{self, EventView, RunView, StepView};

/// The status of a run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum RunStatus {
    /// It waits for its turn.
    Queued,
    /// It runs.
    Running,
    /// It waits for people, a webhook or a time.
    Paused,
    /// It has ended as it should.
    Completed,
    /// It has ended with an error.
    Failed,
    /// It was cancelled.
    Cancelled,
    /// It took too long.
    Timeout,
}

impl RunStatus {
    const ALL: [(RunStatus, &str); 7] = [
        (RunStatus::Queued, "queued"),
        (RunStatus::Running, "running"),
        (RunStatus::Paused, "paused"),
        (RunStatus::Completed, "completed"),
        (RunStatus::Failed, "failed"),
        (RunStatus::Cancelled, "cancelled"),
        (RunStatus::Timeout, "timeout"),
    ];

    fn read(text: &str) -> RunStatus {
        let found = RunStatus::ALL.iter().find(|(_, name)| *name == text);
        found.map_or(RunStatus::Running, |(status, _)| *status)
    }

    /// Whether the run has ended. It can still be retried.
    pub fn is_ended(self) -> bool {
        !matches!(self, RunStatus::Queued | RunStatus::Running | RunStatus::Paused)
    }
}

impl fmt::Display for RunStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = RunStatus::ALL.iter().find(|(status, _)| status == self).map_or("", |(_, name)| name);
        f.pad(name)
    }
}

/// A run with its steps.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Run {
    /// `run_…`
    pub id: String,
    /// The name of its workflow.
    pub workflow: String,
    /// The version of the workflow that it runs.
    pub workflow_version: u32,
    /// Where it is.
    pub status: RunStatus,
    /// Who started it.
    pub created_by: String,
    /// When it was started.
    pub created_at: String,
    /// When it ended.
    pub finished_at: Option<String>,
    /// What it was started with.
    pub input: Value,
    /// Its result, once it has completed.
    pub output: Value,
    /// Why it failed: `{code, message, …}`.
    pub error: Option<Value>,
    /// Its steps, in the order of the definition.
    pub steps: Vec<Step>,
    /// Increases with every change of the run.
    pub version: i64,
}

/// A step of a run.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Step {
    /// Its name, or inside loops its path, such as `each[3].charge`.
    pub path: String,
    /// tool, http, approval, …
    pub kind: String,
    /// pending, running, waiting, success, failed, skipped, …
    pub status: String,
    /// The number of the attempt.
    pub attempt: u32,
    /// What it was called with.
    pub input: Option<Value>,
    /// What it returned.
    pub output: Option<Value>,
    /// Why it failed: `{code, message, …}`.
    pub error: Option<Value>,
}

/// An entry of a run's log.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Event {
    /// The version of the run that it belongs to.
    pub version: i64,
    /// When it happened.
    pub at: String,
    /// What happened: `{type, step, …}`.
    pub fact: Value,
}

/// A question that waits for a person.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Approval {
    /// The run.
    pub run: String,
    /// Path of the step.
    pub step: String,
    /// The name of the workflow.
    pub workflow: String,
    /// The question: message, form, approvers, and what follows.
    pub asks: Value,
    /// Digest of all that is shown. Give it with the answer, so that it counts only for what the person saw.
    pub digest: Option<String>,
    /// Who started the run.
    pub created_by: String,
}

impl From<RunView> for Run {
    fn from(view: RunView) -> Run {
        Run {
            id: view.id.to_string(),
            workflow: view.workflow,
            workflow_version: view.workflow_version,
            status: RunStatus::read(view.status),
            created_by: view.created_by,
            created_at: view.created_at.to_string(),
            finished_at: view.finished_at.map(|at| at.to_string()),
            input: view.input,
            output: view.output.unwrap_or_default(),
            error: view.error,
            steps: view.tasks.into_iter().map(Step::from).collect(),
            version: view.version,
        }
    }
}

impl From<StepView> for Step {
    fn from(view: StepView) -> Step {
        let StepView { path, kind, status, attempt, input, output, error, .. } = view;
        Step { path, kind: kind.to_string(), status: status.to_string(), attempt, input, output, error }
    }
}

impl From<EventView> for Event {
    fn from(view: EventView) -> Event {
        Event { version: view.version, at: view.at.to_string(), fact: view.fact }
    }
}

impl From<commands::Approval> for Approval {
    fn from(view: commands::Approval) -> Approval {
        let commands::Approval { run, step, workflow, asks, digest, created_by, .. } = view;
        Approval { run, step, workflow, asks, digest, created_by }
    }
}
