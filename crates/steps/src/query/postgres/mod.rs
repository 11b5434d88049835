//! PostgreSQL: one statement in a transaction, which only reads unless the step writes.
//!
//! A statement is prepared before it is executed, so that parameters and columns that cannot be had are refused first. It is
//! the server that holds a reader to reading: its transaction is read-only, and rolled back.

mod bind;
mod cell;
mod dial;
mod said;
mod session;

use super::ask::{Ask, Params};
use super::pool::{Key, Lease, Pools};
use super::rows::Rows;
use super::{failure, words};
use crate::egress::Egress;
use cell::Cell;
use futures_util::TryStreamExt;
use futures_util::future::try_join;
use serde_json::Value;
use session::{Busy, Session};
use std::sync::Arc;
use std::time::Duration;
use stepwell_core::event::Failure;
use tokio_postgres::{Row, Statement, Transaction};

pub struct Postgres {
    pools: Arc<Pools<Session>>,
    egress: Egress,
    connect_timeout: Duration,
}

/// Whether the connection can be used again after this failure.
pub struct Failed {
    pub failure: Failure,
    pub sound: bool,
}

impl From<Failure> for Failed {
    fn from(failure: Failure) -> Failed {
        Failed { failure, sound: true }
    }
}

impl Postgres {
    pub fn new(egress: Egress, connect_timeout: Duration) -> Postgres {
        Postgres { pools: Arc::default(), egress, connect_timeout }
    }

    /// Dropping the future cancels the statement on the server.
    pub async fn run(&self, ask: Ask, key: Key, url: &str) -> Result<Value, Failure> {
        let lease = self.pools.lease(key).await;
        let mut busy = self.connected(lease, &ask, url).await?;
        let done = transact(&mut busy.session().client, &ask).await;
        match done {
            Ok(body) => {
                busy.finish();
                Ok(body)
            }
            Err(Failed { failure, sound }) => {
                if sound {
                    busy.finish();
                }
                Err(failure)
            }
        }
    }

    /// A kept connection that still answers, or a new one.
    async fn connected(&self, lease: Lease<Session>, ask: &Ask, url: &str) -> Result<Busy, Failure> {
        while let Some(kept) = lease.kept() {
            if kept.answers().await {
                return Ok(Busy::new(kept, lease));
            }
        }
        let session = dial::dial(url, &ask.connection, (self.egress, self.connect_timeout)).await?;
        Ok(Busy::new(session, lease))
    }
}

async fn transact(client: &mut tokio_postgres::Client, ask: &Ask) -> Result<Value, Failed> {
    let (sql, names) = match &ask.params {
        Params::List(_) => (ask.sql.clone(), Vec::new()),
        Params::Named(_) if words::has_numbers(&ask.sql) => {
            let why = "a parameter such as `$1` needs `params` to be a list; where they have names, write `:name`";
            return Err(failure::bad_query(why.into()).into());
        }
        Params::Named(_) => words::numbered(&ask.sql),
    };
    let started = client.build_transaction().read_only(!ask.write).start().await;
    let transaction = started.map_err(|error| said::failed(&error))?;
    // The server stops what nobody waits for any more, even if nobody is left to tell it.
    let millis = ask.timeout.as_millis().min(i32::MAX as u128);
    let bounds = format!("SET LOCAL statement_timeout = {millis}");
    let prepared = try_join(transaction.batch_execute(&bounds), transaction.prepare(&sql)).await;
    let ((), statement) = prepared.map_err(|error| said::failed(&error))?;
    let rows = Rows::new(columns(&statement)?, ask.rows)?;
    let values = bind::values(&ask.params, &names, statement.params())?;
    let body = read(&transaction, &statement, Reading { rows, values, most: ask.rows }).await?;
    if ask.write {
        transaction.commit().await.map_err(|error| said::not_committed(&error))?;
    }
    Ok(body)
}

struct Reading {
    rows: Rows,
    values: Vec<bind::Text>,
    most: u32,
}

async fn read(transaction: &Transaction<'_>, statement: &Statement, reading: Reading) -> Result<Value, Failed> {
    let Reading { mut rows, values, most } = reading;
    let bound = transaction.bind_raw(statement, &values).await;
    let portal = bound.map_err(|error| said::not_bound(&error, &values))?;
    // One more, to see that there are more.
    let stream = transaction.query_portal_raw(&portal, most as i32 + 1).await;
    let mut stream = std::pin::pin!(stream.map_err(|error| said::failed(&error))?);
    while let Some(row) = stream.try_next().await.map_err(|error| said::failed(&error))? {
        // The rest of the rows is on its way.
        rows.push(cells(&row)).map_err(|failure| Failed { failure, sound: false })?;
    }
    Ok(rows.body(stream.rows_affected().unwrap_or_default())?)
}

fn columns(statement: &Statement) -> Result<Vec<String>, Failure> {
    for column in statement.columns() {
        if !cell::readable(column.type_()) {
            let why = format!("its type {} is not one that is known here", column.type_().name());
            return Err(failure::unreadable(column.name(), &why));
        }
    }
    Ok(statement.columns().iter().map(|column| column.name().to_owned()).collect())
}

fn cells(row: &Row) -> impl Iterator<Item = Result<Value, Failure>> + '_ {
    row.columns().iter().enumerate().map(|(n, column)| match row.try_get::<_, Cell>(n) {
        Ok(Cell(value)) => Ok(value),
        Err(error) => Err(failure::unreadable(column.name(), &said::innermost(&error))),
    })
}
