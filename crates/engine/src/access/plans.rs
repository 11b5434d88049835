//! Plans: the limits of an organisation, and checks against its usage.

use super::Access;
use crate::error::Error;
use crate::records::{Kept, body};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use stepwell_core::definition::{Definition, Trigger};
use stepwell_core::time::Time;
use stepwell_store::OrgId;

/// Names of limits, as in [`Error::Limit`].
pub const CONCURRENT_RUNS: &str = "concurrent_runs";
pub const DESCENDANTS_PER_RUN: &str = "descendants_per_run";

/// Descendants of a root run, unless the settings or the plan say otherwise.
const DESCENDANTS: u32 = 10_000;

/// The limits of a plan. `None` is unlimited.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflows: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks_per_workflow: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrent_runs: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executions_per_month: Option<u64>,
    /// Never more than [`Plans::descendants_per_run`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub descendants_per_run: Option<u32>,
    /// Weight of the payloads of one run; `None` leaves it to the engine's setting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_cron: bool,
}

/// Plans by name.
#[derive(Clone, PartialEq, Debug)]
pub struct Plans {
    pub by_name: BTreeMap<String, Limits>,
    /// The plan of an organisation without one of its own.
    pub default: String,
    /// The most runs that one run, its children and theirs may start, whatever the plan says.
    pub descendants_per_run: u32,
}

impl Default for Plans {
    fn default() -> Plans {
        let free = Limits {
            workflows: Some(3),
            tasks_per_workflow: Some(5),
            concurrent_runs: Some(1),
            executions_per_month: Some(10_000),
            descendants_per_run: None,
            run_bytes: None,
            no_cron: true,
        };
        let pro = Limits {
            workflows: None,
            tasks_per_workflow: Some(20),
            concurrent_runs: Some(10),
            executions_per_month: Some(1_000_000),
            descendants_per_run: None,
            run_bytes: None,
            no_cron: false,
        };
        let plans = [("free", free), ("pro", pro), ("unlimited", Limits::default())];
        let by_name = plans.map(|(name, plan)| (name.to_string(), plan)).into();
        Plans { by_name, default: "unlimited".into(), descendants_per_run: DESCENDANTS }
    }
}

/// The stored plan of an organisation.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Subscription {
    pub plan: Option<String>,
    /// Override the limits of the plan.
    pub limits: Option<Limits>,
}

impl Kept for Subscription {
    const KIND: &'static str = "organisation";
}

/// The counter of steps that an organisation executes in the month of `now`: `steps:1:2026-11`.
pub fn counter(org: OrgId, now: Time) -> String {
    let month: String = now.to_string().chars().take(7).collect();
    format!("steps:{}:{month}", org.0)
}

pub fn too_many_runs(most: u32) -> Error {
    Error::Limit { limit: CONCURRENT_RUNS, message: format!("the plan allows {most} concurrent runs") }
}

pub fn too_many_descendants(most: u32) -> Error {
    let message = format!(
        "a run may have {most} descendants (its child runs, their children, …), and the run at the top of this tree has \
         had as many; start fewer children, or raise descendants_per_run in the plan or the configuration"
    );
    Error::Limit { limit: DESCENDANTS_PER_RUN, message }
}

impl Access {
    /// The name of the organisation's plan and its limits, read from the store.
    pub async fn limits(&self, org: OrgId) -> Result<(String, Limits), Error> {
        let record = self.cluster.store.record(Subscription::KIND, &org.0.to_string()).await?;
        let subscription = record.map(|record| body::<Subscription>(&record)).transpose()?.unwrap_or_default();
        let plan = subscription.plan.unwrap_or_else(|| self.plans.default.clone());
        let most = self.plans.descendants_per_run;
        let bounded = |limits: Limits| Limits {
            descendants_per_run: Some(limits.descendants_per_run.map_or(most, |own| own.min(most))),
            ..limits
        };
        if let Some(limits) = subscription.limits {
            return Ok(("custom".into(), bounded(limits)));
        }
        let limits = self.plans.by_name.get(&plan).copied();
        let limits = limits.ok_or_else(|| Error::Broken(format!("the plan {plan:?} is not in the configuration")))?;
        Ok((plan, bounded(limits)))
    }

    /// Refuses a definition with more steps than the plan allows.
    pub async fn check_steps(&self, org: OrgId, definition: &Definition) -> Result<(), Error> {
        let (plan, limits) = self.limits_of(org).await?;
        let tasks = definition.graph.steps.len();
        let Some(most) = limits.tasks_per_workflow.filter(|most| tasks > *most as usize) else { return Ok(()) };
        let message = format!("the plan {plan} allows {most} steps per workflow, but this one has {tasks}");
        Err(Error::Limit { limit: "tasks_per_workflow", message })
    }

    /// Refuses a definition that the plan does not allow.
    pub async fn check_definition(&self, org: OrgId, definition: &Definition) -> Result<(), Error> {
        self.check_steps(org, definition).await?;
        let (plan, limits) = self.limits_of(org).await?;
        let over = |what: String| Err(Error::Limit { limit: "definition", message: format!("the plan {plan} {what}") });
        if limits.no_cron && definition.triggers.iter().any(|trigger| matches!(trigger, Trigger::Cron { .. })) {
            return over("does not allow cron triggers".into());
        }
        if let Some(most) = limits.workflows {
            let names = self.cluster.store.definitions(org).await?;
            let is_new = !names.iter().any(|row| row.name == definition.name);
            if is_new && names.len() >= most as usize {
                return over(format!("allows {most} workflows"));
            }
        }
        Ok(())
    }

    /// Refuses to restart a run if the plan does not allow it. For a new run, the store checks the limit in the commit.
    pub async fn check_run(&self, org: OrgId, limits: &Limits) -> Result<(), Error> {
        if let Some(most) = limits.concurrent_runs
            && self.cluster.store.open_runs(org).await? >= u64::from(most)
        {
            return Err(too_many_runs(most));
        }
        self.check_executions(org, limits).await
    }

    /// Refuses further executions once the limit of the month is reached.
    pub async fn check_executions(&self, org: OrgId, limits: &Limits) -> Result<(), Error> {
        if let Some(most) = limits.executions_per_month
            && self.cluster.store.counted(&counter(org, self.cluster.clock.now())).await?
                >= i64::try_from(most).unwrap_or(i64::MAX)
        {
            let message = format!("the plan's limit of {most} executions this month is reached");
            return Err(Error::Limit { limit: "executions_per_month", message });
        }
        Ok(())
    }

    /// The same as [`Access::limits`], cached until the organisation's epoch changes.
    pub async fn limits_of(&self, org: OrgId) -> Result<(String, Limits), Error> {
        let epoch = self.epoch(org).await?;
        if let Some(known) = self.limits.get(&org, epoch) {
            return Ok(known);
        }
        let found = self.limits(org).await?;
        self.limits.put(org, epoch, found.clone());
        Ok(found)
    }
}
