//! A workflow as a whole: its versions, its end, its switches, its schedules and the addresses that start it.

use super::change::{auth, change, settled};
use super::{Caller, Right, Started};
use crate::commands::trigger::{Begin, begin_as};
use crate::definitions::Compiled;
use crate::engine::Engine;
use crate::error::Error;
use crate::incoming::{Incoming, identity, verify};
use crate::people::{Kept, body};
use crate::record::json;
use crate::rights::{Actor, Need};
use crate::switches::{Pause, Switches, switches};
use crate::triggers::{self, Hook, Scheduled};
use crate::{people, secrets, upkeep};
use serde_json::{Value, json};
use std::sync::Arc;
use stepwell_core::definition::{Cron, Trigger};
use stepwell_core::time::Time;
use stepwell_formats::cron::Schedule;
use stepwell_store::{Change, DefinitionRow, Record, RecordChange};

/// Fires that a preview shows.
const PREVIEW: usize = 10;

/// A schedule and what is known of it.
#[derive(Clone, PartialEq, Debug)]
pub struct ScheduleView {
    pub id: String,
    pub workflow: String,
    pub cron: Option<Cron>,
    /// None if nothing will fire any more, or the workflow is disabled.
    pub next: Vec<Time>,
    pub last: Option<Time>,
    pub last_run: Option<String>,
    pub last_error: Option<String>,
}

/// What the switches are set to.
#[derive(Clone, PartialEq, Debug)]
pub struct State {
    pub enabled: bool,
    pub switches: Arc<Switches>,
}

impl Engine {
    /// All versions of a workflow, newest first.
    pub async fn versions(&self, caller: &Caller, workflow: &str) -> Result<Vec<DefinitionRow>, Error> {
        let newest = self.workflow(caller, workflow).await?;
        Ok(self.inner.store.versions(caller.org, &newest.row.workflow).await?)
    }

    pub async fn version(&self, caller: &Caller, workflow: &str, version: u32) -> Result<Arc<Compiled>, Error> {
        let none = || Error::NotFound { what: "version", name: version.to_string() };
        let all = self.versions(caller, workflow).await?;
        let row = all.into_iter().find(|row| row.version == version).ok_or_else(none)?;
        self.inner.definitions.get(&*self.inner.store, row.id).await
    }

    /// Ends a workflow's life. Runs go on to their end; its schedules and addresses are gone.
    pub async fn undefine(&self, caller: &Caller, workflow: &str) -> Result<(), Error> {
        caller.check(Right::Define)?;
        let compiled = self.newest(caller, workflow).await?;
        let now = self.inner.clock.now();
        let row = &compiled.row;
        let with = Change {
            records: triggers::removed(&self.inner, row.org, &row.workflow).await?,
            audit: vec![caller.audit(now, "workflow.delete", &row.name, json!({"id": row.workflow}))],
            grants_of: Some(row.org),
            decided: None,
        };
        let (write, org, id) = (self.inner.clone(), row.org, row.workflow.clone());
        let done = tokio::spawn(async move {
            let done = write.store.undefine(org, &id, now, with).await;
            write.epoch_moved(org);
            done
        });
        let done = done.await.map_err(|_| Error::Unavailable("the engine is stopping".into()))??;
        let none = || Error::NotFound { what: "workflow", name: workflow.to_string() };
        if done { Ok(()) } else { Err(none()) }
    }

    pub async fn workflow_state(&self, compiled: &Compiled) -> Result<State, Error> {
        let switches = switches(&self.inner, compiled.row.org, &compiled.row.workflow).await?;
        Ok(State { enabled: switches.enabled.unwrap_or(compiled.definition.enabled), switches })
    }

    /// A disabled workflow refuses triggers and skips its schedule; nothing of it is lost.
    pub async fn enable(&self, caller: &Caller, workflow: &str, enabled: bool) -> Result<(), Error> {
        let action = if enabled { "workflow.enable" } else { "workflow.disable" };
        self.switch(caller, workflow, (action, json!({})), |switches, _| switches.enabled = Some(enabled)).await?;
        if enabled {
            let row = &self.newest(caller, workflow).await?.row;
            let records = triggers::enabled(&self.inner, row.org, &row.workflow).await?;
            change(&self.inner, Change { records, ..Change::default() }, "schedule", workflow).await?;
            self.inner.rescheduled.notify_one();
        }
        Ok(())
    }

