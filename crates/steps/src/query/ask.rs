//! What a step asks: its resolved input, and how far it may go.

use super::{failure, words};
use serde_json::{Map, Value};
use std::time::Duration;
use stepwell_core::event::Failure;
use stepwell_core::limits;
use stepwell_core::time::Millis;
use stepwell_engine::Connection;

pub struct Ask {
    pub connection: String,
    pub sql: String,
    pub params: Params,
    pub write: bool,
    pub rows: u32,
    /// Set by `limit`.
    pub timeout: Duration,
}

pub enum Params {
    /// `$1`, `$2`, …
    List(Vec<Value>),
    /// `:name`
    Named(Map<String, Value>),
}

impl Ask {
    pub fn read(input: &Value) -> Result<Ask, Failure> {
        let text = |name: &str| input.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
        let needed = |name: &str| text(name).ok_or_else(|| failure::bad_query(format!("`{name}` is missing")));
        let sql = needed("sql")?.to_owned();
        if let Some(word) = words::refused(&sql) {
            return Err(failure::refused_statement(&word));
        }
        let params = match input.get("params") {
            None | Some(Value::Null) => Params::List(Vec::new()),
            Some(Value::Array(list)) => Params::List(list.clone()),
            Some(Value::Object(named)) => Params::Named(named.clone()),
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
                return Err(failure::bad_query("`params` is neither a list nor an object".into()));
            }
        };
        let rows = input.get("max_rows").and_then(Value::as_u64).and_then(|rows| u32::try_from(rows).ok());
        Ok(Ask {
            connection: needed("connection")?.to_owned(),
            sql,
            params,
            write: input.get("write").and_then(Value::as_bool).unwrap_or_default(),
            rows: rows.unwrap_or(limits::DEFAULT_ROWS).clamp(1, limits::MAX_ROWS),
            timeout: Duration::ZERO,
        })
    }

    /// What the connection leaves of it.
    pub fn limit(&mut self, connection: &Connection, timeout: Millis) -> Result<(), Failure> {
        if self.write && !connection.write {
            return Err(failure::may_not_write(&self.connection));
        }
        self.rows = connection.rows.map_or(self.rows, |most| self.rows.min(most));
        let timeout = connection.timeout.map_or(timeout, |most| timeout.min(most));
        self.timeout = Duration::from_millis(timeout.0.max(1));
        Ok(())
    }
}
