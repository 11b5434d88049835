//! Snapshots: the state of a run as the store keeps it. Steps that never started are left out, and so is all derived
//! state (edges, counts, names), so a snapshot is small and cannot contradict itself.

use super::log::{exit_name, exit_named};
use super::{At, Exit, More, Phase, Run, RunStatus, ScopeState, StepState};
use crate::event::Failure;
use crate::fact::{End, Output, SkipReason};
use crate::graph::{Graph, ScopeIx};
use crate::limits;
use crate::quote::quote;
use crate::time::{Millis, Time};
use crate::value::{ValueId, Values};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Snapshot {
    pub id: Arc<str>,
    pub seed: u64,
    pub max_duration: Millis,
    pub status: RunStatus,
    pub generation: u32,
    pub by: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retried_by: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retried_as: Vec<Arc<str>>,
    pub input: Option<ValueId>,
    pub headers: Option<ValueId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vars: Option<ValueId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<ValueId>,
    pub output: Option<ValueId>,
    pub failure: Option<Failure>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduled: Option<Time>,
    pub expires: Option<Time>,
    /// The number of steps that ended so far, including steps that were reset since.
    pub ended: u32,
    /// Payload numbers in use.
    pub values: u32,
    /// The weight of all payloads that the run ever got. Older snapshots do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u64>,
    /// Attempts of steps that the run's version no longer has.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub retired: BTreeMap<String, u32>,
    /// In the order of their instances: a scope step comes before the steps inside it.
    pub steps: Vec<Row>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instances: Vec<InstanceRow>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Row {
    pub path: String,
    pub phase: Phase,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<String>,
    #[serde(default, skip_serializing_if = "zero")]
    pub attempt: u32,
    #[serde(default, skip_serializing_if = "zero")]
    pub uncounted: u32,
    #[serde(default, skip_serializing_if = "zero")]
    pub losses: u8,
    pub since: Time,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<ValueId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Output>,
    #[serde(default, skip_serializing_if = "zero")]
    pub ended: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<SkipReason>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variable: Option<ValueId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mail: Option<ValueId>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mail_truncated: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<(Arc<str>, ValueId)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalate: Option<Time>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub escalated: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<ValueId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<ValueId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<(Arc<str>, ValueId)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<ValueId>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub question: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsure: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<ScopeRow>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ScopeRow {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    pub opened: u32,
    /// Items that may be open or have been, if not all of them were opened yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<u32>,
}

/// How a pass or an item ended. It has its own row, so that a scope step's row does not grow with its items.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct InstanceRow {
    /// The path of the scope step.
    pub path: String,
    pub index: u32,
    pub end: End,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ValueId>,
}

fn zero<T: Default + PartialEq>(n: &T) -> bool {
    *n == T::default()
}

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error("the stored run has a step {}, which this version of the workflow does not have", quote(.0))]
    UnknownStep(String),
}

impl Run {
    pub fn snapshot(&self, graph: &Graph) -> Snapshot {
        let mut steps = Vec::new();
        let mut instances = Vec::new();
        for (id, instance) in self.instances.iter().enumerate() {
            for (&step, state) in graph.scope(instance.scope).steps.iter().zip(&instance.steps) {
                let at = At { instance: id as u32, step };
                if state.phase != Phase::Idle || state.attempt > 0 || state.more.is_some() {
                    steps.push(self.row(graph, at, state));
                }
                let closed = state.scope().map(|scope| scope.closed.as_slice()).unwrap_or_default();
                for (index, ended) in closed.iter().enumerate().filter_map(|(k, ended)| Some((k as u32, (*ended)?))) {
                    let (end, result) = ended;
                    instances.push(InstanceRow { path: self.path(graph, at), index, end, result });
                }
            }
        }
        Snapshot { steps, instances, ..self.head() }
    }

