//! Whole records: who or what started a run, each attempt, its children, its waits, its steps in pages.

use crate::harness::{Installation, eventually};
use crate::outside::Outside;
use serde_json::{Value, json};

#[test]
fn a_run_says_who_or_what_started_it_and_who_retried_it() {
    let place = Installation::new();
    let server = place.serve();
    let api = &server.api;
    let definition = json!({"name": "it", "trigger": ["api", {"cron": "* * * * * *"}, "webhook"],
        "tasks": {"bad": {"tool": "fail", "args": {}}}});
    let id = api.define(&definition);
    let agent = api.but(&place.agent_key());
    let run = agent.trigger("it", &json!({}));
    let started = api.end(&run)["started_by"].clone();
    assert_eq!((&started["how"], &started["key"]["agent"]), (&json!("request"), &json!(true)), "{started:#}");
    assert!(started["key"]["name"].is_string() && started["user"].is_string(), "{started:#}");
    let scheduled = eventually("a tick", || {
        let runs = api.data("/runs?limit=1000");
        let ids = runs.as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap().to_string());
        ids.map(|run| api.run(&run)["started_by"].clone()).find(|started| started["how"] == "schedule")
    });
    assert_eq!(scheduled["schedule"], format!("{id}.1"));
    api.call("PATCH", "/api/v1/workflows/it", &json!({"enabled": false})).is(200);
    let retried = api.post(&format!("/api/v1/runs/{run}/retry?wait=60s"), &json!({})).is(200).data();
    assert!(retried["retried_by"].is_string() && retried["expires_at"].is_string(), "{retried:#}");
    api.call("PATCH", "/api/v1/workflows/it", &json!({"enabled": true})).is(200);
    let address = api.data("/workflows/it")["webhooks"][0].as_str().unwrap().to_string();
    let path = &address[address.find("/in/").unwrap()..];
    let headers = [("x-stepwell-schedule", "mine"), ("x-mine", "1")];
    let called = server.without_key().send("POST", path, &headers, None).is(202).json();
    let run = called["data"]["run_id"].as_str().or(called["run_id"].as_str()).unwrap().to_string();
    let started = api.end(&run)["started_by"].clone();
    assert_eq!((&started["how"], started.get("schedule")), (&json!("webhook"), None), "{started:#}");
}

#[test]
fn attempts_children_and_waits_are_told_in_full() {
    let place = Installation::new();
    let server = place.serve();
    let api = &server.api;
    let outside = Outside::start();
    outside.answer("/busy", 503, json!({"busy": true}));
    let retry = json!({"attempts": 2, "backoff": "fixed", "delay": "10ms"});
    api.define(&json!({"name": "small", "tasks": {"rest": {"sleep": 0}}}));
    api.define(&json!({"name": "it", "tasks": {
        "call": {"url": format!("{}/busy", outside.url), "retry": retry},
        "child": {"workflow": "small"},
        "wait": {"needs": ["child"], "wait_for_webhook": {"timeout": "1h"}},
    }}));
    let run = api.trigger("it", &json!({}));
    let wait = api.step(&run, "wait", "waiting")["tasks"]["wait"].clone();
    let url = wait["callback_url"].as_str().unwrap_or_else(|| panic!("{wait:#}"));
    let child = api.run(&run)["tasks"]["child"]["child_run_id"].as_str().unwrap().to_string();
    assert_eq!(api.run(&child)["started_by"]["how"], "run");
    let reader = api.new_user("eve", &["workflow.read"]);
    assert_eq!(reader.run(&run)["tasks"]["wait"].get("callback_url"), None, "who may only read may not deliver");
    server.without_key().send("POST", &url[url.find("/wh/").unwrap()..], &[], None).is(200);
    let call = api.end(&run)["tasks"]["call"].clone();
    assert!(call["headers"]["content-type"].is_string(), "{call:#}");
    for attempt in call["attempts"].as_array().unwrap() {
        assert_eq!((&attempt["status_code"], &attempt["reason"]), (&json!(503), &json!("failed")), "{attempt:#}");
        assert!(attempt["duration_ms"].is_i64() && attempt["headers"].is_object(), "{attempt:#}");
    }
    let events = api.data(&format!("/runs/{run}/events"));
    assert!(events.as_array().unwrap().iter().all(|event| event["workflow"] == "it"), "{events:#}");
    let times: Vec<&Value> = events.as_array().unwrap().iter().filter_map(|event| event.get("expires")).collect();
    assert!(!times.is_empty() && times.iter().all(|at| at.as_str().is_some_and(|at| at.ends_with('Z'))), "{times:?}");
}

