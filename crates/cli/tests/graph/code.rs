//! JavaScript nodes, in the forms that seed 003 shows.

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

#[test]
fn code_that_cannot_be_read_is_refused_with_its_step_line_and_column() {
    let (_place, server) = server();
    let bad = coded("bad", json!({"code": "const a = 1;\nreturn a +;", "outputVariable": "out"}));
    let body = json!({"odd": {"javascript": "let a = ;"}, "fine": {"javascript": "return 1"}});
    let each = json!({"for_each": "{{input.list}}", "tasks": body});
    let nested = json!({"name": "nested", "tasks": {"each": each, "other": {"javascript": "return ("}}});
    let (inner, other) = ("tasks.each.tasks.odd.javascript", "tasks.other.javascript");
    let of_nested = vec![(other, ""), (inner, "(1:9)")];
    for (definition, paths) in [(bad, vec![("nodes[1].nodeConfig.code", "(2:")]), (nested, of_nested)] {
        let test_run = json!({"definition": definition});
        for (path, body) in [("workflows", &definition), ("check", &definition), ("test-runs", &test_run)] {
            let problem = server.api.post(&format!("/api/v1/{path}"), body).refused(422, "invalid-definition");
            let errors = problem["errors"].as_array().unwrap();
            assert_eq!(errors.len(), paths.len(), "{problem:#}");
            for (path, place) in &paths {
                let error = errors.iter().find(|error| error["path"] == *path).unwrap();
                assert_eq!(error["code"], "bad-code");
                let message = error["message"].as_str().unwrap();
                assert!(message.starts_with("SyntaxError: ") && message.contains(place), "{message}");
            }
        }
    }
}

#[test]
fn what_code_returns_is_a_variable_for_those_after_it_and_what_it_assigns_is_not() {
    let (_place, server) = server();
    let nodes = json!([
        ["start", "start"],
        ["sum", "javascript", {"code": "return {n: ctx.input.items.length, by: 'sum'}", "outputVariable": "total"}],
        ["twice", "javascript", {"code": "ctx.total.n = 99; ctx.loose = 1; return ctx.total.n * 2",
            "outputVariable": "twice"}],
        ["look", "javascript", {"code": "return [ctx.total, ctx.twice, typeof ctx.loose]", "outputVariable": "seen"}],
        ["tell", "tool", {"tool": "echo", "args": {"n": "{{ctx.total.n}}", "text": "{{ctx.twice}} of {{ctx.total.by}}"},
            "outputVariable": "told"}],
        ["again", "javascript", {"code": "return {n: ctx.total.n + 1, by: 'again'}", "outputVariable": "total"}],
        ["end", "end", {"outputParameters": [{"name": "seen", "sourceVariable": "seen"},
            {"name": "told", "sourceVariable": "told"}, {"name": "total", "sourceVariable": "total"},
            {"name": "by", "sourceVariable": "total.by"}]}],
    ]);
    let edges = ["start>sum", "sum>twice", "twice>look", "look>tell", "tell>again", "again>end"];
    server.api.define(&graph("variables", nodes, &edges));
    let seen = output(&server.api, "variables", &json!({"items": [1, 2, 3]}));
    assert_eq!(seen["seen"], json!([{"n": 3, "by": "sum"}, 198, "undefined"]), "{seen:#}");
    assert_eq!(seen["told"], json!({"n": 3, "text": "198 of sum"}), "{seen:#}");
    // The last one to write a name is the one that counts.
    assert_eq!((&seen["total"], &seen["by"]), (&json!({"n": 4, "by": "again"}), &json!("again")), "{seen:#}");
}
