//! Workflows and their schedules.

use crate::pages::{Pages, filters};
use crate::runs::labels;
use crate::{ATTEMPTS, Call, Client, Error, Fault, Schedule, Workflow};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Which workflows to list.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct WorkflowFilters {
    /// All of these.
    pub labels: BTreeMap<String, String>,
    /// Part of the name.
    pub q: Option<String>,
    /// The size of a page.
    pub limit: Option<u32>,
}

/// A schedule to add to a workflow, with the fields of a `cron` trigger.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct NewSchedule {
    /// Such as `0 8 * * 1-5` or `@daily`.
    pub cron: String,
    /// UTC by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// The input of each run.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub input: Value,
    /// `allow` (the default), `skip` or `cancel`: what happens while an earlier run is unfinished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlap: Option<String>,
    /// `none`, `last` (the default) or `all`: what happens to missed times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub catch_up: Option<String>,
}

#[derive(Deserialize)]
struct Warnings {
    warnings: Vec<Fault>,
}

impl Client {
    /// Stores a definition in YAML or JSON as a new workflow, or as the next version of the one with its name.
    pub async fn define(&self, definition: &str) -> Result<Workflow, Error> {
        self.data(Call::post(&["workflows"]).text(definition).attempts(ATTEMPTS)).await
    }

    /// Stores a definition under a name. One that changed becomes the next version.
    pub async fn define_as(&self, name: &str, definition: &str) -> Result<Workflow, Error> {
        self.data(Call::put(&["workflows", name]).text(definition).attempts(ATTEMPTS)).await
    }

    /// Checks a definition without storing it, and returns what is suspicious in it. If it has faults, the problem lists
    /// all of them.
    pub async fn check(&self, definition: &str) -> Result<Vec<Fault>, Error> {
        let found = self.data_if_any(Call::post(&["check"]).text(definition).attempts(ATTEMPTS)).await?;
        Ok(found.map(|Warnings { warnings }| warnings).unwrap_or_default())
    }

    /// A workflow, by name or id.
    pub async fn workflow(&self, name: &str) -> Result<Workflow, Error> {
        self.data(Call::get(&["workflows", name]).attempts(ATTEMPTS)).await
    }

    /// All workflows that match, without their definitions.
    pub fn workflows(&self, with: WorkflowFilters) -> Pages<'_, Workflow> {
        let limit = with.limit.map(|limit| limit.to_string());
        let filters = filters([("label", labels(&with.labels)), ("q", with.q), ("limit", limit)]);
        Pages::new(self, &["workflows"], filters)
    }

    /// Deletes a workflow. Its runs go on to their end.
    pub async fn delete_workflow(&self, name: &str) -> Result<(), Error> {
        self.execute(Call::delete(&["workflows", name])).await
    }

    /// The schedules of one workflow, or of all.
    pub async fn schedules(&self, workflow: Option<&str>) -> Result<Vec<Schedule>, Error> {
        let call = match workflow {
            Some(workflow) => Call::get(&["workflows", workflow, "schedule"]),
            None => Call::get(&["schedules"]),
        };
        self.data(call.attempts(ATTEMPTS)).await
    }

    /// Starts the workflow again and again, with the rights of the caller.
    pub async fn add_schedule(&self, workflow: &str, schedule: &NewSchedule) -> Result<Schedule, Error> {
        self.data(Call::post(&["workflows", workflow, "schedules"]).json(json!(schedule))).await
    }

    /// Removes a schedule that was added, by its id.
    pub async fn remove_schedule(&self, schedule: &str) -> Result<(), Error> {
        self.execute(Call::delete(&["schedules", schedule])).await
    }
}
