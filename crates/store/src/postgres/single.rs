//! A commit in its own transaction of several statements. Needed if the result depends on other runs (concurrency
//! groups, several unique keys, limits of open runs and of descendants) and for a few unusual commits. It waits for locks
//! that others hold.

use super::args::args;
use super::batch::{self, Batch, Outcome, Slot, time};
use super::session::{DbResult, Session};
use crate::{Commit, GroupChange, NewRun, Parent, Refused, RunId, UniqueKey, WorkKey};
use stepwell_core::time::Time;

/// Whether the commit needs its own transaction.
pub fn required(commit: &Commit) -> bool {
    let limited = commit.create.as_ref().is_some_and(|new| new.most_open.is_some() || new.counted().is_some());
    let keys = if commit.create.is_some() { commit.unique.len() > 1 } else { !commit.unique.is_empty() };
    let odd = commit.create.is_some() && (commit.expect.0 != 0 || commit.head.is_none());
    limited || keys || odd || !commit.groups.is_empty() || replaced(commit).next().is_some()
}

/// Work that is removed and added again: within one statement the row would exist twice.
fn replaced(commit: &Commit) -> impl Iterator<Item = &WorkKey> {
    commit.work.put.iter().map(|work| &work.key).filter(|key| commit.work.remove.contains(key))
}

/// Finds out why a commit was refused as a conflict: a unique key may be taken.
pub async fn refusal(db: &Session, commit: &Commit) -> DbResult<Refused> {
    if let Some(key) = commit.unique.first()
        && is_current(db, commit).await?
        && let Some(owner) = owner(db, key, commit.log.at).await?
    {
        return Ok(owner);
    }
    Ok(Refused::Conflict)
}

/// Writes a commit and returns its number, or `None` if another writer holds the slot. The caller ends the transaction.
pub async fn write(db: &Session, slot: Slot, commit: &Commit) -> DbResult<Option<Result<i64, Refused>>> {
    if let Err(refused) = check(db, commit).await? {
        return Ok(Some(Err(refused)));
    }
    for key in replaced(commit) {
        let sql = "DELETE FROM work WHERE run = $1 AND step = $2 AND attempt = $3";
        db.execute(sql, args![commit.run.0, key.path, i64::from(key.attempt)]).await?;
    }
    Ok(match batch::write(db, Batch { slot, commits: &[commit], keys: false, tally: None }).await?.as_deref() {
        None => None,
        Some([Outcome::Applied { number }]) => Some(Ok(*number)),
        Some([Outcome::AuthChanged]) => Some(Err(Refused::AuthChanged)),
        Some(_) => Some(Err(Refused::Conflict)),
    })
}

async fn check(db: &Session, commit: &Commit) -> DbResult<Result<(), Refused>> {
    let new = commit.create.as_ref();
    let most = new.and_then(|new| new.most_open);
    // Transactions that count open runs must not run concurrently.
    let lock = if most.is_some() { " FOR NO KEY UPDATE" } else { "" };
    let sql = format!("SELECT epoch FROM organisations WHERE id = $1{lock}");
    let epoch: Option<i64> = db.one(&sql, args![commit.auth.org.0]).await?.map(|row| row.get(0));
    if epoch != Some(commit.auth.epoch) {
        return Ok(Err(Refused::AuthChanged));
    }
    if let Some(most) = most
        && super::registry::open_runs(db, commit.auth.org).await? >= u64::from(most)
        && !is_first_child(db, new.and_then(|new| new.parent.as_ref())).await?
    {
        return Ok(Err(Refused::TooManyOpen));
    }
    if !is_current(db, commit).await? {
        return Ok(Err(Refused::Conflict));
    }
    for key in &commit.unique {
        if let Some(refused) = put_key(db, commit.run, key, commit.log.at).await? {
            return Ok(Err(refused));
        }
    }
    if let Some((counter, most)) = new.and_then(NewRun::counted)
        && count(db, &counter, 1).await? > i64::from(most)
    {
        return Ok(Err(Refused::TooManyDescendants));
    }
    for change in &commit.groups {
        if !change_group(db, commit.run, change).await? {
            return Ok(Err(Refused::Full));
        }
    }
    Ok(Ok(()))
}

/// Whether the run has a parent, which has no other unfinished child.
async fn is_first_child(db: &Session, parent: Option<&Parent>) -> DbResult<bool> {
    let Some(parent) = parent else { return Ok(false) };
    let sql = "SELECT 1 FROM workflow_runs WHERE root = $1 AND parent_run = $2 AND finished_at IS NULL LIMIT 1";
    Ok(db.one(sql, args![parent.root.0, parent.run.0]).await?.is_none())
}

