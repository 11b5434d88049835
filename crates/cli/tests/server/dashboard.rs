//! What the dashboard needs of the server: its files in the binary, graphs, and child runs by their parent.

use std::io::Read;

use crate::harness::Installation;
use flate2::read::GzDecoder;
use serde_json::{Value, json};

#[test]
fn every_address_of_the_dashboard_is_one_page_that_is_always_asked_for() {
    let place = Installation::new();
    let server = place.serve();
    let anyone = server.without_key();
    let first = anyone.get("/").is(200).text();
    for path in ["/workflows", "/workflows/a/edit", "/runs/run_1?step=x", "/approvals", "/settings/keys", "/signed-out"]
    {
        let page = anyone.get(path).is(200);
        assert_eq!(page.text(), first, "{path}");
        assert!(page.header("content-security-policy").contains("script-src 'self';"), "{path}");
        assert!(!page.header("cache-control").contains("max-age"), "{path}");
    }
    anyone.get("/assets/none.js").refused(404, "not-found");
    anyone.get("/nothing-here").refused(404, "not-found");
    // A dashboard that was built has hashed names, cached for ever; without one the page says how to build it.
    match first.split("src=\"/assets/").nth(1).and_then(|rest| rest.split('"').next()) {
        Some(name) => {
            let path = format!("/assets/{name}");
            let script = anyone.send("GET", &path, &[("accept-encoding", "gzip, br")], None).is(200);
            assert_eq!(script.header("content-encoding"), "gzip");
            assert!(script.header("cache-control").contains("immutable"));
            let tag = script.header("etag").to_string();
            let again = [("accept-encoding", "gzip, br"), ("if-none-match", tag.as_str())];
            anyone.send("GET", &path, &again, None).is(304);
            let plain = anyone.get(&path).is(200);
            assert_eq!(plain.header("content-encoding"), "");
            let mut unpacked = Vec::new();
            GzDecoder::new(script.bytes.as_slice()).read_to_end(&mut unpacked).unwrap();
            assert_eq!(plain.bytes, unpacked);
            assert_ne!(plain.header("etag"), tag, "a cache must not mix up the two forms");
        }
        None => assert!(first.contains("make ui"), "{first}"),
    }
}

#[test]
fn the_graph_of_a_version_and_of_a_run_names_steps_as_runs_do() {
    let place = Installation::new();
    let server = place.serve();
    let api = &server.api;
    let each = json!({"for_each": "{{input}}", "tasks": {"say": {"tool": "echo"}}});
    api.define(&json!({"name": "it", "tasks": {"each": each, "end": {"needs": "each", "tool": "now"}}}));
    let run = api.trigger("it", &json!([1, 2]));
    let run = api.end(&run);
    let two = json!({"name": "it", "tasks": {"only": {"tool": "now"}}});
    api.call("PUT", "/api/v1/workflows/it", &two).is(200);
    let names = |path: &str| -> Vec<Value> {
        let graph = api.get(path).is(200).data();
        graph["nodes"].as_array().unwrap().iter().map(|node| node["path"].clone()).collect()
    };
    assert_eq!(names("/api/v1/workflows/it/graph"), ["only"]);
    let first = names("/api/v1/workflows/it/graph?version=1");
    assert_eq!(first.len(), 3);
    assert!(first.contains(&"each[].say".into()), "{first:?}");
    let id = run["id"].as_str().unwrap();
    assert_eq!(names(&format!("/api/v1/runs/{id}/graph")), first, "its own version's");
    for path in run["tasks"].as_object().unwrap().keys() {
        let pattern = path.replace("[0]", "[]").replace("[1]", "[]");
        assert!(first.contains(&pattern.clone().into()), "{pattern}");
    }
    api.get("/api/v1/workflows/it/graph?version=9").refused(404, "not-found");
    api.get("/api/v1/runs/run_none/graph").refused(404, "not-found");
}

#[test]
fn child_runs_are_found_by_their_parent() {
    let place = Installation::new();
    let server = place.serve();
    let api = &server.api;
    api.define(&json!({"name": "inner", "tasks": {"now": {"tool": "now"}}}));
    api.define(&json!({"name": "outer", "tasks": {"call": {"workflow": "inner"}}}));
    api.finished("inner", &json!({}));
    let outer = api.finished("outer", &json!({}));
    let parent = outer["id"].as_str().unwrap();
    let found = api.get(&format!("/api/v1/runs?parent={parent}")).is(200).data();
    let child = api.get(&format!("/api/v1/runs/{}", found[0]["id"].as_str().unwrap())).is(200).data();
    assert_eq!(child["parent"], json!({"run_id": parent, "step": "call"}), "and lead back to it");
    assert!(outer.get("parent").is_none());
    let found: Vec<(&str, bool)> = found
        .as_array()
        .unwrap()
        .iter()
        .map(|run| (run["workflow"].as_str().unwrap(), run["child"].as_bool().unwrap()))
        .collect();
    assert_eq!(found, [("inner", true)]);
    api.get("/api/v1/runs?parent=run_none").refused(404, "not-found");
}
