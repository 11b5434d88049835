//! Budgets of a run, and that other runs do not notice a large one.

use crate::harness::Harness;
use serde_json::json;
use stepwell_core::plan::Budget;
use stepwell_engine::Config;
use stepwell_engine::commands::Retry;

fn within(budget: Budget) -> impl FnOnce(Config) -> Config {
    move |config| Config { budget, ..config }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_text_in_ten_thousand_items_fails_the_run_and_not_the_engine() {
    let budget = Budget { bytes: 1 << 20, run_bytes: 8 << 20, ..Budget::default() };
    let harness = Harness::with(within(budget)).await;
    harness
        .define(
            r#"{"name": "copies", "tasks": {"each": {"for_each": "{{input.items}}", "max_parallel": 10000,
            "tasks": {"one": {"tool": "hold", "args": {"text": "{{input.text}}"}}}}}}"#,
        )
        .await;
    harness.define(r#"{"name": "quick", "tasks": {"a": {"tool": "add", "args": {"n": 1}}}}"#).await;
    let items: Vec<u32> = (0..10_000).collect();
    let run = harness.start("copies", json!({"items": items, "text": "x".repeat(500_000)})).await;
    assert_eq!(harness.run("quick", json!({})).await.status, "completed");
    let view = harness.ended(&run).await;
    assert_eq!((view.status, &view.error.unwrap()["code"]), ("failed", &json!("run_too_large")));
    assert!(harness.calls() < 20, "{} items were started", harness.calls());
    // It can still be read, and a retry says the same.
    harness.engine.runs(&harness.admin).retry(&run, Retry::SameVersion).await.unwrap();
    assert_eq!(harness.ended(&run).await.error.unwrap()["code"], json!("run_too_large"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wide_run_goes_on_over_many_transitions_and_calls_each_step_once() {
    let harness = Harness::with(within(Budget { decisions: 7, ..Budget::default() })).await;
    harness
        .define(
            r#"{"name": "wide", "output": "{{tasks.each.body[199].one.n}}", "tasks": {
            "each": {"for_each": "{{input.items}}", "max_parallel": 200,
            "tasks": {"one": {"tool": "add", "args": {"n": "{{item}}"}}}}}}"#,
        )
        .await;
    let items: Vec<u32> = (0..200).collect();
    let view = harness.run("wide", json!({"items": items})).await;
    assert_eq!((view.status, view.output, harness.calls()), ("completed", Some(json!(200)), 200));
    assert!(view.version > 50, "{} transitions", view.version);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_cancelled_while_it_has_decisions_left() {
    let harness = Harness::with(within(Budget { decisions: 1, ..Budget::default() })).await;
    harness
        .define(
            r#"{"name": "wide", "tasks": {"each": {"for_each": "{{input.items}}", "max_parallel": 10000,
            "tasks": {"one": {"sleep": "1h"}}}}}"#,
        )
        .await;
    let items: Vec<u32> = (0..10_000).collect();
    let run = harness.start("wide", json!({"items": items})).await;
    harness.until(&run, |view| view.version > 3).await;
    harness.engine.runs(&harness.admin).cancel(&run, None).await.unwrap();
    assert_eq!(harness.ended(&run).await.status, "cancelled");
}
