//! Facts of the log as spans. The start of an attempt is cached from its own fact. For runs already in progress when
//! the exporter started, it is read from the store, once. The caches are bounded: entries can always be read again.

use std::collections::HashMap;
use std::sync::Arc;
use stepwell_core::event::Failure;
use stepwell_core::expr::StepIx;
use stepwell_core::fact::{Fact as LogFact, Reason};
use stepwell_core::graph::Graph;
use stepwell_core::run::{Row, RunStatus, Status, StoredFact};
use stepwell_core::time::Time;
use stepwell_engine::trace::{run_span, step_span, trace_id};
use stepwell_engine::{Error, LogReader};
use stepwell_store::{Fed, RunId, StepRow};

/// Number of attempts in progress that are cached.
const MAX_OPEN: usize = 100_000;
/// Number of runs that are cached.
const MAX_RUNS: usize = 20_000;
/// Number of workflow versions that are cached.
const MAX_WORKFLOWS: usize = 1_000;
/// Maximum length of an error message.
const MAX_MESSAGE: usize = 1_000;

/// A finished span.
#[derive(Clone, PartialEq, Debug)]
pub struct Span {
    pub trace: [u8; 16],
    pub id: [u8; 8],
    pub parent: Option<[u8; 8]>,
    /// The step of another run that started this one.
    pub link: Option<([u8; 16], [u8; 8])>,
    pub name: String,
    pub kind: SpanKind,
    pub start: Time,
    pub end: Time,
    pub error: Option<String>,
    pub attributes: Vec<(&'static str, Fact)>,
}

/// Numeric values of the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SpanKind {
    Internal = 1,
    Client = 3,
}

/// The value of an attribute.
#[derive(Clone, PartialEq, Debug)]
pub enum Fact {
    Text(String),
    Number(i64),
    Flag(bool),
}

impl From<&str> for Fact {
    fn from(text: &str) -> Fact {
        Fact::Text(text.into())
    }
}

/// The parts of a workflow version that spans need.
struct Workflow {
    name: String,
    version: u32,
    /// Kinds of steps by path, without iteration and item numbers.
    kinds: HashMap<String, &'static str>,
}

#[derive(Clone)]
struct Known {
    public: Arc<str>,
    org: i64,
    test: bool,
    workflow: Arc<Workflow>,
}

pub struct Collector {
    log: LogReader,
    workflows: HashMap<i64, Arc<Workflow>>,
    runs: HashMap<RunId, Known>,
    /// Start times of attempts, by run, path and attempt.
    open: HashMap<(RunId, String, u32), Time>,
}

/// A finished attempt.
struct Ended<'f> {
    path: &'f str,
    attempt: u32,
    start: Time,
    end: Time,
    status: &'static str,
    failure: Option<&'f Failure>,
    status_code: Option<u16>,
}

impl Collector {
    pub fn new(log: LogReader) -> Collector {
        Collector { log, workflows: HashMap::new(), runs: HashMap::new(), open: HashMap::new() }
    }

    /// The spans that end with these rows of the log.
    pub async fn collect(&mut self, rows: &[Fed]) -> Result<Vec<Span>, Error> {
        let mut spans = Vec::new();
        for row in rows {
            let facts: Vec<StoredFact> = match serde_json::from_str(&row.log.row.facts) {
                Ok(facts) => facts,
                Err(error) => {
                    tracing::warn!(run = row.public, %error, "cannot read a log row for traces");
                    continue;
                }
            };
            // A run purged in the meantime has no spans.
            if self.know(row, &facts).await? {
                for fact in &facts {
                    self.take(row, fact, &mut spans).await?;
                }
                if let Some(LogFact::Ended { .. }) = facts.last() {
                    self.runs.remove(&row.run);
                }
            }
        }
        Ok(spans)
    }

    /// Loads the data needed about the run of a row. Returns false if the run is gone.
    async fn know(&mut self, row: &Fed, facts: &[StoredFact]) -> Result<bool, Error> {
        if self.open.len() > MAX_OPEN || self.runs.len() > MAX_RUNS {
            self.open.clear();
            self.runs.clear();
        }
        if self.runs.contains_key(&row.run) {
            return Ok(true);
        }
        let Some(found) = self.log.run(row.run).await? else { return Ok(false) };
        let Some(workflow) = self.workflow(found.definition).await? else { return Ok(false) };
        if !matches!(facts.first(), Some(LogFact::Created { .. })) {
            // The store may be ahead of this row: attempts that have ended since had also started.
            let attempts = self.log.attempts(row.run).await?;
            let open = attempts.into_iter().filter(|step| step.ended.is_none_or(|ended| ended >= row.log.row.at));
            self.open.extend(open.map(|step| ((row.run, step.path, step.attempt), step.since)));
        }
        let known = Known { public: row.public.as_str().into(), org: row.org.0, test: found.test, workflow };
        self.runs.insert(row.run, known);
        Ok(true)
    }

