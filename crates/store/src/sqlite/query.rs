//! Queries, and the few writes that are not commits.

use super::apply::{put_labels, time};
use super::evidence::Tx;
use crate::evidence::DefinitionEntry;
use crate::round_robin::{Queue, fewest_first};
use crate::*;
use rusqlite::{Connection, OptionalExtension, Params, Row, params, params_from_iter};
use std::collections::BTreeSet;

const RUN_COLUMNS: &str =
    "id, public_id, org, definition, status, created_by, test, parent_run, parent_step, parent_attempt, depth,
     created_at, started_at, finished_at, acts_as, labels, erased_at, root";

fn run_row(row: &Row) -> rusqlite::Result<RunRow> {
    Ok(RunRow {
        id: RunId(row.get(0)?),
        public: row.get(1)?,
        org: OrgId(row.get(2)?),
        definition: row.get(3)?,
        status: row.get(4)?,
        by: row.get(5)?,
        acts_as: row.get(14)?,
        labels: read_labels(row.get(15)?),
        test: row.get(6)?,
        parent: parent(row)?,
        created: Time(row.get(11)?),
        started: row.get::<_, Option<i64>>(12)?.map(Time),
        finished: row.get::<_, Option<i64>>(13)?.map(Time),
        erased: row.get::<_, Option<i64>>(16)?.map(Time),
    })
}

fn parent(row: &Row) -> rusqlite::Result<Option<Parent>> {
    let Some(run) = row.get::<_, Option<i64>>(7)? else { return Ok(None) };
    let root = RunId(row.get::<_, Option<i64>>(17)?.unwrap_or(run));
    Ok(Some(Parent { run: RunId(run), path: row.get(8)?, attempt: row.get(9)?, depth: row.get(10)?, root }))
}

/// Reads all parts in one transaction, so a concurrent commit cannot mix two states.
/// A run without its steps and payloads.
pub fn head(db: &Connection, run: RunId) -> rusqlite::Result<Option<LoadedRun>> {
    let sql = format!("SELECT {RUN_COLUMNS}, version, hash, secret, place, state FROM workflow_runs WHERE id = ?1");
    let head = db.prepare_cached(&sql)?.query_row([run.0], |row| {
        Ok(LoadedRun {
            row: run_row(row)?,
            version: Version(row.get(18)?),
            hash: row.get(19)?,
            secret: row.get(20)?,
            group: row.get(21)?,
            state: row.get(22)?,
            steps: Vec::new(),
            values: Vec::new(),
        })
    });
    head.optional()
}

pub fn load(db: &Connection, run: RunId) -> rusqlite::Result<Option<LoadedRun>> {
    let tx = db.unchecked_transaction()?;
    let Some(mut loaded) = read_outline(&tx, run)? else { return Ok(None) };
    loaded.values = payloads(&tx, run)?;
    Ok(Some(loaded))
}

/// Each run is as of one moment.
pub fn load_small(db: &Connection, runs: &[RunId], bytes: u64) -> rusqlite::Result<Vec<LoadedRun>> {
    let mut loaded = Vec::with_capacity(runs.len());
    let mut left = bytes;
    for run in runs {
        let tx = db.unchecked_transaction()?;
        let size = "SELECT coalesce(sum(octet_length(payload)), 0) FROM step_values WHERE run = ?1";
        let size: i64 = tx.prepare_cached(size)?.query_row([run.0], |row| row.get(0))?;
        let Some(rest) = left.checked_sub(size.unsigned_abs()) else { continue };
        let Some(mut found) = read_outline(&tx, *run)? else { continue };
        found.values = payloads(&tx, *run)?;
        left = rest;
        loaded.push(found);
    }
    Ok(loaded)
}

pub fn outline(db: &Connection, run: RunId) -> rusqlite::Result<Option<LoadedRun>> {
    let tx = db.unchecked_transaction()?;
    read_outline(&tx, run)
}

/// The sizes of payloads, without reading them.
pub fn sizes(db: &Connection, run: RunId) -> rusqlite::Result<Vec<(ValueId, u64)>> {
    let sql = "SELECT id, octet_length(payload) FROM step_values WHERE run = ?1 ORDER BY id";
    let size = |row: &Row| Ok((ValueId(row.get(0)?), row.get::<_, i64>(1)?.unsigned_abs()));
    db.prepare_cached(sql)?.query_map([run.0], size)?.collect()
}

