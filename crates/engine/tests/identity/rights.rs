//! Rights at the moment of a step: of the user who started the run, of the version's author, and of those above a child.

use crate::harness::{Harness, chain, failure, list};
use serde_json::json;
use stepwell_engine::Error;
use stepwell_engine::commands::UserChange;

const RUNNER: [&str; 4] = ["workflow.run", "workflow.read", "tool:hold", "tool:ok"];

/// Lets the first step of a run begin, does something, and sees how the run ends.
async fn between(harness: &Harness, run: &str, change: impl Future<Output = ()>) -> (&'static str, Option<String>) {
    harness.until_holding(1).await;
    change.await;
    harness.tools.permits.add_permits(1);
    let view = harness.ended(run).await;
    (view.status, failure(&view))
}

fn forbidden() -> (&'static str, Option<String>) {
    ("failed", Some("forbidden".into()))
}

#[tokio::test(start_paused = true)]
async fn a_right_that_is_taken_away_between_two_steps_fails_the_next() {
    let harness = Harness::new().await;
    harness.define(&harness.admin, chain("two", "hold ok")).await;
    let ann = harness.user("ann", &RUNNER).await;
    let run = harness.start(&ann, "two").await;
    assert_eq!(between(&harness, &run, async {}).await, ("completed", None));
    let run = harness.start(&ann, "two").await;
    assert_eq!(between(&harness, &run, harness.grant("ann", &RUNNER[..3])).await, forbidden());
    assert_eq!(harness.called(), 3, "the forbidden call was never made");
    harness.grant("ann", &RUNNER).await;
    let run = harness.start(&ann, "two").await;
    assert_eq!(between(&harness, &run, harness.grant("ann", &RUNNER[1..])).await, forbidden(), "workflow.run");
    harness.grant("ann", &RUNNER).await;
    let run = harness.start(&ann, "two").await;
    let disable = async { harness.engine.users(&harness.admin).disable("ann").await.unwrap() };
    assert_eq!(between(&harness, &run, disable).await, forbidden());
}

#[tokio::test(start_paused = true)]
async fn a_right_that_came_by_a_role_goes_with_it() {
    let harness = Harness::new().await;
    harness.define(&harness.admin, chain("two", "hold ok")).await;
    let all = RUNNER.map(String::from).to_vec();
    harness.engine.roles(&harness.admin).put("crew", all.clone()).await.unwrap();
    harness.user("ann", &[]).await;
    let roles = UserChange { roles: Some(vec!["crew".into()]), ..UserChange::default() };
    harness.engine.users(&harness.admin).change("ann", roles).await.unwrap();
    let ann = harness.person("ann").await;
    let run = harness.start(&ann, "two").await;
    let narrow = async { drop(harness.engine.roles(&harness.admin).put("crew", all[..3].to_vec()).await.unwrap()) };
    assert_eq!(between(&harness, &run, narrow).await, forbidden());
}

#[tokio::test(start_paused = true)]
async fn the_author_s_rights_count_too() {
    let harness = Harness::new().await;
    let bob = harness.user("bob", &["workflow.define", "tool:hold", "tool:ok"]).await;
    harness.define(&bob, chain("two", "hold ok")).await;
    let run = harness.start(&harness.admin, "two").await;
    assert_eq!(between(&harness, &run, harness.grant("bob", &["workflow.define", "tool:hold"])).await, forbidden());
    // A version by an author with the right works.
    harness.define(&harness.admin, json!({"name": "two", "tasks": {"a": {"tool": "ok", "args": {}}}})).await;
    let run = harness.start(&harness.admin, "two").await;
    assert_eq!(harness.ended(&run).await.status, "completed");
}

#[tokio::test(start_paused = true)]
async fn a_child_is_limited_by_the_author_of_its_parent() {
    let harness = Harness::new().await;
    harness.define(&harness.admin, chain("child", "ok")).await;
    let parent = |name: &str| json!({"name": name, "tasks": {"call": {"workflow": "child", "input": {}}}});
    let bob = harness.user("bob", &["workflow.define", "workflow.run"]).await;
    harness.define(&bob, parent("narrow")).await;
    harness.define(&harness.admin, parent("wide")).await;
    let run = harness.start(&harness.admin, "wide").await;
    assert_eq!(harness.ended(&run).await.status, "completed");
    let run = harness.start(&harness.admin, "narrow").await;
    assert_eq!((harness.ended(&run).await.status, harness.called()), ("failed", 1));
    let child = harness.runs().await.pop().unwrap();
    assert_eq!(failure(&harness.view(&child.public).await), Some("forbidden".into()));
    // And by the user who started the parent, at any depth.
    harness
        .define(&harness.admin, json!({"name": "above", "tasks": {"call": {"workflow": "wide", "input": {}}}}))
        .await;
    let ann = harness.user("ann", &["workflow.run"]).await;
    let run = harness.start(&ann, "above").await;
    assert_eq!((harness.ended(&run).await.status, harness.called()), ("failed", 1));
}

#[tokio::test(start_paused = true)]
async fn what_a_key_started_stays_within_the_key() {
    let harness = Harness::new().await;
    harness.define(&harness.admin, chain("two", "hold ok")).await;
    let (id, secret) = harness.key("admin", Some(&["workflow.run", "tool:hold"])).await;
    let narrow = harness.engine.identity().authenticate(&secret).await.unwrap();
    let run = harness.start(&narrow, "two").await;
    assert_eq!(between(&harness, &run, async {}).await, forbidden());
    let (wide, secret) = harness.key("admin", Some(&RUNNER)).await;
    let caller = harness.engine.identity().authenticate(&secret).await.unwrap();
    let run = harness.start(&caller, "two").await;
    // A revoked key starts nothing; runs that it started continue.
    let revoke = async { harness.engine.keys(&harness.admin).revoke(&wide).await.unwrap() };
    assert_eq!(between(&harness, &run, revoke).await, ("completed", None));
    assert_ne!(id, wide);
}

#[tokio::test(start_paused = true)]
async fn a_schedule_written_with_a_narrow_key_has_only_the_key_s_rights() {
    let harness = Harness::new().await;
    let (_, secret) = harness.key("admin", Some(&["workflow.define", "workflow.run", "tool:hold"])).await;
    let narrow = harness.engine.identity().authenticate(&secret).await.unwrap();
    let cron = json!([{"cron": "* * * * *"}]);
    harness.define(&narrow, crate::harness::with(chain("tick", "ok"), "trigger", cron)).await;
    harness.pass(61).await;
    let run = harness.runs().await.remove(0);
    assert_eq!(failure(&harness.ended(&run.public).await), Some("forbidden".into()));
    assert_eq!((harness.called(), run.by.as_str()), (0, "admin"));
}

#[tokio::test(start_paused = true)]
async fn a_right_that_is_taken_away_while_a_run_starts_stops_it() {
    let harness = Harness::new().await;
    harness.define(&harness.admin, chain("w", "ok")).await;
    let ann = harness.user("ann", &["workflow.run", "workflow.read", "tool:*"]).await;
    let (engine, admin) = (harness.engine.clone(), harness.admin.clone());
    harness.store.before_next_commit(move || async move {
        let less = UserChange { grants: Some(list(&["workflow.read"])), ..UserChange::default() };
        engine.users(&admin).change("ann", less).await.unwrap();
    });
    let refused = harness.try_start(&ann, "w").await;
    assert!(matches!(refused, Err(Error::Forbidden { right: "workflow.run", .. })), "{refused:?}");
    assert_eq!((harness.runs().await.len(), harness.called()), (0, 0));
}
