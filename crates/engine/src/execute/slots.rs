//! How many attempts may run at a time on this node, and whose turn it is.
//!
//! A new step takes a slot at once if one is free and nobody else waits: it is born claimed. Otherwise it is born ready, and
//! slots are given out by the store, round robin over organisations. So is every step where organisations have limits and
//! other nodes execute for them, too: only the store knows how much they have.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use stepwell_store::{Claim, NodeId, OrgId, Work};
use tokio::sync::Notify;

pub struct Slots {
    per_org: Option<u32>,
    /// Steps can be born claimed.
    born: bool,
    state: Mutex<State>,
    /// There may be something to claim.
    pub wanted: Notify,
}

struct State {
    /// Below zero for as long as the store gave this node more than there is room for, as it may after a lost answer.
    free: i64,
    /// Running here, by organisation.
    held: BTreeMap<OrgId, u32>,
    /// The store has, or may have, ready work that nobody claimed.
    backlog: bool,
    /// Another node has left work ready. Steps of this node may still be born claimed: it has room, or could not ask.
    elsewhere: bool,
    /// How often work was left ready: a claim that was under way then may not have seen it.
    left: u64,
    last: OrgId,
    closed: bool,
}

impl Slots {
    pub fn new(slots: u32, per_org: Option<u32>, born: bool) -> Slots {
        let state = State {
            free: slots.into(),
            held: BTreeMap::new(),
            backlog: true,
            elsewhere: false,
            left: 0,
            last: OrgId(0),
            closed: false,
        };
        Slots { per_org, born, state: Mutex::new(state), wanted: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it holds the slots")
    }

    /// Gives new work to this node as far as there is room and nobody waits.
    pub fn assign(&self, node: NodeId, work: &mut [Work]) {
        if work.is_empty() || !self.born {
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

    /// Whether work can be left ready because its organisation runs enough already: then the store has to be asked again
    /// each time it learns that some of it has ended, which is later than the slot is free.
    pub fn limits_orgs(&self) -> bool {
        self.per_org.is_some()
    }

    /// Some work was written unclaimed, or may be claimed now.
    pub fn left_ready(&self) {
        let mut state = self.state();
        state.backlog = true;
        state.left += 1;
        drop(state);
        self.wanted.notify_one();
    }

    /// The same on another node.
    pub fn left_elsewhere(&self) {
        let mut state = self.state();
        state.elsewhere = true;
        state.left += 1;
        drop(state);
        self.wanted.notify_one();
    }

    /// Whether this node will take work that is left ready.
    pub fn has_room(&self) -> bool {
        let state = self.state();
        state.free > 0 && !state.closed
    }

    /// What can be asked of the store now.
    pub fn claim(&self, node: NodeId) -> Option<Asked> {
        let state = self.state();
        let wanted = (state.backlog || state.elsewhere) && state.free > 0 && !state.closed;
        let claim = Claim { node, limit: state.free.max(0) as u32, after: state.last, per_org: self.per_org };
        wanted.then_some(Asked { claim, left: state.left })
    }

    /// Takes slots for what the store gave. Less than was asked for means that nothing is left for now; true otherwise.
    pub fn claimed(&self, asked: Asked, given: impl ExactSizeIterator<Item = OrgId>) -> bool {
        let mut state = self.state();
        state.elsewhere = false;
        state.backlog = given.len() >= asked.claim.limit as usize || state.left != asked.left;
        for org in given {
            state.take(org);
            state.last = org;
        }
        state.backlog
    }

    /// For an attempt that the store already gave to this node.
    pub fn take(&self, org: OrgId) {
        self.state().take(org);
    }

    pub fn release(&self, org: OrgId) {
        let mut state = self.state();
        state.free += 1;
        let held = state.held.entry(org).or_default();
        // What is left ready may have waited for just this slot of its organisation.
        let was_full = self.per_org == Some(*held);
        *held = held.saturating_sub(1);
        state.backlog |= was_full;
        let wake = state.backlog;
        drop(state);
        if wake {
            self.wanted.notify_one();
        }
    }

    /// No more work is taken.
    pub fn close(&self) {
        self.state().closed = true;
    }
}

/// A claim under way.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    pub claim: Claim,
    left: u64,
}

impl State {
    fn take(&mut self, org: OrgId) {
        self.free -= 1;
        *self.held.entry(org).or_default() += 1;
    }
}
