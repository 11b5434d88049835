//! Overrides, erasing, bulk operations, discarding a test run, labels.

use crate::harness::{Harness, chain, failure, list};
use serde_json::{Value, json};
use stepwell_engine::Error;
use stepwell_engine::commands::{Decision, Override, Retry, RunQuery, Source, Trigger};
use stepwell_store::{OrgId, RunFilter, Store, Version};

fn success(output: Value) -> Override {
    Override { outcome: Ok(output), comment: None }
}

#[tokio::test(start_paused = true)]
async fn a_stuck_step_ends_as_somebody_says_and_the_log_names_them() {
    let harness = Harness::new().await;
    harness.define(&harness.admin, chain("two", "hold ok")).await;
    let run = harness.start(&harness.admin, "two").await;
    harness.until_holding(1).await;
    let comment = Some("seen by phone".to_string());
    let by_hand = Override { comment, ..success(json!({"by": "hand"})) };
    harness.engine.steps(&harness.admin).override_step(&run, "s0", by_hand).await.unwrap();
    // The executor is told to stop.
    harness.until_holding(0).await;
    let view = harness.ended(&run).await;
    assert_eq!((view.status, view.tasks[0].output.clone()), ("completed", Some(json!({"by": "hand"}))));
    let events = harness.engine.runs(&harness.admin).events(&run, 0, 100).await.unwrap().events;
    let said: Vec<&Value> =
        events.iter().map(|event| &event.fact).filter(|fact| fact["type"] == "overridden").collect();
    assert_eq!(said.len(), 1);
    assert_eq!(
        (&said[0]["by"], &said[0]["comment"], &said[0]["step"]),
        (&json!("admin"), &json!("seen by phone"), &json!("s0"))
    );
    let run = harness.start(&harness.admin, "two").await;
    harness.until_holding(1).await;
    let failed = Override { outcome: Err("it never came".into()), comment: None };
    harness.engine.steps(&harness.admin).override_step(&run, "s0", failed).await.unwrap();
    let view = harness.ended(&run).await;
    assert_eq!((view.status, failure(&view)), ("failed", Some("overridden".into())));
    let again = harness.engine.steps(&harness.admin).override_step(&run, "s0", success(json!(1))).await;
    assert!(matches!(again, Err(Error::Conflict(_))), "{again:?}");
}

#[tokio::test(start_paused = true)]
async fn gates_and_steps_that_have_not_begun_are_not_overridden() {
    let harness = Harness::new().await;
    let gated = json!({"name": "gated", "tasks": {
        "gate": {"approval": {"message": "go?"}}, "then": {"needs": ["gate"], "tool": "ok", "args": {}}}});
    harness.define(&harness.admin, gated).await;
    let run = harness.start(&harness.admin, "gated").await;
    let answer = harness.engine.steps(&harness.admin).override_step(&run, "gate", success(json!(1))).await;
    assert!(matches!(answer, Err(Error::Refused(_))), "{answer:?}");
    let answer = harness.engine.steps(&harness.admin).override_step(&run, "then", success(json!(1))).await;
    assert!(matches!(answer, Err(Error::Conflict(_) | Error::NotFound { .. })), "{answer:?}");
    let bob = harness.user("bob", &["workflow.run", "workflow.read", "workflow.approve", "workflow.define"]).await;
    let answer = harness.engine.steps(&bob).override_step(&run, "gate", success(json!(1))).await;
    assert!(matches!(answer, Err(Error::Forbidden { .. })), "{answer:?}");
    assert_eq!((harness.view(&run).await.status, harness.called()), ("paused", 0));
}

