//! Test runs, labels, bulk operations, pauses, overrides and erasing.

use crate::harness::{Installation, eventually, statuses};
use crate::outside::Outside;
use serde_json::{Value, json};

fn long(name: &str) -> Value {
    json!({"name": name, "tasks": {"rest": {"sleep": "1h"}}})
}

#[test]
fn test_runs_are_kept_apart_and_go_without_a_trace() {
    let place = Installation::new();
    let server = place.serve();
    let outside = Outside::start();
    let api = &server.api;
    let definition = json!({"name": "draft", "tasks": {
        "go": {"url": format!("{}/go", outside.url), "body": {"secret": "{{trigger.body.word}}"}},
        "rest": {"sleep": "1h", "needs": ["go"]},
    }});
    let start = |definition: &Value| {
        let body = json!({"definition": definition, "input": {"word": "xyzzy-of-a-test"}});
        api.post("/api/v1/test-runs", &body).is(201).data()["run_id"].as_str().unwrap().to_string()
    };
    let run = start(&definition);
    let by_text = start(&json!("name: text\ntasks:\n  rest: {sleep: 0}\n"));
    assert_eq!(api.end(&by_text)["status"], "completed");
    let seen = api.step(&run, "rest", "sleeping");
    assert_eq!((&seen["test"], &seen["workflow"]), (&json!(true), &json!("draft")));
    assert_eq!(outside.calls("/go").len(), 1);
    // It does not appear among real runs.
    assert_eq!(api.get("/api/v1/runs").data(), json!([]));
    assert_eq!(api.get("/api/v1/workflows").data(), json!([]));
    api.get("/api/v1/workflows/draft").refused(404, "not-found");
    assert_eq!(api.get("/api/v1/runs?tests=true").data().as_array().unwrap().len(), 2);
    let bad = json!({"definition": {"name": "x", "tasks": {"a": {"needs": ["b"], "sleep": 0}}}});
    api.post("/api/v1/test-runs", &bad).refused(422, "invalid-definition");
    for run in [&run, &by_text] {
        api.delete(&format!("/api/v1/test-runs/{run}")).is(204);
        for path in ["", "/events"] {
            api.get(&format!("/api/v1/runs/{run}{path}")).refused(404, "not-found");
        }
        api.delete(&format!("/api/v1/test-runs/{run}")).refused(404, "not-found");
    }
    assert_eq!(api.get("/api/v1/runs?tests=true").data(), json!([]));
    // A real run is not removed this way.
    api.define(&long("real"));
    let real = api.trigger("real", &json!({}));
    api.delete(&format!("/api/v1/test-runs/{real}")).is(409);
    assert_eq!(api.run(&real)["status"], "running");
    server.stop();
    place.sound();
    let has = |row: &[u8], word: &str| row.windows(word.len()).any(|part| part == word.as_bytes());
    for (table, row) in place.rows().iter().filter(|(table, _)| !table.contains("audit")) {
        assert!(!has(row, &run) && !has(row, "xyzzy-of-a-test"), "{table} still has something of {run}");
    }
}

#[test]
fn labels_are_given_at_the_trigger_by_the_workflow_and_later() {
    let place = Installation::new();
    let server = place.serve();
    let api = &server.api;
    let mut definition = long("it");
    definition["labels"] = json!({"team": "red"});
    api.define(&definition);
    api.define(&long("plain"));
    let listed = api.get("/api/v1/workflows?label=team%3Dred").is(200).data();
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]["name"]), (1, &json!("it")));
    let run = api.post("/api/v1/workflows/plain/trigger?label=order%3D7,place%3Dhere", &json!({})).is(201).data();
    let run = run["run_id"].as_str().unwrap();
    assert_eq!(api.run(run)["labels"], json!({"order": "7", "place": "here"}));
    let labelled = api.call("PATCH", &format!("/api/v1/runs/{run}"), &json!({"labels": {"order": "8"}})).is(200).data();
    assert_eq!(labelled["labels"], json!({"order": "8"}));
    let found = |label: &str| api.get(&format!("/api/v1/runs?label={label}")).is(200).data().as_array().unwrap().len();
    assert_eq!((found("order%3D7"), found("order%3D8"), found("place%3Dhere")), (0, 1, 0));
    api.call("PATCH", &format!("/api/v1/runs/{run}"), &json!({"labels": {}})).is(200);
    assert_eq!(found("order%3D8"), 0);
    api.post("/api/v1/workflows/plain/trigger?label=nonsense", &json!({})).refused(422, "invalid-input");
}

