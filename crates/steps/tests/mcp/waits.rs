//! Questions and tasks: the step waits with a note, and goes on with it, in this process or the next.

use crate::rig::{Rig, asked, bad, call, failure, later, resumed, success};
use serde_json::{Value, json};
use std::time::Duration;

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_put_to_people_and_the_answer_goes_back_with_the_server_s_note() {
    let rig = Rig::new(vec![bad(&[])]);
    let waits = rig.waits(call("bad__ask", json!({"word": "x"}))).await;
    let ask = asked(&waits);
    assert_eq!(ask["message"], "Which color?");
    assert_eq!((&ask["server"], &ask["tool"]), (&json!("bad"), &json!("bad__ask")));
    assert_eq!(ask["form"]["properties"]["color"]["type"], "string", "{ask}");
    assert!(waits.note["state"].is_string(), "{waits:?}");
    // Nothing is held: another process can go on with it.
    rig.upstreams.stop().await;
    let rig = Rig::on(rig.store.clone(), vec![bad(&[])]);
    // Woken without an answer, it asks again.
    let again = rig.waits(resumed("bad__ask", json!({}), &waits, vec![])).await;
    assert_eq!(again, waits);
    let next = resumed("bad__ask", json!({"word": "x"}), &waits, vec![Value::Null, json!({"color": "blue"})]);
    let reply = success(rig.attempt(next).await.unwrap());
    assert_eq!(reply.body["state"], "kept by the client");
    assert_eq!(reply.body["answers"]["color"]["content"], json!({"color": "blue"}), "{reply:?}");
    assert_eq!(reply.body["answers"]["color"]["action"], "accept", "{reply:?}");
    rig.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_questions_are_one_form_with_a_part_for_each() {
    let rig = Rig::new(vec![bad(&[])]);
    let waits = rig.waits(call("bad__ask_two", json!({}))).await;
    let ask = asked(&waits);
    assert_eq!(ask["message"], "color: Which color?\nsize: Which size?");
    assert_eq!(ask["form"]["required"], json!(["color", "size"]));
    let answer = json!({"color": {"color": "red"}, "size": {"size": "xl"}});
    let reply = success(rig.attempt(resumed("bad__ask_two", json!({}), &waits, vec![answer])).await.unwrap());
    assert_eq!(reply.body["answers"]["size"]["content"], json!({"size": "xl"}), "{reply:?}");
    assert_eq!(reply.body["answers"]["color"]["content"], json!({"color": "red"}), "{reply:?}");
    rig.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_only_a_model_could_answer_fails_the_step() {
    let rig = Rig::new(vec![bad(&[])]);
    let failure = rig.fails("bad__ask_model", json!({})).await;
    assert_eq!(*failure.code, *"unsupported_request");
    assert!(failure.message.contains("sampling/createMessage"), "{failure:?}");
    rig.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_looked_at_until_it_is_done() {
    let rig = Rig::new(vec![bad(&[])]);
    let args = json!({"word": "print"});
    let begun = rig.waits(call("bad__task", args.clone())).await;
    assert_eq!(later(&begun), Duration::from_secs(1));
    assert_eq!((&begun.note["server"], &begun.note["tool"]), (&json!("bad"), &json!("task")));
    let working = rig.waits(resumed("bad__task", args.clone(), &begun, vec![])).await;
    assert_eq!(working.note, begun.note);
    let reply = success(rig.attempt(resumed("bad__task", args.clone(), &working, vec![])).await.unwrap());
    assert_eq!(*reply.body, json!({"said": args}));
    rig.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_can_ask_and_is_told_the_answer() {
    let rig = Rig::new(vec![bad(&[])]);
    let begun = rig.waits(call("bad__task_asks", json!({}))).await;
    let question = rig.waits(resumed("bad__task_asks", json!({}), &begun, vec![])).await;
    assert_eq!(asked(&question)["message"], "Who is it for?");
    let answers = vec![json!({"name": "Ada"})];
    let told = rig.waits(resumed("bad__task_asks", json!({}), &question, answers.clone())).await;
    later(&told);
    // The answer is not taken for one to a later question.
    let reply = success(rig.attempt(resumed("bad__task_asks", json!({}), &told, answers)).await.unwrap());
    assert_eq!(reply.body["said"]["who"]["content"], json!({"name": "Ada"}), "{reply:?}");
    rig.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_fails_fails_the_step_and_one_that_is_lost_says_so() {
    let rig = Rig::new(vec![bad(&[])]);
    let begun = rig.waits(call("bad__task_fails", json!({}))).await;
    let (failed, _) = failure(rig.attempt(resumed("bad__task_fails", json!({}), &begun, vec![])).await.unwrap());
    assert_eq!((&*failed.code, failed.may_have_happened), ("task_failed", true));
    assert!(failed.message.contains("no paper"), "{failed:?}");
    let begun = rig.waits(call("bad__task", json!({}))).await;
    rig.fails("bad__crash", json!({})).await;
    // That the server is away says nothing about the task.
    rig.down("bad").await;
    let waiting = rig.waits(resumed("bad__task", json!({}), &begun, vec![])).await;
    assert_eq!(waiting.note, begun.note);
    rig.until("bad", |server| server.connected == 2).await;
    let (gone, _) = failure(rig.attempt(resumed("bad__task", json!({}), &waiting, vec![])).await.unwrap());
    assert_eq!((&*gone.code, gone.may_have_happened), ("task_gone", true));
    rig.upstreams.stop().await;
}
