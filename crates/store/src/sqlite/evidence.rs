//! Tallies of the embedded store: they are written with every transaction that changes what they count.

use super::{SqliteStore, WRITER, query, registry};
use crate::evidence::{Entry, RunEntry, Scan, SharedKey, Tally, Unread, locked, readable};
use crate::*;
use rusqlite::{Connection, OptionalExtension, params};
use std::cell::{Cell, RefCell};
use std::ops::Deref;

/// The writer's tally as it is on disk, once it was read.
#[derive(Default)]
pub struct Ledger {
    key: SharedKey,
    tally: Option<(ChainKey, Tally)>,
}

impl Ledger {
    pub fn new(key: SharedKey) -> Ledger {
        Ledger { key, tally: None }
    }

    pub fn close(&mut self) {
        self.tally = None;
    }

    pub fn open(&mut self, (key, tally): (ChainKey, Tally)) {
        self.key.set(key);
        self.tally = Some((key, tally));
    }
}

/// A transaction of the writer, and what it adds to the tally.
pub struct Tx<'a> {
    db: &'a Connection,
    key: Cell<ChainKey>,
    before: (ChainKey, Tally),
    tally: RefCell<Tally>,
}

impl Deref for Tx<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.db
    }
}

impl<'a> Tx<'a> {
    /// Reads the tally if necessary. Returns the id of its key if the store has another one.
    pub fn begin(db: &'a Connection, ledger: &mut Ledger) -> rusqlite::Result<Result<Tx<'a>, [u8; 4]>> {
        let before = match ledger.tally {
            Some(known) => known,
            None => {
                let key = ledger.key.get();
                match stored(db, &key)? {
                    Ok(tally) => (key, tally),
                    Err(other) => return Ok(Err(other)),
                }
            }
        };
        Ok(Ok(Tx { db, key: Cell::new(before.0), before, tally: RefCell::new(before.1) }))
    }

    pub fn key(&self) -> ChainKey {
        self.key.get()
    }

    pub fn tally(&self, entries: impl IntoIterator<Item = Entry>) {
        self.tally.borrow_mut().apply(&self.key.get(), entries);
    }

    /// Adds an audit row with this hash.
    pub fn audited(&self, hash: &[u8; 32]) {
        self.tally.borrow_mut().trail.push(hash);
    }

    pub fn tallied(&self) -> Tally {
        *self.tally.borrow()
    }

    pub fn restore(&self, tally: Tally) {
        *self.tally.borrow_mut() = tally;
    }

    /// Writes the tally if it changed, and returns it with its key.
    pub fn finish(&self) -> rusqlite::Result<(ChainKey, Tally)> {
        let now = (self.key.get(), self.tallied());
        if now == self.before {
            return Ok(now);
        }
        let tally = Tally { number: now.1.number + 1, ..now.1 };
        put(self.db, &now.0, WRITER, &tally)?;
        Ok((now.0, tally))
    }

    /// Tallies all rows anew under another key.
    pub fn rekey(&self, key: ChainKey, with: &Change) -> rusqlite::Result<Result<(), Refused>> {
        let before = self.key.replace(key);
        if let Err(refused) = registry::apply(self, with)? {
            self.key.set(before);
            return Ok(Err(refused));
        }
        let number = self.tallied().number;
        self.db.execute("DELETE FROM tallies", [])?;
        for (writer, tally) in scan(self.db, key, Vec::new())?.tallies(WRITER) {
            match writer {
                WRITER => self.restore(Tally { number, ..tally }),
                other => put(self.db, &key, other, &tally)?,
            }
        }
        Ok(Ok(()))
    }
}

/// The writer's tally. A damaged one is as if there were none: the difference stays visible from then on.
fn stored(db: &Connection, key: &ChainKey) -> rusqlite::Result<Result<Tally, [u8; 4]>> {
    let sql = "SELECT body FROM tallies WHERE writer = ?1";
    let body: Option<Vec<u8>> = db.prepare_cached(sql)?.query_row([WRITER], |row| row.get(0)).optional()?;
    Ok(match body.map(|body| Tally::read(key, WRITER, &body)) {
        Some(Err(Unread::OtherKey(id))) => Err(id),
        Some(Ok(tally)) => Ok(tally),
        Some(Err(Unread::Broken)) | None => Ok(Tally::default()),
    })
}

fn put(db: &Connection, key: &ChainKey, writer: i32, tally: &Tally) -> rusqlite::Result<()> {
    let sql = "INSERT OR REPLACE INTO tallies (writer, number, body) VALUES (?1, ?2, ?3)";
    db.prepare_cached(sql)?.execute(params![writer, tally.number, tally.write(key, writer)]).map(|_| ())
}

/// Tallies the rows of a store that is migrated to the first schema with tallies.
pub fn start(db: &Connection) -> rusqlite::Result<()> {
    for (writer, tally) in scan(db, ChainKey::PUBLIC, Vec::new())?.tallies(WRITER) {
        put(db, &ChainKey::PUBLIC, writer, &tally)?;
    }
    Ok(())
}

fn scan(db: &Connection, key: ChainKey, points: Vec<TrailPoint>) -> rusqlite::Result<Scan> {
    let mut scan = Scan::new(key, points);
    let mut select = db.prepare("SELECT id, version, hash, erased_at IS NOT NULL FROM workflow_runs")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let (run, version) = (RunId(row.get(0)?), Version(row.get(1)?));
        scan.add(RunEntry { run, version, hash: row.get(2)?, erased: row.get(3)? }.added());
    }
    let mut select = db.prepare(&format!("SELECT {} FROM workflow_definitions", query::WHOLE_DEFINITION))?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        scan.add(query::whole_definition(row)?.added());
    }
    let mut select = db.prepare(&format!("SELECT {} FROM records", registry::COLUMNS))?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        scan.add(Entry::record(&registry::record(row)?));
    }
    let mut select = db.prepare("SELECT writer, hash FROM audit ORDER BY id")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        scan.audit(row.get(0)?, &row.get(1)?);
    }
    Ok(scan)
}

fn all(db: &Connection) -> rusqlite::Result<Vec<(i32, Vec<u8>)>> {
    let mut select = db.prepare("SELECT writer, body FROM tallies ORDER BY writer")?;
    select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

impl SqliteStore {
    pub(super) async fn readable(&self) -> Result<Vec<WriterTally>, Error> {
        let key = self.key.get();
        self.read(move |db| Ok(readable(&key, &all(db)?))).await
    }

    pub(super) async fn use_key(&self, key: ChainKey) -> Result<(), Error> {
        let other = self.read(move |db| Ok(stored(db, &key)?.err())).await?;
        match other {
            Some(id) => Err(locked(id)),
            None => {
                self.key.set(key);
                Ok(())
            }
        }
    }

    pub(super) async fn compare(&self, points: Vec<TrailPoint>) -> Result<Evidence, Error> {
        let key = self.key.get();
        self.read(move |db| {
            let tx = db.unchecked_transaction()?;
            let tallies = all(&tx)?;
            Ok(scan(&tx, key, points)?.compare(true, &tallies))
        })
        .await
    }
}
