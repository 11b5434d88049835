//! Payloads of a run: inputs, results, messages. They are insert-only and numbered: state and log refer to them by
//! number, so the cost of a decision does not depend on their size.

use crate::event::Failure;
use crate::limits;
use crate::template::{Resolved, SecretSlot};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ValueId(pub u32);

/// A JSON value and the slots in it that are filled with secrets when the call is made.
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

/// The approximate size of a `Value` in memory.
pub(crate) const VALUE_WEIGHT: usize = 32;

/// What a value weighs: bytes of text, plus [`VALUE_WEIGHT`] per value. Payloads are counted by weight, because a list
/// of small numbers takes far more memory than its JSON has bytes. Recursion is bounded by the depth of values
/// ([`limits::MAX_PAYLOAD_DEPTH`]).
pub fn weight(value: &Value) -> usize {
    VALUE_WEIGHT
        + match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(weight).sum(),
            Value::Object(map) => map.iter().map(|(key, item)| key.len() + weight(item)).sum(),
        }
}

/// The payloads of one run that are in memory. A payload that was purged or not loaded reads as absent.
#[derive(Clone, Default, Debug)]
pub struct Values {
    list: Vec<Option<Payload>>,
    /// The weight of all payloads that the run ever got, whether or not they are in memory.
    weight: u64,
}

impl Values {
    pub fn get(&self, id: ValueId) -> Option<&Value> {
        self.payload(id).map(|payload| &*payload.value)
    }

    pub fn payload(&self, id: ValueId) -> Option<&Payload> {
        self.list.get(id.0 as usize)?.as_ref()
    }

    /// Inserts a payload loaded from the store under its number.
    pub fn put(&mut self, id: ValueId, payload: Payload) {
        self.reserve(id);
        self.list[id.0 as usize] = Some(payload);
    }

    /// Marks a number as used. Numbers are never reused: one seen in the log is taken even if its payload is not
    /// loaded.
    pub(crate) fn reserve(&mut self, id: ValueId) {
        if self.list.len() <= id.0 as usize {
            self.list.resize(id.0 as usize + 1, None);
        }
    }

    pub(crate) fn reserve_all(&mut self, count: u32) {
        if self.list.len() < count as usize {
            self.list.resize(count as usize, None);
        }
    }

    /// How many numbers are in use.
    pub(crate) fn count(&self) -> u32 {
        self.list.len() as u32
    }

    pub(crate) fn add(&mut self, payload: Payload) -> ValueId {
        self.weight += weight(&payload.value) as u64;
        self.list.push(Some(payload));
        ValueId(self.list.len() as u32 - 1)
    }
}

impl Values {
    /// The weight of all payloads that the run ever got; see [`weight`].
    pub fn weight(&self) -> u64 {
        self.weight
    }

    /// Sets the weight from a snapshot, or counts what was put if there is none.
    pub(crate) fn set_weight(&mut self, known: Option<u64>) {
        let count = || self.list.iter().flatten().map(|payload| weight(&payload.value) as u64).sum();
        self.weight = known.unwrap_or_else(count);
    }
}

/// Rejects a value, assembled from other values, that is too large or too deeply nested to be stored and read back.
pub fn check_size(value: &Value) -> Result<(), Failure> {
    let mut bytes = 0usize;
    let mut todo = vec![(value, 1usize)];
    while let Some((value, depth)) = todo.pop() {
        bytes += 4;
        match value {
            Value::Array(list) => todo.extend(list.iter().map(|item| (item, depth + 1))),
            Value::Object(fields) => {
                bytes += fields.keys().map(|key| key.len() + 3).sum::<usize>();
                todo.extend(fields.values().map(|field| (field, depth + 1)));
            }
            Value::String(text) => bytes += text.len(),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        let what = match (depth > limits::MAX_PAYLOAD_DEPTH, bytes > limits::MAX_PAYLOAD_BYTES) {
            (true, _) => format!("nested more than {} deep", limits::MAX_PAYLOAD_DEPTH),
            (_, true) => format!("longer than {} bytes", limits::MAX_PAYLOAD_BYTES),
            _ => continue,
        };
        return Err(Failure::new("too_large", format!("the value would be {what}")));
    }
    Ok(())
}
