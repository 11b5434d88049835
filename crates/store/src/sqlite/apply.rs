//! Applies one commit as SQL, inside the writer's transaction. Checks come before writes.

use super::evidence::Tx;
use super::registry;
use crate::{Commit, Error, GroupChange, Head, NewRun, Parent, Position, Refused, RunId, UniqueKey, label_text};
use rusqlite::{Connection, OptionalExtension, params};
use std::path::Path;
use stepwell_core::time::Time;

/// Page cache: enough for the pages being written, whatever the size of the file.
const CACHE_KIB: i32 = 20_480;
/// Pages the WAL may hold before a checkpoint.
const CHECKPOINT_PAGES: u32 = 4_000;

/// Opens the writer connection with its settings. `auto_vacuum` only has an effect before the first table is created.
pub fn open_for_writing(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.set_prepared_statement_cache_capacity(super::STATEMENTS);
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    // On macOS a plain sync stops at the drive's cache; elsewhere this makes no difference.
    connection.pragma_update(None, "fullfsync", "ON")?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    connection.pragma_update(None, "journal_size_limit", 64 * 1024 * 1024)?;
    Ok(connection)
}

/// Applies a commit, or returns why it is refused. After `Ok(Err(_))` the caller rolls back what was written.
pub fn apply(db: &Tx<'_>, commit: &Commit, position: i64) -> rusqlite::Result<Result<Position, Refused>> {
    if !registry::is_current(db, commit.auth)? {
        return Ok(Err(Refused::AuthChanged));
    }
    let new = commit.create.as_ref();
    if let Some((new, most)) = new.and_then(|new| Some((new, new.most_open?)))
        && registry::open_runs(db, commit.auth.org)? >= u64::from(most)
        && new.parent.as_ref().map_or(Ok(true), |parent| has_open_child(db, parent))?
    {
        return Ok(Err(Refused::TooManyOpen));
    }
    if !put_head(db, commit)? {
        return Ok(Err(Refused::Conflict));
    }
    for key in &commit.unique {
        if let Some(refused) = put_unique(db, commit.run, key, commit.log.at)? {
            return Ok(Err(refused));
        }
    }
    if let Some((counter, most)) = new.and_then(NewRun::counted)
        && count(db, &counter, 1)? > i64::from(most)
    {
        return Ok(Err(Refused::TooManyDescendants));
    }
    for change in &commit.groups {
        if !change_group(db, commit.run, change)? {
            return Ok(Err(Refused::Full));
        }
    }
    put_rows(db, commit)?;
    let run = commit.run.0;
    let version = commit.expect.0 + 1;
    let sql = "INSERT INTO workflow_events (position, run, version, at, facts, payloads, hash, org)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    let (log, org) = (&commit.log, commit.auth.org.0);
    db.prepare_cached(sql)?.execute(params![
        position,
        run,
        version,
        log.at.0,
        log.facts,
        log.payloads,
        log.hash,
        org
    ])?;
    registry::append(db, &commit.audit)?;
    Ok(Ok(Position::new(super::WRITER, position)))
}

/// The compare-and-swap: returns false if the run is not at the expected version.
fn put_head(db: &Connection, commit: &Commit) -> rusqlite::Result<bool> {
    let (run, version, hash, state) = (commit.run.0, commit.expect.0 + 1, commit.log.hash, &commit.state);
    let changed = match (&commit.create, &commit.head) {
        (Some(new), Some(head)) if commit.expect.0 == 0 => create(db, commit, new, head)?,
        (None, Some(head)) => {
            let sql = "UPDATE workflow_runs SET version = ?1, hash = ?2, state = ?3, status = ?4, definition = ?5,
                         started_at = coalesce(started_at, ?6), finished_at = ?7, purge_at = ?8
                       WHERE id = ?9 AND version = ?10 AND erased_at IS NULL";
            let times = [head.started, head.finished, head.purge].map(time);
            let [started, finished, purge] = times;
            let (status, definition) = (&head.status, head.definition);
            db.prepare_cached(sql)?.execute(params![
                version,
                hash,
                state,
                status,
                definition,
                started,
                finished,
                purge,
                run,
                commit.expect.0
            ])?
        }
        // No indexed column changes, so only the row itself is written.
        (None, None) => {
            let sql = "UPDATE workflow_runs SET version = ?1, hash = ?2, state = ?3
                       WHERE id = ?4 AND version = ?5 AND erased_at IS NULL";
            db.prepare_cached(sql)?.execute(params![version, hash, state, run, commit.expect.0])?
        }
        (Some(_), _) => 0,
    };
    Ok(changed == 1)
}

fn create(db: &Connection, commit: &Commit, new: &NewRun, head: &Head) -> rusqlite::Result<usize> {
    let sql = "INSERT INTO workflow_runs (id, public_id, org, definition, status, version, created_by, test, secret,
                 parent_run, parent_step, parent_attempt, depth, place, created_at, started_at, finished_at, purge_at,
                 hash, state, acts_as, labels, root)
               VALUES (?1, ?2, ?3, ?4, ?5, 1, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21,
                 ?22)
               ON CONFLICT DO NOTHING";
    let parent = new.parent.as_ref();
    let created = db.prepare_cached(sql)?.execute(params![
        commit.run.0,
        new.public,
        new.org.0,
        head.definition,
        head.status,
        new.by,
        new.test,
        new.secret,
        parent.map(|parent| parent.run.0),
        parent.map(|parent| &parent.path),
        parent.map(|parent| parent.attempt),
        parent.map_or(0, |parent| parent.depth),
        new.group,
        new.created.0,
        time(head.started),
        time(head.finished),
        time(head.purge),
        commit.log.hash,
        commit.state,
        new.acts_as,
        label_text(&new.labels),
        parent.map(|parent| parent.root.0)
    ])?;
    if created == 1 {
        put_labels(db, commit.run, &new.labels)?;
    }
    Ok(created)
}

