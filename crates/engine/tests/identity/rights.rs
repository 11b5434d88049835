//! Rights at the moment of a step: of whoever started the run, of the version's author, and of those above a child.

use crate::rig::{Rig, chain, failure};
use serde_json::json;
use stepwell_engine::commands::UserChange;

const RUNNER: [&str; 4] = ["workflow.run", "workflow.read", "tool:hold", "tool:ok"];

/// Lets the first step of a run begin, does something, and sees how the run ends.
async fn between(rig: &Rig, run: &str, change: impl Future<Output = ()>) -> (&'static str, Option<String>) {
    rig.until_holding(1).await;
    change.await;
    rig.tools.permits.add_permits(1);
    let view = rig.ended(run).await;
    (view.status, failure(&view))
}

fn forbidden() -> (&'static str, Option<String>) {
    ("failed", Some("forbidden".into()))
}

#[tokio::test(start_paused = true)]
async fn a_right_that_is_taken_away_between_two_steps_fails_the_next() {
    let rig = Rig::new().await;
    rig.define(&rig.admin, chain("two", "hold ok")).await;
    let ann = rig.user("ann", &RUNNER).await;
    let run = rig.start(&ann, "two").await;
    assert_eq!(between(&rig, &run, async {}).await, ("completed", None));
    let run = rig.start(&ann, "two").await;
    assert_eq!(between(&rig, &run, rig.grant("ann", &RUNNER[..3])).await, forbidden());
    assert_eq!(rig.called(), 3, "the forbidden call was never made");
    rig.grant("ann", &RUNNER).await;
    let run = rig.start(&ann, "two").await;
    assert_eq!(between(&rig, &run, rig.grant("ann", &RUNNER[1..])).await, forbidden(), "workflow.run");
    rig.grant("ann", &RUNNER).await;
    let run = rig.start(&ann, "two").await;
    let disable = async { rig.engine.users(&rig.admin).disable("ann").await.unwrap() };
    assert_eq!(between(&rig, &run, disable).await, forbidden());
}

#[tokio::test(start_paused = true)]
async fn a_right_that_came_by_a_role_goes_with_it() {
    let rig = Rig::new().await;
    rig.define(&rig.admin, chain("two", "hold ok")).await;
    let all = RUNNER.map(String::from).to_vec();
    rig.engine.roles(&rig.admin).put("crew", all.clone()).await.unwrap();
    rig.user("ann", &[]).await;
    let roles = UserChange { roles: Some(vec!["crew".into()]), ..UserChange::default() };
    rig.engine.users(&rig.admin).change("ann", roles).await.unwrap();
    let ann = rig.person("ann").await;
    let run = rig.start(&ann, "two").await;
    let narrow = async { drop(rig.engine.roles(&rig.admin).put("crew", all[..3].to_vec()).await.unwrap()) };
    assert_eq!(between(&rig, &run, narrow).await, forbidden());
}

#[tokio::test(start_paused = true)]
async fn the_author_s_rights_count_too() {
    let rig = Rig::new().await;
    let bob = rig.user("bob", &["workflow.define", "tool:hold", "tool:ok"]).await;
    rig.define(&bob, chain("two", "hold ok")).await;
    let run = rig.start(&rig.admin, "two").await;
    assert_eq!(between(&rig, &run, rig.grant("bob", &["workflow.define", "tool:hold"])).await, forbidden());
    // A version by someone who may is another matter.
    rig.define(&rig.admin, json!({"name": "two", "tasks": {"a": {"tool": "ok", "args": {}}}})).await;
    let run = rig.start(&rig.admin, "two").await;
    assert_eq!(rig.ended(&run).await.status, "completed");
}

#[tokio::test(start_paused = true)]
async fn a_child_is_limited_by_the_author_of_its_parent() {
    let rig = Rig::new().await;
    rig.define(&rig.admin, chain("child", "ok")).await;
    let parent = |name: &str| json!({"name": name, "tasks": {"call": {"workflow": "child", "input": {}}}});
    let bob = rig.user("bob", &["workflow.define", "workflow.run"]).await;
    rig.define(&bob, parent("narrow")).await;
    rig.define(&rig.admin, parent("wide")).await;
    let run = rig.start(&rig.admin, "wide").await;
    assert_eq!(rig.ended(&run).await.status, "completed");
    let run = rig.start(&rig.admin, "narrow").await;
    assert_eq!((rig.ended(&run).await.status, rig.called()), ("failed", 1));
    let child = rig.runs().await.pop().unwrap();
    assert_eq!(failure(&rig.view(&child.public).await), Some("forbidden".into()));
    // And by whoever started the parent, at any depth.
    rig.define(&rig.admin, json!({"name": "above", "tasks": {"call": {"workflow": "wide", "input": {}}}})).await;
    let ann = rig.user("ann", &["workflow.run"]).await;
    let run = rig.start(&ann, "above").await;
    assert_eq!((rig.ended(&run).await.status, rig.called()), ("failed", 1));
}

#[tokio::test(start_paused = true)]
async fn what_a_key_started_stays_within_the_key() {
    let rig = Rig::new().await;
    rig.define(&rig.admin, chain("two", "hold ok")).await;
    let (id, secret) = rig.key("admin", Some(&["workflow.run", "tool:hold"])).await;
    let narrow = rig.engine.identity().authenticate(&secret).await.unwrap();
    let run = rig.start(&narrow, "two").await;
    assert_eq!(between(&rig, &run, async {}).await, forbidden());
    let (wide, secret) = rig.key("admin", Some(&RUNNER)).await;
    let caller = rig.engine.identity().authenticate(&secret).await.unwrap();
    let run = rig.start(&caller, "two").await;
    // A revoked key starts nothing more; what it started goes on.
    let revoke = async { rig.engine.keys(&rig.admin).revoke(&wide).await.unwrap() };
    assert_eq!(between(&rig, &run, revoke).await, ("completed", None));
    assert_ne!(id, wide);
}

#[tokio::test(start_paused = true)]
async fn a_schedule_written_with_a_narrow_key_has_only_the_key_s_rights() {
    let rig = Rig::new().await;
    let (_, secret) = rig.key("admin", Some(&["workflow.define", "workflow.run", "tool:hold"])).await;
    let narrow = rig.engine.identity().authenticate(&secret).await.unwrap();
    let cron = json!([{"cron": "* * * * *"}]);
    rig.define(&narrow, crate::rig::with(chain("tick", "ok"), "trigger", cron)).await;
    rig.pass(61).await;
    let run = rig.runs().await.remove(0);
    assert_eq!(failure(&rig.ended(&run.public).await), Some("forbidden".into()));
    assert_eq!((rig.called(), run.by.as_str()), (0, "admin"));
}
