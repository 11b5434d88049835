//! The embedded store as a side of a transfer: its directory, locked, and one transaction.

use super::{apply, backup, lock, schema};
use crate::Error;
use crate::transfer::{Cell, ORGANISATIONS, Row, Side, Table};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ToSql, params_from_iter};
use std::fs::File;
use std::path::Path;

pub struct SqliteSide {
    name: String,
    db: Connection,
    /// Let go of last.
    _lock: File,
}

impl SqliteSide {
    /// A store that is there.
    pub fn source(directory: &Path) -> Result<SqliteSide, Error> {
        backup::find(directory)?;
        SqliteSide::open(directory)
    }

    /// A store that is made if need be.
    pub fn target(directory: &Path) -> Result<SqliteSide, Error> {
        SqliteSide::open(directory)
    }

    fn open(directory: &Path) -> Result<SqliteSide, Error> {
        let lock = lock(directory)?;
        let path = directory.join(backup::FILE);
        schema::check_file(&path)?;
        let name = directory.display().to_string();
        let mut db = apply::open_for_writing(&path).map_err(|error| told(&name, &error))?;
        schema::migrate(&mut db)?;
        db.execute_batch("BEGIN IMMEDIATE").map_err(|error| told(&name, &error))?;
        Ok(SqliteSide { name, db, _lock: lock })
    }

    fn run(&self, sql: &str) -> Result<(), Error> {
        self.db.execute_batch(sql).map_err(|error| told(&self.name, &error))
    }

    fn one(&self, sql: &str) -> Result<i64, Error> {
        self.db.query_row(sql, [], |row| row.get(0)).map_err(|error| told(&self.name, &error))
    }
}

fn told(name: &str, error: &rusqlite::Error) -> Error {
    apply::error(error).of(name)
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
        // Anything else does not belong there, and is not read as text.
        ValueRef::Text(_) | ValueRef::Real(_) => Cell::Text(row.get(column)?),
    })
}

impl Side for SqliteSide {
    fn rows(&mut self, table: &Table, each: &mut dyn FnMut(Row) -> Result<(), Error>) -> Result<(), Error> {
        let sql = format!("SELECT {} FROM {} ORDER BY {}", table.names(), table.name, table.order.join(", "));
        let told = |error: rusqlite::Error| told(&self.name, &error);
        let mut select = self.db.prepare(&sql).map_err(told)?;
        let mut rows = select.query([]).map_err(told)?;
        while let Some(row) = rows.next().map_err(told)? {
            let cells = (0..table.columns.len()).map(|column| cell(row, column));
            each(cells.collect::<rusqlite::Result<Row>>().map_err(told)?)?;
        }
        Ok(())
    }

    fn mark(&mut self) -> Result<i64, Error> {
        self.one("SELECT position FROM purged")
    }

    fn has_rows(&mut self, table: &Table) -> Result<bool, Error> {
        Ok(self.one(&format!("SELECT EXISTS (SELECT 1 FROM {})", table.name))? == 1)
    }

    fn vacate(&mut self) -> Result<(), Error> {
        self.run(&format!("DELETE FROM {ORGANISATIONS}"))
    }

    fn put(&mut self, table: &Table, rows: &[Row]) -> Result<(), Error> {
        let holes = vec!["?"; table.columns.len()].join(", ");
        let sql = format!("INSERT INTO {} ({}) VALUES ({holes})", table.name, table.names());
        let told = |error: rusqlite::Error| told(&self.name, &error);
        let mut insert = self.db.prepare_cached(&sql).map_err(told)?;
        rows.iter().try_for_each(|row| insert.execute(params_from_iter(row)).map(|_| ()).map_err(told))
    }

    /// Numbers of rows follow from the highest that is there.
    fn seal(&mut self, mark: i64) -> Result<(), Error> {
        self.run(&format!("UPDATE purged SET position = {mark}"))
    }

    fn commit(&mut self) -> Result<(), Error> {
        self.run("COMMIT")
    }
}