    /// The snapshot without its steps: the part that changes with every transition and never grows.
    pub fn head(&self) -> Snapshot {
        Snapshot {
            id: self.id.clone(),
            seed: self.seed,
            max_duration: self.max_duration,
            status: self.status,
            generation: self.generation,
            by: self.by.clone(),
            client: self.client.clone(),
            retried_by: self.retried_by.clone(),
            retried_as: self.retried_as.clone(),
            input: self.input,
            headers: self.headers,
            vars: self.vars,
            query: self.query,
            output: self.output,
            failure: self.failure.clone(),
            scheduled: self.scheduled,
            expires: self.expires,
            ended: self.ended,
            values: self.values.count(),
            weight: Some(self.values.weight()),
            retired: self.retired.clone(),
            steps: Vec::new(),
            instances: Vec::new(),
        }
    }

    /// One step as a row.
    pub fn row(&self, graph: &Graph, at: At, state: &StepState) -> Row {
        let more = state.more.as_deref().cloned().unwrap_or_default();
        Row {
            path: self.path(graph, at),
            phase: state.phase,
            exit: (state.exit != Exit::Open).then(|| exit_name(graph, at, state.exit)),
            attempt: state.attempt,
            uncounted: state.uncounted,
            losses: state.losses,
            since: state.since,
            due: state.due,
            input: state.input,
            output: state.output,
            ended: state.ended,
            failure: more.failure,
            skipped: more.skipped,
            variable: more.variable,
            mail: more.mail,
            mail_truncated: more.mail_truncated,
            approvals: more.approvals,
            earlier: more.earlier,
            escalate: more.escalate,
            escalated: more.escalated,
            ask: more.ask,
            approved: more.approved,
            changed: more.changed,
            note: more.note,
            question: more.question,
            unsure: more.unsure,
            scope: more.scope.map(|scope| ScopeRow {
                count: scope.count,
                opened: scope.opened,
                due: (scope.due > scope.opened).then_some(scope.due),
            }),
        }
    }

    pub fn restore(graph: &Graph, snapshot: Snapshot, values: Values) -> Result<Run, SnapshotError> {
        let mut run = Run::new(snapshot.id, snapshot.seed, snapshot.max_duration);
        run.status = snapshot.status;
        run.generation = snapshot.generation;
        run.by = snapshot.by;
        run.client = snapshot.client;
        run.retried_by = snapshot.retried_by;
        run.retried_as = snapshot.retried_as;
        run.input = snapshot.input;
        run.headers = snapshot.headers;
        run.vars = snapshot.vars;
        run.query = snapshot.query;
        run.output = snapshot.output;
        run.failure = snapshot.failure;
        run.scheduled = snapshot.scheduled;
        run.expires = snapshot.expires;
        run.ended = snapshot.ended;
        run.retired = snapshot.retired;
        run.values = values;
        run.values.reserve_all(snapshot.values);
        run.values.set_weight(snapshot.weight);
        // A run that was cancelled in the queue never started.
        if run.expires.is_some() {
            run.add_instance(graph, ScopeIx::ROOT, None);
        }
        for row in snapshot.steps {
            run.put(graph, row)?;
        }
        for row in snapshot.instances {
            run.put_instance(graph, row)?;
        }
        run.recount(graph);
        Ok(run)
    }

    fn put(&mut self, graph: &Graph, row: Row) -> Result<(), SnapshotError> {
        let at = self.locate(graph, &row.path).ok_or_else(|| SnapshotError::UnknownStep(row.path.clone()))?;
        let exit = row.exit.as_deref().map_or(Some(Exit::Open), |exit| exit_named(graph, at, exit));
        let exit = exit.ok_or_else(|| SnapshotError::UnknownStep(row.path.clone()))?;
        let scope = row.scope.map(|scope| {
            let (opened, closed) = (scope.opened, vec![None; scope.opened as usize]);
            let due = scope.due.unwrap_or(if scope.count.is_some() { opened } else { 0 });
            ScopeState { opened, due, count: scope.count, closed, ..ScopeState::default() }
        });
        for k in 0..scope.as_ref().map_or(0, |scope| scope.opened) {
            self.inner_instance(graph, at, k);
        }
        let state = self.state_mut(graph, at);
        let instances = state.scope().map(|scope| scope.instances.clone()).unwrap_or_default();
        let more = More {
            failure: row.failure,
            skipped: row.skipped,
            variable: row.variable,
            mail: row.mail,
            mail_truncated: row.mail_truncated,
            approvals: row.approvals,
            earlier: row.earlier,
            escalate: row.escalate,
            escalated: row.escalated,
            ask: row.ask,
            approved: row.approved,
            changed: row.changed,
            note: row.note,
            question: row.question,
            unsure: row.unsure,
            scope: scope.map(|scope| ScopeState { instances, ..scope }),
        };
        *state = StepState {
            phase: row.phase,
            exit,
            attempt: row.attempt,
            uncounted: row.uncounted,
            losses: row.losses,
            since: row.since,
            due: row.due,
            input: row.input,
            output: row.output,
            ended: row.ended,
            more: (more != More::default()).then(|| Box::new(more)),
            ..StepState::idle(0)
        };
        Ok(())
    }

