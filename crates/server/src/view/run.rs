//! Runs, their steps and their log.

use super::{Instant, Page};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use stepwell_engine::commands::{self as engine, Approval, BulkOutcome, EventView, Started};
use stepwell_store::StoredLog;
use utoipa::{IntoParams, ToSchema};

/// A run in full.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Run {
    pub id: String,
    pub workflow_id: String,
    pub workflow: String,
    pub workflow_version: u32,
    /// queued, running, paused, completed, failed, cancelled or timeout.
    pub status: String,
    pub created_by: String,
    pub created_at: Instant,
    #[serde(default)]
    pub started_at: Option<Instant>,
    #[serde(default)]
    pub finished_at: Option<Instant>,
    #[schema(value_type = serde_json::Value)]
    pub input: Value,
    #[serde(default)]
    #[schema(value_type = serde_json::Value)]
    pub output: Option<Value>,
    #[serde(default)]
    pub error: Option<ErrorView>,
    /// What an unfinished run waits for; empty if it has finished.
    pub waiting_for: Vec<Waiting>,
    /// Why its open approvals may not reach anyone who can answer them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub warnings: Vec<Warning>,
    /// By name; steps inside loops by path, such as `each[3].charge`.
    #[schema(value_type = BTreeMap<String, Step>)]
    pub tasks: Steps,
    pub labels: BTreeMap<String, String>,
    /// Increases with each retry of the run.
    pub generation: u32,
    /// Increases with every change of the run.
    pub version: i64,
    #[serde(default)]
    pub test: bool,
    /// When its payloads were erased on request.
    #[serde(default)]
    pub erased_at: Option<Instant>,
    /// The step of another run that started it, as long as that run exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = ParentStep, required = false)]
    pub parent: Option<ParentStep>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ParentStep {
    pub run_id: String,
    pub step: String,
}

/// Steps in the order of the definition.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Steps(pub Vec<(String, Step)>);

impl Serialize for Steps {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(path, step)| (path, step)))
    }
}

impl<'de> Deserialize<'de> for Steps {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Steps, D::Error> {
        let map: Map<String, Value> = Map::deserialize(deserializer)?;
        let steps = map.into_iter().map(|(path, step)| Ok((path, serde_json::from_value(step)?)));
        steps.collect::<Result<_, serde_json::Error>>().map(Steps).map_err(serde::de::Error::custom)
    }
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Step {
    /// For `POST /api/v1/steps/{id}/ready`.
    pub id: String,
    pub kind: String,
    pub status: String,
    #[serde(default)]
    pub status_code: Option<u16>,
    /// The output was longer than 256 KB and is stored truncated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_truncated: bool,
    #[serde(default)]
    pub duration_ms: Option<i64>,
    pub attempt: u32,
    #[serde(default)]
    pub started_at: Option<Instant>,
    #[serde(default)]
    pub finished_at: Option<Instant>,
    #[serde(default)]
    #[schema(value_type = serde_json::Value)]
    pub input: Option<Value>,
    #[serde(default)]
    #[schema(value_type = serde_json::Value)]
    pub output: Option<Value>,
    #[serde(default)]
    pub error: Option<ErrorView>,
    /// The lines that the step's code wrote with `console`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<LogLine>,
    /// All attempts, oldest first; only if there were several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Attempt>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Attempt {
    pub attempt: u32,
    pub status: String,
    pub started_at: Instant,
    #[serde(default)]
    pub finished_at: Option<Instant>,
    #[serde(default)]
    #[schema(value_type = serde_json::Value)]
    pub output: Option<Value>,
    #[serde(default)]
    pub error: Option<ErrorView>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<LogLine>,
}

/// A line written by code.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct LogLine {
    /// debug, info, warn or error.
    pub level: String,
    pub text: String,
}

#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ErrorView {
    pub code: String,
    pub message: String,
    #[serde(flatten)]
    #[schema(ignore)]
    pub more: Map<String, Value>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Waiting {
    /// Path of the step; empty for the run itself.
    pub step: String,
    /// queue, executor, retry, sleep, webhook, approval, verdict, child or turn (the next transition of the run).
    #[serde(rename = "for")]
    pub what: String,
    #[serde(default)]
    pub since: Option<Instant>,
    /// When it continues by itself.
    #[serde(default)]
    pub until: Option<Instant>,
    /// Who or what can make it continue.
    pub moved_on_by: String,
}

/// A problem that does not stop the run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Warning {
    /// Path of the step.
    pub step: String,
    pub message: String,
}

/// The id of a step, made from its run and its path.
pub fn step_id(run: &str, path: &str) -> String {
    use base64::Engine;
    let path = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(path);
    format!("step_{}_{path}", run.trim_start_matches("run_"))
}

/// The run and the path of a step id.
pub fn step_named(id: &str) -> Option<(String, String)> {
    use base64::Engine;
    let (run, path) = id.strip_prefix("step_")?.split_once('_')?;
    let path = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(path).ok()?;
    Some((format!("run_{run}"), String::from_utf8(path).ok()?))
}

fn error(error: Value) -> ErrorView {
    serde_json::from_value(error).unwrap_or_default()
}

