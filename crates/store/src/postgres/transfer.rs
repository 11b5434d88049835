//! A database as an endpoint of a transfer: one connection and one transaction that locks out all other writers.

use super::args::{Arg, args};
use super::hosts::Database;
use super::session::{DbResult, Failed, Purpose, Session};
use super::{evidence, schema};
use crate::transfer::{
    COUNTERS, Cell, EVENTS, Endpoint, Kind, NUMBERED, ORGANISATIONS, RUNS, Row, TALLIES, TIMERS, Table,
};
use crate::{Error, PostgresOptions, Share};
use futures_util::TryStreamExt;
use std::pin::pin;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};

/// The locks are taken before the first read, so that the snapshot is taken while they are held: no node can join, send
/// a heartbeat or commit until the transfer ends.
const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL lock_timeout = '10s';
                     SET LOCAL idle_in_transaction_session_timeout = 0; LOCK TABLE nodes, writers IN EXCLUSIVE MODE";

pub struct PgEndpoint {
    name: String,
    db: Session,
    runtime: Handle,
    /// The highest position copied so far.
    last: i64,
}

impl PgEndpoint {
    /// Connects to a database that contains a store.
    pub fn source(options: &PostgresOptions, runtime: Handle) -> Result<PgEndpoint, Error> {
        let work = async {
            let db = connect(options).await?;
            let sql = "SELECT 1 FROM information_schema.tables
                       WHERE table_schema = current_schema() AND table_name = 'stepwell_schema'";
            if db.one(sql, &[]).await?.is_none() {
                return Err(Error::Unusable("this database contains no stepwell store".into()));
            }
            begin(&db, options).await?;
            Ok(db)
        };
        PgEndpoint::new(options, &runtime, runtime.block_on(work))
    }

    /// Connects to a database and creates the tables if necessary.
    pub fn target(options: &PostgresOptions, runtime: Handle) -> Result<PgEndpoint, Error> {
        let work = async {
            let db = connect(options).await?;
            if !options.unsafe_settings {
                schema::check_durability(&db).await?;
            }
            begin(&db, options).await?;
            Ok(db)
        };
        PgEndpoint::new(options, &runtime, runtime.block_on(work))
    }

    fn new(options: &PostgresOptions, runtime: &Handle, db: Result<Session, Error>) -> Result<PgEndpoint, Error> {
        let name = options.to_string();
        let db = db.map_err(|error| error.at(&name))?;
        Ok(PgEndpoint { name, db, runtime: runtime.clone(), last: 0 })
    }

    fn wait<T>(&self, answer: impl Future<Output = DbResult<T>>) -> Result<T, Error> {
        self.runtime.block_on(answer).map_err(|failed| Error::from(failed).at(&self.name))
    }

    fn one(&self, sql: &str) -> Result<i64, Error> {
        Ok(self.wait(self.db.one(sql, &[]))?.map_or(0, |row| row.get(0)))
    }
}

async fn connect(options: &PostgresOptions) -> Result<Session, Error> {
    let options = super::pooling::adapt(options).await?;
    Ok(Session::connect(&Database::new(options), Purpose::Maintenance).await?)
}

async fn begin(db: &Session, options: &PostgresOptions) -> Result<(), Error> {
    schema::migrate(db).await?;
    db.script(BEGIN).await.map_err(|failed| match failed.state() {
        Some(&SqlState::LOCK_NOT_AVAILABLE) => {
            Error::Unusable("it is in use: stop every process that writes to it".into())
        }
        _ => failed.into(),
    })?;
    let sql = "SELECT name FROM nodes WHERE seen_at >= now() - make_interval(secs => $1) ORDER BY name, id";
    let alive = db.query(sql, args![options.lease.as_secs_f64()]).await?;
    if alive.is_empty() {
        // No node is left that would not keep them.
        return Ok(evidence::start(db).await?);
    }
    let names: Vec<String> = alive.iter().map(|row| row.get(0)).collect();
    Err(in_use(&names, options.lease))
}

