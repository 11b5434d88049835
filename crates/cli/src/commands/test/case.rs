//! Reads test files: the cases of a workflow, with the results of its calls, the answers at its waits and what is
//! expected of the run.

use crate::source::Source;
use anyhow::{Context, bail};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use stepwell_core::definition::Definition;
use stepwell_core::simulate::script::{Fake, Length, Reply, Script, Series, fits};

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

impl Case {
    pub fn script(&self) -> Script {
        Script { input: self.input.clone(), calls: self.calls.clone(), answers: self.answers.clone() }
    }
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
            let script = case.script();
            let wrong = |(place, why): (String, String)| anyhow::anyhow!("case {name:?}: {place}: {why}");
            script.check(graph).map_err(wrong)?;
            let expected = case.expect.steps.keys().chain(case.expect.calls.keys());
            for step in expected.chain(case.expect.path.iter().flatten()) {
                fits(graph, step, &|_| true, "").map_err(|why| anyhow::anyhow!("case {name:?}: expect: {why}"))?;
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
