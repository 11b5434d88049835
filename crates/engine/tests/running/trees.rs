//! Trees of child runs on a real store, and across a crash.

use crate::harness::Harness;
use serde_json::json;
use stepwell_engine::{Limits, Subscription};
use stepwell_store::OrgId;

async fn limited(harness: &Harness, limits: Limits) {
    let to = Subscription { plan: None, limits: Some(limits) };
    harness.engine.organisations(&harness.admin).change_plan(OrgId(1), to).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn children_that_wait_for_a_place_start_after_a_crash_and_are_counted_once() {
    let harness = Harness::new().await;
    harness.define(r#"{"name": "leaf", "tasks": {"wait": {"tool": "hold", "args": {}}}}"#).await;
    harness
        .define(
            r#"{"name": "root", "tasks": {"each": {"for_each": [1, 2, 3, 4, 5, 6], "max_parallel": 6, "tasks": {
            "call": {"workflow": "leaf", "input": {}}}}}}"#,
        )
        .await;
    limited(&harness, Limits { concurrent_runs: Some(3), descendants_per_run: Some(6), ..Limits::default() }).await;
    let run = harness.start("root", json!({})).await;
    harness.tools.holding.subscribe().wait_for(|n| *n == 2).await.unwrap();
    let harness = harness.restarted_after_a_crash().await;
    harness.tools.holding.subscribe().wait_for(|n| *n == 2).await.unwrap();
    harness.tools.permits.add_permits(6);
    // A child that was counted twice would leave none for the last.
    assert_eq!(harness.ended(&run).await.status, "completed");
    assert_eq!(harness.engine.organisations(&harness.admin).usage().await.unwrap().open_runs, 0);
}
