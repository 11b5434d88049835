//! Saved queries of an organisation.

use super::change::{auth, change, settled};
use super::people::{bad, check_name, find, list, read};
use super::secrets::{put, remove};
use super::{Caller, Right, With};
use crate::engine::Engine;
use crate::error::Error;
use crate::people::{Kept, body, name_key};
use crate::queries::SavedQuery;
use serde_json::{Map, Value, json};
use stepwell_core::limits;
use stepwell_core::value::check_size;
use stepwell_store::Change;

/// Bytes of a statement.
const MAX_SQL: usize = 64 * 1024;

/// What a saved query is set to.
#[derive(Clone, Default)]
pub struct NewQuery {
    pub connection: String,
    pub sql: String,
    pub params: Map<String, Value>,
    pub write: bool,
    pub rows: Option<u32>,
}

impl Engine {
    pub async fn queries(&self, caller: &Caller) -> Result<Vec<With<SavedQuery>>, Error> {
        caller.check(Right::Admin)?;
        list(&self.inner, caller.org).await
    }

    pub async fn query(&self, caller: &Caller, name: &str) -> Result<With<SavedQuery>, Error> {
        caller.check(Right::Admin)?;
        read(&find::<SavedQuery>(&self.inner, caller.org, name).await?)
    }

    /// Makes a saved query, or makes it another one. Counts from the next step on, on every node.
    pub async fn put_query(&self, caller: &Caller, name: &str, new: NewQuery) -> Result<With<SavedQuery>, Error> {
        caller.check(Right::Admin)?;
        check_name("name", name)?;
        check(&new)?;
        settled(|| self.put_query_once(caller, name, new.clone())).await
    }

    async fn put_query_once(&self, caller: &Caller, name: &str, new: NewQuery) -> Result<With<SavedQuery>, Error> {
        let inner = &self.inner;
        let decided = auth(inner, caller.org).await?;
        let before = inner.store.record_with_key(SavedQuery::KIND, &name_key(caller.org, name)).await?;
        let was: Option<SavedQuery> = before.as_ref().map(body).transpose()?;
        let now = inner.clock.now();
        let NewQuery { connection, sql, params, write, rows } = new;
        let is = SavedQuery {
            name: name.to_string(),
            connection,
            sql,
            params,
            write,
            rows,
            created: was.map_or(now, |was| was.created),
            changed: now,
            by: caller.name.to_string(),
        };
        let detail = json!({"connection": is.connection, "sql": is.sql, "write": is.write});
        let audit = vec![caller.audit(now, "query.put", name, detail)];
        let (id, record) = put(inner, caller.org, before, ("qry", name), &is);
        let done = Change { records: vec![record], audit, grants_of: Some(caller.org), decided: Some(decided) };
        change(inner, done, "query", name).await?;
        Ok(With { id, is })
    }

    pub async fn remove_query(&self, caller: &Caller, name: &str) -> Result<(), Error> {
        caller.check(Right::Admin)?;
        settled(|| remove::<SavedQuery>(self, caller, "query.remove", name)).await
    }
}

/// Whether there is such a connection, and whether it takes the statement, is seen when a step asks.
fn check(new: &NewQuery) -> Result<(), Error> {
    check_name("connection", &new.connection)?;
    if new.sql.trim().is_empty() || new.sql.len() > MAX_SQL {
        return Err(bad("sql", &format!("a statement of up to {MAX_SQL} bytes is needed")));
    }
    if new.rows.is_some_and(|rows| !(1..=limits::MAX_ROWS).contains(&rows)) {
        return Err(bad("rows", &format!("this must be from 1 to {}", limits::MAX_ROWS)));
    }
    check_size(&Value::Object(new.params.clone())).map_err(|failure| bad("params", &failure.message))
}
