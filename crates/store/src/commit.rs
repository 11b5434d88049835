//! A transition as the store sees it: rows to write if the run is still at the expected version.
//!
//! Steps are identified by path and payloads by number, so nothing here depends on how a graph is laid out in memory.

use crate::NewAudit;
use serde::{Deserialize, Serialize};
use stepwell_core::time::Time;
use stepwell_core::value::ValueId;

/// A run's internal id. The creator of the run chooses it; later runs have greater ids.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub i64);

/// The id of a process that executes steps. Every process gets a new one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeId(pub i64);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OrgId(pub i64);

impl OrgId {
    /// The first organisation, which exists in every store. It belongs to the server's operator.
    pub const OPERATOR: OrgId = OrgId(1);
}

/// The number of commits a run has had.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Version(pub i64);

/// One transition of one run.
#[derive(Clone, Debug)]
pub struct Commit {
    pub run: RunId,
    /// The version the decision was based on. `Version(0)` with [`Commit::create`] creates the run.
    pub expect: Version,
    pub create: Option<NewRun>,
    /// The grants the decision was based on; if they have changed since, the commit is refused.
    pub auth: Auth,
    /// Set if it changed, and on the first commit.
    pub head: Option<Head>,
    /// The snapshot without its steps, as JSON.
    pub state: String,
    pub log: LogRow,
    /// The hash of the run's newest log row when the decision was made; unused for a new run.
    pub previous: [u8; 32],
    pub steps: Vec<StepRow>,
    pub values: Vec<ValueRow>,
    pub work: Diff<Work>,
    pub timers: Diff<TimerRow>,
    /// Messages to other runs. A child run reports its end to its parent in its own commit.
    pub mail: Vec<Mail>,
    /// Ids of this run's messages that the decision consumed.
    pub read: Vec<i64>,
    pub outbox: Vec<Notice>,
    /// Keys of this run's notices that have been delivered.
    pub sent: Vec<String>,
    pub unique: Vec<UniqueKey>,
    pub groups: Vec<GroupChange>,
    /// Steps that wait for a person.
    pub gates: Diff<Gate>,
    /// Amounts to add to counters, by counter name.
    pub counted: Vec<(String, i64)>,
    pub audit: Vec<NewAudit>,
}

/// The epoch of an organisation's grants that a decision was based on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Auth {
    pub org: OrgId,
    pub epoch: i64,
}

/// The fields of a run that never change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewRun {
    /// The public id: `run_…`.
    pub public: String,
    pub org: OrgId,
    pub created: Time,
    pub by: String,
    /// The principal it acts as, in the engine's notation.
    pub acts_as: String,
    /// `name=value`, sorted.
    pub labels: Vec<String>,
    /// A test run: listed separately from real runs, and removed together with its definition.
    pub test: bool,
    /// Never exposed: callback URLs are derived from it.
    pub secret: [u8; 16],
    pub parent: Option<Parent>,
    /// The concurrency group that the run belongs to.
    pub group: Option<String>,
    /// The run is refused if the organisation already has this many unfinished runs, not counting test runs. A child
    /// whose parent has no other unfinished child is accepted all the same: otherwise runs that wait for their children
    /// could hold all places, and the children would never get one.
    pub most_open: Option<u32>,
    /// The child counts as a descendant of its root. It is refused if the root has had this many.
    pub most_descendants: Option<u32>,
}

impl NewRun {
    /// The counter of the root's descendants, and its limit.
    pub(crate) fn counted(&self) -> Option<(String, u32)> {
        Some((descendants(self.parent.as_ref()?.root), self.most_descendants?))
    }
}

/// The step of another run that waits for this one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parent {
    pub run: RunId,
    pub path: String,
    pub attempt: u32,
    /// The number of ancestors of this run.
    pub depth: u32,
    /// The ancestor that has no parent.
    pub root: RunId,
}

/// The counter of the runs that a root and its descendants have started. It goes when the root is purged.
pub fn descendants(root: RunId) -> String {
    format!("descendants:{}", root.0)
}

