//! Saved queries.

use super::Instant;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use stepwell_engine::SavedQuery;
use stepwell_engine::commands::{NewQuery, With};
use utoipa::ToSchema;

/// A statement that query steps use by name.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct QueryView {
    pub id: String,
    pub name: String,
    pub connection: String,
    pub sql: String,
    /// Default values of named parameters.
    pub params: Map<String, Value>,
    /// Whether it writes.
    pub write: bool,
    /// Maximum number of rows, unless the step sets one.
    #[serde(default)]
    pub rows: Option<u32>,
    pub created_at: Instant,
    pub changed_at: Instant,
    pub changed_by: String,
}

impl From<With<SavedQuery>> for QueryView {
    fn from(With { id, is }: With<SavedQuery>) -> QueryView {
        let SavedQuery { name, connection, sql, params, write, rows, created, changed, by } = is;
        QueryView {
            id,
            name,
            connection,
            sql,
            params,
            write,
            rows,
            created_at: created.into(),
            changed_at: changed.into(),
            changed_by: by,
        }
    }
}

/// The content of a saved query.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QueryRequest {
    /// The name of a connection.
    pub connection: String,
    /// One statement, with `:name` or `$1` as parameters.
    pub sql: String,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub params: Map<String, Value>,
    #[serde(default)]
    pub write: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u32>,
}

impl From<QueryRequest> for NewQuery {
    fn from(QueryRequest { connection, sql, params, write, rows }: QueryRequest) -> NewQuery {
        NewQuery { connection, sql, params, write, rows }
    }
}
