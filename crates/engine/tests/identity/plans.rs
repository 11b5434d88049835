//! What a plan allows: definitions, runs at a time, executions in a month.

use crate::rig::{Rig, chain, with};
use serde_json::json;
use stepwell_engine::{Error, Limits, Subscription};
use stepwell_store::OrgId;

async fn limited(rig: &Rig, limits: Limits) {
    let to = Subscription { plan: None, limits: Some(limits) };
    rig.engine.organisations(&rig.admin).change_plan(OrgId(1), to).await.unwrap();
}

fn over<T: std::fmt::Debug>(answer: Result<T, Error>) {
    assert!(matches!(answer, Err(Error::Limit { .. })), "{answer:?}");
}

#[tokio::test(start_paused = true)]
async fn a_definition_stays_within_the_plan() {
    let rig = Rig::new().await;
    let limits = Limits { workflows: Some(2), tasks_per_workflow: Some(2), no_cron: true, ..Limits::default() };
    limited(&rig, limits).await;
    rig.define(&rig.admin, chain("a", "ok ok")).await;
    rig.define(&rig.admin, chain("b", "ok")).await;
    over(rig.try_define(&rig.admin, chain("c", "ok")).await);
    over(rig.try_define(&rig.admin, chain("a", "ok ok ok")).await);
    over(rig.try_define(&rig.admin, with(chain("a", "ok"), "trigger", json!([{"cron": "* * * * *"}]))).await);
    // A version of one that is there is no other workflow, and one that is gone does not count.
    assert!(rig.try_define(&rig.admin, chain("a", "ok")).await.unwrap());
    rig.engine.workflows(&rig.admin).delete("b").await.unwrap();
    rig.define(&rig.admin, chain("c", "ok")).await;
    assert_eq!(rig.engine.organisations(&rig.admin).usage().await.unwrap().workflows, 2);
}

#[tokio::test(start_paused = true)]
async fn no_more_runs_are_open_at_a_time_than_the_plan_allows() {
    let rig = Rig::new().await;
    rig.define(&rig.admin, chain("held", "hold")).await;
    limited(&rig, Limits { concurrent_runs: Some(3), ..Limits::default() }).await;
    let tried = (0..20).map(|_| rig.try_start(&rig.admin, "held"));
    let tried = futures_util::future::join_all(tried).await;
    assert_eq!(tried.iter().filter(|answer| answer.is_ok()).count(), 3);
    over(rig.try_start(&rig.admin, "held").await);
    rig.until_holding(3).await;
    assert_eq!(rig.engine.organisations(&rig.admin).usage().await.unwrap().open_runs, 3);
    rig.tools.permits.add_permits(1);
    rig.until_holding(2).await;
    rig.pass(1).await;
    rig.start(&rig.admin, "held").await;
    over(rig.try_start(&rig.admin, "held").await);
}

#[tokio::test(start_paused = true)]
async fn a_month_has_as_many_executions_as_the_plan_says_and_the_next_begins_anew() {
    let rig = Rig::new().await;
    rig.define(&rig.admin, chain("three", "ok ok ok")).await;
    limited(&rig, Limits { executions_per_month: Some(5), ..Limits::default() }).await;
    for _ in 0..2 {
        let run = rig.start(&rig.admin, "three").await;
        assert_eq!(rig.ended(&run).await.status, "completed", "a run that began goes on");
    }
    over(rig.try_start(&rig.admin, "three").await);
    let usage = rig.engine.organisations(&rig.admin).usage().await.unwrap();
    assert_eq!((usage.executions, usage.month.as_str()), (6, "2026-01"));
    rig.pass(31 * 24 * 3_600).await;
    rig.start(&rig.admin, "three").await;
}

#[tokio::test(start_paused = true)]
async fn plans_are_the_operator_s() {
    let rig = Rig::new().await;
    let boss = rig.user("boss", &["admin"]).await;
    let to = Subscription { plan: Some("pro".into()), limits: None };
    let answer = rig.engine.organisations(&boss).change_plan(OrgId(1), to.clone()).await;
    assert!(matches!(answer, Err(Error::Forbidden { .. })), "{answer:?}");
    let none = Subscription { plan: Some("gold".into()), limits: None };
    assert!(matches!(rig.engine.organisations(&rig.admin).change_plan(OrgId(1), none).await, Err(Error::Input { .. })));
    assert!(matches!(
        rig.engine.organisations(&rig.admin).change_plan(OrgId(9), to).await,
        Err(Error::NotFound { .. })
    ));
}
