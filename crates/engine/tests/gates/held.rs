//! Calls that a policy holds: what satisfies it, what does not, and what happens while they wait.

use crate::harness::{Harness, PERSON, hold, list, refusal, status, within};
use serde_json::{Value, json};
use stepwell_engine::commands::{Decision, NewPolicy, NewSecret, Override, Retry, Source, UserChange};
use stepwell_engine::{PolicyEffect, UnknownOutcome};

fn pay(args: Value) -> Value {
    json!({"pay": {"tool": "ok", "args": args}})
}

fn gated(approval: Value) -> Value {
    json!({"gate": {"approval": approval}, "pay": {"needs": ["gate"], "tool": "ok", "args": {"sum": "{{input.sum ?? 1}}"}}})
}

#[tokio::test(start_paused = true)]
async fn a_call_is_held_and_made_once_somebody_approves_it() {
    let harness = Harness::with("w", pay(json!({"sum": 7}))).await;
    harness.policy("money", hold("tool:ok")).await;
    let run = harness.start("w").await;
    let asked = harness.asked(&run, "pay").await;
    assert_eq!((harness.view(&run).await.status, harness.called().len()), ("paused", 0));
    assert_eq!(asked.asks["calls"][0]["input"], json!({"tool": "ok", "args": {"sum": 7}}));
    assert_eq!(asked.asks["policy"], "money");
    harness.approve(&harness.admin, &run, "pay").await;
    let view = harness.ended(&run).await;
    assert_eq!((view.status, harness.called()), ("completed", list(&["pay"])));
}

#[tokio::test(start_paused = true)]
async fn a_held_call_that_is_denied_ends_as_a_denied_gate_does() {
    let harness = Harness::with("plain", pay(json!({}))).await;
    harness.policy("money", hold("tool:ok")).await;
    let run = harness.start("plain").await;
    harness.answer(&harness.admin, &run, "pay", false).await.unwrap();
    let view = harness.ended(&run).await;
    assert_eq!((view.status, status(&view, "pay")), ("cancelled", ("denied", Some("denied".into()))));
    let handled = json!({"pay": {"tool": "ok", "args": {}},
        "tell": {"needs": ["pay"], "if": "tasks.pay.status == 'denied'", "tool": "safe", "args": {}}});
    harness.define("handled", handled).await;
    let run = harness.start("handled").await;
    harness.answer(&harness.admin, &run, "pay", false).await.unwrap();
    let view = harness.ended(&run).await;
    assert_eq!((view.status, status(&view, "tell").0), ("completed", "success"));
    assert_eq!(harness.called(), ["tell"]);
}

