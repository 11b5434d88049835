//! Schedules of workflows: those of their triggers, and those that users add with a call and own.

use super::Workflows;
use super::change::{change, current_auth, retry_on_conflict};
use super::input::invalid;
use crate::access::Right;
use crate::error::Error;
use crate::records::{Kept, body, json as json_text};
use crate::triggers::{self, Owner, Scheduled};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use stepwell_core::definition::{Cron, Trigger};
use stepwell_core::time::Time;
use stepwell_formats::cron::Schedule;
use stepwell_store::{Change, Record, RecordChange, RecordFilter};

/// Number of due times that a schedule shows.
const PREVIEW: usize = 10;
/// Schedules that users can add to one workflow.
const MAX_ADDED: usize = 100;

/// A schedule and its state.
#[derive(Clone, PartialEq, Debug)]
pub struct ScheduleView {
    pub id: String,
    pub workflow: String,
    pub cron: Option<Cron>,
    /// The user who added it and whose rights its runs have. `None`: a trigger of the definition.
    pub by: Option<String>,
    /// The next due times. Empty if the schedule has ended or the workflow is disabled.
    pub next: Vec<Time>,
    pub last: Option<Time>,
    pub last_run: Option<String>,
    pub last_error: Option<String>,
}

impl Workflows<'_> {
    /// The schedules of a workflow. Needs the right to read.
    pub async fn schedule(&self, workflow: &str) -> Result<Vec<ScheduleView>, Error> {
        let compiled = self.get(workflow).await?;
        let (org, id) = (compiled.row.org, &compiled.row.workflow);
        let accepted = self.rooms.workflows.reviewed(&compiled.row).await?.is_accepted();
        let enabled = self.state(&compiled).await?.enabled && accepted;
        let mut views = Vec::new();
        for record in triggers::of_workflow(&self.rooms.triggers, Scheduled::KIND, org, id).await? {
            let scheduled: Scheduled = body(&record)?;
            let cron = match scheduled.trigger(&compiled.definition) {
                Some(Trigger::Cron(cron)) => Some(cron),
                _ => None,
            };
            let by = scheduled.owner.map(|owner| owner.name);
            let Scheduled { last, last_run, last_error, .. } = scheduled;
            let due = record.due.filter(|_| enabled);
            let recurring = cron.as_ref().zip(due).and_then(|(cron, due)| Some((Schedule::new(cron)?, due)));
            let next = match recurring {
                Some((schedule, due)) => {
                    std::iter::successors(Some(due), |last| schedule.next(*last)).take(PREVIEW).collect()
                }
                None => due.into_iter().collect(),
            };
            let (id, workflow) = (record.id, compiled.row.name.clone());
            views.push(ScheduleView { id, workflow, cron, by, next, last, last_run, last_error });
        }
        Ok(views)
    }

    /// The schedules of all workflows of the organisation. Needs the right to read.
    pub async fn schedules(&self) -> Result<Vec<ScheduleView>, Error> {
        let rows = self.list().await?;
        let (kind, org) = (Scheduled::KIND.into(), Some(self.caller.org));
        let filter = RecordFilter { kind, org, prefix: String::new(), after: None, limit: u32::MAX };
        let records = self.rooms.cluster.store.records(filter).await?;
        let of = |record: &Record| body::<Scheduled>(record).map(|scheduled| scheduled.workflow);
        let scheduled = records.iter().map(of).collect::<Result<BTreeSet<String>, Error>>()?;
        let mut all = Vec::new();
        for row in rows.into_iter().filter(|row| scheduled.contains(&row.workflow)) {
            all.extend(self.schedule(&row.name).await?);
        }
        Ok(all)
    }

    /// Adds a schedule that the caller owns: its runs have the rights that the caller has at that time. `written` has the
    /// fields of a `cron` trigger. Needs the right to run.
    pub async fn add_schedule(&self, workflow: &str, written: &Value) -> Result<ScheduleView, Error> {
        self.caller.check(Right::Run)?;
        retry_on_conflict(|| self.add_schedule_once(workflow, written)).await
    }

    async fn add_schedule_once(&self, workflow: &str, written: &Value) -> Result<ScheduleView, Error> {
        let decided = current_auth(self.rooms, self.caller.org).await?;
        let compiled = self.newest(workflow).await?;
        let (org, id) = (compiled.row.org, &compiled.row.workflow);
        let cron = triggers::read_cron(written)?;
        if !cron.input.is_null() {
            compiled.check_input(&Arc::new(cron.input.clone())).await?;
        }
        let (plan, limits) = self.rooms.access.limits_of(org).await?;
        if limits.no_cron {
            let message = format!("the plan {plan} does not allow schedules");
            return Err(Error::Limit { limit: "schedules", message });
        }
        let records = triggers::of_workflow(&self.rooms.triggers, Scheduled::KIND, org, id).await?;
        let all = records.iter().map(body).collect::<Result<Vec<Scheduled>, Error>>()?;
        if all.iter().filter(|scheduled| scheduled.owner.is_some()).count() >= MAX_ADDED {
            let message = format!("a workflow can have {MAX_ADDED} schedules besides those of its definition");
            return Err(Error::Limit { limit: "schedules", message });
        }
        let now = self.rooms.cluster.clock.now();
        let due = Schedule::new(&cron).and_then(|schedule| schedule.next(now));
        let key = format!("{id}.{}", self.rooms.cluster.ids.public("sch", now));
        let owner = Owner { name: self.caller.name.to_string(), acts_as: self.caller.actor().to_string() };
        let scheduled = Scheduled {
            workflow: id.clone(),
            index: 0,
            written: written.to_string(),
            owner: Some(owner),
            last: None,
            last_run: None,
            last_error: None,
        };
        let (kind, body) = (Scheduled::KIND.to_string(), json_text(&scheduled));
        let record = Record { kind, id: key.clone(), org, key: key.clone(), due, body, version: 0 };
        let detail = json!({"schedule": key, "cron": cron.expression});
        let audit = vec![self.caller.audit(now, "schedule.add", &compiled.row.name, detail)];
        let records = vec![RecordChange::Create(record)];
        change(self.rooms, Change { records, audit, grants_of: None, decided: Some(decided) }, "schedule", &key)
            .await?;
        self.rooms.triggers.rescheduled.notify_one();
        Ok(ScheduleView {
            id: key,
            workflow: compiled.row.name.clone(),
            by: Some(self.caller.name.to_string()),
            next: due.into_iter().collect(),
            cron: Some(cron),
            last: None,
            last_run: None,
            last_error: None,
        })
    }

    /// Removes a schedule that was added with a call. Its owner needs the right to run, anyone else the right to define.
    pub async fn remove_schedule(&self, id: &str) -> Result<(), Error> {
        self.caller.check(Right::Run)?;
        let none = || Error::NotFound { what: "schedule", name: id.to_string() };
        let record = self.rooms.cluster.store.record(Scheduled::KIND, id).await?;
        let record = record.filter(|record| record.org == self.caller.org).ok_or_else(none)?;
        let scheduled: Scheduled = body(&record)?;
        let Some(owner) = &scheduled.owner else {
            return Err(invalid("id", "this schedule is a trigger of its definition: change the definition"));
        };
        if *owner.name != *self.caller.name {
            self.caller.check(Right::Define)?;
        }
        let now = self.rooms.cluster.clock.now();
        let audit = vec![self.caller.audit(now, "schedule.remove", id, json!({"workflow": scheduled.workflow}))];
        let records = vec![RecordChange::Remove { kind: record.kind, id: record.id }];
        change(self.rooms, Change { records, audit, ..Change::default() }, "schedule", id).await
    }
}
