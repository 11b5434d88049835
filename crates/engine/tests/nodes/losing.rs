//! Nodes that are declared dead, and nodes that take over from them.

use crate::harness::{Harness, LEASE, allow, chain, define, was_prompt};
use serde_json::json;
use std::time::Duration;
use stepwell_core::event::Verdict;
use stepwell_engine::UnknownOutcome;
use stepwell_engine::commands::{AuditQuery, NewPolicy};

#[tokio::test(start_paused = true)]
async fn what_a_paused_node_reports_after_it_was_taken_over_from_counts_for_nothing() {
    let harness = Harness::new();
    // It hears nothing, and does not ask for a long time.
    let sleepy = |config| stepwell_engine::Config { lease: Duration::from_secs(36_000), ..config };
    let paused = harness.node_on("paused", harness.store.cut_off(), sleepy).await;
    define(&paused, &harness.admin, chain("held", "hold")).await;
    let run = paused.start(&harness.admin, "held").await;
    paused.until_holding(1).await;
    let other = harness.node("other").await;
    tokio::time::sleep(LEASE * 2).await;
    harness.store.give_up(harness.id(&paused, "paused").await);
    other.until_holding(1).await;
    paused.tools.permits.add_permits(1);
    // Lets it report, and handles what follows.
    paused.engine.shutdown(Duration::from_secs(60)).await;
    assert_eq!(other.engine.runs(&harness.admin).get(&run).await.unwrap().status, "running");
    other.tools.permits.add_permits(1);
    let view = other.ended(&harness.admin, &run).await;
    assert_eq!((view.status, view.tasks[0].attempt), ("completed", 2));
    assert_eq!(view.tasks[0].output, Some(json!("other")));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_was_given_up_drops_what_it_runs_and_goes_on_under_another_id() {
    let harness = Harness::new();
    let node = harness.node("one").await;
    define(&node, &harness.admin, chain("held", "hold")).await;
    let run = node.start(&harness.admin, "held").await;
    node.until_holding(1).await;
    let before = harness.id(&node, "one").await;
    harness.store.give_up(before);
    node.until_holding(0).await;
    assert_ne!(harness.id(&node, "one").await, before);
    // No one else is there to take over.
    node.until_holding(1).await;
    let another = node.start(&harness.admin, "held").await;
    node.until_holding(2).await;
    node.tools.permits.add_permits(2);
    assert_eq!(node.ended(&harness.admin, &run).await.tasks[0].attempt, 2);
    assert_eq!(node.ended(&harness.admin, &another).await.tasks[0].attempt, 1);
}

#[tokio::test(start_paused = true)]
async fn a_step_is_run_that_was_born_claimed_by_a_commit_whose_answer_was_lost() {
    let harness = Harness::new();
    let (one, two) = (harness.node("one").await, harness.node("two").await);
    define(&one, &harness.admin, chain("held", "hold hold")).await;
    let run = one.start(&harness.admin, "held").await;
    one.until_holding(1).await;
    harness.store.lose_answers(1);
    let began = tokio::time::Instant::now();
    one.tools.permits.add_permits(1);
    one.until_holding(0).await;
    one.until_holding(1).await;
    was_prompt(began);
    one.tools.permits.add_permits(1);
    let view = one.ended(&harness.admin, &run).await;
    assert_eq!((view.status, view.tasks[1].attempt), ("completed", 1));
    assert_eq!(one.tools.called(), ["s0", "s1"]);
    assert!(two.tools.called().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_node_that_has_just_joined_gives_up_no_other() {
    let harness = Harness::new();
    let one = harness.node("one").await;
    define(&one, &harness.admin, chain("held", "hold")).await;
    one.start(&harness.admin, "held").await;
    one.until_holding(1).await;
    one.engine.kill();
    harness.store.give_up(harness.id(&one, "one").await);
    let began = tokio::time::Instant::now();
    let two = harness.node("two").await;
    two.until_holding(1).await;
    assert!(began.elapsed() >= LEASE, "it took {:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn what_a_node_leaves_behind_is_taken_up_soon() {
    let harness = Harness::new();
    let (one, two) = (harness.node("one").await, harness.node("two").await);
    define(&one, &harness.admin, chain("held", "hold")).await;
    let run = one.start(&harness.admin, "held").await;
    one.until_holding(1).await;
    tokio::time::sleep(LEASE * 2).await;
    one.engine.shutdown(Duration::ZERO).await;
    let left = tokio::time::Instant::now();
    two.until_holding(1).await;
    assert!(left.elapsed() < LEASE, "it took {:?}", left.elapsed());
    two.tools.permits.add_permits(1);
    assert_eq!(two.ended(&harness.admin, &run).await.status, "completed");
    assert_eq!(two.engine.nodes(&harness.admin).await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_a_policy_lets_happen_once_is_not_made_again_by_the_node_that_takes_over() {
    for (unknown, ended) in [(UnknownOutcome::Fail, "failed"), (UnknownOutcome::Ask, "paused")] {
        let harness = Harness::new();
        let (one, two) = (harness.node("one").await, harness.node("two").await);
        harness.policy(&one, NewPolicy { at_most_once: Some(unknown), ..allow("tool:hold") }).await;
        define(&one, &harness.admin, chain("held", "hold")).await;
        let run = one.start(&harness.admin, "held").await;
        one.until_holding(1).await;
        harness.store.give_up(harness.id(&one, "one").await);
        one.engine.kill();
        tokio::time::sleep(LEASE * 4).await;
        let view = two.engine.runs(&harness.admin).get(&run).await.unwrap();
        assert_eq!((view.status, view.tasks[0].attempt), (ended, 1), "{view:?}");
        if ended == "failed" {
            assert_eq!(view.tasks[0].error.as_ref().unwrap()["code"], "outcome_unknown", "{view:?}");
        }
        assert!(two.tools.called().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_step_whose_nodes_die_one_after_another_is_quarantined_on_all() {
    let harness = Harness::new();
    let last = harness.node("last").await;
    define(&last, &harness.admin, chain("held", "hold")).await;
    let names = ["one", "two", "three"];
    let run = last.start(&harness.admin, "held").await;
    last.until_holding(1).await;
    let mut node = last;
    for (name, before) in names.iter().zip(["last", "one", "two"]) {
        let next = harness.node(name).await;
        node.engine.kill();
        harness.store.give_up(harness.id(&node, before).await);
        if *name != "three" {
            next.until_holding(1).await;
        }
        node = next;
    }
    let mut commits = node.engine.activity();
    let view = loop {
        let view = node.engine.runs(&harness.admin).get(&run).await.unwrap();
        if view.status == "paused" {
            break view;
        }
        commits.recv().await.unwrap();
    };
    assert_eq!(view.tasks[0].attempt, 3, "{view:?}");
    assert!(view.waiting_for[0].moved_on_by.contains("several times in a row"), "{view:?}");
    tokio::time::sleep(LEASE * 4).await;
    assert!(node.tools.called().is_empty());
    node.engine.steps(&harness.admin).settle(&run, "s0", Verdict::RunAgain).await.unwrap();
    node.until_holding(1).await;
    node.tools.permits.add_permits(1);
    assert_eq!(node.ended(&harness.admin, &run).await.status, "completed");
}

#[tokio::test(start_paused = true)]
async fn orderly_restarts_that_cut_a_step_off_do_not_quarantine_it() {
    let harness = Harness::new();
    let mut node = harness.node("first").await;
    define(&node, &harness.admin, chain("held", "hold")).await;
    let run = node.start(&harness.admin, "held").await;
    for name in ["one", "two", "three", "four"] {
        node.until_holding(1).await;
        let next = harness.node(name).await;
        node.engine.shutdown(Duration::ZERO).await;
        node = next;
    }
    node.until_holding(1).await;
    let view = node.engine.runs(&harness.admin).get(&run).await.unwrap();
    assert_eq!((view.status, view.tasks[0].attempt), ("running", 5), "{view:?}");
    // Two crashes after that are not enough either, and the third is.
    for (name, before) in [("five", "four"), ("six", "five"), ("seven", "six")] {
        node.until_holding(1).await;
        let next = harness.node(name).await;
        node.engine.kill();
        harness.store.give_up(harness.id(&node, before).await);
        node = next;
    }
    let mut commits = node.engine.activity();
    while node.engine.runs(&harness.admin).get(&run).await.unwrap().status != "paused" {
        commits.recv().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_lost_with_its_node_is_in_the_trail_if_a_policy_covers_it() {
    let harness = Harness::new();
    let (one, two) = (harness.node("one").await, harness.node("two").await);
    harness.policy(&one, allow("tool:hold")).await;
    define(&one, &harness.admin, chain("held", "hold")).await;
    let run = one.start(&harness.admin, "held").await;
    one.until_holding(1).await;
    harness.store.give_up(harness.id(&one, "one").await);
    one.engine.kill();
    two.until_holding(1).await;
    two.tools.permits.add_permits(1);
    assert_eq!(two.ended(&harness.admin, &run).await.status, "completed");
    let query = AuditQuery { limit: 100, ..AuditQuery::default() };
    let mut rows = two.engine.audit(&harness.admin).list(query).await.unwrap();
    rows.reverse();
    let calls: Vec<&str> =
        rows.iter().map(|row| &*row.row.action).filter(|action| action.starts_with("call.")).collect();
    assert_eq!(calls, ["call.lost", "call.made"]);
}
