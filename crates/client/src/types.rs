//! What the API returns, as far as programs need it. Servers may add fields, and every field has a default, so that a client
//! also understands a server that is a little older or newer. Times are RFC 3339.

use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;

/// One page of a list.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[non_exhaustive]
pub struct Page<T> {
    /// The entries.
    pub data: Vec<T>,
    /// The `cursor` of the next page; the last page has none.
    #[serde(default)]
    pub next: Option<String>,
}

/// The status of a run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum RunStatus {
    /// It begins at a later time.
    Scheduled,
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
    /// One that this version does not know.
    #[default]
    #[serde(other)]
    Unknown,
}

impl RunStatus {
    /// Whether the run has ended. It can still be retried.
    pub fn is_ended(self) -> bool {
        matches!(self, RunStatus::Completed | RunStatus::Failed | RunStatus::Cancelled | RunStatus::Timeout)
    }

    /// As the API writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            RunStatus::Scheduled => "scheduled",
            RunStatus::Queued => "queued",
            RunStatus::Running => "running",
            RunStatus::Paused => "paused",
            RunStatus::Completed => "completed",
            RunStatus::Failed => "failed",
            RunStatus::Cancelled => "cancelled",
            RunStatus::Timeout => "timeout",
            RunStatus::Unknown => "unknown",
        }
    }
}

impl fmt::Display for RunStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Declares a type that the API returns: every field has a default.
macro_rules! returned {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, PartialEq, Debug, Default, Deserialize)]
            #[serde(default)]
            #[non_exhaustive]
            pub struct $name {
                $($(#[$field_doc])* pub $field: $type,)*
            }
        )*
    };
}

