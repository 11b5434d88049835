//! The OpenAPI description: complete, and fit for generating clients.

use crate::harness::Installation;
use crate::tenants::PUBLIC;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What may be any JSON, because it is the user's and not ours. Add to this only what must be untyped.
const ANY: [&str; 37] = [
    // What workflows are given and give back.
    "AskedCall.input",
    "AnswerRequest.data",
    "AnswerRequest.input",
    "ChangedCall.from",
    "EarlierCall.input",
    "Attempt.output",
    "FinishRequest.output",
    "GivenApproval.data",
    "NewSchedule.input",
    "Run.input",
    "Run.output",
    "RunState.contextData",
    "Step.input",
    "Step.output",
    "TestRequest.input",
    "VerdictRequest.output",
    "POST /api/v1/runs/{run}/rerun",
    "POST /api/v1/runs/{run}/steps/{step}/deliver",
    "POST /api/v1/workflows/{id}/trigger",
    "POST /in/{token}",
    "POST /wh/{token}",
    // Values of parameters, of any type that a database has.
    "QueryRequest.params",
    "Query.params",
    // A value of an expression.
    "PauseRequest.key",
    "PausedKey.key",
    // Fields of a form are JSON Schemas.
    "Form.properties",
    // The JSON Schema of a tool's arguments, as its server writes it.
    "CatalogueTool.input_schema",
    // A part of a definition, corrected.
    "Fix.value",
    // Differs with what was done.
    "Audit.detail",
    // Definitions have a grammar of their own, which is checked and told in full.
    "POST /api/v1/check",
    "POST /api/v1/workflows",
    "PUT /api/v1/workflows/{id}",
    "ListedWorkflow.definition",
    "TestRequest.definition",
    "Workflow.definition",
    "Workflow.input_schema",
    "Workflow.tasks",
];

fn description() -> Value {
    let place = Installation::new();
    place.serve().without_key().get("/openapi.json").is(200).json()
}

fn operations(api: &Value) -> Vec<(String, &Value)> {
    let paths = api["paths"].as_object().unwrap().iter();
    let all = paths.flat_map(|(path, methods)| {
        let methods = methods.as_object().unwrap().iter();
        methods.map(move |(method, is)| (format!("{} {path}", method.to_ascii_uppercase()), is))
    });
    all.collect()
}

#[test]
fn every_operation_has_a_name_of_its_own() {
    let api = description();
    let mut seen = BTreeSet::new();
    let twice: Vec<String> = operations(&api)
        .into_iter()
        .filter(|(_, is)| !seen.insert(is["operationId"].as_str().unwrap_or_default().to_string()))
        .map(|(name, is)| format!("{name}: {}", is["operationId"]))
        .collect();
    assert!(twice.is_empty(), "generated clients would have two of the same name: {twice:?}");
}

#[test]
fn every_operation_says_what_it_does_and_how_it_refuses() {
    let api = description();
    for (name, is) in operations(&api) {
        assert!(is["summary"].as_str().is_some_and(|text| !text.is_empty()), "{name} says nothing");
        let answers = is["responses"].as_object().unwrap();
        assert!(answers.keys().any(|status| status.starts_with(['1', '2', '3'])), "{name} never works");
        for (status, answer) in answers.iter().filter(|(status, _)| status.starts_with(['4', '5'])) {
            let pointer = answer["$ref"].as_str().unwrap_or_default().trim_start_matches('#');
            let problem = api.pointer(pointer).unwrap_or_else(|| panic!("{name} {status}: {answer}"));
            assert!(problem["content"]["application/problem+json"].is_object(), "{name} {status}");
        }
        // Those that need no key say so, and no others.
        let free = is["security"].as_array().is_some_and(|ways| ways.iter().all(|way| way == &json!({})));
        assert_eq!(free, PUBLIC.contains(&name.as_str()), "{name}: {}", is["security"]);
    }
}

/// Whether a schema accepts anything.
fn is_untyped(schema: &Value) -> bool {
    let Some(fields) = schema.as_object() else { return schema == &Value::Bool(true) };
    let says = ["$ref", "enum", "const", "allOf", "oneOf", "anyOf", "properties", "items", "additionalProperties"];
    !says.iter().any(|word| fields.contains_key(*word)) && fields.get("type").is_none_or(|is| is == "object")
}

