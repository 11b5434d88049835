//! Held calls that an approver changes: what runs, what counts as approved, and what is refused.

use crate::harness::{Harness, PERSON, hold, list, refusal};
use serde_json::{Value, json};
use stepwell_engine::commands::{Decision, NewKey, NewPolicy, NewSecret, Retry};
use stepwell_engine::{Caller, Error, PolicyEffect};

fn pay(args: Value) -> Value {
    json!({"pay": {"tool": "ok", "args": args}})
}

fn changeable() -> NewPolicy {
    NewPolicy { allow_changes: true, ..hold("tool:ok") }
}

async fn changed(harness: &Harness, by: &Caller, run: &str, args: Value) -> Result<(), Error> {
    let digest = harness.asked(run, "pay").await.digest;
    let input = Some(json!({"tool": "ok", "args": args}));
    let decision = Decision { approve: true, digest, input, ..Decision::default() };
    harness.engine.gates(by).answer(run, "pay", decision).await
}

#[tokio::test(start_paused = true)]
async fn the_changed_call_is_what_runs_and_both_versions_are_kept() {
    let harness = Harness::with("w", pay(json!({"sum": 900, "to": "bob"}))).await;
    harness.policy("money", changeable()).await;
    let run = harness.start("w").await;
    let asked = harness.asked(&run, "pay").await;
    assert_eq!(asked.asks["allow_changes"], true);
    changed(&harness, &harness.admin, &run, json!({"sum": 90, "to": "bob"})).await.unwrap();
    let view = harness.ended(&run).await;
    assert_eq!((view.status, harness.called_with()), ("completed", vec![json!({"sum": 90, "to": "bob"})]));
    let step = &view.tasks[0];
    let change = step.changed.as_ref().unwrap();
    assert_eq!((&*change.by, &change.from["args"]["sum"]), (&*harness.admin.name, &json!(900)));
    assert_eq!(step.input.as_ref().unwrap()["args"]["sum"], 90);
    // The original request and the changed one are both in the log, and so is the change in the audit trail.
    let events = harness.engine.runs(&harness.admin).events(&run, 0, 100).await.unwrap();
    let kinds: Vec<&str> = events.events.iter().filter_map(|event| event.fact["type"].as_str()).collect();
    let at = |kind: &str| kinds.iter().position(|is| *is == kind).unwrap_or_else(|| panic!("{kind}: {kinds:?}"));
    assert!(at("held") < at("changed") && at("changed") < at("approved"), "{kinds:?}");
    let query =
        stepwell_engine::commands::AuditQuery { action: Some("step.approve".into()), limit: 1, ..Default::default() };
    let trail = harness.engine.audit(&harness.admin).list(query).await.unwrap();
    let detail: Value = serde_json::from_str(&trail[0].row.detail).unwrap();
    let both = [&detail["changed"]["from"], &detail["changed"]["to"]];
    assert_eq!(both.map(|one| &one["input"]["args"]["sum"]), [&json!(900), &json!(90)]);
    assert_ne!(both[0]["digest"], both[1]["digest"]);
    // A retry of the run asks for the call as it was written.
    let again = harness.engine.runs(&harness.admin).rerun(&run, None).await.unwrap().run;
    assert_eq!(harness.asked(&again, "pay").await.asks["calls"][0]["input"]["args"]["sum"], 900);
}

