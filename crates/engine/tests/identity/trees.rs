//! Trees of child runs: how many runs one trigger can start, and how children share the places of a plan.

use crate::harness::{Harness, chain, with};
use serde_json::{Value, json};
use std::time::Duration;
use stepwell_engine::commands::{Retry, RunView, Trigger};
use stepwell_engine::{Engine, Error, Limits, Subscription};
use stepwell_store::{OrgId, Registry, Store, descendants};

/// Less than the time between two polls of the store.
const AT_ONCE: Duration = Duration::from_millis(100);

async fn limited(harness: &Harness, limits: Limits) {
    let to = Subscription { plan: None, limits: Some(limits) };
    harness.engine.organisations(&harness.admin).change_plan(OrgId(1), to).await.unwrap();
}

/// Starts as many children as there are items, all at once.
fn parent(name: &str, child: &str, items: usize) -> Value {
    let call = json!({"call": {"workflow": child, "input": {}}});
    let items: Vec<usize> = (0..items).collect();
    json!({"name": name, "tasks": {"each": {"for_each": items, "max_parallel": 100, "tasks": call}}})
}

async fn open(harness: &Harness) -> u64 {
    harness.store.open_runs(OrgId(1)).await.unwrap()
}

/// Whether a step of the run failed with this code.
fn failed_with(view: &RunView, code: &str) -> bool {
    view.tasks.iter().filter_map(|task| task.error.as_ref()).any(|error| error["code"] == code)
}

#[tokio::test(start_paused = true)]
async fn a_workflow_that_calls_itself_ends_at_the_limit_of_descendants() {
    let harness = Harness::new().await;
    harness.define(&harness.admin, parent("bomb", "bomb", 10)).await;
    limited(&harness, Limits { descendants_per_run: Some(60), ..Limits::default() }).await;
    let run = harness.start(&harness.admin, "bomb").await;
    assert_eq!(harness.ended(&run).await.status, "failed");
    while open(&harness).await > 0 {
        harness.pass(1).await;
    }
    let root = harness.store.find_run(&run).await.unwrap().unwrap();
    assert_eq!(harness.store.counted(&descendants(root)).await.unwrap(), 60);
    assert_eq!(harness.runs().await.len(), 61);
    let mut refused = 0;
    for row in harness.runs().await {
        refused += usize::from(failed_with(&harness.view(&row.public).await, "too_many_descendants"));
    }
    assert!(refused > 0);
    // Another root has as many of its own.
    harness.define(&harness.admin, chain("leaf", "ok")).await;
    harness.define(&harness.admin, parent("fine", "leaf", 20)).await;
    let other = harness.start(&harness.admin, "fine").await;
    assert_eq!(harness.ended(&other).await.status, "completed");
}

#[tokio::test(start_paused = true)]
async fn a_plan_cannot_raise_the_server_s_limit_of_descendants() {
    let harness = Harness::with(|mut config| {
        config.plans.descendants_per_run = 5;
        config
    })
    .await;
    harness.define(&harness.admin, chain("leaf", "ok")).await;
    harness.define(&harness.admin, parent("wide", "leaf", 6)).await;
    harness.define(&harness.admin, parent("fits", "leaf", 5)).await;
    limited(&harness, Limits { descendants_per_run: Some(1_000), ..Limits::default() }).await;
    let run = harness.start(&harness.admin, "wide").await;
    let view = harness.ended(&run).await;
    assert!(view.status == "failed" && failed_with(&view, "too_many_descendants"), "{view:?}");
    let run = harness.start(&harness.admin, "fits").await;
    assert_eq!(harness.ended(&run).await.status, "completed");
}

