//! Hints: what happens on one node is known on the other at once.

use crate::harness::{Harness, Node, chain, define, was_prompt};
use stepwell_engine::commands::UserChange;
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn a_cancel_on_one_node_aborts_at_once_what_runs_on_the_other() {
    let harness = Harness::new();
    let (one, two) = (harness.node("one").await, harness.node("two").await);
    define(&one, &harness.admin, chain("held", "hold")).await;
    let run = one.start(&harness.admin, "held").await;
    one.until_holding(1).await;
    let asked = Instant::now();
    two.engine.runs(&harness.admin).cancel(&run, None).await.unwrap();
    one.until_holding(0).await;
    was_prompt(asked);
    assert_eq!(two.ended(&harness.admin, &run).await.status, "cancelled");
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_run_is_heard_by_who_waits_on_the_other_node() {
    let harness = Harness::new();
    let (one, two) = (harness.node("one").await, harness.node("two").await);
    define(&one, &harness.admin, chain("held", "hold")).await;
    let run = one.start(&harness.admin, "held").await;
    one.until_holding(1).await;
    let end = two.engine.log().end_of(harness.run(&run).await).await.unwrap();
    one.tools.permits.add_permits(1);
    let began = Instant::now();
    end.reached().await.unwrap();
    was_prompt(began);
}

#[tokio::test(start_paused = true)]
async fn those_who_watch_one_node_hear_of_commits_of_the_other() {
    let harness = Harness::new();
    let (one, two) = (harness.node("one").await, harness.node("two").await);
    define(&one, &harness.admin, chain("quick", "ok")).await;
    let mut happens = two.engine.activity();
    let began = Instant::now();
    one.start(&harness.admin, "quick").await;
    assert_eq!(happens.recv().await.unwrap(), stepwell_engine::Activity::Elsewhere);
    was_prompt(began);
}

/// A right that is taken away on one node while a step runs on the other: the next step is not executed.
async fn revoked(harness: &Harness, one: &Node, two: &Node) {
    let all = ["workflow.define", "workflow.run", "workflow.read", "tool:*"];
    let bob = harness.user(one, "bob", &all).await;
    define(one, &harness.admin, chain("held", "hold ok")).await;
    let run = one.start(&bob, "held").await;
    one.until_holding(1).await;
    let less = UserChange { grants: Some(vec!["workflow.read".into()]), ..UserChange::default() };
    two.engine.users(&harness.admin).change("bob", less).await.unwrap();
    one.tools.permits.add_permits(1);
    assert_eq!(one.ended(&harness.admin, &run).await.status, "failed");
    assert_eq!(one.tools.called(), ["s0"]);
    assert!(two.tools.called().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_right_taken_away_on_one_node_stops_the_next_step_on_the_other() {
    let harness = Harness::new();
    let (one, two) = (harness.node("one").await, harness.node("two").await);
    revoked(&harness, &one, &two).await;
}

#[tokio::test(start_paused = true)]
async fn a_right_taken_away_stops_the_next_step_of_a_node_that_was_not_told() {
    let harness = Harness::new();
    let one = harness.node_on("one", harness.store.cut_off(), |config| config).await;
    let two = harness.node("two").await;
    revoked(&harness, &one, &two).await;
}

#[tokio::test(start_paused = true)]
async fn a_right_taken_away_stops_a_step_that_was_ready_and_is_claimed_later() {
    let harness = Harness::new();
    let one_at_a_time = |config| stepwell_engine::Config { slots: 1, ..config };
    let one = harness.node_on("one", harness.store.cut_off(), one_at_a_time).await;
    let bob = harness.user(&one, "bob", &["workflow.run", "workflow.read", "tool:*"]).await;
    define(&one, &harness.admin, chain("held", "hold")).await;
    // Of other organisations: their end says nothing about rights in this one.
    let mut strangers = Vec::new();
    for name in ["another", "third"] {
        let (_, key) = one.engine.organisations(&harness.admin).create(name, None).await.unwrap();
        let stranger = one.engine.identity().authenticate(&key).await.unwrap();
        define(&one, &stranger, chain("held", "hold")).await;
        strangers.push(stranger);
    }
    define(&one, &harness.admin, chain("quick", "ok")).await;
    let before = one.start(&bob, "quick").await;
    assert_eq!(one.ended(&harness.admin, &before).await.status, "completed");
    let mut first = Vec::new();
    for stranger in &strangers {
        first.push(one.start(stranger, "held").await);
    }
    one.until_holding(2).await;
    // There is no slot for it, and the reserve is in use. What Bob may is remembered from before.
    let second = one.start(&bob, "held").await;
    let at_rest = harness.node_on("two", harness.store.cut_off(), |config| config).await;
    at_rest.engine.drain();
    let less = UserChange { grants: Some(vec!["workflow.read".into()]), ..UserChange::default() };
    at_rest.engine.users(&harness.admin).change("bob", less).await.unwrap();
    one.tools.permits.add_permits(2);
    for (stranger, run) in strangers.iter().zip(&first) {
        assert_eq!(one.ended(stranger, run).await.status, "completed");
    }
    assert_eq!(one.ended(&harness.admin, &second).await.status, "failed");
    assert_eq!(one.tools.count(), 3);
}
