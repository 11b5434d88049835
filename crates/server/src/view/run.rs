//! A run and its steps.

use super::{
    AttemptReason, AttemptStatus, Instant, LogLevel, RunStatus, StartedHow, StepKind, StepStatus, WaitingReason,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use stepwell_engine::commands as engine;
use utoipa::ToSchema;

/// Steps in the view of a run.
const MAX_TASKS: usize = 1_000;

/// A run in full.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Run {
    #[serde(default)]
    #[schema(required = true)]
    pub run_id: String,
    /// The same as `run_id`.
    #[schema(deprecated)]
    pub id: String,
    pub workflow_id: String,
    pub workflow: String,
    pub workflow_version: u32,
    /// The workflow was deleted since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Instant, required = false)]
    pub workflow_deleted_at: Option<Instant>,
    #[schema(value_type = RunStatus)]
    pub status: String,
    pub created_by: String,
    pub created_at: Instant,
    /// When it begins or began, if it was scheduled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Instant, required = false)]
    pub scheduled_for: Option<Instant>,
    #[serde(default)]
    pub started_at: Option<Instant>,
    #[serde(default)]
    pub finished_at: Option<Instant>,
    /// When it times out, or would have: `max_duration` after its start or its last retry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Instant, required = false)]
    pub expires_at: Option<Instant>,
    /// Who or what started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = StartedBy, required = false)]
    pub started_by: Option<StartedBy>,
    /// The user who retried it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    pub retried_by: Option<String>,
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
    /// The cursor of the further steps in `GET /runs/{run}/steps`: `tasks` has the first 1,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    pub tasks_next: Option<String>,
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

/// Who or what started a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct StartedBy {
    pub user: String,
    /// The API key that was used, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = StartedWith, required = false)]
    pub key: Option<StartedWith>,
    /// What the MCP client calls itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    pub client: Option<String>,
    #[schema(value_type = StartedHow)]
    pub how: String,
    /// Id of the schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    pub schedule: Option<String>,
}

/// The key that started a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct StartedWith {
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    pub name: Option<String>,
    /// It is an agent's key.
    pub agent: bool,
}

impl From<engine::StartedBy> for StartedBy {
    fn from(by: engine::StartedBy) -> StartedBy {
        let engine::Starter { user, key, client } = by.starter;
        let key = key.map(|key| StartedWith { id: key.id, name: key.name, agent: key.agent });
        StartedBy { user, key, client, how: name_of(&by.how), schedule: by.schedule }
    }
}

/// The name of a unit variant.
fn name_of(variant: &impl Serialize) -> String {
    let name = serde_json::to_value(variant).ok();
    name.and_then(|name| Some(name.as_str()?.to_string())).unwrap_or_default()
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
    #[schema(value_type = StepKind)]
    pub kind: String,
    #[schema(value_type = StepStatus)]
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
    /// Headers of the response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = BTreeMap<String, String>, required = false)]
    pub headers: Option<Value>,
    /// The URL that ends its wait; only for callers who may deliver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    pub callback_url: Option<String>,
    /// The run that its last attempt started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    pub child_run_id: Option<String>,
    /// Who has approved a call that a policy held. The answers to a gate are in its output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub approvals: Vec<GivenApproval>,
    /// Its input, output, log and the results of its attempts are left out, because the answer would be too large:
    /// `GET /runs/{run}/steps` has them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub is_omitted: bool,
    /// An approver changed the held call: `input` is what it was made with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = ChangedCall, required = false)]
    pub changed: Option<ChangedCall>,
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
    #[schema(value_type = AttemptStatus)]
    pub status: String,
    /// Why it did not succeed: lost (its process died), timeout, refused (by rights or a policy) or failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = AttemptReason, required = false)]
    pub reason: Option<String>,
    pub started_at: Instant,
    #[serde(default)]
    pub finished_at: Option<Instant>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = i64, required = false)]
    pub duration_ms: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = u16, required = false)]
    pub status_code: Option<u16>,
    /// Headers of the response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = BTreeMap<String, String>, required = false)]
    pub headers: Option<Value>,
    /// The run that it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    pub child_run_id: Option<String>,
    #[serde(default)]
    #[schema(value_type = serde_json::Value)]
    pub output: Option<Value>,
    #[serde(default)]
    pub error: Option<ErrorView>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<LogLine>,
}

