//! What a plan allows: definitions, runs at a time, executions in a month.

use crate::harness::{Harness, chain, with};
use serde_json::json;
use stepwell_core::time::Millis;
use stepwell_engine::commands::{Retry, Trigger};
use stepwell_engine::{Error, Limits, Subscription};
use stepwell_store::OrgId;

async fn limited(harness: &Harness, limits: Limits) {
    let to = Subscription { plan: None, limits: Some(limits) };
    harness.engine.organisations(&harness.admin).change_plan(OrgId(1), to).await.unwrap();
}

fn over<T: std::fmt::Debug>(answer: Result<T, Error>) {
    assert!(matches!(answer, Err(Error::Limit { .. })), "{answer:?}");
}

#[tokio::test(start_paused = true)]
async fn a_definition_stays_within_the_plan() {
    let harness = Harness::new().await;
    let limits = Limits { workflows: Some(2), tasks_per_workflow: Some(2), no_cron: true, ..Limits::default() };
    limited(&harness, limits).await;
    harness.define(&harness.admin, chain("a", "ok ok")).await;
    harness.define(&harness.admin, chain("b", "ok")).await;
    over(harness.try_define(&harness.admin, chain("c", "ok")).await);
    over(harness.try_define(&harness.admin, chain("a", "ok ok ok")).await);
    over(harness.try_define(&harness.admin, with(chain("a", "ok"), "trigger", json!([{"cron": "* * * * *"}]))).await);
    // A version of one that is there is no other workflow, and one that is gone does not count.
    assert!(harness.try_define(&harness.admin, chain("a", "ok")).await.unwrap());
    harness.engine.workflows(&harness.admin).delete("b").await.unwrap();
    harness.define(&harness.admin, chain("c", "ok")).await;
    assert_eq!(harness.engine.organisations(&harness.admin).usage().await.unwrap().workflows, 2);
}

#[tokio::test(start_paused = true)]
async fn no_more_runs_are_open_at_a_time_than_the_plan_allows() {
    let harness = Harness::new().await;
    harness.define(&harness.admin, chain("held", "hold")).await;
    limited(&harness, Limits { concurrent_runs: Some(3), ..Limits::default() }).await;
    let tried = (0..20).map(|_| harness.try_start(&harness.admin, "held"));
    let tried = futures_util::future::join_all(tried).await;
    assert_eq!(tried.iter().filter(|answer| answer.is_ok()).count(), 3);
    over(harness.try_start(&harness.admin, "held").await);
    harness.until_holding(3).await;
    assert_eq!(harness.engine.organisations(&harness.admin).usage().await.unwrap().open_runs, 3);
    harness.tools.permits.add_permits(1);
    harness.until_holding(2).await;
    harness.pass(1).await;
    harness.start(&harness.admin, "held").await;
    over(harness.try_start(&harness.admin, "held").await);
}

#[tokio::test(start_paused = true)]
async fn a_month_has_as_many_executions_as_the_plan_says_and_the_next_begins_anew() {
    let harness = Harness::new().await;
    harness.define(&harness.admin, chain("three", "ok ok ok")).await;
    limited(&harness, Limits { executions_per_month: Some(5), ..Limits::default() }).await;
    for _ in 0..2 {
        let run = harness.start(&harness.admin, "three").await;
        assert_eq!(harness.ended(&run).await.status, "completed", "a run that began goes on");
    }
    over(harness.try_start(&harness.admin, "three").await);
    let usage = harness.engine.organisations(&harness.admin).usage().await.unwrap();
    assert_eq!((usage.executions, usage.month.as_str()), (6, "2026-01"));
    let later = harness.later(Millis(31 * Millis::DAY.0)).await;
    later.runs(&harness.admin).trigger(Trigger::new("three", json!({}))).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn plans_are_the_operator_s() {
    let harness = Harness::new().await;
    let boss = harness.user("boss", &["admin"]).await;
    let to = Subscription { plan: Some("pro".into()), limits: None };
    let answer = harness.engine.organisations(&boss).change_plan(OrgId(1), to.clone()).await;
    assert!(matches!(answer, Err(Error::Forbidden { .. })), "{answer:?}");
    let none = Subscription { plan: Some("gold".into()), limits: None };
    assert!(matches!(
        harness.engine.organisations(&harness.admin).change_plan(OrgId(1), none).await,
        Err(Error::Input { .. })
    ));
    assert!(matches!(
        harness.engine.organisations(&harness.admin).change_plan(OrgId(9), to).await,
        Err(Error::NotFound { .. })
    ));
}

#[tokio::test(start_paused = true)]
async fn the_payloads_of_a_run_stay_within_the_plan() {
    let harness = Harness::new().await;
    harness.define(&harness.admin, chain("three", "ok ok ok")).await;
    limited(&harness, Limits { run_bytes: Some(300), ..Limits::default() }).await;
    let run = harness.start(&harness.admin, "three").await;
    let view = harness.ended(&run).await;
    assert_eq!((view.status, &view.error.unwrap()["code"]), ("failed", &json!("run_too_large")));
    limited(&harness, Limits { run_bytes: Some(30_000), ..Limits::default() }).await;
    harness.engine.runs(&harness.admin).retry(&run, Retry::SameVersion).await.unwrap();
    assert_eq!(harness.ended(&run).await.status, "completed", "a larger plan lets a retry go on");
}