fn log(lines: Option<Value>) -> Vec<LogLine> {
    lines.and_then(|lines| serde_json::from_value(lines).ok()).unwrap_or_default()
}

/// `name=value` as an object.
pub fn labels(labels: &[String]) -> BTreeMap<String, String> {
    let split = |label: &String| label.split_once('=').map(|(name, value)| (name.to_string(), value.to_string()));
    labels.iter().filter_map(split).collect()
}

impl From<engine::RunView> for Run {
    fn from(view: engine::RunView) -> Run {
        let id = view.id.to_string();
        let step = |step: engine::StepView| {
            let attempt = |attempt: engine::AttemptView| Attempt {
                attempt: attempt.attempt,
                status: attempt.status,
                started_at: attempt.started_at.into(),
                finished_at: attempt.finished_at.map(Instant),
                output: attempt.output,
                error: attempt.error.map(error),
                log: log(attempt.log),
            };
            let is = Step {
                id: step_id(&id, &step.path),
                kind: step.kind.into(),
                status: step.status.into(),
                status_code: step.status_code,
                is_truncated: step.truncated,
                duration_ms: step.duration_ms,
                attempt: step.attempt,
                started_at: step.started_at.map(Instant),
                finished_at: step.finished_at.map(Instant),
                input: step.input,
                output: step.output,
                error: step.error.map(error),
                log: log(step.log),
                attempts: step.attempts.into_iter().map(attempt).collect(),
            };
            (step.path, is)
        };
        let warned = |warning: engine::RunWarning| Warning { step: warning.step, message: warning.message };
        let waiting = view.waiting_for.into_iter().map(|wait| Waiting {
            step: wait.step,
            what: serde_json::to_value(wait.what)
                .ok()
                .and_then(|what| Some(what.as_str()?.to_string()))
                .unwrap_or_default(),
            since: wait.since.map(Instant),
            until: wait.until.map(Instant),
            moved_on_by: wait.moved_on_by.into(),
        });
        Run {
            workflow_id: view.workflow_id,
            workflow: view.workflow,
            workflow_version: view.workflow_version,
            status: view.status.into(),
            created_by: view.created_by,
            created_at: view.created_at.into(),
            started_at: view.started_at.map(Instant),
            finished_at: view.finished_at.map(Instant),
            input: view.input,
            output: view.output,
            error: view.error.map(error),
            waiting_for: waiting.collect(),
            warnings: view.warnings.into_iter().map(warned).collect(),
            labels: labels(&view.labels),
            generation: view.generation,
            version: view.version,
            test: view.test,
            erased_at: view.erased_at.map(Instant),
            parent: view.parent.map(|parent| ParentStep { run_id: parent.run, step: parent.step }),
            tasks: Steps(view.tasks.into_iter().map(step).collect()),
            id,
        }
    }
}

/// A run as lists show it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct RunSummary {
    pub id: String,
    pub workflow: String,
    pub workflow_id: String,
    pub workflow_version: u32,
    pub status: String,
    pub created_by: String,
    pub created_at: Instant,
    #[serde(default)]
    pub started_at: Option<Instant>,
    #[serde(default)]
    pub finished_at: Option<Instant>,
    pub labels: BTreeMap<String, String>,
    /// Started by a step of another run.
    pub child: bool,
}

impl From<engine::RunSummary> for RunSummary {
    fn from(summary: engine::RunSummary) -> RunSummary {
        let engine::RunSummary { row, workflow_id, workflow, workflow_version } = summary;
        RunSummary {
            id: row.public,
            workflow,
            workflow_id,
            workflow_version,
            status: row.status,
            created_by: row.by,
            created_at: row.created.into(),
            started_at: row.started.map(Instant),
            finished_at: row.finished.map(Instant),
            labels: labels(&row.labels),
            child: row.parent.is_some(),
        }
    }
}

impl From<engine::RunPage> for Page<RunSummary> {
    fn from(page: engine::RunPage) -> Page<RunSummary> {
        Page { data: page.runs.into_iter().map(RunSummary::from).collect(), next: page.next }
    }
}

/// Filters for runs, newest first.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize, IntoParams, ToSchema)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub struct RunFilters {
    /// One status, or several separated by commas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// By name or id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// Created at or after this instant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Instant>,
    /// Created before this instant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Instant>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    /// `name=value`; a run must have all of several separated by commas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Part of the id, of the creator's name or of a label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub q: Option<String>,
    /// Test runs in place of real ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tests: Option<bool>,
    /// Started by steps of this run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Maximum number of entries; 50 by default.
    #[param(minimum = 1, maximum = 1000)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// `next` of the previous page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

impl From<RunFilters> for engine::RunFilters {
    fn from(filters: RunFilters) -> engine::RunFilters {
        engine::RunFilters {
            status: filters.status,
            workflow: filters.workflow,
            since: filters.since.map(|since| since.0),
            until: filters.until.map(|until| until.0),
            created_by: filters.created_by,
            label: filters.label,
            text: filters.q,
            tests: filters.tests.unwrap_or(false),
            parent: filters.parent,
            limit: filters.limit,
            cursor: filters.cursor,
        }
    }
}