    async fn workflow(&mut self, definition: i64) -> Result<Option<Arc<Workflow>>, Error> {
        if let Some(known) = self.workflows.get(&definition) {
            return Ok(Some(known.clone()));
        }
        let Some(row) = self.log.definition(definition).await? else { return Ok(None) };
        // JSON or YAML, and YAML may look like JSON at first. If it cannot be parsed, the kinds of steps are unknown.
        let read = |file| stepwell_formats::read(row.source.as_bytes(), file);
        let read = read(None).or_else(|_| read(Some("stored.yaml")));
        let kinds = read.map(|definition| kinds(&definition.graph)).unwrap_or_default();
        let workflow = Arc::new(Workflow { name: row.name, version: row.version, kinds });
        if self.workflows.len() >= MAX_WORKFLOWS {
            self.workflows.clear();
        }
        self.workflows.insert(definition, workflow.clone());
        Ok(Some(workflow))
    }

    async fn take(&mut self, row: &Fed, fact: &StoredFact, spans: &mut Vec<Span>) -> Result<(), Error> {
        let at = row.log.row.at;
        let Some(known) = self.runs.get(&row.run).cloned() else { return Ok(()) };
        match fact {
            LogFact::Entered { step, attempt, .. } => {
                self.open.insert((row.run, step.clone(), *attempt), at);
            }
            LogFact::Again { step, attempt, reason, .. } => {
                // Before a retry, the attempt has already ended.
                if !matches!(reason, Reason::Retry | Reason::Deferred)
                    && let Some(start) = self.open.remove(&(row.run, step.clone(), attempt.saturating_sub(1)))
                {
                    let attempt = attempt - 1;
                    let status = if *reason == Reason::Approved { "held" } else { "lost" };
                    let (path, failure, status_code) = (step.as_str(), None, None);
                    spans.push(known.attempt(Ended { path, attempt, start, end: at, status, failure, status_code }));
                }
                self.open.insert((row.run, step.clone(), *attempt), at);
            }
            LogFact::Retrying { step, attempt, failure, output, .. } => {
                let start = self.open.remove(&(row.run, step.clone(), *attempt)).unwrap_or(at);
                let status_code = output.and_then(|output| output.status_code);
                let (path, attempt, status, failure) = (step.as_str(), *attempt, "failed", Some(failure));
                spans.push(known.attempt(Ended { path, attempt, start, end: at, status, failure, status_code }));
            }
            LogFact::Finished { step, attempt, status, failure, output, .. } => {
                // A step that takes no time ends without a start.
                let start = self.open.remove(&(row.run, step.clone(), *attempt)).unwrap_or(at);
                let status_code = output.and_then(|output| output.status_code);
                let (path, attempt, status, failure) = (step.as_str(), *attempt, status.name(), failure.as_ref());
                spans.push(known.attempt(Ended { path, attempt, start, end: at, status, failure, status_code }));
            }
            LogFact::Ended { status, failure, .. } => {
                self.ended(row, (&known, *status, failure.as_ref()), spans).await?;
            }
            LogFact::Adopted { .. } => {
                let found = self.log.run(row.run).await?;
                if let Some(found) = found
                    && let Some(workflow) = self.workflow(found.definition).await?
                {
                    self.runs.insert(row.run, Known { workflow, ..known });
                }
            }
            LogFact::Created { .. }
            | LogFact::Scheduled { .. }
            | LogFact::Due
            | LogFact::Started { .. }
            | LogFact::Held { .. }
            | LogFact::Unsure { .. }
            | LogFact::Opened { .. }
            | LogFact::Closed { .. }
            | LogFact::Skipped { .. }
            | LogFact::Kept { .. }
            | LogFact::Approved { .. }
            | LogFact::Changed { .. }
            | LogFact::Escalated { .. }
            | LogFact::Overridden { .. }
            | LogFact::Retried { .. } => {}
        }
        Ok(())
    }

    /// The span of the run itself, and of attempts that its end cut off.
    async fn ended(
        &mut self,
        row: &Fed,
        (known, status, failure): (&Known, RunStatus, Option<&Failure>),
        spans: &mut Vec<Span>,
    ) -> Result<(), Error> {
        let at = row.log.row.at;
        if status != RunStatus::Completed {
            let attempts = self.log.attempts(row.run).await?;
            for step in attempts.iter().filter(|step| was_cut_off(step, at)) {
                self.open.remove(&(row.run, step.path.clone(), step.attempt));
                spans.push(known.attempt(Ended {
                    path: &step.path,
                    attempt: step.attempt,
                    start: step.since,
                    end: at,
                    status: Status::Cancelled.name(),
                    failure: None,
                    status_code: None,
                }));
            }
        }
        let Some(found) = self.log.run(row.run).await? else { return Ok(()) };
        let link = match found.parent {
            Some(parent) => self.log.run(parent.run).await?.map(|run| {
                let step = step_span(&run.public, &parent.path, parent.attempt);
                (trace_id(&run.public), step)
            }),
            None => None,
        };
        let mut attributes = known.attributes();
        attributes.push(("stepwell.run.status", status.name().into()));
        attributes.extend(failure.map(|failure| ("error.type", (*failure.code).into())));
        let failed = matches!(status, RunStatus::Failed | RunStatus::Timeout);
        spans.push(Span {
            trace: trace_id(&known.public),
            id: run_span(&known.public),
            parent: None,
            link,
            name: known.workflow.name.clone(),
            kind: SpanKind::Internal,
            start: found.started.unwrap_or(found.created),
            end: at,
            error: failed.then(|| failure.map_or_else(|| status.name().into(), message)),
            attributes,
        });
        Ok(())
    }
}

