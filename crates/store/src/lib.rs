//! Durable storage of runs: the [`Store`] contract and the databases behind it. No other crate mentions SQL.
//!
//! A store applies [`Commit`]s and returns rows. It makes no decisions about workflows and never parses the JSON it
//! stores.

mod commit;
mod error;
mod evidence;
mod hash;
mod location;
pub mod memory;
mod nodes;
pub mod postgres;
mod progress;
mod read;
mod registry;
mod round_robin;
pub mod sqlite;
mod supervise;
pub mod tls;
mod transfer;

pub use commit::*;
pub use error::Error;
pub use evidence::{ChainKey, Class, Compared, ComparedTrail, Evidence, Trail, TrailPoint, WriterTally};
pub use hash::{Origin, digest, hash, hex, payloads};
pub use location::{Location, PostgresOptions, without_password};
pub use nodes::*;
pub use progress::*;
pub use read::*;
pub use registry::*;
pub use supervise::{Supervisor, panic_message};
pub use transfer::{CopiedTable, transfer};

use async_trait::async_trait;
use stepwell_core::time::Time;
use stepwell_core::value::ValueId;

/// Everything the engine needs from durable storage. A method applies fully or not at all.
#[async_trait]
pub trait Store: Registry + Nodes {
    /// Writes transitions; each is applied or refused on its own. `Ok` means the batch is on disk; `Err` means the
    /// outcome is unknown.
    async fn commit(&self, batch: Vec<Commit>) -> Result<Vec<Result<Position, Refused>>, Error>;

    /// Returns a run with everything needed to continue it.
    async fn load(&self, run: RunId) -> Result<Option<LoadedRun>, Error>;
    /// Returns a run without its steps and payloads.
    async fn head(&self, run: RunId) -> Result<Option<LoadedRun>, Error> {
        let loaded = self.load(run).await?;
        Ok(loaded.map(|loaded| LoadedRun { steps: Vec::new(), values: Vec::new(), ..loaded }))
    }
    /// Returns a run without its payloads.
    async fn outline(&self, run: RunId) -> Result<Option<LoadedRun>, Error> {
        let loaded = self.load(run).await?;
        Ok(loaded.map(|loaded| LoadedRun { values: Vec::new(), ..loaded }))
    }
    /// Returns several runs at once, as far as all their payloads together have at most `bytes`. Runs beyond that and
    /// missing runs are left out.
    async fn load_small(&self, runs: Vec<RunId>, bytes: u64) -> Result<Vec<LoadedRun>, Error> {
        let mut loaded = Vec::with_capacity(runs.len());
        let mut left = bytes;
        for run in runs {
            let Some(run) = self.load(run).await? else { continue };
            let size = run.values.iter().map(|value| value.payload.len() as u64).sum();
            if let Some(rest) = left.checked_sub(size) {
                left = rest;
                loaded.push(run);
            }
        }
        Ok(loaded)
    }
    /// Returns the size of each payload of a run in bytes, ordered by id.
    async fn sizes(&self, run: RunId) -> Result<Vec<(ValueId, u64)>, Error> {
        let values = self.load(run).await?.map(|loaded| loaded.values).unwrap_or_default();
        let mut sizes: Vec<_> = values.iter().map(|value| (value.id, value.payload.len() as u64)).collect();
        sizes.sort_unstable();
        Ok(sizes)
    }
    /// Returns the run with this public id (`run_…`).
    async fn find_run(&self, public: &str) -> Result<Option<RunId>, Error>;
    /// Returns the run with this public id and its secret, which verifies tokens, and reads nothing else of the run.
    async fn run_secret(&self, public: &str) -> Result<Option<(RunId, [u8; 16])>, Error>;
    /// Returns a run as lists show it.
    async fn run(&self, run: RunId) -> Result<Option<RunRow>, Error>;
    /// Returns the run's log rows after a version, oldest first.
    async fn tail(&self, run: RunId, after: Version, limit: u32) -> Result<Vec<StoredLog>, Error>;
    /// Returns payloads by id; purged payloads are left out.
    async fn values(&self, run: RunId, ids: &[ValueId]) -> Result<Vec<ValueRow>, Error>;

