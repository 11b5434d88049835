//! The slots of this node: how many attempts may run at the same time, and which attempt is next.
//!
//! A new attempt is written as claimed if a slot is free and no other work waits. Otherwise it is written as ready, and
//! the store assigns slots: the organisation with the fewest attempts on this node is next, so that organisations with
//! ready work end up with equal shares. If organisations have limits and several nodes execute their work, all attempts
//! are written as ready: only the store knows how many of an organisation's attempts run.
//!
//! One organisation alone may use all slots, for as long as its attempts take. So that others can start all the same,
//! there is a reserve beyond the slots. Only organisations with few attempts here may use it: fewer than a quarter of
//! what is left of the reserve, so that it is never used up by a few of them.

use crate::run::{Slot, SlotPool};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use stepwell_store::{Claim, NodeId, OrgId, Work};
use tokio::sync::Notify;

/// The reserve is the number of slots divided by this, and at least one.
const RESERVE_DIVISOR: u32 = 10;
/// An organisation may hold what is left of the reserve divided by this, and at least one.
const QUOTA_DIVISOR: i64 = 4;

pub struct Slots {
    per_org: Option<u32>,
    /// Whether new attempts may be written as claimed.
    claim_new: bool,
    /// Slots beyond the others, for organisations with few attempts here.
    reserve: u32,
    state: Mutex<State>,
    /// Notified when there may be work to claim.
    pub wanted: Notify,
}

struct State {
    /// Negative while this node holds more attempts than slots: some use the reserve, or a response of the store was
    /// lost.
    free: i64,
    /// Attempts that run here, by organisation.
    held: BTreeMap<OrgId, u32>,
    /// The store has, or may have, unclaimed ready work.
    backlog: bool,
    /// Some of it may be of organisations that may use the reserve.
    newcomers: bool,
    /// Another node has left work ready. New attempts of this node may still be written as claimed: a slot is free, or
    /// the store could not be queried.
    elsewhere: bool,
    /// How often work was left ready. A claim that was in flight at the time may not have included that work.
    left_count: u64,
    last_org: OrgId,
    closed: bool,
}

