//! Backpressure on child runs: the notices in hand, the starts in flight per organisation, and the parents whose
//! children wait for a place under the plan.
//!
//! Only hints are kept here. A child that waits is a notice in the store, which polling finds if this process does not.

use super::Runner;
use super::messages::Message;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use stepwell_store::{OrgId, RunId};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Children of one organisation that this node starts at the same time. The others wait, so that the commits of one
/// organisation's starts never fill the store's queue.
const MAX_STARTS_PER_ORG: usize = 32;

#[derive(Default)]
pub struct ChildStarts {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    in_hand: BTreeSet<(RunId, String)>,
    by_org: BTreeMap<OrgId, OrgStarts>,
}

struct OrgStarts {
    permits: Arc<Semaphore>,
    /// How often a place may have become free.
    freed: u64,
    /// Parents with children that wait for a place.
    waiting: BTreeSet<RunId>,
}

impl Default for OrgStarts {
    fn default() -> OrgStarts {
        OrgStarts { permits: Arc::new(Semaphore::new(MAX_STARTS_PER_ORG)), freed: 0, waiting: BTreeSet::new() }
    }
}

impl ChildStarts {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it holds the starts of children")
    }

    /// Waits until the organisation may start another child. `None` only if the process ends.
    pub async fn permit(&self, org: OrgId) -> Option<OwnedSemaphorePermit> {
        let permits = self.state().by_org.entry(org).or_default().permits.clone();
        permits.acquire_owned().await.ok()
    }

    /// Read before a start is tried; see [`ChildStarts::wait`].
    pub fn freed(&self, org: OrgId) -> u64 {
        self.state().by_org.entry(org).or_default().freed
    }

    /// Remembers that children of the run wait for a place. False if a place may have become free since `freed` was
    /// read: then the start must be tried again.
    pub fn wait(&self, org: OrgId, parent: RunId, freed: u64) -> bool {
        let mut state = self.state();
        let starts = state.by_org.entry(org).or_default();
        let unchanged = starts.freed == freed;
        if unchanged {
            starts.waiting.insert(parent);
        }
        unchanged
    }

    /// The run to wake because a place may be free: this parent if it waits, otherwise the newest that does.
    fn next(&self, org: OrgId, parent: Option<RunId>) -> Option<RunId> {
        let mut state = self.state();
        let starts = state.by_org.get_mut(&org)?;
        starts.freed += 1;
        match parent.filter(|parent| starts.waiting.remove(parent)) {
            Some(parent) => Some(parent),
            None => starts.waiting.pop_last(),
        }
    }
}

impl Runner {
    /// Lets a child that waits for a place under the organisation's plan try again, after a run with this parent has
    /// ended or a start was not needed. Depth first: it ends what has begun before it begins more.
    pub fn place_freed(self: &Arc<Runner>, org: OrgId, parent: Option<RunId>) {
        if let Some(waiting) = self.child_starts.next(org, parent) {
            self.send(waiting, Message::PlaceFreed);
        }
    }
}

/// A notice that this process handles, so that polling does not begin to handle it again.
pub struct InHand {
    runner: Arc<Runner>,
    run: RunId,
    pub key: String,
}

impl InHand {
    /// `None` if the notice is in hand already.
    pub fn take(runner: &Arc<Runner>, run: RunId, key: String) -> Option<InHand> {
        let new = runner.child_starts.state().in_hand.insert((run, key.clone()));
        new.then(|| InHand { runner: runner.clone(), run, key })
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        let name = (self.run, std::mem::take(&mut self.key));
        self.runner.child_starts.state().in_hand.remove(&name);
    }
}
