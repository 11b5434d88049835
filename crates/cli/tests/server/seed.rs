//! The published examples of the tasks dialect, unchanged, against a server.

use crate::harness::{Installation, Server, statuses};
use crate::outside::Outside;
use serde_json::{Value, json};

const BASIC: &str = r#"{
  "name": "order-processing",
  "trigger": "api",
  "tasks": {
    "charge": {
      "url": "https://myapp.com/api/charge",
      "method": "POST",
      "body": { "order_id": "{{trigger.body.order_id}}" }
    },
    "send-receipt": {
      "needs": ["charge"],
      "if": "tasks.charge.status_code == 200",
      "url": "https://myapp.com/api/send-receipt",
      "method": "POST",
      "body": {
        "order_id": "{{trigger.body.order_id}}",
        "amount": "{{tasks.charge.body.amount}}"
      }
    },
    "notify-warehouse": {
      "needs": ["charge"],
      "if": "tasks.charge.status_code == 200",
      "url": "https://myapp.com/api/ship",
      "method": "POST"
    },
    "handle-failure": {
      "needs": ["charge"],
      "if": "tasks.charge.status_code != 200",
      "url": "https://myapp.com/api/payment-failed",
      "method": "POST"
    }
  }
}"#;

const SLEEP: &str = r#"{
  "name": "trial-expiry",
  "trigger": "api",
  "tasks": {
    "start-trial": {
      "url": "https://myapp.com/api/activate-trial",
      "method": "POST",
      "body": { "user_id": "{{trigger.body.user_id}}" }
    },
    "wait-13-days": {
      "needs": ["start-trial"],
      "sleep": "13d"
    },
    "send-reminder": {
      "needs": ["wait-13-days"],
      "url": "https://myapp.com/api/send-email",
      "method": "POST",
      "body": { "template": "trial-ending-soon", "user_id": "{{trigger.body.user_id}}" }
    },
    "wait-1-day": {
      "needs": ["send-reminder"],
      "sleep": "1d"
    },
    "expire-trial": {
      "needs": ["wait-1-day"],
      "url": "https://myapp.com/api/expire-trial",
      "method": "POST",
      "body": { "user_id": "{{trigger.body.user_id}}" }
    }
  }
}"#;

const CHECKOUT: &str = r#"{
  "name": "checkout-flow",
  "trigger": "api",
  "tasks": {
    "create-checkout": {
      "url": "https://myapp.com/api/create-checkout",
      "method": "POST",
      "body": {
        "amount": "{{trigger.body.amount}}",
        "callback_url": "{{wait.payment-result.url}}"
      }
    },
    "payment-result": {
      "needs": ["create-checkout"],
      "wait_for_webhook": { "timeout": "1h" }
    },
    "fulfill-order": {
      "needs": ["payment-result"],
      "if": "tasks.payment-result.body.status == 'paid'",
      "url": "https://myapp.com/api/fulfill",
      "method": "POST",
      "body": {
        "order_id": "{{trigger.body.order_id}}",
        "payment_id": "{{tasks.payment-result.body.payment_id}}"
      }
    },
    "handle-timeout": {
      "needs": ["payment-result"],
      "if": "tasks.payment-result.status == 'timeout'",
      "url": "https://myapp.com/api/checkout-expired",
      "method": "POST"
    }
  }
}"#;

const CREATE: &str = r#"{
  "name": "order-processing",
  "trigger": "api",
  "tasks": {
    "charge": {
      "url": "https://myapp.com/api/charge",
      "method": "POST",
      "headers": { "Authorization": "Bearer {{trigger.body.token}}" },
      "body": { "order_id": "{{trigger.body.order_id}}" },
      "retries": 3,
      "timeout": 30000
    },
    "send-receipt": {
      "needs": ["charge"],
      "if": "tasks.charge.status_code == 200",
      "url": "https://myapp.com/api/send-receipt",
      "method": "POST",
      "body": { "email": "{{trigger.body.email}}" }
    }
  }
}"#;

/// An example with the one change that lets it reach the test: where the application is.
fn example(text: &str, outside: &Outside) -> Value {
    serde_json::from_str(&text.replace("https://myapp.com", &outside.url)).unwrap()
}

struct Scene {
    server: Server,
    outside: Outside,
    _place: Installation,
}

fn scene() -> Scene {
    let place = Installation::new();
    Scene { server: place.serve(), outside: Outside::start(), _place: place }
}

#[test]
fn parallel_tasks_run_when_their_conditions_hold() {
    let Scene { server, outside, .. } = &scene();
    outside.answer("/api/charge", 200, json!({"amount": 4200}));
    server.api.define(&example(BASIC, outside));
    let run = server.api.trigger("order-processing", &json!({"order_id": 123}));
    let run = server.api.end(&run);
    assert_eq!(run["status"], "completed");
    assert_eq!(statuses(&run), "charge=success send-receipt=success notify-warehouse=success handle-failure=skipped");
    assert_eq!(outside.calls("/api/charge")[0].json(), json!({"order_id": 123}));
    assert_eq!(outside.calls("/api/send-receipt")[0].json(), json!({"order_id": 123, "amount": 4200}));
    assert_eq!(outside.calls("/api/ship")[0].method, "POST");
    assert_eq!(outside.calls("/api/payment-failed").len(), 0);
}