pub fn put_labels(db: &Connection, run: RunId, labels: &[String]) -> rusqlite::Result<()> {
    for label in labels {
        db.prepare_cached("INSERT INTO run_labels (label, run) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?
            .execute(params![label, run.0])?;
    }
    Ok(())
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

fn has_open_child(db: &Connection, parent: &Parent) -> rusqlite::Result<bool> {
    let sql = "SELECT 1 FROM workflow_runs WHERE root = ?1 AND parent_run = ?2 AND finished_at IS NULL";
    db.prepare_cached(sql)?.exists([parent.root.0, parent.run.0])
}

/// Returns false if the group is full.
fn change_group(db: &Connection, run: RunId, change: &GroupChange) -> rusqlite::Result<bool> {
    let put = |key: &str, held: bool| {
        db.prepare_cached("INSERT OR REPLACE INTO places (key, run, held) VALUES (?1, ?2, ?3)")?
            .execute(params![key, run.0, held])
    };
    match change {
        GroupChange::Queue { key } => {
            leave(db, run, key)?;
            put(key, false).map(|_| true)
        }
        GroupChange::Leave { key } => leave(db, run, key).map(|()| true),
        GroupChange::Enter { key, limit } => {
            let sql = "SELECT 1 FROM places WHERE key = ?1 AND run = ?2 AND held = 1";
            // One slot per run: a run that holds one keeps it, and it is not counted again.
            if db.prepare_cached(sql)?.exists(params![key, run.0])? {
                return Ok(true);
            }
            let sql = "SELECT min(run) FROM places WHERE held = 0 AND key = ?1";
            let first: Option<i64> = db.prepare_cached(sql)?.query_row([key], |row| row.get(0))?;
            let held = count(db, key, 1)?;
            put(key, true)?;
            Ok(limit.is_none_or(|limit| held <= i64::from(limit) && first.is_none_or(|first| first >= run.0)))
        }
    }
}

fn leave(db: &Connection, run: RunId, key: &str) -> rusqlite::Result<()> {
    let sql = "DELETE FROM places WHERE key = ?1 AND run = ?2 RETURNING held";
    let held = db.prepare_cached(sql)?.query_row(params![key, run.0], |row| row.get(0)).optional()?;
    if held == Some(true) {
        count(db, key, -1)?;
    }
    Ok(())
}

/// Adds to a counter and returns its new value.
pub fn count(db: &Connection, key: &str, delta: i64) -> rusqlite::Result<i64> {
    let sql = "INSERT INTO counters (key, value) VALUES (?1, ?2)
               ON CONFLICT (key) DO UPDATE SET value = value + excluded.value RETURNING value";
    let value = db.prepare_cached(sql)?.query_row(params![key, delta], |row| row.get(0))?;
    if value <= 0 {
        db.prepare_cached("DELETE FROM counters WHERE key = ?1")?.execute([key])?;
    }
    Ok(value)
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
        let sql = "INSERT INTO workflow_step_runs (run, step, attempt, status, since, ended_at, input, output, state)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
                   ON CONFLICT (run, step, attempt) DO UPDATE SET status = excluded.status, ended_at = excluded.ended_at,
                     since = CASE status WHEN 'pending' THEN excluded.since ELSE since END,
                     input = excluded.input, output = excluded.output, state = excluded.state";
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
    for path in &commit.gates.remove {
        db.prepare_cached("DELETE FROM gates WHERE run = ?1 AND step = ?2")?.execute(params![run, path])?;
    }
    for gate in &commit.gates.put {
        let sql = "INSERT OR REPLACE INTO gates (run, step, org, since) VALUES (?1, ?2, ?3, ?4)";
        db.prepare_cached(sql)?.execute(params![run, gate.path, commit.auth.org.0, gate.since.0])?;
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
    for key in &commit.sent {
        db.prepare_cached("DELETE FROM outbox WHERE run = ?1 AND key = ?2")?.execute(params![run, key])?;
    }
    Ok(())
}

pub fn time(time: Option<Time>) -> Option<i64> {
    time.map(|time| time.0)
}

/// Classifies a failed statement for the caller.
pub fn error(error: &rusqlite::Error) -> Error {
    use rusqlite::ErrorCode;
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => Error::Full(error.to_string()),
        // A retry would fail again.
        Some(
            ErrorCode::DatabaseCorrupt
            | ErrorCode::NotADatabase
            | ErrorCode::ConstraintViolation
            | ErrorCode::TooBig
            | ErrorCode::TypeMismatch,
        ) => Error::Unusable(error.to_string()),
        _ => Error::Unavailable(error.to_string()),
    }
}
