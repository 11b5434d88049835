//! The engine inside a program, on the store that suites run on.

// In a test a panic is the report.
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};
use std::sync::Arc;
use stepwell_embedded::{Answer, Builder, Call, Engine, Error, RunStatus, ToolError, ToolSpec};
use stepwell_store::Location;
use stepwell_testing::TestStore;
use tokio::sync::Semaphore;

#[path = "../examples/orders.rs"]
mod orders;

async fn open(at: &TestStore, builder: Builder) -> Engine {
    match at.location() {
        Location::Directory(directory) => builder.open(directory).await.unwrap(),
        Location::Postgres(options) => builder.connect(&options.url).await.unwrap(),
    }
}

async fn who(call: Call) -> Result<Value, ToolError> {
    Ok(json!({"user": call.user, "step": call.step, "attempt": call.attempt, "args": *call.args}))
}

#[test]
fn the_example_runs() {
    orders::main().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_is_called_for_the_user_who_started_the_run() {
    let at = TestStore::new();
    let engine = open(&at, Engine::builder().tool("who", who)).await;
    engine
        .define("name: ask\ntasks: {a: {tool: who, args: {n: '{{input.n}}'}}}\noutput: '{{tasks.a.body}}'")
        .await
        .unwrap();
    let run = engine.acting_for("ann").run("ask", json!({"n": 7})).await.unwrap();
    assert_eq!((run.status, run.created_by.as_str()), (RunStatus::Completed, "ann"));
    assert_eq!(run.output, json!({"user": "ann", "step": "a", "attempt": 1, "args": {"n": 7}}));
    assert!(!engine.events(&run.id, 0).await.unwrap().is_empty());
    let (first, again) =
        (engine.start_once("k", "ask", json!({})).await, engine.start_once("k", "ask", json!({})).await);
    assert_eq!(first.unwrap(), again.unwrap());
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_goes_on_in_the_next_process() {
    let at = TestStore::new();
    let definition =
        "name: long\ntasks: {a: {tool: stuck}, ok: {needs: a, approval: {message: Go on?}}, b: {needs: ok, tool: who}}";
    let engine = open(&at, Engine::builder().tool("who", who).tool("stuck", who)).await;
    engine.define(definition).await.unwrap();
    let mut changes = engine.changes();
    let run = engine.start("long", json!({})).await.unwrap();
    while engine.approvals().await.unwrap().is_empty() {
        assert!(changes.next().await);
    }
    engine.shutdown().await;
    drop(engine);
    let engine = open(&at, Engine::builder().tool("who", who).tool("stuck", who)).await;
    engine.acting_for("bob").approve(&run, "ok", Answer::default()).await.unwrap();
    let ended = engine.wait(&run).await.unwrap();
    assert_eq!(ended.status, RunStatus::Completed);
    let refused = engine.cancel(&run, None).await.unwrap_err();
    assert!(matches!(refused, Error::Refused(_)), "{refused}");
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_told_apart() {
    let at = TestStore::new();
    let price = json!({"type": "object", "properties": {"cents": {"type": "integer"}}, "required": ["cents"]});
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let hold = move |_: Call| {
        let held = held.clone();
        async move {
            held.acquire().await?.forget();
            Err::<Value, _>(ToolError::new("empty", "nothing is left"))
        }
    };
    let builder = Engine::builder().tool_with(ToolSpec::new("pay").schema(price), who).tool("hold", hold);
    let engine = open(&at, builder).await;
    let faulty = engine.define("name: x\ntasks: {a: {tool: who, needs: b}}").await.unwrap_err();
    assert!(matches!(&faulty, Error::Invalid(text) if text.contains("no step")), "{faulty}");
    let code = engine.define("name: x\ntasks: {a: {javascript: 'return 1'}}").await.unwrap_err();
    assert!(matches!(&code, Error::Invalid(text) if text.contains("cannot be executed here")), "{code}");
    assert!(matches!(engine.get("run_none").await.unwrap_err(), Error::NotFound(_)));
    engine.define("name: pay\ntasks: {a: {tool: pay, args: {}}}").await.unwrap();
    let run = engine.run("pay", json!({})).await.unwrap();
    assert_eq!((run.status, &run.error.unwrap()["code"]), (RunStatus::Failed, &json!("bad_arguments")));
    engine.define("name: hold\ntasks: {a: {tool: hold, retries: 0}}").await.unwrap();
    let run = engine.start("hold", json!({})).await.unwrap();
    gate.add_permits(1);
    let run = engine.wait(&run).await.unwrap();
    assert_eq!((run.status, &run.error.unwrap()["code"]), (RunStatus::Failed, &json!("empty")));
    assert_eq!(run.steps[0].status, "failed");
    engine.shutdown().await;
}