#[test]
fn a_charge_that_is_refused_takes_the_other_way() {
    let Scene { server, outside, .. } = &scene();
    outside.answer("/api/charge", 402, json!({"reason": "no money"}));
    server.api.define(&example(BASIC, outside));
    let run = server.api.finished("order-processing", &json!({"order_id": 123}));
    assert_eq!(run["status"], "completed");
    assert_eq!(statuses(&run), "charge=failed send-receipt=skipped notify-warehouse=skipped handle-failure=success");
    assert_eq!(run["tasks"]["charge"]["status_code"], 402);
    assert_eq!(outside.calls("/api/payment-failed").len(), 1);
}

#[test]
fn sleeps_of_days_lie_between_the_calls_of_a_trial() {
    let Scene { server, outside, .. } = &scene();
    server.api.define(&example(SLEEP, outside));
    let run = server.api.trigger("trial-expiry", &json!({"user_id": "u1"}));
    let asleep = server.api.step(&run, "wait-13-days", "sleeping");
    assert_eq!(asleep["status"], "running");
    assert_eq!(asleep["waiting_for"][0]["for"], "sleep");
    assert_eq!(asleep["waiting_for"][0]["step"], "wait-13-days");
    assert_eq!(outside.calls("/api/activate-trial")[0].json(), json!({"user_id": "u1"}));
    assert_eq!(outside.count(), 1);
    server.api.ready(&run, "wait-13-days");
    server.api.step(&run, "wait-1-day", "sleeping");
    assert_eq!(outside.calls("/api/send-email")[0].json(), json!({"template": "trial-ending-soon", "user_id": "u1"}));
    assert_eq!(outside.calls("/api/expire-trial").len(), 0);
    server.api.ready(&run, "wait-1-day");
    let run = server.api.end(&run);
    assert_eq!(run["status"], "completed");
    assert_eq!(outside.calls("/api/expire-trial")[0].json(), json!({"user_id": "u1"}));
}

#[test]
fn a_payment_that_calls_back_is_fulfilled() {
    let Scene { server, outside, .. } = &scene();
    server.api.define(&example(CHECKOUT, outside));
    let run = server.api.trigger("checkout-flow", &json!({"amount": 5, "order_id": 9}));
    let waiting = server.api.step(&run, "payment-result", "waiting");
    assert_eq!(waiting["waiting_for"][0]["for"], "webhook");
    let sent = outside.calls("/api/create-checkout")[0].json();
    assert_eq!(sent["amount"], 5);
    let callback = sent["callback_url"].as_str().unwrap().strip_prefix(&server.url).unwrap();
    assert!(callback.starts_with("/wh/"), "{callback}");
    let paid = json!({"status": "paid", "payment_id": "pay_7"});
    server.without_key().post(callback, &paid).is(200);
    let run = server.api.end(&run);
    assert_eq!(run["status"], "completed");
    assert_eq!(run["tasks"]["payment-result"]["output"], paid);
    assert_eq!(run["tasks"]["handle-timeout"]["status"], "skipped");
    assert_eq!(outside.calls("/api/fulfill")[0].json(), json!({"order_id": 9, "payment_id": "pay_7"}));
}

#[test]
fn a_payment_that_never_calls_back_has_its_own_way() {
    let Scene { server, outside, .. } = &scene();
    // No one can wait an hour here.
    let soon = CHECKOUT.replace("\"timeout\": \"1h\"", "\"timeout\": \"300ms\"");
    server.api.define(&example(&soon, outside));
    let run = server.api.finished("checkout-flow", &json!({"amount": 5, "order_id": 9}));
    assert_eq!(run["status"], "completed");
    assert_eq!(
        statuses(&run),
        "create-checkout=success payment-result=timeout fulfill-order=skipped handle-timeout=success"
    );
    assert_eq!(outside.calls("/api/checkout-expired").len(), 1);
}

