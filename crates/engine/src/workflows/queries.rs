//! Saved queries: named statements that steps of many workflows can use and an administrator can fix in one place. The
//! input of a step names one. It is read anew for every call.
//!
//! A saved query contains no secret: the URL belongs to its connection, and the bound values belong to the step.

use super::Workflows;
use crate::error::Error;
use crate::records::{Kept, body, by_name};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;
use stepwell_core::event::Failure;
use stepwell_core::time::Time;
use stepwell_core::value::Payload;
use stepwell_store::OrgId;

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SavedQuery {
    pub name: String,
    pub connection: String,
    pub sql: String,
    /// Defaults of named parameters.
    #[serde(default)]
    pub params: Map<String, Value>,
    /// Whether the statement writes.
    #[serde(default)]
    pub write: bool,
    /// The default of the step's `max_rows`.
    #[serde(default)]
    pub rows: Option<u32>,
    pub created: Time,
    pub changed: Time,
    pub by: String,
}

impl Kept for SavedQuery {
    const KIND: &'static str = "query";
}

impl SavedQuery {
    /// The input of a step, with the saved query in place of its name.
    pub fn input(self, mut input: Map<String, Value>) -> Value {
        input.remove("saved");
        let params = match input.remove("params") {
            // A list is for `$1`, and a statement cannot mix positional and named parameters.
            Some(list @ Value::Array(_)) => list,
            Some(Value::Object(given)) => Value::Object(self.params.into_iter().chain(given).collect()),
            None | Some(Value::Null) => Value::Object(self.params),
            // The executor reports the fault.
            Some(other) => other,
        };
        input.insert("params".into(), params);
        input.insert("connection".into(), self.connection.into());
        input.insert("sql".into(), self.sql.into());
        if self.write {
            input.insert("write".into(), true.into());
        }
        if let Some(rows) = self.rows {
            input.entry("max_rows").or_insert(rows.into());
        }
        Value::Object(input)
    }
}

impl Workflows {
    /// The full input of a query step that names a saved query. `None` if it does not. The slots of secrets stay the
    /// same, because a saved query does not change the values of the step.
    pub async fn saved_query(&self, org: OrgId, payload: &Payload) -> Result<Option<Payload>, Failure> {
        let Some(name) = payload.value.get("saved").and_then(Value::as_str) else { return Ok(None) };
        let found = by_name::<SavedQuery>(&*self.access.cluster.store, org, name).await;
        let found = found.and_then(|record| record.as_ref().map(body::<SavedQuery>).transpose());
        let query = found.map_err(|error| match error {
            Error::Unavailable(why) => Failure::retryable("unavailable", why),
            other => Failure::new("unknown_query", format!("the saved query {name:?} cannot be used: {other}")),
        })?;
        let unknown = || {
            let message = format!("there is no saved query {name:?}; create it with `stepwell query set {name}`");
            Failure::new("unknown_query", message)
        };
        let query = query.ok_or_else(unknown)?;
        let Value::Object(input) = Value::clone(&payload.value) else { return Ok(None) };
        Ok(Some(Payload { value: Arc::new(query.input(input)), secrets: payload.secrets.clone() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_input_of_a_step_overrides_the_saved_query() {
        let saved = |write| SavedQuery {
            name: "q".into(),
            connection: "crm".into(),
            sql: "select :a, :b".into(),
            params: Map::from_iter([("a".into(), json!(1)), ("b".into(), json!(2))]),
            write,
            rows: Some(5),
            created: Time(0),
            changed: Time(0),
            by: "ann".into(),
        };
        let check = |write: bool, input: Value, expected: Value| {
            let Value::Object(input) = input else { panic!("an object") };
            let mut whole =
                json!({"connection": "crm", "sql": "select :a, :b", "max_rows": 5, "params": {"a": 1, "b": 2}});
            whole.as_object_mut().unwrap().extend(expected.as_object().unwrap().clone());
            assert_eq!(saved(write).input(input), whole);
        };
        check(false, json!({"saved": "q"}), json!({}));
        check(true, json!({"saved": "q", "max_rows": 7}), json!({"write": true, "max_rows": 7}));
        check(false, json!({"saved": "q", "write": true}), json!({"write": true}));
        check(
            false,
            json!({"saved": "q", "params": {"b": "x", "c": 3}}),
            json!({"params": {"a": 1, "b": "x", "c": 3}}),
        );
        check(false, json!({"saved": "q", "params": [9]}), json!({"params": [9]}));
    }
}
