//! Durable storage of runs: the [`Store`] contract and the databases behind it. No other crate mentions SQL.
//!
//! A store applies [`Commit`]s and gives rows back. It decides nothing about workflows and never looks inside the
//! JSON it keeps.

mod commit;
mod error;
mod hash;
mod location;
pub mod memory;
mod nodes;
pub mod postgres;
mod progress;
mod read;
mod registry;
pub mod sqlite;
pub mod tls;
mod transfer;
mod turns;

pub use commit::*;
pub use error::Error;
pub use hash::{digest, hash, payloads};
pub use location::{Location, PostgresOptions, without_password};
pub use nodes::*;
pub use progress::*;
pub use read::*;
pub use registry::*;
pub use transfer::{Taken, transfer};

use async_trait::async_trait;
use stepwell_core::time::Time;
use stepwell_core::value::ValueId;

/// Everything the engine asks of durable storage. A method applies fully or not at all.
#[async_trait]
pub trait Store: Registry + Nodes {
    /// Writes transitions; each is applied or refused alone. `Ok` means on disk; `Err` means the outcome is unknown.
    async fn commit(&self, batch: Vec<Commit>) -> Result<Vec<Result<Position, Refused>>, Error>;

    /// A run with everything needed to go on with it.
    async fn load(&self, run: RunId) -> Result<Option<LoadedRun>, Error>;
    /// Several runs at once; those that are not there are left out.
    async fn load_all(&self, runs: Vec<RunId>) -> Result<Vec<LoadedRun>, Error> {
        let mut loaded = Vec::with_capacity(runs.len());
        for run in runs {
            loaded.extend(self.load(run).await?);
        }
        Ok(loaded)
    }
    async fn find_run(&self, public: &str) -> Result<Option<RunId>, Error>;
    /// A run as lists show it.
    async fn run(&self, run: RunId) -> Result<Option<RunRow>, Error>;
    /// Log rows after a version, oldest first.
    async fn tail(&self, run: RunId, after: Version, limit: u32) -> Result<Vec<StoredLog>, Error>;
    /// Payloads by number; those that were purged are missing from the answer.
    async fn values(&self, run: RunId, ids: &[ValueId]) -> Result<Vec<ValueRow>, Error>;

    /// Every attempt of every step, by step and attempt.
    async fn attempts(&self, run: RunId) -> Result<Vec<StepRow>, Error>;

    /// Timers of a share due by `until`, soonest first.
    async fn due(&self, until: Time, share: Share, limit: u32) -> Result<Vec<DueTimer>, Error>;
    /// Mail for a run, oldest first.
    async fn mail(&self, run: RunId) -> Result<Vec<StoredMail>, Error>;
    /// Runs that have mail.
    async fn mailed(&self, limit: u32) -> Result<Vec<RunId>, Error>;
    /// Notices that are due, in the order in which each run wrote them.
    async fn outbox(&self, until: Time, limit: u32) -> Result<Vec<StoredNotice>, Error>;
    /// Removes rows outside of any commit.
    async fn forget(&self, stale: Stale) -> Result<(), Error>;
    /// The run that holds a unique key.
    async fn keyed(&self, scope: &str, key: &str) -> Result<Option<RunId>, Error>;
    /// The first run in each queue for a place, with the place's key.
    async fn queued(&self, limit: u32) -> Result<Vec<(String, RunId)>, Error>;
    /// The first run in the queue for a place.
    async fn first_queued(&self, place: &str) -> Result<Option<RunId>, Error>;
    /// The oldest run that holds a place.
    async fn holder(&self, place: &str) -> Result<Option<RunId>, Error>;
    /// The positions of the newest commits.
    async fn progress(&self) -> Result<Progress, Error>;
    /// Log rows of all runs that the reader does not have, in an order that is each run's own.
    async fn feed(&self, after: &Progress, limit: u32) -> Result<Vec<Fed>, Error>;

    /// Stores the next version of a workflow and makes the change, or gives back the newest one if nothing differs.
    async fn define(&self, definition: NewDefinition, with: Change) -> Result<Result<DefinitionRow, Refused>, Error>;
    async fn definition(&self, id: i64) -> Result<Option<DefinitionRow>, Error>;
    /// The newest version of a living workflow, by its name or its `wf_…`.
    async fn find_definition(&self, org: OrgId, name: &str) -> Result<Option<DefinitionRow>, Error>;
    /// The newest versions of all living workflows, by name.
    async fn definitions(&self, org: OrgId) -> Result<Vec<DefinitionRow>, Error>;
    /// All versions of a workflow by its `wf_…`, newest first, whether it lives or not.
    async fn versions(&self, org: OrgId, workflow: &str) -> Result<Vec<DefinitionRow>, Error>;
    /// Ends a workflow's life: it is no longer found or listed, and its name is free. False if it was not alive.
    async fn undefine(&self, org: OrgId, workflow: &str, at: Time, with: Change) -> Result<bool, Error>;

    async fn runs(&self, filter: RunFilter) -> Result<Vec<RunRow>, Error>;
    /// Those of these runs that have ended, or are gone.
    async fn ended(&self, runs: &[RunId]) -> Result<Vec<RunId>, Error>;
    /// Gives a run other labels. False if there is no such run.
    async fn label(&self, run: RunId, labels: Vec<String>, audit: Vec<NewAudit>) -> Result<bool, Error>;
    /// What people are waited for, oldest first, after the last one of the page before.
    async fn gates(&self, org: OrgId, after: Option<(RunId, String)>, limit: u32) -> Result<Vec<OpenGate>, Error>;

    /// The epoch of an organisation's grants; `None` if there is no such organisation.
    async fn epoch(&self, org: OrgId) -> Result<Option<i64>, Error>;
    /// Says that grants of the organisation changed: decisions made before this are refused.
    async fn grants_changed(&self, org: OrgId) -> Result<(), Error>;

    /// Removes up to `limit` rows of finished runs whose time is over; returns how many are gone.
    async fn purge(&self, before: Time, limit: u32) -> Result<u64, Error>;
    /// Gives back some of the room that removed rows took. False if there is nothing worth giving back.
    async fn shrink(&self) -> Result<bool, Error> {
        Ok(false)
    }
    /// How many finished runs a purge would remove.
    async fn purgeable(&self, before: Time) -> Result<u64, Error>;
    /// Replaces all payloads of a finished run by null; its log and their digests stay. False if it has not finished.
    async fn erase(&self, run: RunId, at: Time, audit: Vec<NewAudit>) -> Result<bool, Error>;
    /// Makes a run's time be over now. Only for runs that are finished.
    async fn expire(&self, run: RunId, at: Time) -> Result<bool, Error>;

    /// Counting rows reads all of them.
    async fn stats(&self, count: bool) -> Result<Stats, Error>;
    /// What is wrong with the data as the database sees it; empty is good.
    async fn integrity(&self) -> Result<Vec<String>, Error>;
}
