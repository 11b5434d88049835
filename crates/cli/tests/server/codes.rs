//! Stable codes that no other suite covers: each from a request or a definition that leads to it.

use crate::canary::MASTER;
use crate::harness::{Api, Installation, Server, eventually};
use crate::outside::Outside;
use crate::raw::{Raw, status};
use serde_json::{Value, json};
use std::time::Instant;

/// The run of a definition that fails, and the code and message of its error.
#[track_caller]
fn fails(api: &Api, definition: Value) -> (String, String) {
    let name = definition["name"].as_str().unwrap().to_string();
    api.define(&definition);
    let run = api.finished(&name, &json!({}));
    assert_eq!(run["status"], "failed", "{run:#}");
    let text = |field: &str| run["error"][field].as_str().unwrap_or_default().to_string();
    (text("code"), text("message"))
}

#[test]
fn requests_that_are_not_what_the_address_takes_are_refused_with_their_codes() {
    let place = Installation::new();
    let server = place.serve();
    let yaml = [("content-type", "application/yaml")];
    server.api.send("POST", "/api/v1/workflows", &yaml, Some(vec![b'a', 0xff])).refused(400, "not-text");
    server.api.get("/api/v1/ws").refused(400, "not-a-websocket");
    server.api.get("/api/v1/runs/%ff").refused(400, "bad-request");
}

#[test]
fn a_full_workflow_that_skips_refuses_the_next_run() {
    let place = Installation::new();
    let server = place.serve();
    let concurrency = json!({"limit": 1, "when_full": "skip"});
    server.api.define(&json!({"name": "it", "concurrency": concurrency, "tasks": {"rest": {"sleep": "1d"}}}));
    let run = server.api.trigger("it", &json!({}));
    server.api.post("/api/v1/workflows/it/trigger", &json!({})).refused(429, "concurrency-limit");
    server.api.post(&format!("/api/v1/runs/{run}/cancel"), &json!({})).is(200);
    server.api.end(&run);
    server.api.trigger("it", &json!({}));
}

#[test]
fn commands_that_do_not_fit_the_state_of_the_run_are_refused_with_their_codes() {
    let place = Installation::new();
    let server = place.serve();
    let outside = Outside::start();
    outside.hold("/slow");
    let slow = json!({"url": format!("{}/slow", outside.url)});
    server.api.define(&json!({"name": "it", "tasks": {"slow": slow}}));
    let run = server.api.trigger("it", &json!({}));
    outside.called("/slow", 1);
    let id = server.api.run(&run)["tasks"]["slow"]["id"].as_str().unwrap().to_string();
    server.api.post(&format!("/api/v1/steps/{id}/ready"), &json!({})).refused(409, "not-waiting");
    server.api.post(&format!("/api/v1/runs/{run}/erase"), &json!({})).refused(409, "not-now");
    server.api.post(&format!("/api/v1/runs/{run}/retry"), &json!({})).refused(409, "nothing-to-retry");
    outside.let_go("/slow");
    server.api.end(&run);
    server.api.post(&format!("/api/v1/runs/{run}/retry"), &json!({})).refused(409, "nothing-to-retry");
}

#[test]
fn a_run_is_not_retried_under_a_version_in_another_dialect() {
    let place = Installation::new();
    let server = place.serve();
    let id = server.api.define(&json!({"name": "it", "tasks": {"it": {"tool": "fail", "retries": 0}}}));
    let run = server.api.finished("it", &json!({}))["id"].as_str().unwrap().to_string();
    let flow = json!({"name": "it", "flow": {"start": {"tool": "uuid", "done": true}}});
    server.api.call("PUT", &format!("/api/v1/workflows/{id}"), &flow).is(200);
    let retry = format!("/api/v1/runs/{run}/retry");
    server.api.get(&format!("{retry}?newest=true")).refused(409, "other-dialect");
    server.api.post(&retry, &json!({"newest": true})).refused(409, "other-dialect");
}

#[test]
fn a_call_to_the_address_of_a_workflow_whose_author_lost_the_right_is_not_startable() {
    let place = Installation::new();
    let server = place.serve();
    let grants = ["workflow.define", "workflow.run", "workflow.read", "tool:*"];
    let author = server.api.new_user("beatrix", &grants);
    author.define(&json!({"name": "it", "trigger": {"webhook": true}, "tasks": {"rest": {"sleep": 0}}}));
    let url = author.get("/api/v1/workflows/it").is(200).data()["webhooks"][0].as_str().unwrap().to_string();
    let path = url.strip_prefix(&server.url).unwrap();
    server.without_key().post(path, &json!({})).is(202);
    server.api.call("PATCH", "/api/v1/users/beatrix", &json!({"grants": ["workflow.read"]})).is(200);
    let refused = server.without_key().post(path, &json!({})).refused(503, "not-startable");
    assert!(!refused.to_string().contains("beatrix"), "{refused}");
}

