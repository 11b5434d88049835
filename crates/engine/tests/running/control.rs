//! Commands on runs, and limits.

use crate::harness::Harness;
use serde_json::json;
use stepwell_engine::Error;
use stepwell_engine::commands::{Retry, Trigger};
use stepwell_store::{Change, NewDefinition, Store};
use stepwell_testing::TestStore;

const HOLD: &str = r#"{"name": "hold", "tasks": {"wait": {"tool": "hold", "args": {}}}}"#;

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_a_run_stops_the_step_that_is_running() {
    let harness = Harness::new().await;
    harness.define(HOLD).await;
    let run = harness.start("hold", json!({})).await;
    let mut holding = harness.tools.holding.subscribe();
    holding.wait_for(|n| *n == 1).await.unwrap();
    harness.engine.runs(&harness.admin).cancel(&run, Some("enough")).await.unwrap();
    holding.wait_for(|n| *n == 0).await.unwrap();
    let view = harness.ended(&run).await;
    assert_eq!((view.status, view.error.unwrap()["message"].clone()), ("cancelled", json!("enough")));
    let again = harness.engine.runs(&harness.admin).cancel(&run, None).await;
    assert!(matches!(again, Err(Error::Conflict(_))), "{again:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_run_goes_on_where_it_failed_when_it_is_retried() {
    let harness = Harness::new().await;
    harness
        .define(
            r#"{"name": "half", "tasks": {
            "good": {"tool": "add", "args": {"n": 1}},
            "bad": {"needs": ["good"], "tool": "fail", "args": {}}}}"#,
        )
        .await;
    let view = harness.run("half", json!({})).await;
    assert_eq!((view.status, harness.calls()), ("failed", 2));
    harness.engine.runs(&harness.admin).retry(&view.id, Retry::SameVersion).await.unwrap();
    let view = harness.ended(&view.id).await;
    assert_eq!((view.status, view.generation, harness.calls()), ("failed", 1, 3));
    harness
        .define(
            r#"{"name": "half", "tasks": {
            "good": {"tool": "add", "args": {"n": 1}},
            "bad": {"needs": ["good"], "tool": "add", "args": {"n": 1}}}}"#,
        )
        .await;
    let standing = harness.engine.runs(&harness.admin).retry_preview(&view.id, Retry::Newest).await.unwrap();
    assert_eq!((standing.stands, standing.again), (vec!["good".into()], vec!["bad".into()]));
    harness.engine.runs(&harness.admin).retry(&view.id, Retry::Newest).await.unwrap();
    let view = harness.ended(&view.id).await;
    assert_eq!((view.status, view.workflow_version, harness.calls()), ("completed", 2, 4));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_panics_fails_and_affects_nothing_else() {
    let harness = Harness::new().await;
    harness.define(r#"{"name": "broken", "tasks": {"a": {"tool": "panic", "args": {}}}}"#).await;
    let view = harness.run("broken", json!({})).await;
    assert_eq!((view.status, view.tasks[0].error.clone().unwrap()["code"].clone()), ("failed", json!("internal")));
    assert_eq!(harness.run("broken", json!({})).await.status, "failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_of_a_kind_that_this_process_lacks_fails_with_its_code() {
    let place = TestStore::new();
    let store = place.open().await.unwrap();
    let harness = Harness::on(place, store.clone()).await;
    harness.define(r#"{"name": "calls", "tasks": {"a": {"tool": "add"}}}"#).await;
    // A process that has this kind defined the next version.
    let source = r#"{"name": "calls", "tasks": {"a": {"url": "http://127.0.0.1:9", "retries": 0}}}"#;
    next_version(&harness, &*store, "calls", source.into()).await;
    drop(store);
    let harness = harness.restarted_after_a_crash().await;
    let view = harness.run("calls", json!({})).await;
    let error = view.tasks[0].error.clone().unwrap();
    assert_eq!((view.status, &error["code"], view.tasks[0].attempt), ("failed", &json!("unknown_kind"), 1));
    assert!(error["message"].as_str().unwrap().contains("steps of kind http"), "{error}");
}

/// Stores a version without the checks of this process.
async fn next_version(harness: &Harness, store: &dyn Store, name: &str, source: String) {
    let old = harness.engine.workflows(&harness.admin).get(name).await.unwrap();
    let row = NewDefinition {
        workflow: old.row.workflow.clone(),
        org: old.row.org,
        name: name.into(),
        source,
        by: "ann".into(),
        author: "local".into(),
        at: old.row.at,
        test: false,
        after: None,
    };
    let change = Change { grants_of: Some(old.row.org), ..Change::default() };
    store.define(row, change).await.unwrap().unwrap();
}

fn limited(when_full: &str) -> String {
    format!(
        r#"{{"name": "hold", "concurrency": {{"limit": 1, "key": "{{{{input.who}}}}", "when_full": "{when_full}"}},
             "tasks": {{"wait": {{"tool": "hold", "args": {{}}}}}}}}"#
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_over_the_limit_of_its_key_queues_until_there_is_a_place() {
    let harness = Harness::new().await;
    harness.define(&limited("queue")).await;
    let first = harness.start("hold", json!({"who": "ann"})).await;
    let second = harness.start("hold", json!({"who": "ann"})).await;
    let other = harness.start("hold", json!({"who": "bob"})).await;
    harness.until(&other, |view| view.status == "running").await;
    assert_eq!(harness.view(&second).await.status, "queued");
    harness.tools.permits.add_permits(3);
    for run in [first, second, other] {
        assert_eq!(harness.ended(&run).await.status, "completed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_over_the_limit_is_refused_or_takes_the_place_of_the_oldest() {
    let harness = Harness::new().await;
    harness.define(&limited("skip")).await;
    let first = harness.start("hold", json!({"who": "ann"})).await;
    let trigger = Trigger::new("hold", json!({"who": "ann"}));
    assert!(matches!(harness.engine.runs(&harness.admin).trigger(trigger).await, Err(Error::Full)));
    harness.define(&limited("cancel_oldest")).await;
    let second = harness.start("hold", json!({"who": "ann"})).await;
    assert_eq!(harness.ended(&first).await.status, "cancelled");
    harness.tools.permits.add_permits(1);
    assert_eq!(harness.ended(&second).await.status, "completed");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_steps_run_at_a_time_than_there_are_slots() {
    let harness = Harness::with(|config| stepwell_engine::Config { slots: 3, ..config }).await;
    harness.define(HOLD).await;
    let mut runs = Vec::new();
    for _ in 0..10 {
        runs.push(harness.start("hold", json!({})).await);
    }
    for left in (1..=10).rev() {
        harness.tools.until_holding(3.min(left)).await;
        harness.tools.permits.add_permits(1);
    }
    for run in runs {
        assert_eq!(harness.ended(&run).await.status, "completed");
    }
    assert_eq!(harness.tools.most_held(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_that_the_schema_does_not_allow_is_refused_with_its_path() {
    let harness = Harness::new().await;
    harness
        .define(
            r#"{"name": "strict", "input_schema": {"type": "object", "properties": {"n": {"type": "integer"}}},
            "tasks": {"a": {"tool": "add", "args": {"n": "{{input.n}}"}}}}"#,
        )
        .await;
    let trigger = Trigger::new("strict", json!({"n": "one"}));
    match harness.engine.runs(&harness.admin).trigger(trigger).await {
        Err(Error::Inputs(faults)) => {
            let [(path, message)] = faults.as_slice() else { panic!("{faults:?}") };
            assert_eq!(path, "input/n");
            assert!(message.contains("integer"), "{message}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stored_workflow_whose_schema_is_beyond_the_bounds_loads_and_refuses_to_start() {
    let place = TestStore::new();
    let store = place.open().await.unwrap();
    let harness = Harness::on(place, store.clone()).await;
    harness.define(r#"{"name": "old", "tasks": {"a": {"tool": "add"}}}"#).await;
    let defs = (0..600).map(|ix| format!(r##""s{ix}": {{"$ref": "#/$defs/s{}"}}"##, (ix + 1) % 600));
    let schema = format!(r##"{{"$ref": "#/$defs/s0", "$defs": {{{}}}}}"##, defs.collect::<Vec<_>>().join(", "));
    // As a version of the server without bounds would have stored it.
    let source = format!(r#"{{"name": "old", "input_schema": {schema}, "tasks": {{"a": {{"tool": "add"}}}}}}"#);
    next_version(&harness, &*store, "old", source).await;
    drop(store);
    let harness = harness.restarted_after_a_crash().await;
    assert_eq!(harness.engine.workflows(&harness.admin).get("old").await.unwrap().row.version, 2);
    match harness.engine.runs(&harness.admin).trigger(Trigger::new("old", json!({}))).await {
        Err(Error::Definition(faults)) => assert_eq!(faults.list[0].code, "limit-schema", "{faults}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_is_cancelled_with_its_parent() {
    let harness = Harness::new().await;
    harness.define(HOLD).await;
    harness.define(r#"{"name": "parent", "tasks": {"call": {"workflow": "hold", "input": {}}}}"#).await;
    let run = harness.start("parent", json!({})).await;
    let mut holding = harness.tools.holding.subscribe();
    holding.wait_for(|n| *n == 1).await.unwrap();
    harness.engine.runs(&harness.admin).cancel(&run, None).await.unwrap();
    holding.wait_for(|n| *n == 0).await.unwrap();
}
