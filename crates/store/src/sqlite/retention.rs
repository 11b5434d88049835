//! Retention: purging and erasing runs, shrinking the file; sizes and integrity checks.

use super::evidence::Tx;
use super::query;
use crate::evidence::{DefinitionEntry, RunEntry};
use crate::{Backlog, COUNTED, ERASED, OrgId, RunId, Stats, Version, descendants};
use rusqlite::{Connection, OptionalExtension, params};
use stepwell_core::time::Time;

/// Free pages returned to the file system at a time.
const VACUUM_PAGES: u32 = 1_000;

/// Deletes the rows of a run in pieces: `?1` is the run, `?2` the maximum number of rows.
const PURGE: [&str; 8] = [
    "DELETE FROM workflow_step_runs WHERE run = ?1 AND (step, attempt) IN
       (SELECT step, attempt FROM workflow_step_runs WHERE run = ?1 LIMIT ?2)",
    "DELETE FROM step_values WHERE run = ?1 AND id IN (SELECT id FROM step_values WHERE run = ?1 LIMIT ?2)",
    "DELETE FROM workflow_events WHERE position IN (SELECT position FROM workflow_events WHERE run = ?1 LIMIT ?2)",
    "DELETE FROM gates WHERE run = ?1 AND step IN (SELECT step FROM gates WHERE run = ?1 LIMIT ?2)",
    "DELETE FROM run_labels WHERE run = ?1 AND label IN (SELECT label FROM run_labels WHERE run = ?1 LIMIT ?2)",
    "DELETE FROM mail WHERE id IN (SELECT id FROM mail WHERE run = ?1 LIMIT ?2)",
    "DELETE FROM outbox WHERE id IN (SELECT id FROM outbox WHERE run = ?1 LIMIT ?2)",
    "DELETE FROM unique_keys WHERE (scope, key) IN (SELECT scope, key FROM unique_keys WHERE run = ?1 LIMIT ?2)",
];

/// Removes up to `limit` rows. The run's own row goes last, so an interrupted purge continues where it stopped.
pub fn purge(db: &Tx<'_>, before: Time, limit: u32) -> rusqlite::Result<u64> {
    let sql = "SELECT id FROM workflow_runs WHERE purge_at <= ?1 ORDER BY purge_at LIMIT ?2";
    let mut find = db.prepare_cached(sql)?;
    let runs: Vec<i64> = find.query_map(params![before.0, limit], |row| row.get(0))?.collect::<Result<_, _>>()?;
    if runs.is_empty() {
        return Ok(0);
    }
    // The newest rows may be purged before older ones, or all rows: the high-water mark never decreases.
    let sql = "UPDATE purged SET position = max(position, (SELECT coalesce(max(position), 0) FROM workflow_events))";
    db.execute(sql, [])?;
    let mut left = limit;
    for run in runs {
        for sql in PURGE {
            left -= db.prepare_cached(sql)?.execute(params![run, left])? as u32;
        }
        if left == 0 {
            // The run may have lost rows: from now on it can only be removed.
            mark_erased(db, RunId(run), before)?;
            break;
        }
        remove(db, run)?;
        left -= 1;
    }
    Ok(u64::from(limit - left))
}

/// Removes the row of a run, its count of descendants, and its definition if that was only for a test.
fn remove(db: &Tx<'_>, run: i64) -> rusqlite::Result<()> {
    let sql = "DELETE FROM workflow_runs WHERE id = ?1 RETURNING definition, version, hash, erased_at IS NOT NULL";
    let gone = db.prepare_cached(sql)?.query_row([run], |row| {
        let entry = RunEntry { run: RunId(run), version: Version(row.get(1)?), hash: row.get(2)?, erased: row.get(3)? };
        Ok((row.get::<_, i64>(0)?, entry))
    });
    let Some((definition, entry)) = gone.optional()? else { return Ok(()) };
    db.tally([entry.removed()]);
    let sql =
        format!("DELETE FROM workflow_definitions WHERE id = ?1 AND test = 1 RETURNING {}", query::WHOLE_DEFINITION);
    let gone = db.prepare_cached(&sql)?.query_row([definition], query::whole_definition).optional()?;
    db.tally(gone.iter().map(DefinitionEntry::removed));
    let sql = "DELETE FROM counters WHERE key = ?1
               AND NOT EXISTS (SELECT 1 FROM workflow_runs WHERE root = ?2 AND finished_at IS NULL)";
    db.prepare_cached(sql)?.execute(params![descendants(RunId(run)), run])?;
    Ok(())
}

