//! Schedules: one run per tick, whichever process fires it; missed ticks, overlap, and schedules of deleted workflows.

use crate::harness::{Harness, chain, with};
use serde_json::{Value, json};
use stepwell_engine::commands::ScheduleView;

fn every_minute(tools: &str, more: Value) -> Value {
    let mut trigger = json!({"cron": "* * * * *"});
    for (name, value) in more.as_object().unwrap() {
        trigger[name] = value.clone();
    }
    with(chain("tick", tools), "trigger", json!([trigger]))
}

async fn schedule(harness: &Harness) -> ScheduleView {
    harness.engine.workflows(&harness.admin).schedule("tick").await.unwrap().remove(0)
}

#[tokio::test(start_paused = true)]
async fn two_engines_start_one_run_for_each_tick() {
    let harness = Harness::new().await;
    let other = harness.another().await;
    harness.define(&harness.admin, every_minute("ok", json!({}))).await;
    harness.pass(10 * 60 + 30).await;
    assert_eq!((harness.runs().await.len(), harness.called()), (10, 10));
    other.kill();
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_takes_over_fires_no_tick_twice() {
    let harness = Harness::new().await;
    harness.define(&harness.admin, every_minute("ok", json!({"catch_up": "all"}))).await;
    harness.pass(60).await;
    harness.engine.kill();
    harness.store.restarted();
    let next = harness.another().await;
    harness.pass(3 * 60 + 30).await;
    assert_eq!(harness.runs().await.len(), 4);
    next.kill();
}

/// How many runs there are after an absence of seven and a half minutes in which three ticks came.
async fn after_an_absence(catch_up: &str) -> usize {
    let harness = Harness::new().await;
    let trigger = json!([{"cron": "*/2 * * * *", "catch_up": catch_up}]);
    harness.define(&harness.admin, with(chain("tick", "ok"), "trigger", trigger)).await;
    harness.engine.kill();
    harness.pass(7 * 60 + 30).await;
    harness.store.restarted();
    let next = harness.another().await;
    harness.pass(5).await;
    let runs = harness.runs().await.len();
    next.kill();
    runs
}

#[tokio::test(start_paused = true)]
async fn missed_ticks_are_caught_up_with_as_asked() {
    assert_eq!(after_an_absence("all").await, 3);
    assert_eq!(after_an_absence("last").await, 1);
    assert_eq!(after_an_absence("none").await, 0, "the last one is more than a minute late");
}

/// How many runs a schedule of every ten seconds has after an outage.
async fn after_an_outage(seconds: u64) -> usize {
    let harness = Harness::new().await;
    let trigger = json!([{"cron": "*/10 * * * * *"}]);
    harness.define(&harness.admin, with(chain("tick", "ok"), "trigger", trigger)).await;
    harness.engine.kill();
    harness.pass(seconds).await;
    harness.store.restarted();
    let next = harness.another().await;
    harness.pass(1).await;
    let runs = harness.runs().await.len();
    next.kill();
    runs
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_made_up_for_by_one_run_however_short_it_was() {
    assert_eq!(after_an_outage(45).await, 1);
    assert_eq!(after_an_outage(135).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_tick_is_skipped_while_the_run_before_has_not_ended() {
    let harness = Harness::new().await;
    harness.define(&harness.admin, every_minute("hold", json!({"overlap": "skip"}))).await;
    harness.pass(3 * 60 + 30).await;
    assert_eq!(harness.runs().await.len(), 1);
    assert!(schedule(&harness).await.last_error.is_some());
    harness.tools.permits.add_permits(1);
    harness.pass(60).await;
    assert_eq!(harness.runs().await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_tick_cancels_the_run_before_if_asked_to() {
    let harness = Harness::new().await;
    harness.define(&harness.admin, every_minute("hold", json!({"overlap": "cancel"}))).await;
    harness.pass(3 * 60 + 30).await;
    let states: Vec<String> = harness.runs().await.into_iter().map(|run| run.status).collect();
    assert_eq!(states, ["cancelled", "cancelled", "running"]);
    harness.until_holding(1).await;
}

#[tokio::test(start_paused = true)]
async fn a_disabled_workflow_skips_its_ticks_and_goes_on_when_it_is_enabled() {
    let harness = Harness::new().await;
    harness.define(&harness.admin, every_minute("ok", json!({"catch_up": "all"}))).await;
    harness.engine.workflows(&harness.admin).enable("tick", false).await.unwrap();
    harness.pass(3 * 60 + 30).await;
    assert_eq!((harness.runs().await.len(), schedule(&harness).await.next.len()), (0, 0));
    harness.engine.workflows(&harness.admin).enable("tick", true).await.unwrap();
    harness.pass(60).await;
    assert_eq!(harness.runs().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_single_time_fires_once_whatever_versions_follow() {
    let harness = Harness::new().await;
    let at = |tools: &str| with(chain("tick", tools), "trigger", json!([{"at": "2026-01-01T00:05:00Z"}]));
    harness.define(&harness.admin, at("ok")).await;
    harness.pass(4 * 60 + 50).await;
    assert_eq!(harness.runs().await.len(), 0);
    harness.pass(20).await;
    assert_eq!(harness.runs().await.len(), 1);
    harness.define(&harness.admin, at("ok ok")).await;
    harness.pass(3_600).await;
    assert_eq!(harness.runs().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_new_version_with_the_same_expression_keeps_the_time() {
    let harness = Harness::new().await;
    harness.define(&harness.admin, every_minute("ok", json!({}))).await;
    harness.pass(90).await;
    let before = schedule(&harness).await;
    harness.define(&harness.admin, every_minute("ok ok", json!({}))).await;
    let after = schedule(&harness).await;
    assert_eq!((&after.next, &after.last, &after.last_run), (&before.next, &before.last, &before.last_run));
    let hourly = with(chain("tick", "ok"), "trigger", json!([{"cron": "0 * * * *"}]));
    harness.define(&harness.admin, hourly).await;
    harness.pass(10 * 60).await;
    assert_eq!(harness.runs().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn nothing_fires_for_a_workflow_that_is_gone() {
    let harness = Harness::new().await;
    harness.define(&harness.admin, every_minute("ok", json!({}))).await;
    harness.engine.workflows(&harness.admin).delete("tick").await.unwrap();
    harness.define(&harness.admin, chain("tick", "ok")).await;
    harness.pass(5 * 60).await;
    assert_eq!(harness.runs().await.len(), 0);
    assert!(harness.engine.workflows(&harness.admin).schedule("tick").await.unwrap().is_empty());
}

fn once(at: &str) -> Value {
    with(chain("once", "ok"), "trigger", json!([{"at": at}]))
}

#[tokio::test(start_paused = true)]
async fn a_time_that_is_over_does_not_fire() {
    let harness = Harness::new().await;
    harness.define(&harness.admin, once("2025-12-31T23:00:00Z")).await;
    harness.pass(120).await;
    assert_eq!(harness.runs().await.len(), 0);
    assert!(harness.engine.workflows(&harness.admin).schedule("once").await.unwrap()[0].next.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_single_time_of_a_disabled_workflow_fires_when_it_is_enabled() {
    let harness = Harness::new().await;
    harness.define(&harness.admin, once("2026-01-01T00:05:00Z")).await;
    harness.engine.workflows(&harness.admin).enable("once", false).await.unwrap();
    harness.pass(10 * 60).await;
    assert_eq!(harness.runs().await.len(), 0);
    harness.engine.workflows(&harness.admin).enable("once", true).await.unwrap();
    harness.pass(60).await;
    assert_eq!(harness.runs().await.len(), 1);
    // Once is enough, however often the workflow is switched.
    for on in [false, true] {
        harness.engine.workflows(&harness.admin).enable("once", on).await.unwrap();
    }
    harness.pass(10 * 60).await;
    assert_eq!(harness.runs().await.len(), 1);
}
