//! Saved queries of an organisation.

use super::Queries;
use super::change::{auth, change, new_named, remove, settled};
use super::input::{bad, check_name};
use crate::access::Right;
use crate::error::Error;
use crate::records::{Kept, With, body, find, list, name_key, put, read};
use crate::workflows::SavedQuery;
use serde_json::Map;
use serde_json::{Value, json};
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

impl Queries<'_> {
    pub async fn list(&self) -> Result<Vec<With<SavedQuery>>, Error> {
        self.caller.check(Right::Admin)?;
        list(&*self.rooms.cluster.store, self.caller.org).await
    }

    pub async fn get(&self, name: &str) -> Result<With<SavedQuery>, Error> {
        self.caller.check(Right::Admin)?;
        read(&find::<SavedQuery>(&*self.rooms.cluster.store, self.caller.org, name).await?)
    }

    /// Makes a saved query, or makes it another one. Counts from the next step on, on every node.
    pub async fn put(&self, name: &str, new: NewQuery) -> Result<With<SavedQuery>, Error> {
        self.caller.check(Right::Admin)?;
        check_name("name", name)?;
        check(&new)?;
        settled(|| self.put_once(name, new.clone())).await
    }

    async fn put_once(&self, name: &str, new: NewQuery) -> Result<With<SavedQuery>, Error> {
        let decided = auth(self.rooms, self.caller.org).await?;
        let before =
            self.rooms.cluster.store.record_with_key(SavedQuery::KIND, &name_key(self.caller.org, name)).await?;
        let was: Option<SavedQuery> = before.as_ref().map(body).transpose()?;
        let now = self.rooms.cluster.clock.now();
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
            by: self.caller.name.to_string(),
        };
        let detail = json!({"connection": is.connection, "sql": is.sql, "write": is.write});
        let audit = vec![self.caller.audit(now, "query.put", name, detail)];
        let (id, record) = put(before, &is, || new_named(self.rooms, self.caller.org, "qry", name, &is));
        let done = Change { records: vec![record], audit, grants_of: Some(self.caller.org), decided: Some(decided) };
        change(self.rooms, done, "query", name).await?;
        Ok(With { id, is })
    }

    pub async fn remove(&self, name: &str) -> Result<(), Error> {
        self.caller.check(Right::Admin)?;
        settled(|| remove::<SavedQuery>(self.rooms, self.caller, "query.remove", name)).await
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
