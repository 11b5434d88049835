//! The mailboxes of the runs that are active in this process, and the cached state of runs with attempts running here.
//!
//! One task at a time drives a run, so a run has one commit in flight. Messages that arrive in the meantime share the
//! next commit. A run that only sleeps or waits has no mailbox.

use super::live::Live;
use super::loads::Room;
use super::messages::{Envelope, Message};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};
use stepwell_store::{RunId, WorkKey};
use tokio_util::sync::CancellationToken;

/// Weight of a run that is kept in memory whatever the weight of the others is.
const LIGHT: u64 = 64 << 10;
/// Weight of all heavier runs that are kept in memory between two events.
const MAX_HEAVY: u64 = 512 << 20;
/// Maximum number of attempts that are remembered because their report could not be recorded.
const MAX_UNREPORTED: usize = 10_000;

#[derive(Default)]
struct Mailbox {
    messages: Vec<Envelope>,
    driven: bool,
    live: Option<Box<Live>>,
    running: BTreeMap<WorkKey, CancellationToken>,
}

impl Mailbox {
    fn is_idle(&self) -> bool {
        !self.driven && self.messages.is_empty() && self.running.is_empty()
    }
}

pub struct Mailboxes {
    state: Mutex<State>,
    /// How many runs may stay in memory between two events.
    max_cached: usize,
}

#[derive(Default)]
struct State {
    by_run: BTreeMap<RunId, Mailbox>,
    /// Attempts that were executed here, and whose report could not be recorded.
    unreported: BTreeSet<(RunId, WorkKey)>,
    cached: Cached,
}

/// The runs that are kept in memory.
#[derive(Default)]
struct Cached {
    runs: usize,
    /// What those of them that are not light weigh.
    heavy: u64,
}

impl Cached {
    /// Counts a run of this weight if there is room for it.
    fn add(&mut self, weight: u64, max_runs: usize) -> bool {
        let heavy = self.heavy + Cached::heavy(weight);
        let fits = self.runs < max_runs && heavy <= MAX_HEAVY;
        if fits {
            (self.runs, self.heavy) = (self.runs + 1, heavy);
        }
        fits
    }

    fn remove(&mut self, weight: u64) {
        self.runs -= 1;
        self.heavy -= Cached::heavy(weight);
    }

    fn heavy(weight: u64) -> u64 {
        if weight > LIGHT { weight } else { 0 }
    }
}

fn weight(live: &Live) -> u64 {
    live.run.values.weight()
}

/// The messages a driver has to handle, with the run if it was in memory.
pub type Next = (Vec<Envelope>, Option<Box<Live>>);

impl Mailboxes {
    pub fn new(max_cached: usize) -> Mailboxes {
        Mailboxes { state: Mutex::default(), max_cached }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it holds the mailboxes")
    }

    /// Posts a message. True if no task drives the run: then the caller must drive it.
    #[must_use]
    pub fn post(&self, run: RunId, envelope: Envelope) -> bool {
        let mut state = self.state();
        let mailbox = state.by_run.entry(run).or_default();
        mailbox.messages.push(envelope);
        !std::mem::replace(&mut mailbox.driven, true)
    }

    /// Removes an attempt that has ended, and posts its report. Returns true as [`Mailboxes::post`] does.
    #[must_use]
    pub fn report(&self, run: RunId, key: &WorkKey, message: Option<Message>) -> bool {
        let mut state = self.state();
        let Some(mailbox) = state.by_run.get_mut(&run) else { return false };
        mailbox.running.remove(key);
        match message {
            Some(message) => {
                mailbox.messages.push(message.into());
                !std::mem::replace(&mut mailbox.driven, true)
            }
            None => {
                state.remove_if_idle(run);
                false
            }
        }
    }

    /// Makes the caller the driver of a run that it creates. False if another run has that id.
    #[must_use]
    pub fn create_driven(&self, run: RunId) -> bool {
        let mut state = self.state();
        if state.by_run.contains_key(&run) {
            return false;
        }
        state.by_run.entry(run).or_default().driven = true;
        true
    }

    /// The next messages of a run that the caller drives. `None` if there are none: then it is no longer driven.
    pub fn next(&self, run: RunId, live: Option<Box<Live>>) -> Option<Next> {
        let mut state = self.state();
        let state = &mut *state;
        let mailbox = state.by_run.get_mut(&run)?;
        if mailbox.messages.is_empty() {
            mailbox.driven = false;
            // A run with decisions left gets its next turn soon.
            let busy = |live: &Live| !mailbox.running.is_empty() || live.run.has_decisions_left();
            let kept = live.filter(|live| busy(live) && state.cached.add(weight(live), self.max_cached));
            // Its weight counts here from now on.
            mailbox.live = kept.map(|live| Box::new(Live { room: Room::default(), ..*live }));
            state.remove_if_idle(run);
            return None;
        }
        let cached = mailbox.live.take();
        if let Some(live) = &cached {
            state.cached.remove(weight(live));
        }
        // A retry may replace the run's graph, so it gets a commit of its own.
        let retry = mailbox.messages.iter().position(|envelope| matches!(envelope.message, Message::Retry { .. }));
        let rest = match retry {
            Some(0) => mailbox.messages.split_off(1),
            Some(retry) => mailbox.messages.split_off(retry),
            None => Vec::new(),
        };
        let messages = std::mem::replace(&mut mailbox.messages, rest);
        Some((messages, cached.or(live)))
    }