#[test]
fn many_runs_are_cancelled_and_retried_by_filter() {
    let place = Installation::new();
    let server = place.serve();
    let outside = Outside::start();
    outside.answer("/work", 400, "{}");
    let api = &server.api;
    api.define(&long("it"));
    api.define(&long("other"));
    api.define(&json!({"name": "work", "tasks": {"go": {"url": format!("{}/work", outside.url)}}}));
    let mut many: Vec<String> = (0..30).map(|_| api.trigger("it", &json!({}))).collect();
    // Two of one millisecond may be numbered either way.
    many.sort_unstable();
    let other = api.trigger("other", &json!({}));
    // Nothing is meant unless it is said.
    api.post("/api/v1/runs/cancel", &json!({})).refused(422, "invalid-input");
    let bulk = api.post("/api/v1/runs/cancel", &json!({"filter": {"workflow": "it"}, "reason": "over"})).is(200).data();
    let mut done: Vec<&str> = bulk["done"].as_array().unwrap().iter().map(|run| run.as_str().unwrap()).collect();
    done.sort_unstable();
    assert_eq!(
        (done, &bulk["more"], &bulk["refused"]),
        (many.iter().map(String::as_str).collect(), &json!(false), &json!([]))
    );
    assert!(many.iter().all(|run| api.run(run)["status"] == "cancelled"));
    assert_eq!(api.run(&other)["status"], "running");
    let failed: Vec<String> = (0..5).map(|_| api.trigger("work", &json!({}))).collect();
    assert!(failed.iter().all(|run| api.end(run)["status"] == "failed"));
    outside.answer("/work", 200, "{}");
    let bulk = api.post("/api/v1/runs/retry", &json!({"filter": {"workflow": "work"}})).is(200).data();
    assert_eq!(bulk["done"].as_array().unwrap().len(), 5);
    for run in &failed {
        let run = eventually("the end of the retry", || {
            Some(api.run(run)).filter(|run| run["generation"] == 1 && !run["finished_at"].is_null())
        });
        assert_eq!(run["status"], "completed");
    }
    // Completed runs are not asked for again.
    let bulk = api.post("/api/v1/runs/retry", &json!({"filter": {"workflow": "work"}})).is(200).data();
    assert_eq!(bulk["done"], json!([]));
    // A filter that says only what cannot be cancelled cancels nothing.
    let bulk = api.post("/api/v1/runs/cancel", &json!({"filter": {"status": "completed"}})).is(200).data();
    assert_eq!((&bulk["done"], &api.run(&other)["status"]), (&json!([]), &json!("running")));
}

#[test]
fn a_retry_runs_what_failed_and_a_rerun_runs_everything() {
    let place = Installation::new();
    let server = place.serve();
    let outside = Outside::start();
    outside.answer("/second", 400, "{}");
    let api = &server.api;
    let url = &outside.url;
    api.define(&json!({"name": "it", "tasks": {
        "first": {"url": format!("{url}/first"), "body": {"n": "{{trigger.body.n}}"}},
        "second": {"url": format!("{url}/second"), "needs": ["first"]},
    }}));
    let run = api.trigger("it", &json!({"n": 1}));
    assert_eq!(api.end(&run)["status"], "failed");
    outside.answer("/second", 200, "{}");
    api.post(&format!("/api/v1/runs/{run}/retry"), &json!({})).is(200);
    let again = eventually("the retry", || Some(api.run(&run)).filter(|run| run["status"] == "completed"));
    assert_eq!((&again["generation"], outside.calls("/first").len()), (&json!(1), 1));
    api.post(&format!("/api/v1/runs/{run}/retry"), &json!({})).is(409);
    let fresh = api.send("POST", &format!("/api/v1/runs/{run}/rerun"), &[], None).is(201).data();
    let fresh = api.end(fresh["run_id"].as_str().unwrap());
    assert_eq!((&fresh["status"], &fresh["input"]), (&json!("completed"), &json!({"n": 1})));
    let other = api.post(&format!("/api/v1/runs/{run}/rerun"), &json!({"n": 2})).is(201).data();
    assert_eq!(api.end(other["run_id"].as_str().unwrap())["input"], json!({"n": 2}));
    let sent: Vec<Value> = outside.calls("/first").iter().map(|call| call.json()["n"].clone()).collect();
    assert_eq!(sent, [1, 1, 2]);
}

