//! Takes a whole installation from one store to another, whichever databases they are in, with runs that are under way.
//!
//! Neither store may be in use, and the target must be empty. Rows pass in the order of their keys, a page at a time, into
//! one transaction; then all of them are read back within it, counted and hashed, and only if that agrees with what the
//! source gave is it committed. Not here: key files, which are the server's.

mod digest;
mod tables;
#[cfg(test)]
mod tests;

pub(crate) use tables::*;

use crate::postgres::transfer::PgSide;
use crate::sqlite::transfer::SqliteSide;
use crate::{Error, Location};
use digest::Digest;
use tokio::runtime::Handle;

/// Rows that are handed on together.
const PAGE_ROWS: usize = 500;
/// The same, in bytes: with large payloads a page is a few rows, or one.
const PAGE_BYTES: usize = 4 << 20;

/// A value as both databases have it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Cell {
    Null,
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
}

pub(crate) type Row = Vec<Cell>;

/// A store that is taken from or to, in one transaction that keeps others out. What is not committed is taken back.
pub(crate) trait Side {
    /// Every row of a table in its order, one after the other.
    fn rows(&mut self, table: &Table, each: &mut dyn FnMut(Row) -> Result<(), Error>) -> Result<(), Error>;
    /// The highest position that was ever given to a row of the log, as far as the store has a mark of it.
    fn mark(&mut self) -> Result<i64, Error>;
    fn has_rows(&mut self, table: &Table) -> Result<bool, Error>;
    /// Removes the organisation that every new store has: the source has it too.
    fn vacate(&mut self) -> Result<(), Error>;
    fn put(&mut self, table: &Table, rows: &[Row]) -> Result<(), Error>;
    /// Lets the store go on with its numbers after those that were put.
    fn seal(&mut self, mark: i64) -> Result<(), Error>;
    fn commit(&mut self) -> Result<(), Error>;
}

/// What was taken of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Taken {
    pub table: &'static str,
    pub rows: u64,
    /// SHA-256 over all rows, as hexadecimal digits.
    pub digest: String,
}

/// Takes everything from one place to another. The source stays as it is, but for a schema that is brought up to date. After
/// an error the target is as empty as before.
pub async fn transfer(from: Location, to: Location) -> Result<Vec<Taken>, Error> {
    if from == to {
        return Err(Error::Unusable(format!("{from} is the source and the target")));
    }
    let runtime = Handle::current();
    let work = move || {
        let mut source: Box<dyn Side> = match &from {
            Location::Directory(directory) => Box::new(SqliteSide::source(directory)?),
            Location::Postgres(options) => Box::new(PgSide::source(options, runtime.clone())?),
        };
        let mut target: Box<dyn Side> = match &to {
            Location::Directory(directory) => Box::new(SqliteSide::target(directory)?),
            Location::Postgres(options) => Box::new(PgSide::target(options, runtime)?),
        };
        refuse_occupied(&mut *target, &to)?;
        let taken = copy(&mut *source, &mut *target)?;
        verify(&mut *target, &taken)?;
        target.commit()?;
        Ok(taken)
    };
    let ended = tokio::task::spawn_blocking(work).await;
    ended.unwrap_or_else(|panic| Err(Error::Unavailable(panic.to_string())))
}

fn refuse_occupied(target: &mut dyn Side, to: &Location) -> Result<(), Error> {
    let mut there = Vec::new();
    for table in TABLES.iter().filter(|table| table.name != ORGANISATIONS) {
        if target.has_rows(table)? {
            there.push(table.name);
        }
    }
    let mut organisations = 0;
    for table in TABLES.iter().filter(|table| table.name == ORGANISATIONS) {
        target.rows(table, &mut |_| {
            organisations += 1;
            Ok(())
        })?;
    }
    if organisations > 1 {
        there.push(ORGANISATIONS);
    }
    if there.is_empty() {
        return Ok(());
    }
    let there = there.join(", ");
    Err(Error::Unusable(format!("{to} is not empty, and stays as it is: there are rows in {there}")))
}

fn copy(source: &mut dyn Side, target: &mut dyn Side) -> Result<Vec<Taken>, Error> {
    target.vacate()?;
    let mut mark = 0;
    let mut all = Vec::with_capacity(TABLES.len());
    for table in TABLES {
        let (mut digest, mut page, mut bytes) = (Digest::default(), Vec::new(), 0);
        source.rows(table, &mut |mut row| {
            if table.name == EVENTS {
                mark = number(&mut row, mark);
            }
            bytes += digest.add(&row);
            page.push(row);
            if page.len() == PAGE_ROWS || bytes >= PAGE_BYTES {
                target.put(table, &page)?;
                page.clear();
                bytes = 0;
            }
            Ok(())
        })?;
        target.put(table, &page)?;
        all.push(digest.taken(table.name));
    }
    target.seal(source.mark()?.max(mark))?;
    Ok(all)
}

/// Positions of several writers become those of one: in the same order, as they are where they can be. Each run's own order
/// stays, and whoever follows the log of an embedded store finds it numbered as before.
fn number(row: &mut Row, last: i64) -> i64 {
    let number = match row.first() {
        Some(Cell::Int(position)) => (*position).max(last + 1),
        _ => last + 1,
    };
    if let Some(cell) = row.first_mut() {
        *cell = Cell::Int(number);
    }
    number
}

fn verify(target: &mut dyn Side, taken: &[Taken]) -> Result<(), Error> {
    for (table, expected) in TABLES.iter().zip(taken) {
        let mut digest = Digest::default();
        target.rows(table, &mut |row| {
            digest.add(&row);
            Ok(())
        })?;
        let found = digest.taken(table.name);
        if found != *expected {
            let what =
                if found.rows == expected.rows { "what was read back differs" } else { "rows are missing or too many" };
            return Err(Error::Unusable(format!(
                "{}: {what} ({} rows were read, {} are there); nothing was kept of it",
                table.name, expected.rows, found.rows
            )));
        }
    }
    Ok(())
}
