//! The life cycle of runs: message → plan → commit, one commit per run at a time.
//!
//! | file | purpose |
//! | --- | --- |
//! | `messages.rs`, `mailbox.rs`, `live.rs` | messages, mailboxes, the run in memory |
//! | `start.rs` | starting runs: for callers, triggers, parents, tests |
//! | `plan.rs` | turns messages into planner events, and their results into one transition |
//! | `drive.rs`, `driver.rs`, `commit.rs` | the loop of a run; which task drives it; writing a plan and acting on it |
//! | `record.rs`, `keys.rs` | a transition as rows and back; keys of timers and notices |
//! | `continuing.rs` | turns of runs whose transitions leave decisions to the next one |
//! | `timers.rs`, `queue.rs`, `callbacks.rs` | timers, concurrency queues, callback URLs |
//! | `children.rs`, `child_starts.rs` | child runs; backpressure on their starts |
//! | `broken.rs` | runs that cannot be read |
//! | `recovery.rs` | runs that may be what ends the process |
//! | `sink.rs` | the interface to the layers above |
//!
//! May use: `workflows`, `secrets`, `access` and below. Not here: step execution (`execute`), notifications (`notify`).

mod broken;
pub mod callbacks;
mod child_starts;
pub mod children;
mod commit;
mod continuing;
pub mod drive;
mod driver;
mod due;
mod keys;
pub mod links;
mod live;
mod loads;
mod mailbox;
mod messages;
mod plan;
pub mod queue;
mod record;
pub mod recovery;
mod sink;
pub mod start;
pub mod timers;

pub use broken::{Cancellation, cancel as cancel_unread};
pub use driver::Driver;
pub use keys::{ChildTask, child_key, timer_key, timer_named};
pub use live::Live;
pub use loads::{Room, SMALL, read_apart};
pub use mailbox::Mailboxes;
pub use messages::{Envelope, Message};
pub use record::{CommitContext, StoredRunError, record, restore, scheduled_for, status};
pub use sink::{CallRules, HostGuard, HostRules, Sink, Slot, SlotPool};

use crate::cluster::Cluster;
use crate::error::Error;
use crate::workflows::Workflows;
use child_starts::ChildStarts;
use continuing::Continuations;
use due::DueRuns;
use loads::Loads;
use recovery::Recovery;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use stepwell_core::plan::Budget;
use stepwell_store::{NewAudit, OrgId, Position, RunId, Version};
use timers::Timers;
use tokio::sync::{broadcast, oneshot};

/// Signals new entries in the log. Only a hint: the log has the details.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Activity {
    Committed(Committed),
    /// Another process wrote to the log.
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
    /// When this process learned that the commit was on disk.
    pub at: std::time::Instant,
}

pub struct Runner {
    pub cluster: Arc<Cluster>,
    pub workflows: Arc<Workflows>,
    pub mailboxes: Mailboxes,
    pub timers: Arc<Timers>,
    pub child_starts: ChildStarts,
    /// Memory for runs that are continued. Separate from `views`, so that readers do not hold them up.
    loads: Loads,
    /// Memory for runs that are shown.
    pub views: Loads,
    pub broken: broken::BrokenRuns,
    continuations: Continuations,
    due_runs: DueRuns,
    /// What one transition, and the payloads of one run, may cost.
    budget: Budget,
    pub activity: broadcast::Sender<Activity>,
    /// The prefix of callback URLs.
    pub base_url: String,
    /// How many times in a row the node of a step may be lost before the step is quarantined.
    pub max_losses: u8,
    pub recovery: Recovery,
    /// Weak, because the layers above own the runner.
    sink: OnceLock<Weak<dyn Sink>>,
    waiters: Mutex<BTreeMap<RunId, Vec<oneshot::Sender<()>>>>,
}

/// The settings of a runner.
pub struct RunnerSettings {
    /// Runs kept in memory.
    pub live_runs: usize,
    /// The prefix of callback URLs.
    pub base_url: String,
    /// What one transition, and the payloads of one run, may cost.
    pub budget: Budget,
    /// How many times in a row the process may end while a step runs or a run is recovered.
    pub max_losses: u8,
}

impl Runner {
    pub fn new(workflows: Arc<Workflows>, settings: RunnerSettings) -> Runner {
        let RunnerSettings { live_runs, base_url, budget, max_losses } = settings;
        Runner {
            cluster: workflows.access.cluster.clone(),
            workflows,
            mailboxes: Mailboxes::new(live_runs),
            timers: Arc::default(),
            child_starts: ChildStarts::default(),
            loads: Loads::default(),
            views: Loads::default(),
            broken: broken::BrokenRuns::default(),
            continuations: Continuations::default(),
            due_runs: DueRuns::default(),
            budget,
            activity: broadcast::channel(4_096).0,
            base_url,
            max_losses,
            recovery: Recovery::default(),
            sink: OnceLock::new(),
            waiters: Mutex::default(),
        }
    }

    /// Connects the layers above. Called once, before anything runs.
    pub fn connect(&self, sink: Weak<dyn Sink>) {
        // A second call changes nothing.
        let _ = self.sink.set(sink);
    }

    /// Fails once the engine has been dropped.
    pub fn sink(&self) -> Result<Arc<dyn Sink>, Error> {
        self.sink.get().and_then(Weak::upgrade).ok_or_else(|| Error::Unavailable("the engine has stopped".into()))
    }

    /// The budget of a transition of a run of this organisation: its plan may lower the limit of a run's payloads.
    async fn budget(&self, org: OrgId) -> Result<Budget, Error> {
        let (_, limits) = self.workflows.access.limits_of(org).await?;
        let run_bytes = limits.run_bytes.map_or(self.budget.run_bytes, |most| most.min(self.budget.run_bytes));
        Ok(Budget { run_bytes, ..self.budget })
    }

    /// Sends a message to a run.
    pub fn send(self: &Arc<Runner>, run: RunId, envelope: impl Into<Envelope>) {
        if let Some(driver) = self.post(run, envelope.into()) {
            tokio::spawn(drive::drive(driver, None));
        }
    }

    /// Sends a message to a run and waits until it is on disk.
    pub async fn ask(self: &Arc<Runner>, run: RunId, message: Message) -> Result<(), Error> {
        self.command(run, message, None).await
    }

    /// Like [`Runner::ask`], with an audit row in the same commit.
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

    /// Fires when the run ends after this call.
    pub fn end_of(&self, run: RunId) -> oneshot::Receiver<()> {
        let (ended, end) = oneshot::channel();
        self.notify_end(run, ended);
        end
    }

    /// Fires `ended` when the run ends. The run must be on disk: a missing run counts as ended.
    fn notify_end(&self, run: RunId, ended: oneshot::Sender<()>) {
        let mut waiters = self.waiters.lock().expect("nothing panics while it holds the waiters");
        let list = waiters.entry(run).or_default();
        list.retain(|waiter| !waiter.is_closed());
        list.push(ended);
    }

    /// Fires the waiters of a run that has ended.
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
