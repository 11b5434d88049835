//! Converts a transition to a commit, and a stored run back to a run. Pure: no I/O and no clock.
//!
//! A step's row is keyed by attempt, so that history is kept: the state after a reset is written under the next
//! attempt. A pass or an item has its own row once it has closed, under its path: `each[3]`.

use super::keys::{ChildTask, child_key, timer_key};
use crate::error::Error;
use crate::records::json;
use std::collections::{BTreeSet, HashMap};
use stepwell_core::fact::{Fact, Reason};
use stepwell_core::graph::{Graph, Kind};
use stepwell_core::plan::{Effect, Transition};
use stepwell_core::run::{At, InstanceRow, Phase, Row, Run, Snapshot, SnapshotError, StepState, StoredFact};
use stepwell_core::time::Time;
use stepwell_core::value::{Payload, Values};
use stepwell_store::{
    Auth, ChainKey, Commit, Diff, Gate, Head, LoadedRun, LogRow, NewRun, Notice, OrgId, Origin, RunId, StepRow,
    TimerRow, ValueRow, Version, Work, WorkKey, hash, payloads,
};

/// The data a commit needs in addition to the transition.
#[derive(Clone, Debug)]
pub struct CommitContext {
    pub run: RunId,
    /// The run's version when the transition was planned.
    pub version: Version,
    pub hash: [u8; 32],
    /// The key of the store's hashes.
    pub key: ChainKey,
    pub auth: Auth,
    /// Set for the first commit.
    pub create: Option<NewRun>,
    pub now: Time,
    /// The run's status before the transition. A head is written only if it changes.
    pub status: &'static str,
    pub definition: i64,
    /// When the run may be purged, if it has finished.
    pub purge: Option<Time>,
    /// Timers whose firing caused this commit.
    pub fired: Vec<String>,
    /// Mail that caused this commit.
    pub read: Vec<i64>,
}

/// The rows of a transition that has been applied to `run`.
pub fn record(graph: &Graph, run: &Run, transition: &Transition, context: CommitContext) -> Commit {
    let facts: Vec<StoredFact> = transition.facts.iter().map(|fact| run.store(graph, fact)).collect();
    let facts = json(&facts);
    let values: Vec<ValueRow> =
        transition.values.iter().map(|(id, payload)| ValueRow { id: *id, payload: json(payload) }).collect();
    let payloads = payloads(&values);
    let previous = match &context.create {
        Some(new) => Origin::of_new(new, context.definition).hash(),
        None => context.hash,
    };
    let hash = context.key.seal(hash(&previous, context.now, &facts, &payloads));
    let adopted = transition.facts.iter().any(|fact| matches!(fact, Fact::Adopted { .. }));
    let changed = context.create.is_some() || adopted || status(run) != context.status;
    Commit {
        run: context.run,
        expect: context.version,
        head: changed.then(|| head(run, &context)),
        create: context.create,
        auth: context.auth,
        state: json(&run.head()),
        log: LogRow { at: context.now, facts, payloads, hash },
        previous,
        steps: steps(graph, run, transition, context.now),
        values,
        work: work(graph, run, transition, context.auth.org, context.now),
        timers: timers(graph, run, transition, context.fired),
        mail: Vec::new(),
        read: context.read,
        outbox: notices(graph, run, transition, context.now),
        sent: Vec::new(),
        unique: Vec::new(),
        groups: Vec::new(),
        gates: gates(graph, run, transition, context.now),
        counted: Vec::new(),
        audit: Vec::new(),
    }
}

/// The status as lists show it: a run that only waits for users is paused.
pub fn status(run: &Run) -> &'static str {
    if run.is_paused() { "paused" } else { run.status.name() }
}

fn head(run: &Run, context: &CommitContext) -> Head {
    let ended = run.status.is_terminal();
    Head {
        status: status(run).into(),
        definition: context.definition,
        started: run.expires.map(|_| context.now),
        finished: ended.then_some(context.now),
        purge: context.purge.filter(|_| ended),
    }
}

fn steps(graph: &Graph, run: &Run, transition: &Transition, now: Time) -> Vec<StepRow> {
    let touched: BTreeSet<At> = transition.touched.iter().copied().collect();
    let states = touched.into_iter().filter_map(|at| Some((at, run.step(graph, at)?)));
    let mut rows: Vec<StepRow> = states.map(|(at, state)| step_row(run.row(graph, at, state), state, now)).collect();
    rows.extend(transition.facts.iter().flat_map(|fact| instance_rows(graph, run, fact, now)));
    rows
}

