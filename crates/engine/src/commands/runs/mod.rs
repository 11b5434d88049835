//! Runs: starting them, controlling them, reading them.

mod bulk;
mod control;
mod payloads;
#[cfg(test)]
mod quarantine;
mod read;
mod view;

pub use bulk::BulkOutcome;
pub use control::Retry;
pub use payloads::{StepPage, StepQuery};
pub use read::{EventPage, EventView, RunFilters, RunPage, RunQuery, RunSummary, page_size};
pub use view::{AttemptView, ChangedCall, How, ParentView, RunView, RunWarning, StartedBy, StepView};

pub(in crate::commands) use read::{find, find_with_right, load};
pub(in crate::commands) use view::starter;

use super::change::run_audit;
use super::definitions::{check, check_parts, store_for_test};
use super::input::invalid;
use super::{Runs, Source};
use crate::access::Right;
use crate::error::Error;
use crate::run::start::{self, End, KEY_LIFE, Start, Started, start};
use crate::workflows::{Compiled, labels};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use stepwell_core::approval::digest;
use stepwell_core::time::{Millis, Time};
use stepwell_store::{NewAudit, UniqueKey};

/// Bytes of an idempotency key.
const MAX_KEY: usize = 255;

/// A request to start a run.
#[derive(Clone, Debug)]
pub struct Trigger<'a> {
    pub workflow: &'a str,
    pub input: Value,
    pub headers: Option<Value>,
    pub query: Option<Value>,
    /// Idempotency key: the same key with the same input starts only one run.
    pub key: Option<&'a str>,
    /// Labels in addition to the workflow's.
    pub labels: BTreeMap<String, String>,
    /// When the run begins, if not at once.
    pub when: Option<When>,
}

/// When a run begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    At(Time),
    After(Millis),
}

impl When {
    /// From the parameters `at` and `delay` of a request, of which it can have one.
    pub fn parse(at: Option<&str>, delay: Option<&str>) -> Result<Option<When>, Error> {
        match (at, delay) {
            (None, None) => Ok(None),
            (Some(_), Some(_)) => Err(invalid("at", "`at` and `delay` exclude each other")),
            (Some(at), None) => match Time::parse(at) {
                Some(at) => Ok(Some(When::At(at))),
                None => Err(invalid("at", &format!("{at:?} is not a time such as 2026-12-24T18:00:00Z"))),
            },
            (None, Some(delay)) => match Millis::parse(delay) {
                Some(delay) => Ok(Some(When::After(delay))),
                None => Err(invalid("delay", &format!("{delay:?} is not a duration such as 90m or 3d"))),
            },
        }
    }

    fn time(self, now: Time) -> Result<Time, Error> {
        let (name, at) = match self {
            When::At(at) => ("at", at),
            When::After(delay) => ("delay", now + delay.min(Millis(MAX_AHEAD.0 + 1))),
        };
        if at > now + MAX_AHEAD {
            return Err(invalid(name, "a run can be scheduled at most 5 years ahead"));
        }
        Ok(at)
    }
}

/// How far ahead a run can be scheduled.
const MAX_AHEAD: Millis = Millis(5 * 366 * Millis::DAY.0);

impl<'a> Trigger<'a> {
    pub fn new(workflow: &'a str, input: Value) -> Trigger<'a> {
        Trigger { workflow, input, headers: None, query: None, key: None, labels: BTreeMap::new(), when: None }
    }
}

impl Runs<'_> {
    /// Starts a run, or returns the run that the idempotency key has started. Needs the right to run.
    pub async fn trigger(&self, trigger: Trigger<'_>) -> Result<Started, Error> {
        let request = self.request(trigger).await?;
        start(&self.rooms.runner, request).await.map(|(started, _)| started)
    }

    /// Like [`Runs::trigger`], for a caller that waits for the end.
    pub async fn trigger_and_watch(&self, trigger: Trigger<'_>) -> Result<(Started, End), Error> {
        let request = Start { watch: true, ..self.request(trigger).await? };
        match start(&self.rooms.runner, request).await? {
            (started, Some(end)) => Ok((started, end)),
            (started, None) => {
                let end = start::end_of(&self.rooms.runner, started.id).await?;
                Ok((started, end))
            }
        }
    }

