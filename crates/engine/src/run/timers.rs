//! Fires timers when they are due. The rows are authoritative. Memory holds only the timers of the next moments, so
//! that they fire on time and a million sleeping runs cost nothing.

use super::Runner;
use super::keys::{is_begin, is_continuation};
use super::loads::SMALL;
use super::messages::Message;
use super::{Driver, drive};
use super::{continuing, due};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
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
/// Bytes of payloads that are read with the runs of a batch.
const READ_TOGETHER: u64 = BATCH as u64 * SMALL;
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
    /// Timers that have fired and are not handled yet, each with the number of its firing.
    fired: BTreeMap<(RunId, String), u64>,
    /// The same of runs that are left alone. They neither count as in flight nor hide the timers behind them.
    set_aside: BTreeMap<(RunId, String), u64>,
    firings: u64,
    /// Fired timers that count against the limit. Continued runs wait for their turn, and hold up no timer.
    in_flight: usize,
    /// All timers of this node's runs that are due by then are in memory.
    horizon: Time,
}

/// The key of a timer that has fired. Until it is dropped, the timer does not fire again.
pub struct FiredTimer {
    timers: Arc<Timers>,
    pub(super) run: RunId,
    key: String,
    firing: u64,
}

impl Deref for FiredTimer {
    type Target = str;

    fn deref(&self) -> &str {
        &self.key
    }
}

impl Drop for FiredTimer {
    /// If the timer was not handled, its row is read again.
    fn drop(&mut self) {
        let mut state = self.timers.state();
        let full = state.in_flight >= MAX_IN_FLIGHT;
        let name = (self.run, std::mem::take(&mut self.key));
        // A commit may have set the timer again, and it may have fired since.
        if state.set_aside.get(&name) == Some(&self.firing) {
            state.set_aside.remove(&name);
        }
        if state.fired.get(&name) == Some(&self.firing) {
            state.remove_fired(&name);
        }
        drop(state);
        if full {
            self.timers.changed.notify_one();
        }
    }
}

