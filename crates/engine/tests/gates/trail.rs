//! Calls in the audit trail, and calls of every kind that must not be repeated.

use crate::harness::{Harness, hold, status};
use serde_json::{Value, json};
use stepwell_core::time::Millis;
use stepwell_engine::commands::{AuditQuery, NewPolicy};
use stepwell_engine::{PolicyEffect, Rate, UnknownOutcome};

fn watched(calls: &str) -> NewPolicy {
    NewPolicy { effect: PolicyEffect::Allow, ..hold(calls) }
}

/// All audit rows of calls, oldest first: `call.made pay success`.
async fn trail(harness: &Harness) -> Vec<String> {
    let query = AuditQuery { limit: 500, ..AuditQuery::default() };
    let mut rows = harness.engine.audit(&harness.admin).list(query).await.unwrap();
    rows.sort_by_key(|row| (row.row.at, row.row.detail.clone()));
    let calls = rows.iter().filter(|row| row.row.action.starts_with("call."));
    let said = calls.map(|row| {
        let detail: Value = serde_json::from_str(&row.row.detail).unwrap();
        format!("{} {} {}", row.row.action, detail["step"].as_str().unwrap(), detail["outcome"].as_str().unwrap())
    });
    said.collect()
}

#[tokio::test(start_paused = true)]
async fn only_calls_that_were_made_are_said_to_have_been_made() {
    let tasks = json!({
        "a": {"tool": "ok", "args": {}},
        "b": {"needs": ["a"], "tool": "ok", "args": {}},
        "c": {"needs": ["b"], "tool": "ok", "args": {"key": "{{secrets.NONE}}"}},
    });
    let harness = Harness::with("w", tasks).await;
    let rate = Some(Rate { calls: 1, per: Millis::from_secs(60) });
    harness.policy("slow", NewPolicy { rate, ..watched("tool:ok") }).await;
    assert_eq!(harness.ended(&harness.start("w").await).await.status, "failed");
    assert_eq!(trail(&harness).await, ["call.made a success", "call.made b success", "call.refused c refused"]);
}

#[tokio::test(start_paused = true)]
async fn a_held_call_that_was_denied_was_not_made() {
    let harness = Harness::with("w", json!({"pay": {"tool": "ok", "args": {}}})).await;
    harness.policy("money", hold("tool:ok")).await;
    let run = harness.start("w").await;
    harness.pass(5).await;
    harness.answer(&harness.admin, &run, "pay", false).await.unwrap();
    harness.ended(&run).await;
    assert_eq!(trail(&harness).await, ["call.held pay held", "call.denied pay denied"]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_cut_short_may_have_been_made() {
    let harness = Harness::with("w", json!({"pay": {"tool": "hang", "args": {}}})).await;
    harness.policy("watch", watched("tool:hang")).await;
    let run = harness.start("w").await;
    harness.pass(5).await;
    harness.engine.runs(&harness.admin).cancel(&run, None).await.unwrap();
    harness.ended(&run).await;
    assert_eq!(trail(&harness).await, ["call.aborted pay unknown"]);
}

#[tokio::test(start_paused = true)]
async fn a_policy_can_say_of_any_kind_of_call_that_it_is_made_once() {
    let harness = Harness::with("w", json!({"pay": {"url": "https://pay.example/lost", "retries": 3}})).await;
    assert_eq!(harness.ended(&harness.start("w").await).await.status, "completed");
    assert_eq!(harness.called().len(), 2, "without a policy it is tried again");
    for calls in ["tool:http", "host:pay.example"] {
        let before = harness.called().len();
        harness.policy("once", NewPolicy { at_most_once: Some(UnknownOutcome::Fail), ..watched(calls) }).await;
        // The first call of each step is the one that is lost.
        let step = format!("call{before}");
        harness.define("again", json!({&step: {"url": "https://pay.example/lost", "retries": 3}})).await;
        let view = harness.ended(&harness.start("again").await).await;
        assert_eq!(status(&view, &step), ("failed", Some("outcome_unknown".into())), "{calls}");
        assert_eq!(harness.called().len(), before + 1);
    }
}
