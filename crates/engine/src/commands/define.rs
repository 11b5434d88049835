//! Definitions: store the next version of a workflow, list them, find one.

use super::change::{auth, settled};
use super::{Caller, Right};
use crate::definitions::{Compiled, code};
use crate::engine::{Engine, Inner};
use crate::error::Error;
use crate::people::{Kept, body};
use crate::switches::Switches;
use crate::{plans, triggers};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use stepwell_core::definition::Definition;
use stepwell_core::graph::{Call, Kind};
use stepwell_formats::{Fault, Faults};
use stepwell_store::{Auth, Change, DefinitionRow, NewDefinition, Record, RecordChange};

/// How long the code of a definition is looked at.
const LOOK: Duration = Duration::from_secs(10);

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

/// The version that was to be the newest is not.
struct Outdated;

impl Engine {
    /// Checks a definition and makes it the newest version of its workflow.
    pub async fn define(&self, caller: &Caller, source: Source<'_>) -> Result<Defined, Error> {
        self.define_after(caller, source, None).await
    }

    /// The same, refused unless this version is the newest one before; 0 if there must be none.
    pub async fn define_after(
        &self,
        caller: &Caller,
        source: Source<'_>,
        after: Option<u32>,
    ) -> Result<Defined, Error> {
        caller.check(Right::Define)?;
        let definition = check(&self.inner, source)?;
        check_code(&self.inner, &definition).await?;
        settled(|| self.define_once(caller, source, (&definition, after)))
            .await?
            .map_err(|Outdated| Error::Changed("workflow"))
    }

    /// An answer that is not worth asking again for is the inner one.
    async fn define_once(
        &self,
        caller: &Caller,
        source: Source<'_>,
        (definition, after): (&Definition, Option<u32>),
    ) -> Result<Result<Defined, Outdated>, Error> {
        // Two who make workflows at the same time must not both be the last that the plan allows.
        let decided = auth(&self.inner, caller.org).await?;
        plans::check_definition(&self.inner, caller.org, definition).await?;
        let before = self.inner.store.find_definition(caller.org, &definition.name).await?;
        let before = before.filter(|before| before.name == definition.name);
        if let Some(same) = before.as_ref().filter(|before| before.source == source.text) {
            let compiled = self.inner.definitions.keep(same.clone())?;
            return Ok(Ok(Defined { compiled, changed: false }));
        }
        let newest = before.as_ref().map_or(0, |before| before.version);
        match after {
            Some(0) if newest != 0 => return Err(Error::Exists { what: "workflow", name: definition.name.clone() }),
            Some(after) if newest != after => return Ok(Err(Outdated)),
            _ => {}
        }
        let compiled = self.next_version(caller, (definition, source.text), before.as_ref(), decided).await?;
        Ok(Ok(Defined { compiled, changed: true }))
    }

    /// Stores a version together with what its triggers need.
    async fn next_version(
        &self,
        caller: &Caller,
        (definition, text): (&Definition, &str),
        before: Option<&DefinitionRow>,
        decided: Auth,
    ) -> Result<Arc<Compiled>, Error> {
        let inner = &self.inner;
        let at = inner.clock.now();
        let workflow = before.map_or_else(|| inner.ids.public("wf", at), |before| before.workflow.clone());
        let after = Some(before.map_or(0, |before| before.version));
        let mut records = triggers::sync(inner, caller.org, &workflow, definition).await?;
        records.extend(self.reset_switch(&workflow, definition, before).await?);
        let version = before.map_or(1, |before| before.version + 1);
        let detail = json!({"id": workflow, "version": version});
        let with = Change {
            records,
            audit: vec![caller.audit(at, "workflow.define", &definition.name, detail)],
            grants_of: Some(caller.org),
            decided: Some(decided),
        };
        let new = NewDefinition { after, ..new_row(inner, caller, definition, (text, workflow)) };
        let (write, org) = (inner.clone(), caller.org);
        // Known to this process even if whoever asked does not wait for the answer.
        let stored = tokio::spawn(async move {
            let stored = write.store.define(new, with).await;
            write.epoch_moved(org);
            stored
        });
        let stored = stored.await.map_err(|_| Error::Unavailable("the engine is stopping".into()))??;
        let compiled = inner.definitions.keep(stored.map_err(|_| Error::Changed("workflow"))?)?;
        inner.rescheduled.notify_one();
        Ok(compiled)
    }

