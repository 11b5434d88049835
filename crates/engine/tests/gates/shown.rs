//! What an approval shows is what it covers: large calls, secrets that change, silence, and people who are not reached.

use crate::harness::{Harness, hold, within};
use serde_json::{Value, json};
use stepwell_engine::commands::NewSecret;

fn gated(args: Value) -> Value {
    json!({"gate": {"approval": {"message": "go?"}}, "pay": {"needs": ["gate"], "tool": "ok", "args": args}})
}

#[tokio::test(start_paused = true)]
async fn a_call_too_large_for_the_gate_is_not_covered_and_is_asked_whole() {
    let harness = Harness::with("w", gated(json!({"text": "{{input.text}}"}))).await;
    harness.policy("money", hold("tool:ok")).await;
    let text = "x".repeat(300_000);
    let run = harness.start_as(&harness.admin, "w", json!({"text": text})).await;
    let call = harness.asked(&run, "gate").await.asks["calls"][0].clone();
    assert_eq!((&call["tool"], &call["too_large_to_show"]), (&json!("ok"), &json!(true)), "{call:#}");
    harness.approve(&harness.admin, &run, "gate").await;
    let held = harness.asked(&run, "pay").await;
    assert_eq!((harness.called().len(), &held.asks["calls"][0]["input"]["args"]["text"]), (0, &json!(text)));
    harness.approve(&harness.admin, &run, "pay").await;
    assert_eq!(harness.ended(&run).await.status, "completed");
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_changes_after_the_question_is_asked_about_again() {
    let harness = Harness::with("w", gated(json!({"account": "{{secrets.ACCOUNT}}"}))).await;
    harness.policy("money", hold("tool:ok")).await;
    let set = async |value: &str| {
        let new = NewSecret { value: Some(value.into()), hosts: None };
        harness.engine.secrets(&harness.admin).put("ACCOUNT", new).await.unwrap();
        harness.pass(1).await;
    };
    set("first-account").await;
    let run = harness.start("w").await;
    harness.approve(&harness.admin, &run, "gate").await;
    assert_eq!(harness.ended(&run).await.status, "completed");

    let run = harness.start("w").await;
    harness.asked(&run, "gate").await;
    harness.pass(1).await;
    set("second-account").await;
    harness.approve(&harness.admin, &run, "gate").await;
    // The held call is asked about anew, and again if the secret changes once more.
    harness.asked(&run, "pay").await;
    harness.pass(1).await;
    set("third-account").await;
    harness.approve(&harness.admin, &run, "pay").await;
    harness.pass(1).await;
    harness.approve(&harness.admin, &run, "pay").await;
    assert_eq!(harness.ended(&run).await.status, "completed");
    assert_eq!(harness.called().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_silence_means_is_in_every_request() {
    let gate = |more: Value| {
        let mut approval = json!({"message": "go?"});
        approval.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"gate": {"approval": approval}})
    };
    let harness = Harness::with("deny", gate(json!({"timeout": "1h"}))).await;
    harness.define("approve", gate(json!({"timeout": "1h", "on_timeout": "approve"}))).await;
    harness.define("wait", gate(json!({}))).await;
    for (workflow, expected) in [("deny", Some("deny")), ("approve", Some("approve")), ("wait", None)] {
        let run = harness.start(workflow).await;
        let asked = harness.asked(&run, "gate").await;
        assert_eq!((asked.on_timeout, asked.until.is_some()), (expected, expected.is_some()), "{workflow}");
    }
    harness.define("held", json!({"pay": {"tool": "ok", "args": {}}})).await;
    harness.policy("money", within(hold("tool:ok"), 60)).await;
    let run = harness.start("held").await;
    assert_eq!(harness.asked(&run, "pay").await.on_timeout, Some("deny"));
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_reaches_no_one_is_a_warning_on_the_run() {
    let tasks = json!({"gate": {"approval": {"message": "go?", "approvers": ["ann", "role:billing"]}}});
    let harness = Harness::with("w", tasks).await;
    let run = harness.start("w").await;
    let asked = harness.asked(&run, "gate").await;
    assert_eq!(asked.warnings.len(), 3, "{:?}", asked.warnings);
    assert!(asked.warnings[0].contains("no enabled user \"ann\"") && asked.warnings[1].contains("role:billing"));
    let view = harness.view(&run).await;
    assert!(view.warnings.iter().all(|warning| warning.step == "gate") && view.warnings.len() == 3, "{view:?}");

    harness.user("ann", &[], &["workflow.read"]).await;
    harness.engine.roles(&harness.admin).put("billing", vec![]).await.unwrap();
    harness.user("bob", &["billing"], &[]).await;
    let asked = harness.asked(&run, "gate").await;
    assert_eq!(asked.warnings, ["no notification channel reaches ann, role:billing"]);
    // A gate that names no one is open to all who may approve.
    harness.define("open", json!({"gate": {"approval": {"message": "go?"}}})).await;
    let run = harness.start("open").await;
    assert!(harness.asked(&run, "gate").await.warnings.is_empty());
}
