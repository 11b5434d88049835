//! Tallies of a database: each writer writes its own with its commits. Starting them, or changing their key, locks out
//! all writers for as long as it takes to read every row once.

use super::PgStore;
use super::args::args;
use super::session::{DbResult, Failed, Purpose, Session};
use super::{registry, rows, schema};
use crate::evidence::{DefinitionEntry, Entry, RunEntry, Scan, Tally, Unread, locked, readable};
use crate::*;
use futures_util::TryStreamExt;
use std::pin::pin;
use std::sync::atomic::Ordering;
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;

/// The writer of the tally that counts all rows that were there at the start. No connection ever takes it.
const FIRST: i32 = 0;
/// Waits until no transaction of a writer is open, and lets none begin.
const LOCK: &str = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '10s';
                    SET LOCAL idle_in_transaction_session_timeout = 0; LOCK TABLE writers IN EXCLUSIVE MODE";
/// Makes every writer take a row again, and with it read its tally.
const UNLOCK: &str = "UPDATE writers SET holder = NULL; COMMIT";

/// A writer's tally, and the key that it is kept under.
#[derive(Clone, Copy)]
pub struct Ledger {
    key: ChainKey,
    tally: Tally,
}

/// A tally to write in place of the one with the number before.
pub struct Signed {
    pub number: i64,
    pub body: Vec<u8>,
}

impl Ledger {
    /// Reads the tally of a writer. `None` if the database keeps none yet.
    pub async fn load(db: &Session, key: ChainKey, writer: i32) -> DbResult<Option<Ledger>> {
        let sql = "SELECT EXISTS (SELECT 1 FROM tallies), (SELECT body FROM tallies WHERE writer = $1)";
        let Some(row) = db.one(sql, args![writer]).await?.filter(|row| row.get(0)) else { return Ok(None) };
        let body: Option<&[u8]> = row.get(1);
        let tally = match body.map(|body| Tally::read(&key, writer, body)) {
            Some(Err(Unread::OtherKey(id))) => return Err(Failed::Lost(locked(id).to_string())),
            Some(Ok(tally)) => tally,
            // As if there were none: the difference stays visible from then on.
            Some(Err(Unread::Broken)) => Tally { number: number(db, writer).await?, ..Tally::default() },
            None => Tally::default(),
        };
        Ok(Some(Ledger { key, tally }))
    }

    pub fn key(&self) -> ChainKey {
        self.key
    }

    /// The ledger after these changes, and audit rows with these hashes.
    pub fn after(mut self, entries: impl IntoIterator<Item = Entry>, audit: &[[u8; 32]]) -> Ledger {
        self.tally.apply(&self.key, entries);
        audit.iter().for_each(|hash| self.tally.trail.push(hash));
        self.tally.number += 1;
        self
    }

    pub fn signed(&self, writer: i32) -> Signed {
        Signed { number: self.tally.number, body: self.tally.write(&self.key, writer) }
    }
}

async fn number(db: &Session, writer: i32) -> DbResult<i64> {
    let row = db.one("SELECT number FROM tallies WHERE writer = $1", args![writer]).await?;
    Ok(row.map_or(0, |row| row.get(0)))
}

const PUT: &str = "WITH put AS (INSERT INTO tallies AS t (writer, number, body) VALUES ($1, $2, $3)
                     ON CONFLICT (writer) DO UPDATE SET number = excluded.number, body = excluded.body
                     WHERE t.number = $2 - 1 RETURNING 1)
                   SELECT 1 / count(*) FROM put";

/// Prepares [`put`], so that it can be pipelined.
pub async fn prepare(db: &Session, writer: i32, signed: &Signed) -> DbResult<()> {
    db.prepare(PUT, args![writer, signed.number, &signed.body[..]]).await
}

/// Writes a tally within a transaction, which fails if another connection has written it since.
pub async fn put(db: &Session, writer: i32, signed: &Signed) -> DbResult<()> {
    let put = db.one(PUT, args![writer, signed.number, &signed.body[..]]).await;
    put.map(|_| ()).map_err(|failed| match failed.state() {
        Some(&SqlState::DIVISION_BY_ZERO) => Failed::Lost("another connection has written this writer's tally".into()),
        _ => failed,
    })
}

impl PgStore {
    /// Starts the tallies, unless they are there or a node of an older program is alive.
    pub(super) async fn start_tallies(&self) -> Result<(), Error> {
        if self.tallied.load(Ordering::Relaxed) {
            return Ok(());
        }
        let db = Session::connect(&self.database, Purpose::Maintenance).await?;
        let lease = self.database.lease.as_secs_f64();
        let older = "SELECT 1 FROM nodes WHERE NOT tallies AND seen_at >= now() - make_interval(secs => $1)";
        if !is_tallied(&db).await? {
            if db.one(older, args![lease]).await?.is_some() {
                return Ok(());
            }
            db.script(LOCK).await?;
            start(&db).await?;
            db.script(UNLOCK).await?;
        }
        self.tallied.store(true, Ordering::Relaxed);
        Ok(())
    }

