//! JSON Schemas that try to take the server down.

use crate::harness::{Api, Installation};
use serde_json::{Map, Value, json};

/// `count` schemas, each of which refers `width` times to the next.
fn chain(count: usize, width: usize) -> Value {
    let level = |ix: usize| match ix + 1 < count {
        true => json!({"allOf": vec![json!({"$ref": format!("#/$defs/s{}", ix + 1)}); width]}),
        false => json!({"type": "string"}),
    };
    let defs: Map<String, Value> = (0..count).map(|ix| (format!("s{ix}"), level(ix))).collect();
    json!({"type": "object", "$defs": defs, "properties": {"x": {"$ref": "#/$defs/s0"}}})
}

fn hostile() -> [(&'static str, Value); 4] {
    [
        ("a chain of 45,000 references", chain(45_000, 1)),
        ("a doubled allOf, 25 levels", chain(25, 2)),
        ("an allOf of ten references, nine levels", chain(9, 10)),
        (
            "a schema that applies itself",
            json!({"$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"}),
        ),
    ]
}

fn with_input(schema: &Value) -> Value {
    json!({"name": "it", "input_schema": schema, "tasks": {"rest": {"sleep": 0}}})
}

fn with_form(schema: &Value) -> Value {
    json!({"name": "it", "tasks": {"ask": {"approval": {"message": "{{input.m}}", "form": schema}}}})
}

fn check_alive(api: &Api) {
    api.define(&json!({"name": "alive", "input_schema": {"type": "object"}, "tasks": {"rest": {"sleep": 0}}}));
    api.post("/api/v1/workflows/alive/trigger", &json!({})).is(201);
}

#[test]
fn a_schema_beyond_the_bounds_is_refused_wherever_it_is_defined() {
    let place = Installation::new();
    let server = place.serve();
    let reader = server.api.new_user("reader", &["workflow.read"]);
    for (what, schema) in hostile() {
        // A form is a template, and as such has bounds of its own.
        let form = if what.contains("45,000") { chain(20_000, 1) } else { schema.clone() };
        for (definition, at) in [(with_input(&schema), "input_schema"), (with_form(&form), "ask.form")] {
            for (api, path) in [(&reader, "/api/v1/check"), (&server.api, "/api/v1/workflows")] {
                let problem = api.post(path, &definition).refused(422, "invalid-definition");
                let fault = &problem["errors"][0];
                assert_eq!(fault["code"], "limit-schema", "{what}: {problem:#}");
                assert!(fault["path"].as_str().unwrap().starts_with(at), "{what}: {problem:#}");
            }
        }
    }
    check_alive(&server.api);
}

#[test]
fn a_form_that_a_run_assembles_is_bounded_when_it_is_answered() {
    let place = Installation::new();
    let server = place.serve();
    let form = json!({"type": "object", "$defs": "{{input.defs}}", "properties": {"x": {"$ref": "#/$defs/s0"}}});
    server.api.define(&json!({"name": "it", "tasks": {"ask": {"approval": {"message": "?", "form": form}}}}));
    let defs = chain(9, 10)["$defs"].take();
    let started = server.api.post("/api/v1/workflows/it/trigger", &json!({"defs": defs})).is(201).data();
    let run = started["run_id"].as_str().unwrap();
    let answer = json!({"data": {"x": "a"}});
    let approve = format!("/api/v1/runs/{run}/steps/ask/approve");
    let problem = server.api.post(&approve, &answer).refused(422, "invalid-definition");
    assert_eq!(problem["errors"][0]["code"], "limit-schema", "{problem:#}");
    server.api.post(&format!("/api/v1/runs/{run}/cancel"), &json!({})).is(200);
    check_alive(&server.api);
}

#[test]
fn an_input_that_takes_too_long_to_check_is_refused() {
    let place = Installation::new();
    let server = place.serve();
    let mut schema = chain(12, 2);
    schema["properties"] = json!({"list": {"items": {"$ref": "#/$defs/s0"}}});
    server.api.define(&with_input(&schema));
    let long = json!({"list": vec!["a"; 200_000]});
    for _ in 0..3 {
        let problem = server.api.post("/api/v1/workflows/it/trigger", &long).refused(422, "invalid-input");
        assert!(problem["detail"].as_str().unwrap().contains("100 ms"), "{problem:#}");
    }
    server.api.post("/api/v1/workflows/it/trigger", &json!({"list": ["a"]})).is(201);
    check_alive(&server.api);
}
