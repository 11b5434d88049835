//! The baseline of `stepwell bench`: what the disk and SQLite can do alone. It uses the schema and settings of the
//! store, without its threads and channels.

use super::apply::{apply, error, open_for_writing};
use super::evidence::{Ledger, Tx};
use super::schema;
use crate::evidence::RunEntry;
use crate::{Commit, Error};
use rusqlite::{Connection, TransactionBehavior};
use std::path::Path;
use std::time::{Duration, Instant};

pub struct Baseline {
    connection: Connection,
    position: i64,
    ledger: Ledger,
}

impl Baseline {
    /// Opens a fresh directory.
    pub fn open(directory: &Path) -> Result<Baseline, Error> {
        let unusable = |error: &dyn std::fmt::Display| Error::Unusable(format!("{}: {error}", directory.display()));
        std::fs::create_dir_all(directory).map_err(|error| unusable(&error))?;
        Baseline::open_file(&directory.join("baseline.db"))
    }

    /// Opens a file that no other connection has open.
    pub fn open_file(path: &Path) -> Result<Baseline, Error> {
        let unusable = |error: &dyn std::fmt::Display| Error::Unusable(format!("{}: {error}", path.display()));
        let mut connection = open_for_writing(path).map_err(|error| unusable(&error))?;
        schema::migrate(&mut connection)?;
        let sql = "SELECT coalesce(max(position), 0) FROM workflow_events";
        let position = connection.query_row(sql, [], |row| row.get(0)).map_err(|failed| error(&failed))?;
        Ok(Baseline { connection, position, ledger: Ledger::default() })
    }

    /// Writes recorded commits in order, `group` per transaction, and returns how long that took.
    pub fn write(&mut self, commits: &[Commit], group: usize) -> Result<Duration, Error> {
        // The commits were recorded after a workflow was defined, which is not replayed here.
        if let Some(first) = commits.first() {
            let sql = "UPDATE organisations SET epoch = ?1";
            self.connection.execute(sql, [first.auth.epoch]).map_err(|failed| error(&failed))?;
        }
        let start = Instant::now();
        for commits in commits.chunks(group.max(1)) {
            self.transact(commits).map_err(|failed| error(&failed))?;
        }
        Ok(start.elapsed())
    }

    fn transact(&mut self, commits: &[Commit]) -> rusqlite::Result<()> {
        let tx = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let failed = |refused| rusqlite::Error::ToSqlConversionFailure(refused);
        let tallied = Tx::begin(&tx, &mut self.ledger)?.map_err(|_| failed("a tally under another key".into()))?;
        for commit in commits {
            self.position += 1;
            apply(&tallied, commit, self.position)?.map_err(|refused| failed(Box::new(refused)))?;
            tallied.tally(RunEntry::of(commit));
        }
        let written = tallied.finish()?;
        tx.commit()?;
        self.ledger.open(written);
        Ok(())
    }

    /// Makes `count` commits of one small row each, one after the other.
    pub fn single_commits(&mut self, count: u32) -> Result<Duration, Error> {
        let start = Instant::now();
        for n in 0..count {
            let sql = "INSERT INTO counters (key, value) VALUES (?1, 1)
                       ON CONFLICT (key) DO UPDATE SET value = value + 1";
            let written = self.connection.prepare_cached(sql).and_then(|mut put| put.execute([format!("{}", n % 100)]));
            written.map_err(|failed| error(&failed))?;
        }
        Ok(start.elapsed())
    }
}
