//! What a store keeps beside runs: records (users, keys, schedules, …), the audit trail, organisations and counters.
//!
//! A record is a small JSON document with a key to find it by and, if it has to be looked at some day, a time. What it means
//! is the engine's business: a new sort of thing needs no new table.

use crate::{Auth, Error, OrgId, Refused};
use async_trait::async_trait;
use sha2::{Digest, Sha256};
use stepwell_core::time::Time;

#[async_trait]
pub trait Registry: Send + Sync {
    /// Applies all of it or, if one part is refused, nothing.
    async fn change(&self, change: Change) -> Result<Result<(), Refused>, Error>;
    async fn record(&self, kind: &str, id: &str) -> Result<Option<Record>, Error>;
    async fn record_with_key(&self, kind: &str, key: &str) -> Result<Option<Record>, Error>;
    /// By key.
    async fn records(&self, filter: RecordFilter) -> Result<Vec<Record>, Error>;
    /// Those whose time has come, soonest first.
    async fn due_records(&self, kind: &str, until: Time, limit: u32) -> Result<Vec<Record>, Error>;

    /// Newest first.
    async fn audit(&self, filter: AuditFilter) -> Result<Vec<AuditRow>, Error>;

    /// Makes an organisation; `None` if there is one of that name.
    async fn found(&self, name: &str, at: Time) -> Result<Option<OrgId>, Error>;
    /// All organisations with their names, in the order in which they were made.
    async fn organisations(&self) -> Result<Vec<(OrgId, String)>, Error>;
    /// What commits have added to a counter.
    async fn counted(&self, counter: &str) -> Result<i64, Error>;
    /// Runs of an organisation that have not ended, tests left out.
    async fn open_runs(&self, org: OrgId) -> Result<u64, Error>;
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    pub kind: String,
    /// Unique among its kind.
    pub id: String,
    pub org: OrgId,
    /// Unique among its kind, too: what it is looked up by.
    pub key: String,
    pub due: Option<Time>,
    /// JSON.
    pub body: String,
    /// Grows with each change.
    pub version: i64,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RecordChange {
    /// A new one; its version is given by the store.
    Create(Record),
    /// Refused unless it is still at `record.version`.
    Replace(Record),
    /// Fine if it is not there.
    Remove { kind: String, id: String },
}

/// Several records at once, what the audit trail says about it, and whether someone's rights change with it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Change {
    pub records: Vec<RecordChange>,
    pub audit: Vec<NewAudit>,
    /// Decisions on the grants of this organisation that were made before are refused from now on.
    pub grants_of: Option<OrgId>,
    /// What the decision to change was made on; refused if that has changed since.
    pub decided: Option<Auth>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordFilter {
    pub kind: String,
    /// Of all organisations if there is none.
    pub org: Option<OrgId>,
    /// What their keys begin with.
    pub prefix: String,
    /// The key of the last one of the page before.
    pub after: Option<String>,
    pub limit: u32,
}

/// That somebody did something.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewAudit {
    pub org: OrgId,
    pub at: Time,
    pub by: String,
    /// `run.cancel`, `key.create`, …
    pub action: String,
    /// What it was done to: an id or a name.
    pub target: String,
    /// JSON.
    pub detail: String,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuditRow {
    pub id: i64,
    pub row: NewAudit,
    /// Who wrote it: there is a chain for each writer.
    pub writer: i32,
    /// Over the writer's row before of the same organisation, and this one.
    pub hash: [u8; 32],
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuditFilter {
    pub org: OrgId,
    pub by: Option<String>,
    pub action: Option<String>,
    pub target: Option<String>,
    /// Only rows before this one: the last of the page before.
    pub before: Option<i64>,
    pub limit: u32,
}

/// The hash of a row of the audit trail. The first of a writer and an organisation follows 32 zero bytes.
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
