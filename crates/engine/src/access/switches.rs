//! Switches of a workflow that need no new version: whether it is enabled, and whether its new runs are held.

use super::Access;
use crate::error::Error;
use crate::records::{Kept, body};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use stepwell_core::time::Time;
use stepwell_store::OrgId;

#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Switches {
    /// Overrides `enabled` of the definition.
    #[serde(default)]
    pub enabled: Option<bool>,
    /// New runs wait in the queue until the workflow is resumed.
    #[serde(default)]
    pub paused: Option<Pause>,
    /// The same for individual concurrency keys, by concurrency group.
    #[serde(default)]
    pub paused_keys: BTreeMap<String, Pause>,
    /// The set of definitions that the workflow belongs to: `apply --prune` deletes what its set no longer has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Pause {
    pub by: String,
    pub since: Time,
    /// The concurrency key, if only its runs are held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<serde_json::Value>,
}

impl Kept for Switches {
    const KIND: &'static str = "workflow";
}

impl Switches {
    /// The pause that holds runs of this concurrency group, if any.
    pub fn hold(&self, group: Option<&str>) -> Option<&Pause> {
        self.paused.as_ref().or_else(|| group.and_then(|group| self.paused_keys.get(group)))
    }
}

impl Access {
    /// The switches of a workflow, cached until the organisation's epoch changes.
    pub async fn switches(&self, org: OrgId, workflow: &str) -> Result<Arc<Switches>, Error> {
        let epoch = self.epoch(org).await?;
        let name = workflow.to_string();
        if let Some(known) = self.switches.get(&name, epoch) {
            return Ok(known);
        }
        let record = self.cluster.store.record(Switches::KIND, workflow).await?;
        let found = Arc::new(record.map(|record| body::<Switches>(&record)).transpose()?.unwrap_or_default());
        self.switches.put(name, epoch, found.clone());
        Ok(found)
    }

    /// Whether runs in this concurrency group's queue are held.
    pub async fn is_held(&self, org: OrgId, group: &str) -> Result<bool, Error> {
        let workflow = group.split(':').next().unwrap_or(group);
        Ok(self.switches(org, workflow).await?.hold(Some(group)).is_some())
    }
}
