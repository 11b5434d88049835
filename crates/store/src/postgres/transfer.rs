//! A database as a side of a transfer: one connection, one transaction, and nobody else who writes.

use super::args::{Arg, args};
use super::schema;
use super::session::{Answer, Failed, Purpose, Session};
use crate::transfer::{COUNTERS, Cell, EVENTS, Kind, NUMBERED, ORGANISATIONS, RUNS, Row, Side, TIMERS, Table};
use crate::{Error, PostgresOptions, Share};
use futures_util::TryStreamExt;
use std::pin::pin;
use tokio::runtime::Handle;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};

/// The locks come before anything is read, so that what is read is what there is once they are held: nobody joins, says that
/// it is alive or commits until this is over.
const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL lock_timeout = '10s';
                     SET LOCAL idle_in_transaction_session_timeout = 0; LOCK TABLE nodes, writers IN EXCLUSIVE MODE";

pub struct PgSide {
    name: String,
    db: Session,
    runtime: Handle,
    /// The highest position that was put.
    last: i64,
}

impl PgSide {
    /// A database that has a store in it.
    pub fn source(options: &PostgresOptions, runtime: Handle) -> Result<PgSide, Error> {
        let work = async {
            let db = connect(options).await?;
            let sql = "SELECT 1 FROM information_schema.tables
                       WHERE table_schema = current_schema() AND table_name = 'stepwell_schema'";
            if db.one(sql, &[]).await?.is_none() {
                return Err(Error::Unusable("there is nothing of stepwell in this database".into()));
            }
            begin(&db, options).await?;
            Ok(db)
        };
        PgSide::new(options, &runtime, runtime.block_on(work))
    }

    /// A database in which the tables are made if need be.
    pub fn target(options: &PostgresOptions, runtime: Handle) -> Result<PgSide, Error> {
        let work = async {
            let db = connect(options).await?;
            if !options.unsafe_settings {
                schema::check_durability(&db).await?;
            }
            begin(&db, options).await?;
            Ok(db)
        };
        PgSide::new(options, &runtime, runtime.block_on(work))
    }

    fn new(options: &PostgresOptions, runtime: &Handle, db: Result<Session, Error>) -> Result<PgSide, Error> {
        let name = options.to_string();
        let db = db.map_err(|error| error.of(&name))?;
        Ok(PgSide { name, db, runtime: runtime.clone(), last: 0 })
    }

    fn wait<T>(&self, answer: impl Future<Output = Answer<T>>) -> Result<T, Error> {
        self.runtime.block_on(answer).map_err(|failed| Error::from(failed).of(&self.name))
    }

    fn one(&self, sql: &str) -> Result<i64, Error> {
        Ok(self.wait(self.db.one(sql, &[]))?.map_or(0, |row| row.get(0)))
    }
}

async fn connect(options: &PostgresOptions) -> Result<Session, Error> {
    Ok(Session::connect(options, Purpose::Keeping).await?)
}

async fn begin(db: &Session, options: &PostgresOptions) -> Result<(), Error> {
    schema::migrate(db).await?;
    db.script(BEGIN).await.map_err(|failed| match failed.state() {
        Some(&SqlState::LOCK_NOT_AVAILABLE) => Error::Unusable("it is in use: stop whatever writes to it".into()),
        _ => failed.into(),
    })?;
    let sql = "SELECT name FROM nodes WHERE seen_at >= now() - make_interval(secs => $1) ORDER BY name, id";
    let alive = db.query(sql, args![options.lease.as_secs_f64()]).await?;
    if alive.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = alive.iter().map(|row| row.get(0)).collect();
    Err(Error::Unusable(format!(
        "it is in use by {}: stop every node; one that was killed counts until its lease of {:?} is over",
        names.join(", "),
        options.lease
    )))
}

/// Rows of several writers in the order of their positions; what they have counted, together.
fn select(table: &Table) -> String {
    if table.name == COUNTERS {
        return "SELECT t.key, sum(t.value)::bigint FROM counters t GROUP BY t.key ORDER BY t.key".into();
    }
    let column = |(name, kind): &(&str, Kind)| match kind {
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
        // What is of another kind is left out, and missed when everything is read back.
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

impl Side for PgSide {
    fn rows(&mut self, table: &Table, each: &mut dyn FnMut(Row) -> Result<(), Error>) -> Result<(), Error> {
        let sql = select(table);
        // Read as it comes: the database waits when nobody takes more.
        let mut rows = pin!(self.wait(self.db.stream(&sql))?);
        while let Some(row) = self.wait(async { Ok(rows.try_next().await?) })? {
            let cells = table.columns.iter().enumerate().map(|(column, (_, kind))| cell(&row, column, *kind));
            let cells = cells.collect::<Result<Row, _>>().map_err(Failed::from);
            each(cells.map_err(|failed| Error::from(failed).of(&self.name))?)?;
        }
        Ok(())
    }

    fn mark(&mut self) -> Result<i64, Error> {
        self.one("SELECT coalesce(max(position), 0) FROM writers")
    }

    fn has_rows(&mut self, table: &Table) -> Result<bool, Error> {
        Ok(self.one(&format!("SELECT count(*) FROM (SELECT 1 FROM {} LIMIT 1) t", table.name))? > 0)
    }

    fn vacate(&mut self) -> Result<(), Error> {
        self.wait(self.db.script(&format!("DELETE FROM {ORGANISATIONS}")))
    }

    fn put(&mut self, table: &Table, rows: &[Row]) -> Result<(), Error> {
        if rows.is_empty() {
            return Ok(());
        }
        if let (EVENTS, Some(Cell::Int(position))) = (table.name, rows.last().and_then(|row| row.first())) {
            self.last = *position;
        }
        // What only this database has. A run goes on after the whole log, and with it after its own.
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

    fn seal(&mut self, mark: i64) -> Result<(), Error> {
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