/// The fields that run lists show and indexes cover. A plain step does not change them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Head {
    pub status: String,
    pub definition: i64,
    /// The first value written is kept.
    pub started: Option<Time>,
    pub finished: Option<Time>,
    /// When a finished run may be purged.
    pub purge: Option<Time>,
}

/// The log row of one commit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogRow {
    pub at: Time,
    /// The stored facts as a JSON array.
    pub facts: String,
    /// Digests of the payloads written in the same commit; see [`crate::payloads`].
    pub payloads: String,
    /// Hash of the previous row's hash and this row; see [`crate::hash()`].
    pub hash: [u8; 32],
}

/// One attempt of one step. The row is rewritten until the attempt ends; `since` keeps its first value unless the row
/// was only `pending` at that time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StepRow {
    pub path: String,
    pub attempt: u32,
    pub status: String,
    pub since: Time,
    pub ended: Option<Time>,
    pub input: Option<ValueId>,
    pub output: Option<ValueId>,
    /// The step's part of the snapshot, as JSON.
    pub state: String,
}

/// A payload, as JSON. Never changed once written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ValueRow {
    pub id: ValueId,
    pub payload: String,
}

/// Rows to insert or replace, and keys to remove.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diff<T: Keyed> {
    pub put: Vec<T>,
    pub remove: Vec<T::Key>,
}

/// A row that can be removed by key.
pub trait Keyed {
    type Key: Clone + PartialEq + Eq + std::fmt::Debug;
}

impl<T: Keyed> Default for Diff<T> {
    fn default() -> Diff<T> {
        Diff { put: Vec::new(), remove: Vec::new() }
    }
}

/// An attempt that is ready (no node) or claimed by a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Work {
    pub key: WorkKey,
    pub org: OrgId,
    pub kind: String,
    pub ready: Time,
    /// The committing node claims the attempt in the same commit if it has a free slot.
    pub node: Option<NodeId>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct WorkKey {
    pub path: String,
    pub attempt: u32,
}

impl Keyed for Work {
    type Key = WorkKey;
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TimerRow {
    /// Identifies the timer within the run: kind, path and attempt as text.
    pub key: String,
    pub due: Time,
}

impl Keyed for TimerRow {
    type Key = String;
}

/// A step that waits for a person's decision.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gate {
    pub path: String,
    pub since: Time,
}

impl Keyed for Gate {
    type Key = String;
}

/// A message to another run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mail {
    pub to: RunId,
    /// A message is delivered once per recipient and key.
    pub key: String,
    pub body: String,
}

/// An outbox entry: a side effect to perform after the commit, retried until it succeeds. Keys are unique within the
/// run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Notice {
    pub key: String,
    pub body: String,
    pub due: Time,
}

/// Allows at most one run per scope and key: an idempotency key, a schedule's tick, a parent's step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UniqueKey {
    pub scope: String,
    pub key: String,
    /// The digest of the request: the same key with another digest is a different request.
    pub digest: String,
    pub expires: Option<Time>,
}

/// A change of a run's membership in a concurrency group. A group has slots that runs hold; other runs queue for a slot
/// in the order of their ids.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GroupChange {
    /// Takes a slot. Refused if `limit` runs hold one, or an older run is queued. Always succeeds without a limit.
    Enter { key: String, limit: Option<u32> },
    /// Joins the queue, and gives up the slot if the run holds one.
    Queue { key: String },
    /// Gives up the slot, or leaves the queue.
    Leave { key: String },
}

/// Why one commit of a batch was not applied. The other commits are not affected.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refused {
    #[error("the run has moved on")]
    Conflict,
    #[error("a run with this unique key already exists")]
    Duplicate { run: RunId, digest: String },
    #[error("the concurrency limit is reached")]
    Full,
    #[error("grants have changed since the decision was made")]
    AuthChanged,
    #[error("a record with this id or key already exists")]
    Taken,
    #[error("the organisation has reached its limit of open runs")]
    TooManyOpen,
    #[error("the root run has reached its limit of descendants")]
    TooManyDescendants,
}
