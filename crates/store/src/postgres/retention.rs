//! Retention: purging and erasing runs; sizes and integrity checks.

use super::args::args;
use super::evidence::{WHOLE_DEFINITION, run_entry, whole_definition};
use super::session::{DbResult, Session};
use crate::evidence::{Effects, Entry, RunEntry};
use crate::{Backlog, COUNTED, ERASED, OrgId, RunId, Share, Stats, descendants};
use stepwell_core::time::Time;

/// The maximum number of runs per purge.
const RUNS: u32 = 100;

/// Deletes the rows of runs in pieces: `$1` are the runs, `$2` the maximum number of rows.
const PURGE: [&str; 8] = [
    "DELETE FROM workflow_step_runs WHERE (run, step, attempt) IN
       (SELECT run, step, attempt FROM workflow_step_runs WHERE run = ANY($1) LIMIT $2)",
    "DELETE FROM step_values WHERE (run, id) IN (SELECT run, id FROM step_values WHERE run = ANY($1) LIMIT $2)",
    "DELETE FROM workflow_events WHERE (run, version) IN
       (SELECT run, version FROM workflow_events WHERE run = ANY($1) LIMIT $2)",
    "DELETE FROM gates WHERE (run, step) IN (SELECT run, step FROM gates WHERE run = ANY($1) LIMIT $2)",
    "DELETE FROM run_labels WHERE (label, run) IN (SELECT label, run FROM run_labels WHERE run = ANY($1) LIMIT $2)",
    "DELETE FROM mail WHERE id IN (SELECT id FROM mail WHERE run = ANY($1) LIMIT $2)",
    "DELETE FROM outbox WHERE id IN (SELECT id FROM outbox WHERE run = ANY($1) LIMIT $2)",
    // An expired key may pass to another run concurrently.
    "DELETE FROM unique_keys WHERE run = ANY($1)
       AND (scope, key) IN (SELECT scope, key FROM unique_keys WHERE run = ANY($1) LIMIT $2)",
];

/// Removes up to `limit` rows, within a transaction. The rows of the runs themselves go last, so an interrupted purge
/// continues where it stopped. Runs that another node is purging are skipped.
pub async fn purge(db: &Session, before: Time, limit: u32) -> DbResult<(u64, Effects)> {
    let sql = "SELECT id FROM workflow_runs WHERE purge_at <= $1 ORDER BY purge_at LIMIT $2 FOR UPDATE SKIP LOCKED";
    let found = db.query(sql, args![before.0, i64::from(limit.min(RUNS))]).await?;
    let runs: Vec<i64> = found.iter().map(|row| row.get(0)).collect();
    if runs.is_empty() {
        return Ok((0, Effects::default()));
    }
    let most = i64::from(limit);
    let (mut left, mut entries) = (most, Vec::new());
    for sql in PURGE {
        left -= db.execute(sql, args![runs, left]).await? as i64;
    }
    if left == 0 {
        // Some runs may have lost rows: from now on they can only be removed.
        entries = mark_erased(db, &runs, before).await?;
    } else {
        let sql = "DELETE FROM workflow_runs WHERE id IN (SELECT id FROM workflow_runs WHERE id = ANY($1) LIMIT $2)
                   RETURNING definition, id, version, hash, erased_at IS NOT NULL";
        let gone = db.query(sql, args![runs, left]).await?;
        left -= gone.len() as i64;
        let definitions: Vec<i64> = gone.iter().map(|row| row.get(0)).collect();
        let roots: Vec<i64> = gone.iter().map(|row| row.get(1)).collect();
        entries.extend(gone.iter().map(|row| run_entry(row, 1).removed()));
        let sql = format!("DELETE FROM workflow_definitions WHERE id = ANY($1) AND test RETURNING {WHOLE_DEFINITION}");
        let gone = db.query(&sql, args![definitions]).await?;
        entries.extend(gone.iter().map(|row| whole_definition(row).removed()));
        let counters: Vec<String> = roots.iter().map(|root| descendants(RunId(*root))).collect();
        let sql = "DELETE FROM counters c USING unnest($1, $2) AS x(key, root) WHERE c.key = x.key
                   AND NOT EXISTS (SELECT 1 FROM workflow_runs r WHERE r.root = x.root AND r.finished_at IS NULL)";
        db.execute(sql, args![counters, roots]).await?;
    }
    Ok(((most - left).unsigned_abs(), Effects { audit: Vec::new(), entries }))
}