    pub(super) async fn use_key(&self, key: ChainKey) -> Result<(), Error> {
        let stored = self.readers.with_retry(async |db| tallies(&db).await).await?;
        for (writer, body) in &stored {
            if let Err(Unread::OtherKey(id)) = Tally::read(&key, *writer, body) {
                return Err(locked(id));
            }
        }
        self.key.set(key);
        Ok(())
    }

    pub(super) async fn change_key(&self, key: ChainKey, with: Change) -> Result<Result<(), Refused>, Error> {
        let db = Session::connect(&self.database, Purpose::Maintenance).await?;
        db.script(LOCK).await?;
        let effects = match registry::apply(&db, with).await? {
            Ok(effects) => effects,
            Err(refused) => {
                db.script("ROLLBACK").await?;
                return Ok(Err(refused));
            }
        };
        super::connection::append(&db, FIRST, &key, &effects.audit.iter().collect::<Vec<_>>()).await?;
        let tallies = scan(&db, key, Vec::new()).await?.tallies(FIRST);
        db.execute("DELETE FROM tallies", &[]).await?;
        write_all(&db, &key, &tallies).await?;
        db.script(UNLOCK).await?;
        self.key.set(key);
        Ok(Ok(()))
    }

    pub(super) async fn readable(&self) -> Result<Vec<WriterTally>, Error> {
        let stored = self.readers.with_retry(async |db| tallies(&db).await).await?;
        Ok(readable(&self.key.get(), &stored))
    }

    pub(super) async fn compare(&self, points: Vec<TrailPoint>) -> Result<Evidence, Error> {
        let db = Session::connect(&self.database, Purpose::Maintenance).await?;
        db.script("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
        let (kept, stored) = (is_tallied(&db).await?, tallies(&db).await?);
        let scan = scan(&db, self.key.get(), points).await?;
        db.script("COMMIT").await?;
        Ok(scan.compare(kept, &stored))
    }
}

/// Whether tallies were started: from then on older programs cannot use the database.
async fn is_tallied(db: &Session) -> DbResult<bool> {
    let sql = "SELECT 1 FROM stepwell_schema WHERE id = 1
                 AND (usable_by >= $1 OR EXISTS (SELECT 1 FROM tallies))";
    Ok(db.one(sql, args![schema::with_tallies()]).await?.is_some())
}

/// Tallies the rows of a database that has no tally yet, while no writer can write.
pub async fn start(db: &Session) -> DbResult<()> {
    if is_tallied(db).await? {
        return Ok(());
    }
    let tallies = scan(db, ChainKey::PUBLIC, Vec::new()).await?.tallies(FIRST);
    write_all(db, &ChainKey::PUBLIC, &tallies).await?;
    let sql = "UPDATE stepwell_schema SET usable_by = greatest(usable_by, $1) WHERE id = 1";
    db.execute(sql, args![schema::with_tallies()]).await.map(|_| ())
}

async fn tallies(db: &Session) -> DbResult<Vec<(i32, Vec<u8>)>> {
    let found = db.query("SELECT writer, body FROM tallies ORDER BY writer", &[]).await?;
    Ok(found.iter().map(|row| (row.get(0), row.get(1))).collect())
}

async fn write_all(db: &Session, key: &ChainKey, tallies: &[(i32, Tally)]) -> DbResult<()> {
    for (writer, tally) in tallies {
        put(db, *writer, &Signed { number: tally.number, body: tally.write(key, *writer) }).await?;
    }
    Ok(())
}

async fn scan(db: &Session, key: ChainKey, points: Vec<TrailPoint>) -> DbResult<Scan> {
    let mut scan = Scan::new(key, points);
    each(db, "SELECT id, version, hash, erased_at IS NOT NULL FROM workflow_runs", |row| {
        scan.add(run_entry(row, 0).added());
    })
    .await?;
    each(db, &format!("SELECT {WHOLE_DEFINITION} FROM workflow_definitions"), |row| {
        scan.add(whole_definition(row).added());
    })
    .await?;
    each(db, &format!("SELECT {} FROM records", rows::RECORD), |row| scan.add(Entry::record(&rows::record(row))))
        .await?;
    each(db, "SELECT writer, hash FROM audit ORDER BY id", |row| scan.audit(row.get(0), &rows::bytes(row, 1))).await?;
    Ok(scan)
}

async fn each(db: &Session, sql: &str, mut row: impl FnMut(&Row)) -> DbResult<()> {
    let mut found = pin!(db.stream(sql).await?);
    while let Some(next) = found.try_next().await? {
        row(&next);
    }
    Ok(())
}

/// A run's id, version, hash and whether it is erased, from this column on.
pub fn run_entry(row: &Row, from: usize) -> RunEntry {
    let (run, version) = (RunId(row.get(from)), Version(row.get(from + 1)));
    RunEntry { run, version, hash: rows::bytes(row, from + 2), erased: row.get(from + 3) }
}

/// The columns of a workflow version that tallies cover.
pub const WHOLE_DEFINITION: &str =
    "id, workflow, org, name, version, source, created_by, author, created_at, deleted_at, test";

pub fn whole_definition(row: &Row) -> DefinitionEntry {
    DefinitionEntry { row: rows::definition(row), deleted: row.get(9), test: row.get(10) }
}
