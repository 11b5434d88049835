//! Many runs of many shapes at once: each ends, and no join runs twice.

use crate::drawn::{echo, graph, server};
use serde_json::{Value, json};

fn shape(title: &str, edges: &[&str]) -> Value {
    let mut names: Vec<&str> = Vec::new();
    for edge in edges {
        for name in edge.split('>').map(|end| end.split('.').next().unwrap()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    let node = |name: &&str| match *name {
        "start" => json!(["start", "start"]),
        "end" => json!(["end", "end"]),
        "risky" => json!(["risky", "tool", {"tool": "fail", "args": {"message": "on purpose"}}]),
        "which" => {
            let branches = json!([{"id": "yes", "condition": "ctx.input.n < 5"}]);
            json!(["which", "condition", {"branches": branches, "defaultBranch": "no"}])
        }
        "delay" => json!(["delay", "delay", {"delayMs": 20}]),
        any if any.starts_with("any") => json!([any, "tool", {"tool": "echo", "args": {}, "joinMode": "any"}]),
        other => echo(other, json!(other), other),
    };
    graph(title, names.iter().map(node).collect(), edges)
}

#[test]
fn every_shape_ends_as_it_should_and_every_node_of_it_runs_once() {
    let (_place, server) = server();
    let shapes: [(&str, &[&str]); 12] = [
        ("linear", &["start>a", "a>b", "b>end"]),
        ("fan-out", &["start>a", "start>b", "start>c"]),
        ("fan-in", &["start>a", "start>b", "start>c", "a>end", "b>end", "c>end"]),
        ("diamond-and", &["start>a", "start>b", "a>join", "b>join", "join>end"]),
        ("diamond-or", &["start>a", "start>b", "a>any", "b>any", "any>end"]),
        ("deep", &["start>a", "a>b", "b>c", "c>d", "d>e", "e>f", "f>g", "g>h", "h>i", "i>end"]),
        ("error-path", &["start>risky", "risky.output>a", "risky.error>b", "b>end"]),
        ("error-join", &["start>risky", "risky.success>join", "risky.error>b", "b>join", "join>end"]),
        ("conditional", &["start>which", "which.yes>a", "which.no>b", "a>join", "b>join", "join>end"]),
        ("delayed", &["start>delay", "delay>a", "a>end"]),
        (
            "two-levels",
            &["start>a", "start>b", "start>c", "start>d", "a>j1", "b>j1", "c>j2", "d>j2", "j1>j3", "j2>j3", "j3>end"],
        ),
        ("mixed", &["start>a", "start>b", "start>c", "a>any1", "b>any1", "any1>j", "c>j", "j>end"]),
    ];
    let api = &server.api;
    let mut runs = Vec::new();
    for (title, edges) in shapes {
        let id = api.define(&shape(title, edges));
        // The two that most often went wrong elsewhere, many times.
        let count = match title {
            "linear" => 100,
            "diamond-and" => 50,
            _ => 10,
        };
        runs.extend((0..count).map(|n| (title, api.trigger(&id, &json!({"n": n})))));
    }
    for (title, run) in runs {
        let ended = api.end(&run);
        assert_eq!(ended["status"], "completed", "{title}: {ended:#}");
        for (name, step) in ended["tasks"].as_object().unwrap() {
            let skipped = step["status"] == "skipped";
            assert!(skipped || step["attempt"].as_u64().unwrap() <= 1, "{title}: {name}: {step:#}");
        }
        let log = api.get(&format!("/api/v1/runs/{run}/events?limit=1000")).is(200).data();
        let mut ended: Vec<&str> = Vec::new();
        for event in log.as_array().unwrap().iter().filter(|event| event["type"] == "finished") {
            let step = event["step"].as_str().unwrap();
            assert!(!ended.contains(&step), "{title}: {step} ended twice");
            ended.push(step);
        }
        assert!(ended.len() >= 3, "{title}: {ended:?}");
    }
}
