//! Fan-out, and joins that wait for all or for any.

use crate::drawn::{echo, graph, run, server};
use serde_json::{Value, json};

fn diamond(title: &str, mode: &str, right: Value) -> Value {
    let join = json!(["join", "tool", {"tool": "echo", "args": {}, "joinMode": mode}]);
    let nodes = json!([["start", "start"], echo("left", json!("l"), "left"), right, join, ["end", "end"]]);
    graph(title, nodes, &["start>left", "start>right", "left>join", "right>join", "join>end"])
}

#[test]
fn a_join_of_all_waits_for_the_slowest() {
    let (_place, server) = server();
    let api = &server.api;
    let id = api.define(&diamond("all", "all", json!(["right", "delay", {"delayMinutes": 5}])));
    let run = api.trigger(&id, &json!({}));
    api.step(&run, "left", "success");
    assert_eq!(api.step(&run, "right", "sleeping")["tasks"]["join"]["status"], "pending");
    api.ready(&run, "right");
    let ended = api.end(&run);
    assert_eq!((&ended["status"], &ended["tasks"]["join"]["status"]), (&json!("completed"), &json!("success")));
}

#[test]
fn a_join_of_any_goes_with_the_first_and_only_once() {
    let (_place, server) = server();
    let api = &server.api;
    let id = api.define(&diamond("any", "any", json!(["right", "delay", {"delayMinutes": 5}])));
    let run = api.trigger(&id, &json!({}));
    let early = api.step(&run, "join", "success");
    assert_eq!(early["tasks"]["right"]["status"], "sleeping");
    api.ready(&run, "right");
    let ended = api.end(&run);
    assert_eq!(ended["status"], "completed");
    assert_eq!(
        (&ended["tasks"]["join"]["attempt"], &ended["tasks"]["join"]["id"]),
        (&json!(1), &early["tasks"]["join"]["id"])
    );
    assert_eq!(ended["tasks"]["join"]["finished_at"], early["tasks"]["join"]["finished_at"]);
}

#[test]
fn a_join_takes_the_branch_that_was_chosen_and_does_not_wait_for_the_other() {
    let (_place, server) = server();
    for mode in ["all", "any"] {
        let nodes = json!([
            ["start", "start"],
            ["which", "condition", {"branches": [{"id": "a", "condition": "true"}], "defaultBranch": "b"}],
            echo("a", json!(1), "a"),
            echo("b", json!(2), "b"),
            ["join", "tool", {"tool": "echo", "args": {}, "joinMode": mode}],
        ]);
        let edges = ["start>which", "which.a>a", "which.b>b", "a>join", "b>join"];
        let run = run(&server.api, &graph(mode, nodes, &edges), &json!({}));
        assert_eq!(run["tasks"]["join"]["status"], "success", "{run:#}");
        assert_eq!((&run["tasks"]["b"]["status"], &run["status"]), (&json!("skipped"), &json!("completed")));
    }
}

#[test]
fn a_wide_fan_out_meets_again_once() {
    let (_place, server) = server();
    let wide = 60;
    let mut nodes = vec![json!(["start", "start"])];
    let mut edges = Vec::new();
    for n in 0..wide {
        nodes.push(echo(&format!("n{n}"), json!(n), &format!("v{n}")));
        edges.extend([format!("start>n{n}"), format!("n{n}>join")]);
    }
    let all: Vec<String> = (0..wide).map(|n| format!("{{{{ctx.v{n}.value}}}}")).collect();
    nodes.push(echo("join", json!(all), "all"));
    nodes.push(json!(["end", "end", {"outputParameters": [{"name": "all", "sourceVariable": "all.value"}]}]));
    edges.push("join>end".into());
    let edges: Vec<&str> = edges.iter().map(String::as_str).collect();
    let run = run(&server.api, &graph("wide", nodes.into(), &edges), &json!({}));
    assert_eq!(run["output"]["all"], json!((0..wide).collect::<Vec<_>>()), "{run:#}");
    assert_eq!((&run["tasks"]["join"]["attempt"], run["tasks"]["join"].get("attempts")), (&json!(1), None));
}
