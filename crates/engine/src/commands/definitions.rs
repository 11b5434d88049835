//! Definitions: checking one, and storing the next version of a workflow.

use super::Workflows;
use super::change::{current_auth, retry_on_conflict};
use super::input::check_text;
use crate::access::{Caller, Right, Switches};
use crate::error::Error;
use crate::execute::Kinds;
use crate::records::{Kept, With, body, json as json_text, read};
use crate::rooms::Rooms;
use crate::triggers;
use crate::workflows::{Checked, Compiled, Review, code};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use stepwell_core::definition::Definition;
use stepwell_core::graph::{Call, Kind};
use stepwell_core::time::Time;
use stepwell_formats::{Fault, Faults, Passage};
use stepwell_store::{Auth, Change, DefinitionRow, NewDefinition, Record, RecordChange};

/// Time limit for checking the code of a definition.
const CODE_CHECK_TIMEOUT: Duration = Duration::from_secs(10);

/// A definition as its author wrote it.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    pub text: &'a str,
    /// The extension selects JSON or YAML. Without one, the format is detected from the text.
    pub file: Option<&'a str>,
}

/// The result of defining a workflow.
#[derive(Clone, Debug)]
pub struct Defined {
    pub compiled: Arc<Compiled>,
    /// False if the newest version has the same text.
    pub changed: bool,
    /// The review of what an agent's key wrote. If it proposes a version, `compiled` is the current one.
    pub review: Option<With<Review>>,
    /// What is suspicious in the definition.
    pub warnings: Vec<Fault>,
    /// The workflow of the same name that was deleted last, if this one is new: its id, and when it was deleted.
    pub before: Option<(String, Time)>,
}

/// How a definition is stored.
#[derive(Clone, Default, Debug)]
pub struct Defining {
    /// Refused unless this is the newest version so far; 0 if there must be none.
    pub after: Option<u32>,
    /// Why, for those who review it.
    pub reason: Option<String>,
}

/// The expected newest version is not the newest one.
struct Outdated;

/// A version to store.
pub(super) struct NextVersion<'v> {
    pub checked: &'v Checked,
    pub before: Option<&'v DefinitionRow>,
    /// The user who wrote it, and the actor whose rights limit it.
    pub by: String,
    pub author: String,
    /// Whether a person answers for it.
    pub accepted: bool,
    pub records: Vec<RecordChange>,
    pub action: &'static str,
    pub detail: Value,
    pub decided: Auth,
}

/// What came of a definition: the current version, whether this call changed anything, and the review if there is one.
type Stored = (DefinitionRow, bool, Option<With<Review>>);