fn payloads(db: &Connection, run: RunId) -> rusqlite::Result<Vec<ValueRow>> {
    db.prepare_cached("SELECT id, payload FROM step_values WHERE run = ?1")?.query_map([run.0], value_row)?.collect()
}

fn read_outline(tx: &Connection, run: RunId) -> rusqlite::Result<Option<LoadedRun>> {
    let Some(mut loaded) = head(tx, run)? else { return Ok(None) };
    let steps = "SELECT step, attempt, status, since, ended_at, input, output, state FROM workflow_step_runs s
                 WHERE run = ?1 AND attempt = (SELECT max(attempt) FROM workflow_step_runs
                                               WHERE run = s.run AND step = s.step)";
    loaded.steps = tx.prepare_cached(steps)?.query_map([run.0], step_row)?.collect::<Result<_, _>>()?;
    Ok(Some(loaded))
}

pub fn run(db: &Connection, run: RunId) -> rusqlite::Result<Option<RunRow>> {
    let sql = format!("SELECT {RUN_COLUMNS} FROM workflow_runs WHERE id = ?1");
    db.prepare_cached(&sql)?.query_row([run.0], run_row).optional()
}

pub fn attempts(db: &Connection, run: RunId) -> rusqlite::Result<Vec<StepRow>> {
    let sql = "SELECT step, attempt, status, since, ended_at, input, output, state FROM workflow_step_runs
               WHERE run = ?1 ORDER BY step, attempt";
    db.prepare_cached(sql)?.query_map([run.0], step_row)?.collect()
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
    let log = LogRow { at: Time(row.get(2)?), facts: row.get(3)?, payloads: row.get(4)?, hash: row.get(5)? };
    let position = Position::new(super::WRITER, row.get(0)?);
    Ok(StoredLog { position, version: Version(row.get(1)?), row: log })
}

pub fn tail(db: &Connection, run: RunId, after: Version, limit: u32) -> rusqlite::Result<Vec<StoredLog>> {
    let sql = "SELECT position, version, at, facts, payloads, hash FROM workflow_events
               WHERE run = ?1 AND version > ?2 ORDER BY version LIMIT ?3";
    db.prepare_cached(sql)?.query_map(params![run.0, after.0, limit], log_row)?.collect()
}

pub fn feed(db: &Connection, after: i64, limit: u32) -> rusqlite::Result<Vec<Fed>> {
    let sql = "SELECT e.position, e.version, e.at, e.facts, e.payloads, e.hash, e.run, r.org, r.public_id
               FROM workflow_events e
               JOIN workflow_runs r ON r.id = e.run WHERE e.position > ?1 ORDER BY e.position LIMIT ?2";
    db.prepare_cached(sql)?.query_map(params![after, limit], fed)?.collect()
}

const FEED_OF: &str = "SELECT e.position, e.version, e.at, e.facts, e.payloads, e.hash, e.run, r.org, r.public_id
                       FROM workflow_events e JOIN workflow_runs r ON r.id = e.run
                       WHERE e.org = ?1 AND e.position > ?2 ORDER BY e.position LIMIT ?3";

pub fn feed_of(db: &Connection, org: OrgId, after: i64, limit: u32) -> rusqlite::Result<Vec<Fed>> {
    db.prepare_cached(FEED_OF)?.query_map(params![org.0, after, limit], fed)?.collect()
}