/// The places below `at` where anything may stand.
fn untyped(schema: &Value, at: &str, found: &mut BTreeSet<String>) {
    if is_untyped(schema) {
        found.insert(at.to_string());
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        untyped(property, &format!("{at}.{name}"), found);
    }
    for word in ["items", "additionalProperties"] {
        if schema[word].is_object() {
            untyped(&schema[word], at, found);
        }
    }
    for word in ["allOf", "oneOf", "anyOf"] {
        for part in schema[word].as_array().into_iter().flatten() {
            untyped(part, at, found);
        }
    }
}

#[test]
fn only_what_is_the_users_own_may_be_anything() {
    let api = description();
    let mut found = BTreeSet::new();
    let schemas = api["components"]["schemas"].as_object().unwrap().iter();
    // The wrappers repeat what they wrap.
    for (name, schema) in schemas.filter(|(name, _)| !name.starts_with("Data_") && !name.starts_with("Page_")) {
        untyped(schema, name, &mut found);
    }
    for (name, is) in operations(&api) {
        let bodies = [&is["requestBody"]].into_iter().chain(is["responses"].as_object().unwrap().values());
        for content in bodies.flat_map(|body| body["content"].as_object().into_iter().flatten()) {
            untyped(&content.1["schema"], &name, &mut found);
        }
        for parameter in is["parameters"].as_array().into_iter().flatten() {
            untyped(&parameter["schema"], &format!("{name} {}", parameter["name"]), &mut found);
        }
    }
    let new: Vec<&String> = found.iter().filter(|place| !ANY.contains(&place.as_str())).collect();
    assert!(new.is_empty(), "these may be anything, and no reason is given: {new:?}");
}

/// Editors read the schema of definitions from a server, or ask the binary for it.
#[test]
fn the_schemas_of_definitions_are_served_and_printed() {
    let place = Installation::new();
    let server = place.serve();
    let anyone = server.without_key();
    for dialect in ["all", "tasks", "flow", "graph"] {
        let served = anyone.get(&format!("/schema/{dialect}.json")).is(200).json();
        let printed: Value = serde_json::from_str(&place.stepwell(&["schema", dialect])).unwrap();
        assert_eq!(served, printed, "{dialect}");
        assert_eq!(served["$schema"], "https://json-schema.org/draft/2020-12/schema");
        for (field, dialects) in [("tasks", "all tasks"), ("flow", "all flow"), ("nodes", "all graph")] {
            let there = served["properties"].get(field).is_some();
            assert_eq!(there, dialects.split(' ').any(|name| name == dialect), "{field} of {dialect}");
        }
    }
    let other = anyone.get("/schema/yaml.json").is(404).json();
    assert_eq!(other["code"], "not-found");
    let printed: Value = serde_json::from_str(&place.stepwell(&["schema", "api"])).unwrap();
    assert_eq!(anyone.get("/openapi.json").is(200).json(), printed);
    let refused = place.stepwell(&["schema", "yaml"]);
    assert!(refused.contains("known: all, tasks, flow, graph, api"), "{refused}");
}

#[test]
fn every_route_refuses_a_query_parameter_that_it_does_not_have() {
    let place = Installation::new();
    let server = place.serve();
    let api = description();
    let mut seen = 0;
    for (name, is) in operations(&api).into_iter().filter(|(name, _)| !PUBLIC.contains(&name.as_str())) {
        let (method, path) = name.split_once(' ').unwrap();
        let path: Vec<&str> = path.split('/').map(|part| if part.starts_with('{') { "x" } else { part }).collect();
        let path = path.join("/");
        let answer = server.api.call(method, &format!("{path}?stepwell_unknown=1"), &json!({}));
        let problem = answer.refused(422, "invalid-input");
        assert_eq!(problem["errors"][0]["path"], "stepwell_unknown", "{name}: {problem:#}");
        // A near miss of a parameter that it has is corrected.
        let own = is["parameters"].as_array().into_iter().flatten().find(|one| one["in"] == "query");
        if let Some(own) = own.and_then(|one| one["name"].as_str()).filter(|own| own.len() > 3) {
            let problem =
                server.api.call(method, &format!("{path}?{own}s=1"), &json!({})).refused(422, "invalid-input");
            assert!(problem["detail"].as_str().unwrap().contains(&format!("did you mean {own:?}?")), "{problem:#}");
        }
        seen += 1;
    }
    assert!(seen > 60, "{seen}");
}
