//! A cache of lookups. An entry is valid until the organisation's epoch changes.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard};

/// The most entries. A full cache is cleared.
const MOST: usize = 10_000;

pub struct ByEpoch<K, V> {
    entries: Mutex<HashMap<K, (V, i64)>>,
}

impl<K, V> Default for ByEpoch<K, V> {
    fn default() -> ByEpoch<K, V> {
        ByEpoch { entries: Mutex::default() }
    }
}

impl<K: Eq + Hash, V: Clone> ByEpoch<K, V> {
    fn entries(&self) -> MutexGuard<'_, HashMap<K, (V, i64)>> {
        self.entries.lock().expect("no thread panics while it holds the lock on the cache")
    }

    /// The value that was cached in this epoch.
    pub fn get(&self, key: &K, epoch: i64) -> Option<V> {
        self.entries().get(key).filter(|(_, cached_in)| *cached_in == epoch).map(|(value, _)| value.clone())
    }

    /// Caches a value. The epoch must have been read before the value.
    pub fn put(&self, key: K, epoch: i64, value: V) {
        let mut entries = self.entries();
        if entries.len() >= MOST {
            entries.clear();
        }
        entries.insert(key, (value, epoch));
    }
}