    fn put_instance(&mut self, graph: &Graph, row: InstanceRow) -> Result<(), SnapshotError> {
        let at = self.find(graph, &row.path);
        let scope = at.and_then(|at| self.state_mut(graph, at).more().scope.as_mut());
        match scope.and_then(|scope| scope.closed.get_mut(row.index as usize)) {
            Some(closed) => *closed = Some((row.end, row.result)),
            None => return Err(SnapshotError::UnknownStep(format!("{}[{}]", row.path, row.index))),
        }
        Ok(())
    }

    /// Like [`Run::find`], but creates missing instances along the path.
    fn locate(&mut self, graph: &Graph, path: &str) -> Option<At> {
        let mut instance = 0u32;
        let mut rest = path;
        self.instances.first()?;
        while let Some((head, after)) = rest.split_once("].") {
            let (name, index) = head.split_once('[')?;
            let step = graph.find(self.instances[instance as usize].scope, name)?;
            graph.step(step).def.kind.body()?;
            let index: u32 = index.parse().ok().filter(|&k| k <= limits::MAX_ITERATIONS)?;
            instance = self.inner_instance(graph, At { instance, step }, index);
            rest = after;
        }
        graph.find(self.instances[instance as usize].scope, rest).map(|step| At { instance, step })
    }

    fn inner_instance(&mut self, graph: &Graph, at: At, index: u32) -> u32 {
        loop {
            let known = self.state(graph, at).scope().map_or(0, |scope| scope.instances.len() as u32);
            if let Some(&id) = self.state(graph, at).scope().and_then(|scope| scope.instances.get(index as usize)) {
                return id;
            }
            let body = graph.step(at.step).def.kind.body().unwrap_or(ScopeIx::ROOT);
            let id = self.add_instance(graph, body, Some((at, known)));
            let scope = self.state_mut(graph, at).more().scope.get_or_insert_with(ScopeState::default);
            scope.instances.push(id);
        }
    }

    /// Moves the state to another version of the workflow. Root steps named in `stands` keep their state, with
    /// everything inside them; other steps keep only their attempt count.
    pub(crate) fn migrate(&mut self, old: &Graph, new: &Graph, stands: &[String]) {
        let stands: HashSet<&str> = stands.iter().map(String::as_str).collect();
        let mut kept = Vec::new();
        let top = |path: &str| path.split(['[', '.']).next().is_some_and(|top| stands.contains(top));
        let Snapshot { steps, instances, .. } = self.snapshot(old);
        for row in steps {
            if top(&row.path) {
                kept.push(row);
            } else if row.attempt > 0 {
                self.retired.insert(row.path, row.attempt);
            }
        }
        self.instances.clear();
        self.states = 0;
        self.add_instance(new, ScopeIx::ROOT, None);
        // `standing` keeps a step only if the new version has it, including its body and exit.
        for row in kept {
            let put = self.put(new, row);
            debug_assert!(put.is_ok(), "{put:?}");
        }
        for row in instances.into_iter().filter(|row| top(&row.path)) {
            let put = self.put_instance(new, row);
            debug_assert!(put.is_ok(), "{put:?}");
        }
        if old.vars_written != new.vars_written {
            self.vars = None;
        }
        self.recount(new);
    }
}
