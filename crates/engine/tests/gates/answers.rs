//! Answers: what they are bound to, forms, quorums, and many at once.

use crate::harness::{Harness, PERSON, hold, refusal, status};
use serde_json::json;
use stepwell_engine::commands::{Decision, NewPolicy, Retry};

#[tokio::test(start_paused = true)]
async fn of_a_hundred_answers_at_once_one_has_an_effect() {
    let tasks = json!({"gate": {"approval": {"message": "go?"}}, "pay": {"needs": ["gate"], "tool": "ok", "args": {}}});
    let harness = Harness::with("w", tasks).await;
    let run = harness.start("w").await;
    let digest = harness.asked(&run, "gate").await.digest;
    let mut all = tokio::task::JoinSet::new();
    for n in 0..100 {
        let (engine, admin, run) = (harness.engine.clone(), harness.admin.clone(), run.clone());
        let decision = Decision { approve: n % 2 == 0, digest: digest.clone(), ..Decision::default() };
        all.spawn(async move { engine.gates(&admin).answer(&run, "gate", decision).await });
    }
    let told: Vec<&str> = all.join_all().await.iter().map(refusal).collect();
    assert_eq!(told.iter().filter(|told| **told == "taken").count(), 1, "{told:?}");
    assert!(told.iter().all(|told| ["taken", "conflict"].contains(told)), "{told:?}");
    let view = harness.ended(&run).await;
    let approved = status(&view, "gate").0 == "success";
    assert_eq!(harness.called().len(), usize::from(approved));
}

#[tokio::test(start_paused = true)]
async fn an_answer_for_another_digest_is_refused_and_changes_nothing() {
    let harness = Harness::with("w", json!({"gate": {"approval": {"message": "go?"}}})).await;
    let (one, two) = (harness.start("w").await, harness.start("w").await);
    let other = harness.asked(&two, "gate").await.digest;
    harness.asked(&one, "gate").await;
    for digest in [other, Some(String::new()), Some("0".repeat(64))] {
        let decision = Decision { approve: false, digest, ..Decision::default() };
        assert_eq!(refusal(&harness.engine.gates(&harness.admin).answer(&one, "gate", decision).await), "conflict");
    }
    assert_eq!(harness.view(&one).await.status, "paused");
    harness.approve(&harness.admin, &one, "gate").await;
    assert_eq!(harness.ended(&one).await.status, "completed");
}

#[tokio::test(start_paused = true)]
async fn a_form_takes_what_its_schema_asks_for() {
    let form = json!({"type": "object", "required": ["sum"], "additionalProperties": false,
        "properties": {"sum": {"type": "integer", "minimum": 1}}});
    let tasks = json!({"gate": {"approval": {"message": "how much?", "form": form}},
        "pay": {"needs": ["gate"], "tool": "ok", "args": {"sum": "{{tasks.gate.body.data.sum}}"}}});
    let harness = Harness::with("w", tasks).await;
    let run = harness.start("w").await;
    let calls = harness.asked(&run, "gate").await.asks["calls"].clone();
    assert_eq!(calls[0]["not_yet_known"], json!(true), "it depends on what is filled in");
    for data in [None, Some(json!(null)), Some(json!({})), Some(json!({"sum": 0})), Some(json!({"sum": 1, "x": 1}))] {
        let decision = Decision { approve: true, data, ..Decision::default() };
        assert_eq!(refusal(&harness.engine.gates(&harness.admin).answer(&run, "gate", decision).await), "input");
    }
    let decision = Decision { approve: true, data: Some(json!({"sum": 3})), ..Decision::default() };
    harness.engine.gates(&harness.admin).answer(&run, "gate", decision).await.unwrap();
    assert_eq!(harness.ended(&run).await.status, "completed");
    assert_eq!(harness.called_with(), [json!({"sum": 3})]);
    // Who denies fills in nothing.
    let run = harness.start("w").await;
    harness.answer(&harness.admin, &run, "gate", false).await.unwrap();
    assert_eq!(harness.ended(&run).await.status, "cancelled");
}

#[tokio::test(start_paused = true)]
async fn two_people_approve_and_one_denial_ends_it() {
    let harness = Harness::with("w", json!({"gate": {"approval": {"message": "go?", "approvals": 2}}})).await;
    for name in ["ann", "bob"] {
        harness.user(name, &[], PERSON).await;
    }
    let (ann, bob) = (harness.person("ann").await, harness.person("bob").await);
    let run = harness.start("w").await;
    harness.approve(&ann, &run, "gate").await;
    assert_eq!(refusal(&harness.answer(&ann, &run, "gate", true).await), "conflict");
    assert_eq!(harness.asked(&run, "gate").await.approved_by, ["ann"]);
    harness.approve(&bob, &run, "gate").await;
    assert_eq!(harness.ended(&run).await.status, "completed");
    let run = harness.start("w").await;
    harness.approve(&ann, &run, "gate").await;
    harness.answer(&bob, &run, "gate", false).await.unwrap();
    assert_eq!(harness.ended(&run).await.status, "cancelled");
}

