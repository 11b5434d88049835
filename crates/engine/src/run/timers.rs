//! Fires timers when they are due. The rows are authoritative. Memory holds only the timers of the next moments, so
//! that they fire on time and a million sleeping runs cost nothing.

use super::Runner;
use super::continuing;
use super::drive;
use super::keys::is_continuation;
use super::messages::Message;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use stepwell_core::time::{Millis, Time};
use stepwell_store::{DueTimer, LoadedRun, RunId};
use tokio::sync::Notify;

/// How far ahead rows are read.
const AHEAD: Millis = Millis(2_000);
/// Rows are read again this long before the horizon.
const MARGIN: Millis = Millis(1_000);
/// Maximum number of timers in memory.
const MAX_IN_MEMORY: usize = 10_000;
/// Maximum number of timers that have fired and are not handled yet. The others wait in their rows.
const MAX_IN_FLIGHT: usize = 1_000;
/// Runs per read from the store when timers fire at the same time.
const BATCH: usize = 32;
/// Pause after the store did not answer.
const PAUSE: Duration = Duration::from_millis(500);
/// Longest sleep of the loop.
const MAX_SLEEP: Duration = Duration::from_secs(1);

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
    /// All timers of this node's runs that are due by then are in memory.
    horizon: Time,
}

impl Timers {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it holds the timers")
    }

    /// Called when a commit has written this timer.
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

    /// Called when a commit has removed this timer, or when it had no effect.
    pub fn clear(&self, run: RunId, key: &str) {
        let mut state = self.state();
        let full = state.fired.len() >= MAX_IN_FLIGHT;
        state.remove(run, key);
        drop(state);
        if full {
            self.changed.notify_one();
        }
    }

    /// Reads the rows again, because runs of other nodes have become this node's.
    pub fn reload(&self) {
        self.state().horizon = Time(i64::MIN);
        self.changed.notify_one();
    }

    /// Drops a timer that fired too early (clocks differ) or could not be handled. It is read again from its row.
    pub fn forget(&self, run: RunId, key: &str) {
        self.state().remove(run, key);
    }
}

impl State {
    fn insert(&mut self, due: Time, run: RunId, key: String) {
        self.due.insert((run, key.clone()), due);
        self.soon.insert((due, run, key));
        while self.soon.len() > MAX_IN_MEMORY {
            // A timer that does not fit is read from its row when it is due.
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

    /// Takes the due timers, up to the limit in flight.
    fn take(&mut self, now: Time) -> Vec<(RunId, String)> {
        let mut taken = Vec::new();
        while self.fired.len() < MAX_IN_FLIGHT && self.soon.first().is_some_and(|(due, ..)| *due <= now) {
            if let Some((due, run, key)) = self.soon.pop_first() {
                metrics::histogram!("stepwell_timer_late_seconds").record(now.since(due).0 as f64 / 1_000.0);
                self.due.remove(&(run, key.clone()));
                self.fired.insert((run, key.clone()));
                taken.push((run, key));
            }
        }
        taken
    }

    /// Adds rows up to the horizon. `complete` if there are no more rows.
    fn refill(&mut self, rows: Vec<DueTimer>, complete: bool) {
        if let Some(last) = rows.last().filter(|_| !complete) {
            self.horizon = self.horizon.min(last.due);
        }
        for row in rows {
            let name = (row.run, row.key);
            if !self.fired.contains(&name) && !self.due.contains_key(&name) {
                self.insert(row.due, name.0, name.1);
            }
        }
    }

    /// Time until the next timer or read. `None` while the limit in flight is reached.
    fn idle_time(&self, now: Time) -> Option<Duration> {
        let until = |time: Time| Duration::from_millis(time.0.saturating_sub(now.0).max(0).unsigned_abs());
        let refill = until(Time(self.horizon.0.saturating_sub(MARGIN.0 as i64)));
        match self.soon.first() {
            Some((due, ..)) if *due <= now => (self.fired.len() < MAX_IN_FLIGHT).then_some(Duration::ZERO),
            Some((due, ..)) => Some(until(*due).min(refill)),
            None => Some(refill),
        }
    }

    fn needs_rows(&mut self, now: Time) -> bool {
        // If the clock was set back, the horizon is too far ahead.
        self.horizon = self.horizon.min(now + AHEAD);
        let soon = now + MARGIN;
        self.horizon <= soon && self.fired.len() < MAX_IN_FLIGHT && self.soon.first().is_none_or(|(due, ..)| *due > now)
    }
}

/// The timer loop, until the engine stops.
pub async fn run(runner: Arc<Runner>) {
    while !runner.cluster.stop.is_cancelled() {
        let now = runner.cluster.clock.now();
        let due = runner.timers.state().take(now);
        let (continued, due): (Vec<_>, Vec<_>) = due.into_iter().partition(|(_, key)| is_continuation(key));
        continued.into_iter().for_each(|(run, key)| continuing::queue(&runner, run, key));
        match due.as_slice() {
            [] => {}
            [(run, key)] => runner.send(*run, Message::Timer { key: key.clone() }),
            due => {
                for batch in due.chunks(BATCH) {
                    tokio::spawn(fire(runner.clone(), batch.to_vec()));
                }
            }
        }
        let (needs_rows, in_flight) = {
            let mut state = runner.timers.state();
            (state.needs_rows(now), state.fired.len())
        };
        if needs_rows && !read(&runner, now, in_flight).await {
            runner.cluster.pause(PAUSE).await;
            continue;
        }
        let sleep = runner.timers.state().idle_time(runner.cluster.clock.now());
        // Never for long: the wall clock may be set while the monotonic clock continues.
        let sleep = sleep.unwrap_or(MAX_SLEEP).min(MAX_SLEEP);
        tokio::select! {
            biased;
            () = runner.cluster.stop.cancelled() => {}
            () = runner.timers.changed.notified() => {}
            () = tokio::time::sleep(sleep) => {}
        }
    }
}

/// Fires timers of several runs, which are read from the store together.
async fn fire(runner: Arc<Runner>, due: Vec<(RunId, String)>) {
    // This task now drives the runs that no other task drives, so their rows do not change after the read.
    let driven = due
        .into_iter()
        .filter_map(|(run, key)| runner.mailboxes.post(run, Message::Timer { key }.into()).then_some(run));
    let driven: Vec<RunId> = driven.collect();
    // If this fails, each driver reads its run itself and retries until it can.
    let stored = runner.cluster.store.load_all(driven.clone()).await.unwrap_or_default();
    let mut stored: BTreeMap<RunId, LoadedRun> = stored.into_iter().map(|stored| (stored.row.id, stored)).collect();
    for run in driven {
        let live = match stored.remove(&run) {
            Some(stored) => drive::revive(&runner, &stored).await.ok(),
            None => None,
        };
        drive::spawn(runner.clone(), run, live);
    }
}

/// Reads the rows of the next moments. False if the store did not answer.
async fn read(runner: &Runner, now: Time, in_flight: usize) -> bool {
    let until = now + AHEAD;
    // Timers in flight still have their rows.
    let limit = MAX_IN_MEMORY + in_flight;
    // Set before the rows are read, so that timers written in the meantime are not missed.
    let before = std::mem::replace(&mut runner.timers.state().horizon, until);
    match runner.cluster.store.due(until, runner.cluster.node.share(now), limit as u32).await {
        Ok(rows) => {
            let complete = rows.len() < limit;
            runner.timers.state().refill(rows, complete);
            true
        }
        Err(error) => {
            runner.timers.state().horizon = before;
            tracing::warn!(%error, "cannot read timers; will retry");
            false
        }
    }
}