/// Marks the payloads of a run as erased. Returns false if they are already.
fn mark_erased(db: &Tx<'_>, run: RunId, at: Time) -> rusqlite::Result<bool> {
    let sql = "UPDATE workflow_runs SET erased_at = ?2 WHERE id = ?1 AND erased_at IS NULL RETURNING version, hash";
    let head = db.prepare_cached(sql)?.query_row(params![run.0, at.0], |row| {
        Ok(RunEntry { run, version: Version(row.get(0)?), hash: row.get(1)?, erased: false })
    });
    let Some(head) = head.optional()? else { return Ok(false) };
    db.tally([head.removed(), RunEntry { erased: true, ..head }.added()]);
    Ok(true)
}

/// Shrinks the file by some of its free pages. A tenth of the pages may stay free: they will be reused.
pub fn shrink(db: &Connection) -> rusqlite::Result<bool> {
    let pragma = |name: &str| db.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let (pages, free) = (pragma("page_count")?, pragma("freelist_count")?);
    if free <= pages / 10 {
        return Ok(false);
    }
    let mut vacuum = db.prepare_cached(&format!("PRAGMA incremental_vacuum({VACUUM_PAGES})"))?;
    let mut rows = vacuum.query([])?;
    while rows.next()?.is_some() {}
    Ok(true)
}

/// Erases the payloads of a finished run. Their digests stay in the log.
pub fn erase(db: &Tx<'_>, run: RunId, at: Time) -> rusqlite::Result<bool> {
    let sql = "SELECT 1 FROM workflow_runs WHERE id = ?1 AND finished_at IS NOT NULL";
    if !db.prepare_cached(sql)?.exists([run.0])? {
        return Ok(false);
    }
    if !mark_erased(db, run, at)? {
        db.prepare_cached("UPDATE workflow_runs SET erased_at = ?2 WHERE id = ?1")?.execute(params![run.0, at.0])?;
    }
    db.prepare_cached("UPDATE step_values SET payload = ?2 WHERE run = ?1")?.execute(params![run.0, ERASED])?;
    Ok(true)
}

pub fn limit(db: &Connection, bytes: u64) -> rusqlite::Result<()> {
    let page: i64 = db.pragma_query_value(None, "page_size", |row| row.get(0))?;
    let pages = i64::try_from(bytes).unwrap_or(i64::MAX) / page;
    // The pragma returns the limit in effect, which is never less than the current size.
    db.pragma_update_and_check(None, "max_page_count", pages.clamp(1, 4_294_967_294), |_| Ok(()))
}

pub fn stats(db: &Connection, counted: bool) -> rusqlite::Result<Stats> {
    let pragma = |name: &str| db.pragma_query_value(None, name, |row| row.get::<_, i64>(0).map(i64::unsigned_abs));
    let page = pragma("page_size")?;
    let count = |table: &&str| {
        let rows: i64 = db.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))?;
        Ok((table.to_string(), rows.unsigned_abs()))
    };
    Ok(Stats {
        bytes: pragma("page_count")? * page,
        free: pragma("freelist_count")? * page,
        journal: 0,
        ready: db
            .query_row("SELECT count(*) FROM work WHERE node IS NULL", [], |row| row.get::<_, i64>(0))?
            .unsigned_abs(),
        rows: COUNTED.iter().filter(|_| counted).map(count).collect::<rusqlite::Result<_>>()?,
    })
}

pub fn backlog(db: &Connection, now: Time) -> rusqlite::Result<Backlog> {
    let sql = "SELECT org, count(*), min(ready_at) FROM work WHERE node IS NULL GROUP BY org ORDER BY 2 DESC, 1";
    let mut ready = db.prepare_cached(sql)?;
    let ready: Vec<(OrgId, i64, Time)> = ready
        .query_map([], |row| Ok((OrgId(row.get(0)?), row.get(1)?, Time(row.get(2)?))))?
        .collect::<rusqlite::Result<_>>()?;
    let count = |sql: &str, values: &[i64]| {
        let counted = db.prepare_cached(sql)?.query_row(rusqlite::params_from_iter(values), |row| row.get::<_, i64>(0));
        counted.map(i64::unsigned_abs)
    };
    let late = now.0.saturating_sub(Backlog::OVERDUE.0 as i64);
    let overdue = "SELECT count(*) FROM (SELECT 1 FROM timers WHERE due <= ?1 LIMIT ?2)";
    Ok(Backlog {
        oldest_ready: ready.iter().map(|(_, _, oldest)| *oldest).min(),
        ready: ready.into_iter().map(|(org, count, _)| (org, count.unsigned_abs())).collect(),
        unfinished: count("SELECT count(*) FROM workflow_runs WHERE finished_at IS NULL", &[])?,
        overdue_timers: count(overdue, &[late, i64::from(Backlog::MOST_TIMERS)])?,
        purgeable: count("SELECT count(*) FROM workflow_runs WHERE purge_at <= ?1", &[now.0])?,
    })
}

pub fn integrity(db: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut check = db.prepare("PRAGMA integrity_check(100)")?;
    let found: Vec<String> = check.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    Ok(found.into_iter().filter(|line| line != "ok").collect())
}
