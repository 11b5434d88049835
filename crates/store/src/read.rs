//! What a store gives back.

use crate::{LogRow, NodeId, OrgId, Parent, Position, Refused, RunId, StepRow, ValueRow, Version, WorkKey};
use stepwell_core::time::Time;

/// A run and all that is needed to go on with it.
#[derive(Clone, PartialEq, Debug)]
pub struct LoadedRun {
    pub row: RunRow,
    pub version: Version,
    /// The hash of the newest log row.
    pub hash: [u8; 32],
    pub secret: [u8; 16],
    pub group: Option<String>,
    pub state: String,
    /// The newest attempt of every step that had its turn.
    pub steps: Vec<StepRow>,
    pub values: Vec<ValueRow>,
}

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

/// A log row as the live feed has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fed {
    pub run: RunId,
    /// `run_…`.
    pub public: String,
    pub org: OrgId,
    pub log: StoredLog,
}

/// What stands where a payload was erased.
pub const ERASED: &str = "{\"value\":null}";

/// Which ready work a node asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Claim {
    pub node: NodeId,
    pub limit: u32,
    /// The organisation that was served last: the others come first.
    pub after: OrgId,
    /// How many attempts of one organisation may run at a time.
    pub per_org: Option<u32>,
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

/// Which part of all runs is looked after by whom, when several nodes share them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    pub index: u32,
    pub of: u32,
    /// What was due by then is everybody's.
    pub overdue: Time,
}

impl Share {
    /// Runs are dealt out in this many parts.
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

/// Rows that turned out to be about nothing any more.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Stale {
    pub mail: Vec<i64>,
    pub notices: Vec<(RunId, String)>,
    pub timers: Vec<(RunId, String)>,
}

/// How much room a store takes.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Stats {
    /// Of the data, with what is free in it.
    pub bytes: u64,
    /// Room inside that will be used again or given back.
    pub free: u64,
    /// Written and not yet merged into the data.
    pub journal: u64,
    /// Attempts that no node has claimed.
    pub ready: u64,
    /// Rows by table.
    pub rows: Vec<(String, u64)>,
}

/// The tables whose rows are counted.
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
    /// What the workflow is called outside if this is its first version: `wf_…`.
    pub workflow: String,
    pub org: OrgId,
    pub name: String,
    /// The document as its author wrote it, JSON or YAML.
    pub source: String,
    pub by: String,
    /// Whose rights it may use, as the engine writes it.
    pub author: String,
    pub at: Time,
    /// Belongs to one test run: never listed, and gone with it.
    pub test: bool,
    /// The version that was the newest when this was decided, 0 for none: refused if that is so no longer.
    pub after: Option<u32>,
}

/// What a definition that is asked for comes to.
pub(crate) enum Next {
    /// It is what the newest version says already.
    Same(DefinitionRow),
    Version {
        workflow: String,
        version: u32,
    },
}

impl NewDefinition {
    /// What follows the newest living version of its name.
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

/// Labels as a run's own row has them. Most runs have none.
pub(crate) fn label_text(labels: &[String]) -> Option<String> {
    (!labels.is_empty()).then(|| labels.join("\n"))
}

pub(crate) fn read_labels(text: Option<String>) -> Vec<String> {
    text.iter().flat_map(|text| text.split('\n')).map(str::to_string).collect()
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DefinitionRow {
    pub id: i64,
    /// The same for all versions: `wf_…`.
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
    /// One of these; any if there are none.
    pub status: Vec<String>,
    /// Any version of this workflow.
    pub workflow: Option<String>,
    pub by: Option<String>,
    /// All of these.
    pub labels: Vec<String>,
    /// Part of its id, its creator's name or one of its labels.
    pub text: Option<String>,
    pub since: Option<Time>,
    pub until: Option<Time>,
    pub tests: bool,
    /// Started by a step of this one.
    pub parent: Option<RunId>,
    /// Only runs before this one: the last of the page before.
    pub before: Option<RunId>,
    pub limit: u32,
}

impl RunFilter {
    /// Everything of an organisation but its tests.
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
