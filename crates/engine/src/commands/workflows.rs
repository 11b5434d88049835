//! Workflows: finding and deleting them, their versions, switches and trigger URLs. Their schedules are in `schedules`.

use super::Workflows;
use super::change::{change, current_auth, retry_on_conflict};
use super::exposed::unclaimed;
use super::input::check_label;
use crate::access::{Pause, Right, Switches};
use crate::error::Error;
use crate::records::{Kept, body, json as json_text};
use crate::run::queue;
use crate::run::start::keyed_group;
use crate::triggers::{self, Hook};
use crate::workflows::Compiled;
use serde_json::{Value, json};
use std::sync::Arc;
use stepwell_core::time::Time;
use stepwell_store::{Change, DefinitionRow, Record, RecordChange};

/// The switches of a workflow.
#[derive(Clone, PartialEq, Debug)]
pub struct State {
    pub enabled: bool,
    pub switches: Arc<Switches>,
    /// When its first version was stored.
    pub inserted_at: Time,
    pub deleted_at: Option<Time>,
}

/// Which workflows to list, by name.
#[derive(Clone, Default, Debug)]
pub struct WorkflowQuery {
    /// Part of the name.
    pub text: Option<String>,
    /// All of these, as `name=value`.
    pub labels: Vec<String>,
    /// Deleted workflows instead of the others, latest deletion first.
    pub deleted: bool,
    /// The last name on the previous page; of deleted workflows, the last id.
    pub cursor: Option<String>,
    pub limit: u32,
}

impl WorkflowQuery {
    pub(super) fn has_text(&self, name: &str) -> bool {
        self.text.as_deref().is_none_or(|part| name.contains(part))
    }

    fn has_name(&self, name: &str) -> bool {
        self.cursor.as_deref().is_none_or(|cursor| name > cursor) && self.has_text(name)
    }

    pub(super) fn has_labels(&self, compiled: &Compiled) -> bool {
        self.labels.iter().all(|label| {
            let (name, value) = label.split_once('=').unwrap_or((label, ""));
            compiled.definition.labels.get(name).is_some_and(|have| have == value)
        })
    }
}

/// A page of workflows: the newest version and the switches of each.
#[derive(Clone, Debug)]
pub struct WorkflowPage {
    pub workflows: Vec<(Arc<Compiled>, State)>,
    /// The cursor of the next page, if there is one.
    pub next: Option<String>,
}