fn fed(row: &Row) -> rusqlite::Result<Fed> {
    let (run, org, public) = (RunId(row.get(6)?), OrgId(row.get(7)?), row.get(8)?);
    Ok(Fed { log: log_row(row)?, run, org, public })
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

/// Claims work in round robin over the organisations that have ready work.
pub fn claim(db: &Connection, claim: &Claim) -> rusqlite::Result<Vec<Claimed>> {
    let mut orgs = waiting(db)?;
    orgs.sort_by_key(|&org| (org <= claim.after.0, org));
    let sql = "SELECT run, step, attempt, org, kind FROM work WHERE org = ?1 AND node IS NULL
               ORDER BY ready_at LIMIT ?2";
    let mut ready = Vec::new();
    for org in orgs {
        let running = if claim.per_org.is_some() { running(db, org)? } else { 0 };
        let room = claim.room(OrgId(org), || running);
        if room > 0 {
            let rows = db.prepare_cached(sql)?.query_map(params![org, room], claimed)?.collect::<Result<_, _>>()?;
            ready.push(Queue { held: claim.held_by(OrgId(org)), ready: rows });
        }
    }
    let taken = fewest_first(ready, claim.limit as usize);
    let mut take = db.prepare_cached("UPDATE work SET node = ?1 WHERE run = ?2 AND step = ?3 AND attempt = ?4")?;
    for work in &taken {
        take.execute(params![claim.node.0, work.run.0, work.key.path, work.key.attempt])?;
    }
    Ok(taken)
}

/// Returns the organisations that have ready work, with one index lookup for each, however much work it has.
fn waiting(db: &Connection) -> rusqlite::Result<Vec<i64>> {
    let mut next = db.prepare_cached("SELECT min(org) FROM work WHERE node IS NULL AND org > ?1")?;
    let mut orgs: Vec<i64> = Vec::new();
    while let Some(org) = next.query_row([orgs.last().unwrap_or(&i64::MIN)], |row| row.get::<_, Option<i64>>(0))? {
        orgs.push(org);
    }
    Ok(orgs)
}

/// Returns the number of claimed attempts of an organisation.
fn running(db: &Connection, org: i64) -> rusqlite::Result<u32> {
    let sql = "SELECT count(*) FROM work WHERE node IS NOT NULL AND org = ?1";
    db.prepare_cached(sql)?.query_row([org], |row| row.get(0))
}

pub fn held(db: &Connection, node: NodeId) -> rusqlite::Result<Vec<Claimed>> {
    let sql = "SELECT run, step, attempt, org, kind FROM work WHERE node = ?1";
    db.prepare_cached(sql)?.query_map([node.0], claimed)?.collect()
}

pub fn orphans(
    db: &Connection,
    alive: &BTreeSet<NodeId>,
    after: Option<(RunId, WorkKey)>,
    limit: u32,
) -> rusqlite::Result<Vec<Claimed>> {
    let sql = "SELECT run, step, attempt, org, kind, node FROM work
               WHERE node IS NOT NULL AND (run, step, attempt) > (?1, ?2, ?3) ORDER BY run, step, attempt";
    let (run, path, attempt) = after.map_or((i64::MIN, String::new(), 0), |(run, key)| (run.0, key.path, key.attempt));
    let mut all = db.prepare_cached(sql)?;
    let all = all.query_map(params![run, path, attempt], |row| Ok((claimed(row)?, NodeId(row.get(5)?))))?;
    let lost = all.filter(|work| !matches!(work, Ok((_, node)) if alive.contains(node)));
    lost.take(limit as usize).map(|work| work.map(|(work, _)| work)).collect()
}

pub fn due(db: &Connection, until: Time, share: Share, limit: u32) -> rusqlite::Result<Vec<DueTimer>> {
    let sql = "SELECT due, run, key FROM timers WHERE due <= ?1 AND (run % ?3 % ?4 = ?5 OR due <= ?6)
               ORDER BY due LIMIT ?2";
    let timer = |row: &Row| Ok(DueTimer { due: Time(row.get(0)?), run: RunId(row.get(1)?), key: row.get(2)? });
    let params = params![until.0, limit, Share::SHARDS, share.of, share.index, share.overdue.0];
    db.prepare_cached(sql)?.query_map(params, timer)?.collect()
}

pub fn ended(db: &Connection, runs: Vec<RunId>) -> rusqlite::Result<Vec<RunId>> {
    let mut open = db.prepare_cached("SELECT 1 FROM workflow_runs WHERE id = ?1 AND finished_at IS NULL")?;
    let mut ended = Vec::new();
    for run in runs {
        if !open.exists([run.0])? {
            ended.push(run);
        }
    }
    Ok(ended)
}

pub fn mail(db: &Connection, run: RunId) -> rusqlite::Result<Vec<StoredMail>> {
    let sql = "SELECT id, key, body FROM mail WHERE run = ?1 ORDER BY id";
    let mail = |row: &Row| Ok(StoredMail { id: row.get(0)?, key: row.get(1)?, body: row.get(2)? });
    db.prepare_cached(sql)?.query_map([run.0], mail)?.collect()
}

fn notice(row: &Row) -> rusqlite::Result<StoredNotice> {
    Ok(StoredNotice { id: row.get(0)?, run: RunId(row.get(1)?), key: row.get(2)?, body: row.get(3)? })
}

pub fn outbox(db: &Connection, until: Time, after: i64, limit: u32) -> rusqlite::Result<Vec<StoredNotice>> {
    let sql = "SELECT id, run, key, body FROM outbox WHERE due <= ?1 AND id > ?2 ORDER BY id LIMIT ?3";
    db.prepare_cached(sql)?.query_map(params![until.0, after, limit], notice)?.collect()
}

pub fn notices(db: &Connection, run: RunId, prefix: &str, limit: u32) -> rusqlite::Result<Vec<StoredNotice>> {
    let sql = "SELECT id, run, key, body FROM outbox WHERE run = ?1 AND substr(key, 1, length(?2)) = ?2
               ORDER BY key LIMIT ?3";
    db.prepare_cached(sql)?.query_map(params![run.0, prefix, limit], notice)?.collect()
}

pub fn forget(db: &Connection, stale: &Stale) -> rusqlite::Result<()> {
    for id in &stale.mail {
        db.prepare_cached("DELETE FROM mail WHERE id = ?1")?.execute([id])?;
    }
    for (run, key) in &stale.notices {
        db.prepare_cached("DELETE FROM outbox WHERE run = ?1 AND key = ?2")?.execute(params![run.0, key])?;
    }
    for (run, key) in &stale.timers {
        db.prepare_cached("DELETE FROM timers WHERE run = ?1 AND key = ?2")?.execute(params![run.0, key])?;
    }
    Ok(())
}

pub fn queued(db: &Connection, after: &str, limit: u32) -> rusqlite::Result<Vec<(String, RunId)>> {
    let sql = "SELECT key, min(run) FROM places WHERE held = 0 AND key > ?1 GROUP BY key ORDER BY key LIMIT ?2";
    db.prepare_cached(sql)?.query_map(params![after, limit], |row| Ok((row.get(0)?, RunId(row.get(1)?))))?.collect()
}

/// Returns the oldest run that holds a slot in a concurrency group, or that is queued for one.
pub fn oldest(db: &Connection, group: &str, held: bool) -> rusqlite::Result<Option<RunId>> {
    let sql = "SELECT min(run) FROM places WHERE held = ?1 AND key = ?2";
    db.prepare_cached(sql)?.query_row(params![held, group], |row| Ok(row.get::<_, Option<i64>>(0)?.map(RunId)))
}

/// The columns of a workflow version that tallies cover.
pub const WHOLE_DEFINITION: &str =
    "id, workflow, org, name, version, source, created_by, created_at, author, deleted_at, test";

pub fn whole_definition(row: &Row) -> rusqlite::Result<DefinitionEntry> {
    Ok(DefinitionEntry { row: definition_row(row)?, deleted: row.get(9)?, test: row.get(10)? })
}

const DEFINITION_COLUMNS: &str = "id, workflow, org, name, version, source, created_by, created_at, author";

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
        author: row.get(8)?,
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

pub const NEWEST: &str = "org = ?1 AND name = ?2 AND deleted_at IS NULL ORDER BY version DESC LIMIT 1";
pub const NEWEST_BY_ID: &str = "org = ?1 AND workflow = ?2 AND deleted_at IS NULL ORDER BY version DESC LIMIT 1";

pub fn define(db: &Tx<'_>, new: &NewDefinition, with: &Change) -> rusqlite::Result<Result<DefinitionRow, Refused>> {
    let newest = definition(db, NEWEST, params![new.org.0, new.name])?;
    let (workflow, version) = match new.follow(newest) {
        Ok(Next::Same(newest)) => return Ok(Ok(newest)),
        Ok(Next::Version { workflow, version }) => (workflow, version),
        Err(refused) => return Ok(Err(refused)),
    };
    let sql = format!(
        "INSERT INTO workflow_definitions (workflow, org, name, version, source, created_by, created_at, test, deleted_at,
           author)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) RETURNING {DEFINITION_COLUMNS}"
    );
    let deleted = new.test.then_some(new.at.0);
    let (at, author) = (new.at.0, &new.author);
    let params = params![workflow, new.org.0, new.name, version, new.source, new.by, at, new.test, deleted, author];
    let row = db.prepare_cached(&sql)?.query_row(params, definition_row)?;
    db.tally([DefinitionEntry { row: row.clone(), deleted, test: new.test }.added()]);
    Ok(super::registry::apply(db, with)?.map(|()| row))
}

