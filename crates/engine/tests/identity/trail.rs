//! Every command that changes something writes one row to the audit trail; a refused one writes none.

use crate::harness::{Harness, chain, list, with};
use serde_json::json;
use std::collections::BTreeMap;
use stepwell_core::event::Verdict;
use stepwell_engine::commands::*;
use stepwell_engine::{Error, Subscription};
use stepwell_store::OrgId;

/// What the trail has got since the last look.
struct Trail<'a> {
    harness: &'a Harness,
    seen: usize,
}

impl Trail<'_> {
    async fn gained(&mut self) -> Vec<String> {
        let rows = self.harness.trail(OrgId(1)).await;
        let new = rows[self.seen..].iter();
        let new = new.map(|row| {
            assert_eq!(row.row.by, "admin", "{row:?}");
            let detail: serde_json::Value = serde_json::from_str(&row.row.detail).unwrap();
            assert!(detail["key"].as_str().is_some(), "nothing says which key was used: {row:?}");
            row.row.action.clone()
        });
        let new = new.collect();
        self.seen = rows.len();
        new
    }

    async fn one(&mut self, action: &str) {
        assert_eq!(self.gained().await, [action]);
    }
}

#[tokio::test(start_paused = true)]
async fn every_command_about_runs_leaves_one_row() {
    let harness = Harness::new().await;
    let (engine, admin) = (&harness.engine, &harness.admin);
    let mut trail = Trail { harness: &harness, seen: harness.trail(OrgId(1)).await.len() };
    let waits = json!({"name": "w", "tasks": {
        "gate": {"approval": {"message": "go?"}}, "no": {"approval": {"message": "go?"}}, "nap": {"sleep": "9h"},
        "call": {"wait_for_webhook": true}, "held": {"tool": "hold", "args": {}}}});
    harness.define(admin, waits.clone()).await;
    trail.one("workflow.define").await;
    assert!(!harness.try_define(admin, waits).await.unwrap());
    assert_eq!(trail.gained().await, [""; 0]);
    let run = harness.start(admin, "w").await;
    trail.one("run.start").await;
    harness.until_holding(1).await;
    let yes = Decision { approve: true, ..Decision::default() };
    engine.gates(admin).answer(&run, "gate", yes.clone()).await.unwrap();
    trail.one("step.approve").await;
    assert!(engine.gates(admin).answer(&run, "gate", yes).await.is_err());
    assert_eq!(trail.gained().await, [""; 0]);
    engine.steps(admin).ready(&run, "nap").await.unwrap();
    trail.one("step.wake").await;
    engine.steps(admin).deliver_to(&run, "call", json!({})).await.unwrap();
    trail.one("step.deliver").await;
    engine.steps(admin).override_step(&run, "held", Override { outcome: Ok(json!(1)), comment: None }).await.unwrap();
    trail.one("step.override").await;
    engine.gates(admin).answer(&run, "no", Decision::default()).await.unwrap();
    trail.one("step.deny").await;
    harness.ended(&run).await;
    engine.runs(admin).label(&run, &BTreeMap::from([("a".to_string(), "b".to_string())])).await.unwrap();
    trail.one("run.label").await;
    engine.runs(admin).retry(&run, Retry::SameVersion).await.unwrap();
    trail.one("run.retry").await;
    engine.runs(admin).cancel(&run, None).await.unwrap();
    trail.one("run.cancel").await;
    assert!(engine.runs(admin).cancel(&run, None).await.is_err());
    assert!(matches!(engine.steps(admin).settle(&run, "held", Verdict::Fail).await, Err(Error::Conflict(_))));
    assert_eq!(trail.gained().await, [""; 0]);
    let again = engine.runs(admin).rerun(&run, None).await.unwrap().run;
    trail.one("run.start").await;
    engine.runs(admin).cancel_all(RunQuery::default(), None).await.unwrap();
    trail.one("run.cancel").await;
    engine.runs(admin).erase(&again).await.unwrap();
    trail.one("run.erase").await;
    let text = chain("t", "ok").to_string();
    let test = engine.runs(admin).test(Source { text: &text, file: None }, json!({})).await.unwrap().run;
    trail.one("run.test").await;
    harness.ended(&test).await;
    engine.runs(admin).discard(&test).await.unwrap();
    trail.one("run.discard").await;
    assert_eq!(engine.audit(admin).verify().await.unwrap().broken_at, None);
}

#[tokio::test(start_paused = true)]
async fn every_command_about_workflows_and_people_leaves_one_row() {
    let harness = Harness::new().await;
    let (engine, admin) = (&harness.engine, &harness.admin);
    let mut trail = Trail { harness: &harness, seen: harness.trail(OrgId(1)).await.len() };
    harness.define(admin, with(chain("w", "ok"), "trigger", json!("webhook"))).await;
    trail.one("workflow.define").await;
    engine.workflows(admin).enable("w", false).await.unwrap();
    trail.one("workflow.disable").await;
    engine.workflows(admin).enable("w", true).await.unwrap();
    trail.one("workflow.enable").await;
    engine.workflows(admin).pause("w", None).await.unwrap();
    trail.one("workflow.pause").await;
    engine.workflows(admin).resume("w", None).await.unwrap();
    trail.one("workflow.resume").await;
    engine.workflows(admin).rotate_hooks("w").await.unwrap();
    trail.one("workflow.rotate").await;
    engine.workflows(admin).delete("w").await.unwrap();
    trail.one("workflow.delete").await;
    engine.roles(admin).put("crew", list(&["workflow.read"])).await.unwrap();
    trail.one("role.put").await;
    engine.users(admin).create(NewUser { name: "ann".into(), ..NewUser::default() }).await.unwrap();
    trail.one("user.create").await;
    assert!(engine.users(admin).create(NewUser { name: "ann".into(), ..NewUser::default() }).await.is_err());
    assert_eq!(trail.gained().await, [""; 0]);
    engine
        .users(admin)
        .change("ann", UserChange { grants: Some(list(&["workflow.read"])), ..UserChange::default() })
        .await
        .unwrap();
    trail.one("user.change").await;
    let new = NewKey { user: Some("ann".into()), name: "k".into(), ..NewKey::default() };
    let (key, _) = engine.keys(admin).create(new).await.unwrap();
    trail.one("key.create").await;
    engine.keys(admin).change(&key.id, KeyChange { paused: Some(true), ..KeyChange::default() }).await.unwrap();
    trail.one("key.change").await;
    engine.keys(admin).revoke(&key.id).await.unwrap();
    trail.one("key.revoke").await;
    engine
        .organisations(admin)
        .change_plan(OrgId(1), Subscription { plan: Some("pro".into()), limits: None })
        .await
        .unwrap();
    trail.one("organisation.plan").await;
    engine.organisations(admin).create("other", None).await.unwrap();
    trail.one("organisation.create").await;
    engine.roles(admin).remove("crew").await.unwrap();
    trail.one("role.remove").await;
    engine.users(admin).sign_in_link(None).await.unwrap();
    trail.one("session.link").await;
    assert_eq!(engine.audit(admin).verify().await.unwrap().broken_at, None);
}