#[test]
fn a_paused_workflow_takes_runs_and_holds_them() {
    let place = Installation::new();
    let server = place.serve();
    let outside = Outside::start();
    let api = &server.api;
    api.define(&json!({"name": "it", "tasks": {"go": {"url": format!("{}/go", outside.url)}}}));
    assert_eq!(api.post("/api/v1/workflows/it/pause", &json!({})).is(200).data()["paused"], true);
    let runs: Vec<String> = (0..3).map(|_| api.trigger("it", &json!({}))).collect();
    for run in &runs {
        let run = api.run(run);
        assert_eq!((&run["status"], &run["waiting_for"][0]["for"]), (&json!("queued"), &json!("queue")), "{run:#}");
    }
    // It is held across a restart.
    server.stop();
    let server = place.serve();
    let api = &server.api;
    let held = api.post("/api/v1/workflows/it/trigger", &json!({})).is(201).data();
    assert_eq!((&held["status"], held.get("started_at")), (&json!("queued"), None), "a queued run has not started");
    let more = held["run_id"].as_str().unwrap().to_string();
    assert_eq!(api.run(&more)["status"], "queued");
    assert_eq!(outside.count(), 0);
    let other = api.call("PUT", "/api/v1/workflows/that", &json!({"name": "other", "tasks": {"a": {"sleep": 0}}}));
    let detail = other.refused(422, "invalid-input").to_string();
    assert!(detail.contains("that") && detail.contains("other"), "both names are told: {detail}");
    assert_eq!(api.post("/api/v1/workflows/it/resume", &json!({})).is(200).data()["paused"], false);
    for run in runs.iter().chain([&more]) {
        assert_eq!(api.end(run)["status"], "completed");
    }
}

#[test]
fn a_paused_concurrency_key_holds_only_its_own_runs() {
    let place = Installation::new();
    let server = place.serve();
    let api = &server.api;
    api.define(&json!({"name": "it", "tasks": {"rest": {"sleep": 0}},
        "concurrency": {"limit": 2, "key": "{{trigger.body.customer}}"}}));
    api.post("/api/v1/workflows/it/pause", &json!({"key": "a"})).is(200);
    let held = api.trigger("it", &json!({"customer": "a"}));
    assert_eq!(api.finished("it", &json!({"customer": "b"}))["status"], "completed");
    assert_eq!(api.run(&held)["status"], "queued");
    assert_eq!(api.get("/api/v1/workflows/it").data()["paused_keys"][0]["key"], "a");
    api.post("/api/v1/workflows/it/resume", &json!({"key": "a"})).is(200);
    assert_eq!(api.end(&held)["status"], "completed");
}

