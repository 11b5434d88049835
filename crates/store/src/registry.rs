//! What a store holds besides runs: records (users, keys, schedules, …), the audit trail, organisations and counters.
//!
//! A record is a small JSON document with a lookup key and an optional due time. Only the engine interprets it, so a
//! new kind of record needs no new table.

use crate::{Auth, Error, OrgId, Refused};
use async_trait::async_trait;
use sha2::{Digest, Sha256};
use stepwell_core::time::Time;

/// Records, the audit trail, organisations and counters.
#[async_trait]
pub trait Registry: Send + Sync {
    /// Applies the whole change or, if one part is refused, none of it.
    async fn change(&self, change: Change) -> Result<Result<(), Refused>, Error>;
    /// Returns a record by id.
    async fn record(&self, kind: &str, id: &str) -> Result<Option<Record>, Error>;
    /// Returns a record by key.
    async fn record_with_key(&self, kind: &str, key: &str) -> Result<Option<Record>, Error>;
    /// Returns the records that match the filter, ordered by key.
    async fn records(&self, filter: RecordFilter) -> Result<Vec<Record>, Error>;
    /// Returns the records that are due, soonest first.
    async fn due_records(&self, kind: &str, due: Due, limit: u32) -> Result<Vec<Record>, Error>;

    /// Returns the audit rows that match the filter, newest first.
    async fn audit(&self, filter: AuditFilter) -> Result<Vec<AuditRow>, Error>;

    /// Creates an organisation. Returns `None` if the name is taken.
    async fn found(&self, name: &str, at: Time) -> Result<Option<OrgId>, Error>;
    /// Returns all organisations with their names, in order of creation.
    async fn organisations(&self) -> Result<Vec<(OrgId, String)>, Error>;
    /// Returns the sum that commits have added to a counter.
    async fn counted(&self, counter: &str) -> Result<i64, Error>;
    /// Returns the number of unfinished runs of an organisation, not counting test runs and runs that are scheduled.
    async fn open_runs(&self, org: OrgId) -> Result<u64, Error>;
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    pub kind: String,
    /// Unique within its kind.
    pub id: String,
    pub org: OrgId,
    /// The lookup key, also unique within its kind.
    pub key: String,
    pub due: Option<Time>,
    /// JSON.
    pub body: String,
    /// Incremented with each change.
    pub version: i64,
}

/// Which due records to return.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Due {
    pub until: Time,
    /// The due time and id of the previous page's last record.
    pub after: Option<(Time, String)>,
}

impl Due {
    /// The first page of those that are due by `until`.
    pub fn by(until: Time) -> Due {
        Due { until, after: None }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RecordChange {
    /// Creates a record; the store sets its version.
    Create(Record),
    /// Replaces a record; refused unless it is still at `record.version`.
    Replace(Record),
    /// Removes a record; not an error if it does not exist.
    Remove { kind: String, id: String },
}

/// A change of several records, with its audit rows and its effect on grants.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Change {
    pub records: Vec<RecordChange>,
    pub audit: Vec<NewAudit>,
    /// Increments the epoch of this organisation's grants: earlier decisions are refused from now on.
    pub grants_of: Option<OrgId>,
    /// The grants the decision was based on; refused if they have changed since.
    pub decided: Option<Auth>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordFilter {
    pub kind: String,
    /// `None` matches all organisations.
    pub org: Option<OrgId>,
    /// A prefix of the key.
    pub prefix: String,
    /// The last key of the previous page.
    pub after: Option<String>,
    pub limit: u32,
}

/// A row to append to the audit trail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewAudit {
    pub org: OrgId,
    pub at: Time,
    pub by: String,
    /// `run.cancel`, `key.create`, …
    pub action: String,
    /// The id or name of the object of the action.
    pub target: String,
    /// JSON.
    pub detail: String,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuditRow {
    pub id: i64,
    pub row: NewAudit,
    /// The writer that appended the row: each writer has its own hash chain.
    pub writer: i32,
    /// Hash of the writer's previous row in this organisation and of this row.
    pub hash: [u8; 32],
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuditFilter {
    pub org: OrgId,
    pub by: Option<String>,
    pub action: Option<String>,
    pub target: Option<String>,
    /// The last row of the previous page: only older rows are returned.
    pub before: Option<i64>,
    pub limit: u32,
}

/// Returns the hash of an audit row. The first row of a writer in an organisation follows 32 zero bytes.
pub fn audit_hash(previous: &[u8; 32], row: &NewAudit) -> [u8; 32] {
    let mut digest = Sha256::new();
    digest.update(previous);
    digest.update(row.org.0.to_be_bytes());
    digest.update(row.at.0.to_be_bytes());
    for part in [&row.by, &row.action, &row.target, &row.detail] {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part.as_bytes());
    }
    digest.finalize().into()
}
