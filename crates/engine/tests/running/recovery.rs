//! Recovery after a stop, a crash or a full disk.

use crate::harness::Harness;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use stepwell_core::event::Verdict;
use stepwell_engine::Error;
use stepwell_engine::commands::Trigger;
use stepwell_store::sqlite::SqliteStore;
use stepwell_testing::{TestStore, embedded_only};

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_was_running_in_a_crash_runs_again_as_the_next_attempt() {
    let harness = Harness::new().await;
    harness.define(r#"{"name": "hold", "tasks": {"wait": {"tool": "hold", "args": {}}}}"#).await;
    let run = harness.start("hold", json!({})).await;
    harness.tools.holding.subscribe().wait_for(|n| *n == 1).await.unwrap();
    let harness = harness.restarted_after_a_crash().await;
    harness.tools.holding.subscribe().wait_for(|n| *n == 1).await.unwrap();
    harness.tools.permits.add_permits(1);
    let view = harness.ended(&run).await;
    assert_eq!((view.status, view.tasks[0].attempt), ("completed", 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_was_running_in_three_crashes_in_a_row_waits_for_a_person() {
    let mut harness = Harness::new().await;
    harness.define(r#"{"name": "hold", "tasks": {"wait": {"tool": "hold", "args": {}}}}"#).await;
    let runs = [harness.start("hold", json!({})).await, harness.start("hold", json!({})).await];
    for _ in 0..3 {
        harness.tools.holding.subscribe().wait_for(|n| *n == 2).await.unwrap();
        harness = harness.restarted_after_a_crash().await;
    }
    for run in &runs {
        let view = harness.until(run, |view| view.status == "paused").await;
        assert_eq!(view.tasks[0].attempt, 3, "{view:?}");
        assert!(view.waiting_for[0].moved_on_by.contains("several times in a row"), "{view:?}");
    }
    assert_eq!(harness.calls(), 6);
    // It stays that way after another crash.
    let harness = harness.restarted_after_a_crash().await;
    harness.engine.runs(&harness.admin).cancel(&runs[1], None).await.unwrap();
    assert_eq!(harness.ended(&runs[1]).await.status, "cancelled");
    harness.engine.steps(&harness.admin).settle(&runs[0], "wait", Verdict::RunAgain).await.unwrap();
    harness.tools.holding.subscribe().wait_for(|n| *n == 1).await.unwrap();
    // The count begins again.
    let harness = harness.restarted_after_a_crash().await;
    harness.tools.holding.subscribe().wait_for(|n| *n == 1).await.unwrap();
    harness.tools.permits.add_permits(1);
    let view = harness.ended(&runs[0]).await;
    assert_eq!((view.status, view.tasks[0].attempt), ("completed", 5));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timer_that_came_due_while_nothing_ran_fires_at_the_start() {
    let harness = Harness::new().await;
    harness.define(r#"{"name": "nap", "tasks": {"nap": {"sleep": "20ms"}}}"#).await;
    let run = harness.start("nap", json!({})).await;
    let harness = harness.restarted_after_a_crash().await;
    assert_eq!(harness.ended(&run).await.status, "completed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_lets_running_steps_end_and_starts_no_others() {
    let harness = Harness::new().await;
    harness
        .define(
            r#"{"name": "two", "tasks": {
            "wait": {"tool": "hold", "args": {}},
            "then": {"needs": ["wait"], "tool": "add", "args": {"n": 1}}}}"#,
        )
        .await;
    let run = harness.start("two", json!({})).await;
    harness.tools.holding.subscribe().wait_for(|n| *n == 1).await.unwrap();
    // The shutdown has begun when the step may end.
    let then_end = async { harness.tools.permits.add_permits(1) };
    tokio::join!(biased; harness.engine.shutdown(Duration::from_secs(60)), then_end);
    assert_eq!(harness.calls(), 1);
    let trigger = Trigger::new("two", json!({}));
    assert!(matches!(harness.engine.runs(&harness.admin).trigger(trigger).await, Err(Error::Unavailable(_))));
    let harness = harness.restarted().await;
    let view = harness.ended(&run).await;
    assert_eq!((view.status, view.tasks[0].attempt, harness.calls()), ("completed", 1, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_acknowledges_nothing_and_work_goes_on_when_there_is_room() {
    if embedded_only("a database's disk cannot be filled from here") {
        return;
    }
    let place = TestStore::new();
    let store = Arc::new(SqliteStore::open(&place.directory().join("data")).unwrap());
    let harness = Harness::on(place, store.clone()).await;
    harness
        .define(
            r#"{"name": "two", "tasks": {
            "wait": {"tool": "hold", "args": {}},
            "then": {"needs": ["wait"], "tool": "add", "args": {"n": "{{input.big}}"}}}}"#,
        )
        .await;
    let big = "x".repeat(100_000);
    let under_way = harness.start("two", json!({"big": big})).await;
    harness.tools.holding.subscribe().wait_for(|n| *n == 1).await.unwrap();
    store.limit_size(0).await.unwrap();
    let mut refused = 0;
    while refused == 0 {
        let trigger = Trigger::new("two", json!({"big": big}));
        match harness.engine.runs(&harness.admin).trigger(trigger).await {
            // There is a little room inside the file.
            Ok(_) => {}
            Err(Error::Unavailable(why)) => {
                assert!(why.contains("full"), "{why}");
                refused += 1;
            }
            Err(other) => panic!("{other}"),
        }
    }
    harness.tools.permits.add_permits(1_000);
    store.limit_size(u64::MAX).await.unwrap();
    assert_eq!(harness.ended(&under_way).await.status, "completed");
    assert_eq!(harness.run("two", json!({"big": 1})).await.status, "completed");
}
