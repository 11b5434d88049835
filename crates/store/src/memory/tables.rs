//! The tables, each with the indexes that its queries need. Only ordered maps, so equal histories return equal results.

use crate::round_robin::{Queue, fewest_first};
use crate::*;
use std::collections::{BTreeMap, BTreeSet};
use stepwell_core::time::Time;

type Attempt = (RunId, WorkKey);

/// Attempts that are ready or running.
#[derive(Default)]
pub struct WorkTable {
    rows: BTreeMap<Attempt, Work>,
    /// Unclaimed attempts, longest waiting first.
    ready: BTreeMap<OrgId, BTreeSet<(Time, Attempt)>>,
    on_node: BTreeMap<NodeId, BTreeSet<Attempt>>,
    running: BTreeMap<OrgId, u32>,
}

impl WorkTable {
    /// The number of unclaimed attempts.
    pub fn ready(&self) -> usize {
        self.ready.values().map(BTreeSet::len).sum()
    }

    /// Unclaimed attempts by organisation, and when the one that waits longest became ready.
    pub fn waiting(&self) -> (Vec<(OrgId, u64)>, Option<Time>) {
        let counts = self.ready.iter().filter(|(_, attempts)| !attempts.is_empty());
        let counts = counts.map(|(org, attempts)| (*org, attempts.len() as u64));
        (counts.collect(), self.ready.values().filter_map(|attempts| Some(attempts.first()?.0)).min())
    }

    pub fn contains(&self, run: RunId, key: &WorkKey) -> bool {
        self.rows.contains_key(&(run, key.clone()))
    }

    pub fn put(&mut self, run: RunId, work: Work) {
        let attempt = (run, work.key.clone());
        match work.node {
            None => {
                self.ready.entry(work.org).or_default().insert((work.ready, attempt.clone()));
            }
            Some(node) => {
                self.on_node.entry(node).or_default().insert(attempt.clone());
                *self.running.entry(work.org).or_default() += 1;
            }
        }
        self.rows.insert(attempt, work);
    }

    pub fn remove(&mut self, run: RunId, key: WorkKey) -> Option<Work> {
        let attempt = (run, key);
        let work = self.rows.remove(&attempt)?;
        match work.node {
            None => remove_from(&mut self.ready, &work.org, &(work.ready, attempt)),
            Some(node) => {
                remove_from(&mut self.on_node, &node, &attempt);
                if let Some(count) = self.running.get_mut(&work.org) {
                    *count -= 1;
                }
            }
        }
        Some(work)
    }

    pub fn claim(&mut self, claim: Claim) -> Vec<Claimed> {
        let limit = claim.limit as usize;
        let mut orgs: Vec<OrgId> = self.ready.keys().copied().collect();
        orgs.sort_by_key(|&org| (org <= claim.after, org));
        let ready = orgs.iter().map(|org| {
            let room = claim.room(*org, || self.running.get(org).copied().unwrap_or_default()) as usize;
            let ready = self.ready[org].iter().take(room).map(|(_, attempt)| attempt.clone()).collect();
            Queue { held: claim.held_by(*org), ready }
        });
        let taken = fewest_first(ready.collect(), limit);
        let mut claimed = Vec::with_capacity(taken.len());
        for (run, key) in taken {
            if let Some(work) = self.remove(run, key) {
                claimed.push(Claimed { run, key: work.key.clone(), org: work.org, kind: work.kind.clone() });
                self.put(run, Work { node: Some(claim.node), ..work });
            }
        }
        claimed
    }

    pub fn held(&self, node: NodeId) -> impl Iterator<Item = Claimed> {
        self.on_node.get(&node).into_iter().flatten().map(|attempt| self.claimed(attempt))
    }

    fn claimed(&self, attempt: &Attempt) -> Claimed {
        let work = &self.rows[attempt];
        Claimed { run: attempt.0, key: attempt.1.clone(), org: work.org, kind: work.kind.clone() }
    }

    pub fn orphans(&self, alive: &BTreeMap<NodeId, NewNode>, after: Option<Attempt>, limit: u32) -> Vec<Claimed> {
        let gone = self.on_node.keys().filter(|node| !alive.contains_key(node));
        let attempts: BTreeSet<&Attempt> = gone.flat_map(|node| &self.on_node[node]).collect();
        let attempts = attempts.into_iter().filter(|attempt| after.as_ref().is_none_or(|after| *attempt > after));
        attempts.take(limit as usize).map(|attempt| self.claimed(attempt)).collect()
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether the indexes cover every row exactly once.
    pub fn is_consistent(&self) -> bool {
        let ready: usize = self.ready.values().map(BTreeSet::len).sum();
        let claimed: usize = self.on_node.values().map(BTreeSet::len).sum();
        let running: u32 = self.running.values().sum();
        ready + claimed == self.rows.len() && running as usize == claimed
    }
}

#[derive(Default)]
pub struct Timers {
    rows: BTreeMap<(RunId, String), Time>,
    due: BTreeSet<DueTimer>,
}

impl Timers {
    pub fn put(&mut self, run: RunId, timer: TimerRow) {
        let TimerRow { key, due } = timer;
        self.remove(run, key.clone());
        self.rows.insert((run, key.clone()), due);
        self.due.insert(DueTimer { due, run, key });
    }

