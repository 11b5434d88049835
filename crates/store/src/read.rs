//! Rows that a store returns, and the filters that select them.

use crate::{LogRow, NodeId, OrgId, Parent, Position, Refused, RunId, StepRow, ValueRow, Version, WorkKey};
use std::collections::BTreeMap;
use stepwell_core::time::{Millis, Time};

/// A run with everything needed to continue it.
#[derive(Clone, PartialEq, Debug)]
pub struct LoadedRun {
    pub row: RunRow,
    pub version: Version,
    /// The hash of the newest log row.
    pub hash: [u8; 32],
    pub secret: [u8; 16],
    /// The concurrency group that the run belongs to.
    pub group: Option<String>,
    pub state: String,
    /// The newest attempt of every step that has one.
    pub steps: Vec<StepRow>,
    pub values: Vec<ValueRow>,
}

/// A run as lists show it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunRow {
    pub id: RunId,
    pub public: String,
    pub org: OrgId,
    pub definition: i64,
    pub status: String,
    pub by: String,
    pub acts_as: String,
    pub labels: Vec<String>,
    pub test: bool,
    pub parent: Option<Parent>,
    pub created: Time,
    pub started: Option<Time>,
    pub finished: Option<Time>,
    /// When its payloads were erased.
    pub erased: Option<Time>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredLog {
    pub version: Version,
    pub position: Position,
    pub row: LogRow,
}

/// A log row in the feed of all runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fed {
    pub run: RunId,
    /// The run's public id: `run_…`.
    pub public: String,
    pub org: OrgId,
    pub log: StoredLog,
}

/// Replaces an erased payload.
pub const ERASED: &str = "{\"value\":null}";

/// A request for ready work. Organisations with the fewest attempts on the node come first, in round robin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Claim {
    pub node: NodeId,
    pub limit: u32,
    /// The organisation served last: the round robin continues after it.
    pub after: OrgId,
    /// The maximum number of claimed attempts per organisation, on all nodes together.
    pub per_org: Option<u32>,
    /// The attempts that the node executes, by organisation.
    pub held: BTreeMap<OrgId, u32>,
    /// The maximum number of attempts per organisation on the node, including those held.
    pub per_org_here: Option<u32>,
}

impl Claim {
    /// A claim without limits per organisation, by a node that executes nothing.
    pub fn new(node: NodeId, limit: u32) -> Claim {
        Claim { node, limit, after: OrgId(0), per_org: None, held: BTreeMap::new(), per_org_here: None }
    }

    /// The number of attempts that the node executes for an organisation.
    pub(crate) fn held_by(&self, org: OrgId) -> u32 {
        self.held.get(&org).copied().unwrap_or_default()
    }

    /// How many attempts of an organisation may be claimed, if `running` are claimed on all nodes together.
    pub(crate) fn room(&self, org: OrgId, running: impl FnOnce() -> u32) -> u32 {
        let here = self.per_org_here.map_or(self.limit, |most| most.saturating_sub(self.held_by(org)));
        match self.per_org {
            Some(most) if here > 0 => most.saturating_sub(running()).min(here).min(self.limit),
            _ => here.min(self.limit),
        }
    }
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Claimed {
    pub run: RunId,
    pub key: WorkKey,
    pub org: OrgId,
    pub kind: String,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct DueTimer {
    pub due: Time,
    pub run: RunId,
    pub key: String,
}

/// One node's share of all runs, when several nodes divide the timers among themselves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    pub index: u32,
    pub of: u32,
    /// Timers due by this time belong to every share.
    pub overdue: Time,
}

impl Share {
    /// The number of shards that runs are divided into.
    pub const SHARDS: i64 = 64;
    pub const ALL: Share = Share { index: 0, of: 1, overdue: Time(i64::MIN) };

    pub fn shard(run: RunId) -> i64 {
        run.0.rem_euclid(Share::SHARDS)
    }

    pub fn has(&self, run: RunId) -> bool {
        Share::shard(run) % i64::from(self.of) == i64::from(self.index)
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredMail {
    pub id: i64,
    pub key: String,
    pub body: String,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredNotice {
    pub id: i64,
    pub run: RunId,
    pub key: String,
    pub body: String,
}

/// A step that waits for a person.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenGate {
    pub run: RunId,
    pub public: String,
    pub path: String,
    pub since: Time,
}

/// Rows that no longer refer to anything.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Stale {
    pub mail: Vec<i64>,
    pub notices: Vec<(RunId, String)>,
    pub timers: Vec<(RunId, String)>,
}

/// The size of a store.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Stats {
    /// Size of the data, including free space.
    pub bytes: u64,
    /// Free space inside the data, which will be reused or returned.
    pub free: u64,
    /// Size of the journal that is not yet merged into the data.
    pub journal: u64,
    /// The number of attempts that no node has claimed.
    pub ready: u64,
    /// Rows by table.
    pub rows: Vec<(String, u64)>,
}

/// Work that waits in the whole store.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Backlog {
    /// Attempts that no node has claimed, by organisation, most first.
    pub ready: Vec<(OrgId, u64)>,
    /// When the one that waits longest became ready.
    pub oldest_ready: Option<Time>,
    /// Runs that have not finished.
    pub unfinished: u64,
    /// Timers that were due a while ago. Counted up to [`Backlog::MOST_TIMERS`].
    pub overdue_timers: u64,
    /// Finished runs whose retention has ended.
    pub purgeable: u64,
}

