//! Reads, and the few writes that are not commits.

use super::apply::time;
use crate::*;
use rusqlite::{Connection, OptionalExtension, Params, Row, params, params_from_iter};

const RUN_COLUMNS: &str =
    "id, public_id, org, definition, status, created_by, test, created_at, started_at, finished_at";

fn run_row(row: &Row) -> rusqlite::Result<RunRow> {
    Ok(RunRow {
        id: RunId(row.get(0)?),
        public: row.get(1)?,
        org: OrgId(row.get(2)?),
        definition: row.get(3)?,
        status: row.get(4)?,
        by: row.get(5)?,
        test: row.get(6)?,
        created: Time(row.get(7)?),
        started: row.get::<_, Option<i64>>(8)?.map(Time),
        finished: row.get::<_, Option<i64>>(9)?.map(Time),
    })
}

/// All parts from one moment: a commit in between cannot mix two states.
pub fn load(db: &Connection, run: RunId) -> rusqlite::Result<Option<LoadedRun>> {
    let tx = db.unchecked_transaction()?;
    let sql = format!("SELECT {RUN_COLUMNS}, version, hash, state FROM workflow_runs WHERE id = ?1");
    let head = tx.prepare_cached(&sql)?.query_row([run.0], |row| {
        Ok((run_row(row)?, Version(row.get(10)?), row.get::<_, [u8; 32]>(11)?, row.get::<_, String>(12)?))
    });
    let Some((row, version, hash, state)) = head.optional()? else { return Ok(None) };
    let steps = "SELECT step, attempt, status, since, ended_at, input, output, state FROM workflow_step_runs s
                 WHERE run = ?1 AND attempt = (SELECT max(attempt) FROM workflow_step_runs
                                               WHERE run = s.run AND step = s.step)";
    let steps = tx.prepare_cached(steps)?.query_map([run.0], step_row)?.collect::<Result<_, _>>()?;
    let values = "SELECT id, payload FROM step_values WHERE run = ?1";
    let values = tx.prepare_cached(values)?.query_map([run.0], value_row)?.collect::<Result<_, _>>()?;
    Ok(Some(LoadedRun { row, version, hash, state, steps, values }))
}

fn step_row(row: &Row) -> rusqlite::Result<StepRow> {
    Ok(StepRow {
        path: row.get(0)?,
        attempt: row.get(1)?,
        status: row.get(2)?,
        since: Time(row.get(3)?),
        ended: row.get::<_, Option<i64>>(4)?.map(Time),
        input: row.get::<_, Option<u32>>(5)?.map(ValueId),
        output: row.get::<_, Option<u32>>(6)?.map(ValueId),
        state: row.get(7)?,
    })
}

fn value_row(row: &Row) -> rusqlite::Result<ValueRow> {
    Ok(ValueRow { id: ValueId(row.get(0)?), payload: row.get(1)? })
}

fn log_row(row: &Row) -> rusqlite::Result<StoredLog> {
    let log = LogRow { at: Time(row.get(2)?), facts: row.get(3)?, hash: row.get(4)? };
    Ok(StoredLog { position: Position(row.get(0)?), version: Version(row.get(1)?), row: log })
}

pub fn tail(db: &Connection, run: RunId, after: Version, limit: u32) -> rusqlite::Result<Vec<StoredLog>> {
    let sql = "SELECT position, version, at, facts, hash FROM workflow_events
               WHERE run = ?1 AND version > ?2 ORDER BY version LIMIT ?3";
    db.prepare_cached(sql)?.query_map(params![run.0, after.0, limit], log_row)?.collect()
}

pub fn feed(db: &Connection, after: Position, limit: u32) -> rusqlite::Result<Vec<Fed>> {
    let sql = "SELECT e.position, e.version, e.at, e.facts, e.hash, e.run, r.org FROM workflow_events e
               JOIN workflow_runs r ON r.id = e.run WHERE e.position > ?1 ORDER BY e.position LIMIT ?2";
    let fed = |row: &Row| Ok(Fed { log: log_row(row)?, run: RunId(row.get(5)?), org: OrgId(row.get(6)?) });
    db.prepare_cached(sql)?.query_map(params![after.0, limit], fed)?.collect()
}

