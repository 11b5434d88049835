//! Computes the definition's `vars`, once: when the run starts.
//!
//! The values are a payload of the run, so folding its log and retrying its steps read what was computed then.

use super::Planner;
use crate::event::{Failure, TimerKind};
use crate::expr::{Found, Names, Path, Var, walk};
use crate::fact::Fact;
use crate::run::{RunStatus, View};
use crate::value::{ValueId, check_size};
use serde_json::{Map, Value};
use std::sync::Arc;

/// What a var may read: the run as it starts, and the vars before it.
struct Known<'a> {
    view: View<'a>,
    vars: Value,
}

impl Names for Known<'_> {
    fn find<'a>(&'a self, path: &Path) -> Found<'a> {
        match path.var {
            Var::Vars => walk(&self.vars, path.rest()).into(),
            _ => self.view.find(path),
        }
    }

    fn spend(&self, bytes: usize) {
        self.view.spend(bytes);
    }
}

impl Planner<'_> {
    /// `None` if the definition has no vars.
    pub(super) fn vars(&mut self) -> Result<Option<ValueId>, Failure> {
        if self.graph.vars.is_empty() {
            return Ok(None);
        }
        let mut known = Known { view: self.view(0), vars: Map::new().into() };
        for (name, template) in &self.graph.vars {
            let resolved = template
                .resolve(&known)
                .map_err(|missing| Failure::new("template_error", format!("vars.{name} has no value: {missing}")))?;
            known.vars[&**name] = Arc::unwrap_or_clone(resolved.value);
        }
        let vars = known.vars;
        check_size(&vars)?;
        Ok(Some(self.add(Arc::new(vars))))
    }

    /// Records that the run starts or goes on. Vars without a value end it.
    pub(super) fn begin(&mut self, vars: Result<Option<ValueId>, Failure>, fact: impl FnOnce(Option<ValueId>) -> Fact) {
        let (vars, failure) = match vars {
            Ok(vars) => (vars, None),
            Err(failure) => (None, Some(failure)),
        };
        self.fact(fact(vars));
        if let Some(expires) = self.run.expires {
            self.set_timer(None, TimerKind::Expire, expires);
        }
        if failure.is_some() {
            self.end_run(RunStatus::Failed, failure, None);
        }
    }
}
