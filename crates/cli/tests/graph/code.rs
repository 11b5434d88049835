//! JavaScript nodes, with the code forms that seed 003 shows.

use crate::drawn::{graph, output, run, server};
use serde_json::{Value, json};

fn coded(title: &str, config: Value) -> Value {
    let nodes = json!([["start", "start"], ["js", "javascript", config], ["recover", "tool", {"tool": "echo", "args": {}}],
        ["end", "end", {"outputParameters": [{"name": "out", "sourceVariable": "out"}]}]]);
    graph(title, nodes, &["start>js", "js>end", "js.error>recover", "recover>end"])
}

#[test]
fn code_returns_its_result_at_the_top_level_and_may_await() {
    let (_place, server) = server();
    let items = json!({"items": [{"id": 1}, {"id": 2}]});
    for (title, code, expected) in [
        ("map", "return ctx.input.items.map(item => item.id);", json!([1, 2])),
        ("await", "const n = await Promise.resolve(ctx.input.items.length); return { n };", json!({"n": 2})),
        ("lines", "// first\nconst [a] = ctx.input.items;\nreturn a;", json!({"id": 1})),
        ("nothing", "ctx.input.items.push(3);", Value::Null),
    ] {
        server.api.define(&coded(title, json!({"code": code, "outputVariable": "out"})));
        assert_eq!(output(&server.api, title, &items), json!({"out": expected}), "{title}");
    }
}

#[test]
fn what_code_throws_goes_by_the_error_edge_or_fails_the_run() {
    let (_place, server) = server();
    let throwing = json!({"code": "throw new Error('no such order');", "outputVariable": "out"});
    let on = run(&server.api, &coded("continue", throwing.clone()), &json!({}));
    assert_eq!((&on["status"], &on["tasks"]["recover"]["status"]), (&json!("completed"), &json!("success")), "{on:#}");
    assert!(on["output"]["out"]["error"]["message"].as_str().unwrap().contains("no such order"), "{on:#}");
    let mut config = throwing;
    config["errorHandling"] = json!("fail_workflow");
    config["maxAttempts"] = json!(1);
    let failed = run(&server.api, &coded("fail", config), &json!({}));
    assert_eq!(failed["status"], "failed", "{failed:#}");
}

#[test]
fn code_that_does_not_end_is_stopped_when_its_time_is_over() {
    let (_place, server) = server();
    let config = json!({"code": "while (true) {}", "timeoutSeconds": 1, "maxAttempts": 1, "outputVariable": "out"});
    let run = run(&server.api, &coded("endless", config), &json!({}));
    assert_eq!((&run["tasks"]["js"]["status"], &run["status"]), (&json!("timeout"), &json!("completed")), "{run:#}");
}

#[test]
fn the_known_definitions_run_as_they_were_written() {
    let (_place, server) = server();
    for (name, input, status) in [
        ("conditional", json!({"amount": 500}), "completed"),
        ("conditional", json!({"amount": 5, "vip": true}), "completed"),
        ("diamond-all", json!({"x": 1}), "completed"),
        ("diamond-any", json!({"x": 1}), "completed"),
        ("error-path", json!({}), "completed"),
        ("error-recovery", json!({}), "completed"),
        ("fail-workflow", json!({}), "completed"),
        ("loop", json!({"items": [1, 2, 3]}), "completed"),
    ] {
        let path = format!("{}/../formats/tests/cases/seeds/{name}.json", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        let request = json!({"definition": text, "input": input});
        let started = server.api.post("/api/v1/test-runs", &request).is(201).data();
        let ended = server.api.end(started["run_id"].as_str().unwrap());
        assert_eq!(ended["status"], status, "{name}: {ended:#}");
    }
}
