//! To whoever is of another organisation nothing is there.

use crate::rig::{Rig, chain, list, with};
use serde_json::json;
use std::collections::BTreeMap;
use stepwell_core::event::Verdict;
use stepwell_engine::Error;
use stepwell_engine::commands::*;
use stepwell_store::Store;

#[tokio::test(start_paused = true)]
async fn every_command_of_another_organisation_finds_nothing_and_changes_nothing() {
    let rig = Rig::new().await;
    let engine = &rig.engine;
    let (other, secret) = engine.create_organisation(&rig.admin, "other", None).await.unwrap();
    let eve = engine.authenticate(&secret).await.unwrap();
    let gated = json!({"name": "w", "tasks": {
        "gate": {"approval": {"message": "go?"}}, "held": {"tool": "hold", "args": {}}}});
    let wf = rig.define(&rig.admin, with(gated, "trigger", json!([{"webhook": true}, {"cron": "0 0 1 1 *"}]))).await;
    let run = rig.start(&rig.admin, "w").await;
    rig.define(&rig.admin, chain("bad", "fail")).await;
    let over = rig.start(&rig.admin, "bad").await;
    rig.ended(&over).await;
    rig.until_holding(1).await;
    let (key, _) = rig.key("admin", None).await;
    let ann = rig.user("ann", &["workflow.read"]).await;
    let ann_id = engine.user(&rig.admin, "ann").await.unwrap().id;
    engine.put_role(&rig.admin, "crew", list(&["workflow.read"])).await.unwrap();
    rig.pass(1).await;
    let before = (rig.store.stats(true).await.unwrap().rows, format!("{:?}", rig.runs().await));
    let mut answers: Vec<(&str, Result<(), Error>)> = Vec::new();
    for run in [run.as_str(), over.as_str()] {
        let labels = BTreeMap::from([("a".to_string(), "b".to_string())]);
        let yes = Decision { approve: true, ..Decision::default() };
        let success = Override { outcome: Ok(json!(1)), comment: None };
        answers.extend([
            ("status", engine.status(&eve, run).await.map(drop)),
            ("events", engine.events(&eve, run, 0, 10).await.map(drop)),
            ("wait", engine.wait(&eve, run).await),
            ("cancel", engine.cancel(&eve, run, None).await),
            ("retry", engine.retry(&eve, run, Retry::SameVersion).await),
            ("retry newest", engine.retry(&eve, run, Retry::Newest).await),
            ("preview", engine.retry_preview(&eve, run).await.map(drop)),
            ("rerun", engine.rerun(&eve, run, None).await.map(drop)),
            ("answer", engine.answer(&eve, run, "gate", yes).await),
            ("ready", engine.step_ready(&eve, run, "gate").await),
            ("settle", engine.settle(&eve, run, "held", Verdict::Fail).await),
            ("deliver", engine.deliver_to(&eve, run, "held", json!(1)).await),
            ("override", engine.override_step(&eve, run, "held", success).await),
            ("label", engine.label(&eve, run, &labels).await),
            ("erase", engine.erase(&eve, run).await),
            ("discard", engine.discard(&eve, run).await),
            ("look again", engine.look_again(&eve, run).await.map(drop)),
        ]);
    }
    for name in ["w", wf.as_str()] {
        let query = RunQuery { workflow: Some(name.into()), ..RunQuery::default() };
        answers.extend([
            ("workflow", engine.workflow(&eve, name).await.map(drop)),
            ("versions", engine.versions(&eve, name).await.map(drop)),
            ("version", engine.version(&eve, name, 1).await.map(drop)),
            ("trigger", rig.try_start(&eve, name).await.map(drop)),
            ("undefine", engine.undefine(&eve, name).await),
            ("enable", engine.enable(&eve, name, false).await),
            ("pause", engine.pause(&eve, name, None).await),
            ("resume", engine.resume(&eve, name, None).await),
            ("schedule", engine.schedule(&eve, name).await.map(drop)),
            ("hooks", engine.hooks(&eve, name).await.map(drop)),
            ("rotate", engine.rotate_hooks(&eve, name).await.map(drop)),
            ("runs", engine.runs(&eve, query.clone()).await.map(drop)),
            ("cancel all", engine.cancel_all(&eve, query.clone(), None).await.map(drop)),
            ("retry all", engine.retry_all(&eve, query, Retry::SameVersion).await.map(drop)),
        ]);
    }
    for user in ["ann", ann_id.as_str()] {
        let new = NewKey { user: Some(user.into()), name: "k".into(), ..NewKey::default() };
        answers.extend([
            ("user", engine.user(&eve, user).await.map(drop)),
            ("change user", engine.change_user(&eve, user, UserChange::default()).await.map(drop)),
            ("disable user", engine.disable_user(&eve, user).await),
            ("create key", engine.create_key(&eve, new).await.map(drop)),
        ]);
    }
    answers.extend([
        ("remove role", engine.remove_role(&eve, "crew").await),
        ("change key", engine.change_key(&eve, &key, KeyChange::default()).await.map(drop)),
        ("revoke key", engine.revoke_key(&eve, &key).await),
    ]);
    for (what, answer) in answers {
        assert!(matches!(answer, Err(Error::NotFound { .. })), "{what}: {answer:?}");
    }
    assert_eq!(engine.runs(&eve, RunQuery::default()).await.unwrap(), []);
    assert_eq!(engine.workflows(&eve).await.unwrap(), []);
    assert_eq!(engine.approvals(&eve, None, 10).await.unwrap().0, []);
    assert_eq!(engine.keys(&eve).await.unwrap().len(), 1);
    assert_eq!(engine.cancel_all(&eve, RunQuery::default(), None).await.unwrap(), Bulk::default());
    assert!(engine.audit(&eve, AuditQuery::default()).await.unwrap().iter().all(|row| row.row.org == other.id));
    let role = NewUser { name: "x".into(), roles: list(&["crew"]), grants: vec![] };
    assert!(matches!(engine.create_user(&eve, role).await, Err(Error::Input { .. })));
    assert!(matches!(engine.organisations(&eve).await, Err(Error::Forbidden { .. })));
    rig.pass(1).await;
    assert_eq!((rig.store.stats(true).await.unwrap().rows, format!("{:?}", rig.runs().await)), before);
    assert_eq!(&*ann.name, "ann");
}