    /// Registers an attempt that runs here. False if it is registered already, or its report is in the mailbox.
    /// `may` is called under the lock, so that the attempt cannot be aborted in between.
    pub fn begin(&self, run: RunId, key: WorkKey, cancel: CancellationToken, may: impl FnOnce() -> bool) -> bool {
        let mut state = self.state();
        if !may() || state.unreported.contains(&(run, key.clone())) {
            return false;
        }
        let mailbox = state.by_run.entry(run).or_default();
        let reported = |envelope: &Envelope| envelope.message.reports_on() == Some(&key);
        if mailbox.running.contains_key(&key) || mailbox.messages.iter().any(reported) {
            return false;
        }
        mailbox.running.insert(key, cancel);
        true
    }

    /// Cancels an attempt. False if it does not run here.
    pub fn abort(&self, run: RunId, key: &WorkKey) -> bool {
        let mut state = self.state();
        state.unreported.remove(&(run, key.clone()));
        let running = state.by_run.get(&run).and_then(|mailbox| mailbox.running.get(key));
        running.inspect(|cancel| cancel.cancel()).is_some()
    }

    /// The run's driver is gone. True if there are messages and `hand_over`: then the caller must drive the run.
    pub fn stop_driving(&self, run: RunId, hand_over: bool) -> bool {
        let mut state = self.state();
        let Some(mailbox) = state.by_run.get_mut(&run) else { return false };
        mailbox.driven = hand_over && !mailbox.messages.is_empty();
        let driven = mailbox.driven;
        state.remove_if_idle(run);
        driven
    }

    /// Gives up the report of an attempt that cannot be recorded, so that this process does not execute it again. The
    /// attempt counts as lost when another process takes it over.
    pub fn give_up_report(&self, run: RunId, key: WorkKey) {
        let mut state = self.state();
        if state.unreported.len() >= MAX_UNREPORTED {
            state.unreported.pop_first();
        }
        state.unreported.insert((run, key));
    }

    /// The attempts of a run that run here.
    pub fn running(&self, run: RunId) -> Vec<WorkKey> {
        let state = self.state();
        state.by_run.get(&run).map(|mailbox| mailbox.running.keys().cloned().collect()).unwrap_or_default()
    }

    /// Every attempt that runs here.
    pub fn executing(&self) -> Vec<(RunId, WorkKey)> {
        let state = self.state();
        let mailboxes = state.by_run.iter();
        mailboxes.flat_map(|(run, mailbox)| mailbox.running.keys().map(|key| (*run, key.clone()))).collect()
    }

    pub fn abort_all(&self) {
        let state = self.state();
        state.by_run.values().flat_map(|mailbox| mailbox.running.values()).for_each(CancellationToken::cancel);
    }

    /// Whether no attempt runs and no run is driven.
    pub fn is_quiet(&self) -> bool {
        self.state().by_run.values().all(Mailbox::is_idle)
    }
}

impl State {
    fn remove_if_idle(&mut self, run: RunId) {
        let keeps = |mailbox: &Mailbox| mailbox.live.as_ref().is_some_and(|live| live.run.has_decisions_left());
        if self.by_run.get(&run).is_some_and(|mailbox| mailbox.is_idle() && !keeps(mailbox)) {
            let removed = self.by_run.remove(&run).and_then(|mailbox| mailbox.live);
            if let Some(live) = removed {
                self.cached.remove(weight(&live));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Cached, LIGHT, MAX_HEAVY};

    #[test]
    fn large_runs_are_kept_in_memory_up_to_their_weight_and_light_ones_beside_them() {
        let mut cached = Cached::default();
        assert!(cached.add(MAX_HEAVY - 10, 10));
        assert!(!cached.add(LIGHT + 1, 10), "too heavy beside the other");
        assert!(cached.add(LIGHT, 10), "light ones are counted only");
        cached.remove(MAX_HEAVY - 10);
        assert!(cached.add(LIGHT + 1, 10));
        assert!(!cached.add(0, 2), "there are two");
        cached.remove(LIGHT + 1);
        cached.remove(LIGHT);
        assert_eq!((cached.runs, cached.heavy), (0, 0));
    }
}
