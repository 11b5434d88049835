//! Converts database rows. The column list of each row type is defined next to its conversion.

use crate::*;
use stepwell_core::time::{Millis, Time};
use stepwell_core::value::ValueId;
use tokio_postgres::Row;

pub const RUN: &str =
    "r.id, r.public_id, r.org, r.definition, r.status, r.created_by, r.test, r.parent_run, r.parent_step,
     r.parent_attempt, r.depth, r.created_at, r.started_at, r.finished_at, r.acts_as, r.labels, r.erased_at, r.root";

pub fn run(row: &Row) -> RunRow {
    let parent = row.get::<_, Option<i64>>(7).map(|run| Parent {
        run: RunId(run),
        path: row.get(8),
        attempt: small(row.get(9)),
        depth: small(row.get(10)),
        root: RunId(row.get::<_, Option<i64>>(17).unwrap_or(run)),
    });
    RunRow {
        id: RunId(row.get(0)),
        public: row.get(1),
        org: OrgId(row.get(2)),
        definition: row.get(3),
        status: row.get(4),
        by: row.get(5),
        acts_as: row.get(14),
        labels: read_labels(row.get(15)),
        test: row.get(6),
        parent,
        created: Time(row.get(11)),
        started: time(row, 12),
        finished: time(row, 13),
        erased: time(row, 16),
    }
}

pub fn time(row: &Row, column: usize) -> Option<Time> {
    row.get::<_, Option<i64>>(column).map(Time)
}

/// Converts a number that fitted into `u32` when it was written.
pub fn small(number: i64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

pub fn value_id(number: i64) -> ValueId {
    ValueId(small(number))
}

pub fn bytes<const N: usize>(row: &Row, column: usize) -> [u8; N] {
    row.get::<_, &[u8]>(column).try_into().unwrap_or([0; N])
}

pub const STEP: &str = "step, attempt, status, since, ended_at, input, output, state";

pub fn step(row: &Row) -> StepRow {
    StepRow {
        path: row.get(0),
        attempt: small(row.get(1)),
        status: row.get(2),
        since: Time(row.get(3)),
        ended: time(row, 4),
        input: row.get::<_, Option<i64>>(5).map(value_id),
        output: row.get::<_, Option<i64>>(6).map(value_id),
        state: row.get(7),
    }
}

pub const LOG: &str = "e.writer, e.position, e.version, e.at, e.facts, e.payloads, e.hash";

pub fn log(row: &Row) -> StoredLog {
    StoredLog {
        position: Position::new(row.get(0), row.get(1)),
        version: Version(row.get(2)),
        row: LogRow { at: Time(row.get(3)), facts: row.get(4), payloads: row.get(5), hash: bytes(row, 6) },
    }
}

pub const NOTICE: &str = "id, run, key, body";

pub fn notice(row: &Row) -> StoredNotice {
    StoredNotice { id: row.get(0), run: RunId(row.get(1)), key: row.get(2), body: row.get(3) }
}

pub const CLAIMED: &str = "run, step, attempt, org, kind";

pub fn claimed(row: &Row) -> Claimed {
    Claimed {
        run: RunId(row.get(0)),
        key: WorkKey { path: row.get(1), attempt: small(row.get(2)) },
        org: OrgId(row.get(3)),
        kind: row.get(4),
    }
}

pub const DEFINITION: &str = "id, workflow, org, name, version, source, created_by, author, created_at";

pub fn definition(row: &Row) -> DefinitionRow {
    DefinitionRow {
        id: row.get(0),
        workflow: row.get(1),
        org: OrgId(row.get(2)),
        name: row.get(3),
        version: small(row.get(4)),
        source: row.get(5),
        by: row.get(6),
        author: row.get(7),
        at: Time(row.get(8)),
    }
}

pub const RECORD: &str = "kind, id, org, key, due, body, version";

pub fn record(row: &Row) -> Record {
    Record {
        kind: row.get(0),
        id: row.get(1),
        org: OrgId(row.get(2)),
        key: row.get(3),
        due: time(row, 4),
        body: row.get(5),
        version: row.get(6),
    }
}

pub const AUDIT: &str = "id, writer, hash, org, at, by, action, target, detail";

pub fn audit(row: &Row) -> AuditRow {
    let new = NewAudit {
        org: OrgId(row.get(3)),
        at: Time(row.get(4)),
        by: row.get(5),
        action: row.get(6),
        target: row.get(7),
        detail: row.get(8),
    };
    AuditRow { id: row.get(0), writer: row.get(1), hash: bytes(row, 2), row: new }
}

pub const NODE: &str = "n.id, n.name, n.version, n.slots, n.joined_at,
     (extract(epoch FROM clock_timestamp() - n.seen_at) * 1000)::bigint";

pub fn node(row: &Row) -> NodeRow {
    NodeRow {
        node: NewNode {
            id: NodeId(row.get(0)),
            name: row.get(1),
            version: row.get(2),
            slots: small(row.get(3)),
            joined: Time(row.get(4)),
        },
        quiet: Millis(row.get::<_, i64>(5).max(0).unsigned_abs()),
        running: row.get::<_, i64>(6).unsigned_abs(),
    }
}