    /// A version that says otherwise than the one before whether the workflow is enabled is believed.
    async fn reset_switch(
        &self,
        workflow: &str,
        definition: &Definition,
        before: Option<&DefinitionRow>,
    ) -> Result<Option<RecordChange>, Error> {
        let Some(before) = before else { return Ok(None) };
        let was = self.inner.definitions.get(&*self.inner.store, before.id).await?;
        if was.definition.enabled == definition.enabled {
            return Ok(None);
        }
        let Some(record) = self.inner.store.record(Switches::KIND, workflow).await? else { return Ok(None) };
        let switches = Switches { enabled: None, ..body(&record)? };
        Ok(Some(RecordChange::Replace(Record { body: crate::record::json(&switches), ..record })))
    }

    /// Says everything that is wrong with a definition.
    pub async fn check(&self, source: Source<'_>) -> Result<(), Error> {
        check_code(&self.inner, &check(&self.inner, source)?).await
    }

    /// Looks at a definition without keeping it; gives its name.
    pub fn name_of(&self, source: Source<'_>) -> Result<String, Error> {
        check(&self.inner, source).map(|definition| definition.name)
    }

    /// The newest version, for those who may change or start it but not look at everything.
    pub async fn workflow_for(&self, caller: &Caller, name: &str) -> Result<Arc<Compiled>, Error> {
        let any = [Right::Define, Right::Run, Right::Read].into_iter().any(|right| caller.may(right));
        if any {
            self.newest(caller, name).await
        } else {
            caller.check(Right::Read).and(self.newest(caller, name).await)
        }
    }

    /// The newest version, for those whose right to it was checked.
    pub(super) async fn newest(&self, caller: &Caller, workflow: &str) -> Result<Arc<Compiled>, Error> {
        self.inner.definitions.newest(&self.inner, caller.org, workflow).await
    }

    pub async fn workflows(&self, caller: &Caller) -> Result<Vec<DefinitionRow>, Error> {
        caller.check(Right::Read)?;
        Ok(self.inner.store.definitions(caller.org).await?)
    }

    /// The newest version of a workflow.
    pub async fn workflow(&self, caller: &Caller, name: &str) -> Result<Arc<Compiled>, Error> {
        caller.check(Right::Read)?;
        self.inner.definitions.newest(&self.inner, caller.org, name).await
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

/// Refuses code that cannot be read. Nothing is said of it if that cannot be found out now.
pub(super) async fn check_code(inner: &Inner, definition: &Definition) -> Result<(), Error> {
    let Some(kind) = inner.kinds.get(Call::Javascript.name()) else { return Ok(()) };
    let mut faults = Vec::new();
    let look = async {
        for (path, input) in code(definition) {
            if let Err(message) = kind.check(input).await {
                faults.push(Fault::of(stepwell_formats::code::BAD_CODE, path, message));
            }
        }
    };
    // What is left then is seen when it runs.
    let _ = tokio::time::timeout(LOOK, look).await;
    if faults.is_empty() { Ok(()) } else { Err(Error::Definition(Faults::of(faults, 0))) }
}

/// Keeps a definition for one test run.
pub(super) async fn keep_for_test(
    inner: &Inner,
    caller: &Caller,
    definition: &Definition,
    text: &str,
) -> Result<Arc<Compiled>, Error> {
    let workflow = inner.ids.public("wf", inner.clock.now());
    let row = NewDefinition { test: true, ..new_row(inner, caller, definition, (text, workflow)) };
    match inner.store.define(row, Change::default()).await? {
        Ok(row) => inner.definitions.keep(row),
        Err(refused) => Err(Error::Unavailable(refused.to_string())),
    }
}

fn new_row(inner: &Inner, caller: &Caller, definition: &Definition, (text, workflow): (&str, String)) -> NewDefinition {
    NewDefinition {
        workflow,
        org: caller.org,
        name: definition.name.clone(),
        source: text.to_string(),
        by: caller.name.to_string(),
        author: caller.actor().to_string(),
        at: inner.clock.now(),
        test: false,
        after: None,
    }
}
