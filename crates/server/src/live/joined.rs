//! The messages of a socket about a run it has joined: the full state first, then each change of a step or of the run.

use serde_json::{Map, Value, json};
use std::collections::HashMap;
use stepwell_core::event::Failure;
use stepwell_core::fact::Wait;
use stepwell_core::run::{Phase, Status, StoredFact, error};
use stepwell_engine::commands::{RunView, StepView};
use stepwell_store::StoredLog;

/// The state of a run as last sent to the socket.
pub struct Joined {
    pub run: String,
    pub version: i64,
    status: String,
    /// Attempt and status, by path.
    steps: HashMap<String, (u32, &'static str)>,
}

impl Joined {
    pub fn new(run: String) -> Joined {
        Joined { run, version: 0, status: String::new(), steps: HashMap::new() }
    }

    /// The messages after these rows, which lead to this state. If rows are missing, intermediate states are skipped.
    pub fn changes<'r>(&mut self, rows: impl IntoIterator<Item = &'r StoredLog>, view: &RunView) -> Vec<String> {
        let steps: HashMap<&str, &StepView> = view.tasks.iter().map(|step| (step.path.as_str(), step)).collect();
        let mut messages = Messages { view, steps, texts: Vec::new() };
        let sent = self.version;
        for row in rows.into_iter().filter(|row| sent < row.version.0 && row.version.0 <= view.version) {
            let facts: Vec<StoredFact> = serde_json::from_str(&row.row.facts).unwrap_or_default();
            facts.iter().for_each(|fact| self.fact(fact, &mut messages));
        }
        // Some changes have no fact of their own: the end of a run cancels all open steps.
        for step in &view.tasks {
            if self.is_news(&step.path, step.attempt, step.status) {
                let result = StepResult { output: step.output.clone(), error: step.error.clone() };
                messages.step(&step.path, step.status, result);
            }
        }
        if self.status != view.status {
            self.run_is(view.status, &mut messages);
        }
        self.version = view.version;
        messages.texts
    }

    fn is_news(&mut self, path: &str, attempt: u32, status: &'static str) -> bool {
        if self.steps.get(path) == Some(&(attempt, status)) {
            return false;
        }
        self.steps.insert(path.to_string(), (attempt, status));
        true
    }

    fn run_is(&mut self, status: &str, messages: &mut Messages) {
        self.status = status.to_string();
        messages.run(status);
    }

    fn step_is(&mut self, messages: &mut Messages, change: StepChange<'_>) {
        let StepChange { path, attempt, phase, failure } = change;
        if self.is_news(path, attempt, phase.name()) {
            let over = matches!(phase, Phase::Done(_) | Phase::Backoff);
            let output = if over { messages.output(path, attempt) } else { None };
            messages.step(path, phase.name(), StepResult { output, error: failure.map(error) });
        }
    }

    fn fact(&mut self, fact: &StoredFact, messages: &mut Messages) {
        match fact {
            StoredFact::Entered { step: path, attempt, wait, .. } => {
                let phase = match wait {
                    Wait::Executor => Phase::Running,
                    Wait::Sleep { .. } => Phase::Sleeping,
                    Wait::Webhook { .. } => Phase::Webhook,
                    Wait::Gate { .. } => Phase::Gate,
                    Wait::Child { .. } => Phase::Child,
                    Wait::Scope { .. } => Phase::Open,
                };
                self.step_is(messages, StepChange::new(path, *attempt, phase));
            }
            StoredFact::Retrying { step: path, attempt, failure, .. } => {
                let change = StepChange::new(path, *attempt, Phase::Backoff);
                self.step_is(messages, StepChange { failure: Some(failure), ..change });
            }
            StoredFact::Again { step: path, attempt, .. } => {
                self.step_is(messages, StepChange::new(path, *attempt, Phase::Running))
            }
            StoredFact::Held { step: path, attempt, .. } => {
                self.step_is(messages, StepChange::new(path, *attempt, Phase::Gate))
            }
            StoredFact::Unsure { step: path, attempt } => {
                self.step_is(messages, StepChange::new(path, *attempt, Phase::Unsure))
            }
            StoredFact::Finished { step: path, attempt, status, failure, .. } => {
                let change = StepChange::new(path, *attempt, Phase::Done(*status));
                self.step_is(messages, StepChange { failure: failure.as_ref(), ..change });
            }
            StoredFact::Skipped { step: path, .. } => {
                let attempt = messages.steps.get(path.as_str()).map_or(0, |step| step.attempt);
                self.step_is(messages, StepChange::new(path, attempt, Phase::Done(Status::Skipped)));
            }
            // The end may have been reported with earlier rows.
            StoredFact::Retried { .. } | StoredFact::Adopted { .. } => self.run_is("running", messages),
            // The end is sent last, after the steps that it cancelled, unless the run was resumed.
            StoredFact::Ended { status, .. } if status.name() != messages.view.status => {
                self.run_is(status.name(), messages)
            }
            StoredFact::Ended { .. }
            | StoredFact::Created { .. }
            | StoredFact::Scheduled { .. }
            | StoredFact::Due
            | StoredFact::Started { .. }
            | StoredFact::Opened { .. }
            | StoredFact::Closed { .. }
            | StoredFact::Kept { .. }
            | StoredFact::Approved { .. }
            | StoredFact::Changed { .. }
            | StoredFact::Escalated { .. }
            | StoredFact::Overridden { .. } => {}
        }
    }
}