impl Backlog {
    pub const MOST_TIMERS: u32 = 10_000;
    /// A timer that is later than this is overdue.
    pub const OVERDUE: Millis = Millis(1_000);
}

/// The tables whose rows [`Stats`] counts.
pub(crate) const COUNTED: [&str; 13] = [
    "workflow_definitions",
    "workflow_runs",
    "workflow_step_runs",
    "workflow_events",
    "step_values",
    "work",
    "timers",
    "mail",
    "outbox",
    "unique_keys",
    "gates",
    "records",
    "audit",
];

/// The next version of a workflow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewDefinition {
    /// The workflow's public id if this is its first version: `wf_…`.
    pub workflow: String,
    pub org: OrgId,
    pub name: String,
    /// The document as its author wrote it, JSON or YAML.
    pub source: String,
    pub by: String,
    /// The principal whose rights it may use, in the engine's notation.
    pub author: String,
    pub at: Time,
    /// Belongs to one test run: never listed, and removed together with it.
    pub test: bool,
    /// The newest version at the time of the decision, 0 for none: refused if it has changed since.
    pub after: Option<u32>,
}

/// What storing a definition results in.
pub(crate) enum Next {
    /// The newest version is identical.
    Same(DefinitionRow),
    Version {
        workflow: String,
        version: u32,
    },
}

impl NewDefinition {
    /// Decides what follows the newest version of a workflow that is not deleted.
    pub(crate) fn follow(&self, newest: Option<DefinitionRow>) -> Result<Next, Refused> {
        let newest = newest.filter(|_| !self.test);
        if let Some(after) = self.after {
            let seen = newest.as_ref().map_or(0, |newest| newest.version);
            let fits = |newest: &DefinitionRow| newest.workflow == self.workflow || newest.source == self.source;
            if seen != after || !newest.as_ref().is_none_or(fits) {
                return Err(Refused::Conflict);
            }
        }
        Ok(match newest {
            Some(newest) if newest.source == self.source => Next::Same(newest),
            Some(newest) => Next::Version { workflow: newest.workflow, version: newest.version + 1 },
            None => Next::Version { workflow: self.workflow.clone(), version: 1 },
        })
    }
}

/// Labels as stored in the run's row. Most runs have none.
pub(crate) fn label_text(labels: &[String]) -> Option<String> {
    (!labels.is_empty()).then(|| labels.join("\n"))
}

pub(crate) fn read_labels(text: Option<String>) -> Vec<String> {
    text.iter().flat_map(|text| text.split('\n')).map(str::to_string).collect()
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DefinitionRow {
    pub id: i64,
    /// The workflow's public id, the same for all versions: `wf_…`.
    pub workflow: String,
    pub org: OrgId,
    pub name: String,
    pub version: u32,
    pub source: String,
    pub by: String,
    pub author: String,
    pub at: Time,
}

/// Which runs to list, newest first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunFilter {
    pub org: OrgId,
    /// Any of these; empty matches every status.
    pub status: Vec<String>,
    /// Any version of this workflow.
    pub workflow: Option<String>,
    pub by: Option<String>,
    /// All of these.
    pub labels: Vec<String>,
    /// A substring of the run's public id, its creator or its labels.
    pub text: Option<String>,
    pub since: Option<Time>,
    pub until: Option<Time>,
    pub tests: bool,
    /// Only runs started by a step of this run.
    pub parent: Option<RunId>,
    /// The last run of the previous page: only older runs are listed.
    pub before: Option<RunId>,
    pub limit: u32,
}

impl RunFilter {
    /// All runs of an organisation except test runs.
    pub fn all(org: OrgId, limit: u32) -> RunFilter {
        RunFilter {
            org,
            status: Vec::new(),
            workflow: None,
            by: None,
            labels: Vec::new(),
            text: None,
            since: None,
            until: None,
            tests: false,
            parent: None,
            before: None,
            limit,
        }
    }
}
