//! What can be switched about a workflow without a new version of it: whether it is enabled, and whether its runs are held.

use crate::engine::Inner;
use crate::error::Error;
use crate::people::{Kept, body};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use stepwell_core::time::Time;
use stepwell_store::OrgId;

#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Switches {
    /// Instead of what the definition says.
    #[serde(default)]
    pub enabled: Option<bool>,
    /// New runs wait in the queue until this is lifted.
    #[serde(default)]
    pub paused: Option<Pause>,
    /// The same for single concurrency keys, by place.
    #[serde(default)]
    pub paused_keys: BTreeMap<String, Pause>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Pause {
    pub by: String,
    pub since: Time,
    /// The concurrency key, if only that is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<serde_json::Value>,
}

impl Kept for Switches {
    const KIND: &'static str = "workflow";
}

impl Switches {
    /// Why a run that counts against this place has to wait.
    pub fn hold(&self, place: Option<&str>) -> Option<&Pause> {
        self.paused.as_ref().or_else(|| place.and_then(|place| self.paused_keys.get(place)))
    }
}

pub async fn switches(inner: &Inner, org: OrgId, workflow: &str) -> Result<Arc<Switches>, Error> {
    let epoch = inner.epoch(org).await?;
    let name = workflow.to_string();
    if let Some(known) = inner.switches.get(&name, epoch) {
        return Ok(known);
    }
    let record = inner.store.record(Switches::KIND, workflow).await?;
    let found = Arc::new(record.map(|record| body::<Switches>(&record)).transpose()?.unwrap_or_default());
    inner.switches.put(name, epoch, found.clone());
    Ok(found)
}

/// Whether runs that queue for this place are held.
pub async fn is_held(inner: &Inner, org: OrgId, place: &str) -> Result<bool, Error> {
    let workflow = place.split(':').next().unwrap_or(place);
    Ok(switches(inner, org, workflow).await?.hold(Some(place)).is_some())
}