    /// New runs wait in the queue, all of them or those of one concurrency key. What runs already goes on.
    pub async fn pause(&self, caller: &Caller, workflow: &str, key: Option<Value>) -> Result<(), Error> {
        let pause = Pause { by: caller.name.to_string(), since: self.inner.clock.now(), key: key.clone() };
        let audit = ("workflow.pause", json!({"key": key}));
        self.switch(caller, workflow, audit, |switches, workflow| {
            let place = key.as_ref().map(|key| super::trigger::keyed_place(workflow, key));
            match place {
                None => switches.paused.get_or_insert(pause.clone()),
                Some(place) => switches.paused_keys.entry(place).or_insert(pause.clone()),
            };
        })
        .await
    }

    /// What was held begins.
    pub async fn resume(&self, caller: &Caller, workflow: &str, key: Option<Value>) -> Result<(), Error> {
        self.switch(caller, workflow, ("workflow.resume", json!({"key": key})), |switches, workflow| match &key {
            None => switches.paused = None,
            Some(key) => drop(switches.paused_keys.remove(&super::trigger::keyed_place(workflow, key))),
        })
        .await?;
        let compiled = self.newest(caller, workflow).await?;
        let inner = self.inner.clone();
        let place = compiled.row.workflow.clone();
        tokio::spawn(async move {
            let queued = inner.store.queued(u32::MAX).await.unwrap_or_default();
            for (queue, _) in queued.into_iter().filter(|(queue, _)| queue.split(':').next() == Some(&place)) {
                upkeep::admit(inner.clone(), compiled.row.org, queue).await;
            }
        });
        Ok(())
    }

    async fn switch(
        &self,
        caller: &Caller,
        workflow: &str,
        (action, detail): (&str, Value),
        set: impl Fn(&mut Switches, &str),
    ) -> Result<(), Error> {
        caller.check(Right::Define)?;
        settled(|| self.switch_once(caller, workflow, (action, &detail), &set)).await
    }

    async fn switch_once(
        &self,
        caller: &Caller,
        workflow: &str,
        (action, detail): (&str, &Value),
        set: impl Fn(&mut Switches, &str),
    ) -> Result<(), Error> {
        let decided = auth(&self.inner, caller.org).await?;
        let compiled = self.newest(caller, workflow).await?;
        let (org, id) = (compiled.row.org, compiled.row.workflow.clone());
        let before = self.inner.store.record(Switches::KIND, &id).await?;
        let mut switches: Switches = before.as_ref().map(body).transpose()?.unwrap_or_default();
        set(&mut switches, &id);
        let record = match before {
            Some(before) => RecordChange::Replace(Record { body: json(&switches), ..before }),
            None => {
                let (kind, key, body) = (Switches::KIND.into(), id.clone(), json(&switches));
                RecordChange::Create(Record { kind, id, org, key, due: None, body, version: 0 })
            }
        };
        let audit = vec![caller.audit(self.inner.clock.now(), action, &compiled.row.name, detail.clone())];
        let done = Change { records: vec![record], audit, grants_of: Some(org), decided: Some(decided) };
        change(&self.inner, done, "workflow", workflow).await
    }

    /// When a workflow will start by itself.
    pub async fn schedule(&self, caller: &Caller, workflow: &str) -> Result<Vec<ScheduleView>, Error> {
        let compiled = self.workflow(caller, workflow).await?;
        let (org, id) = (compiled.row.org, &compiled.row.workflow);
        let enabled = self.workflow_state(&compiled).await?.enabled;
        let mut views = Vec::new();
        for record in triggers::of_workflow(&self.inner, Scheduled::KIND, org, id).await? {
            let Scheduled { index, last, last_run, last_error, .. } = body(&record)?;
            let cron = compiled.definition.triggers.get(index).and_then(|trigger| match trigger {
                Trigger::Cron(cron) => Some(cron.clone()),
                _ => None,
            });
            let due = record.due.filter(|_| enabled);
            let later = cron.as_ref().zip(due).and_then(|(cron, due)| Some((Schedule::new(cron)?, due)));
            let next = match later {
                Some((schedule, due)) => {
                    std::iter::successors(Some(due), |last| schedule.next(*last)).take(PREVIEW).collect()
                }
                None => due.into_iter().collect(),
            };
            let (id, workflow) = (record.id, compiled.row.name.clone());
            views.push(ScheduleView { id, workflow, cron, next, last, last_run, last_error });
        }
        Ok(views)
    }

