//! Documents that are expensive to process: schemas, definitions, bodies.

use crate::world::{Flood, withstand};
use serde_json::{Map, Value, json};

/// A workflow with this schema of its input.
fn with_schema(schema: Value) -> Value {
    json!({"name": "it", "input_schema": schema, "tasks": {"a": {"tool": "echo", "args": {"message": "x"}}}})
}

/// `$defs` that refer to each other in a chain.
fn chain(length: usize) -> Value {
    let mut defs = Map::new();
    for n in 0..length {
        defs.insert(format!("d{n}"), json!({"$ref": format!("#/$defs/d{}", n + 1)}));
    }
    defs.insert(format!("d{length}"), json!({"type": "integer"}));
    json!({"$ref": "#/$defs/d0", "$defs": defs})
}

/// Each level refers to the next one this many times.
fn tree(width: usize, levels: usize) -> Value {
    let mut defs = Map::new();
    for n in 0..levels {
        let next = json!({"$ref": format!("#/$defs/l{}", n + 1)});
        defs.insert(format!("l{n}"), json!({"allOf": vec![next; width]}));
    }
    defs.insert(format!("l{levels}"), json!({"type": "integer"}));
    json!({"$ref": "#/$defs/l0", "$defs": defs})
}

#[test]
fn schemas_that_explode_are_refused_and_cost_no_other_organisation() {
    withstand("exploding schemas", |world| {
        for schema in [chain(45_000), tree(2, 30), tree(10, 9)] {
            let answer = world.attacker.post("/api/v1/workflows", &with_schema(schema));
            assert_eq!(answer.status, 422, "{}", answer.text());
        }
        let (attacker, documents) =
            (world.attacker.clone(), [chain(40_000), tree(2, 30), tree(10, 9)].map(with_schema));
        Flood::of(2, move || {
            for document in &documents {
                let answer = attacker.post("/api/v1/check", document);
                assert!(answer.status < 500, "{}", answer.text());
            }
        })
    });
}

#[test]
fn a_gate_s_form_that_explodes_is_refused() {
    withstand("exploding form", |world| {
        let gate = |form: Value| json!({"name": "it", "tasks": {"a": {"approval": {"message": "?", "form": form}}}});
        for schema in [chain(45_000), tree(2, 30), tree(10, 9)] {
            assert_eq!(world.attacker.post("/api/v1/workflows", &gate(schema)).status, 422);
        }
    });
}

#[test]
fn a_wide_loop_over_a_large_input_fails_within_its_budget() {
    withstand("10,000 copies of 5 MB", |world| {
        world.define(&json!({"name": "it", "tasks": {"all": {
            "for_each": "{{input.items}}", "max_parallel": 10_000,
            "tasks": {"one": {"tool": "echo", "args": {"message": "{{input.text}}"}}},
        }}}));
        let input = json!({"items": vec![1; 10_000], "text": "x".repeat(5 << 20)});
        let run = world.attacker.trigger("it", &input);
        let attacker = world.attacker.clone();
        Flood::of(1, move || {
            let ended = attacker.end(&run);
            assert_eq!((&ended["status"], &ended["error"]["code"]), (&json!("failed"), &json!("run_too_large")));
        })
    });
}

#[test]
fn bodies_of_many_values_are_refused_before_they_are_built() {
    withstand("bodies of 5 million values", |world| {
        let attacker = world.attacker.clone();
        world.define(&json!({"name": "it", "tasks": {"a": {"sleep": 1}}}));
        let body = format!("[{}0]", "0,".repeat((9 << 20) / 2)).into_bytes();
        Flood::of(4, move || {
            let headers = [("content-type", "application/json")];
            let answer = attacker.send("POST", "/api/v1/workflows/it/trigger", &headers, Some(body.clone()));
            assert!((400..500).contains(&answer.status), "{}", answer.status);
        })
    });
}
