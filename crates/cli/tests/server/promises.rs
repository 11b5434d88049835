//! Promises of the seed documents (see `docs/conformance/`) that no other suite proves.

use crate::agent::Agent;
use crate::harness::{Api, Installation, Server, statuses};
use crate::outside::Outside;
use serde_json::{Map, Value, json};

/// A new organisation on a plan.
fn on_plan(server: &Server, plan: &str) -> Api {
    let made = server.api.post("/api/v1/organisations", &json!({"name": plan, "plan": plan})).is(201).data();
    server.with_key(made["admin_key"].as_str().unwrap())
}

fn naps(name: &str, count: usize, length: &str) -> Value {
    let tasks: Map<String, Value> = (0..count).map(|n| (format!("nap{n}"), json!({"sleep": length}))).collect();
    json!({"name": name, "tasks": tasks})
}

#[track_caller]
fn beyond_the_plan(api: &Api, path: &str, body: &Value) {
    let answer = api.post(path, body);
    assert_eq!(answer.json()["code"], "plan-limit", "{}", answer.text());
}

#[test]
fn the_free_and_pro_plans_have_their_published_limits() {
    let place = Installation::new();
    let server = place.serve();
    let (free, pro) = (on_plan(&server, "free"), on_plan(&server, "pro"));
    let every_day =
        |name: &str| json!({"name": name, "trigger": {"cron": "0 8 * * *"}, "tasks": {"nap": {"sleep": 0}}});

    free.define(&naps("wide", 5, "1h"));
    beyond_the_plan(&free, "/api/v1/workflows", &naps("wider", 6, "0s"));
    beyond_the_plan(&free, "/api/v1/workflows", &every_day("daily"));
    for name in ["second", "third"] {
        free.define(&naps(name, 1, "0s"));
    }
    beyond_the_plan(&free, "/api/v1/workflows", &naps("fourth", 1, "0s"));
    free.trigger("wide", &json!({}));
    beyond_the_plan(&free, "/api/v1/workflows/second/trigger", &json!({}));

    pro.define(&naps("wide", 20, "1h"));
    beyond_the_plan(&pro, "/api/v1/workflows", &naps("wider", 21, "0s"));
    pro.define(&every_day("daily"));
    (0..8).for_each(|n| drop(pro.define(&naps(&format!("more-{n}"), 1, "0s"))));
    (0..10).for_each(|_| drop(pro.trigger("wide", &json!({}))));
    beyond_the_plan(&pro, "/api/v1/workflows/wide/trigger", &json!({}));

    for (api, executions) in [(&free, 10_000), (&pro, 1_000_000)] {
        let limits = api.get("/api/v1/usage").is(200).data()["organisation"]["limits"].clone();
        assert_eq!(limits["executions_per_month"], executions, "{limits:#}");
    }
}

#[test]
fn every_attempt_is_kept_with_what_was_sent_and_what_came_back() {
    let place = Installation::new();
    let server = place.serve();
    let outside = Outside::start();
    outside.answer("/charge", 503, json!({"busy": true}));
    let retry = json!({"attempts": 2, "backoff": "fixed", "delay": "10ms"});
    server.api.define(&json!({"name": "it", "tasks": {
        "charge": {"url": format!("{}/charge", outside.url), "method": "PUT", "headers": {"x-order": "{{input.id}}"},
            "body": {"id": "{{input.id}}"}, "retry": retry},
        "after": {"needs": ["charge"], "if": "tasks.charge.status_code >= 500", "tool": "echo", "args": {
            "code": "{{tasks.charge.status_code}}", "status": "{{tasks.charge.status}}",
            "busy": "{{tasks.charge.body.busy}}", "kind": "{{tasks.charge.headers.content-type}}"}},
    }}));
    let run = server.api.finished("it", &json!({"id": 7}));
    assert_eq!(statuses(&run), "charge=failed after=success", "{run:#}");
    let charge = &run["tasks"]["charge"];
    let sent = &charge["input"];
    assert_eq!((&sent["method"], &sent["body"]), (&json!("PUT"), &json!({"id": 7})), "{charge:#}");
    assert_eq!(sent["url"], format!("{}/charge", outside.url));
    assert_eq!((&charge["status_code"], &charge["output"]), (&json!(503), &json!({"busy": true})), "{charge:#}");
    let attempts = charge["attempts"].as_array().unwrap();
    assert_eq!(attempts.len(), 2);
    for (n, attempt) in attempts.iter().enumerate() {
        assert_eq!((&attempt["attempt"], &attempt["status"]), (&json!(n + 1), &json!("failed")), "{attempt:#}");
        assert_eq!((&attempt["output"], &attempt["error"]["code"]), (&json!({"busy": true}), &json!("http_503")));
        assert!(attempt["started_at"].is_string() && attempt["finished_at"].is_string(), "{attempt:#}");
    }
    let read = &run["tasks"]["after"]["output"];
    assert_eq!((&read["code"], &read["status"], &read["busy"]), (&json!(503), &json!("failed"), &json!(true)));
    assert!(read["kind"].as_str().unwrap().starts_with("application/json"), "{read:#}");
}