#[tokio::test(start_paused = true)]
async fn deny_goes_over_approval_and_that_over_allow() {
    let harness = Harness::with("w", pay(json!({}))).await;
    harness.policy("open", NewPolicy { effect: PolicyEffect::Allow, ..hold("tool:*") }).await;
    assert_eq!(harness.ended(&harness.start("w").await).await.status, "completed");
    harness.policy("gate", hold("tool:o*")).await;
    let run = harness.start("w").await;
    harness.asked(&run, "pay").await;
    harness.policy("never", NewPolicy { effect: PolicyEffect::Deny, ..hold("tool:ok") }).await;
    // Policies are looked at when the call is about to be made, also after somebody approved it.
    harness.approve(&harness.admin, &run, "pay").await;
    let view = harness.ended(&run).await;
    assert_eq!(status(&view, "pay"), ("failed", Some("denied_by_policy".into())));
    assert_eq!(harness.called().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_is_gone_or_stricter_counts_as_it_is_at_the_call() {
    let harness = Harness::with("w", pay(json!({}))).await;
    let bob = harness.user("bob", &[], PERSON).await;
    harness.policy("money", hold("tool:ok")).await;
    let run = harness.start("w").await;
    harness.asked(&run, "pay").await;
    harness.policy("money", NewPolicy { approvers: list(&["bob"]), ..hold("tool:ok") }).await;
    // The user who approved is no longer the one who is asked: the call is held again, for bob.
    harness.approve(&harness.admin, &run, "pay").await;
    harness.pass(5).await;
    let again = harness.asked(&run, "pay").await;
    assert_eq!((&again.asks["approvers"], again.mine, harness.called().len()), (&json!(["bob"]), false, 0));
    harness.approve(&bob, &run, "pay").await;
    assert_eq!(harness.ended(&run).await.status, "completed");
    assert_eq!(harness.called().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_showed_the_call_satisfies_the_policy() {
    let harness = Harness::with("w", gated(json!({"message": "pay {{input.sum}}?"}))).await;
    harness.policy("money", hold("tool:ok")).await;
    let run = harness.start_as(&harness.admin, "w", json!({"sum": 5})).await;
    let asked = harness.asked(&run, "gate").await;
    assert_eq!(asked.asks["calls"][0]["input"]["args"], json!({"sum": 5}));
    harness.approve(&harness.admin, &run, "gate").await;
    assert_eq!(harness.ended(&run).await.status, "completed");
    assert_eq!(harness.called_with(), [json!({"sum": 5})]);
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_time_approved_or_others_answered_does_not_satisfy_it() {
    let harness = Harness::with("late", gated(json!({"timeout": "10s", "on_timeout": "approve"}))).await;
    let bob = harness.user("bob", &[], PERSON).await;
    harness.policy("money", NewPolicy { approvers: list(&["bob"]), ..hold("tool:ok") }).await;
    let run = harness.start("late").await;
    harness.pass(20).await;
    harness.asked(&run, "pay").await;
    harness.define("other", gated(json!({"message": "pay?"}))).await;
    let run = harness.start("other").await;
    harness.approve(&harness.admin, &run, "gate").await;
    harness.pass(5).await;
    assert_eq!(refusal(&harness.answer(&harness.admin, &run, "pay", true).await), "refused");
    harness.approve(&bob, &run, "pay").await;
    assert_eq!(harness.ended(&run).await.status, "completed");
    let run = harness.start("other").await;
    harness.approve(&bob, &run, "gate").await;
    assert_eq!(harness.ended(&run).await.status, "completed");
}

#[tokio::test(start_paused = true)]
async fn an_author_cannot_satisfy_a_policy_by_naming_themselves() {
    let harness = Harness::new().await;
    let writer = &["workflow.define", "workflow.run", "workflow.read", "tool:*"];
    let eve = harness.user("eve", &[], writer).await;
    let text = json!({"name": "w", "tasks": gated(json!({"approvers": ["eve"]}))}).to_string();
    harness.engine.workflows(&eve).define(Source { text: &text, file: None }).await.unwrap();
    harness.policy("money", hold("tool:ok")).await;
    let run = harness.start_as(&eve, "w", json!({})).await;
    harness.approve(&eve, &run, "gate").await;
    harness.pass(5).await;
    assert_eq!(refusal(&harness.answer(&eve, &run, "pay", true).await), "forbidden");
    assert_eq!(harness.called().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_administrator_does_not_make_up_the_result_of_a_held_call() {
    let harness = Harness::with("w", pay(json!({}))).await;
    harness.policy("money", hold("tool:ok")).await;
    let run = harness.start("w").await;
    harness.asked(&run, "pay").await;
    let by_hand = Override { outcome: Ok(json!(1)), comment: None };
    let answer = harness.engine.steps(&harness.admin).override_step(&run, "pay", by_hand).await;
    assert!(answer.is_err());
    assert_eq!(harness.view(&run).await.status, "paused");
}

#[tokio::test(start_paused = true)]
async fn arguments_that_were_not_known_at_the_gate_are_asked_again() {
    let tasks = json!({"gate": {"approval": {"message": "go?"}},
        "look": {"needs": ["gate"], "tool": "safe", "args": {"sum": 9}},
        "pay": {"needs": ["look"], "tool": "ok", "args": {"sum": "{{tasks.look.body.sum}}"}}});
    let harness = Harness::with("w", tasks).await;
    harness.policy("money", hold("tool:ok")).await;
    let run = harness.start("w").await;
    let calls = harness.asked(&run, "gate").await.asks["calls"].clone();
    assert_eq!((&calls[0]["step"], &calls[0]["input"]["args"]), (&json!("look"), &json!({"sum": 9})));
    assert_eq!((&calls[1]["step"], &calls[1]["not_yet_known"]), (&json!("pay"), &json!(true)));
    harness.approve(&harness.admin, &run, "gate").await;
    harness.pass(5).await;
    let held = harness.asked(&run, "pay").await;
    assert_eq!(held.asks["calls"][0]["input"]["args"], json!({"sum": 9}));
    assert_eq!(harness.called(), ["look"]);
}

#[tokio::test(start_paused = true)]
async fn attempts_share_an_approval_and_a_retry_of_the_run_asks_again() {
    let harness = Harness::with(
        "w",
        json!({"pay": {"tool": "flaky", "args": {}, "retries": 2},
        "bad": {"needs": ["pay"], "tool": "fail", "args": {}, "retries": 0}}),
    )
    .await;
    harness.policy("money", hold("tool:flaky")).await;
    let run = harness.start("w").await;
    harness.approve(&harness.admin, &run, "pay").await;
    let view = harness.ended(&run).await;
    assert_eq!((view.status, harness.called()), ("failed", list(&["pay", "pay", "bad"])));
    // What stands is not called again; what runs again is asked about again.
    harness.define("x", json!({"pay": {"tool": "fail", "args": {}, "retries": 0}})).await;
    harness.policy("more", hold("tool:fail")).await;
    let run = harness.start("x").await;
    let first = harness.asked(&run, "pay").await.digest;
    harness.approve(&harness.admin, &run, "pay").await;
    assert_eq!(harness.ended(&run).await.status, "failed");
    harness.engine.runs(&harness.admin).retry(&run, Retry::SameVersion).await.unwrap();
    let second = harness.asked(&run, "pay").await.digest;
    assert_ne!(first, second);
    let stale = Decision { approve: true, digest: first, ..Decision::default() };
    assert_eq!(refusal(&harness.engine.gates(&harness.admin).answer(&run, "pay", stale).await), "conflict");
    assert_eq!(harness.called().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_gate_of_before_a_retry_does_not_count_after_it() {
    let tasks = json!({"gate": {"approval": {"message": "go?"}},
        "pay": {"needs": ["gate"], "tool": "fail", "args": {}, "retries": 0}});
    let harness = Harness::with("w", tasks).await;
    harness.policy("money", hold("tool:fail")).await;
    let run = harness.start("w").await;
    harness.approve(&harness.admin, &run, "gate").await;
    assert_eq!(harness.ended(&run).await.status, "failed");
    assert_eq!(harness.called(), ["pay"]);
    harness.engine.runs(&harness.admin).retry(&run, Retry::SameVersion).await.unwrap();
    harness.asked(&run, "pay").await;
    assert_eq!(harness.called(), ["pay"]);
}

#[tokio::test(start_paused = true)]
async fn several_people_must_agree_and_the_starter_may_not() {
    let harness = Harness::with("w", pay(json!({}))).await;
    harness.user("ann", &[], PERSON).await;
    for name in ["bob", "cid"] {
        harness.user(name, &[], PERSON).await;
    }
    let (ann, bob, cid) = (harness.person("ann").await, harness.person("bob").await, harness.person("cid").await);
    harness.policy("money", NewPolicy { approvals: 2, allow_self: false, ..hold("tool:ok") }).await;
    let run = harness.start_as(&ann, "w", json!({})).await;
    assert_eq!(refusal(&harness.answer(&ann, &run, "pay", true).await), "refused");
    harness.approve(&bob, &run, "pay").await;
    assert_eq!(refusal(&harness.answer(&bob, &run, "pay", true).await), "conflict");
    assert_eq!(harness.called().len(), 0);
    harness.approve(&cid, &run, "pay").await;
    assert_eq!(harness.ended(&run).await.status, "completed");
    let run = harness.start_as(&ann, "w", json!({})).await;
    harness.approve(&bob, &run, "pay").await;
    harness.answer(&cid, &run, "pay", false).await.unwrap();
    assert_eq!(harness.ended(&run).await.status, "cancelled");
}

#[tokio::test(start_paused = true)]
async fn two_policies_are_both_satisfied_in_the_end() {
    let harness = Harness::with("w", pay(json!({}))).await;
    for name in ["bob", "cid"] {
        harness.user(name, &[], PERSON).await;
    }
    let (bob, cid) = (harness.person("bob").await, harness.person("cid").await);
    harness.policy("one", NewPolicy { approvers: list(&["bob"]), ..hold("tool:ok") }).await;
    harness.policy("two", NewPolicy { approvers: list(&["cid"]), ..hold("tool:o*") }).await;
    let run = harness.start("w").await;
    let mut asked = 0;
    while harness.called().is_empty() && asked < 5 {
        let approvers = harness.asked(&run, "pay").await.asks["approvers"].clone();
        let who = if approvers == json!(["bob"]) { &bob } else { &cid };
        harness.approve(who, &run, "pay").await;
        harness.pass(2).await;
        asked += 1;
    }
    assert_eq!((harness.ended(&run).await.status, asked), ("completed", 2));
}

#[tokio::test(start_paused = true)]
async fn a_held_call_expires_or_ends_with_its_run() {
    let harness = Harness::with("w", pay(json!({}))).await;
    harness.policy("money", within(hold("tool:ok"), 60)).await;
    let run = harness.start("w").await;
    let view = harness.ended(&run).await;
    assert_eq!(status(&view, "pay"), ("denied", Some("expired".into())));
    let run = harness.start("w").await;
    let digest = harness.asked(&run, "pay").await.digest;
    harness.engine.runs(&harness.admin).cancel(&run, None).await.unwrap();
    assert_eq!(harness.ended(&run).await.status, "cancelled");
    let approve = Decision { approve: true, digest, ..Decision::default() };
    let late = harness.engine.gates(&harness.admin).answer(&run, "pay", approve).await;
    assert_eq!(refusal(&late), "conflict");
    harness.pass(120).await;
    assert_eq!(harness.called().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_held_call_is_still_held_after_a_restart() {
    let harness = Harness::with("w", pay(json!({"sum": 1}))).await;
    harness.policy("money", within(hold("tool:ok"), 3_600)).await;
    let run = harness.start("w").await;
    let before = harness.asked(&run, "pay").await;
    let harness = harness.restarted().await;
    harness.pass(60).await;
    let after = harness.asked(&run, "pay").await;
    assert_eq!((&after.asks, after.until), (&before.asks, before.until));
    harness.approve(&harness.admin, &run, "pay").await;
    assert_eq!(harness.ended(&run).await.status, "completed");
    assert_eq!(harness.called().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_right_that_was_taken_meanwhile_stops_the_call_though_it_was_approved() {
    let harness = Harness::with("w", pay(json!({}))).await;
    let ann = harness.user("ann", &[], PERSON).await;
    harness.policy("money", hold("tool:ok")).await;
    let run = harness.start_as(&ann, "w", json!({})).await;
    harness.asked(&run, "pay").await;
    harness.change("ann", UserChange { grants: Some(list(&["workflow.run"])), ..UserChange::default() }).await;
    harness.approve(&harness.admin, &run, "pay").await;
    let view = harness.ended(&run).await;
    assert_eq!((status(&view, "pay"), harness.called().len()), (("failed", Some("forbidden".into())), 0));
}

#[tokio::test(start_paused = true)]
async fn what_a_policy_says_may_happen_once_is_not_made_twice() {
    let harness = Harness::with("harm", json!({"pay": {"tool": "lost", "args": {}, "retries": 3}})).await;
    let once = |at_most_once| NewPolicy { effect: PolicyEffect::Allow, at_most_once, ..hold("tool:*") };
    assert_eq!(harness.ended(&harness.start("harm").await).await.status, "completed");
    assert_eq!(harness.called().len(), 2);
    harness.policy("once", once(Some(UnknownOutcome::Fail))).await;
    harness.define("harm2", json!({"buy": {"tool": "lost", "args": {}, "retries": 3}})).await;
    let view = harness.ended(&harness.start("harm2").await).await;
    assert_eq!((status(&view, "buy"), harness.called().len()), (("failed", Some("outcome_unknown".into())), 3));
    harness.policy("once", once(Some(UnknownOutcome::Ask))).await;
    harness.define("harm3", json!({"send": {"tool": "lost", "args": {}, "retries": 3}})).await;
    let run = harness.start("harm3").await;
    assert!(harness.asked(&run, "send").await.verdict);
    assert_eq!(harness.called().len(), 4);
    // A tool that can be called twice without harm is.
    harness.define("safe", json!({"look": {"tool": "safe_lost", "args": {}, "retries": 3}})).await;
    assert_eq!(harness.ended(&harness.start("safe").await).await.status, "completed");
    assert_eq!(harness.called().len(), 6);
}

#[tokio::test(start_paused = true)]
async fn the_word_of_a_named_approver_who_is_disabled_counts_no_more() {
    let harness = Harness::with("w", gated(json!({"message": "pay?"}))).await;
    let (bob, eve) = (harness.user("bob", &[], PERSON).await, harness.user("eve", &[], PERSON).await);
    let policy = NewPolicy { approvers: list(&["bob", "eve"]), approvals: 2, ..hold("tool:ok") };
    harness.policy("money", policy).await;
    let run = harness.start("w").await;
    harness.approve(&harness.admin, &run, "gate").await;
    harness.approve(&bob, &run, "pay").await;
    harness.change("bob", UserChange { disabled: Some(true), ..UserChange::default() }).await;
    harness.approve(&eve, &run, "pay").await;
    harness.pass(5).await;
    harness.asked(&run, "pay").await;
    assert_eq!(harness.called(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn an_approval_does_not_outlive_a_change_of_its_secret() {
    let harness = Harness::with("w", pay(json!({"card": "{{secrets.CARD}}"}))).await;
    let card = async |value: &str| {
        let new = NewSecret { value: Some(value.into()), hosts: None };
        harness.engine.secrets(&harness.admin).put("CARD", new).await.unwrap();
    };
    card("4111111111111111").await;
    harness.policy("money", hold("tool:ok")).await;
    let run = harness.start("w").await;
    harness.asked(&run, "pay").await;
    harness.pass(1).await;
    card("4222222222222222").await;
    harness.approve(&harness.admin, &run, "pay").await;
    harness.pass(5).await;
    assert_eq!((harness.view(&run).await.status, harness.called().len()), ("paused", 0), "it is asked again");
    harness.approve(&harness.admin, &run, "pay").await;
    assert_eq!(harness.ended(&run).await.status, "completed");
    assert_eq!(harness.called_with(), [json!({"card": "4222222222222222"})]);
}

#[tokio::test(start_paused = true)]
async fn the_reason_of_a_policy_is_shown_to_the_caller_it_stops() {
    let harness = Harness::with("w", pay(json!({}))).await;
    let reason = Some("the budget is spent".to_string());
    harness.policy("never", NewPolicy { effect: PolicyEffect::Deny, reason, ..hold("tool:ok") }).await;
    let view = harness.ended(&harness.start("w").await).await;
    let error = view.tasks[0].error.clone().unwrap();
    assert_eq!(error["code"], "denied_by_policy");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("the policy never does not allow") && message.contains("the budget is spent"),
        "{message}"
    );
}
