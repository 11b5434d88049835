//! An independent interpreter of the planner's rules (design, section 2.1, and docs/semantics.md), written from those
//! pages alone, as a reference for the planner.
//!
//! Deliberately naive: after every input it sweeps over all steps of all open scopes until nothing changes, and derives
//! the state of every edge from the step it starts at. No counters, no clocks, no attempt numbers. A budget ends the
//! sweeping early; the next input goes on with it.

mod calculate;
mod compile;
pub mod expr;
mod functions;
mod input;
mod names;
mod retry;
mod scopes;
mod start;

pub use input::Input;

use compile::{Edge, Join, Kind, Scope, Step, Target};
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub enum Phase {
    Running,
    Backoff,
    Sleeping,
    /// For a webhook.
    Waiting,
    Gate,
    Child,
    /// A loop or for_each with running instances.
    Open,
}

/// One run of one definition.
pub struct Reference {
    root: Scope,
    run: Run,
}

impl Reference {
    /// Applies one input. Returns whether it had an effect.
    pub fn apply(&mut self, input: &Input, now: &str) -> bool {
        let run = &mut self.run;
        run.now = now.to_string();
        let root = Place::root(&self.root);
        if run.status != "running" {
            return *input == Input::Retry && run.retry(&root);
        }
        let effect = match input {
            Input::Cancel => run.abort("cancelled"),
            Input::Expire => run.abort("timeout"),
            Input::Retry => false,
            Input::Continue => run.can_begin(&root),
            Input::Done { path, .. }
            | Input::Failed { path, .. }
            | Input::Refused { path }
            | Input::TimedOut { path }
            | Input::Held { path }
            | Input::Deferred { path }
            | Input::Lost { path }
            | Input::Fire { path }
            | Input::Webhook { path, .. }
            | Input::Answer { path, .. }
            | Input::Child { path, .. } => run.deliver(&root, path, input),
        };
        if effect {
            run.settle(&root);
        }
        effect
    }

    /// All active steps.
    pub fn active(&self) -> BTreeMap<String, Phase> {
        let phase = |row: &Row| match row.state {
            State::Active(phase) => Some(phase),
            State::Idle | State::Ended(_) => None,
        };
        self.run.rows.iter().filter_map(|(path, row)| Some((path.clone(), phase(row)?))).collect()
    }

    /// All terminal steps with their status.
    pub fn settled(&self) -> BTreeMap<String, String> {
        let status = |row: &Row| row.ended().map(String::from);
        self.run.rows.iter().filter_map(|(path, row)| Some((path.clone(), status(row)?))).collect()
    }

    pub fn status(&self) -> &'static str {
        self.run.status
    }

    /// Whether another order of the same events may end differently: the run was aborted, or an item failed in a
    /// for_each that stops on failure and ran several but not all items at once.
    pub fn order_mattered(&self) -> bool {
        self.run.order_mattered
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    Idle,
    Active(Phase),
    Ended(&'static str),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum EdgeState {
    Open,
    Live,
    Untaken,
    Failed,
}

/// The effect of a step on its out-edges.
#[derive(Clone, Default)]
enum Exit {
    /// Not finished, or ended by an abort.
    #[default]
    Undecided,
    /// Edges of this handle are live, the others untaken.
    Handle(String),
    AllUntaken,
    AllFailed,
    /// A loop that was left, with the state of each edge.
    Leaving(BTreeMap<usize, EdgeState>),
}

/// The state of one step.
#[derive(Clone, Default)]
struct Row {
    state: State,
    /// Whether the step was neither skipped nor left idle, even if cancelled later.
    ran: bool,
    exit: Exit,
    failures: u32,
    body: Value,
    /// What its templates came to, in order.
    rendered: Vec<Value>,
    message: Option<Value>,
    /// For loops and for_each: how each opened instance ended, `None` while it is open.
    instances: Vec<Option<&'static str>>,
    items: Vec<Value>,
    /// For for_each: how many items may be open or have been.
    due: usize,
}

impl Row {
    fn ended(&self) -> Option<&'static str> {
        match self.state {
            State::Ended(status) => Some(status),
            State::Idle | State::Active(_) => None,
        }
    }

    fn failed(&self) -> bool {
        matches!(self.ended(), Some("failed" | "timeout" | "template_error" | "denied"))
    }
}

