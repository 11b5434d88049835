//! Holding the runs of a workflow, all of them or those of one key: nothing is lost, and their order stays.

use crate::rig::{Rig, chain, with};
use serde_json::json;
use stepwell_engine::commands::Trigger;

fn order(rig: &Rig) -> Vec<String> {
    rig.tools.calls.lock().unwrap().iter().map(|(_, run, _)| run.clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn runs_of_a_paused_workflow_wait_and_begin_in_order_when_it_is_resumed() {
    let rig = Rig::new().await;
    rig.define(&rig.admin, chain("w", "hold ok")).await;
    let before = rig.start(&rig.admin, "w").await;
    rig.until_holding(1).await;
    rig.engine.workflows(&rig.admin).pause("w", None).await.unwrap();
    let mut runs = Vec::new();
    for _ in 0..20 {
        runs.push(rig.start(&rig.admin, "w").await);
    }
    rig.tools.permits.add_permits(100);
    assert_eq!(rig.ended(&before).await.status, "completed", "what runs already goes on");
    rig.pass(600).await;
    for run in &runs {
        assert_eq!(rig.view(run).await.status, "queued");
    }
    // It outlives the process.
    rig.engine.kill();
    rig.store.restarted();
    let engine = rig.another().await;
    rig.pass(600).await;
    assert_eq!(rig.called(), 2);
    engine.workflows(&rig.admin).resume("w", None).await.unwrap();
    for run in &runs {
        engine.runs(&rig.admin).wait(run).await.unwrap();
    }
    let first_steps: Vec<String> = order(&rig).into_iter().skip(2).fold(Vec::new(), |mut seen, run| {
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
    let rig = Rig::new().await;
    let concurrency = json!({"limit": 1, "key": "{{input.who}}", "when_full": "queue"});
    rig.define(&rig.admin, with(chain("w", "ok"), "concurrency", concurrency)).await;
    rig.engine.workflows(&rig.admin).pause("w", Some(json!("ann"))).await.unwrap();
    let start = async |who: &str| {
        rig.engine.runs(&rig.admin).trigger(Trigger::new("w", json!({"who": who}))).await.unwrap().run
    };
    let (first, second, bob) = (start("ann").await, start("ann").await, start("bob").await);
    assert_eq!(rig.ended(&bob).await.status, "completed");
    rig.pass(60).await;
    assert_eq!((rig.view(&first).await.status, rig.view(&second).await.status), ("queued", "queued"));
    // Lifting another hold does not lift this one.
    rig.engine.workflows(&rig.admin).resume("w", Some(json!("bob"))).await.unwrap();
    rig.engine.workflows(&rig.admin).resume("w", None).await.unwrap();
    rig.pass(60).await;
    assert_eq!(rig.view(&first).await.status, "queued");
    rig.engine.workflows(&rig.admin).resume("w", Some(json!("ann"))).await.unwrap();
    assert_eq!((rig.ended(&first).await.status, rig.ended(&second).await.status), ("completed", "completed"));
    assert_eq!(order(&rig), [bob, first, second]);
}

#[tokio::test(start_paused = true)]
async fn a_paused_workflow_that_would_skip_or_cancel_queues_all_the_same() {
    for when_full in ["skip", "cancel_oldest"] {
        let rig = Rig::new().await;
        let concurrency = json!({"limit": 5, "when_full": when_full});
        rig.define(&rig.admin, with(chain("w", "ok"), "concurrency", concurrency)).await;
        rig.engine.workflows(&rig.admin).pause("w", None).await.unwrap();
        let mut runs = Vec::new();
        for _ in 0..8 {
            runs.push(rig.start(&rig.admin, "w").await);
        }
        rig.engine.workflows(&rig.admin).resume("w", None).await.unwrap();
        for run in runs {
            assert_eq!(rig.ended(&run).await.status, "completed", "{when_full}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_queue_of_a_workflow_that_is_deleted_while_it_is_paused_is_not_lost() {
    let rig = Rig::new().await;
    rig.define(&rig.admin, chain("w", "ok")).await;
    rig.engine.workflows(&rig.admin).pause("w", None).await.unwrap();
    let run = rig.start(&rig.admin, "w").await;
    rig.engine.workflows(&rig.admin).delete("w").await.unwrap();
    rig.pass(60).await;
    assert_eq!(rig.view(&run).await.status, "completed");
}
