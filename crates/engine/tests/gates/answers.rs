//! Answers: what they are bound to, forms, quorums, and many at once.

use crate::rig::{PERSON, Rig, refusal, status};
use serde_json::json;
use stepwell_engine::commands::Decision;

#[tokio::test(start_paused = true)]
async fn of_a_hundred_answers_at_once_one_has_an_effect() {
    let tasks = json!({"gate": {"approval": {"message": "go?"}}, "pay": {"needs": ["gate"], "tool": "ok", "args": {}}});
    let rig = Rig::with("w", tasks).await;
    let run = rig.start("w").await;
    let digest = rig.asked(&run, "gate").await.digest;
    let mut all = tokio::task::JoinSet::new();
    for n in 0..100 {
        let (engine, admin, run) = (rig.engine.clone(), rig.admin.clone(), run.clone());
        let decision = Decision { approve: n % 2 == 0, digest: digest.clone(), ..Decision::default() };
        all.spawn(async move { engine.answer(&admin, &run, "gate", decision).await });
    }
    let told: Vec<&str> = all.join_all().await.iter().map(refusal).collect();
    assert_eq!(told.iter().filter(|told| **told == "taken").count(), 1, "{told:?}");
    assert!(told.iter().all(|told| ["taken", "conflict"].contains(told)), "{told:?}");
    let view = rig.ended(&run).await;
    let approved = status(&view, "gate").0 == "success";
    assert_eq!(rig.called().len(), usize::from(approved));
}

#[tokio::test(start_paused = true)]
async fn an_answer_for_another_digest_is_refused_and_changes_nothing() {
    let rig = Rig::with("w", json!({"gate": {"approval": {"message": "go?"}}})).await;
    let (one, two) = (rig.start("w").await, rig.start("w").await);
    let other = rig.asked(&two, "gate").await.digest;
    rig.asked(&one, "gate").await;
    for digest in [other, Some(String::new()), Some("0".repeat(64))] {
        let decision = Decision { approve: false, digest, ..Decision::default() };
        assert_eq!(refusal(&rig.engine.answer(&rig.admin, &one, "gate", decision).await), "conflict");
    }
    assert_eq!(rig.view(&one).await.status, "paused");
    rig.approve(&rig.admin, &one, "gate").await;
    assert_eq!(rig.ended(&one).await.status, "completed");
}

#[tokio::test(start_paused = true)]
async fn a_form_takes_what_its_schema_asks_for() {
    let form = json!({"type": "object", "required": ["sum"], "additionalProperties": false,
        "properties": {"sum": {"type": "integer", "minimum": 1}}});
    let tasks = json!({"gate": {"approval": {"message": "how much?", "form": form}},
        "pay": {"needs": ["gate"], "tool": "ok", "args": {"sum": "{{tasks.gate.body.data.sum}}"}}});
    let rig = Rig::with("w", tasks).await;
    let run = rig.start("w").await;
    let calls = rig.asked(&run, "gate").await.asks["calls"].clone();
    assert_eq!(calls[0]["not_yet_known"], json!(true), "it depends on what is filled in");
    for data in [None, Some(json!(null)), Some(json!({})), Some(json!({"sum": 0})), Some(json!({"sum": 1, "x": 1}))] {
        let decision = Decision { approve: true, data, ..Decision::default() };
        assert_eq!(refusal(&rig.engine.answer(&rig.admin, &run, "gate", decision).await), "input");
    }
    let decision = Decision { approve: true, data: Some(json!({"sum": 3})), ..Decision::default() };
    rig.engine.answer(&rig.admin, &run, "gate", decision).await.unwrap();
    assert_eq!(rig.ended(&run).await.status, "completed");
    assert_eq!(rig.called_with(), [json!({"sum": 3})]);
    // Who denies fills in nothing.
    let run = rig.start("w").await;
    rig.answer(&rig.admin, &run, "gate", false).await.unwrap();
    assert_eq!(rig.ended(&run).await.status, "cancelled");
}

#[tokio::test(start_paused = true)]
async fn two_people_approve_and_one_denial_ends_it() {
    let rig = Rig::with("w", json!({"gate": {"approval": {"message": "go?", "approvals": 2}}})).await;
    for name in ["ann", "bob"] {
        rig.user(name, &[], PERSON).await;
    }
    let (ann, bob) = (rig.person("ann").await, rig.person("bob").await);
    let run = rig.start("w").await;
    rig.approve(&ann, &run, "gate").await;
    assert_eq!(refusal(&rig.answer(&ann, &run, "gate", true).await), "conflict");
    assert_eq!(rig.asked(&run, "gate").await.approved_by, ["ann"]);
    rig.approve(&bob, &run, "gate").await;
    assert_eq!(rig.ended(&run).await.status, "completed");
    let run = rig.start("w").await;
    rig.approve(&ann, &run, "gate").await;
    rig.answer(&bob, &run, "gate", false).await.unwrap();
    assert_eq!(rig.ended(&run).await.status, "cancelled");
}

#[tokio::test(start_paused = true)]
async fn the_one_signal_does_not_approve_a_call_that_is_held() {
    let rig = Rig::with("w", json!({"pay": {"tool": "ok", "args": {}}})).await;
    rig.policy("money", crate::rig::hold("tool:ok")).await;
    let run = rig.start("w").await;
    rig.asked(&run, "pay").await;
    assert_eq!(refusal(&rig.engine.step_ready(&rig.admin, &run, "pay").await), "input");
    assert_eq!(rig.called().len(), 0);
}