/// Whether the run is at the expected version or, for a new run, does not exist yet.
async fn is_current(db: &Session, commit: &Commit) -> DbResult<bool> {
    match &commit.create {
        Some(new) => {
            let sql = "SELECT 1 FROM workflow_runs WHERE id = $1 OR public_id = $2";
            let free = db.one(sql, args![commit.run.0, new.public]).await?.is_none();
            Ok(free && commit.expect.0 == 0 && commit.head.is_some())
        }
        None => {
            let sql = "SELECT 1 FROM workflow_runs WHERE id = $1 AND version = $2 AND erased_at IS NULL";
            Ok(db.one(sql, args![commit.run.0, commit.expect.0]).await?.is_some())
        }
    }
}

async fn put_key(db: &Session, run: RunId, key: &UniqueKey, now: Time) -> DbResult<Option<Refused>> {
    let sql = "INSERT INTO unique_keys AS u (scope, key, run, digest, expires_at) VALUES ($1, $2, $3, $4, $5)
               ON CONFLICT (scope, key) DO UPDATE SET run = excluded.run, digest = excluded.digest,
                 expires_at = excluded.expires_at WHERE u.expires_at <= $6";
    let put = db.execute(sql, args![key.scope, key.key, run.0, key.digest, time(key.expires), now.0]).await?;
    if put == 1 { Ok(None) } else { owner(db, key, now).await }
}

/// The refusal that names the run which holds the key, unless the key has expired.
async fn owner(db: &Session, key: &UniqueKey, now: Time) -> DbResult<Option<Refused>> {
    let sql = "SELECT run, digest FROM unique_keys WHERE scope = $1 AND key = $2
               AND (expires_at IS NULL OR expires_at > $3)";
    let found = db.one(sql, args![key.scope, key.key, now.0]).await?;
    Ok(found.map(|row| Refused::Duplicate { run: RunId(row.get(0)), digest: row.get(1) }))
}

/// Returns false if the group is full. The group's counter row serves as its lock and is taken first.
async fn change_group(db: &Session, run: RunId, change: &GroupChange) -> DbResult<bool> {
    let held_by = "SELECT held FROM places WHERE key = $1 AND run = $2";
    let (GroupChange::Enter { key, .. } | GroupChange::Queue { key } | GroupChange::Leave { key }) = change;
    count(db, key, 0).await?;
    let held: Option<bool> = db.one(held_by, args![key, run.0]).await?.map(|row| row.get(0));
    match change {
        GroupChange::Enter { limit, .. } => {
            // One slot per run: a run that holds one keeps it, and it is not counted again.
            if held == Some(true) {
                return Ok(true);
            }
            let sql = "SELECT min(run) FROM places WHERE NOT held AND key = $1";
            let first: Option<i64> = db.one(sql, args![key]).await?.and_then(|row| row.get(0));
            let taken = count(db, key, 1).await?;
            put_member(db, run, key, true).await?;
            Ok(limit.is_none_or(|limit| taken <= i64::from(limit) && first.is_none_or(|first| first >= run.0)))
        }
        GroupChange::Queue { .. } => {
            count(db, key, if held == Some(true) { -1 } else { 0 }).await?;
            put_member(db, run, key, false).await?;
            Ok(true)
        }
        GroupChange::Leave { .. } => {
            count(db, key, if held == Some(true) { -1 } else { 0 }).await?;
            db.execute("DELETE FROM places WHERE key = $1 AND run = $2", args![key, run.0]).await?;
            let unused = "DELETE FROM counters WHERE key = $1 AND writer = 0 AND value <= 0";
            db.execute(unused, args![key]).await?;
            Ok(true)
        }
    }
}

async fn put_member(db: &Session, run: RunId, key: &str, held: bool) -> DbResult<()> {
    let sql = "INSERT INTO places (key, run, held) VALUES ($1, $2, $3)
               ON CONFLICT (key, run) DO UPDATE SET held = excluded.held";
    db.execute(sql, args![key, run.0, held]).await.map(|_| ())
}

/// Adds to the number of runs that hold a slot in a group, or of a root's descendants, and returns the new number.
async fn count(db: &Session, key: &str, delta: i64) -> DbResult<i64> {
    let sql = "INSERT INTO counters AS c (key, writer, value) VALUES ($1, 0, $2)
               ON CONFLICT (key, writer) DO UPDATE SET value = c.value + excluded.value RETURNING value";
    Ok(db.one(sql, args![key, delta]).await?.map_or(0, |row| row.get(0)))
}