#[tokio::test(start_paused = true)]
async fn the_one_signal_does_not_approve_a_call_that_is_held() {
    let harness = Harness::with("w", json!({"pay": {"tool": "ok", "args": {}}})).await;
    harness.policy("money", crate::harness::hold("tool:ok")).await;
    let run = harness.start("w").await;
    harness.asked(&run, "pay").await;
    assert_eq!(refusal(&harness.engine.steps(&harness.admin).ready(&run, "pay").await), "input");
    assert_eq!(harness.called().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_answer_by_name_only_is_not_taken_for_the_next_round() {
    let each = json!({"for_each": [1, 2], "max_parallel": 1,
        "tasks": {"ask": {"approval": {"message": "item {{item}}?"}}}});
    let harness = Harness::with("w", json!({"each": each})).await;
    let run = harness.start("w").await;
    let yes = || Decision { approve: true, ..Decision::default() };
    harness.asked(&run, "each[0].ask").await;
    harness.engine.gates(&harness.admin).answer(&run, "ask", yes()).await.unwrap();
    let digest = harness.asked(&run, "each[1].ask").await.digest;
    // The same once more, because its answer was lost: no one has seen the second question.
    assert_eq!(refusal(&harness.engine.gates(&harness.admin).answer(&run, "ask", yes()).await), "input");
    assert_eq!(refusal(&harness.engine.steps(&harness.admin).ready(&run, "ask").await), "input");
    assert_eq!(harness.view(&run).await.status, "paused");
    harness.engine.gates(&harness.admin).answer(&run, "ask", Decision { digest, ..yes() }).await.unwrap();
    assert_eq!(harness.ended(&run).await.status, "completed");
    // An answer that names the round says which one it is for.
    let run = harness.start("w").await;
    for round in ["each[0].ask", "each[1].ask"] {
        harness.asked(&run, round).await;
        harness.engine.gates(&harness.admin).answer(&run, round, yes()).await.unwrap();
    }
    assert_eq!(harness.ended(&run).await.status, "completed");
}

#[tokio::test(start_paused = true)]
async fn approvers_that_resolve_to_no_user_fail_the_gate() {
    let gate = |field: &str| json!({"gate": {"approval": {"message": "go?", field: "{{input.who}}", "timeout": "1h"}}});
    let harness = Harness::with("approvers", gate("approvers")).await;
    harness.define("escalate_to", gate("escalate_to")).await;
    for workflow in ["approvers", "escalate_to"] {
        for who in [json!([]), json!(null), json!([{"name": "ann"}]), json!(7), json!(" ")] {
            let run = harness.start_as(&harness.admin, workflow, json!({"who": who})).await;
            let view = harness.ended(&run).await;
            assert_eq!(status(&view, "gate"), ("template_error", Some("template_error".into())), "{who}");
        }
        let run = harness.start_as(&harness.admin, workflow, json!({"who": ["ann"]})).await;
        harness.asked(&run, "gate").await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_user_who_retried_a_run_does_not_count_as_another_person() {
    let tasks = json!({"try": {"tool": "flaky", "args": {}, "retries": 0},
        "gate": {"needs": ["try"], "approval": {"message": "go?", "allow_self": false}},
        "pay": {"needs": ["gate"], "tool": "ok", "args": {"sum": "{{tasks.gate.body.data ?? 1}}"}}});
    let harness = Harness::with("w", tasks).await;
    let policy = NewPolicy { allow_self: false, ..hold("tool:ok") };
    harness.policy("money", policy).await;
    let (ann, bob) = (harness.user("ann", &[], PERSON).await, harness.user("bob", &[], PERSON).await);
    let run = harness.start_as(&ann, "w", json!({})).await;
    assert_eq!(harness.ended(&run).await.status, "failed");
    harness.engine.runs(&bob).retry(&run, Retry::SameVersion).await.unwrap();
    for step in ["gate", "pay"] {
        for who in [&ann, &bob] {
            assert_eq!(refusal(&harness.answer(who, &run, step, true).await), "refused", "{step}");
        }
        harness.approve(&harness.admin, &run, step).await;
    }
    assert_eq!(harness.ended(&run).await.status, "completed");
}

#[tokio::test(start_paused = true)]
async fn those_who_may_approve_still_may_after_others_are_asked_too() {
    let tasks = json!({"gate": {"approval": {"message": "go?", "escalate_to": "boss", "timeout": "10m"}}});
    let harness = Harness::with("w", tasks).await;
    let ann = harness.user("ann", &[], PERSON).await;
    let (boss, eve) = (harness.user("boss", &[], &[]).await, harness.user("eve", &[], &["workflow.read"]).await);
    for who in [&ann, &boss] {
        let run = harness.start("w").await;
        harness.asked(&run, "gate").await;
        harness.pass(11 * 60).await;
        assert_ne!(refusal(&harness.answer(&eve, &run, "gate", true).await), "taken");
        harness.approve(who, &run, "gate").await;
        assert_eq!(harness.ended(&run).await.status, "completed");
    }
}
