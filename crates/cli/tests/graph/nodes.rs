//! Start, end, condition and loop nodes; variables and templates.

use crate::drawn::{echo, graph, output, run, server};
use crate::harness::statuses;
use serde_json::{Value, json};

#[test]
fn a_start_passes_the_input_on_and_an_end_collects_what_it_names() {
    let (_place, server) = server();
    let ends = json!({"outputParameters": [
        {"name": "id", "sourceVariable": "ctx.input.id"},
        {"name": "seen", "sourceVariable": "begun.inputReceived"},
        {"name": "text", "value": "order {{ctx.input.id}}"},
        {"name": "kept", "value": "{{ctx.input.id}}"},
        {"name": "missing", "sourceVariable": "never"},
    ]});
    let nodes = json!([
        ["start", "start", {"outputVariable": "begun"}],
        ["which", "condition", {"branches": [{"id": "yes", "condition": "true"}], "defaultBranch": "no"}],
        echo("other", json!(1), "never"),
        ["end", "end", ends],
    ]);
    let graph = graph("ends", nodes, &["start>which", "which.yes>end", "which.no>other", "other>end"]);
    let run = run(&server.api, &graph, &json!({"id": 7}));
    assert_eq!(run["tasks"]["start"]["output"], json!({"started": true, "inputReceived": {"id": 7}}), "{run:#}");
    let expected = json!({"id": 7, "seen": {"id": 7}, "text": "order 7", "kept": 7, "missing": null});
    assert_eq!(run["output"], expected);
}

#[test]
fn a_template_of_one_expression_keeps_the_type_and_any_other_is_text() {
    let (_place, server) = server();
    let nodes = json!([
        ["start", "start"],
        echo("one", json!("{{ctx.input.x}}"), "one"),
        echo("two", json!("x={{ctx.one.value}}"), "two"),
        ["end", "end", {"outputParameters": [
            {"name": "one", "sourceVariable": "one.value"}, {"name": "two", "sourceVariable": "two.value"}]}],
    ]);
    server.api.define(&graph("types", nodes, &["start>one", "one>two", "two>end"]));
    for (x, text) in [(json!(5), "x=5"), (json!([1, "a"]), "x=[1,\"a\"]"), (json!(true), "x=true"), (json!("s"), "x=s")]
    {
        assert_eq!(output(&server.api, "types", &json!({"x": x})), json!({"one": x, "two": text}));
    }
}

#[test]
fn a_condition_takes_the_first_branch_that_holds() {
    let (_place, server) = server();
    let rule = |left: &str, is: &str, right: Value| json!({"leftValue": left, "operator": is, "rightValue": right});
    let branches = json!([
        {"id": "big", "conditions": [rule("{{ctx.input.amount}}", "greater_than", json!(100))]},
        {"id": "vip", "condition": "ctx.input.vip == true"},
        {"id": "both", "conditionLogic": "AND", "conditions":
            [rule("{{ctx.input.name}}", "starts_with", json!("A")), rule("{{ctx.input.name}}", "ends_with", json!("z"))]},
        {"id": "either", "conditionLogic": "OR", "conditions":
            [rule("{{ctx.input.name}}", "equals", json!("Bob")), rule("{{ctx.input.tags}}", "contains", json!("new"))]},
        {"id": "word", "conditions": [rule("{{ctx.input.name}}", "matches_regex", json!("^[0-9]+$"))]},
    ]);
    let mut nodes =
        vec![json!(["start", "start"]), json!(["which", "condition", {"branches": branches, "defaultBranch": "else"}])];
    let mut edges = vec!["start>which".to_string()];
    for name in ["big", "vip", "both", "either", "word", "else"] {
        nodes.push(echo(&format!("did-{name}"), json!(name), "did"));
        edges.extend([format!("which.{name}>did-{name}"), format!("did-{name}>end")]);
    }
    nodes.push(json!(["end", "end", {"outputParameters": [{"name": "did", "sourceVariable": "did.value"}]}]));
    let edges: Vec<&str> = edges.iter().map(String::as_str).collect();
    server.api.define(&graph("switch", nodes.into(), &edges));
    for (input, expected) in [
        (json!({"amount": 101, "vip": true}), "big"),
        (json!({"amount": "250"}), "big"),
        (json!({"amount": 100, "vip": true}), "vip"),
        (json!({"amount": 1, "vip": false, "name": "Abz"}), "both"),
        (json!({"name": "Bob", "vip": 0}), "either"),
        (json!({"name": "x", "vip": null, "tags": ["old", "new"]}), "either"),
        (json!({"name": "42", "vip": null}), "word"),
        (json!({"name": "x", "vip": null}), "else"),
    ] {
        assert_eq!(output(&server.api, "switch", &input), json!({"did": expected}), "{input}");
    }
}

