//! What calls and people do in a simulated run, as test files and agents write it: results of calls and answers, by step.

use crate::graph::{Graph, Kind};
use crate::nearest::nearest;
use crate::time::Millis;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The input of a run, the results of its calls and the answers at its waits, by the path or the name of the step.
#[derive(Clone, Debug, Default)]
pub struct Script {
    pub input: Value,
    pub calls: BTreeMap<String, Series<Fake>>,
    pub answers: BTreeMap<String, Series<Reply>>,
}

impl Script {
    /// Refuses steps that the definition does not have or that are of another kind, which would never be noticed
    /// otherwise. The error begins with the place: `calls.pay`.
    pub fn check(&self, graph: &Graph) -> Result<(), (String, String)> {
        let at = |field: &str, step: &str| format!("{field}.{step}");
        for step in self.calls.keys() {
            let calls = |kind: &Kind| matches!(kind, Kind::Call { .. } | Kind::Child { .. });
            fits(graph, step, &calls, "makes no call").map_err(|why| (at("calls", step), why))?;
        }
        for step in self.answers.keys() {
            let waits = |kind: &Kind| matches!(kind, Kind::Gate(_) | Kind::Webhook { .. } | Kind::Call { .. });
            fits(graph, step, &waits, "waits for no one").map_err(|why| (at("answers", step), why))?;
        }
        Ok(())
    }
}

/// Refuses a step that the definition does not have, or that is of another kind.
pub fn fits(graph: &Graph, key: &str, is: &dyn Fn(&Kind) -> bool, otherwise: &str) -> Result<(), String> {
    let name = last_name(key);
    let mut named = graph.steps.iter().filter(|step| &*step.def.name == name).peekable();
    if named.peek().is_none() {
        let names = graph.steps.iter().map(|step| &*step.def.name);
        let hint = nearest(name, names).map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
        return Err(format!("there is no step {name:?}{hint}"));
    }
    if named.any(|step| is(&step.def.kind)) { Ok(()) } else { Err(format!("step {name:?} {otherwise}")) }
}

/// One value for every time, or a list with one for each.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Value", bound = "T: serde::de::DeserializeOwned")]
pub enum Series<T> {
    Always(T),
    Each(Vec<T>),
}

impl<T: serde::de::DeserializeOwned> TryFrom<Value> for Series<T> {
    type Error = String;

    fn try_from(value: Value) -> Result<Series<T>, String> {
        fn read<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, String> {
            serde_json::from_value(value).map_err(|error| error.to_string())
        }
        match value {
            Value::Array(list) => list.into_iter().map(read).collect::<Result<_, _>>().map(Series::Each),
            value => read(value).map(Series::Always),
        }
    }
}

impl<T> Series<T> {
    /// The value for the `nth` time, from 0.
    pub fn nth(&self, nth: usize) -> Option<&T> {
        match self {
            Series::Always(value) => Some(value),
            Series::Each(list) => list.get(nth),
        }
    }
}

/// A duration as definitions write it: `90s`, `2h`; a bare number is seconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(try_from = "Value")]
pub struct Length(pub Millis);

impl TryFrom<Value> for Length {
    type Error = String;

    fn try_from(value: Value) -> Result<Length, String> {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Millis::parse(&text).map(Length).ok_or_else(|| format!("{text:?} is not a duration such as 90s or 2h"))
    }
}

/// What one call comes to.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Value")]
pub enum Fake {
    /// No result arrives within the step's timeout.
    Timeout,
    Result(Box<Outcome>),
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// The result of a tool, the output of a child workflow and the body of a response are the same thing here.
    #[serde(default, alias = "result", alias = "output")]
    pub body: Value,
    pub headers: Option<Value>,
    pub status: Option<u16>,
    pub error: Option<Fails>,
    #[serde(default)]
    pub after: Length,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fails {
    #[serde(default = "some_code")]
    pub code: String,
    #[serde(default)]
    pub message: String,
    #[serde(default = "yes")]
    pub retryable: bool,
}

fn some_code() -> String {
    "faked".into()
}

fn yes() -> bool {
    true
}

impl TryFrom<Value> for Fake {
    type Error = String;

