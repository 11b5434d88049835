//! Workflows, their versions and their triggers.

use super::{CatchUp, Dialect, GraphView, Instant, Overlap, Page, RepeatedTime, SkippedTime, StepKind, TriggerKind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use stepwell_core::definition::Trigger;
use stepwell_core::graph::{Graph, Step, Target};
use stepwell_engine::commands::{Defined, ScheduleView, State, WorkflowPage};
use stepwell_engine::{Compiled, Pause};
use stepwell_store::DefinitionRow;
use utoipa::ToSchema;

/// A workflow as lists show it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct WorkflowSummary {
    pub id: String,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The first of `triggers`.
    #[schema(value_type = TriggerKind)]
    pub trigger: String,
    #[schema(value_type = Vec<TriggerKind>)]
    pub triggers: Vec<String>,
    pub task_count: u32,
    pub enabled: bool,
    /// Whether new runs wait until it is resumed.
    pub paused: bool,
    pub version: u32,
    /// The set of definitions that it belongs to, if it was applied as a part of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    pub labels: BTreeMap<String, String>,
    /// When its first version was stored.
    pub inserted_at: Instant,
    /// When this version was stored.
    pub updated_at: Instant,
    pub created_by: String,
    /// Deleted workflows can be restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Instant, required = false)]
    pub deleted_at: Option<Instant>,
    /// Of a new workflow: the one of the same name that was deleted last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = EarlierWorkflow, required = false)]
    pub earlier: Option<EarlierWorkflow>,
}

/// A deleted workflow whose name another one has now.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct EarlierWorkflow {
    pub id: String,
    pub deleted_at: Instant,
}

impl WorkflowSummary {
    pub fn new(compiled: &Compiled, state: &State) -> WorkflowSummary {
        let (row, definition) = (&compiled.row, &compiled.definition);
        let triggers: Vec<String> = definition.triggers.iter().map(|trigger| kind(trigger).to_string()).collect();
        WorkflowSummary {
            id: row.workflow.clone(),
            name: row.name.clone(),
            description: definition.description.clone(),
            trigger: triggers.first().cloned().unwrap_or_default(),
            triggers,
            task_count: definition.graph.steps.len() as u32,
            enabled: state.enabled,
            paused: state.switches.paused.is_some(),
            version: row.version,
            set: state.switches.set.clone(),
            labels: definition.labels.clone(),
            inserted_at: state.inserted_at.into(),
            updated_at: row.at.into(),
            created_by: row.by.clone(),
            deleted_at: state.deleted_at.map(Instant),
            earlier: None,
        }
    }

    /// A workflow that was just defined.
    pub fn defined(defined: &Defined, state: &State) -> WorkflowSummary {
        let earlier = defined.before.clone().map(|(id, at)| EarlierWorkflow { id, deleted_at: at.into() });
        WorkflowSummary { earlier, ..WorkflowSummary::new(&defined.compiled, state) }
    }
}

/// A workflow as a list has it.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct ListedWorkflow {
    #[serde(flatten)]
    pub summary: WorkflowSummary,
    /// The parsed source, if `include` asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = serde_json::Value, required = false)]
    pub definition: Option<serde_json::Value>,
    /// Its steps and edges, if `include` asks for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = GraphView, required = false)]
    pub graph: Option<GraphView>,
}

/// The parsed source of a workflow.
pub fn definition_value(compiled: &Compiled) -> serde_json::Value {
    stepwell_formats::document(compiled.row.source.as_bytes(), None).unwrap_or_default()
}

impl From<WorkflowPage> for Page<WorkflowSummary> {
    fn from(page: WorkflowPage) -> Page<WorkflowSummary> {
        let data = page.workflows.iter().map(|(compiled, state)| WorkflowSummary::new(compiled, state));
        Page { data: data.collect(), next: page.next }
    }
}

fn kind(trigger: &Trigger) -> &'static str {
    match trigger {
        Trigger::Api => "api",
        Trigger::Webhook(_) => "webhook",
        Trigger::Cron(_) => "cron",
        Trigger::At { .. } => "at",
    }
}

/// A workflow with its definition.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Workflow {
    #[serde(flatten)]
    pub summary: WorkflowSummary,
    #[schema(value_type = Dialect)]
    pub dialect: String,
    /// As its author wrote it, JSON or YAML.
    pub source: String,
    /// The parsed source.
    #[schema(value_type = serde_json::Value)]
    pub definition: serde_json::Value,
    /// Its tasks as written, if it uses the tasks dialect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = serde_json::Value)]
    pub tasks: Option<serde_json::Value>,
    /// By name, for any dialect.
    pub steps: BTreeMap<String, TaskView>,
    /// URLs that start it; only for callers who may change it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub webhooks: Vec<String>,
    /// Concurrency keys whose new runs wait.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paused_keys: Vec<PausedKey>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = serde_json::Value)]
    pub input_schema: Option<serde_json::Value>,
}

