//! Copies a whole installation from one store to another, between any two databases, including unfinished runs.
//!
//! Neither store may be in use, and the target must be empty. Rows are copied in key order, a page at a time, in one
//! transaction. All rows are then read back within it, counted and hashed; the transaction commits only if the result
//! matches the source. Not here: key files, which belong to the server.

mod digest;
mod tables;
#[cfg(test)]
mod tests;

pub(crate) use tables::*;

use crate::postgres::transfer::PgEndpoint;
use crate::sqlite::transfer::SqliteEndpoint;
use crate::{Error, Location};
use digest::Digest;
use tokio::runtime::Handle;

/// The maximum number of rows per page.
const PAGE_ROWS: usize = 500;
/// The approximate size of a page in bytes: with large payloads a page is a few rows, or one.
const PAGE_BYTES: usize = 4 << 20;

/// A value as both databases represent it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Cell {
    Null,
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
}

pub(crate) type Row = Vec<Cell>;

/// The source or target of a transfer: one transaction that locks others out, and is rolled back unless committed.
pub(crate) trait Endpoint {
    /// Calls `each` for every row of a table, in the table's order.
    fn rows(&mut self, table: &Table, each: &mut dyn FnMut(Row) -> Result<(), Error>) -> Result<(), Error>;
    /// The highest position that the store has recorded for any log row, including purged ones.
    fn high_water_mark(&mut self) -> Result<i64, Error>;
    fn has_rows(&mut self, table: &Table) -> Result<bool, Error>;
    /// Removes the default organisation and the tallies, which every new store has: they are copied from the source.
    fn remove_defaults(&mut self) -> Result<(), Error>;
    fn put(&mut self, table: &Table, rows: &[Row]) -> Result<(), Error>;
    /// Makes the store continue its sequences after the copied rows.
    fn set_sequences(&mut self, mark: i64) -> Result<(), Error>;
    fn commit(&mut self) -> Result<(), Error>;
}

/// What was copied of one table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CopiedTable {
    pub table: &'static str,
    pub rows: u64,
    /// SHA-256 over all rows, in hexadecimal.
    pub digest: String,
}

/// Copies everything from one store to another. The source stays unchanged, except that its schema is migrated. After
/// an error the target is as empty as before.
pub async fn transfer(from: Location, to: Location) -> Result<Vec<CopiedTable>, Error> {
    if from == to {
        return Err(Error::Unusable(format!("{from} is both the source and the target")));
    }
    let runtime = Handle::current();
    let work = move || {
        let mut source: Box<dyn Endpoint> = match &from {
            Location::Directory(directory) => Box::new(SqliteEndpoint::source(directory)?),
            Location::Postgres(options) => Box::new(PgEndpoint::source(options, runtime.clone())?),
        };
        let mut target: Box<dyn Endpoint> = match &to {
            Location::Directory(directory) => Box::new(SqliteEndpoint::target(directory)?),
            Location::Postgres(options) => Box::new(PgEndpoint::target(options, runtime)?),
        };
        check_empty(&mut *target, &to)?;
        let taken = copy(&mut *source, &mut *target)?;
        verify(&mut *target, &taken)?;
        target.commit()?;
        Ok(taken)
    };
    let ended = tokio::task::spawn_blocking(work).await;
    ended.unwrap_or_else(|panic| Err(Error::Unavailable(panic.to_string())))
}

fn check_empty(target: &mut dyn Endpoint, to: &Location) -> Result<(), Error> {
    let mut there = Vec::new();
    for table in TABLES.iter().filter(|table| ![ORGANISATIONS, TALLIES].contains(&table.name)) {
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
    Err(Error::Unusable(format!("{to} is not empty and was not changed: there are rows in {there}")))
}

fn copy(source: &mut dyn Endpoint, target: &mut dyn Endpoint) -> Result<Vec<CopiedTable>, Error> {
    target.remove_defaults()?;
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
        all.push(digest.finish(table.name));
    }
    target.set_sequences(source.high_water_mark()?.max(mark))?;
    Ok(all)
}

/// Renumbers the positions of several writers into one sequence, in the same order, and keeps numbers where possible.
/// The order within each run stays, and the log of an embedded store keeps its numbers.
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

fn verify(target: &mut dyn Endpoint, taken: &[CopiedTable]) -> Result<(), Error> {
    for (table, expected) in TABLES.iter().zip(taken) {
        let mut digest = Digest::default();
        target.rows(table, &mut |row| {
            digest.add(&row);
            Ok(())
        })?;
        let found = digest.finish(table.name);
        if found != *expected {
            let what =
                if found.rows == expected.rows { "the copied rows differ" } else { "the number of rows differs" };
            return Err(Error::Unusable(format!(
                "{}: {what} ({} rows in the source, {} in the target); nothing was copied",
                table.name, expected.rows, found.rows
            )));
        }
    }
    Ok(())
}
