//! Reading the log: what live events, traces and followers of runs need of the store, and nothing that changes it.

use crate::error::Error;
use crate::notify::{Announcement, Gates};
use crate::rooms::Rooms;
use crate::run::start::{End, end_of};
use std::sync::Arc;
use stepwell_store::{DefinitionRow, Fed, LoadedRun, OrgId, Progress, RunId, RunRow, StepRow, StoredLog, Version};

/// Reads rows of the log. It checks no rights: its users do, before they ask.
#[derive(Clone)]
pub struct LogReader {
    rooms: Arc<Rooms>,
}

impl LogReader {
    pub(crate) fn new(rooms: Arc<Rooms>) -> LogReader {
        LogReader { rooms }
    }

    /// The positions of the newest commits.
    pub async fn progress(&self) -> Result<Progress, Error> {
        Ok(self.rooms.cluster.store.progress().await?)
    }

    /// Log rows of all runs after what the reader has, in an order that is each run's own.
    pub async fn feed(&self, after: &Progress, limit: u32) -> Result<Vec<Fed>, Error> {
        Ok(self.rooms.cluster.store.feed(after, limit).await?)
    }

    /// The same for the runs of one organisation.
    pub async fn feed_of(&self, org: OrgId, after: &Progress, limit: u32) -> Result<Vec<Fed>, Error> {
        Ok(self.rooms.cluster.store.feed_of(org, after, limit).await?)
    }

    /// Log rows of one run after a version.
    pub async fn tail(&self, run: RunId, after: Version, limit: u32) -> Result<Vec<StoredLog>, Error> {
        Ok(self.rooms.cluster.store.tail(run, after, limit).await?)
    }

    /// A run by its `run_…`.
    pub async fn find(&self, run: &str) -> Result<Option<RunRow>, Error> {
        match self.rooms.cluster.store.find_run(run).await? {
            Some(id) => self.run(id).await,
            None => Ok(None),
        }
    }

    pub async fn run(&self, run: RunId) -> Result<Option<RunRow>, Error> {
        Ok(self.rooms.cluster.store.run(run).await?)
    }

    /// Resolves when the run ends, or at once if it has.
    pub async fn end_of(&self, run: RunId) -> Result<End, Error> {
        end_of(&self.rooms.runner, run).await
    }

    /// The run with its steps and payloads.
    pub async fn load(&self, run: RunId) -> Result<Option<LoadedRun>, Error> {
        Ok(self.rooms.cluster.store.load(run).await?)
    }

    /// The attempts of a run's steps, as rows.
    pub async fn attempts(&self, run: RunId) -> Result<Vec<StepRow>, Error> {
        Ok(self.rooms.cluster.store.attempts(run).await?)
    }

    /// The stored version that a run is of.
    pub async fn definition(&self, id: i64) -> Result<Option<DefinitionRow>, Error> {
        Ok(self.rooms.cluster.store.definition(id).await?)
    }

    /// The organisation's epoch: it moves with every change to rights, workflows and tools.
    pub async fn epoch(&self, org: OrgId) -> Result<Option<i64>, Error> {
        Ok(self.rooms.cluster.store.epoch(org).await?)
    }

    /// The names of a run's gates, for [`LogReader::announcements`].
    pub async fn gates_of(&self, run: &RunRow) -> Result<Gates, Error> {
        self.rooms.notifier.gates_of(run).await
    }

    /// What a log row gives to tell people who are connected.
    pub async fn announcements(&self, fed: &Fed, gates: &Gates) -> Result<Vec<Announcement>, Error> {
        self.rooms.notifier.announced(fed, gates).await
    }
}