pub fn versions(db: &Connection, org: OrgId, workflow: &str) -> rusqlite::Result<Vec<DefinitionRow>> {
    let sql = format!(
        "SELECT {DEFINITION_COLUMNS} FROM workflow_definitions WHERE org = ?1 AND workflow = ?2 AND test = 0
         ORDER BY version DESC"
    );
    db.prepare_cached(&sql)?.query_map(params![org.0, workflow], definition_row)?.collect()
}

pub fn undefine(db: &Tx<'_>, org: OrgId, workflow: &str, at: Time) -> rusqlite::Result<bool> {
    let sql = format!(
        "UPDATE workflow_definitions SET deleted_at = ?3 WHERE org = ?1 AND workflow = ?2 AND deleted_at IS NULL
         RETURNING {WHOLE_DEFINITION}"
    );
    let mut update = db.prepare_cached(&sql)?;
    let deleted = update.query_map(params![org.0, workflow, at.0], whole_definition)?;
    let deleted: Vec<DefinitionEntry> = deleted.collect::<Result<_, _>>()?;
    for entry in &deleted {
        let before = DefinitionEntry { row: entry.row.clone(), deleted: None, ..*entry };
        db.tally([before.removed(), entry.added()]);
    }
    Ok(!deleted.is_empty())
}

