//! What holds for all nodes together: limits, schedules, timers and time.

use crate::harness::{Harness, LEASE, START, allow, chain, define, was_prompt};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use stepwell_core::time::{Millis, Time};
use stepwell_engine::commands::{NewPolicy, Trigger};
use stepwell_engine::{Config, Error, Limits, Rate, Subscription, TokioClock};
use stepwell_store::{OrgId, RunFilter, Store};
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn of_two_nodes_that_start_the_last_run_a_plan_allows_one_does() {
    let harness = Harness::new();
    let (one, two) = (harness.node("one").await, harness.node("two").await);
    define(&one, &harness.admin, chain("held", "hold")).await;
    let limits = Some(Limits { concurrent_runs: Some(3), ..Limits::default() });
    one.engine.organisations(&harness.admin).change_plan(OrgId(1), Subscription { plan: None, limits }).await.unwrap();
    let start = async |n: usize| {
        let node = if n.is_multiple_of(2) { &one } else { &two };
        node.engine.runs(&harness.admin).trigger(Trigger::new("held", json!({}))).await
    };
    let tried = futures_util::future::join_all((0..12).map(start)).await;
    assert_eq!(tried.iter().filter(|answer| answer.is_ok()).count(), 3);
    let over = |answer: &&Result<_, Error>| matches!(answer, Err(Error::Limit { limit: "concurrent_runs", .. }));
    assert_eq!(tried.iter().filter(over).count(), 9);
}

#[tokio::test(start_paused = true)]
async fn the_last_administrator_is_not_lost_to_two_nodes() {
    let harness = Harness::new();
    let (one, two) = (harness.node("one").await, harness.node("two").await);
    harness.user(&one, "ann", &["admin"]).await;
    harness.user(&one, "ben", &["admin"]).await;
    let (first, second) = (one.engine.users(&harness.admin), two.engine.users(&harness.admin));
    let disabled = futures_util::future::join(first.disable("ann"), second.disable("ben"));
    let (ann, ben) = disabled.await;
    assert!(ann.is_ok() != ben.is_ok(), "{ann:?} {ben:?}");
}

#[tokio::test(start_paused = true)]
async fn an_organisation_has_no_more_steps_at_a_time_on_two_nodes_than_on_one() {
    let harness = Harness::new();
    let limited = |config| Config { slots_per_org: Some(2), ..config };
    let one = harness.node_on("one", harness.store.clone(), limited).await;
    let two = harness.node_on("two", harness.store.clone(), limited).await;
    define(&one, &harness.admin, chain("held", "hold hold")).await;
    let mut runs = Vec::new();
    for node in [&one, &two, &one, &two, &one, &two] {
        runs.push(node.start(&harness.admin, "held").await);
    }
    harness.until_all_holding(2).await;
    let began = Instant::now();
    one.tools.permits.add_permits(100);
    two.tools.permits.add_permits(100);
    for run in &runs {
        assert_eq!(two.ended(&harness.admin, run).await.status, "completed");
    }
    assert_eq!(harness.most_holding(), 2);
    was_prompt(began);
}

#[tokio::test(start_paused = true)]
async fn work_for_which_one_node_has_no_slot_is_taken_by_the_other_at_once() {
    let harness = Harness::new();
    let one = harness.node_on("one", harness.store.clone(), |config| Config { slots: 1, ..config }).await;
    let two = harness.node("two").await;
    define(&one, &harness.admin, chain("held", "hold")).await;
    one.start(&harness.admin, "held").await;
    one.until_holding(1).await;
    let began = Instant::now();
    one.start(&harness.admin, "held").await;
    two.until_holding(1).await;
    was_prompt(began);
}

#[tokio::test(start_paused = true)]
async fn a_schedule_ticks_once_on_two_nodes() {
    let harness = Harness::new();
    let (one, _two) = (harness.node("one").await, harness.node("two").await);
    let mut document = chain("tick", "ok");
    document["trigger"] = json!([{"cron": "* * * * *"}]);
    define(&one, &harness.admin, document).await;
    tokio::time::sleep(Duration::from_secs(5 * 60 + 30)).await;
    assert_eq!(harness.store.runs(RunFilter::all(OrgId(1), 100)).await.unwrap().len(), 5);
}

