//! Questions and tasks: the step is suspended with a note and continues with it, in this process or another.

use crate::harness::{Harness, asked, bad, call, failure, later, resumed, success};
use serde_json::{Value, json};
use std::time::Duration;

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