pub fn values(db: &Connection, run: RunId, ids: &[ValueId]) -> rusqlite::Result<Vec<ValueRow>> {
    let mut get = db.prepare_cached("SELECT id, payload FROM step_values WHERE run = ?1 AND id = ?2")?;
    let found = ids.iter().map(|id| get.query_row(params![run.0, id.0], value_row).optional());
    found.filter_map(Result::transpose).collect()
}

fn claimed(row: &Row) -> rusqlite::Result<Claimed> {
    Ok(Claimed {
        run: RunId(row.get(0)?),
        key: WorkKey { path: row.get(1)?, attempt: row.get(2)? },
        org: OrgId(row.get(3)?),
        kind: row.get(4)?,
    })
}

/// Round robin over the organisations that have ready work: the first of each, then the second of each, and so on.
pub fn claim(db: &Connection, node: NodeId, limit: u32) -> rusqlite::Result<Vec<Claimed>> {
    let mut orgs = db.prepare_cached("SELECT DISTINCT org FROM work WHERE node IS NULL")?;
    let orgs: Vec<i64> = orgs.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let sql = "SELECT run, step, attempt, org, kind FROM work WHERE org = ?1 AND node IS NULL
               ORDER BY ready_at LIMIT ?2";
    let mut ready: Vec<std::vec::IntoIter<Claimed>> = Vec::new();
    for org in orgs {
        let rows: Vec<Claimed> =
            db.prepare_cached(sql)?.query_map(params![org, limit], claimed)?.collect::<Result<_, _>>()?;
        ready.push(rows.into_iter());
    }
    let mut taken = Vec::new();
    while taken.len() < limit as usize {
        let before = taken.len();
        for org in &mut ready {
            if taken.len() < limit as usize {
                taken.extend(org.next());
            }
        }
        if taken.len() == before {
            break;
        }
    }
    let mut take = db.prepare_cached("UPDATE work SET node = ?1 WHERE run = ?2 AND step = ?3 AND attempt = ?4")?;
    for work in &taken {
        take.execute(params![node.0, work.run.0, work.key.path, work.key.attempt])?;
    }
    Ok(taken)
}

pub fn held(db: &Connection, node: NodeId) -> rusqlite::Result<Vec<Claimed>> {
    let sql = "SELECT run, step, attempt, org, kind FROM work WHERE node = ?1";
    db.prepare_cached(sql)?.query_map([node.0], claimed)?.collect()
}

pub fn orphans(db: &Connection, limit: u32) -> rusqlite::Result<Vec<Claimed>> {
    let sql = "SELECT run, step, attempt, org, kind FROM work
               WHERE node IS NOT NULL AND node NOT IN (SELECT id FROM nodes) LIMIT ?1";
    db.prepare_cached(sql)?.query_map([limit], claimed)?.collect()
}

pub fn due(db: &Connection, until: Time, limit: u32) -> rusqlite::Result<Vec<DueTimer>> {
    let sql = "SELECT due, run, key FROM timers WHERE due <= ?1 ORDER BY due LIMIT ?2";
    let timer = |row: &Row| Ok(DueTimer { due: Time(row.get(0)?), run: RunId(row.get(1)?), key: row.get(2)? });
    db.prepare_cached(sql)?.query_map(params![until.0, limit], timer)?.collect()
}

pub fn mail(db: &Connection, run: RunId) -> rusqlite::Result<Vec<StoredMail>> {
    let sql = "SELECT id, key, body FROM mail WHERE run = ?1 ORDER BY id";
    let mail = |row: &Row| Ok(StoredMail { id: row.get(0)?, key: row.get(1)?, body: row.get(2)? });
    db.prepare_cached(sql)?.query_map([run.0], mail)?.collect()
}

const DEFINITION_COLUMNS: &str = "id, workflow, org, name, version, source, created_by, created_at";

fn definition_row(row: &Row) -> rusqlite::Result<DefinitionRow> {
    Ok(DefinitionRow {
        id: row.get(0)?,
        workflow: row.get(1)?,
        org: OrgId(row.get(2)?),
        name: row.get(3)?,
        version: row.get(4)?,
        source: row.get(5)?,
        by: row.get(6)?,
        at: Time(row.get(7)?),
    })
}

pub fn definition(db: &Connection, which: &str, params: impl Params) -> rusqlite::Result<Option<DefinitionRow>> {
    let sql = format!("SELECT {DEFINITION_COLUMNS} FROM workflow_definitions WHERE {which}");
    db.prepare_cached(&sql)?.query_row(params, definition_row).optional()
}

