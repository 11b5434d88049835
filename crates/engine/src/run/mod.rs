//! The life of runs: message → plan → commit, for one run at a time.
//!
//! | file | what |
//! | --- | --- |
//! | `messages.rs`, `mailbox.rs`, `live.rs` | what a run can receive, where it waits, the run in memory |
//! | `start.rs` | starting runs: for callers, triggers, parents, tests |
//! | `plan.rs` | messages as events for the planner, and one transition of their results |
//! | `drive.rs`, `commit.rs` | the loop of a run; a plan as a commit, and what follows it |
//! | `record.rs`, `keys.rs` | a transition as rows and back; names of timers and notices |
//! | `timers.rs`, `children.rs`, `queue.rs`, `callbacks.rs` | timers, child runs, concurrency queues, callback URLs |
//! | `sink.rs` | what the loop needs of the rooms above |
//!
//! May use: `workflows`, `secrets`, `access` and below. Not here: executing steps (`execute`), telling people (`notify`).

pub mod callbacks;
pub mod children;
mod commit;
pub mod drive;
mod keys;
pub mod links;
mod live;
mod mailbox;
mod messages;
mod plan;
pub mod queue;
mod record;
mod sink;
pub mod start;
pub mod timers;

pub use keys::{ChildTask, child_key, timer_key, timer_named};
pub use live::Live;
pub use mailbox::Mailboxes;
pub use messages::{Envelope, Message};
pub use record::{CommitContext, StoredRunError, record, restore, status};
pub use sink::{CallRules, Sink};

use crate::cluster::Cluster;
use crate::error::Error;
use crate::workflows::Workflows;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use stepwell_store::{NewAudit, OrgId, Position, RunId, Version};
use timers::Timers;
use tokio::sync::{broadcast, oneshot};

/// Signals that there is something new in the log. A hint: the log has the rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Activity {
    Committed(Committed),
    /// Another process wrote something.
    Elsewhere,
}

/// A commit of this process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Committed {
    pub run: RunId,
    pub org: OrgId,
    pub version: Version,
    pub position: Position,
    pub ended: bool,
    /// When this process learned that it was on disk.
    pub at: std::time::Instant,
}

pub struct Runner {
    pub cluster: Arc<Cluster>,
    pub workflows: Arc<Workflows>,
    pub mailboxes: Mailboxes,
    pub timers: Timers,
    pub activity: broadcast::Sender<Activity>,
    /// What callback URLs begin with.
    pub base_url: String,
    /// Weak: the rooms above hold this one.
    sink: OnceLock<Weak<dyn Sink>>,
    waiters: Mutex<BTreeMap<RunId, Vec<oneshot::Sender<()>>>>,
}

impl Runner {
    pub fn new(workflows: Arc<Workflows>, live_runs: usize, base_url: String) -> Runner {
        Runner {
            cluster: workflows.access.cluster.clone(),
            workflows,
            mailboxes: Mailboxes::new(live_runs),
            timers: Timers::default(),
            activity: broadcast::channel(4_096).0,
            base_url,
            sink: OnceLock::new(),
            waiters: Mutex::default(),
        }
    }

    /// Connects the rooms above. Called once, before anything runs.
    pub fn connect(&self, sink: Weak<dyn Sink>) {
        // A second call changes nothing.
        let _ = self.sink.set(sink);
    }

    /// Fails once the engine is gone.
    fn sink(&self) -> Result<Arc<dyn Sink>, Error> {
        self.sink.get().and_then(Weak::upgrade).ok_or_else(|| Error::Unavailable("the engine has stopped".into()))
    }

    /// Sends a message to a run.
    pub fn send(self: &Arc<Runner>, run: RunId, envelope: impl Into<Envelope>) {
        if self.mailboxes.post(run, envelope.into()) {
            drive::spawn(self.clone(), run, None);
        }
    }

    /// Sends a message to a run and waits until it is on disk.
    pub async fn ask(self: &Arc<Runner>, run: RunId, message: Message) -> Result<(), Error> {
        self.command(run, message, None).await
    }

    /// Like [`Runner::ask`], with a row for the audit trail in the same write.
    pub async fn command(
        self: &Arc<Runner>,
        run: RunId,
        message: Message,
        audit: Option<NewAudit>,
    ) -> Result<(), Error> {
        let (reply, answer) = oneshot::channel();
        self.send(run, Envelope { message, reply: Some(reply), audit });
        answer.await.unwrap_or_else(|_| Err(Error::Unavailable("the engine is stopping".into())))
    }

    /// Fires when the run ends from now on.
    pub fn end_of(&self, run: RunId) -> oneshot::Receiver<()> {
        let (ended, end) = oneshot::channel();
        self.notify_end(run, ended);
        end
    }

    /// Fires `ended` when the run ends. The run must be on disk: one that is not counts as ended.
    fn notify_end(&self, run: RunId, ended: oneshot::Sender<()>) {
        let mut waiters = self.waiters.lock().expect("nothing panics while it holds the waiters");
        let list = waiters.entry(run).or_default();
        list.retain(|waiter| !waiter.is_closed());
        list.push(ended);
    }

    fn ended(&self, run: RunId) {
        let waiters = self.waiters.lock().expect("nothing panics while it holds the waiters").remove(&run);
        for waiter in waiters.into_iter().flatten() {
            // The receiver may have been dropped.
            let _ = waiter.send(());
        }
    }

    /// Checks the store for awaited runs that ended without this process noticing.
    pub async fn check_ends(&self) {
        let awaited: Vec<RunId> = {
            let mut waiters = self.waiters.lock().expect("nothing panics while it holds the waiters");
            waiters.retain(|_, list| list.iter().any(|waiter| !waiter.is_closed()));
            waiters.keys().copied().collect()
        };
        if awaited.is_empty() {
            return;
        }
        match self.cluster.store.ended(&awaited).await {
            Ok(ended) => ended.into_iter().for_each(|run| self.ended(run)),
            Err(error) => tracing::warn!(%error, "cannot check whether awaited runs have ended"),
        }
    }
}
