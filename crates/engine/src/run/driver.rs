//! The right to drive a run, which one task has at a time.

use super::live::Live;
use super::mailbox::Next;
use super::messages::{Envelope, Message};
use super::{Runner, drive};
use std::sync::Arc;
use stepwell_store::{RunId, WorkKey};
use tokio::runtime::Handle;

/// Dropping it lets another task drive the run. After a panic a new task handles the messages that are left.
pub struct Driver {
    pub runner: Arc<Runner>,
    pub run: RunId,
    /// The mailbox is empty: the run is no longer driven.
    done: bool,
    /// Whether it continues the work of a driver that panicked.
    continues: bool,
}

impl Driver {
    fn new(runner: Arc<Runner>, run: RunId) -> Driver {
        Driver { runner, run, done: false, continues: false }
    }

    /// The next messages of the run. `None` if there are none: then it is no longer driven.
    pub fn next(&mut self, live: Option<Box<Live>>) -> Option<Next> {
        let next = self.runner.mailboxes.next(self.run, live);
        self.done = next.is_none();
        next
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        // Only after a panic: if the runtime shuts down, a new task would be dropped at once as well.
        let runtime = Handle::try_current().ok().filter(|_| std::thread::panicking() && !self.continues);
        if self.runner.mailboxes.stop_driving(self.run, runtime.is_some())
            && let Some(runtime) = runtime
        {
            tracing::error!(run = self.run.0, "the driver of a run panicked; another task continues");
            let next = Driver { runner: self.runner.clone(), run: self.run, done: false, continues: true };
            runtime.spawn(drive::drive(next, None));
        }
    }
}

impl Runner {
    /// Posts a message. If no task drives the run, the caller must.
    #[must_use]
    pub fn post(self: &Arc<Runner>, run: RunId, envelope: Envelope) -> Option<Driver> {
        self.mailboxes.post(run, envelope).then(|| Driver::new(self.clone(), run))
    }

    /// Removes an attempt that has ended, and posts its report. Like [`Runner::post`].
    #[must_use]
    pub fn report(self: &Arc<Runner>, run: RunId, key: &WorkKey, message: Option<Message>) -> Option<Driver> {
        self.mailboxes.report(run, key, message).then(|| Driver::new(self.clone(), run))
    }

    /// Makes the caller the driver of a run that it creates. `None` if another run has that id.
    #[must_use]
    pub fn create_driven(self: &Arc<Runner>, run: RunId) -> Option<Driver> {
        self.mailboxes.create_driven(run).then(|| Driver::new(self.clone(), run))
    }
}