    async fn request(&self, trigger: Trigger<'_>) -> Result<Start, Error> {
        self.caller.check(Right::Run)?;
        if trigger.key.is_some_and(|key| key.is_empty() || key.len() > MAX_KEY) {
            return Err(invalid("idempotency_key", &format!("1 to {MAX_KEY} bytes are required")));
        }
        let epoch = self.rooms.access.epoch(self.caller.org).await?;
        let compiled = self.rooms.workflows.newest(self.caller.org, trigger.workflow).await?;
        let unique = trigger.key.map(|key| UniqueKey {
            scope: format!("trigger:{}", compiled.row.workflow),
            key: key.to_string(),
            digest: match trigger.when {
                None => digest(&trigger.input),
                Some(When::At(at)) => digest(&json!({"input": &trigger.input, "at": at.to_string()})),
                Some(When::After(delay)) => digest(&json!({"input": &trigger.input, "delay": delay.0})),
            },
            expires: Some(self.rooms.cluster.clock.now() + KEY_LIFE),
        });
        let labels = labels(&compiled, trigger.labels)?;
        let at = trigger.when.map(|when| when.time(self.rooms.cluster.clock.now())).transpose()?;
        let detail = match at {
            None => json!({"workflow": compiled.row.name}),
            Some(at) => json!({"workflow": compiled.row.name, "at": at.to_string()}),
        };
        let audit = run_audit(self.rooms, self.caller, "run.start", "", detail);
        let start_request = self.new_start(VersionToRun { compiled, epoch }, trigger.input, audit);
        let (headers, query) = (trigger.headers.map(Arc::new), trigger.query.map(Arc::new));
        Ok(Start { headers, query, labels, unique, at, ..start_request })
    }

    /// Starts a test run of a definition that is not stored as a version, and needs no name. Needs the rights to define
    /// and to run.
    pub async fn test(&self, source: Source<'_>, input: Value) -> Result<Started, Error> {
        self.caller.check(Right::Define)?;
        self.caller.check(Right::Run)?;
        let named = named_for_test(source);
        let checked = check(self.rooms, Source { text: named.as_deref().unwrap_or(source.text), ..source })?;
        check_parts(self.rooms, &checked).await?;
        let input = Arc::new(input);
        checked.check_input(&input).await?;
        let epoch = self.rooms.access.epoch(self.caller.org).await?;
        self.rooms.access.check_steps(self.caller.org, &checked.definition).await?;
        let audit = run_audit(self.rooms, self.caller, "run.test", "", json!({"workflow": checked.definition.name}));
        let compiled = store_for_test(self.rooms, self.caller, checked).await?;
        let start_request = self.new_start(VersionToRun { compiled, epoch }, input, audit);
        start(&self.rooms.runner, Start { test: true, ..start_request }).await.map(|(started, _)| started)
    }

    /// Calls a tool as a run of one step.
    pub(super) async fn call(&self, version: VersionToRun, tool: &str, arguments: Value) -> Result<Started, Error> {
        let audit = run_audit(self.rooms, self.caller, "tool.call", "", json!({"tool": tool}));
        let labels = labels(&version.compiled, BTreeMap::new())?;
        let start_request = self.new_start(version, arguments, audit);
        start(&self.rooms.runner, Start { labels, ..start_request }).await.map(|(started, _)| started)
    }

    fn new_start(&self, version: VersionToRun, input: impl Into<Arc<Value>>, audit: Option<NewAudit>) -> Start {
        Start {
            epoch: version.epoch,
            compiled: version.compiled,
            input: input.into(),
            headers: None,
            query: None,
            by: self.caller.name.clone(),
            client: self.caller.client.clone(),
            acts_as: self.caller.actor().to_string(),
            labels: Vec::new(),
            unique: None,
            parent: None,
            test: false,
            at: None,
            watch: false,
            audit,
        }
    }
}

/// The name of a definition that is only tested and has none.
const UNNAMED: &str = "draft";

/// The definition with a name, if it has none. Its lines keep their numbers.
fn named_for_test(source: Source<'_>) -> Option<String> {
    let document = stepwell_formats::document(source.text.as_bytes(), source.file).ok()?;
    let fields = document.as_object().filter(|fields| !fields.contains_key("name") && !fields.is_empty())?;
    // The editor's name for it.
    if fields.contains_key("title") {
        return None;
    }
    let text = source.text;
    match text.trim_start().strip_prefix('{') {
        Some(rest) => {
            Some(format!("{}{{\"name\": \"{UNNAMED}\", {rest}", &text[..text.len() - text.trim_start().len()]))
        }
        None => Some(format!("{}\nname: {UNNAMED}\n", text.trim_end())),
    }
}

/// The version to run, and the epoch that was read before all data the start depends on.
pub(super) struct VersionToRun {
    pub compiled: Arc<Compiled>,
    pub epoch: i64,
}
