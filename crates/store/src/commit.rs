//! What a transition is to a store: rows to write, each under the run's version.
//!
//! Steps are named by path and payloads by number, so nothing here depends on how a graph is laid out in memory.

use crate::NewAudit;
use serde::{Deserialize, Serialize};
use stepwell_core::time::Time;
use stepwell_core::value::ValueId;

/// A run inside the store: made by whoever creates it, grows with time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub i64);

/// A process that executes steps. New for every process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeId(pub i64);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OrgId(pub i64);

/// How many commits a run has had.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Version(pub i64);

/// One run, one transition.
#[derive(Clone, Debug)]
pub struct Commit {
    pub run: RunId,
    /// The version the decision was made on. `Version(0)` with [`Commit::create`] makes the run.
    pub expect: Version,
    pub create: Option<NewRun>,
    /// The grants the decision was made on; a change since then refuses the commit.
    pub auth: Auth,
    /// Given when it changed, and with the first commit.
    pub head: Option<Head>,
    /// The snapshot without its steps, as JSON.
    pub state: String,
    pub log: LogRow,
    pub steps: Vec<StepRow>,
    pub values: Vec<ValueRow>,
    pub work: Diff<Work>,
    pub timers: Diff<TimerRow>,
    /// To other runs: a child's end goes to its parent in the child's own commit.
    pub mail: Vec<Mail>,
    /// Mail of this run that the decision used up.
    pub read: Vec<i64>,
    pub outbox: Vec<Notice>,
    /// Keys of this run's notices that are done.
    pub sent: Vec<String>,
    pub unique: Vec<UniqueKey>,
    pub groups: Vec<GroupChange>,
    /// What waits for a person.
    pub gates: Diff<Gate>,
    /// Added to counters.
    pub counted: Vec<(String, i64)>,
    pub audit: Vec<NewAudit>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Auth {
    pub org: OrgId,
    pub epoch: i64,
}

/// What never changes about a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewRun {
    /// As the outside knows it: `run_…`.
    pub public: String,
    pub org: OrgId,
    pub created: Time,
    pub by: String,
    /// In whose name it acts, as the engine writes it.
    pub acts_as: String,
    /// `name=value`, sorted.
    pub labels: Vec<String>,
    /// Kept apart from real runs and removed as a whole.
    pub test: bool,
    /// Known to nobody outside: callback URLs are made from it.
    pub secret: [u8; 16],
    pub parent: Option<Parent>,
    /// The limit of concurrent runs that this one counts against.
    pub group: Option<String>,
    /// Refused if the organisation has this many runs that have not ended, tests left out.
    pub most_open: Option<u32>,
}

/// The step of another run that waits for this one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parent {
    pub run: RunId,
    pub path: String,
    pub attempt: u32,
    /// How many runs are above this one.
    pub depth: u32,
}

/// What lists of runs are made of and indexes cover: a plain step does not change it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Head {
    pub status: String,
    pub definition: i64,
    /// The first one given stays.
    pub started: Option<Time>,
    pub finished: Option<Time>,
    /// When a finished run may be removed.
    pub purge: Option<Time>,
}

/// One row per commit: its facts in words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogRow {
    pub at: Time,
    /// JSON list of stored facts.
    pub facts: String,
    /// Digests of the payloads that came with it; see [`crate::payloads`].
    pub payloads: String,
    /// Over the previous row's hash and this row; see [`crate::hash()`].
    pub hash: [u8; 32],
}

/// One attempt of one step. Written again until the attempt is over; `since` stays as first written, unless the row was
/// only `pending` then.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StepRow {
    pub path: String,
    pub attempt: u32,
    pub status: String,
    pub since: Time,
    pub ended: Option<Time>,
    pub input: Option<ValueId>,
    pub output: Option<ValueId>,
    /// The snapshot's row, as JSON.
    pub state: String,
}

/// A payload, as JSON. Never changed once written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ValueRow {
    pub id: ValueId,
    pub payload: String,
}

/// Rows to put and keys to take away.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diff<T: Keyed> {
    pub put: Vec<T>,
    pub remove: Vec<T::Key>,
}

pub trait Keyed {
    type Key: Clone + PartialEq + Eq + std::fmt::Debug;
}

impl<T: Keyed> Default for Diff<T> {
    fn default() -> Diff<T> {
        Diff { put: Vec::new(), remove: Vec::new() }
    }
}

/// An attempt that is ready (no node) or running (on a node).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Work {
    pub key: WorkKey,
    pub org: OrgId,
    pub kind: String,
    pub ready: Time,
    /// Born claimed, if the committing node has a slot for it.
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
    /// Which timer of the run: kind, path and attempt in words.
    pub key: String,
    pub due: Time,
}

impl Keyed for TimerRow {
    type Key = String;
}

/// A step that waits for a person's answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gate {
    pub path: String,
    pub since: Time,
}

impl Keyed for Gate {
    type Key = String;
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mail {
    pub to: RunId,
    /// Delivered once per key.
    pub key: String,
    pub body: String,
}

/// Something to be done outside the run, after the commit and until it succeeds. Keys are the run's own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Notice {
    pub key: String,
    pub body: String,
    pub due: Time,
}

/// At most one run per scope and key: an idempotency key, a schedule's tick, a parent's step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UniqueKey {
    pub scope: String,
    pub key: String,
    /// Of the request that came with it: the same key with another digest is a different request.
    pub digest: String,
    pub expires: Option<Time>,
}

/// Places among concurrent runs, by key: some runs hold one, others queue for one in the order of their ids.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GroupChange {
    /// Refused if `limit` runs hold a place, or an older run queues for one. Without a limit it is always given.
    Enter {
        key: String,
        limit: Option<u32>,
    },
    Queue {
        key: String,
    },
    /// Gives the place up, or leaves the queue.
    Leave {
        key: String,
    },
}

/// Why one commit of a batch was not applied. The others are not affected.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refused {
    #[error("the run has moved on")]
    Conflict,
    #[error("a run with this key exists")]
    Duplicate { run: RunId, digest: String },
    #[error("the limit of concurrent runs is reached")]
    Full,
    #[error("grants have changed since the decision")]
    AuthChanged,
    #[error("there is one already")]
    Taken,
    #[error("the organisation has as many open runs as it may have")]
    TooManyOpen,
}
