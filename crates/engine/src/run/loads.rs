//! Memory for the payloads of runs that are read from the store. Without it, a few requests for large runs, or a few
//! large runs that continue at the same moment, would fill the memory of the process.
//!
//! What fits into [`SMALL`] is read at once. More waits until the runs that are being read leave room for it. An
//! organisation gets a part of the room only, so that others do not wait behind its runs.

use crate::error::Error;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use stepwell_store::OrgId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes of payloads that are read without waiting for room.
pub const SMALL: u64 = 256 << 10;
/// Kilobytes of memory for larger payloads of all organisations, and of one.
const ROOM: u32 = 1 << 20;
const SHARE: u32 = ROOM / 2;
/// What a value takes in memory: its text, the tree that is read from it, and a copy to show.
const TIMES: u64 = 4;
/// Bytes of payloads that are read on a thread of the runtime.
const AT_ONCE: usize = 1 << 20;
/// How long a run waits for room. It must not wait for ever: the run that has the room may wait for this one.
const PATIENCE: Duration = Duration::from_secs(10);

pub struct Loads {
    room: Arc<Semaphore>,
    /// Only of organisations that use some.
    shares: Mutex<BTreeMap<OrgId, Arc<Semaphore>>>,
}

/// Room for payloads, until it is dropped.
#[derive(Clone, Default, Debug)]
pub struct Room(#[allow(dead_code, reason = "held for its memory")] Option<Arc<[OwnedSemaphorePermit; 2]>>);

/// Room is not part of what is compared.
impl PartialEq for Room {
    fn eq(&self, _: &Room) -> bool {
        true
    }
}

impl Default for Loads {
    fn default() -> Loads {
        Loads { room: Arc::new(Semaphore::new(ROOM as usize)), shares: Mutex::default() }
    }
}

impl Loads {
    /// Waits until there is room for payloads of so many bytes. A run that is larger than the share of its organisation
    /// gets all of that. Fails as a store that does not answer, so that callers try again.
    pub async fn room(&self, org: OrgId, bytes: u64) -> Result<Room, Error> {
        if bytes <= SMALL {
            return Ok(Room::default());
        }
        let needed = u32::try_from(bytes.saturating_mul(TIMES) / 1_024).map_or(SHARE, |needed| needed.min(SHARE));
        let acquired = async {
            // First in its own organisation: at most a few requests of each wait in the common queue.
            let own = self.share(org).acquire_many_owned(needed).await.ok()?;
            let all = self.room.clone().acquire_many_owned(needed).await.ok()?;
            Some(Arc::new([own, all]))
        };
        let late = |_| Error::Unavailable("the memory for large runs is in use; try again".into());
        tokio::time::timeout(PATIENCE, acquired).await.map(Room).map_err(late)
    }

    fn share(&self, org: OrgId) -> Arc<Semaphore> {
        let mut shares = self.shares.lock().expect("nothing panics while it holds the shares");
        // Permits and waiting requests hold a reference.
        shares.retain(|of, share| *of == org || Arc::strong_count(share) > 1);
        shares.entry(org).or_insert_with(|| Arc::new(Semaphore::new(SHARE as usize))).clone()
    }
}

/// Does work on so many bytes on another thread if they are many.
pub async fn read_apart<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    if bytes <= AT_ONCE {
        return Ok(work());
    }
    tokio::task::spawn_blocking(work).await.map_err(|error| match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        // Only when the process ends.
        Err(error) => Error::Unavailable(error.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    const LARGE: u64 = 128 << 20;

    #[tokio::test(start_paused = true)]
    async fn large_runs_of_an_organisation_are_read_one_after_the_other_and_those_of_others_beside_them() {
        let loads = Loads::default();
        let first = loads.room(OrgId(1), LARGE).await.unwrap();
        assert!(loads.room(OrgId(1), LARGE).now_or_never().is_none(), "the organisation has its share");
        assert!(loads.room(OrgId(1), SMALL).now_or_never().is_some(), "small runs do not wait");
        let other = loads.room(OrgId(2), LARGE).now_or_never();
        assert!(other.is_some(), "the rest is for others");
        drop(first);
        assert!(loads.room(OrgId(1), LARGE).now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_does_not_wait_for_ever_and_is_not_read_without_room() {
        let loads = Loads::default();
        let _first = loads.room(OrgId(1), LARGE).await;
        let begun = tokio::time::Instant::now();
        assert!(matches!(loads.room(OrgId(1), u64::MAX).await, Err(Error::Unavailable(_))));
        assert_eq!(begun.elapsed(), PATIENCE);
    }

    #[tokio::test(start_paused = true)]
    async fn organisations_that_read_nothing_are_forgotten() {
        let loads = Loads::default();
        for org in 1..100 {
            drop(loads.room(OrgId(org), LARGE).await);
        }
        assert_eq!(loads.shares.lock().unwrap().len(), 1);
    }
}