/// An attempt that entered a phase.
struct StepChange<'a> {
    path: &'a str,
    attempt: u32,
    phase: Phase,
    failure: Option<&'a Failure>,
}

impl<'a> StepChange<'a> {
    fn new(path: &'a str, attempt: u32, phase: Phase) -> StepChange<'a> {
        StepChange { path, attempt, phase, failure: None }
    }
}

struct StepResult {
    output: Option<Value>,
    error: Option<Value>,
}

/// Messages, in order.
struct Messages<'v> {
    view: &'v RunView,
    steps: HashMap<&'v str, &'v StepView>,
    texts: Vec<String>,
}

impl Messages<'_> {
    fn step(&mut self, path: &str, status: &str, result: StepResult) {
        let StepResult { output, error } = result;
        let mut data = json!({
            "instanceID": &*self.view.id, "nodeID": path, "status": status, "output": output, "error": error,
        });
        let step = self.steps.get(path);
        if let Some(variable) = step.and_then(|step| step.variable.as_deref()) {
            data["outputVariable"] = variable.into();
        }
        if step.is_some_and(|step| step.omitted) {
            data["isOmitted"] = true.into();
        }
        self.texts.push(message("workflow_node_update", &data));
    }

    fn run(&mut self, status: &str) {
        let data = json!({"instanceID": &*self.view.id, "status": status, "contextData": context(self.view)});
        self.texts.push(message("workflow_status_update", &data));
    }

    /// The output of an attempt.
    fn output(&self, path: &str, attempt: u32) -> Option<Value> {
        let step = self.steps.get(path)?;
        if step.attempt == attempt {
            return step.output.clone();
        }
        step.attempts.iter().find(|of| of.attempt == attempt)?.output.clone()
    }
}

/// The `ctx` variables, the last write of each, and what every run has.
pub fn context(view: &RunView) -> Value {
    let mut context = Map::new();
    let mut named: Vec<&StepView> =
        view.tasks.iter().filter(|step| step.variable.is_some() && step.finished_at.is_some()).collect();
    named.sort_by_key(|step| step.finished_at);
    for step in named {
        let name = step.variable.as_deref().unwrap_or_default().to_string();
        match (&step.error, &step.output) {
            (Some(error), _) => drop(context.insert(name, json!({"error": error}))),
            (None, Some(output)) => drop(context.insert(name, output.clone())),
            (None, None) => {}
        }
    }
    let done = view.tasks.iter().filter_map(|step| Some((step.path.clone(), step.output.clone()?)));
    context.insert("input".into(), view.input.clone());
    context.insert("nodes".into(), Value::Object(done.collect()));
    context.insert("output".into(), json!(view.output));
    context.insert("error".into(), json!(view.error));
    Value::Object(context)
}

pub fn message(event: &str, data: &Value) -> String {
    json!({"event": event, "data": data}).to_string()
}
