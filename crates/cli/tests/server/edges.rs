//! How runs end when something fails: failures, skips, templates, time limits, and invalid definitions.

use crate::harness::{Installation, statuses};
use crate::outside::Outside;
use serde_json::{Value, json};

/// Defines these tasks, runs them once and says how the run and its steps ended.
#[track_caller]
fn check(tasks: Value, expected: &str) -> Value {
    let place = Installation::new();
    let server = place.serve();
    server.api.define(&json!({"name": "it", "tasks": tasks}));
    let run = server.api.finished("it", &json!({"word": "hello"}));
    assert_eq!(format!("{}: {}", run["status"].as_str().unwrap(), statuses(&run)), expected, "{run:#}");
    run
}

#[test]
fn a_failure_that_nothing_handles_fails_the_run_and_skips_what_follows() {
    let outside = Outside::start();
    let url = &outside.url;
    outside.answer("/broken", 400, "{}");
    let tasks = json!({
        "a": {"url": format!("{url}/broken")},
        "b": {"url": format!("{url}/b"), "needs": ["a"]},
        "c": {"url": format!("{url}/c"), "needs": ["b"]},
        "beside": {"url": format!("{url}/beside")},
    });
    let run = check(tasks, "failed: a=failed b=skipped c=skipped beside=success");
    assert_eq!(run["error"]["code"], "http_400", "{run:#}");
    assert_eq!(outside.calls("/b").len() + outside.calls("/c").len(), 0);
}

#[test]
fn a_failure_that_is_handled_further_down_leaves_the_run_completed() {
    let outside = Outside::start();
    let url = &outside.url;
    outside.answer("/broken", 400, "{}");
    let tasks = json!({
        "a": {"url": format!("{url}/broken")},
        "b": {"url": format!("{url}/b"), "needs": ["a"]},
        "rescue": {"url": format!("{url}/rescue"), "needs": ["b"], "if": "tasks.b.status == 'skipped'"},
    });
    check(tasks, "completed: a=failed b=skipped rescue=success");
}

#[test]
fn a_handler_whose_condition_is_false_handles_nothing() {
    let outside = Outside::start();
    let url = &outside.url;
    outside.answer("/broken", 400, "{}");
    let tasks = json!({
        "a": {"url": format!("{url}/broken")},
        "rescue": {"url": format!("{url}/rescue"), "needs": ["a"], "if": "tasks.a.status_code == 404"},
    });
    check(tasks, "failed: a=failed rescue=skipped");
}

#[test]
fn a_skipped_step_reads_as_skipped_without_status_code_or_body() {
    let outside = Outside::start();
    let url = &outside.url;
    let tasks = json!({
        "a": {"url": format!("{url}/a"), "if": "trigger.body.word == 'other'"},
        "no": {"url": format!("{url}/no"), "needs": ["a"], "if": "tasks.a.status_code == 200"},
        "nobody": {"url": format!("{url}/nobody"), "needs": ["a"], "if": "tasks.a.body == null"},
        "seen": {"url": format!("{url}/seen"), "needs": ["a"], "if": "tasks.a.status == 'skipped'"},
    });
    check(tasks, "completed: a=skipped no=skipped nobody=success seen=success");
}

#[test]
fn a_step_waits_for_all_its_needs_before_it_is_skipped_or_run() {
    let outside = Outside::start();
    let url = &outside.url;
    outside.hold("/slow");
    let place = Installation::new();
    let server = place.serve();
    let tasks = json!({
        "slow": {"url": format!("{url}/slow")},
        "not": {"url": format!("{url}/not"), "if": "trigger.body.word == 'other'"},
        "both": {"url": format!("{url}/both"), "needs": ["slow", "not"], "if": "tasks.slow.status == 'success'"},
    });
    server.api.define(&json!({"name": "it", "tasks": tasks}));
    let run = server.api.trigger("it", &json!({"word": "hello"}));
    outside.called("/slow", 1);
    let before = server.api.step(&run, "not", "skipped");
    assert_eq!(before["tasks"]["both"]["status"], "pending");
    outside.let_go("/slow");
    assert_eq!(statuses(&server.api.end(&run)), "slow=success not=skipped both=success");
}

