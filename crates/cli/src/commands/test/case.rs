//! Reads test files: the cases of a workflow, with the results of its calls, the answers at its waits and what is
//! expected of the run.

use crate::source::Source;
use anyhow::{Context, bail};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use stepwell_core::definition::Definition;
use stepwell_core::graph::{Graph, Kind};
use stepwell_core::nearest::nearest;
use stepwell_core::time::Millis;

/// The second ending of a test file: `deploy.test.yaml`.
const TEST: &str = ".test";
/// The endings of a definition, in the order in which they are looked for beside a test file.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// The cases of one file, and the definition they are about.
pub struct Suite {
    pub file: String,
    pub definition: Definition,
    pub cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// The definition, relative to the test file.
    workflow: Option<String>,
    /// Results and answers for all cases that have none of their own.
    #[serde(default)]
    calls: BTreeMap<String, Series<Fake>>,
    #[serde(default)]
    answers: BTreeMap<String, Series<Reply>>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    pub name: String,
    #[serde(default = "empty")]
    pub input: Value,
    #[serde(default)]
    pub calls: BTreeMap<String, Series<Fake>>,
    #[serde(default)]
    pub answers: BTreeMap<String, Series<Reply>>,
    #[serde(default)]
    pub expect: Expect,
}

fn empty() -> Value {
    Value::Object(serde_json::Map::new())
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// `completed` if nothing is said.
    pub status: Option<String>,
    #[serde(default, deserialize_with = "present")]
    pub output: Option<Value>,
    /// A part of the run's error, or its code.
    pub error: Option<String>,
    /// The steps that ran, in order.
    pub path: Option<Vec<String>>,
    #[serde(default)]
    pub steps: BTreeMap<String, String>,
    /// What calls were given; fields that are not written are not compared.
    #[serde(default)]
    pub calls: BTreeMap<String, Series<Value>>,
    /// Virtual time from start to end.
    pub took: Option<Length>,
}

/// Tells `output: null` from no `output`.
fn present<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

/// One value for every time, or a list with one for each.
#[derive(Clone, Deserialize)]
#[serde(try_from = "Value", bound = "T: serde::de::DeserializeOwned")]
pub enum Series<T> {
    Always(T),
    Each(Vec<T>),
}

impl<T: serde::de::DeserializeOwned> TryFrom<Value> for Series<T> {
    type Error = String;

    fn try_from(value: Value) -> Result<Series<T>, String> {
        fn read<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, String> {
            serde_path_to_error::deserialize(value).map_err(|error| error.to_string())
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

#[derive(Clone, Debug, Deserialize)]
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

impl Suite {
    /// Reads a test file and its definition. The error names the file and the place in it.
    pub fn load(file: &str) -> anyhow::Result<Suite> {
        let source = Source::read(file)?;
        let text = String::from_utf8_lossy(&source.bytes);
        let document = stepwell_formats::document(&source.bytes, Some(file));
        let document = document.map_err(|faults| anyhow::anyhow!("{}", faults.render(file, &text).trim_end()))?;
        let read: File = serde_path_to_error::deserialize(document)
            .map_err(|error| anyhow::anyhow!("{}: {}", error.path(), error.inner()))
            .with_context(|| file.to_owned())?;
        let path = definition_of(file, read.workflow.as_deref())?;
        let source = Source::read(&path)?;
        let definition =
            source.compile().map_err(|faults| anyhow::anyhow!("{}", source.explain(&faults).trim_end()))?;
        let mut suite = Suite { file: file.into(), definition, cases: read.cases };
        for case in &mut suite.cases {
            for (step, fake) in &read.calls {
                case.calls.entry(step.clone()).or_insert_with(|| fake.clone());
            }
            for (step, reply) in &read.answers {
                case.answers.entry(step.clone()).or_insert_with(|| reply.clone());
            }
        }
        suite.check().with_context(|| file.to_owned())?;
        Ok(suite)
    }

    /// Refuses what cannot mean anything: repeated names and unknown steps, which would never be noticed otherwise.
    fn check(&self) -> anyhow::Result<()> {
        let mut names = BTreeSet::new();
        for case in &self.cases {
            let name = &case.name;
            if !names.insert(name) {
                bail!("two cases are named {name:?}");
            }
            let graph = &self.definition.graph;
            for step in case.calls.keys() {
                let calls = |kind: &Kind| matches!(kind, Kind::Call { .. } | Kind::Child { .. });
                fits(graph, step, &calls, "makes no call").with_context(|| format!("case {name:?}: calls"))?;
            }
            for step in case.answers.keys() {
                let waits = |kind: &Kind| matches!(kind, Kind::Gate(_) | Kind::Webhook { .. } | Kind::Call { .. });
                fits(graph, step, &waits, "waits for no one").with_context(|| format!("case {name:?}: answers"))?;
            }
            let expected = case.expect.steps.keys().chain(case.expect.calls.keys());
            for step in expected.chain(case.expect.path.iter().flatten()) {
                fits(graph, step, &|_| true, "").with_context(|| format!("case {name:?}: expect"))?;
            }
        }
        Ok(())
    }
}

/// The definition that a test file is about: the one it names, or the one beside it with the same name.
fn definition_of(file: &str, named: Option<&str>) -> anyhow::Result<String> {
    let path = Path::new(file);
    let folder = path.parent().unwrap_or(Path::new(""));
    let text = |path: PathBuf| path.to_str().map(str::to_owned).with_context(|| format!("{path:?} is not text"));
    if let Some(named) = named {
        return text(folder.join(named));
    }
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let stem = stem.strip_suffix(TEST).unwrap_or(stem);
    let beside = ENDINGS.iter().map(|ending| folder.join(format!("{stem}.{ending}"))).find(|path| path.is_file());
    match beside {
        Some(path) if path != Path::new(file) => text(path),
        _ => bail!("{file}: there is no {stem}.yaml, {stem}.yml or {stem}.json beside it; name one with `workflow:`"),
    }
}

/// Refuses a step that the definition does not have, or that is of another kind.
fn fits(graph: &Graph, key: &str, is: &dyn Fn(&Kind) -> bool, otherwise: &str) -> anyhow::Result<()> {
    let name = last_name(key);
    let mut named = graph.steps.iter().filter(|step| &*step.def.name == name).peekable();
    if named.peek().is_none() {
        let names = graph.steps.iter().map(|step| &*step.def.name);
        let hint = nearest(name, names).map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
        bail!("there is no step {name:?}{hint}");
    }
    if !named.any(|step| is(&step.def.kind)) {
        bail!("step {name:?} {otherwise}");
    }
    Ok(())
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