    fn try_from(mut value: Value) -> Result<Fake, String> {
        if value == "timeout" {
            return Ok(Fake::Timeout);
        }
        if !value.is_object() {
            return Err(format!(
                "expected `timeout` or an object with `body`, `status`, `error` or `after`, not {value}"
            ));
        }
        // A message alone is short for an error with the other fields left out.
        if let Some(message) = value.get("error").and_then(Value::as_str).map(str::to_owned) {
            value["error"] = serde_json::json!({"message": message});
        }
        serde_json::from_value(value).map(|outcome| Fake::Result(Box::new(outcome))).map_err(|error| error.to_string())
    }
}

/// What arrives at a step that waits for someone.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Value")]
pub enum Reply {
    /// Nothing arrives: the wait takes as long as it may.
    Timeout,
    Given(Box<Given>),
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Given {
    pub answer: Option<Word>,
    /// The body of the call that a webhook wait receives, or of the call that happened.
    #[serde(default)]
    pub body: Value,
    pub by: Option<String>,
    pub comment: Option<String>,
    pub form: Option<Value>,
    #[serde(default)]
    pub after: Length,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    Approve,
    Deny,
    Happened,
    RunAgain,
    Fail,
}

impl TryFrom<Value> for Reply {
    type Error = String;

    fn try_from(value: Value) -> Result<Reply, String> {
        if value == "timeout" {
            return Ok(Reply::Timeout);
        }
        let value = if value.is_string() { serde_json::json!({ "answer": value }) } else { value };
        if !value.is_object() {
            return Err(format!("expected `approve`, `deny`, `timeout` or an object, not {value}"));
        }
        serde_json::from_value(value).map(|given| Reply::Given(Box::new(given))).map_err(|error| error.to_string())
    }
}

/// The step at the end of a path: `each[0].remind` is about `remind`.
fn last_name(key: &str) -> &str {
    key.rsplit_once("].").map_or(key, |(_, name)| name)
}

/// A path without the loops that the engine makes of cycles: `loop:pause[1].pause` is `pause`.
pub fn without_loops(path: &str) -> String {
    let mut rest = path;
    let mut kept = String::new();
    while let Some((scope, inner)) = rest.split_once("].") {
        if !scope.starts_with("loop:") {
            kept.push_str(scope);
            kept.push_str("].");
        }
        rest = inner;
    }
    kept + rest
}

/// The keys under which a case may speak of a step, the most precise first: `each[1].remind`, `remind`.
pub fn keys(path: &str) -> [String; 2] {
    let path = without_loops(path);
    let name = last_name(&path).to_owned();
    [path, name]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_step_is_known_by_its_path_without_loops_and_by_its_name() {
        assert_eq!(keys("build"), ["build", "build"]);
        assert_eq!(keys("loop:pause[2].healthy"), ["healthy", "healthy"]);
        assert_eq!(keys("each[1].remind"), ["each[1].remind", "remind"]);
        assert_eq!(keys("each[1].loop:a[0].b"), ["each[1].b", "b"]);
    }

    #[test]
    fn results_and_answers_have_short_and_long_forms() {
        let fake = |value: Value| serde_json::from_value::<Series<Fake>>(value);
        assert!(matches!(fake(json!("timeout")).unwrap(), Series::Always(Fake::Timeout)));
        assert!(matches!(fake(json!([{"result": 1}, "timeout"])).unwrap(), Series::Each(list) if list.len() == 2));
        let Series::Always(Fake::Result(outcome)) = fake(json!({"error": "no", "after": "2m"})).unwrap() else {
            panic!()
        };
        assert_eq!((outcome.error.unwrap().message, outcome.after.0), ("no".into(), Millis(120_000)));
        for bad in [json!("later"), json!({"bdy": 1}), json!({"body": 1, "after": "soon"}), json!(7)] {
            assert!(fake(bad.clone()).is_err(), "{bad}");
        }
        let reply = |value: Value| serde_json::from_value::<Series<Reply>>(value);
        let Series::Always(Reply::Given(given)) = reply(json!("deny")).unwrap() else { panic!() };
        assert_eq!(given.answer, Some(Word::Deny));
        assert!(reply(json!("perhaps")).is_err());
    }
}
