//! A cache of the epochs of organisations. On a shared store an entry expires soon, because other processes change
//! epochs too.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use stepwell_store::OrgId;
use tokio::time::Instant;

/// How long a cached epoch is valid on a shared store.
const VALID_FOR: Duration = Duration::from_secs(1);

pub struct Epochs {
    shared: bool,
    entries: Mutex<BTreeMap<OrgId, Epoch>>,
}

/// The cached epoch of an organisation.
#[derive(Clone, Copy, Default)]
struct Epoch {
    /// With the time just before it was read.
    number: Option<(i64, Instant)>,
    /// How often the entry was invalidated.
    invalidations: u64,
}

/// A pending read of an epoch from the store.
pub struct Lookup {
    org: OrgId,
    at: Instant,
    invalidations: u64,
}

impl Epochs {
    pub fn new(shared: bool) -> Epochs {
        Epochs { shared, entries: Mutex::default() }
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<OrgId, Epoch>> {
        self.entries.lock().expect("no thread panics while it holds the lock on epochs")
    }

    /// The cached epoch, or the lookup to make in the store.
    pub fn get(&self, org: OrgId) -> Result<i64, Lookup> {
        let epoch = self.entries().get(&org).copied().unwrap_or_default();
        let at = Instant::now();
        match epoch.number {
            Some((number, since)) if !self.shared || at - since < VALID_FOR => Ok(number),
            _ => Err(Lookup { org, at, invalidations: epoch.invalidations }),
        }
    }

    /// Caches the result of a lookup, unless the entry was invalidated since the lookup began: then the result may be
    /// stale.
    pub fn store(&self, lookup: Lookup, number: i64) {
        let mut entries = self.entries();
        let epoch = entries.entry(lookup.org).or_default();
        if epoch.invalidations == lookup.invalidations {
            epoch.number = Some((number, lookup.at));
        }
    }

    pub fn invalidate(&self, org: OrgId) {
        self.entries().entry(org).or_default().invalidate();
    }

    pub fn invalidate_all(&self) {
        self.entries().values_mut().for_each(Epoch::invalidate);
    }
}

impl Epoch {
    fn invalidate(&mut self) {
        *self = Epoch { number: None, invalidations: self.invalidations + 1 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORG: OrgId = OrgId(1);

    fn cached(shared: bool) -> Epochs {
        let epochs = Epochs::new(shared);
        let lookup = epochs.get(ORG).expect_err("the cache is empty");
        epochs.store(lookup, 7);
        assert_eq!(epochs.get(ORG).ok(), Some(7));
        epochs
    }

    #[tokio::test(start_paused = true)]
    async fn on_a_shared_store_an_epoch_is_cached_for_a_second() {
        let (shared, own) = (cached(true), cached(false));
        tokio::time::advance(VALID_FOR).await;
        assert_eq!(shared.get(ORG).ok(), None);
        assert_eq!(own.get(ORG).ok(), Some(7));
    }

    #[tokio::test(start_paused = true)]
    async fn a_lookup_that_began_before_an_invalidation_is_not_cached() {
        for invalidate in [|epochs: &Epochs| epochs.invalidate(ORG), |epochs: &Epochs| epochs.invalidate_all()] {
            let epochs = cached(false);
            invalidate(&epochs);
            let lookup = epochs.get(ORG).expect_err("the entry was invalidated");
            invalidate(&epochs);
            epochs.store(lookup, 8);
            assert_eq!(epochs.get(ORG).ok(), None);
        }
    }
}