impl Workflows<'_> {
    /// Checks a definition and stores it as the newest version of its workflow. What an agent's key writes is reviewed:
    /// a version of a workflow whose current version is accepted is only proposed. Needs the right to define.
    pub async fn define(&self, source: Source<'_>) -> Result<Defined, Error> {
        self.define_as(source, Defining::default()).await
    }

    /// Like [`Workflows::define`], with more to say about it.
    pub async fn define_as(&self, source: Source<'_>, defining: Defining) -> Result<Defined, Error> {
        self.caller.check(Right::Define)?;
        let checked = self.check(source).await?;
        self.define_checked(checked, defining).await
    }

    /// Like [`Workflows::define_as`], for a definition that has been checked.
    pub async fn define_checked(&self, checked: Checked, defining: Defining) -> Result<Defined, Error> {
        self.caller.check(Right::Define)?;
        check_text("reason", defining.reason.as_deref())?;
        let (row, changed, review) = retry_on_conflict(|| self.define_once(&checked, &defining))
            .await?
            .map_err(|Outdated| Error::Changed("workflow"))?;
        let before = match changed && row.version == 1 {
            true => self.rooms.cluster.store.deleted(self.caller.org, Some(&row.name)).await?.into_iter().next(),
            false => None,
        };
        let before = before.map(|(before, at)| (before.workflow, at));
        let warnings = checked.warnings.clone();
        let compiled = match row.source == checked.text {
            true => self.rooms.workflows.insert(row, checked),
            false => self.rooms.workflows.compile(row)?,
        };
        Ok(Defined { compiled, changed, review, warnings, before })
    }

    /// Makes all checks of [`Workflows::define`] and stores nothing. Needs the right to define.
    pub async fn check_only(&self, source: Source<'_>) -> Result<Checked, Error> {
        self.caller.check(Right::Define)?;
        let checked = self.check_named(source).await?;
        self.rooms.access.check_definition(self.caller.org, &checked.definition).await?;
        Ok(checked)
    }

    /// Like [`Workflows::check`], and refuses a tool whose name another tool of the organisation has. Needs the right to
    /// read, because the fault names the other tool.
    pub async fn check_named(&self, source: Source<'_>) -> Result<Checked, Error> {
        self.caller.check(Right::Read)?;
        let checked = self.check(source).await?;
        let before = self.rooms.cluster.store.find_definition(self.caller.org, &checked.definition.name).await?;
        let workflow = before.filter(|before| before.name == checked.definition.name).map(|before| before.workflow);
        self.check_tool_name(workflow.as_deref(), &checked.definition).await?;
        Ok(checked)
    }

    /// Reads a definition and reports all faults. Needs no right.
    pub async fn check(&self, source: Source<'_>) -> Result<Checked, Error> {
        let checked = check(self.rooms, source)?;
        check_parts(self.rooms, &checked).await?;
        Ok(checked)
    }

    /// The stored version, and whether it is new. Only the outer error may be retried.
    async fn define_once(&self, checked: &Checked, defining: &Defining) -> Result<Result<Stored, Outdated>, Error> {
        let definition = &checked.definition;
        // Of two concurrent calls only one may create the last workflow that the plan allows.
        let decided = current_auth(self.rooms, self.caller.org).await?;
        self.rooms.access.check_definition(self.caller.org, definition).await?;
        let before = self.rooms.cluster.store.find_definition(self.caller.org, &definition.name).await?;
        let before = before.filter(|before| before.name == definition.name);
        if let Some(same) = before.as_ref().filter(|before| before.source == checked.text) {
            let review = self.rooms.workflows.review_of(same).await?.as_ref().map(read).transpose()?;
            return Ok(Ok((same.clone(), false, review)));
        }
        let newest = before.as_ref().map_or(0, |before| before.version);
        match defining.after {
            Some(0) if newest != 0 => return Err(Error::Exists { what: "workflow", name: definition.name.clone() }),
            Some(after) if newest != after => return Ok(Err(Outdated)),
            _ => {}
        }
        self.check_tool_name(before.as_ref().map(|before| &*before.workflow), definition).await?;
        let mut next = NextVersion {
            checked,
            before: before.as_ref(),
            by: self.caller.name.to_string(),
            author: self.caller.actor().to_string(),
            accepted: !self.caller.grants.is_agent(),
            records: Vec::new(),
            action: "workflow.define",
            detail: defining.reason.as_ref().map_or_else(|| json!({}), |reason| json!({"reason": reason})),
            decided,
        };
        if !self.caller.grants.is_agent() {
            return Ok(Ok((self.next_version(self.new_id(), next).await?, true, None)));
        }
        if let Some(current) = &before
            && self.rooms.workflows.reviewed(current).await?.is_accepted()
        {
            let (review, changed) = self.propose(checked, current, defining, next.decided).await?;
            return Ok(Ok((current.clone(), changed, Some(review))));
        }
        let id = before.as_ref().map_or_else(|| self.new_id(), |before| before.workflow.clone());
        let review = self.new_review(&id, Some(newest + 1), checked, defining).await?;
        next.records.push(RecordChange::Create(review.is.record(self.caller.org, review.id.clone())));
        Ok(Ok((self.next_version(id, next).await?, true, Some(review))))
    }

    /// Stores a version together with the records of its triggers. `id` is for a workflow that does not exist yet.
    pub(super) async fn next_version(&self, id: String, next: NextVersion<'_>) -> Result<DefinitionRow, Error> {
        let NextVersion { checked, before, by, author, accepted, mut records, action, mut detail, decided } = next;
        let definition = &checked.definition;
        let at = self.rooms.cluster.clock.now();
        let workflow = before.map_or(id, |before| before.workflow.clone());
        let after = Some(before.map_or(0, |before| before.version));
        records.extend(triggers::sync(&self.rooms.triggers, self.caller.org, &workflow, definition).await?);
        records.extend(self.reset_switch(&workflow, definition, before).await?);
        let version = before.map_or(1, |before| before.version + 1);
        records.extend(self.claim(&workflow, version, definition, accepted).await?);
        (detail["id"], detail["version"]) = (json!(workflow), json!(version));
        let update = Change {
            records,
            audit: vec![self.caller.audit(at, action, &definition.name, detail)],
            grants_of: Some(self.caller.org),
            decided: Some(decided),
        };
        let new = NewDefinition { after, by, author, ..new_row(self.rooms, self.caller, checked, workflow) };
        let (access, org) = (self.rooms.access.clone(), self.caller.org);
        // In a task of its own: the cached epoch is dropped even if the caller does not wait for the result.
        let stored = tokio::spawn(async move {
            let stored = access.cluster.store.define(new, update).await;
            access.epoch_moved(org);
            stored
        });
        let stored = stored.await.map_err(|_| Error::Unavailable("the engine is stopping".into()))??;
        self.rooms.triggers.rescheduled.notify_one();
        stored.map_err(|_| Error::Changed("workflow"))
    }

    fn new_id(&self) -> String {
        self.rooms.cluster.ids.public("wf", self.rooms.cluster.clock.now())
    }

    /// Resets the switch if this version changes `enabled`.
    async fn reset_switch(
        &self,
        workflow: &str,
        definition: &Definition,
        before: Option<&DefinitionRow>,
    ) -> Result<Option<RecordChange>, Error> {
        let Some(before) = before else { return Ok(None) };
        let was = self.rooms.workflows.version(before.id).await?;
        if was.definition.enabled == definition.enabled {
            return Ok(None);
        }
        let Some(record) = self.rooms.cluster.store.record(Switches::KIND, workflow).await? else { return Ok(None) };
        let switches = Switches { enabled: None, ..body(&record)? };
        Ok(Some(RecordChange::Replace(Record { body: json_text(&switches), ..record })))
    }
}