#[tokio::test(start_paused = true)]
async fn nothing_that_a_run_was_given_or_gave_back_is_left_when_it_is_erased() {
    let harness = Harness::new().await;
    let all = json!({"name": "all", "output": {"is": "{{tasks.a.body}}"}, "tasks": {
        "a": {"tool": "ok", "args": {"x": "{{input.x}}"}},
        "each": {"needs": ["a"], "for_each": "{{input.list}}", "tasks": {"one": {"tool": "ok", "args": {"x": "{{item}}"}}}},
        "gate": {"needs": ["each"], "approval": {"message": "is {{input.x}} right?"}}}});
    harness.define(&harness.admin, all).await;
    let input = json!({"x": "MARKER-1", "list": ["MARKER-2", "MARKER-3"]});
    let started = harness.engine.runs(&harness.admin).trigger(Trigger::new("all", input)).await.unwrap();
    let (id, run) = (started.id, started.run);
    let early = harness.engine.runs(&harness.admin).erase(&run).await;
    assert!(matches!(early, Err(Error::NotNow(_))), "{early:?}");
    while harness.view(&run).await.status != "paused" {
        harness.pass(1).await;
    }
    let decision = Decision {
        approve: true,
        comment: Some("MARKER-4".into()),
        data: Some(json!({"y": "MARKER-5"})),
        ..Decision::default()
    };
    harness.engine.gates(&harness.admin).answer(&run, "gate", decision).await.unwrap();
    assert_eq!(harness.ended(&run).await.status, "completed");
    let log = harness.store.tail(id, Version(0), 1_000).await.unwrap();
    harness.engine.runs(&harness.admin).erase(&run).await.unwrap();
    assert_eq!(harness.store.tail(id, Version(0), 1_000).await.unwrap(), log);
    let view = harness.view(&run).await;
    assert!(view.erased_at.is_some() && view.input.is_null(), "{view:?}");
    let (loaded, attempts) = (harness.store.load(id).await.unwrap(), harness.store.attempts(id).await.unwrap());
    for (what, text) in
        [("run", format!("{loaded:?}")), ("steps", format!("{attempts:?}")), ("log", format!("{log:?}"))]
    {
        let at = text.find("MARKER");
        let near = at.map(|at| text[at.saturating_sub(120)..(at + 20).min(text.len())].to_string());
        assert_eq!(near, None, "left in the {what}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_erased_run_is_not_taken_up_again() {
    let harness = Harness::new().await;
    harness.define(&harness.admin, chain("bad", "fail")).await;
    let run = harness.start(&harness.admin, "bad").await;
    harness.ended(&run).await;
    harness.engine.runs(&harness.admin).erase(&run).await.unwrap();
    for retry in [Retry::SameVersion, Retry::Newest] {
        let answer = harness.engine.runs(&harness.admin).retry(&run, retry).await;
        assert!(matches!(answer, Err(Error::NotNow(_))), "{answer:?}");
    }
    assert!(matches!(harness.engine.runs(&harness.admin).rerun(&run, None).await, Err(Error::NotNow(_))));
    let bulk = harness.engine.runs(&harness.admin).retry_all(RunQuery::default(), Retry::SameVersion).await.unwrap();
    assert_eq!((bulk.done.len(), bulk.refused.len()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn many_runs_are_cancelled_and_retried_at_once() {
    let harness = Harness::new().await;
    harness.define(&harness.admin, chain("held", "hold")).await;
    let mut runs = Vec::new();
    for n in 0..6 {
        let labels = [("half".to_string(), (n % 2).to_string())].into();
        let trigger = Trigger { labels, ..Trigger::new("held", json!({})) };
        runs.push(harness.engine.runs(&harness.admin).trigger(trigger).await.unwrap().run);
    }
    harness.until_holding(6).await;
    let odd = RunQuery { labels: list(&["half=1"]), ..RunQuery::default() };
    let bulk = harness.engine.runs(&harness.admin).cancel_all(odd.clone(), Some("enough")).await.unwrap();
    assert_eq!((bulk.done.len(), bulk.refused.len(), bulk.more), (3, 0, false));
    harness.until_holding(3).await;
    // Nothing that could be cancelled is asked for: nothing is.
    let none = RunQuery { status: list(&["completed"]), ..RunQuery::default() };
    assert_eq!(harness.engine.runs(&harness.admin).cancel_all(none, None).await.unwrap().done, [""; 0]);
    let bulk = harness.engine.runs(&harness.admin).retry_all(odd, Retry::SameVersion).await.unwrap();
    assert_eq!((bulk.done.len(), bulk.refused.len()), (3, 0));
    harness.until_holding(6).await;
    harness.tools.permits.add_permits(6);
    for run in runs {
        assert_eq!(harness.ended(&run).await.status, "completed");
    }
}

#[tokio::test(start_paused = true)]
async fn discarding_a_running_test_leaves_nothing_of_it() {
    let harness = Harness::new().await;
    harness.define(&harness.admin, chain("child", "hold")).await;
    let real = harness.start(&harness.admin, "child").await;
    harness.until_holding(1).await;
    let before = harness.store.stats(true).await.unwrap().rows;
    let text = json!({"name": "tried", "tasks": {
        "call": {"workflow": "child", "input": {}}, "wait": {"tool": "hold", "args": {}},
        "nap": {"sleep": "1h"}, "gate": {"approval": {"message": "go?"}}}})
    .to_string();
    let test = harness.engine.runs(&harness.admin).test(Source { text: &text, file: None }, json!({})).await.unwrap();
    harness.until_holding(3).await;
    harness.engine.runs(&harness.admin).discard(&test.run).await.unwrap();
    harness.until_holding(1).await;
    assert!(matches!(harness.engine.runs(&harness.admin).get(&test.run).await, Err(Error::NotFound { .. })));
    harness.pass(10).await;
    let tests = harness.store.runs(RunFilter { tests: true, ..RunFilter::all(OrgId(1), 10) }).await.unwrap();
    assert!(tests.is_empty(), "the child of the test is still there: {tests:?}");
    let left = harness.store.stats(true).await.unwrap().rows;
    let but_audit =
        |rows: Vec<(String, u64)>| rows.into_iter().filter(|(table, _)| table != "audit").collect::<Vec<_>>();
    assert_eq!(but_audit(left), but_audit(before));
    let answer = harness.engine.runs(&harness.admin).discard(&real).await;
    assert!(matches!(answer, Err(Error::NotNow(_))), "{answer:?}");
}

#[tokio::test(start_paused = true)]
async fn labels_come_from_the_workflow_and_the_run_and_can_be_changed() {
    let harness = Harness::new().await;
    let labels = json!({"team": "a", "env": "test"});
    harness.define(&harness.admin, crate::harness::with(chain("w", "ok"), "labels", labels)).await;
    let own = [("env".to_string(), "prod".to_string())].into();
    let trigger = Trigger { labels: own, ..Trigger::new("w", json!({})) };
    let run = harness.engine.runs(&harness.admin).trigger(trigger).await.unwrap().run;
    assert_eq!(harness.ended(&run).await.labels, ["env=prod", "team=a"]);
    harness.engine.runs(&harness.admin).label(&run, &[("x".to_string(), "1=2".to_string())].into()).await.unwrap();
    let found = harness
        .engine
        .runs(&harness.admin)
        .list(RunQuery { labels: list(&["x=1=2"]), ..RunQuery::default() })
        .await
        .unwrap();
    assert_eq!(found.len(), 1);
    for (name, value) in [("", "1"), ("a=b", "1"), ("a", "1\n2"), ("a\nb", "1")] {
        let answer =
            harness.engine.runs(&harness.admin).label(&run, &[(name.to_string(), value.to_string())].into()).await;
        assert!(matches!(answer, Err(Error::Input { .. })), "{name:?} {value:?} {answer:?}");
    }
}

/// A failed run of a workflow that was deleted, whose name another one has now; the ids of both.
async fn deleted(harness: &Harness) -> (String, String, String) {
    let first = harness.define(&harness.admin, chain("name", "fail")).await;
    let run = harness.start(&harness.admin, "name").await;
    harness.ended(&run).await;
    harness.engine.workflows(&harness.admin).delete("name").await.unwrap();
    let second = harness.define(&harness.admin, chain("name", "ok")).await;
    assert_ne!(first, second);
    (run, first, second)
}

#[tokio::test(start_paused = true)]
async fn a_run_is_not_retried_onto_another_workflow_that_has_its_name_now() {
    let harness = Harness::new().await;
    let (run, first, _) = deleted(&harness).await;
    let _ = harness.engine.runs(&harness.admin).retry(&run, Retry::Newest).await;
    assert_eq!(harness.view(&run).await.workflow_id, first);
}

#[tokio::test(start_paused = true)]
async fn a_rerun_does_not_start_another_workflow_that_has_the_name_now() {
    let harness = Harness::new().await;
    let (run, _, _) = deleted(&harness).await;
    let again = harness.engine.runs(&harness.admin).rerun(&run, None).await;
    assert!(again.is_err(), "{again:?}");
}

#[tokio::test(start_paused = true)]
async fn runs_of_a_deleted_workflow_are_listed_by_its_id() {
    let harness = Harness::new().await;
    let (run, first, second) = deleted(&harness).await;
    let of = |workflow: &str| RunQuery { workflow: Some(workflow.into()), limit: 10, ..RunQuery::default() };
    assert!(harness.engine.runs(&harness.admin).list(of(&second)).await.unwrap().is_empty());
    let listed = harness.engine.runs(&harness.admin).list(of(&first)).await.unwrap();
    assert_eq!(listed.into_iter().map(|row| row.public).collect::<Vec<_>>(), [run]);
}
