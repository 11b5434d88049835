//! Compares a played case with what it expects. Each difference is a text that says what was expected and found.

use super::case::Expect;
use serde_json::Value;
use stepwell_core::diff::unified;
use stepwell_core::simulate::play::Played;
use stepwell_core::simulate::script::Series;

/// All differences, the most telling first; empty if the case passes.
pub fn judge(expect: &Expect, played: &Played) -> Vec<String> {
    if let Some(stuck) = &played.stuck {
        return vec![stuck.clone()];
    }
    let mut found = Vec::new();
    let status = expect.status.as_deref().unwrap_or("completed");
    if status != played.status {
        let why = played.error.as_ref().map(|error| format!(": {} [{}]", error.message, error.code));
        found.push(format!("status: expected {status}, found {}{}", played.status, why.unwrap_or_default()));
    }
    if let Some(error) = &expect.error {
        let is = |failure: &stepwell_core::event::Failure| *failure.code == **error || failure.message.contains(error);
        if !played.error.as_ref().is_some_and(is) {
            let error_found = played.error.as_ref().map_or("none".into(), |error| error.message.to_string());
            found.push(format!("error: expected {error:?}, found {error_found:?}"));
        }
    }
    if let Some(path) = &expect.path
        && *path != played.path
    {
        found.push(format!("path:\n{}", changes(&lines(path), &lines(&played.path))));
    }
    for (step, status) in &expect.steps {
        let state = played.steps.get(step).copied().unwrap_or("pending");
        if state != status {
            found.push(format!("step {step:?}: expected {status}, found {state}"));
        }
    }
    found.extend(calls(expect, played));
    if let Some(output) = &expect.output
        && *output != played.output
    {
        found.push(format!("output:\n{}", changes(&pretty(output), &pretty(&played.output))));
    }
    if let Some(took) = expect.took
        && took.0 != played.took
    {
        found.push(format!("took: expected {}, found {}", took.0, played.took));
    }
    found
}

fn calls(expect: &Expect, played: &Played) -> Vec<String> {
    let mut found = Vec::new();
    for (step, expected) in &expect.calls {
        let made = played.calls.get(step).map(Vec::as_slice).unwrap_or_default();
        if let Series::Each(list) = expected
            && list.len() != made.len()
        {
            found.push(format!("calls of {step:?}: expected {}, found {}", list.len(), made.len()));
            continue;
        }
        if made.is_empty() {
            found.push(format!("calls of {step:?}: expected one, found none"));
        }
        for (nth, made) in made.iter().enumerate() {
            let Some(expected) = expected.nth(nth) else { continue };
            let made = only(expected, made);
            if *expected != made {
                let diff = changes(&pretty(expected), &pretty(&made));
                found.push(format!("call {} of {step:?}:\n{diff}", nth + 1));
            }
        }
    }
    found
}

/// The part of `found` that `expected` speaks of: fields that it does not name are left out, at any depth.
fn only(expected: &Value, found: &Value) -> Value {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            let named = |(key, inner): (&String, &Value)| found.get(key).map(|value| (key.clone(), only(inner, value)));
            Value::Object(expected.iter().filter_map(named).collect())
        }
        _ => found.clone(),
    }
}

fn lines(path: &[String]) -> String {
    path.iter().map(|step| format!("{step}\n")).collect()
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

fn changes(expected: &str, found: &str) -> String {
    format!("--- expected\n+++ found\n{}", unified(expected, found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_that_are_not_written_are_not_compared() {
        let found = json!({"url": "u", "body": {"to": "ann", "at": 5}, "list": [1, {"a": 2}]});
        assert_eq!(only(&json!({"body": {"to": "bob"}}), &found), json!({"body": {"to": "ann"}}));
        assert_eq!(only(&json!({"list": [1]}), &found), json!({"list": [1, {"a": 2}]}));
        assert_eq!(only(&json!({"more": 1}), &found), json!({}));
    }
}
