//! What the disk and SQLite alone can do: the yardstick of `stepwell bench`. The same schema and settings as the store,
//! without its threads, channels and answers.

use super::apply::{apply, error, open_for_writing};
use super::schema;
use crate::{Commit, Error};
use rusqlite::{Connection, TransactionBehavior};
use std::path::Path;
use std::time::{Duration, Instant};

pub struct Bare {
    connection: Connection,
    position: i64,
}

impl Bare {
    /// Opens a fresh directory.
    pub fn open(directory: &Path) -> Result<Bare, Error> {
        let unusable = |error: &dyn std::fmt::Display| Error::Unusable(format!("{}: {error}", directory.display()));
        std::fs::create_dir_all(directory).map_err(|error| unusable(&error))?;
        Bare::open_file(&directory.join("bare.db"))
    }

    /// Opens a file that nobody else has open.
    pub fn open_file(path: &Path) -> Result<Bare, Error> {
        let unusable = |error: &dyn std::fmt::Display| Error::Unusable(format!("{}: {error}", path.display()));
        let mut connection = open_for_writing(path).map_err(|error| unusable(&error))?;
        schema::migrate(&mut connection)?;
        let sql = "SELECT coalesce(max(position), 0) FROM workflow_events";
        let position = connection.query_row(sql, [], |row| row.get(0)).map_err(|failed| error(&failed))?;
        Ok(Bare { connection, position })
    }

    /// Writes recorded commits in their order, `group` of them per transaction, and says how long that took.
    pub fn write(&mut self, commits: &[Commit], group: usize) -> Result<Duration, Error> {
        // Decided when a workflow had been defined already, which is not written here.
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
        for commit in commits {
            self.position += 1;
            if let Err(refused) = apply(&tx, commit, self.position)? {
                return Err(rusqlite::Error::ToSqlConversionFailure(Box::new(refused)));
            }
        }
        tx.commit()
    }

    /// Commits of one small row each, one after the other.
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
