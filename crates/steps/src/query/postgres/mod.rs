//! PostgreSQL: runs one statement in a transaction, which is read-only unless the step writes.
//!
//! A statement is prepared first, so that parameters and columns that are not supported are refused before it executes.
//! The server enforces read-only access: a reading step's transaction is read-only and rolled back.

mod bind;
mod cell;
mod connect;
mod error;
mod session;

use super::pool::{Key, Lease, Pools};
use super::request::{Params, Request};
use super::rows::Rows;
use super::{failure, sql};
use crate::Config;
use crate::egress::Egress;
use cell::Cell;
use connect::Target;
use futures_util::TryStreamExt;
use futures_util::future::try_join;
use serde_json::Value;
use session::{ActiveSession, Session};
use std::sync::Arc;
use std::time::Duration;
use stepwell_core::event::Failure;
use stepwell_store::tls::Authorities;
use tokio_postgres::{Row, Statement, Transaction};

pub struct Postgres {
    pools: Arc<Pools<Session>>,
    egress: Egress,
    connect_timeout: Duration,
    authorities: Authorities,
}

/// A failure, and whether the connection can be reused after it.
pub struct StatementError {
    pub failure: Failure,
    pub reusable: bool,
}

impl From<Failure> for StatementError {
    fn from(failure: Failure) -> StatementError {
        StatementError { failure, reusable: true }
    }
}

impl Postgres {
    pub fn new(config: &Config) -> Postgres {
        let (egress, connect_timeout, authorities) =
            (config.egress, config.connect_timeout, config.authorities.clone());
        Postgres { pools: Arc::default(), egress, connect_timeout, authorities }
    }

    /// Runs the statement. Dropping the future cancels it on the server.
    pub async fn run(&self, request: Request, key: Key, url: &str) -> Result<Value, Failure> {
        let lease = self.pools.lease(key).await;
        let mut session = self.connected(lease, &request, url).await?;
        let done = transact(&mut session.session().client, &request).await;
        match done {
            Ok(body) => {
                session.finish();
                Ok(body)
            }
            Err(StatementError { failure, reusable }) => {
                if reusable {
                    session.finish();
                }
                Err(failure)
            }
        }
    }

    /// An idle connection that is still alive, or a new one.
    async fn connected(&self, lease: Lease<Session>, request: &Request, url: &str) -> Result<ActiveSession, Failure> {
        while let Some(idle) = lease.take_idle() {
            if idle.is_alive().await {
                return Ok(ActiveSession::new(idle, lease));
            }
        }
        let name = &request.connection;
        let (egress, timeout, authorities) = (self.egress, self.connect_timeout, &self.authorities);
        let target = Target { name, url, egress, timeout, authorities };
        let session = connect::connect(target).await?;
        Ok(ActiveSession::new(session, lease))
    }
}

async fn transact(client: &mut tokio_postgres::Client, request: &Request) -> Result<Value, StatementError> {
    let (sql, names) = match &request.params {
        Params::List(_) => (request.sql.clone(), Vec::new()),
        Params::Named(_) if sql::has_numbered_params(&request.sql) => {
            let why = "a numbered parameter such as `$1` needs `params` to be a list; for an object, write `:name`";
            return Err(failure::bad_query(why.into()).into());
        }
        Params::Named(_) => sql::number_params(&request.sql),
    };
    let started = client.build_transaction().read_only(!request.write).start().await;
    let transaction = started.map_err(|error| error::statement_failed(&error))?;
    // The server then stops the statement even if this process dies.
    let millis = request.timeout.as_millis().min(i32::MAX as u128);
    let bounds = format!("SET LOCAL statement_timeout = {millis}");
    let prepared = try_join(transaction.batch_execute(&bounds), transaction.prepare(&sql)).await;
    let ((), statement) = prepared.map_err(|error| error::statement_failed(&error))?;
    let rows = Rows::new(columns(&statement)?, request.max_rows)?;
    let values = bind::text_params(&request.params, &names, statement.params())?;
    let body = read(&transaction, &statement, Reading { rows, values, max_rows: request.max_rows }).await?;
    if request.write {
        transaction.commit().await.map_err(|error| error::commit_failed(&error))?;
    }
    Ok(body)
}

struct Reading {
    rows: Rows,
    values: Vec<bind::TextParam>,
    max_rows: u32,
}

async fn read(transaction: &Transaction<'_>, statement: &Statement, reading: Reading) -> Result<Value, StatementError> {
    let Reading { mut rows, values, max_rows } = reading;
    let bound = transaction.bind_raw(statement, &values).await;
    let portal = bound.map_err(|error| error::bind_failed(&error, &values))?;
    // One more than allowed, to detect that there are more.
    let stream = transaction.query_portal_raw(&portal, max_rows as i32 + 1).await;
    let mut stream = std::pin::pin!(stream.map_err(|error| error::statement_failed(&error))?);
    while let Some(row) = stream.try_next().await.map_err(|error| error::statement_failed(&error))? {
        // The connection cannot be reused: it still receives the remaining rows.
        rows.push(cells(&row)).map_err(|failure| StatementError { failure, reusable: false })?;
    }
    Ok(rows.body(stream.rows_affected().unwrap_or_default())?)
}

fn columns(statement: &Statement) -> Result<Vec<String>, Failure> {
    for column in statement.columns() {
        if !cell::is_supported(column.type_()) {
            let why = format!("its type {} is not supported", column.type_().name());
            return Err(failure::unreadable(column.name(), &why));
        }
    }
    Ok(statement.columns().iter().map(|column| column.name().to_owned()).collect())
}

fn cells(row: &Row) -> impl Iterator<Item = Result<Value, Failure>> + '_ {
    row.columns().iter().enumerate().map(|(n, column)| match row.try_get::<_, Cell>(n) {
        Ok(Cell(value)) => Ok(value),
        Err(error) => Err(failure::unreadable(column.name(), &error::root_cause(&error))),
    })
}