    /// Returns every attempt of every step, ordered by step and attempt.
    async fn attempts(&self, run: RunId) -> Result<Vec<StepRow>, Error>;

    /// Returns the timers of a share that are due by `until`, soonest first.
    async fn due(&self, until: Time, share: Share, limit: u32) -> Result<Vec<DueTimer>, Error>;
    /// Returns the messages in a run's mailbox, oldest first.
    async fn mail(&self, run: RunId) -> Result<Vec<StoredMail>, Error>;
    /// Returns runs whose mailbox is not empty, ordered by id. `after` is the last run of the previous page.
    async fn mailed(&self, after: Option<RunId>, limit: u32) -> Result<Vec<RunId>, Error>;
    /// Returns due outbox notices, ordered by id, which is the order in which a run wrote them. `after` is the id of the
    /// previous page's last notice; 0 for the first page.
    async fn outbox(&self, until: Time, after: i64, limit: u32) -> Result<Vec<StoredNotice>, Error>;
    /// Returns the outbox notices of a run whose keys have this prefix, ordered by key.
    async fn notices(&self, run: RunId, prefix: &str, limit: u32) -> Result<Vec<StoredNotice>, Error>;
    /// Removes stale rows outside of any commit.
    async fn forget(&self, stale: Stale) -> Result<(), Error>;
    /// Returns the run that holds a unique key which has not expired by `now`.
    async fn keyed(&self, scope: &str, key: &str, now: Time) -> Result<Option<RunId>, Error>;
    /// Returns the key of each concurrency group that has a queue, with the first queued run, ordered by key. `after`
    /// is the last key of the previous page.
    async fn queued(&self, after: Option<&str>, limit: u32) -> Result<Vec<(String, RunId)>, Error>;
    /// Returns the first run in the queue of a concurrency group.
    async fn first_queued(&self, group: &str) -> Result<Option<RunId>, Error>;
    /// Returns the oldest run that holds a slot in a concurrency group.
    async fn holder(&self, group: &str) -> Result<Option<RunId>, Error>;
    /// Returns the position of each writer's newest commit.
    async fn progress(&self) -> Result<Progress, Error>;
    /// Returns log rows of all runs that come after the reader's progress. Rows of one run come in version order.
    async fn feed(&self, after: &Progress, limit: u32) -> Result<Vec<Fed>, Error>;
    /// The same for the runs of one organisation. Costs nothing for rows of others.
    async fn feed_of(&self, org: OrgId, after: &Progress, limit: u32) -> Result<Vec<Fed>, Error>;

    /// Stores the next version of a workflow together with the change. Returns the newest version, and changes nothing,
    /// if the definition is the same.
    async fn define(&self, definition: NewDefinition, with: Change) -> Result<Result<DefinitionRow, Refused>, Error>;
    /// Returns a workflow version by id.
    async fn definition(&self, id: i64) -> Result<Option<DefinitionRow>, Error>;
    /// Returns the newest version of a workflow that is not deleted, by name or by public id (`wf_…`).
    async fn find_definition(&self, org: OrgId, name: &str) -> Result<Option<DefinitionRow>, Error>;
    /// Returns the newest version of every workflow that is not deleted, ordered by name.
    async fn definitions(&self, org: OrgId) -> Result<Vec<DefinitionRow>, Error>;
    /// Returns all versions of a workflow by its public id (`wf_…`), newest first, even if it is deleted.
    async fn versions(&self, org: OrgId, workflow: &str) -> Result<Vec<DefinitionRow>, Error>;
    /// Deletes a workflow together with the change: it is no longer found or listed, and its name is free. Returns
    /// false if it does not exist or is already deleted.
    async fn undefine(&self, org: OrgId, workflow: &str, at: Time, with: Change) -> Result<bool, Error>;
    /// Returns the newest version of each deleted workflow and when it was deleted, latest deletion first. `named`
    /// selects by name or by public id.
    async fn deleted(&self, org: OrgId, named: Option<&str>) -> Result<Vec<(DefinitionRow, Time)>, Error>;
    /// Restores a deleted workflow together with the change. Refused as [`Refused::Taken`] if another workflow has its
    /// name, and as [`Refused::Conflict`] if it is not deleted.
    async fn redefine(&self, org: OrgId, workflow: &str, with: Change) -> Result<Result<(), Refused>, Error>;
    /// Returns when the first version of a workflow was stored.
    async fn first_defined(&self, org: OrgId, workflow: &str) -> Result<Option<Time>, Error>;