returned! {
    /// A run in full.
    Run {
        /// `run_…`
        id: String,
        /// `wf_…`
        workflow_id: String,
        /// The name of its workflow.
        workflow: String,
        /// The version of the workflow that it runs.
        workflow_version: u32,
        /// Where it is.
        status: RunStatus,
        /// Who started it.
        created_by: String,
        /// When it was started.
        created_at: String,
        /// When its first step began.
        started_at: Option<String>,
        /// When it ended.
        finished_at: Option<String>,
        /// What it was started with.
        input: Value,
        /// Its result, once it has completed.
        output: Value,
        /// Why it failed.
        error: Option<RunError>,
        /// What it waits for; empty once it has ended.
        waiting_for: Vec<Waiting>,
        /// Its steps by name; steps inside loops by path, such as `each[3].charge`.
        tasks: BTreeMap<String, Step>,
        /// Labels of the run and of its workflow.
        labels: BTreeMap<String, String>,
        /// Increases with each retry of the run.
        generation: u32,
        /// Increases with every change of the run.
        version: i64,
    }

    /// A run as lists show it.
    RunSummary {
        /// `run_…`
        id: String,
        /// The name of its workflow.
        workflow: String,
        /// `wf_…`
        workflow_id: String,
        /// The version of the workflow that it runs.
        workflow_version: u32,
        /// Where it is.
        status: RunStatus,
        /// Who started it.
        created_by: String,
        /// When it was started.
        created_at: String,
        /// When its first step began.
        started_at: Option<String>,
        /// When it ended.
        finished_at: Option<String>,
        /// Labels of the run and of its workflow.
        labels: BTreeMap<String, String>,
        /// Whether a step of another run started it.
        child: bool,
    }

    /// A run that was just started, or found under its idempotency key.
    Started {
        /// `run_…`
        run_id: String,
        /// `wf_…`
        workflow_id: String,
        /// The name of its workflow.
        workflow: String,
        /// The version of the workflow that it runs.
        workflow_version: u32,
        /// Where it is.
        status: RunStatus,
        /// When it began; nothing while it is queued.
        started_at: Option<String>,
    }

    /// A step of a run.
    Step {
        /// `step_…`
        id: String,
        /// http, tool, javascript, query, approval, …
        kind: String,
        /// pending, running, waiting, success, failed, skipped, …
        status: String,
        /// The HTTP status of the answer.
        status_code: Option<u16>,
        /// The number of the attempt.
        attempt: u32,
        /// How long it took.
        duration_ms: Option<i64>,
        /// When it began.
        started_at: Option<String>,
        /// When it ended.
        finished_at: Option<String>,
        /// What it was called with.
        input: Value,
        /// What it returned.
        output: Value,
        /// Why it failed.
        error: Option<RunError>,
        /// All attempts, oldest first, if there were several.
        attempts: Vec<Attempt>,
    }

    /// One attempt of a step.
    Attempt {
        /// Its number.
        attempt: u32,
        /// How it went.
        status: String,
        /// When it began.
        started_at: String,
        /// When it ended.
        finished_at: Option<String>,
        /// What it returned.
        output: Value,
        /// Why it failed.
        error: Option<RunError>,
    }

    /// Why a run or a step failed.
    RunError {
        /// For programs.
        code: String,
        /// For people.
        message: String,
    }

    /// What an unfinished run waits for.
    Waiting {
        /// Path of the step; empty for the run itself.
        step: String,
        /// Since when.
        since: Option<String>,
        /// When it continues by itself.
        until: Option<String>,
        /// Who or what can make it continue.
        moved_on_by: String,
    }

    /// A workflow. Lists leave out its definition.
    Workflow {
        /// `wf_…`
        id: String,
        /// Its name.
        name: String,
        /// Its newest version.
        version: u32,
        /// What it is for.
        description: Option<String>,
        /// Whether new runs can start.
        enabled: bool,
        /// Its labels.
        labels: BTreeMap<String, String>,
        /// The definition as its author wrote it.
        source: String,
        /// The parsed definition.
        definition: Value,
        /// URLs that start it, for callers who may change it.
        webhooks: Vec<String>,
    }

    /// A gate that waits for people.
    Approval {
        /// `step_…`
        id: String,
        /// The run.
        run_id: String,
        /// Path of the step.
        step: String,
        /// The name of the workflow.
        workflow: String,
        /// The question: message, form, approvers, and what follows.
        asks: Value,
        /// Digest of all that is shown; give it with the answer, so that it counts only for what you saw.
        digest: Option<String>,
        /// Since when it waits.
        since: String,
        /// When it is decided without an answer.
        until: Option<String>,
        /// approval, or verdict on a call that may have happened.
        kind: String,
        /// Whether you may answer it.
        mine: bool,
    }

    /// A schedule and its next ticks.
    Schedule {
        /// Its id.
        id: String,
        /// The workflow that it starts.
        workflow: String,
        /// Nothing for a single start.
        cron: Option<String>,
        /// The time zone of the cron expression.
        timezone: Option<String>,
        /// The next ticks, at most ten.
        next: Vec<String>,
        /// The last tick.
        last: Option<String>,
        /// The run that it started.
        last_run_id: Option<String>,
        /// Why it started none.
        last_error: Option<String>,
    }

    /// A secret without its value.
    Secret {
        /// Its id.
        id: String,
        /// Its name in templates: `{{secrets.NAME}}`.
        name: String,
        /// The hosts that it may be sent to; any host if there are none.
        hosts: Vec<String>,
        /// How many values it has had.
        version: u32,
        /// Whether it is masked in what services return.
        masked: bool,
    }

    /// An entry of a run's log. The last event of a stream has the type `end` and a status.
    Event {
        /// The run.
        run_id: String,
        /// The version of the run that it belongs to.
        version: i64,
        /// When it happened; nothing for `end`.
        at: Option<String>,
        /// created, started, finished, skipped, ended, …, end
        #[serde(rename = "type")]
        kind: String,
        /// Path of the step.
        step: Option<String>,
        /// The status that the run has ended with, in `end`.
        status: Option<String>,
        /// Its other fields.
        #[serde(flatten)]
        fields: Map<String, Value>,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_other_versions_are_understood() {
        let run: Run = serde_json::from_str(r#"{"id": "run_1", "status": "hibernating", "colour": "red"}"#).unwrap();
        assert_eq!((run.id.as_str(), run.status, run.status.is_ended()), ("run_1", RunStatus::Unknown, false));
        let run: Run = serde_json::from_str(r#"{"status": "timeout", "output": null}"#).unwrap();
        assert!(run.status.is_ended() && run.output.is_null());
    }
}
