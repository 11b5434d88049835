//! Definitions: store the next version of a workflow, list them, find one.

use super::{Caller, Right};
use crate::definitions::Compiled;
use crate::engine::{Engine, Inner};
use crate::error::Error;
use std::sync::Arc;
use stepwell_core::definition::Definition;
use stepwell_core::graph::Kind;
use stepwell_store::{DefinitionRow, NewDefinition};

/// A definition as its author wrote it.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    pub text: &'a str,
    /// Its ending says whether the text is JSON or YAML; without one the text itself does.
    pub file: Option<&'a str>,
}

#[derive(Clone, Debug)]
pub struct Defined {
    pub compiled: Arc<Compiled>,
    /// False if the newest version was the same.
    pub changed: bool,
}

impl Engine {
    /// Checks a definition and makes it the newest version of its workflow.
    pub async fn define(&self, caller: &Caller, source: Source<'_>) -> Result<Defined, Error> {
        caller.check(Right::Define)?;
        let definition = check(&self.inner, source)?;
        let before = self.inner.store.find_definition(caller.org, &definition.name).await?;
        let compiled = keep(&self.inner, caller, &definition, source.text, false).await?;
        self.inner.definitions.is_newest(&compiled);
        Ok(Defined { changed: before.is_none_or(|before| before.id != compiled.row.id), compiled })
    }

    pub async fn workflows(&self, caller: &Caller) -> Result<Vec<DefinitionRow>, Error> {
        caller.check(Right::Read)?;
        Ok(self.inner.store.definitions(caller.org).await?)
    }

    /// The newest version of a workflow.
    pub async fn workflow(&self, caller: &Caller, name: &str) -> Result<Arc<Compiled>, Error> {
        caller.check(Right::Read)?;
        self.inner.definitions.newest(&*self.inner.store, caller.org, name).await
    }
}

pub(super) fn check(inner: &Inner, source: Source<'_>) -> Result<Definition, Error> {
    let definition = stepwell_formats::read(source.text.as_bytes(), source.file).map_err(Error::Definition)?;
    for step in &definition.graph.steps {
        if let Kind::Call { call, .. } = &step.def.kind
            && inner.kinds.get(call.name()).is_none()
        {
            let known = inner.kinds.names().collect::<Vec<_>>().join(", ");
            let message = format!("steps of kind {} cannot be executed here (known: {known})", call.name());
            return Err(Error::Input { path: step.def.name.to_string(), message });
        }
    }
    crate::definitions::schema(&definition)?;
    Ok(definition)
}

pub(super) async fn keep(
    inner: &Inner,
    caller: &Caller,
    definition: &Definition,
    text: &str,
    test: bool,
) -> Result<Arc<Compiled>, Error> {
    let at = inner.clock.now();
    let row = NewDefinition {
        workflow: inner.ids.public("wf", at),
        org: caller.org,
        name: definition.name.clone(),
        source: text.to_string(),
        by: caller.name.to_string(),
        at,
        test,
    };
    let row = inner.store.define(row).await?;
    inner.definitions.keep(row)
}