#[test]
fn a_response_over_256_kb_is_truncated_and_marked_and_one_below_is_whole() {
    let place = Installation::new();
    let server = place.serve();
    let outside = Outside::start();
    let text = |bytes: usize| json!({"text": "a".repeat(bytes)});
    outside.answer("/large", 200, text(256 * 1024));
    outside.answer("/small", 200, text(255 * 1024));
    server.api.define(&json!({"name": "it", "tasks": {
        "large": {"url": format!("{}/large", outside.url)}, "small": {"url": format!("{}/small", outside.url)},
    }}));
    let run = server.api.finished("it", &json!({}));
    assert_eq!(run["status"], "completed", "what nothing reads does no harm");
    let (large, small) = (&run["tasks"]["large"], &run["tasks"]["small"]);
    assert_eq!((&large["is_truncated"], large["output"].is_string()), (&json!(true), true));
    assert_eq!((small.get("is_truncated"), &small["output"]), (None, &text(255 * 1024)));
}

const GATED: &str = "name: gated
flow:
  start: {name: read, tool: echo, args: {id: '{{input.id}}'}, next: confirm}
  confirm: {notify_user: admin, timeout_s: 3600, next: write}
  write: {tool: fail, args: {message: no luck}, retries: 0, done: true}
";

#[test]
fn the_event_log_names_every_start_and_end_and_every_request_and_answer_of_a_gate() {
    let place = Installation::new();
    let server = place.serve();
    server.api.send("POST", "/api/v1/workflows", &[], Some(GATED.into())).is(201);
    let run = server.api.trigger("gated", &json!({"id": 1}));
    let paused = server.api.step(&run, "confirm", "waiting");
    assert_eq!((&paused["status"], &paused["waiting_for"][0]["step"]), (&json!("paused"), &json!("confirm")));
    assert!(paused["waiting_for"][0]["until"].is_string(), "the gate has a deadline: {paused:#}");
    server.api.post(&format!("/api/v1/runs/{run}/steps/confirm/approve"), &json!({"comment": "fine"})).is(200);
    assert_eq!(server.api.end(&run)["status"], "failed");
    let agent = Agent::plain(&server.with_key(&place.agent_key()));
    let rest = server.api.get(&format!("/api/v1/runs/{run}/events?limit=1000")).is(200).data();
    let mcp = agent.done("workflow_events", json!({"run_id": run}))["events"].clone();
    for log in [rest, mcp] {
        let log = log.as_array().unwrap();
        let has = |kind: &str, step: &str| log.iter().any(|event| event["type"] == kind && event["step"] == step);
        assert_eq!((&log[0]["type"], &log[0]["by"]), (&json!("created"), &json!("admin")), "{log:#?}");
        for step in ["read", "confirm", "write"] {
            assert!(has("entered", step) && has("finished", step), "{step}: {log:#?}");
        }
        let ended = log.last().unwrap();
        assert_eq!((&ended["type"], &ended["status"]), (&json!("ended"), &json!("failed")), "{ended:#}");
    }
}

