//! Answers: what they are bound to, forms, quorums, and many at once.

use crate::rig::{PERSON, Rig, hold, refusal, status};
use serde_json::json;
use stepwell_engine::commands::{Decision, NewPolicy, Retry};

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
        all.spawn(async move { engine.gates(&admin).answer(&run, "gate", decision).await });
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
        assert_eq!(refusal(&rig.engine.gates(&rig.admin).answer(&one, "gate", decision).await), "conflict");
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
        assert_eq!(refusal(&rig.engine.gates(&rig.admin).answer(&run, "gate", decision).await), "input");
    }
    let decision = Decision { approve: true, data: Some(json!({"sum": 3})), ..Decision::default() };
    rig.engine.gates(&rig.admin).answer(&run, "gate", decision).await.unwrap();
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
    assert_eq!(refusal(&rig.engine.steps(&rig.admin).ready(&run, "pay").await), "input");
    assert_eq!(rig.called().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_answer_by_name_only_is_not_taken_for_the_next_round() {
    let each = json!({"for_each": [1, 2], "max_parallel": 1,
        "tasks": {"ask": {"approval": {"message": "item {{item}}?"}}}});
    let rig = Rig::with("w", json!({"each": each})).await;
    let run = rig.start("w").await;
    let yes = || Decision { approve: true, ..Decision::default() };
    rig.asked(&run, "each[0].ask").await;
    rig.engine.gates(&rig.admin).answer(&run, "ask", yes()).await.unwrap();
    let digest = rig.asked(&run, "each[1].ask").await.digest;
    // The same once more, because its answer was lost: nobody has seen the second question.
    assert_eq!(refusal(&rig.engine.gates(&rig.admin).answer(&run, "ask", yes()).await), "input");
    assert_eq!(refusal(&rig.engine.steps(&rig.admin).ready(&run, "ask").await), "input");
    assert_eq!(rig.view(&run).await.status, "paused");
    rig.engine.gates(&rig.admin).answer(&run, "ask", Decision { digest, ..yes() }).await.unwrap();
    assert_eq!(rig.ended(&run).await.status, "completed");
    // Whoever names the round knows which it is.
    let run = rig.start("w").await;
    for round in ["each[0].ask", "each[1].ask"] {
        rig.asked(&run, round).await;
        rig.engine.gates(&rig.admin).answer(&run, round, yes()).await.unwrap();
    }
    assert_eq!(rig.ended(&run).await.status, "completed");
}

#[tokio::test(start_paused = true)]
async fn approvers_that_come_to_nobody_open_the_gate_to_nobody() {
    let gate = |field: &str| json!({"gate": {"approval": {"message": "go?", field: "{{input.who}}", "timeout": "1h"}}});
    let rig = Rig::with("approvers", gate("approvers")).await;
    rig.define("escalate_to", gate("escalate_to")).await;
    for workflow in ["approvers", "escalate_to"] {
        for who in [json!([]), json!(null), json!([{"name": "ann"}]), json!(7), json!(" ")] {
            let run = rig.start_as(&rig.admin, workflow, json!({"who": who})).await;
            let view = rig.ended(&run).await;
            assert_eq!(status(&view, "gate"), ("template_error", Some("template_error".into())), "{who}");
        }
        let run = rig.start_as(&rig.admin, workflow, json!({"who": ["ann"]})).await;
        rig.asked(&run, "gate").await;
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_took_the_run_up_again_is_not_the_second_pair_of_eyes() {
    let tasks = json!({"try": {"tool": "flaky", "args": {}, "retries": 0},
        "gate": {"needs": ["try"], "approval": {"message": "go?", "allow_self": false}},
        "pay": {"needs": ["gate"], "tool": "ok", "args": {"sum": "{{tasks.gate.body.data ?? 1}}"}}});
    let rig = Rig::with("w", tasks).await;
    let policy = NewPolicy { allow_self: false, ..hold("tool:ok") };
    rig.policy("money", policy).await;
    let (ann, bob) = (rig.user("ann", &[], PERSON).await, rig.user("bob", &[], PERSON).await);
    let run = rig.start_as(&ann, "w", json!({})).await;
    assert_eq!(rig.ended(&run).await.status, "failed");
    rig.engine.runs(&bob).retry(&run, Retry::SameVersion).await.unwrap();
    for step in ["gate", "pay"] {
        for who in [&ann, &bob] {
            assert_eq!(refusal(&rig.answer(who, &run, step, true).await), "refused", "{step}");
        }
        rig.approve(&rig.admin, &run, step).await;
    }
    assert_eq!(rig.ended(&run).await.status, "completed");
}

#[tokio::test(start_paused = true)]
async fn those_who_may_approve_still_may_after_others_are_asked_too() {
    let tasks = json!({"gate": {"approval": {"message": "go?", "escalate_to": "boss", "timeout": "1h"}}});
    let rig = Rig::with("w", tasks).await;
    let ann = rig.user("ann", &[], PERSON).await;
    let (boss, eve) = (rig.user("boss", &[], &[]).await, rig.user("eve", &[], &["workflow.read"]).await);
    for who in [&ann, &boss] {
        let run = rig.start("w").await;
        rig.asked(&run, "gate").await;
        rig.pass(61 * 60).await;
        assert_ne!(refusal(&rig.answer(&eve, &run, "gate", true).await), "taken");
        rig.approve(who, &run, "gate").await;
        assert_eq!(rig.ended(&run).await.status, "completed");
    }
}
