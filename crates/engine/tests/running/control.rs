//! What people do to runs, and the limits that hold them back.

use crate::rig::Rig;
use serde_json::json;
use stepwell_engine::Error;
use stepwell_engine::commands::{Retry, Trigger};

const HOLD: &str = r#"{"name": "hold", "tasks": {"wait": {"tool": "hold", "args": {}}}}"#;

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_a_run_stops_the_step_that_is_running() {
    let rig = Rig::new().await;
    rig.define(HOLD).await;
    let run = rig.start("hold", json!({})).await;
    let mut holding = rig.tools.holding.subscribe();
    holding.wait_for(|n| *n == 1).await.unwrap();
    rig.engine.runs(&rig.caller).cancel(&run, Some("enough")).await.unwrap();
    holding.wait_for(|n| *n == 0).await.unwrap();
    let view = rig.ended(&run).await;
    assert_eq!((view.status, view.error.unwrap()["message"].clone()), ("cancelled", json!("enough")));
    let again = rig.engine.runs(&rig.caller).cancel(&run, None).await;
    assert!(matches!(again, Err(Error::Conflict(_))), "{again:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_run_goes_on_where_it_failed_when_it_is_retried() {
    let rig = Rig::new().await;
    rig.define(
        r#"{"name": "half", "tasks": {
            "good": {"tool": "add", "args": {"n": 1}},
            "bad": {"needs": ["good"], "tool": "fail", "args": {}}}}"#,
    )
    .await;
    let view = rig.run("half", json!({})).await;
    assert_eq!((view.status, rig.calls()), ("failed", 2));
    rig.engine.runs(&rig.caller).retry(&view.id, Retry::SameVersion).await.unwrap();
    let view = rig.ended(&view.id).await;
    assert_eq!((view.status, view.generation, rig.calls()), ("failed", 1, 3));
    rig.define(
        r#"{"name": "half", "tasks": {
            "good": {"tool": "add", "args": {"n": 1}},
            "bad": {"needs": ["good"], "tool": "add", "args": {"n": 1}}}}"#,
    )
    .await;
    let standing = rig.engine.runs(&rig.caller).retry_preview(&view.id).await.unwrap();
    assert_eq!((standing.stands, standing.again), (vec!["good".into()], vec!["bad".into()]));
    rig.engine.runs(&rig.caller).retry(&view.id, Retry::Newest).await.unwrap();
    let view = rig.ended(&view.id).await;
    assert_eq!((view.status, view.workflow_version, rig.calls()), ("completed", 2, 4));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_breaks_down_fails_and_takes_nobody_with_it() {
    let rig = Rig::new().await;
    rig.define(r#"{"name": "broken", "tasks": {"a": {"tool": "panic", "args": {}}}}"#).await;
    let view = rig.run("broken", json!({})).await;
    assert_eq!((view.status, view.tasks[0].error.clone().unwrap()["code"].clone()), ("failed", json!("internal")));
    assert_eq!(rig.run("broken", json!({})).await.status, "failed");
}

fn limited(when_full: &str) -> String {
    format!(
        r#"{{"name": "hold", "concurrency": {{"limit": 1, "key": "{{{{input.who}}}}", "when_full": "{when_full}"}},
             "tasks": {{"wait": {{"tool": "hold", "args": {{}}}}}}}}"#
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_over_the_limit_of_its_key_queues_until_there_is_a_place() {
    let rig = Rig::new().await;
    rig.define(&limited("queue")).await;
    let first = rig.start("hold", json!({"who": "ann"})).await;
    let second = rig.start("hold", json!({"who": "ann"})).await;
    let other = rig.start("hold", json!({"who": "bob"})).await;
    rig.until(&other, |view| view.status == "running").await;
    assert_eq!(rig.view(&second).await.status, "queued");
    rig.tools.permits.add_permits(3);
    for run in [first, second, other] {
        assert_eq!(rig.ended(&run).await.status, "completed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_over_the_limit_is_refused_or_takes_the_place_of_the_oldest() {
    let rig = Rig::new().await;
    rig.define(&limited("skip")).await;
    let first = rig.start("hold", json!({"who": "ann"})).await;
    let trigger = Trigger::new("hold", json!({"who": "ann"}));
    assert!(matches!(rig.engine.runs(&rig.caller).trigger(trigger).await, Err(Error::Full)));
    rig.define(&limited("cancel_oldest")).await;
    let second = rig.start("hold", json!({"who": "ann"})).await;
    assert_eq!(rig.ended(&first).await.status, "cancelled");
    rig.tools.permits.add_permits(1);
    assert_eq!(rig.ended(&second).await.status, "completed");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_steps_run_at_a_time_than_there_are_slots() {
    let rig = Rig::with(|config| stepwell_engine::Config { slots: 3, ..config }).await;
    rig.define(HOLD).await;
    let mut runs = Vec::new();
    for _ in 0..10 {
        runs.push(rig.start("hold", json!({})).await);
    }
    let mut holding = rig.tools.holding.subscribe();
    for left in (1..=10).rev() {
        let running = *holding.wait_for(|n| *n == 3.min(left)).await.unwrap();
        assert!(running <= 3);
        rig.tools.permits.add_permits(1);
    }
    for run in runs {
        assert_eq!(rig.ended(&run).await.status, "completed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_that_the_schema_does_not_allow_is_refused_with_its_path() {
    let rig = Rig::new().await;
    rig.define(
        r#"{"name": "strict", "input_schema": {"type": "object", "properties": {"n": {"type": "integer"}}},
            "tasks": {"a": {"tool": "add", "args": {"n": "{{input.n}}"}}}}"#,
    )
    .await;
    let trigger = Trigger::new("strict", json!({"n": "one"}));
    match rig.engine.runs(&rig.caller).trigger(trigger).await {
        Err(Error::Inputs(faults)) => {
            let [(path, message)] = faults.as_slice() else { panic!("{faults:?}") };
            assert_eq!(path, "input/n");
            assert!(message.contains("integer"), "{message}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_is_cancelled_with_its_parent() {
    let rig = Rig::new().await;
    rig.define(HOLD).await;
    rig.define(r#"{"name": "parent", "tasks": {"call": {"workflow": "hold", "input": {}}}}"#).await;
    let run = rig.start("parent", json!({})).await;
    let mut holding = rig.tools.holding.subscribe();
    holding.wait_for(|n| *n == 1).await.unwrap();
    rig.engine.runs(&rig.caller).cancel(&run, None).await.unwrap();
    holding.wait_for(|n| *n == 0).await.unwrap();
}