impl Workflow {
    pub fn new(compiled: &Compiled, state: &State, webhooks: Vec<String>) -> Workflow {
        let graph = &compiled.definition.graph;
        let definition = definition_value(compiled);
        Workflow {
            dialect: graph.dialect.name().into(),
            source: compiled.row.source.clone(),
            tasks: definition.get("tasks").cloned(),
            definition,
            steps: task_views(graph),
            webhooks,
            paused_keys: state.switches.paused_keys.values().map(PausedKey::new).collect(),
            input_schema: compiled.definition.input_schema.clone(),
            summary: WorkflowSummary::new(compiled, state),
        }
    }
}

/// A step of the definition.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct TaskView {
    #[schema(value_type = StepKind)]
    pub kind: String,
    /// Steps that lead to it.
    pub needs: Vec<String>,
}

/// The steps of a graph by name, each with the steps that lead to it.
pub fn task_views(graph: &Graph) -> BTreeMap<String, TaskView> {
    let view = |step: &Step| TaskView { kind: step.def.kind.name().into(), needs: Vec::new() };
    let mut all: BTreeMap<String, TaskView> =
        graph.steps.iter().map(|step| (step.def.name.to_string(), view(step))).collect();
    for step in &graph.steps {
        for out in &step.outs {
            let Target::Step(to) = out.to else { continue };
            let from = step.def.name.to_string();
            if let Some(next) = all.get_mut(&*graph.step(to).def.name).filter(|next| !next.needs.contains(&from)) {
                next.needs.push(from);
            }
        }
    }
    all
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PausedKey {
    #[schema(value_type = serde_json::Value)]
    pub key: serde_json::Value,
    pub by: String,
    pub since: Instant,
}

impl PausedKey {
    pub fn new(pause: &Pause) -> PausedKey {
        let key = pause.key.clone().unwrap_or_default();
        PausedKey { key, by: pause.by.clone(), since: pause.since.into() }
    }
}

/// One version of a workflow.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct VersionView {
    pub version: u32,
    pub created_by: String,
    pub created_at: Instant,
    /// As its author wrote it, JSON or YAML.
    pub source: String,
}

impl From<DefinitionRow> for VersionView {
    fn from(row: DefinitionRow) -> VersionView {
        VersionView { version: row.version, created_by: row.by, created_at: row.at.into(), source: row.source }
    }
}

/// Settings that can change without a new version.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WorkflowSwitch {
    pub enabled: Option<bool>,
    /// The set of definitions that it belongs to; empty for none.
    pub set: Option<String>,
}

/// The runs to hold or release.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PauseRequest {
    /// Only runs with this concurrency key; all runs if omitted.
    #[schema(value_type = serde_json::Value)]
    pub key: Option<serde_json::Value>,
}

/// A schedule to add: the fields of a `cron` trigger.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSchedule {
    /// Such as `0 8 * * 1-5` or `@daily`.
    pub cron: String,
    /// UTC if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// The input of each run; `{}` if omitted.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    #[schema(value_type = serde_json::Value, required = false)]
    pub input: serde_json::Value,
    /// While the run of an earlier time is unfinished; `allow` if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Overlap, required = false)]
    pub overlap: Option<String>,
    /// What to do with missed times; `last` if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = CatchUp, required = false)]
    pub catch_up: Option<String>,
    /// What to do with a time that a clock change skips; `run` if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = SkippedTime, required = false)]
    pub when_skipped: Option<String>,
    /// What to do with a time that occurs twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = RepeatedTime, required = false)]
    pub when_repeated: Option<String>,
}

impl NewSchedule {
    /// As a definition has it.
    pub fn written(&self) -> serde_json::Value {
        serde_json::json!(self)
    }
}

/// A schedule and its next ticks.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ScheduleSummary {
    pub id: String,
    pub workflow: String,
    /// None for a one-time schedule.
    #[serde(default)]
    pub cron: Option<String>,
    #[serde(default)]
    pub timezone: Option<String>,
    /// The user who added it with a request, and whose rights its runs have. Missing for triggers of the definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    pub by: Option<String>,
    /// Up to ten.
    pub next: Vec<Instant>,
    #[serde(default)]
    pub last: Option<Instant>,
    #[serde(default)]
    pub last_run_id: Option<String>,
    /// Why the last tick started no run.
    #[serde(default)]
    pub last_error: Option<String>,
}

impl From<ScheduleView> for ScheduleSummary {
    fn from(view: ScheduleView) -> ScheduleSummary {
        ScheduleSummary {
            id: view.id,
            workflow: view.workflow,
            by: view.by,
            timezone: view.cron.as_ref().map(|cron| cron.timezone.clone().unwrap_or_else(|| "UTC".into())),
            cron: view.cron.map(|cron| cron.expression),
            next: view.next.into_iter().map(Instant).collect(),
            last: view.last.map(Instant),
            last_run_id: view.last_run,
            last_error: view.last_error,
        }
    }
}
