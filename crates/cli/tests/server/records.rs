//! What the API keeps: retries and their previews, deleted workflows, waiting for ends.

use crate::harness::{Api, Installation, Server, eventually};
use crate::outside::Outside;
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn serve() -> (Installation, Server) {
    let place = Installation::new();
    let server = place.serve();
    (place, server)
}

fn names(list: &Value) -> BTreeSet<&str> {
    list.as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect()
}

/// A step that succeeds, a loop, a step that fails unless it is fixed, and one behind it.
fn broken(name: &str, fixed: bool) -> Value {
    let third = if fixed { json!({"tool": "echo", "args": {}}) } else { json!({"tool": "fail", "args": {}}) };
    let mut definition = json!({"name": name, "tasks": {
        "first": {"sleep": 0},
        "second": {"for_each": [1, 2], "needs": ["first"], "tasks": {"rest": {"sleep": 0}}},
        "third": third,
        "fourth": {"needs": ["third"], "sleep": 0},
    }});
    definition["tasks"]["third"]["needs"] = json!(["second"]);
    definition
}

#[test]
fn the_preview_of_a_retry_says_what_the_retry_does() {
    let (_place, server) = serve();
    let api = &server.api;
    api.define(&broken("it", false));
    let run = api.finished("it", &json!({"n": 1}))["id"].as_str().unwrap().to_string();
    let preview = |query: &str| api.data(&format!("/runs/{run}/retry{query}"));
    let own = preview("");
    assert_eq!(own, json!({"stands": ["first", "second"], "again": ["third"]}));
    // While there is no newer version, both are the same.
    assert_eq!(preview("?newest=true"), own);
    // A newer version begins anew with a changed step; the run's own does not.
    let changed = json!({"sleep": 1});
    let mut newer = broken("it", true);
    newer["tasks"]["first"] = changed;
    api.call("PUT", "/api/v1/workflows/it", &newer).is(200);
    assert_eq!(preview(""), own);
    assert_eq!(names(&preview("?newest=true")["again"]), BTreeSet::from(["first", "second", "third"]));
    let attempts = |run: &Value| {
        let attempt = |step: &str| run["tasks"][step]["attempt"].as_u64().unwrap();
        ["first", "second", "third"].map(attempt)
    };
    let before = attempts(&api.run(&run));
    api.post(&format!("/api/v1/runs/{run}/retry?wait=60s"), &json!({})).is(200);
    assert_eq!(attempts(&api.run(&run)), [before[0], before[1], before[2] + 1]);
    let ended = api.post(&format!("/api/v1/runs/{run}/retry?wait=60s"), &json!({"newest": true})).is(200).data();
    assert_eq!((&ended["status"], &ended["run_id"]), (&json!("completed"), &json!(run)));
    api.get(&format!("/api/v1/runs/{run}/retry")).refused(409, "nothing-to-retry");
}

#[test]
fn a_retry_of_some_items_names_them_by_path() {
    let (_place, server) = serve();
    let api = &server.api;
    api.define(&json!({"name": "each", "tasks": {"all": {"for_each": "{{input.list}}", "on_item_error": "stop",
        "max_parallel": 1, "tasks": {"one": {"tool": "echo", "args": {"text": "{{item.word}}"}}}}}}));
    let items = json!({"list": [{"word": "a"}, {}, {"word": "c"}]});
    let run = api.finished("each", &items)["id"].as_str().unwrap().to_string();
    let preview = api.data(&format!("/runs/{run}/retry"));
    assert_eq!(preview, json!({"stands": [], "again": ["all[1].one"]}));
}

#[test]
fn reruns_retries_and_test_runs_can_be_waited_for() {
    let (_place, server) = serve();
    let outside = Outside::start();
    let api = &server.api;
    api.define(
        &json!({"name": "it", "tasks": {"go": {"url": format!("{}/go", outside.url)}}, "output": "{{tasks.go.body}}"}),
    );
    let first = api.finished("it", &json!({}))["id"].as_str().unwrap().to_string();
    let rerun = api.post(&format!("/api/v1/runs/{first}/rerun?wait=60s"), &json!({})).is(200).data();
    assert_eq!(rerun["status"], "completed");
    assert_ne!(rerun["run_id"], json!(first));
    let draft = json!({"definition": {"tasks": {"rest": {"sleep": 0}}}, "input": {}});
    let tested = api.post("/api/v1/test-runs?wait=60s", &draft).is(200).data();
    assert_eq!((&tested["status"], &tested["test"]), (&json!("completed"), &json!(true)));
    // A wait that is too short is answered with the run as it is.
    let long = json!({"definition": {"name": "long", "tasks": {"rest": {"sleep": "1h"}}}});
    let headers = [("prefer", "wait=0"), ("content-type", "application/json")];
    let begun = api.send("POST", "/api/v1/test-runs", &headers, Some(long.to_string().into())).is(202).data();
    assert_eq!(begun["status"], "running");
    let bad = api.post(&format!("/api/v1/runs/{first}/rerun?wait=soon"), &json!({})).refused(422, "invalid-input");
    assert_eq!(bad["errors"][0]["path"], "wait");
}

