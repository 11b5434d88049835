//! What a socket says about a run it has joined: how everything is at first, then each change of a step and of the run.

use serde_json::{Map, Value, json};
use std::collections::HashMap;
use stepwell_core::event::Failure;
use stepwell_core::fact::Wait;
use stepwell_core::run::{Phase, Status, StoredFact, error};
use stepwell_engine::commands::{RunView, StepView};
use stepwell_store::StoredLog;

/// A run, as far as the socket was told of it.
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

    /// What to say after these rows, which lead to this state. Rows that are missing leave out what was only passed
    /// through.
    pub fn changes<'r>(&mut self, rows: impl IntoIterator<Item = &'r StoredLog>, view: &RunView) -> Vec<String> {
        let steps: HashMap<&str, &StepView> = view.tasks.iter().map(|step| (step.path.as_str(), step)).collect();
        let mut said = Said { view, steps, messages: Vec::new() };
        let told = self.version;
        for row in rows.into_iter().filter(|row| told < row.version.0 && row.version.0 <= view.version) {
            let facts: Vec<StoredFact> = serde_json::from_str(&row.row.facts).unwrap_or_default();
            facts.iter().for_each(|fact| self.fact(fact, &mut said));
        }
        // Some changes have no fact of their own: at the end of a run whatever is open is cancelled.
        for step in &view.tasks {
            if self.is_news(&step.path, step.attempt, step.status) {
                let data = (step.output.clone(), step.error.clone());
                said.step(&step.path, step.status, data);
            }
        }
        if self.status != view.status {
            self.run_is(view.status, &mut said);
        }
        self.version = view.version;
        said.messages
    }

    fn is_news(&mut self, path: &str, attempt: u32, status: &'static str) -> bool {
        if self.steps.get(path) == Some(&(attempt, status)) {
            return false;
        }
        self.steps.insert(path.to_string(), (attempt, status));
        true
    }

    fn run_is(&mut self, status: &str, said: &mut Said) {
        self.status = status.to_string();
        said.run(status);
    }

    fn step_is(&mut self, said: &mut Said, (path, attempt): (&str, u32), phase: Phase, failure: Option<&Failure>) {
        if self.is_news(path, attempt, phase.name()) {
            let over = matches!(phase, Phase::Done(_) | Phase::Backoff);
            let output = if over { said.output(path, attempt) } else { None };
            said.step(path, phase.name(), (output, failure.map(error)));
        }
    }

    fn fact(&mut self, fact: &StoredFact, said: &mut Said) {
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
                self.step_is(said, (path, *attempt), phase, None);
            }
            StoredFact::Retrying { step: path, attempt, failure, .. } => {
                self.step_is(said, (path, *attempt), Phase::Backoff, Some(failure));
            }
            StoredFact::Again { step: path, attempt, .. } => self.step_is(said, (path, *attempt), Phase::Running, None),
            StoredFact::Held { step: path, attempt, .. } => self.step_is(said, (path, *attempt), Phase::Gate, None),
            StoredFact::Unsure { step: path, attempt } => self.step_is(said, (path, *attempt), Phase::Unsure, None),
            StoredFact::Finished { step: path, attempt, status, failure, .. } => {
                self.step_is(said, (path, *attempt), Phase::Done(*status), failure.as_ref());
            }
            StoredFact::Skipped { step: path, .. } => {
                let attempt = said.steps.get(path.as_str()).map_or(0, |step| step.attempt);
                self.step_is(said, (path, attempt), Phase::Done(Status::Skipped), None);
            }
            // Its end may have come with the rows before.
            StoredFact::Retried { .. } | StoredFact::Adopted { .. } => self.run_is("running", said),
            // The end itself is said last, after the steps that it cancelled; unless it was not the end.
            StoredFact::Ended { status, .. } if status.name() != said.view.status => self.run_is(status.name(), said),
            StoredFact::Ended { .. }
            | StoredFact::Created { .. }
            | StoredFact::Started { .. }
            | StoredFact::Opened { .. }
            | StoredFact::Closed { .. }
            | StoredFact::Kept { .. }
            | StoredFact::Approved { .. }
            | StoredFact::Escalated { .. }
            | StoredFact::Overridden { .. } => {}
        }
    }
}

/// Messages, in order.
struct Said<'v> {
    view: &'v RunView,
    steps: HashMap<&'v str, &'v StepView>,
    messages: Vec<String>,
}

impl Said<'_> {
    fn step(&mut self, path: &str, status: &str, (output, error): (Option<Value>, Option<Value>)) {
        let data = json!({
            "instanceID": &*self.view.id, "nodeID": path, "status": status, "output": output, "error": error,
        });
        self.messages.push(message("workflow_node_update", &data));
    }

    fn run(&mut self, status: &str) {
        let view = self.view;
        let done = view.tasks.iter().filter_map(|step| Some((step.path.clone(), step.output.clone()?)));
        let context = json!({
            "input": view.input, "nodes": done.collect::<Map<_, _>>(), "output": view.output, "error": view.error,
        });
        let data = json!({"instanceID": &*view.id, "status": status, "contextData": context});
        self.messages.push(message("workflow_status_update", &data));
    }

    /// What an attempt brought.
    fn output(&self, path: &str, attempt: u32) -> Option<Value> {
        let step = self.steps.get(path)?;
        if step.attempt == attempt {
            return step.output.clone();
        }
        step.attempts.iter().find(|of| of.attempt == attempt)?.output.clone()
    }
}

pub fn message(event: &str, data: &Value) -> String {
    json!({"event": event, "data": data}).to_string()
}
