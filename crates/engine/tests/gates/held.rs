//! Calls that a policy holds: what satisfies it, what does not, and what happens while they wait.

use crate::rig::{PERSON, Rig, hold, list, refusal, status, within};
use serde_json::{Value, json};
use stepwell_engine::commands::{Decision, NewPolicy, Override, Retry, Source, UserChange};
use stepwell_engine::{PolicyEffect, UnknownOutcome};

fn pay(args: Value) -> Value {
    json!({"pay": {"tool": "ok", "args": args}})
}

fn gated(approval: Value) -> Value {
    json!({"gate": {"approval": approval}, "pay": {"needs": ["gate"], "tool": "ok", "args": {"sum": "{{input.sum ?? 1}}"}}})
}

#[tokio::test(start_paused = true)]
async fn a_call_is_held_and_made_once_somebody_approves_it() {
    let rig = Rig::with("w", pay(json!({"sum": 7}))).await;
    rig.policy("money", hold("tool:ok")).await;
    let run = rig.start("w").await;
    let asked = rig.asked(&run, "pay").await;
    assert_eq!((rig.view(&run).await.status, rig.called().len()), ("paused", 0));
    assert_eq!(asked.asks["calls"][0]["input"], json!({"tool": "ok", "args": {"sum": 7}}));
    assert_eq!(asked.asks["policy"], "money");
    rig.approve(&rig.admin, &run, "pay").await;
    let view = rig.ended(&run).await;
    assert_eq!((view.status, rig.called()), ("completed", list(&["pay"])));
}

#[tokio::test(start_paused = true)]
async fn a_held_call_that_is_denied_ends_as_a_denied_gate_does() {
    let rig = Rig::with("plain", pay(json!({}))).await;
    rig.policy("money", hold("tool:ok")).await;
    let run = rig.start("plain").await;
    rig.answer(&rig.admin, &run, "pay", false).await.unwrap();
    let view = rig.ended(&run).await;
    assert_eq!((view.status, status(&view, "pay")), ("cancelled", ("denied", Some("denied".into()))));
    let handled = json!({"pay": {"tool": "ok", "args": {}},
        "tell": {"needs": ["pay"], "if": "tasks.pay.status == 'denied'", "tool": "safe", "args": {}}});
    rig.define("handled", handled).await;
    let run = rig.start("handled").await;
    rig.answer(&rig.admin, &run, "pay", false).await.unwrap();
    let view = rig.ended(&run).await;
    assert_eq!((view.status, status(&view, "tell").0), ("completed", "success"));
    assert_eq!(rig.called(), ["tell"]);
}

