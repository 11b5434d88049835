//! What a definition uses and the organisation does not have: tools and their arguments, connections, saved queries,
//! child workflows, secrets, approvers. It may be there before the workflow runs, so these are warnings.

use super::Workflows;
use crate::access::{Right, Role, User};
use crate::error::Error;
use crate::execute::Missing;
use crate::records::{body, by_name};
use crate::secrets::Secret;
use crate::workflows::{Checked, SavedQuery};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;
use stepwell_core::graph::{Call, Kind, Step};
use stepwell_core::nearest::nearest;
use stepwell_core::quote::quote;
use stepwell_core::template::Template;
use stepwell_formats::{Fault, Passage, code};

/// Time limit for looking everything up.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Warnings with a line and column, for each of which the document is read again.
const MAX_POINTED: usize = 20;
/// In place of parameters that only a run knows.
const UNKNOWN: &str = "unknown";

impl Workflows<'_> {
    /// What the steps of a definition use and the organisation does not have. Empty if that cannot be found out in time.
    /// Needs the right to read.
    pub async fn missing(&self, checked: &Checked) -> Result<Vec<Fault>, Error> {
        self.caller.check(Right::Read)?;
        let found = tokio::time::timeout(TIMEOUT, self.find_missing(checked)).await;
        found.unwrap_or_else(|_| Ok(Vec::new()))
    }

    async fn find_missing(&self, checked: &Checked) -> Result<Vec<Fault>, Error> {
        let mut faults = Vec::new();
        for step in &checked.definition.graph.steps {
            for (value, message) in self.missing_for(step, &checked.definition.name).await? {
                let fault = Fault::of(code::MISSING_HERE, step.def.name.to_string(), message).warning();
                let passage = Passage { text: &value, line: 1, column: 1 };
                faults.push(if faults.len() < MAX_POINTED { fault.in_text(&checked.text, passage) } else { fault });
            }
        }
        Ok(faults)
    }

    /// Values of a step that name what is missing, with a message about each.
    async fn missing_for(&self, step: &Step, own_name: &str) -> Result<Vec<(String, String)>, Error> {
        match &step.def.kind {
            Kind::Child { workflow, .. } if **workflow != *own_name => self.missing_workflow(workflow).await,
            Kind::Call { call, input } => {
                let mut missing = self.missing_secrets(input).await?;
                let known = input.known();
                if let Some(saved) = known.get("saved").and_then(Value::as_str).filter(|_| *call == Call::Query) {
                    missing.extend(self.missing_query(saved, &known).await?);
                } else if let Some(kind) = self.rooms.executor.kinds.get(call.name()) {
                    let value = |field: &str| known.get(field).and_then(Value::as_str).unwrap_or_default().to_string();
                    let pair = |Missing { field, message }| (value(field), message);
                    missing.extend(kind.missing(self.caller.org, &known).await.into_iter().map(pair));
                }
                Ok(missing)
            }
            Kind::Gate(gate) => self.missing_people(&gate.ask.known()).await,
            _ => Ok(Vec::new()),
        }
    }

    async fn missing_workflow(&self, name: &str) -> Result<Vec<(String, String)>, Error> {
        let (store, org) = (&*self.rooms.cluster.store, self.caller.org);
        if store.find_definition(org, name).await?.is_some() {
            return Ok(Vec::new());
        }
        let all = store.definitions(org).await?;
        let near = nearest(name, all.iter().map(|row| row.name.as_str()));
        let hint = near.map(|near| format!("; did you mean {}?", quote(near))).unwrap_or_default();
        Ok(vec![(name.to_string(), format!("there is no workflow {}{hint}", quote(name)))])
    }

    async fn missing_secrets(&self, input: &Template) -> Result<Vec<(String, String)>, Error> {
        let paths = input.exprs().flat_map(|expr| expr.paths());
        let names: BTreeSet<&str> =
            paths.filter(|path| path.key(0) == Some("secrets")).filter_map(|path| path.key(1)).collect();
        let mut missing = Vec::new();
        for name in names {
            if by_name::<Secret>(&*self.rooms.cluster.store, self.caller.org, name).await?.is_none() {
                missing.push((name.to_string(), format!("there is no secret {}", quote(name))));
            }
        }
        Ok(missing)
    }

    /// The users and roles that a gate names.
    async fn missing_people(&self, ask: &Value) -> Result<Vec<(String, String)>, Error> {
        let mut names: BTreeSet<&str> = BTreeSet::new();
        for field in ["approvers", "escalate_to", "notify"] {
            match &ask[field] {
                Value::String(name) => drop(names.insert(name)),
                Value::Array(several) => names.extend(several.iter().filter_map(Value::as_str)),
                _ => {}
            }
        }
        let (store, org) = (&*self.rooms.cluster.store, self.caller.org);
        let mut missing = Vec::new();
        for name in names {
            let role = name.strip_prefix("role:");
            let user = role.is_none() && by_name::<User>(store, org, name).await?.is_some();
            if !user && by_name::<Role>(store, org, role.unwrap_or(name)).await?.is_none() {
                missing.push((name.to_string(), format!("there is no user or role {}", quote(name))));
            }
        }
        Ok(missing)
    }

    /// Whether the saved query is there, and what it needs and this step does not give it.
    async fn missing_query(&self, name: &str, known: &Value) -> Result<Vec<(String, String)>, Error> {
        let Some(found) = by_name::<SavedQuery>(&*self.rooms.cluster.store, self.caller.org, name).await? else {
            return Ok(vec![(name.to_string(), format!("there is no saved query {}", quote(name)))]);
        };
        let Some(kind) = self.rooms.executor.kinds.get(Call::Query.name()) else { return Ok(Vec::new()) };
        let mut input = known.as_object().cloned().unwrap_or_default();
        // A template may have any value, so the defaults of the saved query are not all there is.
        if let Some(params @ Value::Null) = input.get_mut("params") {
            *params = UNKNOWN.into();
        }
        let missing = kind.missing(self.caller.org, &body::<SavedQuery>(&found)?.input(input)).await;
        let saved =
            |missing: Missing| (name.to_string(), format!("the saved query {}: {}", quote(name), missing.message));
        Ok(missing.into_iter().map(saved).collect())
    }
}
