//! The mailboxes of the runs this process is busy with, and the state of those with attempts running here.
//!
//! One task at a time drives a run, so a run has one commit in flight, and messages that arrive meanwhile share the next
//! one. A run that only sleeps or waits has no mailbox.

use super::live::Live;
use super::messages::{Envelope, Message};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use stepwell_store::{RunId, WorkKey};
use tokio_util::sync::CancellationToken;

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
    all: Mutex<All>,
    /// How many runs keep their state between two events.
    most: usize,
}

#[derive(Default)]
struct All {
    boxes: BTreeMap<RunId, Mailbox>,
    kept: usize,
}

/// The messages a driver has to see to, with the run if it was kept.
pub type Next = (Vec<Envelope>, Option<Box<Live>>);

impl Mailboxes {
    pub fn new(most: usize) -> Mailboxes {
        Mailboxes { all: Mutex::default(), most }
    }

    fn all(&self) -> MutexGuard<'_, All> {
        self.all.lock().expect("nothing panics while it holds the mailboxes")
    }

    /// Puts a envelope in. True if nobody drives the run: then the caller must.
    #[must_use]
    pub fn post(&self, run: RunId, envelope: Envelope) -> bool {
        let mut all = self.all();
        let mailbox = all.boxes.entry(run).or_default();
        mailbox.messages.push(envelope);
        !std::mem::replace(&mut mailbox.driven, true)
    }

    /// The execution is over and this is what came of it. True as for [`Mailboxes::post`].
    #[must_use]
    pub fn report(&self, run: RunId, key: &WorkKey, message: Option<Message>) -> bool {
        let mut all = self.all();
        let Some(mailbox) = all.boxes.get_mut(&run) else { return false };
        mailbox.running.remove(key);
        match message {
            Some(message) => {
                mailbox.messages.push(message.into());
                !std::mem::replace(&mut mailbox.driven, true)
            }
            None => {
                all.tidy(run);
                false
            }
        }
    }

    /// A run that is being made is driven by whoever makes it. False if another run has that id.
    #[must_use]
    pub fn adopt(&self, run: RunId) -> bool {
        let mut all = self.all();
        if all.boxes.contains_key(&run) {
            return false;
        }
        all.boxes.entry(run).or_default().driven = true;
        true
    }

    /// The next messages of a run that the caller drives; or none, and it is no longer driven.
    pub fn next(&self, run: RunId, live: Option<Box<Live>>) -> Option<Next> {
        let mut all = self.all();
        let all = &mut *all;
        let mailbox = all.boxes.get_mut(&run)?;
        if mailbox.messages.is_empty() {
            mailbox.driven = false;
            let busy = !mailbox.running.is_empty() && all.kept < self.most;
            mailbox.live = live.filter(|_| busy);
            all.kept += usize::from(mailbox.live.is_some());
            all.tidy(run);
            return None;
        }
        let kept = mailbox.live.take();
        all.kept -= usize::from(kept.is_some());
        // A retry may change the graph under the run: it has a commit of its own.
        let retry = mailbox.messages.iter().position(|envelope| matches!(envelope.message, Message::Retry { .. }));
        let rest = match retry {
            Some(0) => mailbox.messages.split_off(1),
            Some(retry) => mailbox.messages.split_off(retry),
            None => Vec::new(),
        };
        let messages = std::mem::replace(&mut mailbox.messages, rest);
        Some((messages, kept.or(live)))
    }

    /// Notes that an attempt runs here. False if it does already, or did and its report is still to be seen to.
    /// Whether it still may is asked while nothing can be aborted.
    pub fn begin(&self, run: RunId, key: WorkKey, cancel: CancellationToken, may: impl FnOnce() -> bool) -> bool {
        let mut all = self.all();
        if !may() {
            return false;
        }
        let mailbox = all.boxes.entry(run).or_default();
        let reported = |envelope: &Envelope| envelope.message.reports_on() == Some(&key);
        if mailbox.running.contains_key(&key) || mailbox.messages.iter().any(reported) {
            return false;
        }
        mailbox.running.insert(key, cancel);
        true
    }

    /// False if it does not run here.
    pub fn abort(&self, run: RunId, key: &WorkKey) -> bool {
        let all = self.all();
        let running = all.boxes.get(&run).and_then(|mailbox| mailbox.running.get(key));
        running.inspect(|cancel| cancel.cancel()).is_some()
    }

    /// Whoever drove the run broke down: what was in its mailbox is lost, and it can be driven again.
    pub fn wreck(&self, run: RunId) {
        let mut all = self.all();
        let all = &mut *all;
        if let Some(mailbox) = all.boxes.get_mut(&run) {
            mailbox.driven = false;
            mailbox.messages.clear();
            all.kept -= usize::from(mailbox.live.take().is_some());
        }
        all.tidy(run);
    }

    pub fn running(&self, run: RunId) -> Vec<WorkKey> {
        let all = self.all();
        all.boxes.get(&run).map(|mailbox| mailbox.running.keys().cloned().collect()).unwrap_or_default()
    }

    /// Every attempt that runs here.
    pub fn executing(&self) -> Vec<(RunId, WorkKey)> {
        let all = self.all();
        let boxes = all.boxes.iter();
        boxes.flat_map(|(run, mailbox)| mailbox.running.keys().map(|key| (*run, key.clone()))).collect()
    }

    pub fn abort_all(&self) {
        let all = self.all();
        all.boxes.values().flat_map(|mailbox| mailbox.running.values()).for_each(CancellationToken::cancel);
    }

    /// True when nothing runs and nobody drives.
    pub fn is_quiet(&self) -> bool {
        self.all().boxes.values().all(Mailbox::is_idle)
    }
}

impl All {
    fn tidy(&mut self, run: RunId) {
        if self.boxes.get(&run).is_some_and(Mailbox::is_idle) {
            let gone = self.boxes.remove(&run);
            self.kept -= usize::from(gone.is_some_and(|mailbox| mailbox.live.is_some()));
        }
    }
}