#[test]
fn runs_are_listed_by_status_denied_and_cancelled_over_mcp() {
    let place = Installation::new();
    let server = place.serve();
    server.api.send("POST", "/api/v1/workflows", &[], Some(GATED.into())).is(201);
    let desk = server.api.new_user("desk", &["workflow.read", "workflow.run", "workflow.approve", "tool:*"]);
    let agent = Agent::plain(&desk);
    let start = || {
        let run = agent.done("workflow_start", json!({"workflow": "gated", "input": {"id": 1}, "wait_seconds": 20}));
        assert_eq!(run["status"], "paused", "{run:#}");
        run["run_id"].as_str().unwrap().to_string()
    };
    let (denied, cancelled) = (start(), start());
    let listed = |status: &str| agent.done("workflow_list_runs", json!({"status": [status]}))["runs"].clone();
    assert_eq!(listed("paused").as_array().unwrap().len(), 2);
    server.api.define(&json!({"name": "open", "flow": {"start": {"tool": null, "done": true}}}));
    agent.done("workflow_deny", json!({"run_id": denied, "step_name": "confirm", "comment": "no"}));
    let end = server.api.end(&denied);
    assert_eq!(
        (&end["status"], &end["tasks"]["write"]["status"]),
        (&json!("cancelled"), &json!("cancelled")),
        "{end:#}"
    );
    agent.done("workflow_cancel", json!({"run_id": cancelled, "reason": "enough"}));
    assert_eq!(server.api.end(&cancelled)["status"], "cancelled");
    assert_eq!((listed("paused"), listed("cancelled").as_array().unwrap().len()), (json!([]), 2));
    let again = agent.refused("workflow_cancel", json!({"run_id": cancelled}));
    assert!(again.contains("run-finished"), "{again}");
}

#[test]
fn a_scheduled_run_has_an_empty_input_and_belongs_to_the_author() {
    let place = Installation::new();
    let server = place.serve();
    let ann = server.api.new_user("ann", &["workflow.define", "workflow.run", "workflow.read"]);
    ann.define(&json!({"name": "tick", "trigger": {"cron": "* * * * * *"}, "tasks": {"nap": {"sleep": 0}},
        "output": {"body": "{{trigger.body}}"}}));
    let run = crate::harness::eventually("a tick", || {
        let runs = server.api.get("/api/v1/workflows/tick/runs").is(200).data();
        runs[0]["id"].as_str().map(str::to_string)
    });
    let run = server.api.end(&run);
    assert_eq!((&run["output"], &run["created_by"]), (&json!({"body": {}}), &json!("ann")), "{run:#}");
}

#[test]
fn a_name_is_taken_until_its_workflow_is_deleted() {
    let place = Installation::new();
    let server = place.serve();
    let first = server.api.define(&naps("it", 1, "0s"));
    assert_eq!(server.api.post("/api/v1/workflows", &naps("it", 2, "0s")).json()["code"], "exists");
    server.api.delete(&format!("/api/v1/workflows/{first}")).is(204);
    let second = server.api.define(&naps("it", 2, "0s"));
    assert_ne!(first, second);
    assert_eq!(server.api.get("/api/v1/workflows/it").is(200).data()["task_count"], 2);
}

#[test]
fn the_four_printed_conditions_hold_as_they_say() {
    let place = Installation::new();
    let server = place.serve();
    let outside = Outside::start();
    let dependent = |condition: &str| json!({"needs": ["charge"], "if": condition, "sleep": 0});
    server.api.define(&json!({"name": "it", "tasks": {
        "charge": {"url": format!("{}/charge", outside.url)},
        "ok": dependent("tasks.charge.status_code == 200"),
        "other": dependent("tasks.charge.status_code != 200"),
        "approved": dependent("tasks.charge.body.approved == true"),
        "bad": dependent("tasks.charge.status_code >= 400"),
    }}));
    for (status, approved, expected) in [
        (200, json!(true), "charge=success ok=success other=skipped approved=success bad=skipped"),
        (200, json!("true"), "charge=success ok=success other=skipped approved=skipped bad=skipped"),
        (402, json!(true), "charge=failed ok=skipped other=success approved=success bad=success"),
    ] {
        outside.answer("/charge", status, json!({"approved": approved}));
        assert_eq!(statuses(&server.api.finished("it", &json!({}))), expected);
    }
}
