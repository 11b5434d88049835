//! Connection pools: a few connections per database, closed after some idle time.
//!
//! The holder of a lease may use one connection, idle or new. It returns the connection if that is known to be clean,
//! and drops it otherwise. Dropping the lease frees its permit.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use stepwell_store::OrgId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// Connections per pool. Further callers wait.
const MAX_CONNECTIONS: usize = 8;
/// Idle time after which a connection is closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// What identifies a pool. Writers have their own, so that readers never meet session state that a writer left behind.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Key {
    pub org: OrgId,
    /// The connection's identity, not its name: a connection that was removed and created again is another one.
    pub connection: [u8; 32],
    pub write: bool,
}

pub struct Pools<C> {
    pools: Mutex<HashMap<Key, Arc<Pool<C>>>>,
    sweeping: AtomicBool,
}

struct Pool<C> {
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<(C, Instant)>>,
}

impl<C> Default for Pools<C> {
    fn default() -> Pools<C> {
        Pools { pools: Mutex::default(), sweeping: AtomicBool::new(false) }
    }
}

pub struct Lease<C> {
    pool: Arc<Pool<C>>,
    _permit: OwnedSemaphorePermit,
}

impl<C: Send + 'static> Pools<C> {
    pub async fn lease(self: &Arc<Self>, key: Key) -> Lease<C> {
        let pool = self.pools().entry(key).or_default().clone();
        let permit = pool.permits.clone().acquire_owned().await.expect("it is never closed");
        if !self.sweeping.swap(true, Ordering::SeqCst) {
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
        Lease { pool, _permit: permit }
    }

    fn pools(&self) -> MutexGuard<'_, HashMap<Key, Arc<Pool<C>>>> {
        self.pools.lock().expect("nothing panics while it holds the pools")
    }
}

/// Closes idle connections, until there are no pools left.
async fn sweep<C: Send + 'static>(pools: std::sync::Weak<Pools<C>>) {
    loop {
        tokio::time::sleep(IDLE_TIMEOUT / 2).await;
        let Some(pools) = pools.upgrade() else { return };
        let mut all = pools.pools();
        all.retain(|_, pool| {
            pool.idle().retain(|(_, since)| since.elapsed() < IDLE_TIMEOUT);
            // A lease holds a reference to its pool, taken under the lock of the map.
            Arc::strong_count(pool) > 1 || !pool.idle().is_empty()
        });
        if all.is_empty() {
            // Set under the lock, so that the next caller starts a new sweeper.
            pools.sweeping.store(false, Ordering::SeqCst);
            return;
        }
    }
}

impl<C> Default for Pool<C> {
    fn default() -> Pool<C> {
        Pool { permits: Arc::new(Semaphore::new(MAX_CONNECTIONS)), idle: Mutex::default() }
    }
}

impl<C> Pool<C> {
    fn idle(&self) -> MutexGuard<'_, Vec<(C, Instant)>> {
        self.idle.lock().expect("nothing panics while it holds the connections")
    }
}

impl<C> Lease<C> {
    /// Takes the most recently used connection, so that the others can expire.
    pub fn take_idle(&self) -> Option<C> {
        self.pool.idle().pop().map(|(connection, _)| connection)
    }

    pub fn put_back(self, connection: C) {
        self.pool.idle().push((connection, Instant::now()));
    }
}