/// Reads a definition, and refuses step kinds that this process cannot execute.
pub(super) fn check(rooms: &Rooms, source: Source<'_>) -> Result<Checked, Error> {
    let stepwell_formats::Checked { definition, warnings } =
        stepwell_formats::check(source.text.as_bytes(), source.file);
    let definition = definition.map_err(Error::Definition)?;
    for step in &definition.graph.steps {
        if let Kind::Call { call, .. } = &step.def.kind
            && rooms.executor.kinds.get(call.name()).is_none()
        {
            let known = rooms.executor.kinds.names().collect::<Vec<_>>().join(", ");
            let message = format!("steps of kind {} cannot be executed here (known: {known})", call.name());
            return Err(Error::Input { path: step.def.name.to_string(), message });
        }
    }
    let mut checked = Checked::new(definition, source.text);
    checked.warnings = warnings;
    Ok(checked)
}

/// Refuses schemas and code that do not compile. Code that cannot be checked in time is accepted, and fails when it runs.
pub(super) async fn check_parts(rooms: &Rooms, checked: &Checked) -> Result<(), Error> {
    checked.check_schemas().await?;
    let faults = check_code(&rooms.executor.kinds, &checked.definition, &checked.text).await;
    if faults.is_empty() { Ok(()) } else { Err(Error::Definition(Faults::of(faults, 0))) }
}

/// Code of a definition that does not compile, with its place in the text of the definition.
pub async fn check_code(kinds: &Kinds, definition: &Definition, text: &str) -> Vec<Fault> {
    let Some(kind) = kinds.get(Call::Javascript.name()) else { return Vec::new() };
    let mut faults = Vec::new();
    let compile = async {
        for (path, input) in code(definition) {
            if let Err(message) = kind.check(input).await {
                let code = input.get("code").and_then(Value::as_str).unwrap_or_default();
                let (line, column) = place(&message).unwrap_or((1, 1));
                let fault = Fault::of(stepwell_formats::code::BAD_CODE, path, message);
                faults.push(fault.in_text(text, Passage { text: code, line, column }));
            }
        }
    };
    let _ = tokio::time::timeout(CODE_CHECK_TIMEOUT, compile).await;
    faults
}

/// The line and column with which a message about code ends: `… (2:7)`.
fn place(message: &str) -> Option<(usize, usize)> {
    let (_, place) = message.strip_suffix(')')?.rsplit_once('(')?;
    let (line, column) = place.split_once(':')?;
    Some((line.parse().ok()?, column.parse().ok()?))
}

/// Stores a definition for one test run.
pub(super) async fn store_for_test(rooms: &Rooms, caller: &Caller, checked: Checked) -> Result<Arc<Compiled>, Error> {
    let workflow = rooms.cluster.ids.public("wf", rooms.cluster.clock.now());
    let row = NewDefinition { test: true, ..new_row(rooms, caller, &checked, workflow) };
    match rooms.cluster.store.define(row, Change::default()).await? {
        Ok(row) => Ok(rooms.workflows.insert(row, checked)),
        Err(refused) => Err(Error::Unavailable(refused.to_string())),
    }
}

fn new_row(rooms: &Rooms, caller: &Caller, checked: &Checked, workflow: String) -> NewDefinition {
    NewDefinition {
        workflow,
        org: caller.org,
        name: checked.definition.name.clone(),
        source: checked.text.clone(),
        by: caller.name.to_string(),
        author: caller.actor().to_string(),
        at: rooms.cluster.clock.now(),
        test: false,
        after: None,
    }
}
