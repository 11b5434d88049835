//! The OpenAPI description of the API as clients are generated from it.
//!
//! The routes describe themselves. This adds what their macros cannot say: one schema for each thing that responses
//! wrap, typed events, the problems of each operation, reading order, servers and examples.

mod bodies;
#[cfg(test)]
mod breaks;
mod envelopes;
mod events;
mod examples;
mod problems;

pub use problems::{CODES, is_listed};

use crate::serve::api;
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

const ABOUT: &str = "A durable workflow engine. Authenticate with an API key: `Authorization: Bearer sw_…`.\n\n\
    Every response has an `X-Request-Id`. Instants are RFC 3339. Lists with further pages have `next`: pass it back as \
    `cursor`. Errors are problems (RFC 9457) with a stable `code`: see [all codes](/docs/errors).";

/// The groups of operations in reading order, each with what it is about.
const TAGS: [(&str, &str); 14] = [
    ("workflows", "Definitions: define, list, switch, pause, restore; versions and schedules"),
    ("runs", "Start runs, read them, cancel, retry and rerun them"),
    ("approvals", "Steps that wait: gates, verdicts, callbacks, and ending stuck steps"),
    ("reviews", "What agents' keys wrote, and accepting or refusing it"),
    ("live", "Events as they happen, as server-sent events or over a WebSocket"),
    ("incoming", "URLs that other services call; the URL is the credential"),
    ("secrets", "Secrets and database connections, which can be written but not read"),
    ("queries", "Saved queries"),
    ("policies", "Rules for calls of all workflows"),
    ("tools", "MCP servers and their tools, and workflows that are exposed as tools"),
    ("notifications", "Channels, preferences, and what was delivered"),
    ("people", "Users, roles and keys; signing in"),
    ("organisations", "Organisations, plans and usage; the audit trail"),
    ("nodes", "Processes that execute steps"),
];

/// The description, as `/openapi.json` serves it.
pub fn description() -> &'static Value {
    static DESCRIPTION: LazyLock<Value> = LazyLock::new(build);
    &DESCRIPTION
}

fn build() -> Value {
    let mut api = serde_json::to_value(api()).expect("the description has text keys only");
    api["openapi"] = "3.1.0".into();
    api["info"]["description"] = ABOUT.into();
    api["info"]["license"] = json!({"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"});
    api["servers"] = json!([{"url": "/", "description": "The server that serves this description"}]);
    let used: Vec<String> = operations(&mut api).into_iter().map(|(_, one)| one["tags"][0].to_string()).collect();
    let tags = TAGS.iter().filter(|(name, _)| used.iter().any(|used| used.trim_matches('"') == *name));
    api["tags"] = tags.map(|(name, about)| json!({"name": name, "description": about})).collect();
    api["components"]["securitySchemes"]["key"]["description"] = "An API key of Stepwell.".into();
    events::add(&mut api);
    bodies::add(&mut api);
    envelopes::unwrap(&mut api);
    problems::add(&mut api);
    envelopes::rename(&mut api);
    examples::add(&mut api);
    api
}

/// All operations with method and path, such as `GET /api/v1/runs`.
fn operations(api: &mut Value) -> Vec<(String, &mut Map<String, Value>)> {
    let paths = api["paths"].as_object_mut().into_iter().flatten();
    let named = paths.flat_map(|(path, item)| {
        let methods = item.as_object_mut().into_iter().flatten();
        methods.map(move |(method, one)| (format!("{} {path}", method.to_ascii_uppercase()), one))
    });
    named.filter_map(|(name, one)| Some((name, one.as_object_mut()?))).collect()
}

fn schemas(api: &mut Value) -> &mut Map<String, Value> {
    api["components"]["schemas"].as_object_mut().expect("the description has schemas")
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_operation_is_named_by_a_verb_and_has_a_group() {
        let mut api = description().clone();
        let verbs = [
            "list", "get", "create", "put", "update", "delete", "trigger", "cancel", "retry", "rerun", "approve",
            "deny", "stream", "check", "test", "start", "label", "erase", "release", "preview", "deliver", "finish",
            "settle", "signal", "pause", "resume", "restore", "rotate", "accept", "verify", "revoke", "disable", "set",
            "sign", "open", "show", "submit", "call", "export", "refuse",
        ];
        let tags: BTreeSet<String> = TAGS.iter().map(|(name, _)| name.to_string()).collect();
        for (name, one) in operations(&mut api) {
            let id = one["operationId"].as_str().unwrap();
            let verb: String = id.chars().take_while(char::is_ascii_lowercase).collect();
            let is_camel = id.chars().all(|c| c.is_ascii_alphanumeric());
            assert!(
                verbs.contains(&verb.as_str()) && is_camel,
                "{name}: give it an operation_id such as `listRuns`: {id}"
            );
            assert!(tags.contains(one["tags"][0].as_str().unwrap()), "{name}: {}", one["tags"]);
        }
    }

    #[test]
    fn every_parameter_says_what_it_is_and_no_text_has_a_link_of_the_code() {
        let mut api = description().clone();
        for (name, one) in operations(&mut api) {
            for parameter in one.get("parameters").and_then(Value::as_array).into_iter().flatten() {
                let about = parameter["description"].as_str().unwrap_or_default();
                assert!(!about.is_empty(), "{name}: describe {}", parameter["name"]);
            }
        }
        let text = description().to_string();
        for link in ["](super::", "](crate::", "](Self::"] {
            assert!(!text.contains(link), "{link}");
        }
    }

    #[test]
    fn every_reference_leads_somewhere_and_every_schema_is_used() {
        let api = description();
        let text = api.to_string();
        let mut used = BTreeSet::new();
        for rest in text.split("\"$ref\":\"#").skip(1) {
            let pointer = rest.split('"').next().unwrap();
            assert!(api.pointer(pointer).is_some(), "{pointer}");
            used.insert(pointer.to_string());
        }
        let all = api["components"]["schemas"].as_object().unwrap().keys();
        let unused: Vec<_> = all.filter(|name| !used.contains(&format!("/components/schemas/{name}"))).collect();
        // The types of events, as a set beside the union of them.
        assert_eq!(unused, ["EventType"]);
    }

    #[test]
    fn what_a_trigger_returns_at_once_is_a_part_of_a_run() {
        let schemas = &description()["components"]["schemas"];
        let run = schemas["Run"]["properties"].as_object().unwrap();
        for (name, schema) in schemas["Triggered"]["properties"].as_object().unwrap() {
            let plain = |schema: &Value| schema.to_string().replace(",{\"type\":\"null\"}", "");
            let of_run = run.get(name).unwrap_or_else(|| panic!("{name}"));
            assert!(plain(of_run).contains(&plain(schema)) || of_run["type"] == schema["type"], "{name}");
        }
    }
}
