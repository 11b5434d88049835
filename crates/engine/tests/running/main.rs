//! Whole runs through the engine's own commands, on a real SQLite file, with step kinds that the test controls.

// In a test a panic is the report.
#![allow(clippy::unwrap_used)]

mod budgets;
mod control;
mod harness;
mod large;
mod races;
mod recovery;
mod stress;
mod trees;

use harness::Harness;
use serde_json::json;
use stepwell_engine::commands::{Decision, Trigger};

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_runs_to_its_end_and_each_step_sees_the_one_before() {
    let harness = Harness::new().await;
    harness
        .define(
            r#"{"name": "chain", "output": {"last": "{{tasks.c.body.n}}"}, "tasks": {
            "a": {"tool": "add", "args": {"n": "{{input.n}}"}},
            "b": {"needs": ["a"], "tool": "add", "args": {"n": "{{tasks.a.body.n}}"}},
            "c": {"needs": ["b"], "tool": "add", "args": {"n": "{{tasks.b.body.n}}"}}}}"#,
        )
        .await;
    let view = harness.run("chain", json!({"n": 1})).await;
    assert_eq!((view.status, view.output), ("completed", Some(json!({"last": 4}))));
    assert!(view.tasks.iter().all(|task| task.status == "success" && task.duration_ms.is_some()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sleep_ends_by_itself_and_a_gate_by_an_answer() {
    let harness = Harness::new().await;
    harness
        .define(
            r#"{"name": "waits", "tasks": {
            "nap": {"sleep": "50ms"},
            "gate": {"needs": ["nap"], "approval": {"message": "go?"}},
            "after": {"needs": ["gate"], "tool": "add", "args": {"n": 1}}}}"#,
        )
        .await;
    let run = harness.start("waits", json!({})).await;
    harness.until(&run, |view| view.status == "paused").await;
    let yes = Decision { approve: true, ..Decision::default() };
    harness.engine.gates(&harness.admin).answer(&run, "gate", yes).await.unwrap();
    let view = harness.ended(&run).await;
    assert_eq!(view.status, "completed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_wide_fan_joins_once() {
    let harness = Harness::new().await;
    harness.define(
        r#"{"name": "fan", "tasks": {
            "each": {"for_each": "{{input.items}}", "max_parallel": 1000, "tasks": {"one": {"tool": "add", "args": {"n": "{{item}}"}}}},
            "join": {"needs": ["each"], "tool": "add", "args": {"n": 0}}}}"#,
    )
    .await;
    let items: Vec<i64> = (0..1_000).collect();
    let view = harness.run("fan", json!({"items": items})).await;
    assert_eq!(view.status, "completed");
    assert_eq!(harness.calls(), 1_001);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_run_gives_its_output_to_its_parent() {
    let harness = Harness::new().await;
    harness
        .define(
            r#"{"name": "child", "output": {"got": "{{tasks.a.body.n}}"}, "tasks": {
            "a": {"tool": "add", "args": {"n": "{{input.n}}"}}}}"#,
        )
        .await;
    harness
        .define(
            r#"{"name": "parent", "output": "{{tasks.call.body}}", "tasks": {
            "call": {"workflow": "child", "input": {"n": 41}}}}"#,
        )
        .await;
    let view = harness.run("parent", json!({})).await;
    assert_eq!((view.status, view.output), ("completed", Some(json!({"got": 42}))));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_key_starts_one_run_and_another_body_is_refused() {
    let harness = Harness::new().await;
    harness.define(r#"{"name": "once", "tasks": {"a": {"tool": "add", "args": {"n": 1}}}}"#).await;
    let trigger = |n: i64| Trigger { key: Some("k"), ..Trigger::new("once", json!({"n": n})) };
    let first = harness.engine.runs(&harness.admin).trigger(trigger(1)).await.unwrap();
    let again = harness.engine.runs(&harness.admin).trigger(trigger(1)).await.unwrap();
    assert_eq!((again.run, first.repeated, again.repeated), (first.run, false, true));
    assert!(matches!(
        harness.engine.runs(&harness.admin).trigger(trigger(2)).await,
        Err(stepwell_engine::Error::KeyReused(key)) if key == "k"
    ));
}
