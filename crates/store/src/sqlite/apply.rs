//! One commit as SQL. Runs inside the writer's transaction; checks come before writes.

use crate::{Commit, CounterDelta, Error, Position, Refused, RunId, UniqueKey};
use rusqlite::{Connection, OptionalExtension, params};
use stepwell_core::time::Time;

/// Applies a commit, or finds that it must be refused. After `Ok(Err(_))` the caller takes back what was written.
pub fn apply(db: &Connection, commit: &Commit) -> rusqlite::Result<Result<Position, Refused>> {
    let epoch: Option<i64> = db
        .prepare_cached("SELECT epoch FROM organisations WHERE id = ?1")?
        .query_row([commit.auth.org.0], |row| row.get(0))
        .optional()?;
    if epoch != Some(commit.auth.epoch) {
        return Ok(Err(Refused::AuthChanged));
    }
    if !put_head(db, commit)? {
        return Ok(Err(Refused::Conflict));
    }
    for key in &commit.unique {
        if let Some(refused) = put_unique(db, commit.run, key, commit.log.at)? {
            return Ok(Err(refused));
        }
    }
    for counter in &commit.counters {
        if !count(db, counter)? {
            return Ok(Err(Refused::Full));
        }
    }
    put_rows(db, commit)?;
    let run = commit.run.0;
    let version = commit.expect.0 + 1;
    db.prepare_cached("INSERT INTO workflow_events (run, version, at, facts, hash) VALUES (?1, ?2, ?3, ?4, ?5)")?
        .execute(params![run, version, commit.log.at.0, commit.log.facts, commit.log.hash])?;
    Ok(Ok(Position(db.last_insert_rowid())))
}

/// The compare-and-swap: false if the run is not at the version the decision was made on.
fn put_head(db: &Connection, commit: &Commit) -> rusqlite::Result<bool> {
    let (head, version) = (&commit.head, commit.expect.0 + 1);
    let (started, finished, purge) = (time(head.started), time(head.finished), time(head.purge));
    if let Some(new) = &commit.create {
        let sql =
            "INSERT INTO workflow_runs (id, public_id, org, definition, status, version, created_by, test, created_at,
                     started_at, finished_at, purge_at, hash, state)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14) ON CONFLICT DO NOTHING";
        let changed = db.prepare_cached(sql)?.execute(params![
            commit.run.0,
            new.public,
            new.org.0,
            new.definition,
            head.status,
            version,
            new.by,
            new.test,
            new.created.0,
            started,
            finished,
            purge,
            commit.log.hash,
            head.state
        ])?;
        return Ok(changed == 1);
    }
    let sql = "UPDATE workflow_runs SET status = ?1, version = ?2, started_at = coalesce(started_at, ?3),
                 finished_at = ?4, purge_at = ?5, hash = ?6, state = ?7 WHERE id = ?8 AND version = ?9";
    let changed = db.prepare_cached(sql)?.execute(params![
        head.status,
        version,
        started,
        finished,
        purge,
        commit.log.hash,
        head.state,
        commit.run.0,
        commit.expect.0
    ])?;
    Ok(changed == 1)
}

fn put_unique(db: &Connection, run: RunId, key: &UniqueKey, now: Time) -> rusqlite::Result<Option<Refused>> {
    db.prepare_cached("DELETE FROM unique_keys WHERE scope = ?1 AND key = ?2 AND expires_at <= ?3")?
        .execute(params![key.scope, key.key, now.0])?;
    let inserted = db
        .prepare_cached(
            "INSERT INTO unique_keys (scope, key, run, digest, expires_at) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT DO NOTHING",
        )?
        .execute(params![key.scope, key.key, run.0, key.digest, time(key.expires)])?;
    if inserted == 1 {
        return Ok(None);
    }
    db.prepare_cached("SELECT run, digest FROM unique_keys WHERE scope = ?1 AND key = ?2")?
        .query_row(params![key.scope, key.key], |row| {
            Ok(Some(Refused::Duplicate { run: RunId(row.get(0)?), digest: row.get(1)? }))
        })
}

/// False if the counter would go over its limit.
fn count(db: &Connection, counter: &CounterDelta) -> rusqlite::Result<bool> {
    let value: i64 = db
        .prepare_cached(
            "INSERT INTO counters (key, value) VALUES (?1, ?2)
             ON CONFLICT (key) DO UPDATE SET value = value + excluded.value RETURNING value",
        )?
        .query_row(params![counter.key, counter.delta], |row| row.get(0))?;
    if value <= 0 {
        db.prepare_cached("DELETE FROM counters WHERE key = ?1 AND value <= 0")?.execute([&counter.key])?;
    }
    Ok(counter.limit.is_none_or(|limit| value <= limit))
}

fn put_rows(db: &Connection, commit: &Commit) -> rusqlite::Result<()> {
    let run = commit.run.0;
    for value in &commit.values {
        db.prepare_cached("INSERT INTO step_values (run, id, payload) VALUES (?1, ?2, ?3)")?.execute(params![
            run,
            value.id.0,
            value.payload
        ])?;
    }
    for step in &commit.steps {
        let sql = "INSERT OR REPLACE INTO workflow_step_runs
                     (run, step, attempt, status, since, ended_at, input, output, state)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
        let (input, output) = (step.input.map(|id| id.0), step.output.map(|id| id.0));
        let (since, ended) = (step.since.0, time(step.ended));
        db.prepare_cached(sql)?.execute(params![
            run,
            step.path,
            step.attempt,
            step.status,
            since,
            ended,
            input,
            output,
            step.state
        ])?;
    }
    for key in &commit.work.remove {
        db.prepare_cached("DELETE FROM work WHERE run = ?1 AND step = ?2 AND attempt = ?3")?.execute(params![
            run,
            key.path,
            key.attempt
        ])?;
    }
    for work in &commit.work.put {
        let sql =
            "INSERT INTO work (run, step, attempt, org, kind, ready_at, node) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let node = work.node.map(|node| node.0);
        let (path, attempt) = (&work.key.path, work.key.attempt);
        db.prepare_cached(sql)?.execute(params![run, path, attempt, work.org.0, work.kind, work.ready.0, node])?;
    }
    for key in &commit.timers.remove {
        db.prepare_cached("DELETE FROM timers WHERE run = ?1 AND key = ?2")?.execute(params![run, key])?;
    }
    for timer in &commit.timers.put {
        db.prepare_cached("INSERT OR REPLACE INTO timers (run, key, due) VALUES (?1, ?2, ?3)")?.execute(params![
            run,
            timer.key,
            timer.due.0
        ])?;
    }
    for mail in &commit.mail {
        db.prepare_cached("INSERT INTO mail (run, key, body) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING")?
            .execute(params![mail.to.0, mail.key, mail.body])?;
    }
    for id in &commit.read {
        db.prepare_cached("DELETE FROM mail WHERE id = ?1 AND run = ?2")?.execute(params![id, run])?;
    }
    for notice in &commit.outbox {
        db.prepare_cached("INSERT INTO outbox (key, run, body, due) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING")?
            .execute(params![notice.key, run, notice.body, notice.due.0])?;
    }
    Ok(())
}

pub fn time(time: Option<Time>) -> Option<i64> {
    time.map(|time| time.0)
}

/// What a failed statement means to the caller.
pub fn error(error: rusqlite::Error) -> Error {
    use rusqlite::ErrorCode;
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => Error::Full(error.to_string()),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Error::Unusable(error.to_string()),
        _ => Error::Unavailable(error.to_string()),
    }
}