impl Known {
    fn attributes(&self) -> Vec<(&'static str, Fact)> {
        let mut attributes = vec![
            ("stepwell.run.id", (*self.public).into()),
            ("stepwell.workflow.name", self.workflow.name.as_str().into()),
            ("stepwell.workflow.version", Fact::Number(self.workflow.version.into())),
            ("stepwell.organisation", Fact::Number(self.org)),
        ];
        if self.test {
            attributes.push(("stepwell.run.test", Fact::Flag(true)));
        }
        attributes
    }

    fn attempt(&self, ended: Ended<'_>) -> Span {
        let Ended { path, attempt, start, end, status, failure, status_code } = ended;
        let name = without_numbers(path);
        let kind = self.workflow.kinds.get(&name).copied().unwrap_or("unknown");
        let mut attributes = self.attributes();
        attributes.extend([
            ("stepwell.step.path", path.into()),
            ("stepwell.step.kind", kind.into()),
            ("stepwell.step.attempt", Fact::Number(attempt.into())),
            ("stepwell.step.status", status.into()),
        ]);
        attributes.extend(status_code.map(|code| ("http.response.status_code", Fact::Number(code.into()))));
        attributes.extend(failure.map(|failure| ("error.type", (*failure.code).into())));
        // A denied approval or a cancelled run is not an error.
        let failed = !["success", "denied", "cancelled", "skipped"].contains(&status);
        Span {
            trace: trace_id(&self.public),
            id: step_span(&self.public, path, attempt),
            parent: Some(run_span(&self.public)),
            link: None,
            name,
            kind: if kind == "http" { SpanKind::Client } else { SpanKind::Internal },
            start,
            end,
            error: failed.then(|| failure.map_or_else(|| status.into(), message)),
            attributes,
        }
    }
}

fn message(failure: &Failure) -> String {
    failure.message.chars().take(MAX_MESSAGE).collect()
}

/// An attempt in progress when its run ended. Iterations and items have rows too, with a path that ends in a bracket.
fn was_cut_off(step: &StepRow, at: Time) -> bool {
    let begun = || serde_json::from_str::<Option<Row>>(&step.state).ok().flatten().is_some_and(|row| row.attempt > 0);
    step.status == Status::Cancelled.name() && step.ended == Some(at) && !step.path.ends_with(']') && begun()
}

/// `each[3].charge` becomes `each.charge`: spans of the same step have the same name.
fn without_numbers(path: &str) -> String {
    let mut name = String::with_capacity(path.len());
    let mut inside = false;
    for c in path.chars() {
        match c {
            '[' => inside = true,
            ']' => inside = false,
            c if !inside => name.push(c),
            _ => {}
        }
    }
    name
}

fn kinds(graph: &Graph) -> HashMap<String, &'static str> {
    let path = |step: &stepwell_core::graph::Step| {
        let mut path = step.def.name.to_string();
        let mut owner: Option<StepIx> = graph.scope(step.scope).owner;
        while let Some(outer) = owner.map(|owner| graph.step(owner)) {
            path = format!("{}.{path}", outer.def.name);
            owner = graph.scope(outer.scope).owner;
        }
        path
    };
    graph.steps.iter().map(|step| (path(step), step.def.kind.name())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_found_by_the_path_of_a_step_in_a_loop() {
        let text = r#"{"name": "w", "tasks": {"all": {"for_each": "{{trigger.body}}", "tasks": {
            "call": {"url": "http://127.0.0.1/"}, "rest": {"needs": ["call"], "sleep": "1s"}}}}}"#;
        let definition = stepwell_formats::read(text.as_bytes(), None).unwrap();
        let kinds = kinds(&definition.graph);
        let kind = |path: &str| kinds.get(&without_numbers(path)).copied();
        assert_eq!(kind("all"), Some("for_each"));
        assert_eq!(kind("all[17].call"), Some("http"));
        assert_eq!(kind("all[0].rest"), Some("sleep"));
        assert_eq!(kind("rest"), None);
    }
}
