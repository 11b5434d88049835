//! Nothing of an organisation is visible to the users of another.

use crate::harness::{Harness, chain, list, with};
use serde_json::json;
use std::collections::BTreeMap;
use stepwell_core::event::Verdict;
use stepwell_engine::Error;
use stepwell_engine::commands::*;
use stepwell_store::Store;

#[tokio::test(start_paused = true)]
async fn every_command_of_another_organisation_finds_nothing_and_changes_nothing() {
    let harness = Harness::new().await;
    let engine = &harness.engine;
    let (other, secret) = engine.organisations(&harness.admin).create("other", None).await.unwrap();
    let eve = engine.identity().authenticate(&secret).await.unwrap();
    let gated = json!({"name": "w", "tasks": {
        "gate": {"approval": {"message": "go?"}}, "held": {"tool": "hold", "args": {}}}});
    let wf =
        harness.define(&harness.admin, with(gated, "trigger", json!([{"webhook": true}, {"cron": "0 0 1 1 *"}]))).await;
    let run = harness.start(&harness.admin, "w").await;
    harness.define(&harness.admin, chain("bad", "fail")).await;
    let over = harness.start(&harness.admin, "bad").await;
    harness.ended(&over).await;
    harness.until_holding(1).await;
    let (key, _) = harness.key("admin", None).await;
    let ann = harness.user("ann", &["workflow.read"]).await;
    let ann_id = engine.users(&harness.admin).get("ann").await.unwrap().id;
    engine.roles(&harness.admin).put("crew", list(&["workflow.read"])).await.unwrap();
    harness.pass(1).await;
    let before = (harness.store.stats(true).await.unwrap().rows, format!("{:?}", harness.runs().await));
    let mut answers: Vec<(&str, Result<(), Error>)> = Vec::new();
    for run in [run.as_str(), over.as_str()] {
        let labels = BTreeMap::from([("a".to_string(), "b".to_string())]);
        let yes = Decision { approve: true, ..Decision::default() };
        let success = Override { outcome: Ok(json!(1)), comment: None };
        answers.extend([
            ("status", engine.runs(&eve).get(run).await.map(drop)),
            ("events", engine.runs(&eve).events(run, 0, 10).await.map(drop)),
            ("steps", engine.runs(&eve).steps(run, &StepQuery { limit: 10, ..StepQuery::default() }).await.map(drop)),
            ("wait", engine.runs(&eve).wait(run).await),
            ("cancel", engine.runs(&eve).cancel(run, None).await),
            ("retry", engine.runs(&eve).retry(run, Retry::SameVersion).await),
            ("retry newest", engine.runs(&eve).retry(run, Retry::Newest).await),
            ("preview", engine.runs(&eve).retry_preview(run, Retry::Newest).await.map(drop)),
            ("rerun", engine.runs(&eve).rerun(run, None).await.map(drop)),
            ("answer", engine.gates(&eve).answer(run, "gate", yes).await),
            ("ready", engine.steps(&eve).ready(run, "gate").await),
            ("settle", engine.steps(&eve).settle(run, "held", Verdict::Fail).await),
            ("deliver", engine.steps(&eve).deliver_to(run, "held", json!(1)).await),
            ("override", engine.steps(&eve).override_step(run, "held", success).await),
            ("label", engine.runs(&eve).label(run, &labels).await),
            ("erase", engine.runs(&eve).erase(run).await),
            ("discard", engine.runs(&eve).discard(run).await),
            ("look again", engine.runs(&eve).get_after_change(run).await.map(drop)),
        ]);
    }
    for name in ["w", wf.as_str()] {
        let query = RunQuery { workflow: Some(name.into()), ..RunQuery::default() };
        answers.extend([
            ("workflow", engine.workflows(&eve).get(name).await.map(drop)),
            ("versions", engine.workflows(&eve).versions(name).await.map(drop)),
            ("version", engine.workflows(&eve).version(name, 1).await.map(drop)),
            ("trigger", harness.try_start(&eve, name).await.map(drop)),
            ("undefine", engine.workflows(&eve).delete(name).await),
            ("enable", engine.workflows(&eve).enable(name, false).await),
            ("pause", engine.workflows(&eve).pause(name, None).await),
            ("resume", engine.workflows(&eve).resume(name, None).await),
            ("schedule", engine.workflows(&eve).schedule(name).await.map(drop)),
            ("add schedule", engine.workflows(&eve).add_schedule(name, &json!({"cron": "@daily"})).await.map(drop)),
            ("hooks", engine.workflows(&eve).hooks(name).await.map(drop)),
            ("rotate", engine.workflows(&eve).rotate_hooks(name).await.map(drop)),
            ("runs", engine.runs(&eve).list(query.clone()).await.map(drop)),
            ("cancel all", engine.runs(&eve).cancel_all(query.clone(), None).await.map(drop)),
            ("retry all", engine.runs(&eve).retry_all(query, Retry::SameVersion).await.map(drop)),
        ]);
    }
    for user in ["ann", ann_id.as_str()] {
        let new = NewKey { user: Some(user.into()), name: "k".into(), ..NewKey::default() };
        answers.extend([
            ("user", engine.users(&eve).get(user).await.map(drop)),
            ("change user", engine.users(&eve).change(user, UserChange::default()).await.map(drop)),
            ("disable user", engine.users(&eve).disable(user).await),
            ("create key", engine.keys(&eve).create(new).await.map(drop)),
        ]);
    }
    answers.extend([
        ("remove role", engine.roles(&eve).remove("crew").await),
        ("change key", engine.keys(&eve).change(&key, KeyChange::default()).await.map(drop)),
        ("revoke key", engine.keys(&eve).revoke(&key).await),
    ]);
    for (what, answer) in answers {
        assert!(matches!(answer, Err(Error::NotFound { .. })), "{what}: {answer:?}");
    }
    assert_eq!(engine.runs(&eve).list(RunQuery::default()).await.unwrap(), []);
    assert_eq!(engine.workflows(&eve).list().await.unwrap(), []);
    assert_eq!(engine.gates(&eve).list(None, 10).await.unwrap().0, []);
    assert_eq!(engine.keys(&eve).list().await.unwrap().len(), 1);
    assert_eq!(engine.runs(&eve).cancel_all(RunQuery::default(), None).await.unwrap(), BulkOutcome::default());
    assert!(engine.audit(&eve).list(AuditQuery::default()).await.unwrap().iter().all(|row| row.row.org == other.id));
    let role = NewUser { name: "x".into(), roles: list(&["crew"]), grants: vec![] };
    assert!(matches!(engine.users(&eve).create(role).await, Err(Error::Input { .. })));
    assert!(matches!(engine.organisations(&eve).list().await, Err(Error::Forbidden { .. })));
    harness.pass(1).await;
    assert_eq!((harness.store.stats(true).await.unwrap().rows, format!("{:?}", harness.runs().await)), before);
    assert_eq!(&*ann.name, "ann");
}
