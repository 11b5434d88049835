//! The `query` kind: runs one statement on a named database and returns its rows as the step's result.
//!
//! | part | file |
//! | --- | --- |
//! | the parsed input, and the SQL in it | `request.rs`, `sql.rs` |
//! | the two databases | `postgres/`, `sqlite.rs` |
//! | the connection pool | `pool.rs` |
//! | limits on rows, lossless JSON values | `rows.rs` |
//! | failures | `failure.rs` |
//!
//! Not here: who may use which connection (the engine's grants) and where connections are stored.

mod failure;
mod pool;
mod postgres;
mod request;
mod rows;
mod sql;
mod sqlite;

use crate::Config;
use async_trait::async_trait;
use pool::Key;
use postgres::Postgres;
use request::Request;
use serde_json::{Map, Value};
use sqlite::Sqlite;
use std::sync::Arc;
use stepwell_core::event::{Failure, Outcome, Reply};
use stepwell_core::time::Millis;
use stepwell_engine::{Connection, Connections, Error, Missing, StepCall, StepKind};
use stepwell_store::OrgId;

/// Input: `{connection, sql, params?, write?, max_rows?}`.
pub struct QueryKind {
    connections: Arc<dyn Connections>,
    postgres: Postgres,
    sqlite: Sqlite,
}

impl QueryKind {
    pub fn new(config: &Config) -> QueryKind {
        let connections = config.connections.clone();
        QueryKind { connections, postgres: Postgres::new(config), sqlite: Sqlite::default() }
    }

    async fn query(&self, call: &StepCall) -> Result<Value, Failure> {
        let mut request = Request::from_input(&call.input)?;
        let org = call.caller.org;
        let found = self.connections.connection(org, &request.connection).await;
        let found = found.map_err(|error| match error {
            Error::Unavailable(why) => Failure::retryable("unavailable", why),
            other => failure::bad_connection(&request.connection, &other.to_string()),
        })?;
        let Some(connection) = found else { return Err(failure::unknown_connection(&request.connection)) };
        request.limit(&connection, Millis(call.timeout.as_millis() as u64))?;
        let key = Key { org, connection: connection.identity, write: request.write };
        match connection.url.split_once(':') {
            Some(("postgres" | "postgresql", _)) => self.postgres.run(request, key, &connection.url).await,
            Some(("sqlite", path)) => self.sqlite.run(request, key, path).await,
            _ => Err(failure::unknown_scheme(&request.connection)),
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

    async fn missing(&self, org: OrgId, known: &Value) -> Vec<Missing> {
        let mut missing = Vec::new();
        let mut is_sqlite = None;
        if let Some(name) = known.get("connection").and_then(Value::as_str) {
            match self.connections.connection(org, name).await {
                Ok(None) => {
                    let message = failure::unknown_connection(name).message.to_string();
                    missing.push(Missing { field: "connection", message });
                }
                Ok(Some(connection)) => is_sqlite = Some(connection.url.starts_with("sqlite:")),
                Err(_) => {}
            }
        }
        if let Some(text) = known.get("sql").and_then(Value::as_str) {
            let faults = missing_params(text, known.get("params"), is_sqlite);
            missing.extend(faults.into_iter().map(|message| Missing { field: "sql", message }));
        }
        missing
    }

    /// A read can be repeated.
    fn is_read_only(&self, input: &Value) -> bool {
        self.is_idempotent(input)
    }

    fn is_idempotent(&self, input: &Value) -> bool {
        !input.get("write").and_then(Value::as_bool).unwrap_or_default()
    }
}

/// Parameters of a statement that would have no value, and values without a parameter. `params` is null if only a run
/// knows it.
fn missing_params(text: &str, params: Option<&Value>, is_sqlite: Option<bool>) -> Vec<String> {
    let (_, names) = sql::number_params(text);
    let none = Map::new();
    let (named, given) = match params {
        Some(Value::Object(params)) => (params, None),
        Some(Value::Array(params)) => (&none, Some(params.len())),
        None => (&none, Some(0)),
        Some(_) => return Vec::new(),
    };
    let mut missing: Vec<String> = names
        .iter()
        .filter(|name| !named.contains_key(*name))
        .map(|name| failure::missing_param(name).message.to_string())
        .collect();
    let wanted = match sql::highest_number(text) {
        Some(highest) => Some(highest),
        // SQLite's own names and numbers (`@a`, `?2`) are left to the database.
        None if text.contains(['@', '$']) => None,
        None if is_sqlite == Some(false) || !text.contains('?') => Some(0),
        None => is_sqlite.and_then(|_| sql::question_marks(text)),
    };
    if let (Some(wanted), Some(given), true) = (wanted, given, names.is_empty())
        && wanted != given
    {
        missing.push(failure::wrong_param_count(wanted, given).message.to_string());
    }
    missing
}

/// Knows no connections.
pub struct NoConnections;

#[async_trait]
impl Connections for NoConnections {
    async fn connection(&self, _: OrgId, _: &str) -> Result<Option<Connection>, Error> {
        Ok(None)
    }
}
