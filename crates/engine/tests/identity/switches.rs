//! Pausing a workflow or one concurrency key: no run is lost, and their order is kept.

use crate::harness::{Harness, chain, with};
use serde_json::json;
use stepwell_engine::commands::Trigger;

fn order(harness: &Harness) -> Vec<String> {
    harness.tools.calls().into_iter().map(|call| call.run).collect()
}

#[tokio::test(start_paused = true)]
async fn runs_of_a_paused_workflow_wait_and_begin_in_order_when_it_is_resumed() {
    let harness = Harness::new().await;
    harness.define(&harness.admin, chain("w", "hold ok")).await;
    let before = harness.start(&harness.admin, "w").await;
    harness.until_holding(1).await;
    harness.engine.workflows(&harness.admin).pause("w", None).await.unwrap();
    let mut runs = Vec::new();
    for _ in 0..20 {
        runs.push(harness.start(&harness.admin, "w").await);
    }
    harness.tools.permits.add_permits(100);
    assert_eq!(harness.ended(&before).await.status, "completed", "what runs already goes on");
    harness.pass(600).await;
    for run in &runs {
        assert_eq!(harness.view(run).await.status, "queued");
    }
    // It outlives the process.
    harness.engine.kill();
    harness.store.restarted();
    let engine = harness.another().await;
    harness.pass(600).await;
    assert_eq!(harness.called(), 2);
    engine.workflows(&harness.admin).resume("w", None).await.unwrap();
    for run in &runs {
        engine.runs(&harness.admin).wait(run).await.unwrap();
    }
    let first_steps: Vec<String> = order(&harness).into_iter().skip(2).fold(Vec::new(), |mut seen, run| {
        if !seen.contains(&run) {
            seen.push(run);
        }
        seen
    });
    assert_eq!(first_steps, runs);
    engine.kill();
}

#[tokio::test(start_paused = true)]
async fn one_key_is_held_and_the_others_go_on() {
    let harness = Harness::new().await;
    let concurrency = json!({"limit": 1, "key": "{{input.who}}", "when_full": "queue"});
    harness.define(&harness.admin, with(chain("w", "ok"), "concurrency", concurrency)).await;
    harness.engine.workflows(&harness.admin).pause("w", Some(json!("ann"))).await.unwrap();
    let start = async |who: &str| {
        harness.engine.runs(&harness.admin).trigger(Trigger::new("w", json!({"who": who}))).await.unwrap().run
    };
    let (first, second, bob) = (start("ann").await, start("ann").await, start("bob").await);
    assert_eq!(harness.ended(&bob).await.status, "completed");
    harness.pass(60).await;
    assert_eq!((harness.view(&first).await.status, harness.view(&second).await.status), ("queued", "queued"));
    // Lifting another hold does not lift this one.
    harness.engine.workflows(&harness.admin).resume("w", Some(json!("bob"))).await.unwrap();
    harness.engine.workflows(&harness.admin).resume("w", None).await.unwrap();
    harness.pass(60).await;
    assert_eq!(harness.view(&first).await.status, "queued");
    harness.engine.workflows(&harness.admin).resume("w", Some(json!("ann"))).await.unwrap();
    assert_eq!((harness.ended(&first).await.status, harness.ended(&second).await.status), ("completed", "completed"));
    assert_eq!(order(&harness), [bob, first, second]);
}

#[tokio::test(start_paused = true)]
async fn a_paused_workflow_that_would_skip_or_cancel_queues_all_the_same() {
    for when_full in ["skip", "cancel_oldest"] {
        let harness = Harness::new().await;
        let concurrency = json!({"limit": 5, "when_full": when_full});
        harness.define(&harness.admin, with(chain("w", "ok"), "concurrency", concurrency)).await;
        harness.engine.workflows(&harness.admin).pause("w", None).await.unwrap();
        let mut runs = Vec::new();
        for _ in 0..8 {
            runs.push(harness.start(&harness.admin, "w").await);
        }
        harness.engine.workflows(&harness.admin).resume("w", None).await.unwrap();
        for run in runs {
            assert_eq!(harness.ended(&run).await.status, "completed", "{when_full}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_queue_of_a_workflow_that_is_deleted_while_it_is_paused_is_not_lost() {
    let harness = Harness::new().await;
    harness.define(&harness.admin, chain("w", "ok")).await;
    harness.engine.workflows(&harness.admin).pause("w", None).await.unwrap();
    let run = harness.start(&harness.admin, "w").await;
    harness.engine.workflows(&harness.admin).delete("w").await.unwrap();
    harness.pass(60).await;
    assert_eq!(harness.view(&run).await.status, "completed");
}