fn in_use(nodes: &[String], lease: Duration) -> Error {
    Error::Unusable(format!(
        "it is in use by {}: stop every node; a killed node counts until its lease of {} seconds expires",
        nodes.join(", "),
        lease.as_secs_f64()
    ))
}

/// The query that reads a table: events of all writers ordered by position, counters summed over all writers.
fn select(table: &Table) -> String {
    if table.name == COUNTERS {
        return "SELECT t.key, sum(t.value)::bigint FROM counters t GROUP BY t.key ORDER BY t.key".into();
    }
    let column = |(name, kind): &(&str, Kind)| match kind {
        // Empty if a node of an older version wrote the row.
        _ if table.name == EVENTS && *name == "org" => {
            "coalesce(t.org, (SELECT r.org FROM workflow_runs r WHERE r.id = t.run))".to_string()
        }
        Kind::Int => format!("t.\"{name}\"::bigint"),
        Kind::Bool => format!("t.\"{name}\"::integer::bigint"),
        Kind::Text | Kind::Bytes => format!("t.\"{name}\""),
    };
    let order = |name: &&str| match table.columns.iter().find(|(column, _)| column == name) {
        Some((_, Kind::Text)) => format!("t.\"{name}\" COLLATE \"C\""),
        _ => format!("t.\"{name}\""),
    };
    let columns = table.columns.iter().map(column).collect::<Vec<_>>().join(", ");
    let mut order: Vec<String> = table.order.iter().map(order).collect();
    if table.name == EVENTS {
        order.push("t.writer".into());
    }
    format!("SELECT {columns} FROM {} t ORDER BY {}", table.name, order.join(", "))
}

fn cell(row: &tokio_postgres::Row, column: usize, kind: Kind) -> Result<Cell, tokio_postgres::Error> {
    Ok(match kind {
        Kind::Int | Kind::Bool => row.try_get::<_, Option<i64>>(column)?.map_or(Cell::Null, Cell::Int),
        Kind::Text => row.try_get::<_, Option<String>>(column)?.map_or(Cell::Null, Cell::Text),
        Kind::Bytes => row.try_get::<_, Option<Vec<u8>>>(column)?.map_or(Cell::Null, Cell::Bytes),
    })
}

