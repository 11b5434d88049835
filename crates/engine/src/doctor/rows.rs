//! Compares rows with the log, and the columns of a row with its state.

use super::log::Log;
use super::{Check, RunState};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use stepwell_core::run::{Phase, Row, Snapshot};
use stepwell_store::{RunRow, StepRow};

/// Differences that are reported for one run.
const MOST: usize = 10;

/// The differences between two states of a run: the one folded from its log, and the one in its rows.
pub fn differences(log: RunState<'_>, rows: RunState<'_>) -> Vec<(Check, String)> {
    let (log, rows) = (parts(log), parts(rows));
    let mut found = Vec::new();
    let paths: BTreeSet<&String> = log.keys().chain(rows.keys()).collect();
    for path in paths {
        match (log.get(path), rows.get(path)) {
            (Some(log), Some(rows)) if log == rows => {}
            (Some(log), Some(rows)) => found.extend(fields(log, rows).map(|text| format!("{path}: {text}"))),
            (Some(_), None) => found.push(format!("{path} is in the log, but its row is missing")),
            (None, _) => found.push(format!("{path} has a row, but is not in the log")),
        }
    }
    found.truncate(MOST);
    found.into_iter().map(|message| (Check::Rows, message)).collect()
}

/// The run and each of its steps as JSON, by name.
fn parts(RunState { graph, run }: RunState<'_>) -> BTreeMap<String, Value> {
    let json = |value: serde_json::Result<Value>| value.unwrap_or_default();
    let Snapshot { steps, instances, .. } = run.snapshot(graph);
    let mut all = BTreeMap::new();
    // The number and the weight of payloads are not in the log.
    let head = Snapshot { values: 0, weight: None, ..run.head() };
    all.insert("the run".to_string(), json(serde_json::to_value(head)));
    all.extend(steps.iter().map(|row| (format!("step {}", row.path), json(serde_json::to_value(row)))));
    let name = |path: &str, index: u32| format!("{path}[{index}]");
    all.extend(instances.iter().map(|row| (name(&row.path, row.index), json(serde_json::to_value(row)))));
    all
}

fn fields<'a>(log: &'a Value, rows: &'a Value) -> impl Iterator<Item = String> + 'a {
    let names = |value: &'a Value| value.as_object().into_iter().flat_map(|fields| fields.keys());
    let all: BTreeSet<&String> = names(log).chain(names(rows)).collect();
    let differ = all.into_iter().filter(|name| log.get(*name) != rows.get(*name));
    let text = |value: Option<&Value>| value.map_or("nothing".to_string(), Value::to_string);
    differ.map(move |name| {
        format!("{name} is {} by the log and {} in the row", text(log.get(name)), text(rows.get(name)))
    })
}

/// Checks that the columns of each row agree with the state in it.
pub fn columns(row: &RunRow, status: &str, steps: &[StepRow]) -> Vec<(Check, String)> {
    let mut found = Vec::new();
    if row.status != status {
        found.push(format!("the run is listed as {} but is {status}", row.status));
    }
    for step in steps {
        // Passes and items of loops have rows of another kind.
        if step.path.ends_with(']') {
            continue;
        }
        let name = format!("attempt {} of step {}", step.attempt, step.path);
        match serde_json::from_str::<Option<Row>>(&step.state) {
            // History of a step that a newer version of the workflow removed.
            Ok(None) => {}
            Ok(Some(state)) if agrees(step, &state) => {}
            Ok(Some(_)) => found.push(format!("{name}: its columns contradict its state")),
            Err(error) => found.push(format!("{name} cannot be read: {error}")),
        }
    }
    found.truncate(MOST);
    found.into_iter().map(|message| (Check::Rows, message)).collect()
}

fn agrees(step: &StepRow, state: &Row) -> bool {
    let status = if state.phase == Phase::Backoff { "failed" } else { state.phase.name() };
    let attempt = if state.attempt > state.uncounted { state.attempt } else { state.attempt + 1 };
    (&state.path, status, attempt) == (&step.path, &*step.status, step.attempt)
        && (state.input, state.output.map(|output| output.body)) == (step.input, step.output)
}

/// Checks that every attempt in the log has a row.
pub fn attempts(log: &Log, steps: &[StepRow]) -> Vec<(Check, String)> {
    let stored: BTreeSet<(&str, u32)> = steps.iter().map(|step| (step.path.as_str(), step.attempt)).collect();
    let all = log.attempts.iter().flat_map(|(step, attempts)| attempts.iter().map(move |attempt| (step, attempt)));
    let missing = all.filter(|(step, attempt)| !stored.contains(&(step.as_str(), **attempt)));
    let message = |(step, attempt): (&String, &u32)| format!("attempt {attempt} of step {step} has no row");
    missing.take(MOST).map(message).map(|message| (Check::Rows, message)).collect()
}
