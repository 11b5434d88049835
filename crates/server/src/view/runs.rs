//! Lists of runs, runs that were just started, and the results of bulk operations.

use super::run::labels;
use super::{Instant, Page, RunStatus};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use stepwell_engine::commands::{self as engine, BulkOutcome, Started};
use utoipa::{IntoParams, ToSchema};

/// A run as lists show it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct RunSummary {
    #[serde(default)]
    #[schema(required = true)]
    pub run_id: String,
    /// The same as `run_id`.
    #[schema(deprecated)]
    pub id: String,
    pub workflow: String,
    pub workflow_id: String,
    pub workflow_version: u32,
    /// The workflow was deleted since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Instant, required = false)]
    pub workflow_deleted_at: Option<Instant>,
    #[schema(value_type = RunStatus)]
    pub status: String,
    pub created_by: String,
    pub created_at: Instant,
    /// When a scheduled run begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Instant, required = false)]
    pub scheduled_for: Option<Instant>,
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
        let engine::RunSummary { row, workflow_id, workflow, workflow_version, workflow_deleted_at, scheduled_for } =
            summary;
        RunSummary {
            run_id: row.public.clone(),
            id: row.public,
            workflow,
            workflow_id,
            workflow_version,
            workflow_deleted_at: workflow_deleted_at.map(Instant),
            status: row.status,
            created_by: row.by,
            created_at: row.created.into(),
            scheduled_for: scheduled_for.map(Instant),
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
    /// The user who started it.
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

/// A run that was just started: the fields of a `Run` that are known at once, under the same names.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Triggered {
    pub run_id: String,
    pub workflow_id: String,
    pub workflow: String,
    pub workflow_version: u32,
    #[schema(value_type = RunStatus)]
    pub status: String,
    // Missing while the run is scheduled or queued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Instant, required = false)]
    pub started_at: Option<Instant>,
    /// When a scheduled run begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Instant, required = false)]
    pub scheduled_for: Option<Instant>,
}

impl Triggered {
    pub fn new(started: &Started, at: Instant) -> Triggered {
        Triggered {
            run_id: started.run.clone(),
            workflow_id: started.workflow_id.clone(),
            workflow: started.workflow.clone(),
            workflow_version: started.version,
            status: started.status.clone(),
            started_at: (!matches!(&*started.status, "queued" | "scheduled")).then_some(at),
            scheduled_for: started.scheduled.map(Instant),
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