#[test]
fn each_call_of_the_api_answers_as_published() {
    let Scene { server, outside, .. } = &scene();
    let api = &server.api;
    // Create.
    let made = api.post("/api/v1/workflows", &example(CREATE, outside)).is(201).data();
    assert!(made["id"].as_str().unwrap().starts_with("wf_"), "{made}");
    for (field, value) in [
        ("name", json!("order-processing")),
        ("trigger", json!("api")),
        ("task_count", json!(2)),
        ("enabled", json!(true)),
    ] {
        assert_eq!(made[field], value, "{made}");
    }
    instant(&made["inserted_at"]);
    let id = made["id"].as_str().unwrap();
    // Trigger, by id.
    outside.answer("/api/charge", 200, json!({"amount": 1}));
    let input = json!({"order_id": 123, "email": "alice@example.com", "token": "sk_live_xxx"});
    let started = api.post(&format!("/api/v1/workflows/{id}/trigger"), &input).is(201).data();
    assert_eq!(started["workflow_id"], *id);
    assert_eq!(started["status"], "running");
    instant(&started["started_at"]);
    let run = started["run_id"].as_str().unwrap();
    assert!(run.starts_with("run_"), "{run}");
    api.end(run);
    let charge = &outside.calls("/api/charge")[0];
    assert_eq!(charge.header("authorization"), Some("Bearer sk_live_xxx"));
    assert_eq!(charge.json(), json!({"order_id": 123}));
    assert_eq!(outside.calls("/api/send-receipt")[0].json(), json!({"email": "alice@example.com"}));
    // Get and list workflows.
    let got = api.get(&format!("/api/v1/workflows/{id}")).is(200).data();
    assert_eq!(got["tasks"], example(CREATE, outside)["tasks"]);
    assert_eq!(api.get("/api/v1/workflows/order-processing").is(200).data()["id"], *id);
    let all = api.get("/api/v1/workflows").is(200).data();
    assert_eq!(all[0]["id"], *id);
    assert_eq!(all.as_array().unwrap().len(), 1);
    // List runs and get one.
    let runs = api.get(&format!("/api/v1/workflows/{id}/runs")).is(200).data();
    assert_eq!((&runs[0]["id"], &runs[0]["status"]), (&json!(run), &json!("completed")));
    let got = api.get(&format!("/api/v1/workflows/{id}/runs/{run}")).is(200).data();
    assert_eq!((&got["id"], &got["status"]), (&json!(run), &json!("completed")));
    instant(&got["started_at"]);
    instant(&got["finished_at"]);
    for task in ["charge", "send-receipt"] {
        let task = &got["tasks"][task];
        assert_eq!((&task["status"], &task["status_code"]), (&json!("success"), &json!(200)));
        assert!(task["duration_ms"].is_u64(), "{task}");
        instant(&task["started_at"]);
        instant(&task["finished_at"]);
    }
    // Update replaces the tasks.
    let mut newer = example(CREATE, outside);
    newer["tasks"].as_object_mut().unwrap().remove("send-receipt");
    let changed = api.call("PUT", &format!("/api/v1/workflows/{id}"), &newer).is(200).data();
    assert_eq!((&changed["id"], &changed["task_count"]), (&json!(id), &json!(1)));
    assert_eq!(api.get(&format!("/api/v1/workflows/{id}")).is(200).data()["tasks"], newer["tasks"]);
    assert_eq!(api.run(run)["tasks"].as_object().unwrap().len(), 2);
    // Delete.
    api.delete(&format!("/api/v1/workflows/{id}")).is(204);
    api.get("/api/v1/workflows/order-processing").refused(404, "not-found");
    // Its id still leads to it, so that it can be restored.
    assert!(api.get(&format!("/api/v1/workflows/{id}")).is(200).data()["deleted_at"].is_string());
    api.post(&format!("/api/v1/workflows/{id}/trigger"), &input).refused(404, "not-found");
}

#[track_caller]
fn instant(value: &Value) {
    let text = value.as_str().unwrap_or_default();
    assert!(text.len() >= 20 && text.ends_with('Z') && &text[10..11] == "T", "{value} is not an instant");
}

#[test]
fn a_new_version_or_a_deletion_leaves_runs_under_way_alone() {
    let Scene { server, outside, .. } = &scene();
    let api = &server.api;
    let id = api.define(&example(SLEEP, outside));
    let run = api.trigger("trial-expiry", &json!({"user_id": "u1"}));
    api.step(&run, "wait-13-days", "sleeping");
    let other = json!({"name": "trial-expiry", "tasks": {"only": {"url": format!("{}/only", outside.url)}}});
    let newer = api.call("PUT", &format!("/api/v1/workflows/{id}"), &other).is(200).data();
    assert_eq!(newer["version"], 2);
    api.delete(&format!("/api/v1/workflows/{id}")).is(204);
    api.ready(&run, "wait-13-days");
    api.step(&run, "wait-1-day", "sleeping");
    api.ready(&run, "wait-1-day");
    let run = api.end(&run);
    assert_eq!((&run["status"], &run["workflow_version"]), (&json!("completed"), &json!(1)));
    assert_eq!(outside.calls("/api/expire-trial").len(), 1);
    assert_eq!(outside.calls("/only").len(), 0);
}

#[test]
fn a_cancelled_run_starts_nothing_more() {
    let Scene { server, outside, .. } = &scene();
    let api = &server.api;
    let id = api.define(&example(SLEEP, outside));
    let run = api.trigger("trial-expiry", &json!({"user_id": "u1"}));
    api.step(&run, "wait-13-days", "sleeping");
    let cancel = format!("/api/v1/workflows/{id}/runs/{run}/cancel");
    assert_eq!(api.send("POST", &cancel, &[], None).is(200).data()["status"], "cancelled");
    let run = api.run(&run);
    assert_eq!(
        statuses(&run),
        "start-trial=success wait-13-days=cancelled send-reminder=cancelled wait-1-day=cancelled expire-trial=cancelled"
    );
    // The second caller is told how it ended.
    let late = api.send("POST", &cancel, &[], None).refused(409, "run-finished");
    assert_eq!(late["status_now"], "cancelled");
    assert_eq!(outside.count(), 1);
}