/// A run that was just started.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Triggered {
    pub run_id: String,
    pub workflow_id: String,
    pub workflow: String,
    pub workflow_version: u32,
    pub status: String,
    pub started_at: Instant,
}

impl Triggered {
    pub fn new(started: &Started, at: Instant) -> Triggered {
        Triggered {
            run_id: started.run.clone(),
            workflow_id: started.workflow_id.clone(),
            workflow: started.workflow.clone(),
            workflow_version: started.version,
            status: started.status.clone(),
            started_at: at,
        }
    }
}

/// One fact of a run's log.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Event {
    pub run_id: String,
    /// The commit that contains it.
    pub version: i64,
    pub at: Instant,
    /// created, started, entered, retrying, again, finished, skipped, ended, …
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The other fields of the fact; payloads are referenced by number.
    #[serde(flatten)]
    #[schema(ignore)]
    pub fact: Map<String, Value>,
}

impl Event {
    pub fn new(run: &str, event: EventView) -> Event {
        Event::of(run, event.version, event.at.into(), event.fact)
    }

    fn of(run: &str, version: i64, at: Instant, fact: Value) -> Event {
        let Value::Object(mut fact) = fact else { return Event::of(run, version, at, Value::Object(Map::new())) };
        let mut text = |name: &str| fact.shift_remove(name).and_then(|value| Some(value.as_str()?.to_string()));
        let (kind, step) = (text("type").unwrap_or_default(), text("step"));
        // Here, `version` is the version of the run.
        if let Some(version) = fact.shift_remove("version") {
            fact.insert("workflow_version".into(), version);
        }
        Event { run_id: run.to_string(), version, at, kind, step, fact }
    }

    /// All facts of a log row.
    pub fn of_row(run: &str, log: &StoredLog) -> Vec<Event> {
        let facts: Vec<Value> = serde_json::from_str(&log.row.facts).unwrap_or_default();
        facts.into_iter().map(|fact| Event::of(run, log.version.0, log.row.at.into(), fact)).collect()
    }
}

/// A gate that waits for a person.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ApprovalView {
    /// For `POST /api/v1/steps/{id}/ready`.
    pub id: String,
    pub run_id: String,
    pub step: String,
    pub workflow: String,
    #[serde(default)]
    pub version: u32,
    pub attempt: u32,
    /// The resolved question: message, approvers, form, the `calls` that wait for an approval, and those that follow a
    /// denial (`on_denial`).
    #[schema(value_type = serde_json::Value)]
    pub asks: Value,
    /// Digest of everything shown. An answer refers to it.
    #[serde(default)]
    pub digest: Option<String>,
    /// Number of approvals required.
    #[serde(default)]
    pub approvals: u32,
    /// Who has approved so far, if several approvals are required.
    #[serde(default)]
    pub approved_by: Vec<String>,
    pub since: Instant,
    /// When it is decided without an answer.
    #[serde(default)]
    pub until: Option<Instant>,
    /// What happens then: approve or deny. Null if it waits as long as the run lasts.
    #[serde(default)]
    pub on_timeout: Option<String>,
    /// Why it may not reach anyone who can answer it.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// When `escalate_to` are asked as well, unless it is answered before.
    #[serde(default)]
    pub escalates_at: Option<Instant>,
    /// Whether it has been escalated.
    #[serde(default)]
    pub escalated: bool,
    pub created_by: String,
    /// approval, or verdict on a call that may have happened.
    pub kind: String,
    /// Whether you may answer it.
    pub mine: bool,
}

impl From<Approval> for ApprovalView {
    fn from(approval: Approval) -> ApprovalView {
        ApprovalView {
            id: step_id(&approval.run, &approval.step),
            run_id: approval.run,
            step: approval.step,
            workflow: approval.workflow,
            version: approval.version,
            attempt: approval.attempt,
            asks: approval.asks,
            digest: approval.digest,
            approvals: approval.approvals,
            approved_by: approval.approved_by,
            since: approval.since.into(),
            until: approval.until.map(Instant),
            on_timeout: approval.on_timeout.map(str::to_string),
            warnings: approval.warnings,
            escalates_at: approval.escalates.map(Instant),
            escalated: approval.escalated,
            created_by: approval.created_by,
            kind: if approval.verdict { "verdict" } else { "approval" }.into(),
            mine: approval.mine,
        }
    }
}

/// The result of a bulk operation.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct BulkResult {
    /// Runs that were changed.
    pub done: Vec<String>,
    pub refused: Vec<BulkRefusal>,
    /// More runs match than one request may change: repeat the request.
    pub more: bool,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct BulkRefusal {
    pub run_id: String,
    pub reason: String,
}

impl From<BulkOutcome> for BulkResult {
    fn from(outcome: BulkOutcome) -> BulkResult {
        let refused = outcome.refused.into_iter().map(|(run_id, reason)| BulkRefusal { run_id, reason });
        BulkResult { done: outcome.done, refused: refused.collect(), more: outcome.more }
    }
}
