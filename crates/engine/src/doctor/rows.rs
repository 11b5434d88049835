//! Rows against the log, and rows against themselves.

use super::Check;
use super::log::Log;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use stepwell_core::graph::Graph;
use stepwell_core::run::{Phase, Row, Run, Snapshot};
use stepwell_store::{RunRow, StepRow};

/// Differences of one run that are told.
const MOST: usize = 10;

/// What two states of a run differ in: the one its log comes to, and the one its rows say.
pub fn differences(log: (&Graph, &Run), rows: (&Graph, &Run)) -> Vec<(Check, String)> {
    let (log, rows) = (words(log), words(rows));
    let mut found = Vec::new();
    let paths: BTreeSet<&String> = log.keys().chain(rows.keys()).collect();
    for path in paths {
        match (log.get(path), rows.get(path)) {
            (Some(log), Some(rows)) if log == rows => {}
            (Some(log), Some(rows)) => found.extend(fields(log, rows).map(|text| format!("{path}: {text}"))),
            (Some(_), None) => found.push(format!("{path}: the log has it, and its row is missing")),
            (None, _) => found.push(format!("{path}: there is a row, and the log has nothing of it")),
        }
    }
    found.truncate(MOST);
    found.into_iter().map(|message| (Check::Rows, message)).collect()
}

/// The run and each of its steps, by name.
fn words((graph, run): (&Graph, &Run)) -> BTreeMap<String, Value> {
    let json = |value: serde_json::Result<Value>| value.unwrap_or_default();
    let Snapshot { steps, instances, .. } = run.snapshot(graph);
    let mut all = BTreeMap::new();
    // How many payloads there are is not in the log.
    let head = Snapshot { values: 0, ..run.head() };
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
    let say = |value: Option<&Value>| value.map_or("nothing".to_string(), Value::to_string);
    differ
        .map(move |name| format!("{name} is {} by the log and {} in the row", say(log.get(name)), say(rows.get(name))))
}

/// What columns repeat of what the row says must agree with it.
pub fn columns(row: &RunRow, status: &str, steps: &[StepRow]) -> Vec<(Check, String)> {
    let mut found = Vec::new();
    if row.status != status {
        found.push(format!("the run is listed as {} and is {status}", row.status));
    }
    for step in steps {
        // Passes and items have rows of another kind.
        if step.path.ends_with(']') {
            continue;
        }
        let name = format!("attempt {} of step {}", step.attempt, step.path);
        match serde_json::from_str::<Option<Row>>(&step.state) {
            // History that a newer version of the workflow has left behind.
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

/// Every attempt in which a commit left a step has a row of its own.
pub fn attempts(log: &Log, steps: &[StepRow]) -> Vec<(Check, String)> {
    let there: BTreeSet<(&str, u32)> = steps.iter().map(|step| (step.path.as_str(), step.attempt)).collect();
    let all = log.attempts.iter().flat_map(|(step, attempts)| attempts.iter().map(move |attempt| (step, attempt)));
    let missing = all.filter(|(step, attempt)| !there.contains(&(step.as_str(), **attempt)));
    let say = |(step, attempt): (&String, &u32)| format!("attempt {attempt} of step {step} has no row");
    missing.take(MOST).map(say).map(|message| (Check::Rows, message)).collect()
}