/// An instance of a scope.
struct Place<'a> {
    scope: &'a Scope,
    /// The path prefix of its steps: empty, or `each[3].`
    prefix: String,
    outer: Option<Outer<'a>>,
}

struct Outer<'a> {
    place: &'a Place<'a>,
    step: usize,
    instance: usize,
}

impl<'a> Place<'a> {
    fn root(scope: &'a Scope) -> Place<'a> {
        Place { scope, prefix: String::new(), outer: None }
    }

    /// An instance of the body of a scope step.
    fn inside(&'a self, step: usize, instance: usize) -> Place<'a> {
        let scope = body(&self.scope.steps[step]).expect("a scope step");
        let prefix = format!("{}[{instance}].", self.path(step));
        Place { scope, prefix, outer: Some(Outer { place: self, step, instance }) }
    }

    fn path(&self, step: usize) -> String {
        format!("{}{}", self.prefix, self.scope.steps[step].name)
    }

    fn step(&self, step: usize) -> &'a Step {
        &self.scope.steps[step]
    }

    fn out_edges(&self, step: usize) -> impl Iterator<Item = &'a Edge> {
        self.scope.edges.iter().filter(move |edge| edge.from == step)
    }

    fn in_edges(&self, step: usize) -> impl Iterator<Item = &'a Edge> {
        self.scope.edges.iter().filter(move |edge| edge.to == Target::Step(step))
    }
}

fn body(step: &Step) -> Option<&Scope> {
    match &step.kind {
        Kind::Cycle { body, .. } => Some(body),
        Kind::Each(each) => Some(&each.body),
        _ => None,
    }
}

enum Readiness {
    Wait,
    Go,
    Skip,
}

/// The state of a run. The compiled scopes are passed to every call.
struct Run {
    input: Value,
    /// The time of the newest input.
    now: String,
    /// The vars with their templates, and what they came to when the run started.
    to_compute: Vec<(String, Value)>,
    vars: Option<Value>,
    is_flow: bool,
    /// Writes to `ctx`, in order: the path of the writing step (empty for items), the variable, the value.
    writes: Vec<(String, String, Value)>,
    rows: BTreeMap<String, Row>,
    status: &'static str,
    order_mattered: bool,
    budget: u32,
}

/// What a sweep looks for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sweep {
    Skips,
    /// Passes and items whose steps have all ended.
    Closes,
    /// Steps to start and items to open.
    Begins,
}

impl Run {
    fn row(&self, place: &Place, step: usize) -> &Row {
        &self.rows[&place.path(step)]
    }

    fn row_mut(&mut self, place: &Place, step: usize) -> &mut Row {
        self.rows.get_mut(&place.path(step)).expect("steps of an open instance have rows")
    }

    /// The last value of a `ctx` variable.
    fn written(&self, variable: &str) -> Option<&Value> {
        self.writes.iter().rev().find(|(_, name, _)| name == variable).map(|(_, _, value)| value)
    }

    fn running(&self) -> bool {
        self.status == "running"
    }

    /// Creates a row for every step of the instance; after a retry some exist already, idle.
    fn open(&mut self, place: &Place) {
        for step in 0..place.scope.steps.len() {
            self.rows.entry(place.path(step)).or_default();
        }
    }

