//! What was looked up lately, for as long as the organisation's epoch stands.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard};

/// Entries kept at the most; then all are looked up again.
const MOST: usize = 10_000;

pub struct ByEpoch<K, V> {
    known: Mutex<HashMap<K, (V, i64)>>,
}

impl<K, V> Default for ByEpoch<K, V> {
    fn default() -> ByEpoch<K, V> {
        ByEpoch { known: Mutex::default() }
    }
}

impl<K: Eq + Hash, V: Clone> ByEpoch<K, V> {
    fn known(&self) -> MutexGuard<'_, HashMap<K, (V, i64)>> {
        self.known.lock().expect("nothing panics while it holds what is known")
    }

    /// As it was looked up in this epoch.
    pub fn get(&self, key: &K, epoch: i64) -> Option<V> {
        self.known().get(key).filter(|(_, of)| *of == epoch).map(|(value, _)| value.clone())
    }

    /// The epoch must have been read before the value.
    pub fn put(&self, key: K, epoch: i64, value: V) {
        let mut known = self.known();
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(key, (value, epoch));
    }
}