#[tokio::test(start_paused = true)]
async fn a_change_has_to_be_allowed_and_to_stay_the_same_call() {
    let harness = Harness::with("w", pay(json!({"key": "{{secrets.KEY}}"}))).await;
    let secret = NewSecret { value: Some("s3cret-value".into()), hosts: None };
    harness.engine.secrets(&harness.admin).put("KEY", secret).await.unwrap();
    harness.policy("money", hold("tool:ok")).await;
    let run = harness.start("w").await;
    let kept = || json!({"key": "{{secrets.KEY}}", "sum": 1});
    assert_eq!(refusal(&changed(&harness, &harness.admin, &run, kept()).await), "refused");
    harness.engine.runs(&harness.admin).cancel(&run, None).await.unwrap();

    harness.policy("money", changeable()).await;
    let run = harness.start("w").await;
    let refused = [json!({"key": "mine"}), json!({"key": "{{secrets.KEY}}", "note": "s3cret-value"})];
    for args in refused {
        assert_eq!(refusal(&changed(&harness, &harness.admin, &run, args.clone()).await), "input", "{args}");
    }
    let digest = harness.asked(&run, "pay").await.digest;
    let deny = Decision { digest: digest.clone(), input: Some(json!({})), ..Decision::default() };
    assert_eq!(refusal(&harness.engine.gates(&harness.admin).answer(&run, "pay", deny).await), "input");
    let other = Some(json!({"tool": "safe", "args": kept()}));
    let other = Decision { approve: true, digest, input: other, ..Decision::default() };
    assert_eq!(refusal(&harness.engine.gates(&harness.admin).answer(&run, "pay", other).await), "input");
    // Only a person changes what a person is asked about.
    let new =
        NewKey { name: "bot".into(), agent: true, grants: Some(list(&["workflow.approve"])), ..NewKey::default() };
    let agent = harness.key(new).await;
    assert_eq!(refusal(&changed(&harness, &agent, &run, kept()).await), "refused");
    assert_eq!(harness.called().len(), 0);
    changed(&harness, &harness.admin, &run, kept()).await.unwrap();
    harness.ended(&run).await;
    assert_eq!(harness.called_with(), [json!({"key": "s3cret-value", "sum": 1})]);
}

#[tokio::test(start_paused = true)]
async fn everyone_approves_the_changed_call() {
    let harness = Harness::with("w", pay(json!({"sum": 900}))).await;
    for name in ["bob", "cid"] {
        harness.user(name, &[], PERSON).await;
    }
    let (bob, cid) = (harness.person("bob").await, harness.person("cid").await);
    harness.policy("money", NewPolicy { approvals: 2, ..changeable() }).await;
    let run = harness.start("w").await;
    harness.approve(&bob, &run, "pay").await;
    let before = harness.asked(&run, "pay").await;
    changed(&harness, &cid, &run, json!({"sum": 90})).await.unwrap();
    let asked = harness.asked(&run, "pay").await;
    assert_ne!(asked.digest, before.digest);
    assert_eq!((&asked.approved_by, &asked.asks["changed"][0]["by"]), (&list(&["cid"]), &json!("cid")));
    assert_eq!(asked.asks["changed"][0]["input"]["args"]["sum"], 900);
    // Bob approved another call, and an answer to the old request does not count.
    let stale = Decision { approve: true, digest: before.digest, ..Decision::default() };
    assert_eq!(refusal(&harness.engine.gates(&bob).answer(&run, "pay", stale).await), "conflict");
    let harness = harness.restarted().await;
    let bob = harness.person("bob").await;
    harness.approve(&bob, &run, "pay").await;
    harness.ended(&run).await;
    assert_eq!(harness.called_with(), [json!({"sum": 90})]);
}

#[tokio::test(start_paused = true)]
async fn other_policies_apply_to_the_changed_call() {
    let harness = Harness::with("w", pay(json!({"sum": 900}))).await;
    harness.policy("money", changeable()).await;
    let run = harness.start("w").await;
    harness.asked(&run, "pay").await;
    harness.policy("never", NewPolicy { effect: PolicyEffect::Deny, ..hold("tool:o*") }).await;
    assert_eq!(refusal(&changed(&harness, &harness.admin, &run, json!({"sum": 1})).await), "refused");
    harness.policy("never", NewPolicy { approvers: list(&["bob"]), ..hold("tool:o*") }).await;
    changed(&harness, &harness.admin, &run, json!({"sum": 1})).await.unwrap();
    harness.pass(2).await;
    let asked = harness.asked(&run, "pay").await;
    assert_eq!((&asked.asks["policy"], harness.called().len()), (&json!("never"), 0));
    assert_eq!(asked.asks["calls"][0]["input"]["args"]["sum"], 1);
    harness.engine.runs(&harness.admin).cancel(&run, None).await.unwrap();
    harness.engine.runs(&harness.admin).retry(&run, Retry::SameVersion).await.unwrap();
    assert_eq!(harness.asked(&run, "pay").await.asks["calls"][0]["input"]["args"]["sum"], 900);
}