pub fn deleted(db: &Connection, org: OrgId, named: Option<&str>) -> rusqlite::Result<Vec<(DefinitionRow, Time)>> {
    let sql = format!(
        "SELECT {WHOLE_DEFINITION} FROM workflow_definitions d
         WHERE org = ?1 AND deleted_at IS NOT NULL AND test = 0 AND (?2 IS NULL OR name = ?2 OR workflow = ?2)
         AND version = (SELECT max(version) FROM workflow_definitions WHERE workflow = d.workflow)
         ORDER BY deleted_at DESC, id DESC"
    );
    let entry = |row: &Row| {
        let DefinitionEntry { row, deleted, .. } = whole_definition(row)?;
        Ok((row, Time(deleted.unwrap_or_default())))
    };
    db.prepare_cached(&sql)?.query_map(params![org.0, named], entry)?.collect()
}

pub fn redefine(db: &Tx<'_>, org: OrgId, workflow: &str) -> rusqlite::Result<Result<(), Refused>> {
    let which = "WHERE org = ?1 AND workflow = ?2 AND deleted_at IS NOT NULL AND test = 0";
    let sql = format!("SELECT {WHOLE_DEFINITION} FROM workflow_definitions {which}");
    let deleted =
        db.prepare_cached(&sql)?.query_map(params![org.0, workflow], whole_definition)?.collect::<Result<_, _>>();
    let deleted: Vec<DefinitionEntry> = deleted?;
    let Some(first) = deleted.first() else { return Ok(Err(Refused::Conflict)) };
    if definition(db, NEWEST, params![org.0, first.row.name])?.is_some() {
        return Ok(Err(Refused::Taken));
    }
    let sql = format!("UPDATE workflow_definitions SET deleted_at = NULL {which}");
    db.prepare_cached(&sql)?.execute(params![org.0, workflow])?;
    for entry in deleted {
        let after = DefinitionEntry { row: entry.row.clone(), deleted: None, ..entry };
        db.tally([entry.removed(), after.added()]);
    }
    Ok(Ok(()))
}

pub fn first_defined(db: &Connection, org: OrgId, workflow: &str) -> rusqlite::Result<Option<Time>> {
    let sql = "SELECT created_at FROM workflow_definitions WHERE org = ?1 AND workflow = ?2 ORDER BY version LIMIT 1";
    db.prepare_cached(sql)?.query_row(params![org.0, workflow], |row| Ok(Time(row.get(0)?))).optional()
}

