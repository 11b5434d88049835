//! A short notation for graphs.

use crate::harness::{Api, Installation, Server};
use serde_json::{Value, json};

/// A server with nothing on it.
pub fn server() -> (Installation, Server) {
    let place = Installation::new();
    let server = place.serve();
    (place, server)
}

/// Nodes are `[id, type, config]`, edges `a>b` or, by a handle, `a.error>b`.
pub fn graph(title: &str, nodes: Value, edges: &[&str]) -> Value {
    let node = |node: &Value| {
        let config = node.get(2).cloned().unwrap_or_else(|| json!({}));
        json!({"nodeID": node[0], "nodeType": node[1], "nodeConfig": config, "position": {"x": 0, "y": 0}})
    };
    let edge = |edge: &&str| {
        let (from, to) = edge.split_once('>').unwrap();
        let (from, handle) = from.split_once('.').map_or((from, Value::Null), |(from, handle)| (from, handle.into()));
        let mut drawn = json!({"edgeID": edge, "upstreamNodeID": from, "downstreamNodeID": to});
        if !handle.is_null() {
            drawn["sourceHandle"] = handle;
        }
        drawn
    };
    let nodes: Vec<Value> = nodes.as_array().unwrap().iter().map(node).collect();
    json!({"title": title, "nodes": nodes, "edges": edges.iter().map(edge).collect::<Vec<Value>>()})
}

/// A tool that gives back what it is given, as `ctx.<into>`.
pub fn echo(id: &str, value: Value, into: &str) -> Value {
    json!([id, "tool", {"tool": "echo", "args": {"value": value}, "outputVariable": into}])
}

/// Defines the graph and runs it to its end.
#[track_caller]
pub fn run(api: &Api, graph: &Value, input: &Value) -> Value {
    let id = api.define(graph);
    api.finished(&id, input)
}

/// The same for a graph that is there already.
#[track_caller]
pub fn output(api: &Api, title: &str, input: &Value) -> Value {
    let run = api.finished(title, input);
    assert_eq!(run["status"], "completed", "{run:#}");
    run["output"].clone()
}