#[test]
fn a_test_run_needs_no_name_and_its_faults_keep_their_lines() {
    let (_place, server) = serve();
    let api = &server.api;
    let test = |definition: Value| api.post("/api/v1/test-runs?wait=60s", &json!({"definition": definition}));
    for definition in [
        json!({"tasks": {"rest": {"sleep": 0}}}),
        json!("tasks:\n  rest: {sleep: 0}\n"),
        json!("{\n\"tasks\": {\"rest\": {\"sleep\": 0}}}"),
    ] {
        assert_eq!(test(definition).is(200).data()["workflow"], "draft");
    }
    let wrong = test(json!("# a draft\ntasks:\n  rest: {slep: 0}\n")).refused(422, "invalid-definition");
    assert_eq!(wrong["errors"][0]["line"], 3, "{wrong:#}");
    // A stored definition needs a name.
    api.post("/api/v1/workflows", &json!({"tasks": {"rest": {"sleep": 0}}})).refused(422, "invalid-definition");
}

fn deleted(api: &Api) -> Vec<String> {
    let list = api.get("/api/v1/workflows?deleted=true").is(200).data();
    list.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_string()).collect()
}

#[test]
fn a_deleted_workflow_can_be_seen_and_restored() {
    let (place, server) = serve();
    let api = &server.api;
    let definition = |n: u32| {
        json!({"name": "it", "trigger": ["api", {"cron": "0 0 1 1 *"}, "webhook"], "labels": {"n": n.to_string()},
            "tasks": {"rest": {"sleep": 0}}})
    };
    let made = api.post("/api/v1/workflows", &definition(1)).is(201).data();
    let id = made["id"].as_str().unwrap().to_string();
    assert_eq!(made.get("earlier"), None);
    let next = api.call("PUT", "/api/v1/workflows/it", &definition(2)).is(200).data();
    assert_eq!((&next["inserted_at"], &next["version"]), (&made["inserted_at"], &json!(2)));
    assert_ne!(next["updated_at"], made["updated_at"]);
    let run = api.finished("it", &json!({}))["id"].as_str().unwrap().to_string();
    assert_eq!(api.run(&run).get("workflow_deleted_at"), None);
    assert!(deleted(api).is_empty());
    api.post(&format!("/api/v1/workflows/{id}/restore"), &json!({})).refused(409, "not-now");
    api.delete("/api/v1/workflows/it").is(204);

    // It is gone by its name, and there by its id.
    api.get("/api/v1/workflows/it").refused(404, "not-found");
    let seen = api.data(&format!("/workflows/{id}"));
    let at = seen["deleted_at"].as_str().unwrap();
    assert_eq!((&seen["name"], &seen["version"], seen["webhooks"].as_array()), (&json!("it"), &json!(2), None));
    assert_eq!(deleted(api), std::slice::from_ref(&id));
    assert_eq!(api.get("/api/v1/workflows?deleted=true&q=other").data(), json!([]));
    assert_eq!(api.get("/api/v1/workflows?deleted=true&label=n=2").data()[0]["id"], json!(id));
    assert_eq!(api.get(&format!("/api/v1/workflows/{id}/versions")).is(200).data().as_array().unwrap().len(), 2);
    assert_eq!(api.run(&run)["workflow_deleted_at"], at);
    assert_eq!(api.get("/api/v1/runs").data()[0]["workflow_deleted_at"], at);
    assert_eq!(api.get(&format!("/api/v1/runs?workflow={id}")).data().as_array().unwrap().len(), 1);

    // Another one takes its name, and says that there was one.
    let other = api.post("/api/v1/workflows", &definition(1)).is(201).data();
    assert_eq!(other["earlier"], json!({"id": id, "deleted_at": at}));
    let refused = api.post(&format!("/api/v1/workflows/{id}/restore"), &json!({})).refused(409, "not-now");
    assert!(refused["detail"].as_str().unwrap().contains("is named \"it\" now"), "{refused:#}");
    api.delete("/api/v1/workflows/it").is(204);
    assert_eq!(deleted(api), [other["id"].as_str().unwrap(), &id]);
    let first = api.get("/api/v1/workflows?deleted=true&limit=1").json();
    assert_eq!(first["data"][0]["id"], other["id"]);
    let second = api.get(&format!("/api/v1/workflows?deleted=true&cursor={}", first["next"].as_str().unwrap())).json();
    assert_eq!((&second["data"][0]["id"], &second["next"]), (&json!(id), &Value::Null));

    // Restoring needs the right to define. The workflow gets its schedule back, and a new address.
    let reader = api.new_user("eve", &["workflow.read", "workflow.run"]);
    reader.post(&format!("/api/v1/workflows/{id}/restore"), &json!({})).refused(403, "forbidden");
    let back = api.post(&format!("/api/v1/workflows/{id}/restore"), &json!({})).is(200).data();
    assert_eq!((&back["id"], &back["version"], back.get("deleted_at")), (&json!(id), &json!(2), None));
    let seen = api.data("/workflows/it");
    assert_eq!(seen["webhooks"].as_array().unwrap().len(), 1);
    assert_eq!(api.get("/api/v1/workflows/it/schedule").data().as_array().unwrap().len(), 1);
    assert_eq!(api.run(&run).get("workflow_deleted_at"), None);
    assert_eq!(api.finished("it", &json!({}))["status"], "completed");
    let audit = api.get("/api/v1/audit?action=workflow.restore").is(200).data();
    assert_eq!(audit[0]["target"], "it");
    server.stop();
    place.sound();
    let server = place.serve();
    let is_back = || Some(server.api.get("/api/v1/workflows/it").status).filter(|status| *status == 200);
    eventually("the restored workflow", is_back);
}