#[test]
fn an_administrator_ends_a_stuck_step_and_that_is_in_the_trail() {
    let place = Installation::new();
    let server = place.serve();
    let outside = Outside::start();
    outside.hold("/stuck");
    let api = &server.api;
    let url = &outside.url;
    api.define(&json!({"name": "it", "tasks": {
        "stuck": {"url": format!("{url}/stuck"), "timeout": "1h"},
        "next": {"url": format!("{url}/next"), "needs": ["stuck"], "body": {"got": "{{tasks.stuck.body.n}}"}},
    }}));
    let run = api.trigger("it", &json!({}));
    outside.called("/stuck", 1);
    let path = format!("/api/v1/runs/{run}/steps/stuck/finish");
    let user = api.new_user("ann", &["workflow.run", "workflow.read", "workflow.define", "workflow.approve"]);
    user.post(&path, &json!({"output": {"n": 7}})).refused(403, "forbidden");
    api.post(&path, &json!({"status": "odd"})).refused(422, "invalid-input");
    api.post(&path, &json!({"status": "success", "error": "x"})).refused(422, "invalid-input");
    api.post(&path, &json!({"output": {"n": 7}, "comment": "it hangs"})).is(200);
    let end = api.end(&run);
    assert_eq!((end["status"].as_str().unwrap(), statuses(&end).as_str()), ("completed", "stuck=success next=success"));
    assert_eq!(outside.calls("/next")[0].json(), json!({"got": 7}));
    let trail = api.get(&format!("/api/v1/audit?action=step.override&target={run}")).is(200).data();
    assert_eq!((&trail[0]["by"], &trail[0]["detail"]["comment"]), (&json!("admin"), &json!("it hangs")));
    outside.let_go("/stuck");
    // As a failure, too.
    outside.hold("/stuck");
    let run = api.trigger("it", &json!({}));
    outside.called("/stuck", 2);
    api.post(&format!("/api/v1/runs/{run}/steps/stuck/finish"), &json!({"error": "gone"})).is(200);
    let end = api.end(&run);
    assert_eq!((&end["status"], &end["tasks"]["stuck"]["error"]["message"]), (&json!("failed"), &json!("gone")));
    outside.let_go("/stuck");
}

#[test]
fn an_erased_run_has_no_payload_left_and_its_log_still_holds() {
    let place = Installation::new();
    let server = place.serve();
    let outside = Outside::start();
    let (given, got) = ("what-ann-told-us", "what-we-were-answered");
    outside.answer("/go", 200, json!({"word": got}));
    let api = &server.api;
    api.define(&json!({"name": "it", "tasks": {
        "go": {"url": format!("{}/go", outside.url), "body": {"word": "{{trigger.body.word}}"}},
        "rest": {"sleep": "1h", "needs": ["go"]},
    }, "output": {"word": "{{tasks.go.body.word}}"}}));
    let run = api.trigger("it", &json!({"word": given}));
    api.step(&run, "rest", "sleeping");
    let erase = format!("/api/v1/runs/{run}/erase");
    api.send("POST", &erase, &[], None).is(409);
    api.ready(&run, "rest");
    api.end(&run);
    let user = api.new_user("ann", &["workflow.run", "workflow.read", "workflow.define"]);
    user.send("POST", &erase, &[], None).refused(403, "forbidden");
    let erased = api.send("POST", &erase, &[], None).is(200).data();
    assert!(erased["erased_at"].is_string());
    for path in ["", "/events"] {
        let text = api.get(&format!("/api/v1/runs/{run}{path}")).is(200).text();
        assert!(!text.contains(given) && !text.contains(got), "{text}");
    }
    assert_eq!(api.run(&run)["status"], "completed");
    api.send("POST", &format!("/api/v1/runs/{run}/rerun"), &[], None).is(409);
    server.stop();
    place.sound();
    let all = place.bytes();
    for word in [given, got] {
        assert!(!all.windows(word.len()).any(|part| part == word.as_bytes()), "{word} is still in the files");
    }
}

#[test]
fn a_value_in_a_url_adds_no_segment_and_no_parameter() {
    let place = Installation::new();
    let server = place.serve();
    let asked = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let url = stepwell_testing::listen({
        let asked = asked.clone();
        move |request| {
            asked.lock().unwrap().push(request.path);
            ("200 OK", "{}".to_string())
        }
    });
    let api = &server.api;
    api.define(
        &json!({"name": "get", "tasks": {"get": {"url": format!("{url}/v1/{{{{input.id}}}}?q={{{{input.q}}}}")}}}),
    );
    let status = |input: Value| api.end(&api.trigger("get", &input))["status"].clone();
    assert_eq!(status(json!({"id": "x/../y", "q": "q?z=1#f&a"})), "completed");
    assert_eq!(status(json!({"id": "..", "q": 1})), "failed");
    assert_eq!(status(json!({"id": "%2e%2e", "q": "é"})), "completed");
    assert_eq!(*asked.lock().unwrap(), ["/v1/x%2F..%2Fy?q=q%3Fz%3D1%23f%26a", "/v1/%252e%252e?q=%C3%A9"]);
}
