//! The database of the query workload: a file of a thousand rows.

use serde_json::{Value, json};
use std::path::Path;
use stepwell_engine::{Connection, Connections, Error};
use stepwell_store::OrgId;

const ROWS: &str = "CREATE TABLE goods (id INTEGER PRIMARY KEY, name TEXT, cents INTEGER);
    WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 1000)
    INSERT INTO goods SELECT x, 'goods ' || x, x * 100 FROM n;";

/// Resolves a connection name as the path of a SQLite file.
pub struct Files;

#[async_trait::async_trait]
impl Connections for Files {
    async fn connection(&self, _: OrgId, name: &str) -> Result<Option<Connection>, Error> {
        Ok(Some(Connection {
            url: format!("sqlite:{name}"),
            write: false,
            rows: None,
            timeout: None,
            identity: [0; 32],
        }))
    }
}

pub fn create(file: &Path) -> anyhow::Result<()> {
    Ok(rusqlite::Connection::open(file)?.execute_batch(ROWS)?)
}

/// One row by its key.
pub fn step(file: &Path) -> Value {
    let sql = "SELECT name, cents FROM goods WHERE id = $1";
    json!({"query": {"connection": file.display().to_string(), "sql": sql, "params": ["{{input.order}}"]}})
}