#[test]
fn a_condition_where_nothing_holds_and_nothing_is_the_default_ends_its_path_quietly() {
    let (_place, server) = server();
    let nodes = json!([
        ["start", "start"],
        ["which", "condition", {"branches": [{"id": "never", "condition": "false"}]}],
        echo("unreached", json!(1), "x"),
        echo("beside", json!(2), "y"),
    ]);
    let graph = graph("quiet", nodes, &["start>which", "which.never>unreached", "start>beside"]);
    let run = run(&server.api, &graph, &json!({}));
    assert_eq!(run["status"], "completed");
    assert_eq!(statuses(&run), "start=success which=success unreached=skipped beside=success");
}

fn looping(config: Value) -> Value {
    let nodes = json!([
        ["start", "start"],
        ["each", "loop", config],
        echo("work", json!({"item": "{{ctx.item}}", "at": "{{ctx.i}}"}), "did"),
        ["end", "end", {"outputParameters": [{"name": "results", "sourceVariable": "results"}]}],
    ]);
    graph("loop", nodes, &["start>each", "each.loop>work", "work>each", "each.done>end"])
}

#[test]
fn a_loop_walks_its_items_in_order_and_gathers_what_came_of_them() {
    let (_place, server) = server();
    let config = json!({"sourceVariable": "ctx.input.items", "itemVariable": "item", "indexVariable": "i",
                        "outputVariable": "results", "maxIterations": 3});
    let id = server.api.define(&looping(config));
    let run = server.api.finished(&id, &json!({"items": ["a", {"b": 1}, 3]}));
    assert_eq!(run["status"], "completed", "{run:#}");
    let seen: Vec<Value> = (0..3).map(|n| run["tasks"][format!("each[{n}].work")]["output"]["value"].clone()).collect();
    assert_eq!(seen, [json!({"item": "a", "at": 0}), json!({"item": {"b": 1}, "at": 1}), json!({"item": 3, "at": 2})]);
    assert_eq!(run["output"]["results"].as_array().unwrap().len(), 3, "{run:#}");
    // Nothing to walk: on by the other edge.
    assert_eq!(output(&server.api, &id, &json!({"items": []})), json!({"results": []}));
    // More than it may, and no list at all.
    let over = server.api.finished(&id, &json!({"items": [1, 2, 3, 4]}));
    assert_eq!((over["status"].as_str(), over["tasks"]["each"]["status"].as_str()), (Some("failed"), Some("failed")));
    let none = server.api.finished(&id, &json!({"items": 5}));
    assert_eq!(
        (none["status"].as_str(), none["tasks"]["each"]["status"].as_str()),
        (Some("failed"), Some("template_error"))
    );
}

#[test]
fn a_test_run_of_a_graph_that_is_not_saved_does_the_same_and_goes_without_a_trace() {
    let (_place, server) = server();
    let nodes = json!([["start", "start"], echo("work", json!("{{ctx.input.n}}"), "did"),
        ["end", "end", {"outputParameters": [{"name": "n", "sourceVariable": "did.value"}]}]]);
    let request = json!({"definition": graph("canvas", nodes, &["start>work", "work>end"]), "input": {"n": 9}});
    let run = server.api.post("/api/v1/test-runs", &request).is(201).data()["run_id"].as_str().unwrap().to_string();
    let ended = server.api.end(&run);
    assert_eq!((&ended["output"], &ended["test"]), (&json!({"n": 9}), &json!(true)), "{ended:#}");
    server.api.delete(&format!("/api/v1/test-runs/{run}")).is(204);
    server.api.get(&format!("/api/v1/runs/{run}")).refused(404, "not-found");
}