impl Slots {
    pub fn new(slots: u32, per_org: Option<u32>, claim_new: bool) -> Arc<Slots> {
        let state = State {
            free: slots.into(),
            held: BTreeMap::new(),
            backlog: true,
            newcomers: false,
            elsewhere: false,
            left_count: 0,
            last_org: OrgId(0),
            closed: false,
        };
        let reserve = (slots / RESERVE_DIVISOR).max(1);
        Arc::new(Slots { per_org, claim_new, reserve, state: Mutex::new(state), wanted: Notify::new() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it holds the slots")
    }

    /// Assigns new work to this node while slots are free and no other work waits. Returns a slot for each assigned
    /// work, in order.
    pub fn assign(self: &Arc<Slots>, node: NodeId, work: &mut [Work]) -> Vec<Slot> {
        if work.is_empty() || !self.claim_new {
            return Vec::new();
        }
        let mut state = self.state();
        let mut slots = Vec::new();
        for work in work {
            let room = state.free > 0 && self.per_org.is_none_or(|most| state.held_by(work.org) < most);
            if room && !state.backlog && !state.closed {
                work.node = Some(node);
                slots.push(self.slot(&mut state, work.org));
            }
        }
        slots
    }

    /// Whether work can be left ready because its organisation has reached its limit. Then the store has to be queried
    /// again each time a commit ends such work, which is later than the release of the slot.
    pub fn limits_orgs(&self) -> bool {
        self.per_org.is_some()
    }

    /// Called when work was written unclaimed, or can be claimed now. `None` if it can be of any organisation.
    pub fn left_ready(&self, org: Option<OrgId>) {
        let mut state = self.state();
        state.backlog = true;
        state.newcomers |= match (org, self.quota(&state)) {
            (Some(org), Some(quota)) => state.held_by(org) < quota,
            _ => true,
        };
        state.left_count += 1;
        drop(state);
        self.wanted.notify_one();
    }

    /// Like [`Slots::left_ready`], for work of another node.
    pub fn left_elsewhere(&self) {
        let mut state = self.state();
        state.elsewhere = true;
        state.newcomers = true;
        state.left_count += 1;
        drop(state);
        self.wanted.notify_one();
    }

    /// Whether this node will claim ready work of any organisation.
    pub fn has_room(&self) -> bool {
        let state = self.state();
        state.free > 0 && !state.closed
    }

    /// The claim to make now, if any.
    pub fn claim(&self, node: NodeId) -> Option<PendingClaim> {
        let state = self.state();
        if state.closed || !(state.backlog || state.elsewhere) {
            return None;
        }
        let (limit, per_org_here) = match u32::try_from(state.free) {
            Ok(free @ 1..) => (free, None),
            // A part of the reserve at a time, because each part that is taken lowers the quota.
            _ if state.newcomers => self.quota(&state).map(|quota| (quota, Some(quota)))?,
            _ => return None,
        };
        let (held, left_count) = (state.held.clone(), state.left_count);
        let claim = Claim { node, limit, after: state.last_org, per_org: self.per_org, held, per_org_here };
        Some(PendingClaim { claim, left_count })
    }

    /// Takes slots for the claimed work, in order. `more` if the store may have more: the claim's limit was reached.
    pub fn claimed(self: &Arc<Slots>, pending: &PendingClaim, given: impl Iterator<Item = OrgId>) -> Given {
        let mut state = self.state();
        let mut slots = Vec::new();
        for org in given {
            slots.push(self.slot(&mut state, org));
            state.last_org = org;
        }
        let full = slots.len() >= pending.claim.limit as usize;
        let changed = state.left_count != pending.left_count;
        if pending.claim.per_org_here.is_some() {
            state.newcomers = full || changed;
            return Given { slots, more: state.newcomers };
        }
        state.elsewhere = false;
        state.backlog = full || changed;
        // The organisations with the fewest attempts came first: those left out have as many as the last one.
        let few = |quota| state.held_by(state.last_org) <= quota;
        state.newcomers = changed || (full && self.quota(&state).is_none_or(few));
        Given { slots, more: state.backlog }
    }

    /// Takes a slot for an attempt that this node has already claimed.
    pub fn take(self: &Arc<Slots>, org: OrgId) -> Slot {
        self.slot(&mut self.state(), org)
    }

    /// Stops claiming work.
    pub fn close(&self) {
        self.state().closed = true;
    }

    fn slot(self: &Arc<Slots>, state: &mut State, org: OrgId) -> Slot {
        state.free -= 1;
        *state.held.entry(org).or_default() += 1;
        Slot::new(org, self.clone())
    }

    /// An organisation with fewer attempts here may use the reserve. `None` if nothing is left of it.
    fn quota(&self, state: &State) -> Option<u32> {
        let left = i64::from(self.reserve) + state.free.min(0);
        (left > 0).then(|| u32::try_from(left / QUOTA_DIVISOR).unwrap_or(u32::MAX).max(1))
    }
}

impl SlotPool for Slots {
    fn release(&self, org: OrgId) {
        let mut state = self.state();
        state.free += 1;
        let held = state.held_by(org);
        match held {
            0 | 1 => state.held.remove(&org),
            _ => state.held.insert(org, held - 1),
        };
        // Ready work may have waited for a slot of this organisation.
        state.backlog |= self.per_org == Some(held);
        // There is more of the reserve.
        state.newcomers |= state.free <= 0;
        let wake = state.backlog;
        drop(state);
        if wake {
            self.wanted.notify_one();
        }
    }
}

/// A claim in flight.
#[derive(Clone, Debug)]
pub struct PendingClaim {
    pub claim: Claim,
    left_count: u64,
}

/// The slots for claimed work.
pub struct Given {
    pub slots: Vec<Slot>,
    pub more: bool,
}

impl State {
    fn held_by(&self, org: OrgId) -> u32 {
        self.held.get(&org).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NODE: NodeId = NodeId(1);

    /// A node with a store that has ready work, and nothing else.
    struct World {
        slots: Arc<Slots>,
        ready: BTreeMap<OrgId, u32>,
        running: Vec<Slot>,
        total: u32,
    }

    impl World {
        fn new(total: u32) -> World {
            let mut world =
                World { slots: Slots::new(total, None, true), ready: BTreeMap::new(), running: Vec::new(), total };
            world.settle();
            world
        }

        /// Commits new work, which begins if it has a slot.
        fn add(&mut self, org: i64, count: u32) {
            let org = OrgId(org);
            let new = || Work {
                key: stepwell_store::WorkKey { path: String::new(), attempt: 1 },
                org,
                kind: String::new(),
                ready: stepwell_core::time::Time(0),
                node: None,
            };
            let mut work: Vec<Work> = std::iter::repeat_with(new).take(count as usize).collect();
            self.running.extend(self.slots.assign(NODE, &mut work));
            let left = work.iter().filter(|work| work.node.is_none()).count() as u32;
            if left > 0 {
                *self.ready.entry(org).or_default() += left;
                self.slots.left_ready(Some(org));
            }
            self.settle();
        }

        /// Ends the oldest attempts of an organisation.
        fn end(&mut self, org: i64, count: usize) {
            for _ in 0..count {
                let Some(at) = self.running.iter().position(|slot| slot.org == OrgId(org)) else { return };
                drop(self.running.remove(at));
                self.settle();
            }
        }

        /// Claims until there is nothing to claim.
        fn settle(&mut self) {
            while let Some(pending) = self.slots.claim(NODE) {
                let (mut held, after) = (pending.claim.held.clone(), pending.claim.after);
                let mut given = Vec::new();
                while given.len() < pending.claim.limit as usize {
                    let has = |org: &OrgId| held.get(org).copied().unwrap_or_default();
                    let may = |org: &&OrgId| pending.claim.per_org_here.is_none_or(|most| has(org) < most);
                    let next =
                        self.ready.keys().filter(may).min_by_key(|org| (has(org), **org <= after, **org)).copied();
                    let Some(org) = next else { break };
                    given.push(org);
                    *held.entry(org).or_default() += 1;
                    match self.ready[&org] {
                        1 => self.ready.remove(&org),
                        count => self.ready.insert(org, count - 1),
                    };
                }
                self.running.extend(self.slots.claimed(&pending, given.into_iter()).slots);
            }
        }

        fn held(&self, org: i64) -> u32 {
            self.running.iter().filter(|slot| slot.org == OrgId(org)).count() as u32
        }

        fn check(&self) {
            let (running, most) = (self.running.len() as u32, self.total + self.slots.reserve);
            assert!(running <= most, "{running} attempts run; there are {most} slots with the reserve");
            if running < self.total {
                assert!(self.ready.is_empty(), "a slot is free, and work waits");
            }
            if running < most {
                let waits = self.ready.keys().find(|org| self.held(org.0) == 0);
                assert!(waits.is_none(), "{waits:?} runs nothing and waits, though there is a reserve");
            }
            let share = self.slots.state();
            assert_eq!(share.free, i64::from(self.total) - i64::from(running));
            assert!(share.held.values().all(|held| *held > 0), "an organisation without attempts is forgotten");
        }
    }

    #[test]
    fn one_organisation_alone_uses_all_slots_and_a_newcomer_starts() {
        let mut world = World::new(1_000);
        world.add(1, 1_500);
        assert_eq!(world.running.len(), 1_000);
        world.add(2, 1);
        assert_eq!((world.held(1), world.held(2)), (1_000, 1));
        // However much the next organisations ask for, one that comes after them starts.
        for org in 3..15 {
            world.add(org, 500);
            assert!(world.held(org) >= 1);
        }
        world.add(99, 1);
        assert_eq!(world.held(99), 1);
        world.check();
    }

    #[test]
    fn slots_that_become_free_go_to_the_organisation_with_the_fewest() {
        let mut world = World::new(100);
        world.add(1, 300);
        world.add(2, 300);
        world.end(1, 60);
        assert_eq!((world.held(1), world.held(2)), (50, 50));
        world.end(1, 20);
        world.end(2, 20);
        assert_eq!((world.held(1), world.held(2)), (50, 50));
        world.check();
    }

    #[test]
    fn a_single_slot_has_a_reserve_as_well() {
        let mut world = World::new(1);
        world.add(1, 3);
        world.add(2, 3);
        assert_eq!((world.held(1), world.held(2)), (1, 1));
        world.add(3, 1);
        assert_eq!(world.held(3), 0, "the reserve is in use");
        world.end(1, 1);
        assert_eq!((world.held(1), world.held(3)), (0, 1));
        world.check();
    }

    proptest! {
        #[test]
        fn no_newcomer_waits_while_there_is_a_reserve(
            total in 1_u32..60,
            calls in prop::collection::vec((1_i64..8, 1_u32..40, any::<bool>()), 1..60),
        ) {
            let mut world = World::new(total);
            let alone = calls.iter().all(|(org, ..)| *org == calls[0].0);
            for (org, count, adds) in calls {
                if adds { world.add(org, count) } else { world.end(org, count as usize) }
                world.check();
                assert!(!alone || world.running.len() as u32 <= total);
            }
        }
    }
}