pub fn definitions(db: &Connection, org: OrgId) -> rusqlite::Result<Vec<DefinitionRow>> {
    let sql = format!(
        "SELECT {DEFINITION_COLUMNS} FROM workflow_definitions d WHERE org = ?1 AND deleted_at IS NULL
         AND version = (SELECT max(version) FROM workflow_definitions WHERE workflow = d.workflow) ORDER BY name"
    );
    db.prepare_cached(&sql)?.query_map([org.0], definition_row)?.collect()
}

pub fn define(db: &Connection, new: &NewDefinition) -> rusqlite::Result<DefinitionRow> {
    let newest = "org = ?1 AND name = ?2 AND deleted_at IS NULL ORDER BY version DESC LIMIT 1";
    let newest = definition(db, newest, params![new.org.0, new.name])?;
    let (workflow, version) = match newest {
        Some(newest) if newest.source == new.source => return Ok(newest),
        Some(newest) => (newest.workflow, newest.version + 1),
        None => (new.workflow.clone(), 1),
    };
    let sql = format!(
        "INSERT INTO workflow_definitions (workflow, org, name, version, source, created_by, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) RETURNING {DEFINITION_COLUMNS}"
    );
    let params = params![workflow, new.org.0, new.name, version, new.source, new.by, new.at.0];
    db.prepare_cached(&sql)?.query_row(params, definition_row)
}

pub fn runs(db: &Connection, filter: &RunFilter) -> rusqlite::Result<Vec<RunRow>> {
    let mut sql = format!("SELECT {RUN_COLUMNS} FROM workflow_runs WHERE org = ?1 AND test = ?2 AND id < ?3");
    let before = filter.before.map_or(i64::MAX, |run| run.0);
    let mut values: Vec<rusqlite::types::Value> =
        vec![filter.org.0.into(), i64::from(filter.tests).into(), before.into()];
    if let Some(status) = &filter.status {
        values.push(status.clone().into());
        sql.push_str(&format!(" AND status = ?{}", values.len()));
    }
    if let Some(workflow) = &filter.workflow {
        values.push(workflow.clone().into());
        let of = "SELECT id FROM workflow_definitions WHERE workflow";
        sql.push_str(&format!(" AND definition IN ({of} = ?{})", values.len()));
    }
    if let Some(since) = time(filter.since) {
        values.push(since.into());
        sql.push_str(&format!(" AND created_at >= ?{}", values.len()));
    }
    values.push(i64::from(filter.limit).into());
    sql.push_str(&format!(" ORDER BY id DESC LIMIT ?{}", values.len()));
    db.prepare_cached(&sql)?.query_map(params_from_iter(values), run_row)?.collect()
}

/// What belongs to a run, in pieces: `?1` is the run, `?2` how many rows at the most.
const PURGE: [&str; 5] = [
    "DELETE FROM workflow_step_runs WHERE run = ?1 AND (step, attempt) IN
       (SELECT step, attempt FROM workflow_step_runs WHERE run = ?1 LIMIT ?2)",
    "DELETE FROM step_values WHERE run = ?1 AND id IN (SELECT id FROM step_values WHERE run = ?1 LIMIT ?2)",
    "DELETE FROM workflow_events WHERE position IN (SELECT position FROM workflow_events WHERE run = ?1 LIMIT ?2)",
    "DELETE FROM mail WHERE id IN (SELECT id FROM mail WHERE run = ?1 LIMIT ?2)",
    "DELETE FROM unique_keys WHERE (scope, key) IN (SELECT scope, key FROM unique_keys WHERE run = ?1 LIMIT ?2)",
];

/// The run's own row goes last: a purge that stops halfway goes on where it stopped.
pub fn purge(db: &Connection, before: Time, limit: u32) -> rusqlite::Result<u64> {
    let sql = "SELECT id FROM workflow_runs WHERE purge_at <= ?1 ORDER BY purge_at LIMIT ?2";
    let mut find = db.prepare_cached(sql)?;
    let runs: Vec<i64> = find.query_map(params![before.0, limit], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let mut left = limit;
    for run in runs {
        for sql in PURGE {
            left -= db.prepare_cached(sql)?.execute(params![run, left])? as u32;
        }
        if left == 0 {
            break;
        }
        left -= db.prepare_cached("DELETE FROM workflow_runs WHERE id = ?1")?.execute([run])? as u32;
    }
    Ok(u64::from(limit - left))
}