/// The values of one column.
enum Column<'a> {
    Int(Vec<Option<i64>>),
    Text(Vec<Option<&'a str>>),
    Bytes(Vec<Option<&'a [u8]>>),
}

impl<'a> Column<'a> {
    fn of(rows: &'a [Row], column: usize, kind: Kind) -> Column<'a> {
        let cells = rows.iter().map(|row| &row[column]);
        // A value of another type becomes NULL, which the verification detects.
        let int = |cell: &Cell| if let Cell::Int(number) = cell { Some(*number) } else { None };
        let text = |cell: &'a Cell| if let Cell::Text(text) = cell { Some(text.as_str()) } else { None };
        let bytes = |cell: &'a Cell| if let Cell::Bytes(bytes) = cell { Some(bytes.as_slice()) } else { None };
        match kind {
            Kind::Int | Kind::Bool => Column::Int(cells.map(int).collect()),
            Kind::Text => Column::Text(cells.map(text).collect()),
            Kind::Bytes => Column::Bytes(cells.map(bytes).collect()),
        }
    }

    fn arg(&self) -> Arg<'_> {
        let (values, of): (&(dyn ToSql + Sync), Type) = match self {
            Column::Int(values) => (values, Type::INT8_ARRAY),
            Column::Text(values) => (values, Type::TEXT_ARRAY),
            Column::Bytes(values) => (values, Type::BYTEA_ARRAY),
        };
        (values, of)
    }
}

impl Endpoint for PgEndpoint {
    fn rows(&mut self, table: &Table, each: &mut dyn FnMut(Row) -> Result<(), Error>) -> Result<(), Error> {
        let sql = select(table);
        // Streamed: the database waits while no row is requested.
        let mut rows = pin!(self.wait(self.db.stream(&sql))?);
        while let Some(row) = self.wait(async { Ok(rows.try_next().await?) })? {
            let cells = table.columns.iter().enumerate().map(|(column, (_, kind))| cell(&row, column, *kind));
            let cells = cells.collect::<Result<Row, _>>().map_err(Failed::from);
            each(cells.map_err(|failed| Error::from(failed).at(&self.name))?)?;
        }
        Ok(())
    }

    fn high_water_mark(&mut self) -> Result<i64, Error> {
        self.one("SELECT coalesce(max(position), 0) FROM writers")
    }

    fn has_rows(&mut self, table: &Table) -> Result<bool, Error> {
        Ok(self.one(&format!("SELECT count(*) FROM (SELECT 1 FROM {} LIMIT 1) t", table.name))? > 0)
    }

    fn remove_defaults(&mut self) -> Result<(), Error> {
        self.wait(self.db.script(&format!("DELETE FROM {ORGANISATIONS}; DELETE FROM {TALLIES}")))
    }

    fn put(&mut self, table: &Table, rows: &[Row]) -> Result<(), Error> {
        if rows.is_empty() {
            return Ok(());
        }
        if let (EVENTS, Some(Cell::Int(position))) = (table.name, rows.last().and_then(|row| row.first())) {
            self.last = *position;
        }
        // Columns that only this database has. A run continues after the whole log, and so after its own part of it.
        let (name, value) = match table.name {
            EVENTS | COUNTERS => (", writer", ", 0".to_string()),
            RUNS => (", position", format!(", {}", self.last)),
            TIMERS => (", shard", format!(", mod(mod(x.run, {0}) + {0}, {0})", Share::SHARDS)),
            _ => ("", String::new()),
        };
        let (mut values, mut arrays) = (Vec::new(), Vec::new());
        for (n, (name, kind)) in (1..).zip(table.columns) {
            values.push(if *kind == Kind::Bool { format!("x.\"{name}\" <> 0") } else { format!("x.\"{name}\"") });
            arrays.push(format!("${n}"));
        }
        let (table_name, names) = (table.name, table.names());
        let (values, arrays) = (values.join(", "), arrays.join(", "));
        let sql = format!(
            "INSERT INTO {table_name} ({names}{name}) SELECT {values}{value} FROM unnest({arrays}) AS x({names})"
        );
        let columns = table.columns.iter().enumerate().map(|(column, (_, kind))| Column::of(rows, column, *kind));
        let columns: Vec<Column> = columns.collect();
        let args: Vec<Arg> = columns.iter().map(Column::arg).collect();
        self.wait(self.db.execute(&sql, &args)).map(|_| ())
    }

    fn set_sequences(&mut self, mark: i64) -> Result<(), Error> {
        let mut sql = format!("UPDATE writers SET position = {mark} WHERE id = 0");
        for table in NUMBERED {
            let next = self.one(&format!("SELECT coalesce(max(id), 0) + 1 FROM {table}"))?;
            sql += &format!("; ALTER TABLE {table} ALTER COLUMN id RESTART WITH {next}");
        }
        self.wait(self.db.script(&sql))
    }

    fn commit(&mut self) -> Result<(), Error> {
        self.wait(self.db.script("COMMIT"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_refusal_names_the_nodes_and_their_lease_in_seconds() {
        let check = |lease: Duration, text: &str| {
            let error = in_use(&["east".into(), "west".into()], lease).to_string();
            assert!(error.contains("in use by east, west:") && error.contains(text), "{error}");
        };
        check(Duration::from_secs(10), "its lease of 10 seconds expires");
        check(Duration::from_millis(1_500), "its lease of 1.5 seconds expires");
    }
}
