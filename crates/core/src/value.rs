//! Payloads of a run: inputs, results, messages. Insert-only and numbered, so state and log refer to them by number and
//! the cost of a decision does not depend on their size.

use crate::template::{Resolved, SecretSlot};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ValueId(pub u32);

/// A value, with the places in it that a secret fills at the moment of a call.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Payload {
    pub value: Arc<Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<SecretSlot>,
}

impl From<Value> for Payload {
    fn from(value: Value) -> Payload {
        Payload { value: Arc::new(value), secrets: Vec::new() }
    }
}

impl From<Arc<Value>> for Payload {
    fn from(value: Arc<Value>) -> Payload {
        Payload { value, secrets: Vec::new() }
    }
}

impl From<Resolved> for Payload {
    fn from(resolved: Resolved) -> Payload {
        Payload { value: resolved.value, secrets: resolved.secrets }
    }
}

/// The payloads of one run that are in memory. One that was purged or not loaded reads as absent.
#[derive(Clone, Default, Debug)]
pub struct Values {
    list: Vec<Option<Payload>>,
}

impl Values {
    pub fn get(&self, id: ValueId) -> Option<&Value> {
        self.payload(id).map(|payload| &*payload.value)
    }

    pub fn payload(&self, id: ValueId) -> Option<&Payload> {
        self.list.get(id.0 as usize)?.as_ref()
    }

    /// Puts a payload loaded from a store back in its place.
    pub fn put(&mut self, id: ValueId, payload: Payload) {
        self.reserve(id);
        self.list[id.0 as usize] = Some(payload);
    }

    /// Numbers are never used twice: one seen in the log is taken even when its payload is not loaded.
    pub(crate) fn reserve(&mut self, id: ValueId) {
        if self.list.len() <= id.0 as usize {
            self.list.resize(id.0 as usize + 1, None);
        }
    }

    pub(crate) fn add(&mut self, payload: Payload) -> ValueId {
        self.list.push(Some(payload));
        ValueId(self.list.len() as u32 - 1)
    }
}
