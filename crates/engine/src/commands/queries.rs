//! Saved queries of an organisation.

use super::Queries;
use super::change::{change, current_auth, new_named, remove, retry_on_conflict};
use super::input::{check_name, invalid};
use crate::access::Right;
use crate::error::Error;
use crate::records::{Kept, With, body, find, list, name_key, put, read};
use crate::workflows::SavedQuery;
use serde_json::Map;
use serde_json::{Value, json};
use stepwell_core::limits;
use stepwell_core::value::check_size;
use stepwell_store::Change;

/// Maximum size of a statement, in bytes.
const MAX_SQL: usize = 64 * 1024;

/// The settings of a saved query.
#[derive(Clone, Default)]
pub struct NewQuery {
    pub connection: String,
    pub sql: String,
    pub params: Map<String, Value>,
    pub write: bool,
    pub rows: Option<u32>,
}

impl Queries<'_> {
    /// The saved queries of the organisation. Needs the right to administer, as all methods here do.
    pub async fn list(&self) -> Result<Vec<With<SavedQuery>>, Error> {
        self.caller.check(Right::Admin)?;
        list(&*self.rooms.cluster.store, self.caller.org).await
    }

    /// Returns a saved query by name or id.
    pub async fn get(&self, name: &str) -> Result<With<SavedQuery>, Error> {
        self.caller.check(Right::Admin)?;
        read(&find::<SavedQuery>(&*self.rooms.cluster.store, self.caller.org, name).await?)
    }

    /// Creates or replaces a saved query. Takes effect with the next step, on all nodes.
    pub async fn put(&self, name: &str, new: NewQuery) -> Result<With<SavedQuery>, Error> {
        self.caller.check(Right::Admin)?;
        check_name("name", name)?;
        check(&new)?;
        retry_on_conflict(|| self.put_once(name, new.clone())).await
    }

    async fn put_once(&self, name: &str, new: NewQuery) -> Result<With<SavedQuery>, Error> {
        let decided = current_auth(self.rooms, self.caller.org).await?;
        let before =
            self.rooms.cluster.store.record_with_key(SavedQuery::KIND, &name_key(self.caller.org, name)).await?;
        let was: Option<SavedQuery> = before.as_ref().map(body).transpose()?;
        let now = self.rooms.cluster.clock.now();
        let NewQuery { connection, sql, params, write, rows } = new;
        let value = SavedQuery {
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
        let detail = json!({"connection": value.connection, "sql": value.sql, "write": value.write});
        let audit = vec![self.caller.audit(now, "query.put", name, detail)];
        let (id, record) = put(before, &value, || new_named(self.rooms, self.caller.org, "qry", name, &value));
        let update = Change { records: vec![record], audit, grants_of: Some(self.caller.org), decided: Some(decided) };
        change(self.rooms, update, "query", name).await?;
        Ok(With { id, is: value })
    }

    /// Removes a saved query.
    pub async fn remove(&self, name: &str) -> Result<(), Error> {
        self.caller.check(Right::Admin)?;
        retry_on_conflict(|| remove::<SavedQuery>(self.rooms, self.caller, "query.remove", name)).await
    }
}

/// The connection and the statement are not checked here: a step that uses the query reports their errors.
fn check(new: &NewQuery) -> Result<(), Error> {
    check_name("connection", &new.connection)?;
    if new.sql.trim().is_empty() || new.sql.len() > MAX_SQL {
        return Err(invalid("sql", &format!("must be a statement of at most {MAX_SQL} bytes")));
    }
    if new.rows.is_some_and(|rows| !(1..=limits::MAX_ROWS).contains(&rows)) {
        return Err(invalid("rows", &format!("must be between 1 and {}", limits::MAX_ROWS)));
    }
    check_size(&Value::Object(new.params.clone())).map_err(|failure| invalid("params", &failure.message))
}
