//! The slots of this node: how many attempts may run at the same time, and which attempt is next.
//!
//! A new attempt is written as claimed if a slot is free and no other work waits. Otherwise it is written as ready, and
//! the store assigns slots, round robin over organisations. If organisations have limits and several nodes execute
//! their work, all attempts are written as ready: only the store knows how many of an organisation's attempts run.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use stepwell_store::{Claim, NodeId, OrgId, Work};
use tokio::sync::Notify;

pub struct Slots {
    per_org: Option<u32>,
    /// Whether new attempts may be written as claimed.
    claim_new: bool,
    state: Mutex<State>,
    /// Notified when there may be work to claim.
    pub wanted: Notify,
}

struct State {
    /// Negative while this node holds more attempts than slots, which can happen after a lost response of the store.
    free: i64,
    /// Attempts that run here, by organisation.
    held: BTreeMap<OrgId, u32>,
    /// The store has, or may have, unclaimed ready work.
    backlog: bool,
    /// Another node has left work ready. New attempts of this node may still be written as claimed: a slot is free, or
    /// the store could not be queried.
    elsewhere: bool,
    /// How often work was left ready. A claim that was in flight at the time may not have included that work.
    left_count: u64,
    last_org: OrgId,
    closed: bool,
}

impl Slots {
    pub fn new(slots: u32, per_org: Option<u32>, claim_new: bool) -> Slots {
        let state = State {
            free: slots.into(),
            held: BTreeMap::new(),
            backlog: true,
            elsewhere: false,
            left_count: 0,
            last_org: OrgId(0),
            closed: false,
        };
        Slots { per_org, claim_new, state: Mutex::new(state), wanted: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it holds the slots")
    }

    /// Assigns new work to this node while slots are free and no other work waits.
    pub fn assign(&self, node: NodeId, work: &mut [Work]) {
        if work.is_empty() || !self.claim_new {
            return;
        }
        let mut state = self.state();
        for work in work {
            let held = state.held.get(&work.org).copied().unwrap_or_default();
            let room = state.free > 0 && self.per_org.is_none_or(|most| held < most);
            if room && !state.backlog && !state.closed {
                state.take(work.org);
                work.node = Some(node);
            }
        }
    }

    /// Whether work can be left ready because its organisation has reached its limit. Then the store has to be queried
    /// again each time a commit ends such work, which is later than the release of the slot.
    pub fn limits_orgs(&self) -> bool {
        self.per_org.is_some()
    }

    /// Called when work was written unclaimed, or can be claimed now.
    pub fn left_ready(&self) {
        let mut state = self.state();
        state.backlog = true;
        state.left_count += 1;
        drop(state);
        self.wanted.notify_one();
    }

    /// Like [`Slots::left_ready`], for work of another node.
    pub fn left_elsewhere(&self) {
        let mut state = self.state();
        state.elsewhere = true;
        state.left_count += 1;
        drop(state);
        self.wanted.notify_one();
    }

    /// Whether this node will claim ready work.
    pub fn has_room(&self) -> bool {
        let state = self.state();
        state.free > 0 && !state.closed
    }

    /// The claim to make now, if any.
    pub fn claim(&self, node: NodeId) -> Option<PendingClaim> {
        let state = self.state();
        let wanted = (state.backlog || state.elsewhere) && state.free > 0 && !state.closed;
        let claim = Claim { node, limit: state.free.max(0) as u32, after: state.last_org, per_org: self.per_org };
        wanted.then_some(PendingClaim { claim, left_count: state.left_count })
    }

    /// Takes slots for the claimed work. True if the store may have more: the claim's limit was reached.
    pub fn claimed(&self, pending: PendingClaim, given: impl ExactSizeIterator<Item = OrgId>) -> bool {
        let mut state = self.state();
        state.elsewhere = false;
        state.backlog = given.len() >= pending.claim.limit as usize || state.left_count != pending.left_count;
        for org in given {
            state.take(org);
            state.last_org = org;
        }
        state.backlog
    }

    /// Takes a slot for an attempt that this node has already claimed.
    pub fn take(&self, org: OrgId) {
        self.state().take(org);
    }

    /// Releases the slot of an attempt.
    pub fn release(&self, org: OrgId) {
        let mut state = self.state();
        state.free += 1;
        let held = state.held.entry(org).or_default();
        // Ready work may have waited for a slot of this organisation.
        let was_full = self.per_org == Some(*held);
        *held = held.saturating_sub(1);
        state.backlog |= was_full;
        let wake = state.backlog;
        drop(state);
        if wake {
            self.wanted.notify_one();
        }
    }

    /// Stops claiming work.
    pub fn close(&self) {
        self.state().closed = true;
    }
}

/// A claim in flight.
#[derive(Clone, Copy, Debug)]
pub struct PendingClaim {
    pub claim: Claim,
    left_count: u64,
}

impl State {
    fn take(&mut self, org: OrgId) {
        self.free -= 1;
        *self.held.entry(org).or_default() += 1;
    }
}
