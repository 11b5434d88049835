//! Runs: starting them, controlling them, reading them.

mod bulk;
mod control;
mod read;
mod view;

pub use bulk::Bulk;
pub use control::Retry;
pub use read::{EventView, RunFilters, RunPage, RunQuery, RunSummary, page_size};
pub use view::{AttemptView, ParentView, RunView, StepView};

pub(in crate::commands) use read::{find, load, reach};

use super::change::trail;
use super::definitions::{check, check_code, keep_for_test};
use super::{Runs, Source};
use crate::access::Right;
use crate::error::Error;
use crate::run::start::{self, End, KEY_LIFE, Start, Started, start};
use crate::workflows::{Compiled, labels};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use stepwell_core::approval::digest;
use stepwell_store::{NewAudit, UniqueKey};

/// A request to start a run.
#[derive(Clone, Debug)]
pub struct Trigger<'a> {
    pub workflow: &'a str,
    pub input: Value,
    pub headers: Option<Value>,
    /// The same key with the same input starts one run only.
    pub key: Option<&'a str>,
    /// Beside those of the workflow.
    pub labels: BTreeMap<String, String>,
}

impl<'a> Trigger<'a> {
    pub fn new(workflow: &'a str, input: Value) -> Trigger<'a> {
        Trigger { workflow, input, headers: None, key: None, labels: BTreeMap::new() }
    }
}

impl Runs<'_> {
    pub async fn trigger(&self, trigger: Trigger<'_>) -> Result<Started, Error> {
        let request = self.request(trigger).await?;
        start(&self.rooms.runner, request).await.map(|(started, _)| started)
    }

    /// Like [`Runs::trigger`], for a caller who will wait for the end.
    pub async fn trigger_and_watch(&self, trigger: Trigger<'_>) -> Result<(Started, End), Error> {
        let request = Start { watch: true, ..self.request(trigger).await? };
        match start(&self.rooms.runner, request).await? {
            (started, Some(end)) => Ok((started, end)),
            (started, None) => {
                let end = start::end_of(&self.rooms.runner, started.id).await?;
                Ok((started, end))
            }
        }
    }

    async fn request(&self, trigger: Trigger<'_>) -> Result<Start, Error> {
        self.caller.check(Right::Run)?;
        let epoch = self.rooms.access.epoch(self.caller.org).await?;
        let compiled = self.rooms.workflows.newest(self.caller.org, trigger.workflow).await?;
        let unique = trigger.key.map(|key| UniqueKey {
            scope: format!("trigger:{}", compiled.row.workflow),
            key: key.to_string(),
            digest: digest(&trigger.input),
            expires: Some(self.rooms.cluster.clock.now() + KEY_LIFE),
        });
        let labels = labels(&compiled, trigger.labels)?;
        let audit = trail(self.rooms, self.caller, "run.start", "", json!({"workflow": compiled.row.name}));
        let plain = self.start_of(Decided { compiled, epoch }, trigger.input, audit);
        Ok(Start { headers: trigger.headers.map(Arc::new), labels, unique, ..plain })
    }

    /// Runs a definition that is not saved, apart from real runs.
    pub async fn test(&self, source: Source<'_>, input: Value) -> Result<Started, Error> {
        self.caller.check(Right::Define)?;
        self.caller.check(Right::Run)?;
        let checked = check(self.rooms, source)?;
        check_code(self.rooms, &checked).await?;
        checked.check_input(&input)?;
        let epoch = self.rooms.access.epoch(self.caller.org).await?;
        self.rooms.access.check_steps(self.caller.org, &checked.definition).await?;
        let audit = trail(self.rooms, self.caller, "run.test", "", json!({"workflow": checked.definition.name}));
        let compiled = keep_for_test(self.rooms, self.caller, checked).await?;
        let plain = self.start_of(Decided { compiled, epoch }, input, audit);
        start(&self.rooms.runner, Start { test: true, ..plain }).await.map(|(started, _)| started)
    }

    /// Calls a tool as a run of one step.
    pub(super) async fn call(&self, decided: Decided, tool: &str, arguments: Value) -> Result<Started, Error> {
        let audit = trail(self.rooms, self.caller, "tool.call", "", json!({"tool": tool}));
        let labels = labels(&decided.compiled, BTreeMap::new())?;
        let plain = self.start_of(decided, arguments, audit);
        start(&self.rooms.runner, Start { labels, ..plain }).await.map(|(started, _)| started)
    }

    fn start_of(&self, decided: Decided, input: Value, audit: Option<NewAudit>) -> Start {
        Start {
            epoch: decided.epoch,
            compiled: decided.compiled,
            input: Arc::new(input),
            headers: None,
            by: self.caller.name.clone(),
            acts_as: self.caller.actor().to_string(),
            labels: Vec::new(),
            unique: None,
            parent: None,
            test: false,
            watch: false,
            audit,
        }
    }
}

/// The version to run, and the epoch from before everything that the decision to run it rests on.
pub(super) struct Decided {
    pub compiled: Arc<Compiled>,
    pub epoch: i64,
}