    /// Sweeps until nothing changes, then ends the run if its root scope is closed (R4). Skips come first, then closes;
    /// nothing begins once the budget is spent.
    fn settle(&mut self, root: &Place) {
        let mut decisions = 0;
        while self.running() {
            let settled = self.sweep(root, Sweep::Skips) || self.sweep(root, Sweep::Closes);
            if !settled && (decisions >= self.budget || !self.sweep(root, Sweep::Begins)) {
                break;
            }
            decisions += 1;
        }
        if self.running() {
            match self.result(root) {
                None => {}
                Some("success") => self.status = "completed",
                Some("denied") => self.status = "cancelled",
                Some(_) => self.status = "failed",
            }
        }
    }

    /// Checks every step of the instance, and of all open instances inside; stops at the first that changes. Returns
    /// whether anything changed.
    fn sweep(&mut self, place: &Place, sweep: Sweep) -> bool {
        for step in 0..place.scope.steps.len() {
            let changed = match self.row(place, step).state {
                State::Idle => match self.readiness(place, step) {
                    Readiness::Go if sweep == Sweep::Begins => self.go(place, step),
                    Readiness::Skip if sweep == Sweep::Skips => self.skip(place, step),
                    Readiness::Wait | Readiness::Go | Readiness::Skip => false,
                },
                State::Active(Phase::Open) => self.advance(place, step, sweep),
                State::Active(_) | State::Ended(_) => false,
            };
            if changed {
                return true;
            }
        }
        false
    }

    /// Whether the budget left a step to start or an item to open.
    fn can_begin(&self, place: &Place) -> bool {
        (0..place.scope.steps.len()).any(|step| match self.row(place, step).state {
            State::Idle => matches!(self.readiness(place, step), Readiness::Go),
            State::Active(Phase::Open) => {
                let open = |instance: usize| self.can_begin(&place.inside(step, instance));
                self.has_items_left(place, step) || self.open_instances(place, step).into_iter().any(open)
            }
            State::Active(_) | State::Ended(_) => false,
        })
    }

    fn edge(&self, place: &Place, edge: &Edge) -> EdgeState {
        match &self.row(place, edge.from).exit {
            Exit::Undecided => EdgeState::Open,
            Exit::Handle(handle) if *handle == edge.handle => EdgeState::Live,
            Exit::Handle(_) | Exit::AllUntaken => EdgeState::Untaken,
            Exit::AllFailed => EdgeState::Failed,
            Exit::Leaving(states) => states[&edge.id],
        }
    }

    /// R1 and R2.
    fn readiness(&self, place: &Place, step: usize) -> Readiness {
        let states: Vec<EdgeState> = place.in_edges(step).map(|edge| self.edge(place, edge)).collect();
        if states.is_empty() {
            return Readiness::Go;
        }
        let has = |wanted: EdgeState| states.contains(&wanted);
        let go = match place.step(step).join {
            Join::Any if has(EdgeState::Live) => return Readiness::Go,
            _ if has(EdgeState::Open) => return Readiness::Wait,
            Join::Any => false,
            Join::Every => states.iter().all(|state| *state == EdgeState::Live),
            Join::Some => has(EdgeState::Live) && !has(EdgeState::Failed),
            Join::Settled => true,
        };
        if go { Readiness::Go } else { Readiness::Skip }
    }

    fn skip(&mut self, place: &Place, step: usize) -> bool {
        let failed = place.in_edges(step).any(|edge| self.edge(place, edge) == EdgeState::Failed);
        let row = self.row_mut(place, step);
        row.state = State::Ended("skipped");
        row.exit = if failed { Exit::AllFailed } else { Exit::AllUntaken };
        row.message = None;
        true
    }

