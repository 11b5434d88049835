//! What agents ask for beyond what people do: workflows that are tools, and why an answer of theirs was not taken.

use super::change::change;
use super::{Caller, Right};
use crate::definitions::Compiled;
use crate::engine::Engine;
use crate::error::Error;
use serde_json::{Value, json};
use std::sync::Arc;
use stepwell_store::{AuditFilter, Change};

/// The audit trail's word for an answer that was not taken.
const REFUSED: &str = "step.refuse";

/// Why an answer to a gate was not taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The gate's path.
    pub step: String,
    pub reason: String,
}

impl Engine {
    /// The workflows that ask to be tools and can be started now, by name.
    pub async fn exposed(&self, caller: &Caller) -> Result<Vec<Arc<Compiled>>, Error> {
        caller.check(Right::Run)?;
        let mut found = Vec::new();
        for row in self.inner.store.definitions(caller.org).await? {
            let compiled = self.inner.definitions.keep(row)?;
            if compiled.definition.expose_as_tool && self.workflow_state(&compiled).await?.enabled {
                found.push(compiled);
            }
        }
        Ok(found)
    }

    /// Writes down that an answer was not taken, for whoever gave it and could not be told at once.
    pub async fn note_refusal(&self, caller: &Caller, run: &str, refusal: Refusal) -> Result<(), Error> {
        super::look::find(&self.inner, caller, run).await?;
        let detail = json!({"step": refusal.step, "reason": refusal.reason});
        let audit = vec![caller.audit(self.inner.clock.now(), REFUSED, run, detail)];
        change(&self.inner, Change { audit, ..Change::default() }, "audit trail", run).await
    }

    /// The last of the caller's answers to a run's gates that was not taken.
    pub async fn last_refusal(&self, caller: &Caller, run: &str) -> Result<Option<Refusal>, Error> {
        super::look::find(&self.inner, caller, run).await?;
        let filter = AuditFilter {
            org: caller.org,
            by: Some(caller.name.to_string()),
            action: Some(REFUSED.into()),
            target: Some(run.to_string()),
            before: None,
            limit: 1,
        };
        let row = self.inner.store.audit(filter).await?.into_iter().next();
        Ok(row.and_then(|row| {
            let detail: Value = serde_json::from_str(&row.row.detail).ok()?;
            let text = |name: &str| Some(detail[name].as_str()?.to_string());
            Some(Refusal { step: text("step")?, reason: text("reason")? })
        }))
    }
}
