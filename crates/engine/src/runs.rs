//! The runs this process is busy with: a mailbox for each, and the state of those that have steps running here.
//!
//! One task at a time drives a run, so a run has one commit in flight, and whatever arrives meanwhile shares the next one.
//! A run that only sleeps or waits is not here at all.

use crate::definitions::Compiled;
use crate::error::Error;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use stepwell_core::event::{Answer, Outcome, Retrier, Verdict};
use stepwell_core::run::Run;
use stepwell_core::time::{Millis, Time};
use stepwell_store::{NewAudit, NodeId, OrgId, Parent, RunId, Version, WorkKey};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// A run in memory, as of its last commit.
pub struct Live {
    pub id: RunId,
    pub org: OrgId,
    pub compiled: Arc<Compiled>,
    pub run: Run,
    pub version: Version,
    pub hash: [u8; 32],
    pub secret: [u8; 16],
    pub parent: Option<Parent>,
    pub group: Option<String>,
    pub test: bool,
    /// In whose name it acts, beside the author of its version.
    pub acts_as: Arc<str>,
    /// Its payloads are gone: it can only be looked at.
    pub erased: bool,
}

impl Live {
    /// Everyone whose rights it is limited to by now, as [`crate::rights::actors`] reads it.
    pub fn whose(&self) -> String {
        let again = self.run.retried_as.iter().map(|actor| &**actor);
        let again = again.filter(|actor| self.acts_as.split(' ').all(|known| known != *actor));
        std::iter::once(&*self.acts_as).chain(again).collect::<Vec<_>>().join(" ")
    }
}

/// Something that happened to a run. Names steps by path: numbers change when a run is loaded again.
pub struct Letter {
    pub what: What,
    /// Told once it is on disk, or that it counts for nothing.
    pub reply: Option<oneshot::Sender<Result<(), Error>>>,
    /// Goes into the audit trail with it.
    pub audit: Option<NewAudit>,
}

impl From<What> for Letter {
    fn from(what: What) -> Letter {
        Letter { what, reply: None, audit: None }
    }
}

pub enum What {
    Admit,
    Report {
        key: WorkKey,
        outcome: Outcome,
    },
    /// The attempt needs an approval or an answer to go on.
    Held {
        key: WorkKey,
        ask: Arc<Value>,
        timeout: Option<Millis>,
        note: Option<Arc<Value>>,
    },
    /// The attempt is put off.
    Deferred {
        key: WorkKey,
        due: Time,
        note: Option<Arc<Value>>,
    },
    Lost {
        key: WorkKey,
    },
    /// The store gave this attempt to this node.
    Start {
        key: WorkKey,
        org: OrgId,
        node: NodeId,
    },
    Timer {
        key: String,
    },
    Deliver {
        path: String,
        body: Arc<Value>,
    },
    Answer {
        path: String,
        attempt: u32,
        answer: Answer,
    },
    Wake {
        path: String,
        attempt: u32,
        by: Arc<str>,
    },
    Settle {
        path: String,
        attempt: u32,
        verdict: Verdict,
        by: Arc<str>,
    },
    Override {
        path: String,
        attempt: u32,
        outcome: Outcome,
        by: Arc<str>,
        comment: Option<Arc<str>>,
    },
    Cancel {
        by: Arc<str>,
        reason: Option<Arc<str>>,
    },
    Retry {
        by: Retrier,
        onto: Option<Arc<Compiled>>,
    },
    /// A child is there, and its start notice with it.
    Born {
        notice: String,
    },
    /// A child could not be started; the notice is done with that.
    Childless {
        notice: String,
        outcome: Outcome,
    },
    /// There is mail in the store.
    Mail,
    /// Notices in the store that are not done, by key.
    Notices(Vec<String>),
    /// What runs here may differ from what the store says.
    Reconcile,
}

impl What {
    /// The attempt that is over with it.
    fn reports_on(&self) -> Option<&WorkKey> {
        match self {
            What::Report { key, .. } | What::Held { key, .. } | What::Deferred { key, .. } => Some(key),
            _ => None,
        }
    }
}

#[derive(Default)]
struct Mailbox {
    letters: Vec<Letter>,
    driven: bool,
    live: Option<Box<Live>>,
    running: BTreeMap<WorkKey, CancellationToken>,
}

impl Mailbox {
    fn is_idle(&self) -> bool {
        !self.driven && self.letters.is_empty() && self.running.is_empty()
    }
}

pub struct Runs {
    all: Mutex<All>,
    /// How many runs keep their state between two events.
    most: usize,
}

#[derive(Default)]
struct All {
    boxes: BTreeMap<RunId, Mailbox>,
    kept: usize,
}

/// The letters a driver has to see to, with the run if it was kept.
pub type Next = (Vec<Letter>, Option<Box<Live>>);

impl Runs {
    pub fn new(most: usize) -> Runs {
        Runs { all: Mutex::default(), most }
    }

    fn all(&self) -> MutexGuard<'_, All> {
        self.all.lock().expect("nothing panics while it holds the mailboxes")
    }

    /// Puts a letter in. True if nobody drives the run: then the caller must.
    #[must_use]
    pub fn post(&self, run: RunId, letter: Letter) -> bool {
        let mut all = self.all();
        let mailbox = all.boxes.entry(run).or_default();
        mailbox.letters.push(letter);
        !std::mem::replace(&mut mailbox.driven, true)
    }

    /// The execution is over and this is what came of it. True as for [`Runs::post`].
    #[must_use]
    pub fn report(&self, run: RunId, key: &WorkKey, what: Option<What>) -> bool {
        let mut all = self.all();
        let Some(mailbox) = all.boxes.get_mut(&run) else { return false };
        mailbox.running.remove(key);
        match what {
            Some(what) => {
                mailbox.letters.push(what.into());
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

    /// The next letters of a run that the caller drives; or none, and it is no longer driven.
    pub fn next(&self, run: RunId, live: Option<Box<Live>>) -> Option<Next> {
        let mut all = self.all();
        let all = &mut *all;
        let mailbox = all.boxes.get_mut(&run)?;
        if mailbox.letters.is_empty() {
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
        let retry = mailbox.letters.iter().position(|letter| matches!(letter.what, What::Retry { .. }));
        let rest = match retry {
            Some(0) => mailbox.letters.split_off(1),
            Some(retry) => mailbox.letters.split_off(retry),
            None => Vec::new(),
        };
        let letters = std::mem::replace(&mut mailbox.letters, rest);
        Some((letters, kept.or(live)))
    }

    /// Notes that an attempt runs here. False if it does already, or did and its report is still to be seen to.
    /// Whether it still may is asked while nothing can be aborted.
    pub fn begin(&self, run: RunId, key: WorkKey, cancel: CancellationToken, may: impl FnOnce() -> bool) -> bool {
        let mut all = self.all();
        if !may() {
            return false;
        }
        let mailbox = all.boxes.entry(run).or_default();
        let reported = |letter: &Letter| letter.what.reports_on() == Some(&key);
        if mailbox.running.contains_key(&key) || mailbox.letters.iter().any(reported) {
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
            mailbox.letters.clear();
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
