//! A user without a tool's grant cannot reach the tool on any path.

use crate::agent::Agent;
use crate::harness::{Api, Installation, Server, eventually};
use crate::{calling, program, serve};
use serde_json::{Value, json};
use std::path::PathBuf;

/// A server whose one tool that writes leaves a file behind.
fn writes() -> (Installation, Server, PathBuf) {
    let kept = tempfile::NamedTempFile::new().unwrap();
    let path = kept.path().with_extension("json");
    let (place, server) = serve(&json!({"kb": program("seed_server.py", json!({"env": {"KNOWLEDGE": path}}))}));
    (place, server, path)
}

/// Everything but the tool.
fn ann(api: &Api) -> Api {
    let grants = ["workflow.run", "workflow.read", "workflow.define", "workflow.approve", "tool:kb__get_greeting"];
    api.new_user("ann", &grants)
}

#[track_caller]
fn forbidden(run: &Value, step: &str) {
    assert_eq!(run["status"], "failed", "{run:#}");
    let error = &run["tasks"][step]["error"];
    assert_eq!(error["code"], "forbidden", "{run:#}");
    assert!(error["message"].as_str().unwrap().contains("kb__knowledge_add"), "{error:#}");
}

#[test]
fn no_workflow_child_template_proxy_retry_or_rerun_reaches_a_tool_without_its_grant() {
    let (_place, server, path) = writes();
    let (api, ann) = (&server.api, ann(&server.api));
    let add = |name: &str| calling(name, "kb__knowledge_add", json!({"title": "{{input.title ?? 'none'}}"}));

    ann.define(&add("hers"));
    forbidden(&ann.finished("hers", &json!({})), "call");
    // Not even if a user with the grant starts a workflow that she wrote.
    forbidden(&api.finished("hers", &json!({})), "call");
    api.define(&add("theirs"));
    forbidden(&ann.finished("theirs", &json!({})), "call");
    api.define(&json!({"name": "around", "tasks": {"inside": {"workflow": "theirs", "input": {}}}}));
    let around = ann.finished("around", &json!({}));
    assert_eq!(around["status"], "failed", "{around:#}");
    // What is called cannot come from outside.
    let named = calling("named", "{{input.tool}}", json!({}));
    api.post("/api/v1/workflows", &named).refused(422, "invalid-definition");
    let refused = Agent::plain(&ann).send("tools/call", json!({"name": "kb__knowledge_add", "arguments": {}})).json();
    assert!(refused["error"].is_object(), "{refused:#}");
    assert!(!path.exists());

    // A run of a user with the grant, retried by her.
    let made = api.finished("theirs", &json!({"title": "Tides"}));
    assert_eq!(made["status"], "completed", "{made:#}");
    let before = std::fs::read(&path).unwrap();
    let made = made["id"].as_str().unwrap();
    let rerun = ann.post(&format!("/api/v1/runs/{made}/rerun"), &json!({})).is(201).data();
    forbidden(&ann.end(rerun["run_id"].as_str().unwrap()), "call");
    api.define(&json!({"name": "late", "tasks": {"first": {"wait_for_webhook": {"timeout": "1h"}},
        "call": {"needs": ["first"], "tool": "kb__knowledge_add", "args": {"title": "Late"}}}}));
    let late = api.trigger("late", &json!({}));
    api.step(&late, "first", "waiting");
    api.post(&format!("/api/v1/runs/{late}/cancel"), &json!({})).is(200);
    ann.post(&format!("/api/v1/runs/{late}/retry"), &json!({})).is(200);
    api.post(&format!("/api/v1/runs/{late}/steps/first/deliver"), &json!({"go": "on"})).is(200);
    forbidden(&ann.end(&late), "call");
    assert_eq!(std::fs::read(&path).unwrap(), before);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_grant_that_is_taken_away_during_a_sleep_stops_the_next_step() {
    let (_place, server, path) = writes();
    let api = &server.api;
    let bob = api.new_user("bob", &["workflow.run", "workflow.read", "tool:kb__*"]);
    api.define(&json!({"name": "later", "tasks": {"nap": {"sleep": "1h"},
        "call": {"needs": ["nap"], "tool": "kb__knowledge_add", "args": {"title": "Tides"}}}}));
    let run = bob.trigger("later", &json!({}));
    api.step(&run, "nap", "sleeping");
    let users = api.get("/api/v1/users").is(200).data();
    let id = users.as_array().unwrap().iter().find(|user| user["name"] == "bob").unwrap()["id"].clone();
    let id = id.as_str().unwrap();
    api.call("PATCH", &format!("/api/v1/users/{id}"), &json!({"grants": ["workflow.run", "workflow.read"]})).is(200);
    api.ready(&run, "nap");
    eventually("the end", || api.run(&run)["finished_at"].is_string().then_some(()));
    forbidden(&api.run(&run), "call");
    assert!(!path.exists());
}
