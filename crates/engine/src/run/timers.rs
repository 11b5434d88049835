//! Fires timers when they are due. Rows are the truth; memory holds those of the next moments, so that they fire on time
//! and a million sleeping runs cost nothing.

use super::Runner;
use super::drive;
use super::messages::Message;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use stepwell_core::time::{Millis, Time};
use stepwell_store::{DueTimer, LoadedRun, RunId};
use tokio::sync::Notify;

/// How far ahead rows are read.
const AHEAD: Millis = Millis(2_000);
/// They are read again this long before the last of them is due.
const MARGIN: Millis = Millis(1_000);
/// Timers in memory at the most.
const MOST: usize = 10_000;
/// Timers fired and not yet dealt with at the most: the rest can wait in their rows.
const IN_FLIGHT: usize = 1_000;
/// Runs that are read from the store together when their timers fire at the same time.
const TOGETHER: usize = 32;
/// After the store did not answer.
const PAUSE: Duration = Duration::from_millis(500);
const LONGEST_REST: Duration = Duration::from_secs(1);

#[derive(Default)]
pub struct Timers {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    soon: BTreeSet<(Time, RunId, String)>,
    due: BTreeMap<(RunId, String), Time>,
    fired: BTreeSet<(RunId, String)>,
    /// Everything due by then is in memory, of the runs that are this node's.
    horizon: Time,
}

impl Timers {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it holds the timers")
    }

    /// A commit has written this timer.
    pub fn set(&self, run: RunId, key: &str, due: Time) {
        let mut state = self.state();
        state.remove(run, key);
        if due > state.horizon {
            return;
        }
        let first = state.soon.first().is_none_or(|(soonest, ..)| due < *soonest);
        state.insert(due, run, key.to_string());
        drop(state);
        if first {
            self.changed.notify_one();
        }
    }

    /// A commit has removed this timer, or there was nothing for it to do.
    pub fn clear(&self, run: RunId, key: &str) {
        let mut state = self.state();
        let full = state.fired.len() >= IN_FLIGHT;
        state.remove(run, key);
        drop(state);
        if full {
            self.changed.notify_one();
        }
    }

    /// Rows that were passed over are this node's now.
    pub fn read_again(&self) {
        self.state().horizon = Time(i64::MIN);
        self.changed.notify_one();
    }

    /// It fired too early (clocks differ): it will be found again in its row.
    pub fn put_back(&self, run: RunId, key: &str) {
        self.state().remove(run, key);
    }
}

impl State {
    fn insert(&mut self, due: Time, run: RunId, key: String) {
        self.due.insert((run, key.clone()), due);
        self.soon.insert((due, run, key));
        while self.soon.len() > MOST {
            // What is left out is found in its row when its time comes.
            if let Some((due, run, key)) = self.soon.pop_last() {
                self.horizon = self.horizon.min(Time(due.0 - 1));
                self.due.remove(&(run, key));
            }
        }
    }

    fn remove(&mut self, run: RunId, key: &str) {
        let name = (run, key.to_string());
        self.fired.remove(&name);
        if let Some(due) = self.due.remove(&name) {
            self.soon.remove(&(due, run, name.1));
        }
    }

    /// Takes what is due, as much as may be in flight.
    fn take(&mut self, now: Time) -> Vec<(RunId, String)> {
        let mut taken = Vec::new();
        while self.fired.len() < IN_FLIGHT && self.soon.first().is_some_and(|(due, ..)| *due <= now) {
            if let Some((due, run, key)) = self.soon.pop_first() {
                metrics::histogram!("stepwell_timer_late_seconds").record(now.since(due).0 as f64 / 1_000.0);
                self.due.remove(&(run, key.clone()));
                self.fired.insert((run, key.clone()));
                taken.push((run, key));
            }
        }
        taken
    }

