//! Many runs at once: all complete, and no join runs twice.

use crate::harness::Harness;
use serde_json::json;
use stepwell_engine::commands::Trigger;

async fn all_complete(harness: &Harness, workflow: &str, runs: u64, calls: u64) {
    let mut ends = Vec::new();
    for _ in 0..runs {
        let trigger = Trigger::new(workflow, json!({}));
        ends.push(harness.engine.runs(&harness.admin).trigger_and_watch(trigger).await.unwrap());
    }
    for (started, end) in ends {
        end.reached().await.unwrap();
        let row = harness.engine.log().run(started.id).await.unwrap().unwrap();
        assert_eq!(row.status, "completed");
    }
    // Nothing was lost and started again, so every call was made exactly once.
    assert_eq!(harness.calls(), runs * calls);
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_chains_at_once_all_complete() {
    let harness = Harness::new().await;
    harness
        .define(
            r#"{"name": "chain", "tasks": {
            "a": {"tool": "add", "args": {"n": 1}},
            "b": {"needs": ["a"], "tool": "add", "args": {"n": "{{tasks.a.body.n}}"}},
            "c": {"needs": ["b"], "tool": "add", "args": {"n": "{{tasks.b.body.n}}"}}}}"#,
        )
        .await;
    all_complete(&harness, "chain", 10_000, 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn five_thousand_diamonds_at_once_join_once_each() {
    let harness = Harness::new().await;
    harness
        .define(
            r#"{"name": "diamond", "tasks": {
            "top": {"tool": "add", "args": {"n": 1}},
            "left": {"needs": ["top"], "tool": "add", "args": {"n": 1}},
            "right": {"needs": ["top"], "tool": "add", "args": {"n": 2}},
            "join": {"needs": ["left", "right"], "tool": "add", "args": {"n": "{{tasks.left.body.n}}"}}}}"#,
        )
        .await;
    all_complete(&harness, "diamond", 5_000, 4).await;
}
