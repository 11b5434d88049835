//! What an installation is made of: the tables that are taken from one store to another, with their columns. What a
//! database keeps for itself alone (nodes, writers, turns, marks) is not among them.

/// What a column holds. Instants and counts are numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Int,
    /// A number, 0 or 1, where there is no type for it.
    Bool,
    Text,
    Bytes,
}

#[derive(PartialEq, Eq, Debug)]
pub struct Table {
    pub name: &'static str,
    pub columns: &'static [(&'static str, Kind)],
    /// By which its rows are in the same order everywhere. Text is ordered by its bytes.
    pub order: &'static [&'static str],
}

use Kind::{Bool, Bytes, Int, Text};

pub const ORGANISATIONS: &str = "organisations";
pub const RUNS: &str = "workflow_runs";
pub const EVENTS: &str = "workflow_events";
pub const TIMERS: &str = "timers";
pub const COUNTERS: &str = "counters";

/// Those whose rows are numbered by the database.
pub const NUMBERED: [&str; 5] = [ORGANISATIONS, "workflow_definitions", "mail", "outbox", "audit"];

/// In the order in which they are taken: a run must know how far the log goes. The first column of the log is the position.
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
];

impl Table {
    /// The columns' names, as both databases take them.
    pub fn names(&self) -> String {
        self.columns.iter().map(|(name, _)| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
    }
}