    /// All schedules of the organisation's living workflows.
    pub async fn schedules(&self, caller: &Caller) -> Result<Vec<ScheduleView>, Error> {
        let mut all = Vec::new();
        for row in self.workflows(caller).await? {
            let compiled = self.workflow(caller, &row.name).await?;
            let scheduled = |trigger: &Trigger| matches!(trigger, Trigger::Cron(_) | Trigger::At { .. });
            if compiled.definition.triggers.iter().any(scheduled) {
                all.extend(self.schedule(caller, &row.name).await?);
            }
        }
        Ok(all)
    }

    /// The tokens of the addresses that start a workflow, by trigger. For those who may change it.
    pub async fn hooks(&self, caller: &Caller, workflow: &str) -> Result<Vec<Hook>, Error> {
        caller.check(Right::Define)?;
        let compiled = self.newest(caller, workflow).await?;
        let records = triggers::of_workflow(&self.inner, Hook::KIND, compiled.row.org, &compiled.row.workflow).await?;
        let mut hooks: Vec<Hook> = records.iter().map(body).collect::<Result<_, _>>()?;
        hooks.sort_by_key(|hook| hook.index);
        Ok(hooks)
    }

    /// Gives a workflow other addresses; the old ones lead nowhere from now on.
    pub async fn rotate_hooks(&self, caller: &Caller, workflow: &str) -> Result<Vec<Hook>, Error> {
        caller.check(Right::Define)?;
        let compiled = self.newest(caller, workflow).await?;
        let (org, id) = (compiled.row.org, &compiled.row.workflow);
        let mut records = Vec::new();
        for record in triggers::of_workflow(&self.inner, Hook::KIND, org, id).await? {
            let was: Hook = body(&record)?;
            let new = triggers::hook(&self.inner, org, id, (was.index, was.written));
            records.push(RecordChange::Replace(Record { id: record.id, version: record.version, ..new }));
        }
        let audit = vec![caller.audit(self.inner.clock.now(), "workflow.rotate", &compiled.row.name, json!({}))];
        change(&self.inner, Change { records, audit, grants_of: None, decided: None }, "workflow", workflow).await?;
        self.hooks(caller, workflow).await
    }

    /// Whether an address leads anywhere: asked before a call is read.
    pub async fn hook_known(&self, token: &str) -> Result<bool, Error> {
        Ok(self.inner.store.record_with_key(Hook::KIND, &people::secret_hash(token)).await?.is_some())
    }

    /// Takes a call to a workflow's address: the run it started, or started before. It acts as the version's author.
    pub async fn receive(&self, token: &str, call: Incoming) -> Result<Started, Error> {
        let unknown = || Error::NotFound { what: "trigger", name: token.chars().take(60).collect() };
        let inner = &self.inner;
        let record = inner.store.record_with_key(Hook::KIND, &people::secret_hash(token)).await?.ok_or_else(unknown)?;
        let hook: Hook = body(&record)?;
        let compiled = inner.definitions.newest(inner, record.org, &hook.workflow).await?;
        let Some(Trigger::Webhook(webhook)) = compiled.definition.triggers.get(hook.index) else {
            return Err(unknown());
        };
        let author = Actor::parse(&compiled.row.author);
        if let Some(proof) = &webhook.verify {
            if !author.is_local() {
                let grants = people::grants(inner, record.org, &author).await?;
                if !grants.is_some_and(|grants| grants.allow(Need::Secret(&proof.secret))) {
                    let message = format!("the author may not use the secret {}", proof.secret);
                    return Err(Error::Refused(message));
                }
            }
            let secret = secrets::secret(inner, record.org, &proof.secret).await?;
            let missing = || Error::Refused(format!("the secret {} is not there to check the call with", proof.secret));
            let secret = secret.ok_or_else(missing)?;
            verify(&call, &proof.scheme, &secret.value, inner.clock.now()).map_err(Error::Unauthorised)?;
        }
        let key = webhook.dedupe.as_ref().and_then(|dedupe| identity(&call, dedupe));
        let begin = Begin {
            workflow: &hook.workflow,
            input: call.body,
            headers: Some(json!(call.headers)),
            scope: format!("hook:{}", record.id),
            key,
            how: "webhook",
        };
        begin_as(inner, record.org, &author, begin).await
    }
}
