//! A query step's resolved input and its limits.

use super::{failure, sql};
use serde_json::{Map, Value};
use std::time::Duration;
use stepwell_core::event::Failure;
use stepwell_core::limits;
use stepwell_core::time::Millis;
use stepwell_engine::Connection;

pub struct Request {
    pub connection: String,
    pub sql: String,
    pub params: Params,
    pub write: bool,
    pub max_rows: u32,
    /// Set by `limit`.
    pub timeout: Duration,
}

pub enum Params {
    /// `$1`, `$2`, …
    List(Vec<Value>),
    /// `:name`
    Named(Map<String, Value>),
}

impl Request {
    pub fn from_input(input: &Value) -> Result<Request, Failure> {
        let text = |name: &str| input.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
        let required = |name: &str| text(name).ok_or_else(|| failure::bad_query(format!("`{name}` is missing")));
        let sql = required("sql")?.to_owned();
        if let Some(word) = sql::forbidden_keyword(&sql) {
            return Err(failure::refused_statement(&word));
        }
        let params = match input.get("params") {
            None | Some(Value::Null) => Params::List(Vec::new()),
            Some(Value::Array(list)) => Params::List(list.clone()),
            Some(Value::Object(named)) => Params::Named(named.clone()),
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
                return Err(failure::bad_query("`params` must be a list or an object".into()));
            }
        };
        let rows = input.get("max_rows").and_then(Value::as_u64).and_then(|rows| u32::try_from(rows).ok());
        Ok(Request {
            connection: required("connection")?.to_owned(),
            sql,
            params,
            write: input.get("write").and_then(Value::as_bool).unwrap_or_default(),
            max_rows: rows.unwrap_or(limits::DEFAULT_ROWS).clamp(1, limits::MAX_ROWS),
            timeout: Duration::ZERO,
        })
    }

    /// Applies the connection's limits.
    pub fn limit(&mut self, connection: &Connection, timeout: Millis) -> Result<(), Failure> {
        if self.write && !connection.write {
            return Err(failure::may_not_write(&self.connection));
        }
        self.max_rows = connection.rows.map_or(self.max_rows, |max| self.max_rows.min(max));
        let timeout = connection.timeout.map_or(timeout, |max| timeout.min(max));
        self.timeout = Duration::from_millis(timeout.0.max(1));
        Ok(())
    }
}