/// An approval of a call that a policy held.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct GivenApproval {
    pub by: String,
    pub comment: Option<String>,
    #[schema(value_type = serde_json::Value)]
    pub data: Value,
}

/// A held call that an approver changed.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct ChangedCall {
    pub by: String,
    /// The input that the definition gave it.
    #[schema(value_type = serde_json::Value)]
    pub from: Value,
}

/// A line written by code.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct LogLine {
    #[schema(value_type = LogLevel)]
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
    #[serde(rename = "for")]
    #[schema(value_type = WaitingReason)]
    pub what: String,
    #[serde(default)]
    pub since: Option<Instant>,
    /// When it continues by itself.
    #[serde(default)]
    pub until: Option<Instant>,
    /// Who or what can make it continue.
    pub moved_on_by: String,
    /// Why the last attempt failed, or what the called service says about its progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
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

/// Leaves the first steps. Returns the cursor of the others, if there are any.
fn cut_steps(steps: &mut Vec<(String, Step)>, most: usize) -> Option<String> {
    if steps.len() <= most {
        return None;
    }
    steps.truncate(most);
    steps.last().map(|(path, _)| path.clone())
}

impl Step {
    /// A step and its path.
    pub fn with_path(run: &str, step: engine::StepView) -> (String, Step) {
        let attempt = |attempt: engine::AttemptView| Attempt {
            attempt: attempt.attempt,
            status: attempt.status,
            reason: attempt.reason.map(Into::into),
            started_at: attempt.started_at.into(),
            finished_at: attempt.finished_at.map(Instant),
            duration_ms: attempt.duration_ms,
            status_code: attempt.status_code,
            headers: attempt.headers,
            child_run_id: attempt.child_run,
            output: attempt.output,
            error: attempt.error.map(error),
            log: log(attempt.log),
        };
        let is = Step {
            id: step_id(run, &step.path),
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
            headers: step.headers,
            callback_url: step.callback_url,
            child_run_id: step.child_run,
            approvals: step.approvals.into_iter().filter_map(|said| serde_json::from_value(said).ok()).collect(),
            is_omitted: step.omitted,
            changed: step.changed.map(|changed| ChangedCall { by: changed.by.to_string(), from: changed.from }),
            log: log(step.log),
            attempts: step.attempts.into_iter().map(attempt).collect(),
        };
        (step.path, is)
    }
}

/// With the first steps of a long run.
impl From<engine::RunView> for Run {
    fn from(view: engine::RunView) -> Run {
        let id = view.id.to_string();
        let warned = |warning: engine::RunWarning| Warning { step: warning.step, message: warning.message };
        let waiting = view.waiting_for.into_iter().map(|wait| Waiting {
            step: wait.step,
            what: name_of(&wait.what),
            since: wait.since.map(Instant),
            until: wait.until.map(Instant),
            moved_on_by: wait.moved_on_by.into(),
            message: wait.message.as_deref().map(Into::into),
        });
        let mut steps = view.tasks.into_iter().map(|step| Step::with_path(&id, step)).collect();
        let tasks_next = cut_steps(&mut steps, MAX_TASKS);
        Run {
            run_id: id.clone(),
            workflow_id: view.workflow_id,
            workflow: view.workflow,
            workflow_version: view.workflow_version,
            workflow_deleted_at: view.workflow_deleted_at.map(Instant),
            status: view.status.into(),
            created_by: view.created_by,
            created_at: view.created_at.into(),
            scheduled_for: view.scheduled_for.map(Instant),
            started_at: view.started_at.map(Instant),
            finished_at: view.finished_at.map(Instant),
            expires_at: view.expires_at.map(Instant),
            started_by: Some(view.started_by.into()),
            retried_by: view.retried_by.as_deref().map(Into::into),
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
            tasks: Steps(steps),
            tasks_next,
            id,
        }
    }
}
