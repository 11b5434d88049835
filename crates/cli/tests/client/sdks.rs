//! The SDKs beside each other: they have the same methods, and the types of the Rust SDK are those of the API's
//! description.

use serde::de::value::Error;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use stepwell_client as client;

type Names = BTreeSet<String>;

/// Asks a type which fields or variants it reads, by failing with their names.
struct Asked;

impl<'de> Deserializer<'de> for Asked {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("it is neither a struct nor an enum"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        Err(Error::custom(fields.join(" ")))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        Err(Error::custom(variants.join(" ")))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map identifier ignored_any
    }
}

fn names_in<T: DeserializeOwned>() -> Names {
    let Err(names) = T::deserialize(Asked) else { panic!("nothing was read") };
    names.to_string().split(' ').map(str::to_string).collect()
}

/// What a schema has: properties that are not deprecated, or the values of a closed set.
fn described(schemas: &Value, name: &str) -> Names {
    let schema = &schemas[name];
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().map(|value| value.as_str().unwrap().to_string()).collect();
    }
    let parts = schema["allOf"].as_array().cloned().unwrap_or_else(|| vec![schema.clone()]);
    let of_part = |part: &Value| -> Names {
        if let Some(base) = part["$ref"].as_str() {
            return described(schemas, base.rsplit('/').next().unwrap());
        }
        let properties = part["properties"].as_object().unwrap_or_else(|| panic!("{name}"));
        properties.iter().filter(|(_, one)| one["deprecated"] != true).map(|(name, _)| name.clone()).collect()
    };
    parts.iter().flat_map(of_part).collect()
}

#[test]
fn the_types_of_the_rust_sdk_are_those_of_the_description() {
    let printed = Command::new(env!("CARGO_BIN_EXE_stepwell")).args(["schema", "api"]).output().unwrap();
    let api: Value = serde_json::from_slice(&printed.stdout).unwrap();
    let schemas = &api["components"]["schemas"];
    let mut compared = 0;
    let mut compare = |name: &str, found: Names, besides: &[&str]| {
        let found: Names = found.into_iter().filter(|name| !besides.contains(&name.as_str())).collect();
        assert_eq!(found, described(schemas, name), "left: stepwell-client, right: the description of {name}");
        compared += 1;
    };
    compare("Run", names_in::<client::Run>(), &[]);
    compare("RunSummary", names_in::<client::RunSummary>(), &[]);
    compare("Triggered", names_in::<client::Started>(), &[]);
    compare("Step", names_in::<client::Step>(), &[]);
    compare("Attempt", names_in::<client::Attempt>(), &[]);
    compare("GivenApproval", names_in::<client::GivenApproval>(), &[]);
    compare("ChangedCall", names_in::<client::ChangedCall>(), &[]);
    compare("LogLine", names_in::<client::LogLine>(), &[]);
    compare("StepError", names_in::<client::StepError>(), &[]);
    compare("StartedBy", names_in::<client::StartedBy>(), &[]);
    compare("StartedWith", names_in::<client::StartedWith>(), &[]);
    compare("ParentStep", names_in::<client::ParentStep>(), &[]);
    compare("Warning", names_in::<client::RunWarning>(), &[]);
    compare("Waiting", names_in::<client::Waiting>(), &[]);
    compare("Workflow", names_in::<client::Workflow>(), &[]);
    compare("Task", names_in::<client::Task>(), &[]);
    compare("PausedKey", names_in::<client::PausedKey>(), &[]);
    compare("EarlierWorkflow", names_in::<client::EarlierWorkflow>(), &[]);
    compare("Approval", names_in::<client::Approval>(), &[]);
    compare("ScheduleSummary", names_in::<client::Schedule>(), &[]);
    compare("Secret", names_in::<client::Secret>(), &[]);
    compare("Fault", names_in::<client::Fault>(), &[]);
    compare("Fix", names_in::<client::Fix>(), &[]);
    // A server may be newer than its client.
    let unknown = &["Unknown"];
    compare("RunStatus", names_in::<client::RunStatus>(), unknown);
    compare("StepStatus", names_in::<client::StepStatus>(), unknown);
    compare("StepKind", names_in::<client::StepKind>(), unknown);
    compare("AttemptStatus", names_in::<client::AttemptStatus>(), unknown);
    compare("AttemptReason", names_in::<client::AttemptReason>(), unknown);
    compare("WaitingReason", names_in::<client::WaitingReason>(), unknown);
    compare("StartedHow", names_in::<client::StartedHow>(), unknown);
    compare("TriggerKind", names_in::<client::TriggerKind>(), unknown);
    compare("Dialect", names_in::<client::Dialect>(), unknown);
    compare("ApprovalKind", names_in::<client::ApprovalKind>(), unknown);
    compare("OnTimeout", names_in::<client::OnTimeout>(), unknown);
    compare("LogLevel", names_in::<client::LogLevel>(), unknown);
    assert_eq!(compared, 35);
}

/// The names in lines that begin with one of these, up to the first bracket, in `snake_case`.
fn methods(file: &str, starts: &[&str]) -> Names {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let found = text.lines().filter_map(|line| {
        let rest = starts.iter().find_map(|start| line.strip_prefix(start))?;
        let end = rest.find(['(', '<'])?;
        let name = &rest[..end];
        let is_name =
            name.chars().next()?.is_ascii_lowercase() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        is_name.then(|| snake_case(name))
    });
    found.collect()
}

fn snake_case(name: &str) -> String {
    let mut found = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            found.push('_');
        }
        found.push(c.to_ascii_lowercase());
    }
    found
}

fn without(names: Names, left_out: &[&str]) -> Names {
    for name in left_out {
        assert!(names.contains(*name), "{name} is not there any more");
    }
    names.into_iter().filter(|name| !left_out.contains(&name.as_str())).collect()
}

#[test]
fn the_sdks_have_the_same_methods() {
    let python = without(methods("sdk/python/src/stepwell/_sync.py", &["    def "]), &["close"]);
    let typescript = methods("sdk/typescript/src/client.ts", &["  async ", "  static async ", "  "]);
    let typescript = without(typescript, &["constructor", "find"]);
    let rust = ["client", "workflows", "runs", "steps", "secrets"]
        .into_iter()
        .flat_map(|file| methods(&format!("crates/client/src/{file}.rs"), &["    pub fn ", "    pub async fn "]));
    // Ways to make a client and to make calls of other operations, and what Rust says with a name instead of an option.
    let more = [
        "new",
        "find",
        "url",
        "has_key",
        "answers",
        "request",
        "body",
        "data",
        "data_if_any",
        "created",
        "data_with_etag",
        "execute",
        "define_as",
        "watch_after",
        "retry_newest",
    ];
    let mut rust = without(rust.collect(), &more);
    rust.insert("call".into());
    assert_eq!(python, typescript, "left: Python, right: TypeScript");
    assert_eq!(python, rust, "left: Python, right: Rust");
    assert!(python.len() >= 24, "{python:?}");
}

#[test]
fn the_builders_have_the_same_steps() {
    let python = methods("sdk/python/src/stepwell/build.py", &["    def "]);
    let typescript = methods("sdk/typescript/src/build.ts", &["  "]);
    let rust = methods("crates/client/src/build.rs", &["    pub fn "]);
    let kinds = [
        "http",
        "tool",
        "javascript",
        "query",
        "sleep",
        "wait_for_webhook",
        "approval",
        "workflow",
        "for_each",
        "to_yaml",
    ];
    for kind in kinds {
        assert!(python.contains(kind) && typescript.contains(kind) && rust.contains(kind), "{kind}");
    }
}