#[test]
fn steps_come_in_pages_by_status_and_path_and_a_long_run_has_the_first() {
    let place = Installation::new();
    let server = place.serve();
    let api = &server.api;
    api.define(&json!({"name": "long", "tasks": {"each": {"for_each": "{{input}}", "max_parallel": 100,
        "tasks": {"one": {"if": "item != 7", "tool": "echo", "args": {"n": "{{item}}"}}}}}}));
    let list: Vec<u32> = (0..1_100).collect();
    let run = api.finished("long", &json!(list));
    let id = run["id"].as_str().unwrap();
    assert_eq!(run["tasks"].as_object().unwrap().len(), 1_000);
    let rest = api.get(&format!("/api/v1/runs/{id}/steps?limit=1000&cursor={}", run["tasks_next"].as_str().unwrap()));
    let rest = rest.is(200).json();
    assert_eq!((rest["data"].as_array().unwrap().len(), &rest["next"]), (101, &Value::Null));
    let skipped = api.data(&format!("/runs/{id}/steps?status=skipped"));
    assert_eq!((skipped.as_array().unwrap().len(), &skipped[0]["path"]), (1, &json!("each[7].one")));
    assert_eq!(api.data(&format!("/runs/{id}/steps?prefix=each[12].")).as_array().unwrap().len(), 1);
    let mut seen = 0;
    let mut cursor = String::new();
    loop {
        let page = api.get(&format!("/api/v1/runs/{id}/steps?limit=500{cursor}")).is(200).json();
        seen += page["data"].as_array().unwrap().len();
        let Some(next) = page["next"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(seen, 1_101);
    api.get(&format!("/api/v1/runs/{id}/steps?cursor=nowhere")).refused(422, "invalid-input");
}

#[test]
fn workflows_are_listed_with_their_definitions_and_graphs_if_asked() {
    let place = Installation::new();
    let server = place.serve();
    let api = &server.api;
    api.define(&json!({"name": "it", "tasks": {"rest": {"sleep": 0}}}));
    let plain = api.data("/workflows");
    assert_eq!((plain[0].get("definition"), plain[0].get("graph")), (None, None));
    let full = api.data("/workflows?include=definition,graph");
    assert_eq!(full[0]["definition"]["tasks"], json!({"rest": {"sleep": 0}}));
    assert_eq!((&full[0]["graph"]["nodes"][0]["name"], &full[0]["name"]), (&json!("rest"), &json!("it")));
    api.get("/api/v1/workflows?include=all").refused(422, "invalid-input");
}

#[test]
fn the_state_of_a_run_has_results_by_their_variables() {
    let place = Installation::new();
    let server = place.serve();
    let api = &server.api;
    let nodes = json!([
        {"nodeID": "s", "nodeType": "start"},
        {"nodeID": "a", "nodeType": "javascript", "nodeConfig": {"code": "return {n: 7};", "outputVariable": "seven"}},
        {"nodeID": "e", "nodeType": "end"},
    ]);
    let edges =
        json!([{"upstreamNodeID": "s", "downstreamNodeID": "a"}, {"upstreamNodeID": "a", "downstreamNodeID": "e"}]);
    api.define(&json!({"name": "it", "nodes": nodes, "edges": edges}));
    let run = api.finished("it", &json!({"x": 1}));
    let id = run["id"].as_str().unwrap();
    let state = api.get(&format!("/api/v1/runs/{id}/status")).is(200).data();
    assert_eq!((&state["instanceID"], &state["status"]), (&run["id"], &json!("completed")));
    assert_eq!((&state["contextData"]["seven"], &state["contextData"]["input"]), (&json!({"n": 7}), &json!({"x": 1})));
    assert_eq!(state["contextData"]["nodes"]["a"], json!({"n": 7}));
}
