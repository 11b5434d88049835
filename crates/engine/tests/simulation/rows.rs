//! While a run is in progress, its rows in the store match its state.

use crate::sim::Sim;
use crate::verify::{loaded, tell};
use futures_util::FutureExt;
use std::collections::{BTreeMap, BTreeSet};
use stepwell_core::graph::Graph;
use stepwell_core::run::{Phase, Run, RunStatus};
use stepwell_core::time::Time;
use stepwell_store::{RunId, WorkKey};

/// Looks at a run as a process would find it that starts now.
pub fn check(sim: &Sim, id: RunId) {
    let Some((run, definition, stored)) = loaded(sim, id).now_or_never().unwrap() else { return };
    let graph = &definition.graph;
    let past = sim.past();
    let Some(story) = past.runs.get(&id) else { return };
    let mut faults = Vec::new();
    if story.work != work(graph, &run) {
        faults.push(format!("its steps ask for {:?} and the store has {:?}", work(graph, &run), story.work));
    }
    let is_continuation = |key: &String| key.starts_with("continue:");
    let waits: BTreeMap<String, Time> =
        story.timers.clone().into_iter().filter(|(key, _)| !is_continuation(key)).collect();
    if waits != timers(graph, &run) {
        faults.push(format!("its steps wait for {:?} and the store has {:?}", timers(graph, &run), story.timers));
    }
    if run.has_decisions_left() != story.timers.keys().any(is_continuation) {
        faults.push(format!("decisions are left: {}; the store has {:?}", run.has_decisions_left(), story.timers));
    }
    if run.status.is_terminal() != run.waiting_for(graph).is_empty() {
        faults.push("it is not finished, and says nothing about what it waits for".into());
    }
    let status = if run.is_paused() { "paused" } else { run.status.name() };
    if stored.row.status != status {
        faults.push(format!("it is {status} and its row says {}", stored.row.status));
    }
    let told = if faults.is_empty() { String::new() } else { tell(story) };
    drop(past);
    faults.into_iter().for_each(|fault| sim.breaks(format!("{fault}\n{told}")));
}

fn work(graph: &Graph, run: &Run) -> BTreeSet<WorkKey> {
    let running = run.steps(graph).filter(|(_, state)| state.phase == Phase::Running);
    running.map(|(at, state)| WorkKey { path: run.path(graph, at), attempt: state.attempt }).collect()
}

fn timers(graph: &Graph, run: &Run) -> BTreeMap<String, Time> {
    let mut timers = BTreeMap::new();
    if run.status == RunStatus::Scheduled {
        timers.extend(run.scheduled.map(|due| (format!("begin:{}:", run.generation), due)));
    }
    if run.status == RunStatus::Running {
        timers.extend(run.expires.map(|due| (format!("expire:{}:", run.generation), due)));
    }
    for (at, state) in run.steps(graph) {
        let kind = match state.phase {
            Phase::Sleeping => "wake",
            Phase::Backoff => "retry",
            Phase::Webhook | Phase::Gate | Phase::Child => "timeout",
            Phase::Idle | Phase::Running | Phase::Unsure | Phase::Open | Phase::Done(_) => continue,
        };
        let key = |kind: &str| format!("{kind}:{}:{}", state.attempt, run.path(graph, at));
        timers.extend(state.due.map(|due| (key(kind), due)));
        let more = state.more.as_ref().filter(|more| !more.escalated && state.phase == Phase::Gate);
        timers.extend(more.and_then(|more| more.escalate).map(|due| (key("escalate"), due)));
    }
    timers
}