fn sleeper() -> serde_json::Value {
    json!({"name": "sleeper", "tasks": {"nap": {"sleep": "10s"}, "then": {"tool": "ok", "needs": ["nap"]}}})
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_five_seconds_off_makes_no_timer_early_or_late() {
    for off in [-5_000, 5_000] {
        let harness = Harness::new();
        let clock = TokioClock::starting_at(Time(START.0 + off));
        let wrong = |config| Config { clock: Arc::new(clock), ..config };
        let one = harness.node_on("one", harness.store.ahead_of(-off), wrong).await;
        let two = harness.node("two").await;
        define(&one, &harness.admin, sleeper()).await;
        for node in [&one, &two] {
            let began = Instant::now();
            let run = node.start(&harness.admin, "sleeper").await;
            let view = node.ended(&harness.admin, &run).await;
            assert_eq!(view.status, "completed");
            let took = began.elapsed();
            assert!(took >= Duration::from_secs(10) && took < Duration::from_secs(11), "{off}: {took:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn timers_of_a_node_that_is_gone_fire_all_the_same() {
    let harness = Harness::new();
    let (one, two) = (harness.node("one").await, harness.node("two").await);
    define(&one, &harness.admin, sleeper()).await;
    let mut runs = Vec::new();
    for _ in 0..8 {
        runs.push(one.start(&harness.admin, "sleeper").await);
    }
    one.engine.kill();
    let began = Instant::now();
    for run in &runs {
        assert_eq!(two.ended(&harness.admin, run).await.status, "completed");
    }
    // Timers of the other node's share are a second overdue before this node fires them.
    assert!(began.elapsed() < Duration::from_secs(13), "it took {:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn calls_on_two_nodes_keep_the_pace_of_one_policy() {
    let harness = Harness::new();
    let (one, two) = (harness.node("one").await, harness.node("two").await);
    let rate = Some(Rate { calls: 4, per: Millis::from_secs(8) });
    harness.policy(&one, NewPolicy { rate, ..allow("tool:ok") }).await;
    define(&one, &harness.admin, chain("paced", "ok")).await;
    // Each knows of the other.
    tokio::time::sleep(LEASE).await;
    let began = Instant::now();
    let mut runs = Vec::new();
    for n in 0..44 {
        let node = if n % 2 == 0 { &one } else { &two };
        runs.push(node.start(&harness.admin, "paced").await);
    }
    for run in &runs {
        assert_eq!(two.ended(&harness.admin, run).await.status, "completed");
    }
    let made: usize = [&one, &two].iter().map(|node| node.tools.count()).sum();
    assert_eq!(made, 44);
    // Four at once, and then one every two seconds on the two together.
    let took = began.elapsed();
    assert!((76..=90).contains(&took.as_secs()), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_child_that_waits_for_a_place_starts_at_once_when_a_run_ends_on_the_other_node() {
    let harness = Harness::new();
    let (one, two) = (harness.node("one").await, harness.node("two").await);
    define(&one, &harness.admin, chain("leaf", "hold")).await;
    let call = json!({"call": {"workflow": "leaf", "input": {}}});
    let each = json!({"for_each": [1, 2], "max_parallel": 2, "tasks": call});
    define(&one, &harness.admin, json!({"name": "root", "tasks": {"each": each}})).await;
    let limits = Some(Limits { concurrent_runs: Some(3), ..Limits::default() });
    one.engine.organisations(&harness.admin).change_plan(OrgId(1), Subscription { plan: None, limits }).await.unwrap();
    let last = two.start(&harness.admin, "leaf").await;
    two.until_holding(1).await;
    one.start(&harness.admin, "root").await;
    one.until_holding(1).await;
    // The second child has found the plan full by now.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let began = Instant::now();
    two.tools.permits.add_permits(1);
    two.ended(&harness.admin, &last).await;
    one.until_holding(2).await;
    was_prompt(began);
}

#[tokio::test(start_paused = true)]
async fn two_nodes_together_stay_within_the_limits_of_a_tree() {
    let harness = Harness::new();
    let (one, two) = (harness.node("one").await, harness.node("two").await);
    define(&one, &harness.admin, chain("leaf", "hold")).await;
    let call = json!({"call": {"workflow": "leaf", "input": {}}});
    let each = json!({"for_each": (0..12).collect::<Vec<_>>(), "max_parallel": 12, "tasks": call});
    define(&one, &harness.admin, json!({"name": "root", "tasks": {"each": each}})).await;
    let limits = Limits { concurrent_runs: Some(4), descendants_per_run: Some(9), ..Limits::default() };
    let plan = Subscription { plan: None, limits: Some(limits) };
    one.engine.organisations(&harness.admin).change_plan(OrgId(1), plan).await.unwrap();
    let run = one.start(&harness.admin, "root").await;
    harness.until_all_holding(3).await;
    // The node that started it is gone, and the other takes over.
    one.engine.kill();
    harness.store.give_up(harness.id(&two, "one").await);
    harness.until_all_holding(3).await;
    two.tools.permits.add_permits(100);
    assert_eq!(two.ended(&harness.admin, &run).await.status, "failed");
    let all = harness.store.runs(RunFilter::all(OrgId(1), 100)).await.unwrap();
    assert_eq!((all.len(), harness.most_holding()), (10, 3));
}
