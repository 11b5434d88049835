//! Whose turn it is to evaluate code: workers are shared among organisations, round robin.
//!
//! One organisation alone may use all workers. While it does, an organisation that has none gets one of a few more, which
//! the others cannot take, so that endless code of one never stops the code of another.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use stepwell_store::OrgId;
use tokio::sync::oneshot;

/// Evaluations beyond the configured number, for organisations that have none.
const RESERVE: usize = 8;

pub struct Turns {
    /// Concurrent evaluations of one organisation, and of all that do not need the reserve.
    workers: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    running: usize,
    held: BTreeMap<OrgId, usize>,
    waiting: BTreeMap<OrgId, VecDeque<oneshot::Sender<Turn>>>,
    /// The organisation that was served last.
    last: Option<OrgId>,
}

/// The right to one evaluation. Dropping it passes the turn on.
pub struct Turn {
    turns: Arc<Turns>,
    org: OrgId,
}

impl Turns {
    pub fn new(workers: usize) -> Arc<Turns> {
        Arc::new(Turns { workers: workers.max(1), state: Mutex::default() })
    }

    /// Waits for a turn.
    pub async fn turn(self: &Arc<Turns>, org: OrgId) -> Turn {
        let waiting = {
            let mut state = self.state();
            if state.waiting.get(&org).is_none_or(VecDeque::is_empty) && self.has_room(&state, org) {
                return self.begin(&mut state, org);
            }
            let (sender, waiting) = oneshot::channel();
            state.waiting.entry(org).or_default().push_back(sender);
            waiting
        };
        waiting.await.expect("a sender leaves the queue only to send a turn")
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_room(&self, state: &State, org: OrgId) -> bool {
        let has_none = !state.held.contains_key(&org);
        state.running < self.workers || (has_none && state.running < self.workers + RESERVE)
    }

    fn begin(self: &Arc<Turns>, state: &mut State, org: OrgId) -> Turn {
        state.running += 1;
        *state.held.entry(org).or_default() += 1;
        state.last = Some(org);
        Turn { turns: self.clone(), org }
    }

    /// Gives turns to those who wait, as far as there is room.
    fn serve(self: &Arc<Turns>) {
        let mut unclaimed = Vec::new();
        let mut state = self.state();
        while let Some((org, sender)) = self.next(&mut state) {
            // A caller that has left gives its turn back, but not while the lock is held.
            let turn = self.begin(&mut state, org);
            unclaimed.extend(sender.send(turn).err());
        }
        drop(state);
        drop(unclaimed);
    }

    /// The first caller of the next organisation that has room.
    fn next(&self, state: &mut State) -> Option<(OrgId, oneshot::Sender<Turn>)> {
        let after = state.last.map_or(OrgId(i64::MIN), |last| OrgId(last.0.saturating_add(1)));
        let orgs = state.waiting.range(after..).chain(state.waiting.range(..after)).map(|(org, _)| *org);
        let org = orgs.into_iter().find(|org| self.has_room(state, *org))?;
        let queue = state.waiting.get_mut(&org)?;
        let first = queue.pop_front();
        if queue.is_empty() {
            state.waiting.remove(&org);
        }
        first.map(|sender| (org, sender))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        {
            let mut state = self.turns.state();
            state.running -= 1;
            match state.held.get_mut(&self.org) {
                Some(held) if *held > 1 => *held -= 1,
                _ => drop(state.held.remove(&self.org)),
            }
        }
        self.turns.serve();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::task::JoinHandle;

    const A: OrgId = OrgId(1);
    const B: OrgId = OrgId(2);

    /// Asks for a turn in a task of its own, and lets it begin to wait.
    async fn ask(turns: &Arc<Turns>, org: OrgId) -> JoinHandle<Turn> {
        let turns = turns.clone();
        let asked = tokio::spawn(async move { turns.turn(org).await });
        tokio::task::yield_now().await;
        asked
    }

    #[tokio::test]
    async fn one_organisation_may_use_all_workers_but_not_the_reserve() {
        let turns = Turns::new(3);
        let mut held = Vec::new();
        for _ in 0..3 {
            held.push(turns.turn(A).await);
        }
        let fourth = ask(&turns, A).await;
        assert!(!fourth.is_finished());
        drop(held.pop());
        fourth.await.unwrap();
    }

    #[tokio::test]
    async fn an_organisation_that_has_no_worker_gets_one_at_once() {
        let turns = Turns::new(1);
        let _endless = turns.turn(A).await;
        let waiting = ask(&turns, A).await;
        let theirs = turns.turn(B).await;
        let second = ask(&turns, B).await;
        assert!(!second.is_finished() && !waiting.is_finished());
        drop(theirs);
        second.await.unwrap();
        assert!(!waiting.is_finished());
    }

    #[tokio::test]
    async fn freed_workers_go_round_robin_and_within_an_organisation_first_come_first_served() {
        let turns = Turns::new(1);
        let reserve: Vec<Turn> = {
            let mut all = vec![turns.turn(OrgId(9)).await];
            for n in 0..RESERVE {
                all.push(turns.turn(OrgId(100 + n as i64)).await);
            }
            all
        };
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut all = Vec::new();
        for (name, org) in [("a1", A), ("a2", A), ("a3", A), ("b1", B), ("b2", B)] {
            let (turns, order) = (turns.clone(), order.clone());
            all.push(tokio::spawn(async move {
                let turn = turns.turn(org).await;
                order.lock().unwrap().push(name);
                tokio::task::yield_now().await;
                drop(turn);
            }));
            tokio::task::yield_now().await;
        }
        assert!(order.lock().unwrap().is_empty());
        let (kept, freed): (Vec<Turn>, Vec<Turn>) =
            reserve.into_iter().enumerate().fold((Vec::new(), Vec::new()), |(mut kept, mut freed), (n, turn)| {
                if n == 0 {
                    freed.push(turn)
                } else {
                    kept.push(turn)
                }
                (kept, freed)
            });
        drop(freed);
        for one in all {
            one.await.unwrap();
        }
        drop(kept);
        assert_eq!(*order.lock().unwrap(), ["a1", "b1", "a2", "b2", "a3"]);
    }

    #[tokio::test]
    async fn a_caller_that_leaves_passes_its_turn_on() {
        let turns = Turns::new(1);
        let first = turns.turn(A).await;
        let leaving = ask(&turns, A).await;
        let staying = ask(&turns, A).await;
        leaving.abort();
        let _ = leaving.await;
        drop(first);
        staying.await.unwrap();
    }
}
