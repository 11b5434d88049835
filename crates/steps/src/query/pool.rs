//! Connections that are kept for the next step: a few for each database, for a while.
//!
//! Whoever has a lease may have one connection, a kept one or a new one. It goes back when it is known to be as good as new,
//! and else it is dropped; the place becomes free with the lease.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use stepwell_store::OrgId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// Connections at a time, for each key. A burst waits for them.
const CONNECTIONS: usize = 8;
/// After which nobody seems to need it.
const IDLE: Duration = Duration::from_secs(60);

/// What may share connections. Those that write are kept apart, so that nothing they leave behind is met by readers.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Key {
    pub org: OrgId,
    pub name: String,
    pub version: i64,
    pub write: bool,
}

pub struct Pools<C> {
    pools: Mutex<HashMap<Key, Arc<Pool<C>>>>,
    sweeping: AtomicBool,
}

struct Pool<C> {
    places: Arc<Semaphore>,
    kept: Mutex<Vec<(C, Instant)>>,
}

impl<C> Default for Pools<C> {
    fn default() -> Pools<C> {
        Pools { pools: Mutex::default(), sweeping: AtomicBool::new(false) }
    }
}

pub struct Lease<C> {
    pool: Arc<Pool<C>>,
    _place: OwnedSemaphorePermit,
}

impl<C: Send + 'static> Pools<C> {
    pub async fn lease(self: &Arc<Self>, key: Key) -> Lease<C> {
        let pool = self.pools().entry(key).or_default().clone();
        let place = pool.places.clone().acquire_owned().await.expect("it is never closed");
        if !self.sweeping.swap(true, Ordering::SeqCst) {
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
        Lease { pool, _place: place }
    }

    fn pools(&self) -> MutexGuard<'_, HashMap<Key, Arc<Pool<C>>>> {
        self.pools.lock().expect("nothing panics while it holds the pools")
    }
}

/// Closes what is not used, for as long as there is anything.
async fn sweep<C: Send + 'static>(pools: std::sync::Weak<Pools<C>>) {
    loop {
        tokio::time::sleep(IDLE / 2).await;
        let Some(pools) = pools.upgrade() else { return };
        let mut all = pools.pools();
        all.retain(|_, pool| {
            pool.kept().retain(|(_, since)| since.elapsed() < IDLE);
            // Whoever leases takes it from the map first.
            Arc::strong_count(pool) > 1 || !pool.kept().is_empty()
        });
        if all.is_empty() {
            // Under the lock: whoever comes next finds it so.
            pools.sweeping.store(false, Ordering::SeqCst);
            return;
        }
    }
}

impl<C> Default for Pool<C> {
    fn default() -> Pool<C> {
        Pool { places: Arc::new(Semaphore::new(CONNECTIONS)), kept: Mutex::default() }
    }
}

impl<C> Pool<C> {
    fn kept(&self) -> MutexGuard<'_, Vec<(C, Instant)>> {
        self.kept.lock().expect("nothing panics while it holds the connections")
    }
}

impl<C> Lease<C> {
    /// The one that was used last, so that the others can grow old.
    pub fn kept(&self) -> Option<C> {
        self.pool.kept().pop().map(|(connection, _)| connection)
    }

    pub fn give_back(self, connection: C) {
        self.pool.kept().push((connection, Instant::now()));
    }
}