    fn go(&mut self, place: &Place, index: usize) -> bool {
        let step = place.step(index);
        if let Some(condition) = &step.condition
            && !expr::holds(condition, &|path| self.lookup(place, path, None))
        {
            return self.skip(place, index);
        }
        self.row_mut(place, index).ran = true;
        let rendered: Option<Vec<Value>> = step.templates.iter().map(|one| self.render(place, one)).collect();
        let Some(rendered) = rendered else { return self.fail(place, index, "template_error") };
        self.row_mut(place, index).rendered = rendered;
        let phase = match &step.kind {
            Kind::Call => Phase::Running,
            Kind::Child => Phase::Child,
            Kind::Sleep => Phase::Sleeping,
            Kind::Gate { .. } => Phase::Gate,
            Kind::Webhook { .. } => match self.row_mut(place, index).message.take() {
                Some(message) => return self.succeed(place, index, message),
                None => Phase::Waiting,
            },
            Kind::Instant => return self.succeed(place, index, Value::Null),
            Kind::Choice { branches, default } => {
                let chosen = branches.iter().find(|(_, test)| self.matches(place, test)).map(|(id, _)| id);
                let exit = chosen.or(default.as_ref()).cloned().map_or(Exit::AllUntaken, Exit::Handle);
                return self.end(place, index, "success", exit);
            }
            Kind::Cycle { .. } | Kind::Each(_) => return self.enter(place, index),
        };
        self.row_mut(place, index).state = State::Active(phase);
        true
    }

    /// Delivers an input to the step it names, if that step waits for it.
    fn deliver(&mut self, place: &Place, path: &str, input: &Input) -> bool {
        let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
        let (name, instance) = match name.split_once('[') {
            Some((name, index)) => (name, index.trim_end_matches(']').parse::<usize>().ok()),
            None => (name, None),
        };
        let Some(step) = place.scope.steps.iter().position(|step| step.name == name) else { return false };
        match (instance, rest) {
            (None, None) if self.rows.contains_key(&place.path(step)) => self.hear(place, step, input),
            (Some(instance), Some(rest)) if body(place.step(step)).is_some() => {
                self.deliver(&place.inside(step, instance), rest, input)
            }
            _ => false,
        }
    }

    fn hear(&mut self, place: &Place, index: usize, input: &Input) -> bool {
        let step = place.step(index);
        let state = self.row(place, index).state;
        match (input, state) {
            (Input::Done { output, .. }, State::Active(Phase::Running)) => self.succeed(place, index, output.clone()),
            (Input::Failed { retryable, .. }, State::Active(Phase::Running)) => {
                self.attempt_failed(place, index, *retryable, "failed")
            }
            (Input::Refused { .. }, State::Active(Phase::Running)) => self.fail(place, index, "failed"),
            (Input::TimedOut { .. }, State::Active(Phase::Running)) => {
                self.attempt_failed(place, index, true, "timeout")
            }
            (Input::Child { ok: false, .. }, State::Active(Phase::Child)) => {
                self.attempt_failed(place, index, true, "failed")
            }
            (Input::Child { ok: true, .. }, State::Active(Phase::Child)) => self.succeed(place, index, Value::Null),
            (Input::Lost { .. }, State::Active(Phase::Running)) => self.lose(place, index),
            (Input::Fire { .. }, State::Active(phase)) => match (phase, &step.kind) {
                (Phase::Sleeping, _) => self.succeed(place, index, Value::Null),
                (Phase::Backoff, kind) => {
                    let phase = if matches!(kind, Kind::Child) { Phase::Child } else { Phase::Running };
                    self.row_mut(place, index).state = State::Active(phase);
                    true
                }
                (Phase::Waiting, Kind::Webhook { expires: true }) => self.fail(place, index, "timeout"),
                (Phase::Gate, Kind::Gate { expires: true }) => self.fail(place, index, "denied"),
                _ => false,
            },
            (Input::Webhook { body, .. }, State::Active(Phase::Waiting)) => self.succeed(place, index, body.clone()),
            (Input::Webhook { body, .. }, State::Idle) if matches!(step.kind, Kind::Webhook { .. }) => {
                let row = self.row_mut(place, index);
                let first = row.message.is_none();
                row.message.get_or_insert_with(|| body.clone());
                first
            }
            (Input::Held { .. }, State::Active(Phase::Running)) => {
                self.row_mut(place, index).state = State::Active(Phase::Gate);
                true
            }
            (Input::Deferred { .. }, State::Active(Phase::Running)) => {
                let row = self.row_mut(place, index);
                row.state = State::Active(Phase::Backoff);
                true
            }
            // A held call is made once it is approved.
            (Input::Answer { approve: true, .. }, State::Active(Phase::Gate))
                if !matches!(step.kind, Kind::Gate { .. }) =>
            {
                self.row_mut(place, index).state = State::Active(Phase::Running);
                true
            }
            (Input::Answer { approve: true, .. }, State::Active(Phase::Gate)) => {
                self.succeed(place, index, json!("approved"))
            }
            (Input::Answer { approve: false, .. }, State::Active(Phase::Gate)) => self.fail(place, index, "denied"),
            _ => false,
        }
    }