#[test]
fn a_template_that_finds_nothing_fails_its_step_and_sends_nothing() {
    let outside = Outside::start();
    let url = &outside.url;
    outside.answer("/charge", 200, json!({"orderId": 7}));
    let tasks = json!({
        "charge": {"url": format!("{url}/charge")},
        "use": {"url": format!("{url}/use"), "needs": ["charge"], "body": {"id": "{{tasks.charge.body.order_id}}"}},
    });
    let run = check(tasks, "failed: charge=success use=template_error");
    let message = run["tasks"]["use"]["error"]["message"].as_str().unwrap();
    assert!(message.contains("tasks.charge.body.order_id"), "{message}");
    assert_eq!(outside.calls("/use").len(), 0);
}

#[test]
fn a_body_that_is_not_json_is_text_and_has_no_fields() {
    let outside = Outside::start();
    let url = &outside.url;
    outside.answer("/charge", 200, "just text");
    let tasks = json!({
        "charge": {"url": format!("{url}/charge")},
        "whole": {"url": format!("{url}/whole"), "needs": ["charge"], "body": {"text": "{{tasks.charge.body}}"}},
        "part": {"url": format!("{url}/part"), "needs": ["charge"], "body": {"text": "{{tasks.charge.body.field}}"}},
    });
    check(tasks, "failed: charge=success whole=success part=template_error");
    assert_eq!(outside.calls("/whole")[0].json(), json!({"text": "just text"}));
}

#[test]
fn reading_into_a_body_that_was_cut_off_says_so() {
    let outside = Outside::start();
    let url = &outside.url;
    outside.answer("/charge", 200, json!({"amount": 1, "rest": "a".repeat(300 * 1024)}));
    let tasks = json!({
        "charge": {"url": format!("{url}/charge")},
        "use": {"url": format!("{url}/use"), "needs": ["charge"], "body": {"amount": "{{tasks.charge.body.amount}}"}},
    });
    let run = check(tasks, "failed: charge=success use=template_error");
    let expected =
        "Cannot read 'body.amount' because the response from 'charge' exceeded the 256KB limit and was truncated";
    assert_eq!(run["tasks"]["use"]["error"]["message"], expected);
    let kept = run["tasks"]["charge"]["output"].as_str().unwrap().len();
    assert!(kept <= 256 * 1024, "{kept} bytes are kept");
}

#[test]
fn a_wait_without_a_call_fails_the_run_if_nothing_handles_it() {
    let outside = Outside::start();
    let url = &outside.url;
    let tasks = json!({
        "wait": {"wait_for_webhook": {"timeout": "100ms"}},
        "next": {"url": format!("{url}/next"), "needs": ["wait"]},
    });
    check(tasks, "failed: wait=timeout next=skipped");
}

#[test]
fn a_run_that_takes_too_long_ends_as_a_timeout() {
    let place = Installation::new();
    let server = place.serve();
    let tasks = json!({"wait": {"sleep": "1h"}, "next": {"sleep": 0, "needs": ["wait"]}});
    server.api.define(&json!({"name": "it", "max_duration": "300ms", "tasks": tasks}));
    let run = server.api.finished("it", &json!({}));
    assert_eq!(run["status"], "timeout", "{run:#}");
    assert_eq!(statuses(&run), "wait=cancelled next=cancelled");
}

#[test]
fn cancelling_stops_the_request_under_way() {
    let outside = Outside::start();
    outside.hold("/slow");
    let place = Installation::new();
    let server = place.serve();
    let tasks = json!({
        "slow": {"url": format!("{}/slow", outside.url)},
        "next": {"url": format!("{}/next", outside.url), "needs": ["slow"]},
    });
    server.api.define(&json!({"name": "it", "tasks": tasks}));
    let run = server.api.trigger("it", &json!({}));
    outside.called("/slow", 1);
    server.api.post(&format!("/api/v1/runs/{run}/cancel"), &json!({"reason": "enough"})).is(200);
    outside.let_go("/slow");
    let run = server.api.end(&run);
    assert_eq!(
        (run["status"].as_str().unwrap(), statuses(&run).as_str()),
        ("cancelled", "slow=cancelled next=cancelled")
    );
    assert_eq!(outside.calls("/next").len(), 0);
}