impl Workflows<'_> {
    /// The newest version. Needs the right to define, run or read.
    pub async fn find(&self, name: &str) -> Result<Arc<Compiled>, Error> {
        let any = [Right::Define, Right::Run, Right::Read].into_iter().any(|right| self.caller.may(right));
        if any { self.newest(name).await } else { self.caller.check(Right::Read).and(self.newest(name).await) }
    }

    /// The newest version. The caller's right has been checked.
    pub(super) async fn newest(&self, workflow: &str) -> Result<Arc<Compiled>, Error> {
        self.rooms.workflows.newest(self.caller.org, workflow).await
    }

    /// The newest versions of all workflows. Needs the right to read.
    pub async fn list(&self) -> Result<Vec<DefinitionRow>, Error> {
        self.caller.check(Right::Read)?;
        Ok(self.rooms.cluster.store.definitions(self.caller.org).await?)
    }

    /// A page of workflows, by name.
    pub async fn page(&self, query: WorkflowQuery) -> Result<WorkflowPage, Error> {
        if query.deleted {
            return self.deleted_page(query).await;
        }
        let mut workflows: Vec<(Arc<Compiled>, State)> = Vec::new();
        for row in self.list().await?.into_iter().filter(|row| query.has_name(&row.name)) {
            let compiled = self.rooms.workflows.compile(row)?;
            if !query.has_labels(&compiled) {
                continue;
            }
            if workflows.len() >= query.limit as usize {
                let next = workflows.last().map(|(last, _)| last.row.name.clone());
                return Ok(WorkflowPage { workflows, next });
            }
            let state = self.state(&compiled).await?;
            workflows.push((compiled, state));
        }
        Ok(WorkflowPage { workflows, next: None })
    }

    /// The newest version of a workflow. Needs the right to read.
    pub async fn get(&self, name: &str) -> Result<Arc<Compiled>, Error> {
        self.caller.check(Right::Read)?;
        self.rooms.workflows.newest(self.caller.org, name).await
    }

    /// All versions of a workflow, newest first, even if it is deleted. Needs the right to read.
    pub async fn versions(&self, workflow: &str) -> Result<Vec<DefinitionRow>, Error> {
        let newest = self.get_even_deleted(workflow).await?;
        Ok(self.rooms.cluster.store.versions(self.caller.org, &newest.row.workflow).await?)
    }

    /// Returns one version of a workflow. Needs the right to read.
    pub async fn version(&self, workflow: &str, version: u32) -> Result<Arc<Compiled>, Error> {
        let none = || Error::NotFound { what: "version", name: version.to_string() };
        let all = self.versions(workflow).await?;
        let row = all.into_iter().find(|row| row.version == version).ok_or_else(none)?;
        self.rooms.workflows.version(row.id).await
    }

    /// Deletes a workflow with its schedules and trigger URLs. Open runs continue. Needs the right to define; an agent's
    /// key cannot delete what a person wrote or accepted.
    pub async fn delete(&self, workflow: &str) -> Result<(), Error> {
        self.caller.check(Right::Define)?;
        let compiled = self.newest(workflow).await?;
        self.check_replaceable(&compiled.row, "delete").await?;
        let now = self.rooms.cluster.clock.now();
        let row = &compiled.row;
        let mut records = triggers::removed(&self.rooms.triggers, row.org, &row.workflow).await?;
        records.push(unclaimed(&row.workflow));
        let update = Change {
            records,
            audit: vec![self.caller.audit(now, "workflow.delete", &row.name, json!({"id": row.workflow}))],
            grants_of: Some(row.org),
            decided: None,
        };
        let (access, org, id) = (self.rooms.access.clone(), row.org, row.workflow.clone());
        let deleted = tokio::spawn(async move {
            let deleted = access.cluster.store.undefine(org, &id, now, update).await;
            access.epoch_moved(org);
            deleted
        });
        let deleted = deleted.await.map_err(|_| Error::Unavailable("the engine is stopping".into()))??;
        let none = || Error::NotFound { what: "workflow", name: workflow.to_string() };
        if deleted { Ok(()) } else { Err(none()) }
    }

    /// The switches of a workflow. Needs no right beyond that to the version.
    pub async fn state(&self, compiled: &Compiled) -> Result<State, Error> {
        let row = &compiled.row;
        let switches = self.rooms.access.switches(row.org, &row.workflow).await?;
        let first = match row.version {
            1 => None,
            _ => self.rooms.cluster.store.first_defined(row.org, &row.workflow).await?,
        };
        let enabled = switches.enabled.unwrap_or(compiled.definition.enabled);
        Ok(State { enabled, switches, inserted_at: first.unwrap_or(row.at), deleted_at: None })
    }

    /// Enables or disables a workflow. While disabled, it refuses triggers and skips its schedules. Needs the right to
    /// define.
    pub async fn enable(&self, workflow: &str, enabled: bool) -> Result<(), Error> {
        let action = if enabled { "workflow.enable" } else { "workflow.disable" };
        self.switch(workflow, action, json!({}), |switches, _| switches.enabled = Some(enabled)).await?;
        if enabled {
            let row = &self.newest(workflow).await?.row;
            let records = triggers::enabled(&self.rooms.triggers, row.org, &row.workflow).await?;
            change(self.rooms, Change { records, ..Change::default() }, "schedule", workflow).await?;
            self.rooms.triggers.rescheduled.notify_one();
        }
        Ok(())
    }

    /// Pauses a workflow, or one of its concurrency keys: new runs wait in the queue, and started runs continue. Needs
    /// the right to define.
    pub async fn pause(&self, workflow: &str, key: Option<Value>) -> Result<(), Error> {
        let pause = Pause { by: self.caller.name.to_string(), since: self.rooms.cluster.clock.now(), key: key.clone() };
        self.switch(workflow, "workflow.pause", json!({"key": key}), |switches, workflow| {
            let group = key.as_ref().map(|key| keyed_group(workflow, key));
            match group {
                None => switches.paused.get_or_insert(pause.clone()),
                Some(group) => switches.paused_keys.entry(group).or_insert(pause.clone()),
            };
        })
        .await
    }

    /// Resumes a paused workflow or concurrency key, and admits queued runs. Needs the right to define.
    pub async fn resume(&self, workflow: &str, key: Option<Value>) -> Result<(), Error> {
        self.switch(workflow, "workflow.resume", json!({"key": key}), |switches, workflow| match &key {
            None => switches.paused = None,
            Some(key) => drop(switches.paused_keys.remove(&keyed_group(workflow, key))),
        })
        .await?;
        let compiled = self.newest(workflow).await?;
        let runner = self.rooms.runner.clone();
        tokio::spawn(async move {
            queue::admit_all(runner, compiled.row.org, &compiled.row.workflow).await;
        });
        Ok(())
    }

    /// Makes a workflow a part of a set of definitions, or of none. Needs the right to define.
    pub async fn assign(&self, workflow: &str, set: Option<String>) -> Result<(), Error> {
        set.as_deref().map(|set| check_label("set", set)).transpose()?;
        self.switch(workflow, "workflow.assign", json!({"set": set}), |switches, _| switches.set = set.clone()).await
    }

    async fn switch(
        &self,
        workflow: &str,
        action: &str,
        detail: Value,
        set: impl Fn(&mut Switches, &str),
    ) -> Result<(), Error> {
        self.caller.check(Right::Define)?;
        retry_on_conflict(|| self.switch_once(workflow, action, &detail, &set)).await
    }

    async fn switch_once(
        &self,
        workflow: &str,
        action: &str,
        detail: &Value,
        set: impl Fn(&mut Switches, &str),
    ) -> Result<(), Error> {
        let decided = current_auth(self.rooms, self.caller.org).await?;
        let compiled = self.newest(workflow).await?;
        let (org, id) = (compiled.row.org, compiled.row.workflow.clone());
        let before = self.rooms.cluster.store.record(Switches::KIND, &id).await?;
        let mut switches: Switches = before.as_ref().map(body).transpose()?.unwrap_or_default();
        set(&mut switches, &id);
        let record = match before {
            Some(before) => RecordChange::Replace(Record { body: json_text(&switches), ..before }),
            None => {
                let (kind, key, body) = (Switches::KIND.into(), id.clone(), json_text(&switches));
                RecordChange::Create(Record { kind, id, org, key, due: None, body, version: 0 })
            }
        };
        let audit = vec![self.caller.audit(self.rooms.cluster.clock.now(), action, &compiled.row.name, detail.clone())];
        let update = Change { records: vec![record], audit, grants_of: Some(org), decided: Some(decided) };
        change(self.rooms, update, "workflow", workflow).await
    }

    /// The tokens of a workflow's trigger URLs, by trigger. Needs the right to define.
    pub async fn hooks(&self, workflow: &str) -> Result<Vec<Hook>, Error> {
        self.caller.check(Right::Define)?;
        let compiled = self.newest(workflow).await?;
        let records =
            triggers::of_workflow(&self.rooms.triggers, Hook::KIND, compiled.row.org, &compiled.row.workflow).await?;
        let mut hooks: Vec<Hook> = records.iter().map(body).collect::<Result<_, _>>()?;
        hooks.sort_by_key(|hook| hook.index);
        Ok(hooks)
    }

    /// Replaces a workflow's trigger URLs. The old ones stop working. Needs the right to define.
    pub async fn rotate_hooks(&self, workflow: &str) -> Result<Vec<Hook>, Error> {
        self.caller.check(Right::Define)?;
        let compiled = self.newest(workflow).await?;
        let (org, id) = (compiled.row.org, &compiled.row.workflow);
        let mut records = Vec::new();
        for record in triggers::of_workflow(&self.rooms.triggers, Hook::KIND, org, id).await? {
            let was: Hook = body(&record)?;
            let new = triggers::hook(&self.rooms.triggers, org, id, was.index, was.written);
            records.push(RecordChange::Replace(Record { id: record.id, version: record.version, ..new }));
        }
        let audit =
            vec![self.caller.audit(self.rooms.cluster.clock.now(), "workflow.rotate", &compiled.row.name, json!({}))];
        change(self.rooms, Change { records, audit, grants_of: None, decided: None }, "workflow", workflow).await?;
        self.hooks(workflow).await
    }
}