impl Timers {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it holds the timers")
    }

    /// Takes the due timers, up to the limit in flight.
    fn take(self: &Arc<Timers>, now: Time) -> Vec<FiredTimer> {
        let taken = self.state().take(now).into_iter();
        taken.map(|(run, key, firing)| FiredTimer { timers: self.clone(), run, key, firing }).collect()
    }

    /// Fires a timer before it is due.
    pub fn fire_early(self: &Arc<Timers>, run: RunId, key: String) -> FiredTimer {
        let firing = self.state().add_fired(run, &key);
        FiredTimer { timers: self.clone(), run, key, firing }
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
        let full = state.in_flight >= MAX_IN_FLIGHT;
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

    /// Drops a timer that fired too early (clocks differ). It is read again from its row.
    pub fn forget(&self, run: RunId, key: &str) {
        self.state().remove(run, key);
    }

    /// Keeps a timer of a run that is left alone from firing again, without counting it as in flight.
    pub fn set_aside(&self, run: RunId, key: &str) {
        let mut state = self.state();
        let name = (run, key.to_string());
        if let Some(firing) = state.fired.get(&name).copied() {
            state.remove_fired(&name);
            state.set_aside.insert(name, firing);
        }
        drop(state);
        self.changed.notify_one();
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
        self.set_aside.remove(&name);
        self.remove_fired(&name);
        if let Some(due) = self.due.remove(&name) {
            self.soon.remove(&(due, run, name.1));
        }
    }

    fn add_fired(&mut self, run: RunId, key: &str) -> u64 {
        self.firings += 1;
        let before = self.fired.insert((run, key.to_string()), self.firings);
        self.in_flight += usize::from(before.is_none() && !is_continuation(key));
        self.firings
    }

    fn remove_fired(&mut self, name: &(RunId, String)) {
        if self.fired.remove(name).is_some() && !is_continuation(&name.1) {
            self.in_flight -= 1;
        }
    }

    /// Takes the due timers, up to the limit in flight.
    fn take(&mut self, now: Time) -> Vec<(RunId, String, u64)> {
        let mut taken = Vec::new();
        while self.in_flight < MAX_IN_FLIGHT && self.soon.first().is_some_and(|(due, ..)| *due <= now) {
            if let Some((due, run, key)) = self.soon.pop_first() {
                metrics::histogram!("stepwell_timer_late_seconds").record(now.since(due).0 as f64 / 1_000.0);
                self.due.remove(&(run, key.clone()));
                let firing = self.add_fired(run, &key);
                taken.push((run, key, firing));
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
            let fired = self.fired.contains_key(&name) || self.set_aside.contains_key(&name);
            if !fired && !self.due.contains_key(&name) {
                self.insert(row.due, name.0, name.1);
            }
        }
    }

    /// Time until the next timer or read. `None` while the limit in flight is reached.
    fn idle_time(&self, now: Time) -> Option<Duration> {
        let until = |time: Time| Duration::from_millis(time.0.saturating_sub(now.0).max(0).unsigned_abs());
        let refill = until(Time(self.horizon.0.saturating_sub(MARGIN.0 as i64)));
        match self.soon.first() {
            Some((due, ..)) if *due <= now => (self.in_flight < MAX_IN_FLIGHT).then_some(Duration::ZERO),
            Some((due, ..)) => Some(until(*due).min(refill)),
            None => Some(refill),
        }
    }

    /// The number of timers that have fired and still have their rows.
    fn unhandled(&self) -> usize {
        self.fired.len() + self.set_aside.len()
    }

    fn needs_rows(&mut self, now: Time) -> bool {
        // If the clock was set back, the horizon is too far ahead.
        self.horizon = self.horizon.min(now + AHEAD);
        let soon = now + MARGIN;
        self.horizon <= soon && self.in_flight < MAX_IN_FLIGHT && self.soon.first().is_none_or(|(due, ..)| *due > now)
    }
}

/// The timer loop, until the engine stops.
pub async fn run(runner: Arc<Runner>) {
    while !runner.cluster.stop.is_cancelled() {
        let now = runner.cluster.clock.now();
        let (continued, due): (Vec<_>, Vec<_>) =
            runner.timers.take(now).into_iter().partition(|timer| is_continuation(timer));
        continued.into_iter().for_each(|timer| continuing::queue(&runner, timer));
        let (begin, mut due): (Vec<_>, Vec<_>) = due.into_iter().partition(|timer| is_begin(timer));
        begin.into_iter().for_each(|timer| due::queue(&runner, timer));
        while due.len() > 1 {
            let rest = due.split_off(due.len().min(BATCH));
            tokio::spawn(fire(runner.clone(), std::mem::replace(&mut due, rest)));
        }
        if let Some(key) = due.pop() {
            runner.send(key.run, Message::Timer { key });
        }
        let (needs_rows, in_flight) = {
            let mut state = runner.timers.state();
            (state.needs_rows(now), state.unhandled())
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
async fn fire(runner: Arc<Runner>, due: Vec<FiredTimer>) {
    // This task now drives the runs that no other task drives, so their rows do not change after the read.
    let drivers: Vec<Driver> =
        due.into_iter().filter_map(|key| runner.post(key.run, Message::Timer { key }.into())).collect();
    let runs = drivers.iter().map(|driver| driver.run).collect();
    // Drivers of runs that are not read here, or if this fails, read them themselves and retry until they can.
    let stored = runner.cluster.store.load_small(runs, READ_TOGETHER).await.unwrap_or_default();
    let mut stored: BTreeMap<RunId, LoadedRun> = stored.into_iter().map(|stored| (stored.row.id, stored)).collect();
    for driver in drivers {
        let live = match stored.remove(&driver.run) {
            Some(stored) => drive::revive(&runner, stored).await.ok(),
            None => None,
        };
        tokio::spawn(drive::drive(driver, live));
    }
}

/// Reads the rows of the next moments. False if the store did not answer.
async fn read(runner: &Runner, now: Time, in_flight: usize) -> bool {
    let until = now + AHEAD;
    // Timers in flight and those that are set aside still have their rows.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_whose_message_is_lost_fires_again_and_one_that_was_set_again_is_kept() {
        let timers = Arc::new(Timers::default());
        timers.state().horizon = Time(100);
        let row = || vec![DueTimer { due: Time(1), run: RunId(1), key: "a".into() }];
        timers.state().refill(row(), true);
        let fired = timers.take(Time(5));
        assert_eq!(fired.len(), 1);
        // Its row is still there while it is being handled.
        timers.state().refill(row(), true);
        assert!(timers.take(Time(5)).is_empty());
        drop(fired);
        timers.state().refill(row(), true);
        let fired = timers.take(Time(5));
        assert_eq!(&*fired[0], "a");
        timers.set(RunId(1), "a", Time(9));
        let again = timers.take(Time(9));
        drop(fired);
        timers.state().refill(row(), true);
        assert!(timers.take(Time(9)).is_empty(), "the second firing is still being handled");
        drop(again);
    }

    #[test]
    fn timers_that_cannot_be_handled_do_not_hide_those_behind_them() {
        let (timers, now) = (Arc::new(Timers::default()), Time(1_000_000));
        let many = MAX_IN_FLIGHT as i64;
        let rows = |runs: std::ops::RangeInclusive<i64>| {
            runs.map(|run| DueTimer { due: Time(run), run: RunId(run), key: "a".into() }).collect::<Vec<_>>()
        };
        timers.state().horizon = now;
        timers.state().refill(rows(1..=many), false);
        let stuck = timers.take(now);
        assert_eq!(stuck.len(), MAX_IN_FLIGHT);
        assert!(!timers.state().needs_rows(now));
        stuck.iter().for_each(|timer| timers.set_aside(timer.run, timer));
        // Others fire, and more rows are read, by as many as are set aside.
        assert!(timers.state().needs_rows(now));
        assert_eq!(timers.state().unhandled(), MAX_IN_FLIGHT);
        timers.state().refill(rows(1..=many + 2), true);
        let others: Vec<i64> = timers.take(now).iter().map(|timer| timer.run.0).collect();
        assert_eq!(others, [many + 1, many + 2]);
        drop(stuck);
        timers.state().refill(rows(1..=1), true);
        assert_eq!(timers.take(now).len(), 1);
    }
}