/// The rows of all steps as history without state. A newer version of the workflow leaves such rows for the steps whose
/// state it does not keep.
pub fn retired(graph: &Graph, run: &Run, now: Time) -> Vec<StepRow> {
    let without_state =
        |(at, state)| StepRow { state: json(&None::<Row>), ..step_row(run.row(graph, at, state), state, now) };
    run.steps(graph).map(without_state).collect()
}

fn step_row(row: Row, state: &StepState, now: Time) -> StepRow {
    StepRow {
        path: row.path.clone(),
        attempt: row_attempt(state),
        // The row is for this attempt: an attempt that will be retried has failed.
        status: if row.phase == Phase::Backoff { "failed" } else { row.phase.name() }.into(),
        since: row.since,
        ended: (state.status().is_some() || row.phase == Phase::Backoff).then_some(now),
        input: row.input,
        output: row.output.map(|output| output.body),
        state: json(&row),
    }
}

/// The attempt in a row's key: the current one, or the next if none has begun since the last reset.
fn row_attempt(state: &StepState) -> u32 {
    if state.attempt > state.uncounted { state.attempt } else { state.attempt + 1 }
}

/// Rows of passes and items: their result, or, after a retry, that they are open again.
fn instance_rows(graph: &Graph, run: &Run, fact: &Fact, now: Time) -> Vec<StepRow> {
    match fact {
        Fact::Closed { step, index, end, result } => {
            let row = InstanceRow { path: run.path(graph, *step), index: *index, end: *end, result: *result };
            vec![instance_row(&row.path, *index, Some(&row), now)]
        }
        Fact::Opened { step, index } if run.generation > 0 => {
            vec![instance_row(&run.path(graph, *step), *index, None, now)]
        }
        Fact::Retried { reopened, .. } => reopened.iter().flat_map(|at| reopened_rows(graph, run, *at, now)).collect(),
        _ => Vec::new(),
    }
}

fn reopened_rows(graph: &Graph, run: &Run, at: At, now: Time) -> Vec<StepRow> {
    let path = run.path(graph, at);
    let closed = run.step(graph, at).and_then(|state| state.scope()).map(|scope| scope.closed.as_slice());
    let open = closed.unwrap_or_default().iter().enumerate().filter(|(_, closed)| closed.is_none());
    open.map(|(index, _)| instance_row(&path, index as u32, None, now)).collect()
}

fn instance_row(path: &str, index: u32, ended: Option<&InstanceRow>, now: Time) -> StepRow {
    StepRow {
        path: format!("{path}[{index}]"),
        attempt: 1,
        status: if ended.is_some() { "closed" } else { "open" }.into(),
        since: now,
        ended: ended.map(|_| now),
        input: None,
        output: ended.and_then(|row| row.result),
        state: json(&ended),
    }
}

/// Attempts to add to and to remove from the work queue. Which node gets them is decided later.
fn work(graph: &Graph, run: &Run, transition: &Transition, org: OrgId, now: Time) -> Diff<Work> {
    let mut diff: Diff<Work> = Diff::default();
    let key = |at: At, attempt: u32| WorkKey { path: run.path(graph, at), attempt };
    for fact in &transition.facts {
        match *fact {
            Fact::Retrying { step, attempt, .. }
            | Fact::Held { step, attempt, .. }
            | Fact::Unsure { step, attempt } => {
                diff.remove.push(key(step, attempt));
            }
            Fact::Finished { step, attempt, .. } => diff.remove.push(key(step, attempt)),
            Fact::Again { step, attempt, reason: Reason::WorkerLost | Reason::WorkerStopped, .. } => {
                diff.remove.push(key(step, attempt - 1));
            }
            _ => {}
        }
    }
    for effect in &transition.effects {
        match *effect {
            // Several events may share a commit: an attempt that began and ended in it never becomes work.
            Effect::Dispatch { at, attempt } if is_running(graph, run, at, attempt) => {
                let kind = graph.step(at.step).def.kind.name().into();
                diff.put.push(Work { key: key(at, attempt), org, kind, ready: now, node: None });
            }
            Effect::Abort { at, attempt } => diff.remove.push(key(at, attempt)),
            Effect::Dispatch { .. }
            | Effect::SetTimer { .. }
            | Effect::ClearTimer { .. }
            | Effect::StartChild { .. }
            | Effect::CancelChild { .. }
            | Effect::Abandon { .. } => {}
        }
    }
    diff
}

