//! Questions and tasks: the step is suspended with a note and continues with it, in this process or another.

use crate::harness::{Harness, asked, bad, call, failure, later, resumed, success};
use serde_json::{Value, json};
use std::time::Duration;
use stepwell_core::plan::Abandon;
use stepwell_engine::{StepCall, Until};

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_answered_and_the_answer_returns_with_the_state_of_the_server() {
    let harness = Harness::new(vec![bad(&[])]);
    let waits = harness.waits(call("bad__ask", json!({"word": "x"}))).await;
    let ask = asked(&waits);
    assert_eq!(ask["message"], "Which color?");
    assert_eq!((&ask["server"], &ask["tool"]), (&json!("bad"), &json!("bad__ask")));
    assert_eq!(ask["form"]["properties"]["color"]["type"], "string", "{ask}");
    assert!(waits.note["state"].is_string(), "{waits:?}");
    // No connection is held: another process can continue.
    harness.upstreams.stop().await;
    let harness = Harness::on(harness.store.clone(), vec![bad(&[])]);
    harness.ready("bad").await;
    // Resumed without an answer, it asks again.
    let again = harness.waits(resumed("bad__ask", json!({}), &waits, vec![])).await;
    assert_eq!(again, waits);
    let next = resumed("bad__ask", json!({"word": "x"}), &waits, vec![Value::Null, json!({"color": "blue"})]);
    let reply = success(harness.attempt(next).await.unwrap());
    assert_eq!(reply.body["state"], "kept by the client");
    assert_eq!(reply.body["answers"]["color"]["content"], json!({"color": "blue"}), "{reply:?}");
    assert_eq!(reply.body["answers"]["color"]["action"], "accept", "{reply:?}");
    harness.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_questions_become_one_form() {
    let harness = Harness::new(vec![bad(&[])]);
    let waits = harness.waits(call("bad__ask_two", json!({}))).await;
    let ask = asked(&waits);
    assert_eq!(ask["message"], "color: Which color?\nsize: Which size?");
    assert_eq!(ask["form"]["required"], json!(["color", "size"]));
    let answer = json!({"color": {"color": "red"}, "size": {"size": "xl"}});
    let reply = success(harness.attempt(resumed("bad__ask_two", json!({}), &waits, vec![answer])).await.unwrap());
    assert_eq!(reply.body["answers"]["size"]["content"], json!({"size": "xl"}), "{reply:?}");
    assert_eq!(reply.body["answers"]["color"]["content"], json!({"color": "red"}), "{reply:?}");
    harness.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_for_sampling_fails_the_step() {
    let harness = Harness::new(vec![bad(&[])]);
    let failure = harness.fails("bad__ask_model", json!({})).await;
    assert_eq!(*failure.code, *"unsupported_request");
    assert!(failure.message.contains("sampling/createMessage"), "{failure:?}");
    harness.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_polled_until_it_is_done() {
    let harness = Harness::new(vec![bad(&[])]);
    let args = json!({"word": "print"});
    let begun = harness.waits(call("bad__task", args.clone())).await;
    assert_eq!(later(&begun), Duration::from_secs(1));
    assert_eq!((&begun.note["server"], &begun.note["tool"]), (&json!("bad"), &json!("task")));
    let working = harness.waits(resumed("bad__task", args.clone(), &begun, vec![])).await;
    assert_eq!(working.note, begun.note);
    let reply = success(harness.attempt(resumed("bad__task", args.clone(), &working, vec![])).await.unwrap());
    assert_eq!(*reply.body, json!({"said": args}));
    harness.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_can_ask_and_gets_the_answer() {
    let harness = Harness::new(vec![bad(&[])]);
    let begun = harness.waits(call("bad__task_asks", json!({}))).await;
    let question = harness.waits(resumed("bad__task_asks", json!({}), &begun, vec![])).await;
    assert_eq!(asked(&question)["message"], "Who is it for?");
    let answers = vec![json!({"name": "Ada"})];
    let waiting = harness.waits(resumed("bad__task_asks", json!({}), &question, answers.clone())).await;
    later(&waiting);
    // The answer is not used for a later question.
    let reply = success(harness.attempt(resumed("bad__task_asks", json!({}), &waiting, answers)).await.unwrap());
    assert_eq!(reply.body["said"]["who"]["content"], json!({"name": "Ada"}), "{reply:?}");
    harness.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_task_fails_the_step_and_a_lost_one_is_reported() {
    let harness = Harness::new(vec![bad(&[])]);
    let begun = harness.waits(call("bad__task_fails", json!({}))).await;
    let (failed, _) = failure(harness.attempt(resumed("bad__task_fails", json!({}), &begun, vec![])).await.unwrap());
    assert_eq!((&*failed.code, failed.may_have_happened), ("task_failed", true));
    assert!(failed.message.contains("no paper"), "{failed:?}");
    let begun = harness.waits(call("bad__task", json!({}))).await;
    harness.fails("bad__crash", json!({})).await;
    // An unavailable server says nothing about the task.
    harness.down("bad").await;
    let waiting = harness.waits(resumed("bad__task", json!({}), &begun, vec![])).await;
    assert_eq!(waiting.note, begun.note);
    harness.until("bad", |server| server.connected == 2).await;
    let (gone, _) = failure(harness.attempt(resumed("bad__task", json!({}), &waiting, vec![])).await.unwrap());
    assert_eq!((&*gone.code, gone.may_have_happened), ("task_gone", true));
    harness.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_its_server_cancels_fails_the_step_and_may_have_happened() {
    let harness = Harness::new(vec![bad(&[])]);
    let begun = harness.waits(call("bad__task_cancelled", json!({}))).await;
    let next = resumed("bad__task_cancelled", json!({}), &begun, vec![]);
    let (failed, _) = failure(harness.attempt(next).await.unwrap());
    assert_eq!((&*failed.code, failed.may_have_happened), ("task_cancelled", true));
    assert!(failed.message.contains("out of ink"), "{failed:?}");
    harness.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_never_stops_asking_fails_the_step() {
    let harness = Harness::new(vec![bad(&[])]);
    let mut waits = harness.waits(call("bad__ask_forever", json!({}))).await;
    // More than any server is allowed, so that a missing limit fails the test instead of hanging it.
    for _ in 0..1_000 {
        match harness.attempt(resumed("bad__ask_forever", json!({}), &waits, vec![json!({"color": "blue"})])).await {
            Err(again) => waits = again,
            Ok(outcome) => {
                let (failed, _) = failure(outcome);
                assert_eq!((&*failed.code, failed.may_have_happened), ("too_many_rounds", true));
                return harness.upstreams.stop().await;
            }
        }
    }
    panic!("the tool was asked for ever");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_cannot_be_suspended_fails_and_says_why() {
    let harness = Harness::new(vec![bad(&[])]);
    for tool in ["bad__ask", "bad__task"] {
        let failure = failure(harness.run(call(tool, json!({}))).await).0;
        assert_eq!(&*failure.code, "cannot_wait", "{tool}: {failure:?}");
        assert!(!failure.retryable, "{tool}: {failure:?}");
    }
    harness.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_says_how_far_it_is() {
    let harness = Harness::new(vec![bad(&[])]);
    let begun = harness.waits(call("bad__task_slow", json!({}))).await;
    let working = harness.waits(resumed("bad__task_slow", json!({}), &begun, vec![])).await;
    let Until::Later { status, .. } = &working.until else { panic!("{working:?}") };
    assert_eq!(status.as_deref().map(str::trim), Some("page 3 of 7"));
    harness.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_asks_another_question_under_the_same_key_is_answered_again() {
    let harness = Harness::new(vec![bad(&[])]);
    let tool = "bad__task_asks_again";
    let mut waits = harness.waits(call(tool, json!({}))).await;
    let mut asked_so_far = Vec::new();
    let mut answers = Vec::new();
    // More attempts than it needs, so that a missing question fails the test instead of hanging it.
    for _ in 0..20 {
        if let Until::Answered { ask, .. } = &waits.until {
            asked_so_far.push(ask["message"].clone());
            answers.push(json!({"name": format!("Ada {}", asked_so_far.len())}));
        }
        let given = if asked_so_far.is_empty() { vec![] } else { answers.clone() };
        match harness.attempt(resumed(tool, json!({}), &waits, given)).await {
            Err(next) => waits = next,
            Ok(outcome) => {
                assert_eq!(asked_so_far, [json!("Who is it for?"), json!("And who pays?")]);
                assert_eq!(success(outcome).body["said"], json!(["Ada 1", "Ada 2"]));
                return harness.upstreams.stop().await;
            }
        }
    }
    panic!("it was asked {asked_so_far:?} and does not end: {waits:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_timeout_of_the_author_bounds_questions_and_tasks() {
    let harness = Harness::new(vec![bad(&[])]);
    // The bound is for the question, not for the start of the server.
    harness.ready("bad").await;
    let bound = Some(Duration::from_millis(1500));
    let asks = harness.waits(StepCall { bound, ..call("bad__ask", json!({})) }).await;
    let Until::Answered { timeout: Some(left), .. } = &asks.until else { panic!("{asks:?}") };
    assert!((1..=1500).contains(&left.0), "{left:?}");
    let begun = harness.waits(StepCall { bound, ..call("bad__task_slow", json!({})) }).await;
    let mut next = StepCall { bound, ..resumed("bad__task_slow", json!({}), &begun, vec![]) };
    let outcome = loop {
        match harness.attempt(next.clone()).await {
            Ok(outcome) => break outcome,
            Err(waits) => {
                let pause = later(&waits);
                assert!(pause <= Duration::from_millis(1500), "{waits:?}");
                tokio::time::sleep(pause).await;
                next = StepCall { bound, ..resumed("bad__task_slow", json!({}), &waits, vec![]) };
            }
        }
    };
    let (late, _) = failure(outcome);
    assert_eq!((&*late.code, late.may_have_happened), ("timeout", true), "{late:?}");
    harness.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_told_that_a_call_is_not_awaited_any_more() {
    let place = tempfile::tempdir().unwrap();
    let log = place.path().join("log");
    let harness = Harness::new(vec![bad(&[("LOG", log.to_str().unwrap())])]);
    let ask = harness.waits(call("bad__ask", json!({}))).await;
    let task = harness.waits(call("bad__task_slow", json!({}))).await;
    let asking = harness.waits(call("bad__task_asks", json!({}))).await;
    let question = harness.waits(resumed("bad__task_asks", json!({}), &asking, vec![])).await;
    for (tool, waits, reason) in [
        ("bad__ask", &ask, Abandon::Denied),
        ("bad__ask", &ask, Abandon::Over),
        ("bad__task_slow", &task, Abandon::Over),
        ("bad__task_asks", &question, Abandon::Denied),
    ] {
        let call = StepCall { input: json!({"args": {}}).into(), ..resumed(tool, json!({}), waits, vec![]) };
        harness.kind.abandon(call, reason).await.unwrap();
    }
    // A task that it forgot needs no second word.
    harness.kind.abandon(resumed("bad__task_slow", json!({}), &task, vec![]), Abandon::Over).await.unwrap();
    let told = std::fs::read_to_string(&log).unwrap();
    let state = "kept by the client";
    let expected = [
        &format!("decline ask {state}"),
        &format!("cancel ask {state}"),
        "cancel task-0",
        "decline task-1",
        "cancel task-1",
        "cancel task-0",
    ];
    assert_eq!(told.lines().collect::<Vec<_>>(), expected);
    harness.upstreams.stop().await;
}