#[test]
fn loops_items_and_branches_that_cannot_go_on_fail_with_their_codes() {
    let place = Installation::new();
    let server = place.serve();
    let endless = json!({"name": "endless", "max_iterations": 3, "flow": {
        "start": {"tool": "uuid", "next": "pause"},
        "pause": {"sleep": 0, "next": "look"},
        "look": {"tool": "uuid", "branch": [{"if": "result == 'never'", "then": "end"}, {"then": "pause"}]},
        "end": {"tool": "uuid", "done": true},
    }});
    let (code, message) = fails(&server.api, endless);
    assert_eq!((&*code, message.contains("after 3 passes")), ("too_many_iterations", true), "{message}");
    let nowhere = json!({"name": "nowhere", "flow": {
        "start": {"tool": "uuid", "branch": [{"if": "result == 'never'", "then": "end"}]},
        "end": {"tool": "uuid", "done": true},
    }});
    assert_eq!(fails(&server.api, nowhere).0, "no_branch");
    let items = json!({"name": "items", "tasks": {"each": {"for_each": [1, 2], "tasks": {
        "it": {"tool": "fail", "args": {"message": "as asked"}, "retries": 0},
    }}}});
    let (code, message) = fails(&server.api, items);
    assert_eq!((&*code, message.contains("as asked")), ("item_failed", true), "{message}");
}

#[test]
fn a_request_is_not_sent_if_it_cannot_be_signed() {
    let place = Installation::new().variable("STEPWELL_MASTER_KEY", MASTER);
    let server = place.serve();
    let outside = Outside::start();
    let secret = json!({"value": "whsec_this is not base64!"});
    server.api.call("PUT", "/api/v1/secrets/WEBHOOK_SIGNING_SECRET", &secret).is(200);
    let go = json!({"url": format!("{}/x", outside.url), "retries": 0});
    assert_eq!(fails(&server.api, json!({"name": "it", "tasks": {"go": go}})).0, "bad_signing_secret");
    assert_eq!(outside.count(), 0);
}

/// The sum of the samples whose line starts like this.
fn counted(metrics: &str, name: &str) -> f64 {
    let lines = metrics.lines().filter(|line| line.starts_with(name));
    lines.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
}

#[test]
fn commits_steps_and_timers_are_measured() {
    let place = Installation::new();
    let server = place.serve();
    let tasks = json!({"nap": {"sleep": "50ms"}, "then": {"tool": "uuid", "needs": ["nap"]}});
    server.api.define(&json!({"name": "it", "tasks": tasks}));
    assert_eq!(server.api.finished("it", &json!({}))["status"], "completed");
    let metrics = server.api.get("/metrics").is(200).text();
    let count = |name: &str| counted(&metrics, name);
    let always = [
        "stepwell_commit_batch_size_count",
        "stepwell_commit_seconds_count",
        "stepwell_step_seconds_count{kind=\"tool\"}",
        "stepwell_timer_late_seconds_count",
    ];
    for name in always {
        assert!(count(name) >= 1.0, "{name}: {metrics}");
    }
    let on_postgres = stepwell_testing::on_postgres();
    assert_eq!(count("stepwell_database_round_trips_total") >= 1.0, on_postgres, "{metrics}");
}

