//! The tables that a transfer copies, with their columns. Tables that are local to one database (nodes, writers, turns,
//! high-water marks) are not included.

/// The type of a column. Times and counts are integers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Int,
    /// Stored as 0 or 1 where the database has no boolean type.
    Bool,
    Text,
    Bytes,
}

#[derive(PartialEq, Eq, Debug)]
pub struct Table {
    pub name: &'static str,
    pub columns: &'static [(&'static str, Kind)],
    /// The columns that order the rows the same way in every database. Text is ordered by its bytes.
    pub order: &'static [&'static str],
}

use Kind::{Bool, Bytes, Int, Text};

pub const ORGANISATIONS: &str = "organisations";
pub const RUNS: &str = "workflow_runs";
pub const EVENTS: &str = "workflow_events";
pub const TIMERS: &str = "timers";
pub const COUNTERS: &str = "counters";
/// Rows keep their ids and hashes, so that the tallies of the source hold for the target.
pub const TALLIES: &str = "tallies";

/// Tables whose rows are numbered by the database.
pub const NUMBERED: [&str; 5] = [ORGANISATIONS, "workflow_definitions", "mail", "outbox", "audit"];

/// The tables in copy order: events come before runs, because a run's position follows the whole log. The first column
/// of the log is the position.
pub const TABLES: &[Table] = &[
    Table {
        name: ORGANISATIONS,
        columns: &[("id", Int), ("name", Text), ("epoch", Int), ("created_at", Int)],
        order: &["id"],
    },
    Table {
        name: "workflow_definitions",
        columns: &[
            ("id", Int),
            ("workflow", Text),
            ("org", Int),
            ("name", Text),
            ("version", Int),
            ("source", Text),
            ("created_by", Text),
            ("author", Text),
            ("created_at", Int),
            ("deleted_at", Int),
            ("test", Bool),
        ],
        order: &["id"],
    },
    Table {
        name: EVENTS,
        columns: &[
            ("position", Int),
            ("run", Int),
            ("version", Int),
            ("at", Int),
            ("facts", Text),
            ("payloads", Text),
            ("hash", Bytes),
            ("org", Int),
        ],
        order: &["position"],
    },
    Table {
        name: RUNS,
        columns: &[
            ("id", Int),
            ("public_id", Text),
            ("org", Int),
            ("definition", Int),
            ("status", Text),
            ("version", Int),
            ("created_by", Text),
            ("acts_as", Text),
            ("labels", Text),
            ("test", Bool),
            ("secret", Bytes),
            ("parent_run", Int),
            ("parent_step", Text),
            ("parent_attempt", Int),
            ("depth", Int),
            ("root", Int),
            ("place", Text),
            ("created_at", Int),
            ("started_at", Int),
            ("finished_at", Int),
            ("purge_at", Int),
            ("erased_at", Int),
            ("hash", Bytes),
            ("state", Text),
        ],
        order: &["id"],
    },
    Table {
        name: "workflow_step_runs",
        columns: &[
            ("run", Int),
            ("step", Text),
            ("attempt", Int),
            ("status", Text),
            ("since", Int),
            ("ended_at", Int),
            ("input", Int),
            ("output", Int),
            ("state", Text),
        ],
        order: &["run", "step", "attempt"],
    },
    Table { name: "step_values", columns: &[("run", Int), ("id", Int), ("payload", Text)], order: &["run", "id"] },
    Table {
        name: "work",
        columns: &[
            ("run", Int),
            ("step", Text),
            ("attempt", Int),
            ("org", Int),
            ("kind", Text),
            ("ready_at", Int),
            ("node", Int),
        ],
        order: &["run", "step", "attempt"],
    },
    Table { name: TIMERS, columns: &[("run", Int), ("key", Text), ("due", Int)], order: &["run", "key"] },
    Table { name: "mail", columns: &[("id", Int), ("run", Int), ("key", Text), ("body", Text)], order: &["id"] },
    Table {
        name: "outbox",
        columns: &[("id", Int), ("run", Int), ("key", Text), ("body", Text), ("due", Int)],
        order: &["id"],
    },
    Table {
        name: "unique_keys",
        columns: &[("scope", Text), ("key", Text), ("run", Int), ("digest", Text), ("expires_at", Int)],
        order: &["scope", "key"],
    },
    Table { name: "places", columns: &[("key", Text), ("run", Int), ("held", Bool)], order: &["key", "run"] },
    Table { name: COUNTERS, columns: &[("key", Text), ("value", Int)], order: &["key"] },
    Table {
        name: "gates",
        columns: &[("run", Int), ("step", Text), ("org", Int), ("since", Int)],
        order: &["run", "step"],
    },
    Table { name: "run_labels", columns: &[("label", Text), ("run", Int)], order: &["label", "run"] },
    Table {
        name: "records",
        columns: &[
            ("kind", Text),
            ("id", Text),
            ("org", Int),
            ("key", Text),
            ("due", Int),
            ("body", Text),
            ("version", Int),
        ],
        order: &["kind", "id"],
    },
    Table {
        name: "audit",
        columns: &[
            ("id", Int),
            ("org", Int),
            ("writer", Int),
            ("at", Int),
            ("by", Text),
            ("action", Text),
            ("target", Text),
            ("detail", Text),
            ("hash", Bytes),
        ],
        order: &["id"],
    },
    Table { name: TALLIES, columns: &[("writer", Int), ("number", Int), ("body", Bytes)], order: &["writer"] },
];

impl Table {
    /// The quoted column names, separated by commas; both databases accept them.
    pub fn names(&self) -> String {
        self.columns.iter().map(|(name, _)| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
    }
}