    pub fn remove(&mut self, run: RunId, key: String) {
        let row = (run, key);
        if let Some(due) = self.rows.remove(&row) {
            self.due.remove(&DueTimer { due, run, key: row.1 });
        }
    }

    pub fn due(&self, until: Time, share: Share, limit: u32) -> Vec<DueTimer> {
        let due = self.due.iter().take_while(|timer| timer.due <= until);
        let due = due.filter(|timer| share.has(timer.run) || timer.due <= share.overdue);
        due.take(limit as usize).cloned().collect()
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_consistent(&self) -> bool {
        self.rows.len() == self.due.len()
    }
}

/// Mail or notices: numbered in write order, one per run and key. Numbers are never reused.
pub struct Messages<T> {
    last: i64,
    rows: BTreeMap<i64, Message<T>>,
    of_run: BTreeMap<RunId, BTreeMap<String, i64>>,
}

pub struct Message<T> {
    pub run: RunId,
    pub key: String,
    pub content: T,
}

impl<T> Default for Messages<T> {
    fn default() -> Messages<T> {
        Messages { last: 0, rows: BTreeMap::new(), of_run: BTreeMap::new() }
    }
}

impl<T> Messages<T> {
    /// Returns the assigned number, or `None` if the run already has a message with this key.
    pub fn put(&mut self, message: Message<T>) -> Option<i64> {
        let keys = self.of_run.entry(message.run).or_default();
        if keys.contains_key(&message.key) {
            return None;
        }
        self.last += 1;
        keys.insert(message.key.clone(), self.last);
        self.rows.insert(self.last, message);
        Some(self.last)
    }

    pub fn remove(&mut self, id: i64) -> Option<Message<T>> {
        let message = self.rows.remove(&id)?;
        if let Some(keys) = self.of_run.get_mut(&message.run) {
            keys.remove(&message.key);
            if keys.is_empty() {
                self.of_run.remove(&message.run);
            }
        }
        Some(message)
    }

    pub fn get(&self, id: i64) -> Option<&Message<T>> {
        self.rows.get(&id)
    }

    pub fn find(&self, run: RunId, key: &str) -> Option<i64> {
        self.of_run.get(&run)?.get(key).copied()
    }

    /// Returns the numbers of one run's messages, oldest first.
    pub fn of_run(&self, run: RunId) -> BTreeSet<i64> {
        self.of_run.get(&run).into_iter().flat_map(BTreeMap::values).copied().collect()
    }

    /// Returns the keys and numbers of one run's messages, ordered by key.
    pub fn by_key(&self, run: RunId) -> impl Iterator<Item = (&str, i64)> {
        self.of_run.get(&run).into_iter().flatten().map(|(key, id)| (key.as_str(), *id))
    }

    pub fn runs(&self) -> impl Iterator<Item = RunId> {
        self.of_run.keys().copied()
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_consistent(&self) -> bool {
        self.rows.len() == self.of_run.values().map(BTreeMap::len).sum::<usize>()
    }
}

/// How a run stands to a concurrency group.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Membership {
    Outside,
    Queued,
    Entered,
}

/// Concurrency groups: which runs are in each, and which wait for one.
#[derive(Default)]
pub struct Groups {
    pub held: BTreeMap<String, BTreeSet<RunId>>,
    pub queues: BTreeMap<String, BTreeSet<RunId>>,
}

impl Groups {
    pub fn membership(&self, key: &str, run: RunId) -> Membership {
        let among = |map: &BTreeMap<String, BTreeSet<RunId>>| map.get(key).is_some_and(|runs| runs.contains(&run));
        match () {
            () if among(&self.held) => Membership::Entered,
            () if among(&self.queues) => Membership::Queued,
            () => Membership::Outside,
        }
    }

    /// Whether the run may enter the group. A run that is already in keeps its slot.
    pub fn has_room(&self, key: &str, run: RunId, limit: u32) -> bool {
        let held = self.held.get(key).map_or(0, BTreeSet::len);
        let first = self.queues.get(key).and_then(BTreeSet::first);
        let free = held < limit as usize && first.is_none_or(|&first| first >= run);
        free || self.membership(key, run) == Membership::Entered
    }

    pub fn set(&mut self, key: &str, run: RunId, membership: Membership) {
        let key = key.to_string();
        remove_from(&mut self.held, &key, &run);
        remove_from(&mut self.queues, &key, &run);
        match membership {
            Membership::Outside => {}
            Membership::Queued => {
                self.queues.entry(key).or_default().insert(run);
            }
            Membership::Entered => {
                self.held.entry(key).or_default().insert(run);
            }
        }
    }
}

/// Removes a member from a set, and the set itself when it becomes empty.
pub fn remove_from<K: Ord, V: Ord>(map: &mut BTreeMap<K, BTreeSet<V>>, key: &K, member: &V) {
    if let Some(set) = map.get_mut(key) {
        set.remove(member);
        if set.is_empty() {
            map.remove(key);
        }
    }
}