    fn attempt_failed(&mut self, place: &Place, index: usize, retryable: bool, status: &'static str) -> bool {
        let (attempts, stubborn) = (place.step(index).attempts, place.step(index).stubborn);
        let row = self.row_mut(place, index);
        row.failures += 1;
        if (retryable || stubborn) && row.failures < attempts {
            row.state = State::Active(Phase::Backoff);
            return true;
        }
        self.fail(place, index, status)
    }

    /// A lost attempt is dispatched again. There is no quarantine here: it needs a person.
    fn lose(&mut self, place: &Place, index: usize) -> bool {
        let once = place.step(index).at_most_once;
        if once {
            return self.fail(place, index, "failed");
        }
        true
    }

    /// R3 for success. In flow the result chooses the branch, and a result without a matching entry is a failure.
    fn succeed(&mut self, place: &Place, index: usize, output: Value) -> bool {
        let step = place.step(index);
        let handle =
            if step.branches.is_empty() { Some("success".to_string()) } else { self.branch(place, step, &output) };
        // A result without a matching branch can still be read.
        self.row_mut(place, index).body = output.clone();
        let Some(handle) = handle else { return self.fail(place, index, "failed") };
        if let Some(variable) = &step.variable {
            self.writes.push((place.path(index), variable.clone(), output));
        }
        self.end(place, index, "success", Exit::Handle(handle))
    }

    /// R3 for failure.
    fn fail(&mut self, place: &Place, index: usize, status: &'static str) -> bool {
        let step = place.step(index);
        if let Some(variable) = &step.variable {
            self.writes.push((place.path(index), variable.clone(), json!({"error": status})));
        }
        let denied = status == "denied";
        let drawn = |handle: &str| place.out_edges(index).any(|edge| edge.handle == handle);
        let branch = if denied { self.branch(place, step, &json!("denied")) } else { None };
        let exit = match branch {
            Some(handle) => Exit::Handle(handle),
            None if step.aborts => {
                self.row_mut(place, index).state = State::Ended(status);
                return self.abort(if denied { "cancelled" } else { "failed" });
            }
            // Edges out of a loop belong to steps inside it, whatever their handle.
            None if matches!(step.kind, Kind::Cycle { .. }) => Exit::AllFailed,
            None if denied && drawn("denied") => Exit::Handle("denied".to_string()),
            None if drawn("error") => Exit::Handle("error".to_string()),
            None => Exit::AllFailed,
        };
        self.end(place, index, status, exit)
    }

    fn end(&mut self, place: &Place, index: usize, status: &'static str, exit: Exit) -> bool {
        let row = self.row_mut(place, index);
        row.state = State::Ended(status);
        row.exit = exit;
        true
    }

    /// R6.
    fn abort(&mut self, status: &'static str) -> bool {
        for row in self.rows.values_mut().filter(|row| row.ended().is_none()) {
            row.state = State::Ended("cancelled");
            row.message = None;
        }
        self.status = status;
        self.order_mattered = true;
        true
    }
}
