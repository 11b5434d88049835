//! The embedded store as an endpoint of a transfer: its directory, locked, and one transaction.

use super::{apply, backup, lock, schema};
use crate::Error;
use crate::transfer::{Cell, Endpoint, ORGANISATIONS, Row, TALLIES, Table};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ToSql, params_from_iter};
use std::fs::File;
use std::path::Path;

pub struct SqliteEndpoint {
    name: String,
    db: Connection,
    /// Released last.
    _lock: File,
}

impl SqliteEndpoint {
    /// Opens an existing store.
    pub fn source(directory: &Path) -> Result<SqliteEndpoint, Error> {
        backup::find(directory)?;
        SqliteEndpoint::open(directory)
    }

    /// Opens a store, creating it if necessary.
    pub fn target(directory: &Path) -> Result<SqliteEndpoint, Error> {
        SqliteEndpoint::open(directory)
    }

    fn open(directory: &Path) -> Result<SqliteEndpoint, Error> {
        let lock = lock(directory)?;
        let path = directory.join(backup::FILE);
        schema::check_file(&path)?;
        let name = directory.display().to_string();
        let mut db = apply::open_for_writing(&path).map_err(|error| named(&name, &error))?;
        schema::migrate(&mut db)?;
        db.execute_batch("BEGIN IMMEDIATE").map_err(|error| named(&name, &error))?;
        Ok(SqliteEndpoint { name, db, _lock: lock })
    }

    fn run(&self, sql: &str) -> Result<(), Error> {
        self.db.execute_batch(sql).map_err(|error| named(&self.name, &error))
    }

    fn one(&self, sql: &str) -> Result<i64, Error> {
        self.db.query_row(sql, [], |row| row.get(0)).map_err(|error| named(&self.name, &error))
    }
}

fn named(name: &str, error: &rusqlite::Error) -> Error {
    apply::error(error).at(name)
}

impl ToSql for Cell {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Cell::Null => ValueRef::Null,
            Cell::Int(number) => ValueRef::Integer(*number),
            Cell::Text(text) => ValueRef::Text(text.as_bytes()),
            Cell::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

fn cell(row: &rusqlite::Row, column: usize) -> rusqlite::Result<Cell> {
    Ok(match row.get_ref(column)? {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(number) => Cell::Int(number),
        ValueRef::Blob(bytes) => Cell::Bytes(bytes.to_vec()),
        // A real number is not expected in any column, and reading it as text fails.
        ValueRef::Text(_) | ValueRef::Real(_) => Cell::Text(row.get(column)?),
    })
}

impl Endpoint for SqliteEndpoint {
    fn rows(&mut self, table: &Table, each: &mut dyn FnMut(Row) -> Result<(), Error>) -> Result<(), Error> {
        let sql = format!("SELECT {} FROM {} ORDER BY {}", table.names(), table.name, table.order.join(", "));
        let named = |error: rusqlite::Error| named(&self.name, &error);
        let mut select = self.db.prepare(&sql).map_err(named)?;
        let mut rows = select.query([]).map_err(named)?;
        while let Some(row) = rows.next().map_err(named)? {
            let cells = (0..table.columns.len()).map(|column| cell(row, column));
            each(cells.collect::<rusqlite::Result<Row>>().map_err(named)?)?;
        }
        Ok(())
    }

    fn high_water_mark(&mut self) -> Result<i64, Error> {
        self.one("SELECT position FROM purged")
    }

    fn has_rows(&mut self, table: &Table) -> Result<bool, Error> {
        Ok(self.one(&format!("SELECT EXISTS (SELECT 1 FROM {})", table.name))? == 1)
    }

    fn remove_defaults(&mut self) -> Result<(), Error> {
        self.run(&format!("DELETE FROM {ORGANISATIONS}; DELETE FROM {TALLIES}"))
    }

    fn put(&mut self, table: &Table, rows: &[Row]) -> Result<(), Error> {
        let holes = vec!["?"; table.columns.len()].join(", ");
        let sql = format!("INSERT INTO {} ({}) VALUES ({holes})", table.name, table.names());
        let named = |error: rusqlite::Error| named(&self.name, &error);
        let mut insert = self.db.prepare_cached(&sql).map_err(named)?;
        rows.iter().try_for_each(|row| insert.execute(params_from_iter(row)).map(|_| ()).map_err(named))
    }

    /// Sets only the high-water mark: SQLite continues row ids after the highest one in the table.
    fn set_sequences(&mut self, mark: i64) -> Result<(), Error> {
        self.run(&format!("UPDATE purged SET position = {mark}"))
    }

    fn commit(&mut self) -> Result<(), Error> {
        self.run("COMMIT")
    }
}