    /// Returns the runs that match the filter, newest first.
    async fn runs(&self, filter: RunFilter) -> Result<Vec<RunRow>, Error>;
    /// Returns which of the given runs have finished or no longer exist.
    async fn ended(&self, runs: &[RunId]) -> Result<Vec<RunId>, Error>;
    /// Replaces a run's labels. Returns false if the run does not exist.
    async fn label(&self, run: RunId, labels: Vec<String>, audit: Vec<NewAudit>) -> Result<bool, Error>;
    /// Returns steps that wait for a person, oldest run first. `after` is the last entry of the previous page.
    async fn gates(&self, org: OrgId, after: Option<(RunId, String)>, limit: u32) -> Result<Vec<OpenGate>, Error>;

    /// Returns the epoch of an organisation's grants, or `None` if the organisation does not exist.
    async fn epoch(&self, org: OrgId) -> Result<Option<i64>, Error>;
    /// Increments the epoch of an organisation's grants: commits decided under the previous epoch are refused.
    async fn grants_changed(&self, org: OrgId) -> Result<(), Error>;

    /// Removes up to `limit` rows of finished runs whose retention ended by `before`; returns how many were removed.
    async fn purge(&self, before: Time, limit: u32) -> Result<u64, Error>;
    /// Returns some free space to the file system. Returns false if there is not enough to be worth it.
    async fn shrink(&self) -> Result<bool, Error> {
        Ok(false)
    }
    /// Returns how many finished runs a purge would remove.
    async fn purgeable(&self, before: Time) -> Result<u64, Error>;
    /// Replaces all payloads of a finished run with null; its log and the payload digests stay. Returns false if the
    /// run has not finished.
    async fn erase(&self, run: RunId, at: Time, audit: Vec<NewAudit>) -> Result<bool, Error>;
    /// Ends the retention of a finished run at `at`. Returns false if the run has not finished.
    async fn expire(&self, run: RunId, at: Time) -> Result<bool, Error>;

    /// Returns the key of this store's hashes and tallies.
    fn chain_key(&self) -> ChainKey;
    /// Gives the store the key that its tallies were written under. Until then it refuses to write.
    async fn unlock(&self, key: ChainKey) -> Result<(), Error>;
    /// Tallies all rows anew under another key, together with the change. Reads every row once and writes nothing else
    /// meanwhile.
    async fn rekey(&self, key: ChainKey, with: Change) -> Result<Result<(), Refused>, Error>;
    /// Starts to keep tallies, if that has not happened yet and all nodes that are alive will.
    async fn keep_evidence(&self) -> Result<(), Error> {
        Ok(())
    }
    /// Returns the tallies that this store's key can verify, by writer.
    async fn tallies(&self) -> Result<Vec<WriterTally>, Error>;
    /// Compares the tallies with all rows, and the audit trail with points of it that were noted before.
    async fn evidence(&self, points: Vec<TrailPoint>) -> Result<Evidence, Error>;

    /// Returns the size of the store. With `count` it also counts the rows of each table, which reads all of them.
    async fn stats(&self, count: bool) -> Result<Stats, Error>;
    /// Returns how much work waits at this time.
    async fn backlog(&self, now: Time) -> Result<Backlog, Error>;
    /// Runs the database's own consistency check and returns the faults it found.
    async fn integrity(&self) -> Result<Vec<String>, Error>;
}
