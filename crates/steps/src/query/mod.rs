//! The `query` kind: one statement on a named database, its rows as the step's result.
//!
//! | part | file |
//! | --- | --- |
//! | what is asked, from a resolved input | `ask.rs`, `words.rs` |
//! | the two databases | `postgres/`, `sqlite.rs` |
//! | connections that are kept for the next step | `pool.rs` |
//! | rows within limits, values that JSON holds exactly | `rows.rs` |
//! | what went wrong | `failure.rs` |
//!
//! Not here: who may use which connection (the engine's grants), where connections are kept.

mod ask;
mod failure;
mod pool;
mod postgres;
mod rows;
mod sqlite;
mod words;

use crate::egress::Egress;
use ask::Ask;
use async_trait::async_trait;
use pool::Key;
use postgres::Postgres;
use serde_json::Value;
use sqlite::Sqlite;
use std::sync::Arc;
use std::time::Duration;
use stepwell_core::event::{Failure, Outcome, Reply};
use stepwell_core::time::Millis;
use stepwell_engine::{Connection, Connections, Error, StepCall, StepKind};
use stepwell_store::OrgId;

/// Input: `{connection, sql, params?, write?, max_rows?}`.
pub struct QueryKind {
    connections: Arc<dyn Connections>,
    postgres: Postgres,
    sqlite: Sqlite,
}

impl QueryKind {
    pub fn new(connections: Arc<dyn Connections>, egress: Egress, connect_timeout: Duration) -> QueryKind {
        QueryKind { connections, postgres: Postgres::new(egress, connect_timeout), sqlite: Sqlite::default() }
    }

    async fn query(&self, call: &StepCall) -> Result<Value, Failure> {
        let mut ask = Ask::read(&call.input)?;
        let org = call.caller.org;
        let found = self.connections.connection(org, &ask.connection).await;
        let found = found.map_err(|error| match error {
            Error::Unavailable(why) => Failure::retryable("unavailable", why),
            other => failure::bad_connection(&ask.connection, &other.to_string()),
        })?;
        let Some(connection) = found else { return Err(failure::unknown_connection(&ask.connection)) };
        ask.limit(&connection, Millis(call.timeout.as_millis() as u64))?;
        let key = Key { org, name: ask.connection.clone(), version: connection.version, write: ask.write };
        match connection.url.split_once(':') {
            Some(("postgres" | "postgresql", _)) => self.postgres.run(ask, key, &connection.url).await,
            Some(("sqlite", path)) => self.sqlite.run(ask, key, path).await,
            _ => Err(failure::unknown_scheme(&ask.connection)),
        }
    }
}

#[async_trait]
impl StepKind for QueryKind {
    async fn run(&self, call: StepCall) -> Outcome {
        match self.query(&call).await {
            Ok(body) => Outcome::Success(Reply::body(body)),
            Err(failure) => Outcome::Failure { failure, reply: None },
        }
    }

    /// What only reads can be read again.
    fn is_idempotent(&self, input: &Value) -> bool {
        !input.get("write").and_then(Value::as_bool).unwrap_or_default()
    }
}

/// No connection is known.
pub struct NoConnections;

#[async_trait]
impl Connections for NoConnections {
    async fn connection(&self, _: OrgId, _: &str) -> Result<Option<Connection>, Error> {
        Ok(None)
    }
}