/// Marks the payloads of runs as erased, unless they are already.
async fn mark_erased(db: &Session, runs: &Vec<i64>, at: Time) -> DbResult<Vec<Entry>> {
    let sql = "UPDATE workflow_runs SET erased_at = $2 WHERE id = ANY($1) AND erased_at IS NULL
               RETURNING id, version, hash, false";
    let heads = db.query(sql, args![runs, at.0]).await?;
    let entries = heads.iter().map(|row| run_entry(row, 0));
    Ok(entries.flat_map(|head| [head.removed(), RunEntry { erased: true, ..head }.added()]).collect())
}

/// Erases the payloads of a finished run. Their digests stay in the log. Returns `None` if it has not finished.
pub async fn erase(db: &Session, run: RunId, at: Time) -> DbResult<Option<Vec<Entry>>> {
    let sql = "SELECT 1 FROM workflow_runs WHERE id = $1 AND finished_at IS NOT NULL FOR UPDATE";
    if db.one(sql, args![run.0]).await?.is_none() {
        return Ok(None);
    }
    let entries = mark_erased(db, &vec![run.0], at).await?;
    if entries.is_empty() {
        db.execute("UPDATE workflow_runs SET erased_at = $2 WHERE id = $1", args![run.0, at.0]).await?;
    }
    db.execute("UPDATE step_values SET payload = $2 WHERE run = $1", args![run.0, ERASED]).await?;
    Ok(Some(entries))
}

pub async fn stats(db: &Session, counted: bool) -> DbResult<Stats> {
    let count = async |sql: &str| {
        Ok::<u64, super::session::Failed>(db.one(sql, &[]).await?.map_or(0, |row| row.get::<_, i64>(0).unsigned_abs()))
    };
    let size = "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c
                WHERE c.relkind = 'r'
                  AND c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())";
    let mut rows = Vec::new();
    for table in COUNTED.iter().filter(|_| counted) {
        rows.push((table.to_string(), count(&format!("SELECT count(*) FROM {table}")).await?));
    }
    Ok(Stats {
        bytes: count(size).await?,
        free: 0,
        journal: 0,
        ready: count("SELECT count(*) FROM work WHERE node IS NULL").await?,
        rows,
    })
}

/// Each part reads an index that holds little more than what is counted.
pub async fn backlog(db: &Session, now: Time) -> DbResult<Backlog> {
    let ready = "SELECT org, count(*), min(ready_at) FROM work WHERE node IS NULL GROUP BY org ORDER BY 2 DESC, 1";
    let rest = "SELECT (SELECT count(*) FROM workflow_runs WHERE finished_at IS NULL),
                  (SELECT count(*) FROM workflow_runs WHERE purge_at <= $1),
                  (SELECT count(*) FROM (SELECT 1 FROM generate_series(0, $2::int - 1) AS s(shard) CROSS JOIN LATERAL
                     (SELECT 1 FROM timers WHERE shard = s.shard AND due <= $3 LIMIT $4) t LIMIT $4) o)";
    let late = now.0.saturating_sub(Backlog::OVERDUE.0 as i64);
    let (shards, most) = (Share::SHARDS as i32, i64::from(Backlog::MOST_TIMERS));
    let ready = db.query(ready, &[]).await?;
    let rest = db.one(rest, args![now.0, shards, late, most]).await?;
    let number = |n| rest.as_ref().map_or(0, |row| row.get::<_, i64>(n).unsigned_abs());
    Ok(Backlog {
        ready: ready.iter().map(|row| (OrgId(row.get(0)), row.get::<_, i64>(1).unsigned_abs())).collect(),
        oldest_ready: ready.iter().map(|row| Time(row.get(2))).min(),
        unfinished: number(0),
        purgeable: number(1),
        overdue_timers: number(2),
    })
}

/// Returns the indexes that the database marks as invalid.
pub async fn integrity(db: &Session) -> DbResult<Vec<String>> {
    let sql = "SELECT c.relname::text FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
               WHERE NOT i.indisvalid
                 AND c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())";
    let found = db.query(sql, &[]).await?;
    Ok(found.iter().map(|row| format!("index {} is invalid", row.get::<_, String>(0))).collect())
}