/// Steps that start or stop waiting for a user.
fn gates(graph: &Graph, run: &Run, transition: &Transition, now: Time) -> Diff<Gate> {
    let mut diff: Diff<Gate> = Diff::default();
    let touched: BTreeSet<At> = transition.touched.iter().copied().collect();
    for at in touched {
        let Some(state) = run.step(graph, at) else { continue };
        let held = state.more.as_ref().is_some_and(|more| more.ask.is_some() || more.approved.is_some());
        let unsure = state.more.as_ref().is_some_and(|more| more.unsure);
        match state.phase {
            Phase::Gate | Phase::Unsure => diff.put.push(Gate { path: run.path(graph, at), since: now }),
            _ if held || unsure || matches!(graph.step(at.step).def.kind, Kind::Gate(_)) => {
                diff.remove.push(run.path(graph, at));
            }
            _ => {}
        }
    }
    diff
}

fn is_running(graph: &Graph, run: &Run, at: At, attempt: u32) -> bool {
    run.step(graph, at).is_some_and(|state| state.phase == Phase::Running && state.attempt == attempt)
}

fn timers(graph: &Graph, run: &Run, transition: &Transition, fired: Vec<String>) -> Diff<TimerRow> {
    let mut diff = Diff { put: Vec::new(), remove: fired };
    for effect in &transition.effects {
        match effect {
            Effect::SetTimer { timer, due } => {
                let key = timer_key(graph, run, timer);
                // A continuation may have fired, or been cleared, by the same commit.
                diff.remove.retain(|removed| *removed != key);
                diff.put.push(TimerRow { key, due: *due });
            }
            Effect::ClearTimer { timer } => {
                let key = timer_key(graph, run, timer);
                diff.put.retain(|row| row.key != key);
                diff.remove.push(key);
            }
            _ => {}
        }
    }
    diff
}

/// Notices that request the start or cancellation of child runs.
fn notices(graph: &Graph, run: &Run, transition: &Transition, now: Time) -> Vec<Notice> {
    let notice = |task: ChildTask, at: At, attempt: u32| {
        let key = child_key(task, &run.path(graph, at), attempt);
        Notice { key, body: String::new(), due: now }
    };
    let effects = transition.effects.iter();
    let child = effects.filter_map(|effect| match *effect {
        Effect::StartChild { at, attempt } => Some(notice(ChildTask::Start, at, attempt)),
        Effect::CancelChild { at, attempt } => Some(notice(ChildTask::Cancel, at, attempt)),
        Effect::Dispatch { .. }
        | Effect::Abort { .. }
        | Effect::SetTimer { .. }
        | Effect::ClearTimer { .. }
        | Effect::Abandon { .. } => None,
    });
    child.collect()
}

#[derive(Debug, thiserror::Error)]
pub enum StoredRunError {
    #[error("the stored run cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
    #[error(transparent)]
    Unknown(#[from] SnapshotError),
}

impl From<StoredRunError> for Error {
    fn from(error: StoredRunError) -> Error {
        Error::Broken(error.to_string())
    }
}

/// When the run begins or began, if it was scheduled. Reads its head only.
pub fn scheduled_for(stored: &LoadedRun) -> Result<Option<Time>, StoredRunError> {
    let snapshot: Snapshot = serde_json::from_str(&stored.state)?;
    Ok(snapshot.scheduled)
}

/// Restores a run from its rows.
pub fn restore(graph: &Graph, stored: &LoadedRun) -> Result<Run, StoredRunError> {
    let mut snapshot: Snapshot = serde_json::from_str(&stored.state)?;
    for step in &stored.steps {
        // Step names contain no brackets: a path that ends in one is a pass or an item.
        if step.path.ends_with(']') {
            snapshot.instances.extend(serde_json::from_str::<Option<InstanceRow>>(&step.state)?);
        } else {
            snapshot.steps.extend(serde_json::from_str::<Option<Row>>(&step.state)?);
        }
    }
    // A scope step sorts before the steps inside it. Rows of items that were not opened again are ignored.
    snapshot.steps.sort_by(|a, b| a.path.cmp(&b.path));
    let scopes = snapshot.steps.iter().filter_map(|step| Some((step.path.as_str(), step.scope?.opened)));
    let opened: HashMap<&str, u32> = scopes.collect();
    let is_opened = |row: &InstanceRow| opened.get(row.path.as_str()).is_some_and(|&opened| row.index < opened);
    snapshot.instances.retain(is_opened);
    let mut values = Values::default();
    for value in &stored.values {
        let payload: Payload = serde_json::from_str(&value.payload)?;
        values.put(value.id, payload);
    }
    Ok(Run::restore(graph, snapshot, values)?)
}