    /// Rows up to the horizon; `whole` if these are all of them.
    fn refill(&mut self, rows: Vec<DueTimer>, whole: bool) {
        if let Some(last) = rows.last().filter(|_| !whole) {
            self.horizon = self.horizon.min(last.due);
        }
        for row in rows {
            let name = (row.run, row.key);
            if !self.fired.contains(&name) && !self.due.contains_key(&name) {
                self.insert(row.due, name.0, name.1);
            }
        }
    }

    /// How long nothing has to be done. `None` while as much is in flight as may be.
    fn rest(&self, now: Time) -> Option<Duration> {
        let until = |time: Time| Duration::from_millis(time.0.saturating_sub(now.0).max(0).unsigned_abs());
        let refill = until(Time(self.horizon.0.saturating_sub(MARGIN.0 as i64)));
        match self.soon.first() {
            Some((due, ..)) if *due <= now => (self.fired.len() < IN_FLIGHT).then_some(Duration::ZERO),
            Some((due, ..)) => Some(until(*due).min(refill)),
            None => Some(refill),
        }
    }

    fn wants_rows(&mut self, now: Time) -> bool {
        // A clock that was set back sees less far ahead than was read.
        self.horizon = self.horizon.min(now + AHEAD);
        let soon = now + MARGIN;
        self.horizon <= soon && self.fired.len() < IN_FLIGHT && self.soon.first().is_none_or(|(due, ..)| *due > now)
    }
}

pub async fn run(runner: Arc<Runner>) {
    while !runner.cluster.stop.is_cancelled() {
        let now = runner.cluster.clock.now();
        let due = runner.timers.state().take(now);
        match due.as_slice() {
            [] => {}
            [(run, key)] => runner.send(*run, Message::Timer { key: key.clone() }),
            many => {
                for together in many.chunks(TOGETHER) {
                    tokio::spawn(fire(runner.clone(), together.to_vec()));
                }
            }
        }
        let (wants_rows, in_flight) = {
            let mut state = runner.timers.state();
            (state.wants_rows(now), state.fired.len())
        };
        if wants_rows && !read(&runner, now, in_flight).await {
            runner.cluster.pause(PAUSE).await;
            continue;
        }
        let rest = runner.timers.state().rest(runner.cluster.clock.now());
        // Never for long: the wall clock may be set while this one runs on.
        let rest = rest.unwrap_or(LONGEST_REST).min(LONGEST_REST);
        tokio::select! {
            biased;
            () = runner.cluster.stop.cancelled() => {}
            () = runner.timers.changed.notified() => {}
            () = tokio::time::sleep(rest) => {}
        }
    }
}

/// Fires timers of several runs, which are read from the store together.
async fn fire(runner: Arc<Runner>, due: Vec<(RunId, String)>) {
    // Those that nobody drives are this task's now, so what is read of them stays true.
    let mine = due
        .into_iter()
        .filter_map(|(run, key)| runner.mailboxes.post(run, Message::Timer { key }.into()).then_some(run));
    let mine: Vec<RunId> = mine.collect();
    // If this does not work each driver reads its run itself, and tries until it can.
    let stored = runner.cluster.store.load_all(mine.clone()).await.unwrap_or_default();
    let mut stored: BTreeMap<RunId, LoadedRun> = stored.into_iter().map(|stored| (stored.row.id, stored)).collect();
    for run in mine {
        let live = match stored.remove(&run) {
            Some(stored) => drive::revive(&runner, &stored).await.ok(),
            None => None,
        };
        drive::spawn(runner.clone(), run, live);
    }
}

async fn read(runner: &Runner, now: Time, in_flight: usize) -> bool {
    let until = now + AHEAD;
    // Those in flight are still in their rows.
    let limit = MOST + in_flight;
    // Before the rows are read: what is written meanwhile must not be missed.
    let before = std::mem::replace(&mut runner.timers.state().horizon, until);
    match runner.cluster.store.due(until, runner.cluster.node.share(now), limit as u32).await {
        Ok(rows) => {
            let whole = rows.len() < limit;
            runner.timers.state().refill(rows, whole);
            true
        }
        Err(error) => {
            runner.timers.state().horizon = before;
            tracing::warn!(%error, "timers cannot be read");
            false
        }
    }
}