#[test]
fn live_streams_and_their_delay_are_measured() {
    let place = Installation::new().config("limits: {live_streams_per_organisation: 1}\n");
    let server = place.serve();
    let measured = |name: &str| counted(&server.api.get("/metrics").is(200).text(), name);
    server.api.define(&json!({"name": "it", "tasks": {"a": {"tool": "uuid"}, "b": {"tool": "uuid", "needs": ["a"]}}}));
    server.api.finished("it", &json!({}));
    let begun = Instant::now();
    let key = server.api.new_key(json!({"name": "watcher"}));
    let mut stream = follow(&server, &key);
    assert_eq!(status(&stream.head()), 200);
    assert_eq!(measured("stepwell_live_streams "), 1.0);
    let mut refused = follow(&server, server.api.key.as_deref().unwrap());
    let said = refused.rest();
    assert!(said.starts_with("HTTP/1.1 503") && said.contains("too-many-streams"), "{said}");
    assert!(said.contains("the limit of 1 live streams of one organisation"), "{said}");
    let run = server.api.finished("it", &json!({}));
    stream.until(run["id"].as_str().unwrap());
    stream.until("event: ended");
    let (sum, count) = (measured("stepwell_live_delay_seconds_sum"), measured("stepwell_live_delay_seconds_count"));
    // From the commit to the socket: not since the process started, nor since the run of before.
    assert!(count >= 1.0 && sum > 0.0 && sum / count <= begun.elapsed().as_secs_f64(), "{sum} of {count}");
    assert_eq!(measured("stepwell_live_dropped_total"), 0.0);
    let id = key_id(&server.api, "watcher");
    server.api.delete(&format!("/api/v1/keys/{id}")).is(204);
    stream.rest();
    eventually("no streams", || (measured("stepwell_live_streams ") == 0.0).then_some(()));
    assert_eq!(measured("stepwell_live_dropped_total{why=\"barred\"}"), 1.0);
}

fn follow(server: &Server, key: &str) -> Raw {
    let mut raw = Raw::open(server.address());
    let head = "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
    raw.send(format!("{head}Authorization: Bearer {key}\r\n\r\n")).unwrap();
    raw
}

fn key_id(api: &Api, name: &str) -> String {
    let keys = api.get("/api/v1/keys").is(200).data();
    let found = keys.as_array().unwrap().iter().find(|key| key["name"] == name);
    found.unwrap_or_else(|| panic!("{name} in {keys:#}"))["id"].as_str().unwrap().to_string()
}

#[test]
fn notifications_are_counted_by_their_result() {
    let outside = Outside::start();
    let place = Installation::new();
    let server = place.serve();
    let hook = json!({"name": "hook", "medium": "webhook", "url": format!("{}/hook", outside.url)});
    server.api.post("/api/v1/channels", &hook).is(201);
    server.api.define(&json!({"name": "it", "tasks": {"it": {"tool": "fail", "retries": 0}}}));
    assert_eq!(server.api.finished("it", &json!({}))["status"], "failed");
    outside.called("/hook", 1);
    eventually("a notification that is counted", || {
        let metrics = server.api.get("/metrics").is(200).text();
        (counted(&metrics, "stepwell_notifications_total{result=\"sent\"}") == 1.0).then_some(())
    });
}

#[test]
fn an_organisation_holds_no_more_slots_than_it_may() {
    let outside = Outside::start();
    let place = Installation::new().config("slots: 8\nslots_per_organisation: 2\n");
    let server = place.serve();
    outside.hold("/slow");
    let slow = json!({"url": format!("{}/slow", outside.url)});
    server.api.define(&json!({"name": "it", "tasks": {"slow": slow}}));
    let runs: Vec<String> = (0..4).map(|_| server.api.trigger("it", &json!({}))).collect();
    outside.called("/slow", 2);
    // A step of another organisation starts after these, and would not if they had all slots.
    let other = server.api.new_organisation("other");
    other.define(&json!({"name": "it", "tasks": {"a": {"url": format!("{}/quick", outside.url)}}}));
    assert_eq!(other.finished("it", &json!({}))["status"], "completed");
    assert_eq!(outside.calls("/slow").len(), 2);
    outside.let_go("/slow");
    for run in &runs {
        assert_eq!(server.api.end(run)["status"], "completed");
    }
    assert_eq!(outside.calls("/slow").len(), 4);
}

#[test]
fn channels_connections_and_roles_are_removed_once() {
    let place = Installation::new().variable("STEPWELL_MASTER_KEY", MASTER);
    let server = place.serve();
    let api = &server.api;
    let hook = json!({"name": "hook", "medium": "webhook", "url": "http://127.0.0.1:9/hook"});
    api.post("/api/v1/channels", &hook).is(201);
    api.call("PUT", "/api/v1/connections/shop", &json!({"url": "postgres://db.example.com/shop"})).is(200);
    api.call("PUT", "/api/v1/roles/mailer", &json!({"grants": ["tool:mail.*"]})).is(200);
    api.post("/api/v1/users", &json!({"name": "ann", "roles": ["mailer"]})).is(201);
    api.delete("/api/v1/roles/mailer").refused(409, "not-now");
    api.call("PATCH", "/api/v1/users/ann", &json!({"roles": []})).is(200);
    for path in ["/api/v1/channels/hook", "/api/v1/connections/shop", "/api/v1/roles/mailer"] {
        api.delete(path).is(204);
        api.delete(path).refused(404, "not-found");
    }
}