pub fn label(db: &Connection, run: RunId, labels: &[String]) -> rusqlite::Result<bool> {
    let sql = "UPDATE workflow_runs SET labels = ?2 WHERE id = ?1";
    if db.prepare_cached(sql)?.execute(params![run.0, label_text(labels)])? == 0 {
        return Ok(false);
    }
    db.prepare_cached("DELETE FROM run_labels WHERE run = ?1")?.execute([run.0])?;
    put_labels(db, run, labels)?;
    Ok(true)
}

pub fn gates(db: &Connection, org: OrgId, after: (i64, String), limit: u32) -> rusqlite::Result<Vec<OpenGate>> {
    let sql = "SELECT g.run, r.public_id, g.step, g.since FROM gates g JOIN workflow_runs r ON r.id = g.run
               WHERE g.org = ?1 AND (g.run, g.step) > (?2, ?3) ORDER BY g.run, g.step LIMIT ?4";
    let gate = |row: &Row| {
        Ok(OpenGate { run: RunId(row.get(0)?), public: row.get(1)?, path: row.get(2)?, since: Time(row.get(3)?) })
    };
    db.prepare_cached(sql)?.query_map(params![org.0, after.0, after.1, limit], gate)?.collect()
}

pub const RUN_IS_OPEN: &str = "finished_at IS NULL";

/// Statuses of unfinished runs.
const OPEN: [&str; 4] = ["scheduled", "queued", "running", "paused"];

pub fn runs(db: &Connection, filter: &RunFilter) -> rusqlite::Result<Vec<RunRow>> {
    let mut sql = format!("SELECT {RUN_COLUMNS} FROM workflow_runs WHERE org = ?1 AND test = ?2 AND id < ?3");
    let before = filter.before.map_or(i64::MAX, |run| run.0);
    let mut values: Vec<rusqlite::types::Value> =
        vec![filter.org.0.into(), i64::from(filter.tests).into(), before.into()];
    if !filter.status.is_empty() {
        let from = values.len() + 1;
        values.extend(filter.status.iter().map(|status| status.clone().into()));
        let list = (from..=values.len()).map(|n| format!("?{n}")).collect::<Vec<_>>().join(", ");
        sql.push_str(&format!(" AND status IN ({list})"));
        if filter.status.iter().all(|status| OPEN.contains(&status.as_str())) {
            // Unfinished runs have their own index, which stays small.
            sql.push_str(" AND finished_at IS NULL");
        }
    }
    for label in &filter.labels {
        values.push(label.clone().into());
        sql.push_str(&format!(" AND id IN (SELECT run FROM run_labels WHERE label = ?{})", values.len()));
    }
    if let Some(parent) = filter.parent {
        values.push(parent.0.into());
        sql.push_str(&format!(" AND parent_run = ?{}", values.len()));
    }
    if let Some(by) = &filter.by {
        values.push(by.clone().into());
        sql.push_str(&format!(" AND created_by = ?{}", values.len()));
    }
    if let Some(text) = &filter.text {
        values.push(text.clone().into());
        let n = values.len();
        sql.push_str(&format!(
            " AND (instr(public_id, ?{n}) OR instr(created_by, ?{n}) OR instr(coalesce(labels, ''), ?{n}))"
        ));
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
    if let Some(until) = time(filter.until) {
        values.push(until.into());
        sql.push_str(&format!(" AND created_at < ?{}", values.len()));
    }
    values.push(i64::from(filter.limit).into());
    sql.push_str(&format!(" ORDER BY id DESC LIMIT ?{}", values.len()));
    db.prepare_cached(&sql)?.query_map(params_from_iter(values), run_row)?.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_feed_of_an_organisation_is_read_by_its_index_in_order() {
        let mut db = Connection::open_in_memory().unwrap();
        super::super::schema::migrate(&mut db).unwrap();
        let mut explain = db.prepare(&format!("EXPLAIN QUERY PLAN {FEED_OF}")).unwrap();
        let plan = explain.query_map(params![1, 0, 10], |row| row.get::<_, String>(3)).unwrap();
        let plan: Vec<String> = plan.collect::<Result<_, _>>().unwrap();
        assert_eq!(plan.len(), 2, "nothing is sorted: {plan:?}");
        assert!(plan[0].contains("workflow_events_of_org (org=? AND rowid>?)"), "{plan:?}");
    }
}
