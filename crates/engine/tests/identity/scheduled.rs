//! Runs that begin later, and schedules that users add to a workflow: on time, once, with the rights of their owner, and
//! within the plan.

use crate::harness::{Harness, chain, with};
use serde_json::{Value, json};
use stepwell_core::time::Millis;
use stepwell_engine::commands::{Retry, Trigger, When};
use stepwell_engine::{Caller, Error, Limits, Subscription};
use stepwell_store::OrgId;

/// Starts a run that begins after so many seconds.
async fn later(harness: &Harness, caller: &Caller, workflow: &str, seconds: u64) -> Result<String, Error> {
    let when = Some(When::After(Millis::from_secs(seconds)));
    let started = harness.engine.runs(caller).trigger(Trigger { when, ..Trigger::new(workflow, json!({})) }).await?;
    assert_eq!((started.status.as_str(), started.scheduled.is_some()), ("scheduled", true));
    Ok(started.run)
}

async fn status(harness: &Harness, run: &str) -> &'static str {
    harness.engine.runs(&harness.admin).get(run).await.unwrap().status
}

async fn plan(harness: &Harness, limits: Limits) {
    let to = Subscription { plan: None, limits: Some(limits) };
    harness.engine.organisations(&harness.admin).change_plan(OrgId(1), to).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_scheduled_run_begins_at_its_time_on_whichever_engine_is_there() {
    let harness = Harness::new().await;
    harness.define(&harness.admin, chain("one", "ok")).await;
    let run = later(&harness, &harness.admin, "one", 3_600).await.unwrap();
    // It runs under the version that was there when it was scheduled.
    harness.define(&harness.admin, chain("one", "ok ok")).await;
    harness.pass(1_800).await;
    let view = harness.engine.runs(&harness.admin).get(&run).await.unwrap();
    assert_eq!((view.status, view.started_at, view.tasks.len()), ("scheduled", None, 0));
    assert_eq!(serde_json::to_value(view.waiting_for[0].what).unwrap(), "start");
    assert_eq!(view.waiting_for[0].until, view.scheduled_for);
    harness.engine.kill();
    harness.store.restarted();
    let next = harness.another().await;
    harness.pass(1_750).await;
    assert_eq!(harness.called(), 0, "it is early");
    harness.pass(60).await;
    let view = next.runs(&harness.admin).get(&run).await.unwrap();
    assert_eq!((view.status, harness.called()), ("completed", 1));
    assert!(view.started_at >= view.scheduled_for, "{view:?}");
    let events = next.runs(&harness.admin).events(&run, 0, 100).await.unwrap().events;
    let types: Vec<&str> = events.iter().filter_map(|event| event.fact["type"].as_str()).take(4).collect();
    assert_eq!(types, ["created", "scheduled", "due", "started"]);
    next.kill();
}

#[tokio::test(start_paused = true)]
async fn a_scheduled_run_is_cancelled_before_its_time_and_begins_at_once_when_retried() {
    let harness = Harness::new().await;
    harness.define(&harness.admin, chain("one", "ok")).await;
    let run = later(&harness, &harness.admin, "one", 60).await.unwrap();
    harness.engine.runs(&harness.admin).cancel(&run, None).await.unwrap();
    harness.pass(120).await;
    assert_eq!((status(&harness, &run).await, harness.called()), ("cancelled", 0));
    harness.engine.runs(&harness.admin).retry(&run, Retry::SameVersion).await.unwrap();
    assert_eq!(harness.ended(&run).await.status, "completed");
}

#[tokio::test(start_paused = true)]
async fn a_repeated_request_finds_its_scheduled_run_and_one_for_another_time_is_another() {
    let harness = Harness::new().await;
    harness.define(&harness.admin, chain("one", "ok")).await;
    let trigger = async |seconds| {
        let when = Some(When::After(Millis::from_secs(seconds)));
        let trigger = Trigger { when, key: Some("k"), ..Trigger::new("one", json!({})) };
        harness.engine.runs(&harness.admin).trigger(trigger).await
    };
    let first = trigger(60).await.unwrap();
    harness.pass(5).await;
    let again = trigger(60).await.unwrap();
    assert_eq!((again.repeated, &again.run, again.scheduled), (true, &first.run, first.scheduled));
    assert!(matches!(trigger(90).await, Err(Error::KeyReused(_))));
    let far = trigger(6 * 366 * 86_400).await;
    assert!(matches!(&far, Err(Error::Input { path, .. }) if path == "delay"), "{far:?}");
}

#[tokio::test(start_paused = true)]
async fn a_scheduled_run_takes_no_place_of_the_plan_until_it_is_due_and_then_waits_for_one() {
    let harness = Harness::new().await;
    harness.define(&harness.admin, chain("held", "hold")).await;
    harness.define(&harness.admin, chain("one", "ok")).await;
    plan(&harness, Limits { concurrent_runs: Some(1), ..Limits::default() }).await;
    let runs = [later(&harness, &harness.admin, "one", 10).await, later(&harness, &harness.admin, "one", 10).await];
    harness.start(&harness.admin, "held").await;
    harness.until_holding(1).await;
    harness.pass(60).await;
    for run in &runs {
        assert_eq!(status(&harness, run.as_ref().unwrap()).await, "scheduled");
    }
    harness.tools.permits.add_permits(1);
    for run in &runs {
        assert_eq!(harness.ended(run.as_ref().unwrap()).await.status, "completed");
    }
    for _ in 0..100 {
        later(&harness, &harness.admin, "one", 1_000).await.unwrap();
    }
    let more = later(&harness, &harness.admin, "one", 1_000).await;
    assert!(matches!(more, Err(Error::Limit { limit: "scheduled_runs", .. })), "{more:?}");
}

#[tokio::test(start_paused = true)]
async fn a_due_run_waits_while_its_workflow_is_paused_or_disabled_or_full() {
    let harness = Harness::new().await;
    harness.define(&harness.admin, chain("one", "ok")).await;
    let held = with(chain("held", "hold"), "concurrency", json!(1));
    harness.define(&harness.admin, held).await;
    let workflows = || harness.engine.workflows(&harness.admin);
    workflows().pause("one", None).await.unwrap_or_else(|error| panic!("{error}"));
    let run = later(&harness, &harness.admin, "one", 10).await.unwrap();
    harness.pass(30).await;
    let view = harness.engine.runs(&harness.admin).get(&run).await.unwrap();
    assert_eq!((view.status, view.waiting_for[0].moved_on_by.contains("paused")), ("scheduled", true));
    workflows().resume("one", None).await.unwrap();
    assert_eq!(harness.ended(&run).await.status, "completed");
    let run = later(&harness, &harness.admin, "one", 10).await.unwrap();
    workflows().enable("one", false).await.unwrap();
    harness.pass(30).await;
    assert_eq!(status(&harness, &run).await, "scheduled");
    workflows().enable("one", true).await.unwrap();
    assert_eq!(harness.ended(&run).await.status, "completed");
    let run = later(&harness, &harness.admin, "held", 10).await.unwrap();
    harness.start(&harness.admin, "held").await;
    harness.until_holding(1).await;
    harness.pass(30).await;
    assert_eq!(status(&harness, &run).await, "queued");
    harness.tools.permits.add_permits(2);
    assert_eq!(harness.ended(&run).await.status, "completed");
}

fn every_minute(more: Value) -> Value {
    let mut written = json!({"cron": "* * * * *"});
    written.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    written
}

#[tokio::test(start_paused = true)]
async fn a_schedule_that_a_user_added_runs_as_that_user_and_outlives_versions() {
    let harness = Harness::new().await;
    let bob = harness.user("bob", &["workflow.run", "tool:*"]).await;
    let eve = harness.user("eve", &["workflow.run"]).await;
    harness.define(&harness.admin, chain("one", "ok")).await;
    let added = harness.engine.workflows(&bob).add_schedule("one", &every_minute(json!({}))).await.unwrap();
    assert_eq!(added.by.as_deref(), Some("bob"));
    harness.pass(90).await;
    harness.define(&harness.admin, chain("one", "ok ok")).await;
    harness.pass(60).await;
    let by: Vec<String> = harness.runs().await.into_iter().map(|row| row.by).collect();
    assert_eq!(by, ["bob", "bob"]);
    let listed = harness.engine.workflows(&harness.admin).schedules().await.unwrap();
    assert_eq!((listed.len(), &listed[0].id, listed[0].next.len()), (1, &added.id, 10));
    // Without the right, a time starts nothing and says why.
    harness.grant("bob", &[]).await;
    harness.pass(60).await;
    let listed = harness.engine.workflows(&harness.admin).schedule("one").await.unwrap();
    assert_eq!(harness.runs().await.len(), 2);
    assert!(listed[0].last_error.is_some(), "{listed:?}");
    let refused = harness.engine.workflows(&eve).remove_schedule(&added.id).await;
    assert!(matches!(refused, Err(Error::Forbidden { .. })), "{refused:?}");
    harness.engine.workflows(&harness.admin).remove_schedule(&added.id).await.unwrap();
    assert!(harness.engine.workflows(&harness.admin).schedules().await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_is_no_schedule_or_not_in_the_plan_is_refused_and_a_trigger_is_not_removed() {
    let harness = Harness::new().await;
    harness.define(&harness.admin, with(chain("one", "ok"), "trigger", json!([every_minute(json!({}))]))).await;
    let workflows = || harness.engine.workflows(&harness.admin);
    for wrong in [json!({"cron": "99 * * * *"}), every_minute(json!({"overlap": "maybe"})), json!({"webhook": true})] {
        let refused = workflows().add_schedule("one", &wrong).await;
        assert!(matches!(refused, Err(Error::Definition(_) | Error::Input { .. })), "{wrong}: {refused:?}");
    }
    let of_definition = workflows().schedules().await.unwrap().remove(0);
    assert_eq!(of_definition.by, None);
    assert!(matches!(workflows().remove_schedule(&of_definition.id).await, Err(Error::Input { .. })));
    assert!(matches!(workflows().remove_schedule("wf_x.sch_x").await, Err(Error::NotFound { .. })));
    plan(&harness, Limits { no_cron: true, ..Limits::default() }).await;
    let refused = workflows().add_schedule("one", &every_minute(json!({}))).await;
    assert!(matches!(refused, Err(Error::Limit { .. })), "{refused:?}");
}