#[test]
fn a_need_that_does_not_exist_is_refused_with_the_near_name() {
    let place = Installation::new();
    let server = place.serve();
    let tasks =
        json!({"charge": {"url": "http://127.0.0.1:9/"}, "send": {"url": "http://127.0.0.1:9/", "needs": ["chrage"]}});
    let problem = server.api.post("/api/v1/workflows", &json!({"name": "it", "tasks": tasks}));
    let problem = problem.refused(422, "invalid-definition");
    assert_eq!(problem["errors"][0]["path"], "tasks.send.needs[0]");
    let said = problem["errors"][0].to_string();
    assert!(said.contains("chrage") && said.contains("did you mean \\\"charge\\\"?"), "{said}");
    server.api.get("/api/v1/workflows/it").refused(404, "not-found");
}

#[test]
fn tasks_that_need_each_other_are_refused() {
    let place = Installation::new();
    let server = place.serve();
    let task = |needs: &str| json!({"url": "http://127.0.0.1:9/", "needs": [needs]});
    let tasks = json!({"a": task("c"), "b": task("a"), "c": task("b")});
    let problem = server.api.post("/api/v1/workflows", &json!({"name": "it", "tasks": tasks}));
    let problem = problem.refused(422, "invalid-definition");
    assert_eq!(problem["errors"][0]["code"], "cycle", "{problem:#}");
}

#[test]
fn runs_at_the_same_time_do_not_mix() {
    let outside = Outside::start();
    let place = Installation::new();
    let server = place.serve();
    let tasks = json!({
        "first": {"url": format!("{}/first", outside.url), "body": {"n": "{{trigger.body.n}}"}},
        "wait": {"needs": ["first"], "wait_for_webhook": {"timeout": "1h"}},
        "last": {"needs": ["wait"], "url": format!("{}/last", outside.url),
            "body": {"n": "{{trigger.body.n}}", "heard": "{{tasks.wait.body.n}}"}},
    });
    server.api.define(&json!({"name": "it", "tasks": tasks, "output": {"heard": "{{tasks.wait.body.n}}"}}));
    let runs: Vec<String> = (0..20).map(|n| server.api.trigger("it", &json!({"n": n}))).collect();
    // Answered in another order than they were started in.
    for (n, run) in runs.iter().enumerate().rev() {
        server.api.step(run, "wait", "waiting");
        server.api.post(&format!("/api/v1/runs/{run}/steps/wait/deliver"), &json!({"n": n})).is(200);
    }
    for (n, run) in runs.iter().enumerate() {
        assert_eq!(server.api.end(run)["output"], json!({"heard": n}));
    }
    let last = outside.calls("/last");
    assert_eq!(last.len(), 20);
    assert!(last.iter().all(|call| call.json()["n"] == call.json()["heard"]), "{last:?}");
}

#[test]
fn every_attempt_of_a_step_shows_the_same_key_and_other_steps_another() {
    let outside = Outside::start();
    outside.answer("/broken", 503, "{}");
    let retry = json!({"attempts": 3, "backoff": "fixed", "delay": "10ms", "jitter": false});
    let tasks = json!({
        "a": {"url": format!("{}/broken", outside.url), "retry": retry},
        "b": {"url": format!("{}/b", outside.url)},
    });
    let run = check(tasks, "failed: a=failed b=success");
    assert_eq!(run["tasks"]["a"]["attempt"], 3);
    let calls = outside.calls("/broken");
    assert_eq!(calls.len(), 3);
    let keys: Vec<_> = calls.iter().map(|call| call.header("idempotency-key").unwrap()).collect();
    assert!(keys.iter().all(|key| *key == keys[0] && !key.is_empty()), "{keys:?}");
    assert_ne!(outside.calls("/b")[0].header("idempotency-key").unwrap(), keys[0]);
}

#[test]
fn a_client_error_is_tried_again_only_if_the_step_says_so() {
    let outside = Outside::start();
    outside.answer("/default", 404, "{}");
    outside.answer("/written", 404, "{}");
    let retry = json!({"attempts": 3, "backoff": "fixed", "delay": "10ms", "jitter": false});
    let tasks = json!({
        "a": {"url": format!("{}/default", outside.url)},
        "b": {"url": format!("{}/written", outside.url), "retry": retry},
    });
    let run = check(tasks, "failed: a=failed b=failed");
    assert_eq!((&run["tasks"]["a"]["attempt"], outside.calls("/default").len()), (&json!(1), 1));
    assert_eq!((&run["tasks"]["b"]["attempt"], outside.calls("/written").len()), (&json!(3), 3));
}