#[tokio::test(start_paused = true)]
async fn deny_goes_over_approval_and_that_over_allow() {
    let rig = Rig::with("w", pay(json!({}))).await;
    rig.policy("open", NewPolicy { effect: PolicyEffect::Allow, ..hold("tool:*") }).await;
    assert_eq!(rig.ended(&rig.start("w").await).await.status, "completed");
    rig.policy("gate", hold("tool:o*")).await;
    let run = rig.start("w").await;
    rig.asked(&run, "pay").await;
    rig.policy("never", NewPolicy { effect: PolicyEffect::Deny, ..hold("tool:ok") }).await;
    // Policies are looked at when the call is about to be made, also after somebody approved it.
    rig.approve(&rig.admin, &run, "pay").await;
    let view = rig.ended(&run).await;
    assert_eq!(status(&view, "pay"), ("failed", Some("denied_by_policy".into())));
    assert_eq!(rig.called().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_is_gone_or_stricter_counts_as_it_is_at_the_call() {
    let rig = Rig::with("w", pay(json!({}))).await;
    let bob = rig.user("bob", &[], PERSON).await;
    rig.policy("money", hold("tool:ok")).await;
    let run = rig.start("w").await;
    rig.asked(&run, "pay").await;
    rig.policy("money", NewPolicy { approvers: list(&["bob"]), ..hold("tool:ok") }).await;
    // Whoever approved is no longer the one who is asked: the call is held again, for bob.
    rig.approve(&rig.admin, &run, "pay").await;
    rig.pass(5).await;
    let again = rig.asked(&run, "pay").await;
    assert_eq!((&again.asks["approvers"], again.mine, rig.called().len()), (&json!(["bob"]), false, 0));
    rig.approve(&bob, &run, "pay").await;
    assert_eq!(rig.ended(&run).await.status, "completed");
    assert_eq!(rig.called().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_showed_the_call_satisfies_the_policy() {
    let rig = Rig::with("w", gated(json!({"message": "pay {{input.sum}}?"}))).await;
    rig.policy("money", hold("tool:ok")).await;
    let run = rig.start_as(&rig.admin, "w", json!({"sum": 5})).await;
    let asked = rig.asked(&run, "gate").await;
    assert_eq!(asked.asks["calls"][0]["input"]["args"], json!({"sum": 5}));
    rig.approve(&rig.admin, &run, "gate").await;
    assert_eq!(rig.ended(&run).await.status, "completed");
    assert_eq!(rig.called_with(), [json!({"sum": 5})]);
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_time_approved_or_others_answered_does_not_satisfy_it() {
    let rig = Rig::with("late", gated(json!({"timeout": "10s", "on_timeout": "approve"}))).await;
    let bob = rig.user("bob", &[], PERSON).await;
    rig.policy("money", NewPolicy { approvers: list(&["bob"]), ..hold("tool:ok") }).await;
    let run = rig.start("late").await;
    rig.pass(20).await;
    rig.asked(&run, "pay").await;
    rig.define("other", gated(json!({"message": "pay?"}))).await;
    let run = rig.start("other").await;
    rig.approve(&rig.admin, &run, "gate").await;
    rig.pass(5).await;
    assert_eq!(refusal(&rig.answer(&rig.admin, &run, "pay", true).await), "refused");
    rig.approve(&bob, &run, "pay").await;
    assert_eq!(rig.ended(&run).await.status, "completed");
    let run = rig.start("other").await;
    rig.approve(&bob, &run, "gate").await;
    assert_eq!(rig.ended(&run).await.status, "completed");
}

#[tokio::test(start_paused = true)]
async fn whoever_writes_a_workflow_cannot_name_themselves_around_a_policy() {
    let rig = Rig::new().await;
    let writer = &["workflow.define", "workflow.run", "workflow.read", "tool:*"];
    let eve = rig.user("eve", &[], writer).await;
    let text = json!({"name": "w", "tasks": gated(json!({"approvers": ["eve"]}))}).to_string();
    rig.engine.workflows(&eve).define(Source { text: &text, file: None }).await.unwrap();
    rig.policy("money", hold("tool:ok")).await;
    let run = rig.start_as(&eve, "w", json!({})).await;
    rig.approve(&eve, &run, "gate").await;
    rig.pass(5).await;
    assert_eq!(refusal(&rig.answer(&eve, &run, "pay", true).await), "forbidden");
    assert_eq!(rig.called().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_administrator_does_not_make_up_the_result_of_a_held_call() {
    let rig = Rig::with("w", pay(json!({}))).await;
    rig.policy("money", hold("tool:ok")).await;
    let run = rig.start("w").await;
    rig.asked(&run, "pay").await;
    let by_hand = Override { outcome: Ok(json!(1)), comment: None };
    let answer = rig.engine.steps(&rig.admin).override_step(&run, "pay", by_hand).await;
    assert!(answer.is_err());
    assert_eq!(rig.view(&run).await.status, "paused");
}

#[tokio::test(start_paused = true)]
async fn arguments_that_were_not_known_at_the_gate_are_asked_again() {
    let tasks = json!({"gate": {"approval": {"message": "go?"}},
        "look": {"needs": ["gate"], "tool": "safe", "args": {"sum": 9}},
        "pay": {"needs": ["look"], "tool": "ok", "args": {"sum": "{{tasks.look.body.sum}}"}}});
    let rig = Rig::with("w", tasks).await;
    rig.policy("money", hold("tool:ok")).await;
    let run = rig.start("w").await;
    let calls = rig.asked(&run, "gate").await.asks["calls"].clone();
    assert_eq!((&calls[0]["step"], &calls[0]["input"]["args"]), (&json!("look"), &json!({"sum": 9})));
    assert_eq!((&calls[1]["step"], &calls[1]["not_yet_known"]), (&json!("pay"), &json!(true)));
    rig.approve(&rig.admin, &run, "gate").await;
    rig.pass(5).await;
    let held = rig.asked(&run, "pay").await;
    assert_eq!(held.asks["calls"][0]["input"]["args"], json!({"sum": 9}));
    assert_eq!(rig.called(), ["look"]);
}

#[tokio::test(start_paused = true)]
async fn attempts_share_an_approval_and_a_retry_of_the_run_asks_again() {
    let rig = Rig::with(
        "w",
        json!({"pay": {"tool": "flaky", "args": {}, "retries": 2},
        "bad": {"needs": ["pay"], "tool": "fail", "args": {}, "retries": 0}}),
    )
    .await;
    rig.policy("money", hold("tool:flaky")).await;
    let run = rig.start("w").await;
    rig.approve(&rig.admin, &run, "pay").await;
    let view = rig.ended(&run).await;
    assert_eq!((view.status, rig.called()), ("failed", list(&["pay", "pay", "bad"])));
    // What stands is not called again; what runs again is asked about again.
    rig.define("x", json!({"pay": {"tool": "fail", "args": {}, "retries": 0}})).await;
    rig.policy("more", hold("tool:fail")).await;
    let run = rig.start("x").await;
    let first = rig.asked(&run, "pay").await.digest;
    rig.approve(&rig.admin, &run, "pay").await;
    assert_eq!(rig.ended(&run).await.status, "failed");
    rig.engine.runs(&rig.admin).retry(&run, Retry::SameVersion).await.unwrap();
    let second = rig.asked(&run, "pay").await.digest;
    assert_ne!(first, second);
    let stale = Decision { approve: true, digest: first, ..Decision::default() };
    assert_eq!(refusal(&rig.engine.gates(&rig.admin).answer(&run, "pay", stale).await), "conflict");
    assert_eq!(rig.called().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_gate_of_before_a_retry_does_not_count_after_it() {
    let tasks = json!({"gate": {"approval": {"message": "go?"}},
        "pay": {"needs": ["gate"], "tool": "fail", "args": {}, "retries": 0}});
    let rig = Rig::with("w", tasks).await;
    rig.policy("money", hold("tool:fail")).await;
    let run = rig.start("w").await;
    rig.approve(&rig.admin, &run, "gate").await;
    assert_eq!(rig.ended(&run).await.status, "failed");
    assert_eq!(rig.called(), ["pay"]);
    rig.engine.runs(&rig.admin).retry(&run, Retry::SameVersion).await.unwrap();
    rig.asked(&run, "pay").await;
    assert_eq!(rig.called(), ["pay"]);
}

#[tokio::test(start_paused = true)]
async fn several_people_must_agree_and_whoever_started_it_may_not() {
    let rig = Rig::with("w", pay(json!({}))).await;
    rig.user("ann", &[], PERSON).await;
    for name in ["bob", "cid"] {
        rig.user(name, &[], PERSON).await;
    }
    let (ann, bob, cid) = (rig.person("ann").await, rig.person("bob").await, rig.person("cid").await);
    rig.policy("money", NewPolicy { approvals: 2, allow_self: false, ..hold("tool:ok") }).await;
    let run = rig.start_as(&ann, "w", json!({})).await;
    assert_eq!(refusal(&rig.answer(&ann, &run, "pay", true).await), "refused");
    rig.approve(&bob, &run, "pay").await;
    assert_eq!(refusal(&rig.answer(&bob, &run, "pay", true).await), "conflict");
    assert_eq!(rig.called().len(), 0);
    rig.approve(&cid, &run, "pay").await;
    assert_eq!(rig.ended(&run).await.status, "completed");
    let run = rig.start_as(&ann, "w", json!({})).await;
    rig.approve(&bob, &run, "pay").await;
    rig.answer(&cid, &run, "pay", false).await.unwrap();
    assert_eq!(rig.ended(&run).await.status, "cancelled");
}

#[tokio::test(start_paused = true)]
async fn two_policies_are_both_satisfied_in_the_end() {
    let rig = Rig::with("w", pay(json!({}))).await;
    for name in ["bob", "cid"] {
        rig.user(name, &[], PERSON).await;
    }
    let (bob, cid) = (rig.person("bob").await, rig.person("cid").await);
    rig.policy("one", NewPolicy { approvers: list(&["bob"]), ..hold("tool:ok") }).await;
    rig.policy("two", NewPolicy { approvers: list(&["cid"]), ..hold("tool:o*") }).await;
    let run = rig.start("w").await;
    let mut asked = 0;
    while rig.called().is_empty() && asked < 5 {
        let approvers = rig.asked(&run, "pay").await.asks["approvers"].clone();
        let who = if approvers == json!(["bob"]) { &bob } else { &cid };
        rig.approve(who, &run, "pay").await;
        rig.pass(2).await;
        asked += 1;
    }
    assert_eq!((rig.ended(&run).await.status, asked), ("completed", 2));
}

#[tokio::test(start_paused = true)]
async fn a_held_call_expires_or_ends_with_its_run() {
    let rig = Rig::with("w", pay(json!({}))).await;
    rig.policy("money", within(hold("tool:ok"), 60)).await;
    let run = rig.start("w").await;
    let view = rig.ended(&run).await;
    assert_eq!(status(&view, "pay"), ("denied", Some("expired".into())));
    let run = rig.start("w").await;
    let digest = rig.asked(&run, "pay").await.digest;
    rig.engine.runs(&rig.admin).cancel(&run, None).await.unwrap();
    assert_eq!(rig.ended(&run).await.status, "cancelled");
    let approve = Decision { approve: true, digest, ..Decision::default() };
    let late = rig.engine.gates(&rig.admin).answer(&run, "pay", approve).await;
    assert_eq!(refusal(&late), "conflict");
    rig.pass(120).await;
    assert_eq!(rig.called().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_held_call_is_still_held_after_a_restart() {
    let rig = Rig::with("w", pay(json!({"sum": 1}))).await;
    rig.policy("money", within(hold("tool:ok"), 3_600)).await;
    let run = rig.start("w").await;
    let before = rig.asked(&run, "pay").await;
    let rig = rig.restarted().await;
    rig.pass(60).await;
    let after = rig.asked(&run, "pay").await;
    assert_eq!((&after.asks, after.until), (&before.asks, before.until));
    rig.approve(&rig.admin, &run, "pay").await;
    assert_eq!(rig.ended(&run).await.status, "completed");
    assert_eq!(rig.called().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_right_that_was_taken_meanwhile_stops_the_call_though_it_was_approved() {
    let rig = Rig::with("w", pay(json!({}))).await;
    let ann = rig.user("ann", &[], PERSON).await;
    rig.policy("money", hold("tool:ok")).await;
    let run = rig.start_as(&ann, "w", json!({})).await;
    rig.asked(&run, "pay").await;
    rig.change("ann", UserChange { grants: Some(list(&["workflow.run"])), ..UserChange::default() }).await;
    rig.approve(&rig.admin, &run, "pay").await;
    let view = rig.ended(&run).await;
    assert_eq!((status(&view, "pay"), rig.called().len()), (("failed", Some("forbidden".into())), 0));
}

#[tokio::test(start_paused = true)]
async fn what_a_policy_says_may_happen_once_is_not_made_twice() {
    let rig = Rig::with("harm", json!({"pay": {"tool": "lost", "args": {}, "retries": 3}})).await;
    let once = |at_most_once| NewPolicy { effect: PolicyEffect::Allow, at_most_once, ..hold("tool:*") };
    assert_eq!(rig.ended(&rig.start("harm").await).await.status, "completed");
    assert_eq!(rig.called().len(), 2);
    rig.policy("once", once(Some(UnknownOutcome::Fail))).await;
    rig.define("harm2", json!({"buy": {"tool": "lost", "args": {}, "retries": 3}})).await;
    let view = rig.ended(&rig.start("harm2").await).await;
    assert_eq!((status(&view, "buy"), rig.called().len()), (("failed", Some("outcome_unknown".into())), 3));
    rig.policy("once", once(Some(UnknownOutcome::Ask))).await;
    rig.define("harm3", json!({"send": {"tool": "lost", "args": {}, "retries": 3}})).await;
    let run = rig.start("harm3").await;
    assert!(rig.asked(&run, "send").await.verdict);
    assert_eq!(rig.called().len(), 4);
    // A tool that can be called twice without harm is.
    rig.define("safe", json!({"look": {"tool": "safe_lost", "args": {}, "retries": 3}})).await;
    assert_eq!(rig.ended(&rig.start("safe").await).await.status, "completed");
    assert_eq!(rig.called().len(), 6);
}

#[tokio::test(start_paused = true)]
async fn the_word_of_a_named_approver_who_is_disabled_counts_no_more() {
    let rig = Rig::with("w", gated(json!({"message": "pay?"}))).await;
    let (bob, eve) = (rig.user("bob", &[], PERSON).await, rig.user("eve", &[], PERSON).await);
    let policy = NewPolicy { approvers: list(&["bob", "eve"]), approvals: 2, ..hold("tool:ok") };
    rig.policy("money", policy).await;
    let run = rig.start("w").await;
    rig.approve(&rig.admin, &run, "gate").await;
    rig.approve(&bob, &run, "pay").await;
    rig.change("bob", UserChange { disabled: Some(true), ..UserChange::default() }).await;
    rig.approve(&eve, &run, "pay").await;
    rig.pass(5).await;
    rig.asked(&run, "pay").await;
    assert_eq!(rig.called(), Vec::<String>::new());
}