#[tokio::test(start_paused = true)]
async fn a_retry_does_not_reset_the_count_of_descendants() {
    let harness = Harness::new().await;
    harness.define(&harness.admin, chain("bad", "fail")).await;
    harness.define(&harness.admin, parent("root", "bad", 1)).await;
    limited(&harness, Limits { descendants_per_run: Some(2), ..Limits::default() }).await;
    let run = harness.start(&harness.admin, "root").await;
    for code in ["child_failed", "child_failed", "too_many_descendants"] {
        let view = harness.ended(&run).await;
        assert!(failed_with(&view, code), "{view:?}");
        harness.engine.runs(&harness.admin).retry(&run, Retry::SameVersion).await.unwrap();
    }
    assert!(failed_with(&harness.ended(&run).await, "too_many_descendants"));
    assert_eq!(harness.runs().await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_plan_with_one_run_at_a_time_runs_a_tree_one_path_after_the_other() {
    let harness = Harness::new().await;
    harness.define(&harness.admin, chain("leaf", "hold")).await;
    harness.define(&harness.admin, parent("middle", "leaf", 3)).await;
    harness.define(&harness.admin, parent("root", "middle", 3)).await;
    limited(&harness, Limits { concurrent_runs: Some(1), ..Limits::default() }).await;
    let run = harness.start(&harness.admin, "root").await;
    for called in 1..=9 {
        while harness.called() < called {
            harness.pass(1).await;
        }
        // Neither time nor another trigger makes room.
        harness.pass(60).await;
        assert_eq!(open(&harness).await, 3);
        let refused = harness.try_start(&harness.admin, "leaf").await;
        assert!(matches!(refused, Err(Error::Limit { limit: "concurrent_runs", .. })), "{refused:?}");
        harness.tools.permits.add_permits(1);
    }
    assert_eq!(harness.ended(&run).await.status, "completed");
    assert_eq!((harness.runs().await.len(), harness.called()), (13, 9));
}

#[tokio::test(start_paused = true)]
async fn children_fill_the_places_of_the_plan_and_the_others_wait() {
    let harness = Harness::new().await;
    harness.define(&harness.admin, chain("leaf", "hold")).await;
    harness.define(&harness.admin, parent("root", "leaf", 20)).await;
    limited(&harness, Limits { concurrent_runs: Some(5), ..Limits::default() }).await;
    let run = harness.start(&harness.admin, "root").await;
    harness.until_holding(4).await;
    // Between two polls of the store.
    harness.pass(62).await;
    for ended in 0..20 {
        assert_eq!(open(&harness).await, 1 + 4.min(20 - ended));
        harness.tools.permits.add_permits(1);
        // The next one begins at once, not when the store is polled.
        tokio::time::sleep(AT_ONCE).await;
        assert_eq!(harness.called() as u64, (5 + ended).min(20));
    }
    assert_eq!(harness.ended(&run).await.status, "completed");
}

#[tokio::test(start_paused = true)]
async fn two_trees_under_a_full_plan_both_go_on() {
    let harness = Harness::new().await;
    harness.define(&harness.admin, chain("leaf", "ok")).await;
    // The group makes the children wait for each other as well.
    let concurrency = json!({"limit": 1, "when_full": "queue"});
    harness.define(&harness.admin, with(parent("middle", "leaf", 3), "concurrency", concurrency)).await;
    let mut root = parent("root", "middle", 4);
    root["tasks"]["first"] = json!({"tool": "hold", "args": {}});
    root["tasks"]["each"]["needs"] = json!(["first"]);
    harness.define(&harness.admin, root).await;
    limited(&harness, Limits { concurrent_runs: Some(2), ..Limits::default() }).await;
    let runs = [harness.start(&harness.admin, "root").await, harness.start(&harness.admin, "root").await];
    harness.until_holding(2).await;
    harness.tools.permits.add_permits(2);
    for run in &runs {
        assert_eq!(harness.ended(run).await.status, "completed");
    }
    assert_eq!(harness.called(), 2 + 2 * 4 * 3);
}

#[tokio::test(start_paused = true)]
async fn children_that_wait_are_dropped_when_their_parent_is_cancelled() {
    let harness = Harness::new().await;
    harness.define(&harness.admin, chain("leaf", "hold")).await;
    harness.define(&harness.admin, parent("root", "leaf", 90)).await;
    limited(&harness, Limits { concurrent_runs: Some(1), ..Limits::default() }).await;
    let run = harness.start(&harness.admin, "root").await;
    harness.until_holding(1).await;
    harness.engine.runs(&harness.admin).cancel(&run, None).await.unwrap();
    assert_eq!(harness.ended(&run).await.status, "cancelled");
    // Longer than a start may be in flight, and far less than that for each child.
    harness.pass(60).await;
    assert_eq!(open(&harness).await, 0);
    assert_eq!(harness.runs().await.len(), 2);
    assert!(harness.store.outbox(stepwell_core::time::Time(i64::MAX), 0, 10).await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_expired_key_skips_no_check() {
    let harness = Harness::new().await;
    harness.define(&harness.admin, with(chain("w", "ok"), "retention", json!("90d"))).await;
    let trigger = async |engine: &Engine| {
        let trigger = Trigger { key: Some("k"), ..Trigger::new("w", json!({})) };
        engine.runs(&harness.admin).trigger(trigger).await
    };
    let first = trigger(&harness.engine).await.unwrap();
    harness.engine.workflows(&harness.admin).enable("w", false).await.unwrap();
    let again = trigger(&harness.engine).await.unwrap();
    assert_eq!((again.run, again.repeated), (first.run, true));
    harness.engine.kill();
    harness.pass(31 * 24 * 3_600).await;
    harness.store.restarted();
    let engine = harness.another().await;
    let late = trigger(&engine).await;
    assert!(matches!(late, Err(Error::Disabled(_))), "{late:?}");
    assert_eq!(harness.runs().await.len(), 1);
    engine.kill();
}

#[tokio::test(start_paused = true)]
async fn a_queue_behind_a_thousand_others_is_found_after_a_crash() {
    let harness = Harness::new().await;
    let concurrency = json!({"limit": 1, "key": "{{input.n}}", "when_full": "queue"});
    harness.define(&harness.admin, with(chain("stuck", "ok"), "concurrency", concurrency)).await;
    harness.pass(1).await;
    harness.define(&harness.admin, chain("last", "ok")).await;
    for workflow in ["stuck", "last"] {
        harness.engine.workflows(&harness.admin).pause(workflow, None).await.unwrap();
    }
    for n in 0..1_001 {
        let trigger = Trigger::new("stuck", json!({"n": n}));
        harness.engine.runs(&harness.admin).trigger(trigger).await.unwrap();
    }
    let run = harness.start(&harness.admin, "last").await;
    let heads = harness.store.queued(None, 2_000).await.unwrap();
    assert_eq!(heads.last().unwrap().1, harness.store.find_run(&run).await.unwrap().unwrap(), "its queue is the last");
    // The process ends after the workflow was resumed and before its runs were admitted.
    harness.engine.drain();
    harness.engine.workflows(&harness.admin).resume("last", None).await.unwrap();
    harness.engine.kill();
    harness.store.restarted();
    let engine = harness.another().await;
    engine.runs(&harness.admin).wait(&run).await.unwrap();
    assert_eq!(harness.called(), 1);
    engine.kill();
}

#[tokio::test(start_paused = true)]
async fn a_chain_of_children_is_at_most_twenty_deep() {
    let harness = Harness::new().await;
    harness.define(&harness.admin, parent("chain", "chain", 1)).await;
    let run = harness.start(&harness.admin, "chain").await;
    assert_eq!(harness.ended(&run).await.status, "failed");
    let runs = harness.runs().await;
    assert_eq!(runs.len(), 21, "the first run and twenty below it");
    let last = harness.view(&runs[20].public).await;
    let messages: Vec<String> = last.tasks.iter().filter_map(|task| Some(task.error.as_ref()?.to_string())).collect();
    assert!(messages.iter().any(|message| message.contains("nested more than 20 deep")), "{messages:?}");
}
