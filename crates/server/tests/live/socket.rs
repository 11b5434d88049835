//! The socket: joining, leaving, and the messages that follow.

use crate::harness::{Harness, LONG, SHORT, patient, short};
use serde_json::json;
use stepwell_server::live::Settings;
use tokio::time::timeout;

#[tokio::test]
async fn who_joins_is_told_how_the_run_is_and_then_each_change() {
    let harness = Harness::new(patient()).await;
    harness.holding().await;
    let run = harness.start("holding").await;
    let mut socket = harness.socket(&harness.key).await;
    socket.join(&run).await;
    let mut first = Vec::new();
    for _ in 0..3 {
        first.push(socket.next().await.unwrap());
    }
    assert_eq!(first.iter().map(short).collect::<Vec<_>>(), ["wait=running", "then=pending", "running"]);
    let wait = json!({"instanceID": run, "nodeID": "wait", "status": "running", "output": null, "error": null});
    assert_eq!(first[0], json!({"event": "workflow_node_update", "data": wait}));
    assert_eq!(first[2]["data"]["contextData"]["input"], json!({"n": 1}));

    harness.tools.permits.add_permits(1);
    let mut then = Vec::new();
    for _ in 0..4 {
        then.push(socket.next().await.unwrap());
    }
    assert_eq!(
        then.iter().map(short).collect::<Vec<_>>(),
        ["wait=success", "then=running", "then=success", "completed"]
    );
    assert_eq!(then[0]["data"]["output"], json!({"said": "wait"}));
    let context = &then[3]["data"]["contextData"];
    assert_eq!(context["nodes"], json!({"wait": {"said": "wait"}, "then": {"said": "then"}}));
}

#[tokio::test]
async fn failures_and_what_they_cut_off_are_told() {
    let harness = Harness::new(patient()).await;
    let tasks = json!({
        "wait": {"tool": "hold"},
        "bad": {"tool": "fail", "args": {"length": 3}},
        "never": {"tool": "echo", "needs": ["bad"]},
    });
    harness.define("mixed", tasks).await;
    let run = harness.start("mixed").await;
    let mut socket = harness.socket(&harness.key).await;
    socket.join(&run).await;
    socket.until("running").await;
    harness.engine.runs(&harness.admin).cancel(&run, None).await.unwrap();
    let seen = socket.until("cancelled").await;
    assert!(seen.contains(&"wait=cancelled".to_string()), "{seen:?}");
    // And as it is afterwards.
    socket.join(&run).await;
    let mut all = Vec::new();
    while all.len() < 4 {
        all.push(socket.next().await.unwrap());
    }
    let bad = all.iter().find(|message| message["data"]["nodeID"] == "bad").unwrap();
    assert_eq!(bad["data"]["error"], json!({"code": "broken", "message": "xxx"}));
}

#[tokio::test]
async fn who_has_left_is_told_nothing_more() {
    let harness = Harness::new(patient()).await;
    harness.holding().await;
    let (left, stays) = (harness.start("holding").await, harness.start("holding").await);
    let mut socket = harness.socket(&harness.key).await;
    socket.join(&left).await;
    socket.until("running").await;
    socket.leave(&left).await;
    // Also in the flat form.
    socket.send(json!({"type": "workflow_run_join", "runId": stays})).await;
    socket.until("running").await;
    harness.tools.permits.add_permits(2);
    timeout(LONG, harness.engine.runs(&harness.admin).wait(&left)).await.unwrap().unwrap();
    loop {
        let message = socket.next().await.unwrap();
        assert_eq!(message["data"]["instanceID"], json!(stays));
        if short(&message) == "completed" {
            break;
        }
    }
}

#[tokio::test]
async fn what_cannot_be_done_is_answered_and_the_socket_stays() {
    let harness = Harness::new(patient()).await;
    harness.holding().await;
    let run = harness.start("holding").await;
    let (_, foreign) = harness.engine.organisations(&harness.admin).create("others", None).await.unwrap();
    let mut socket = harness.socket(&foreign).await;
    for (message, code) in [
        ("{".to_string(), "invalid-json"),
        ("[]".to_string(), "unknown-event"),
        (json!({"event": "dance"}).to_string(), "unknown-event"),
        (json!({"event": "workflow_run_join"}).to_string(), "invalid-input"),
        (json!({"event": "workflow_run_join", "data": {"runId": 5}}).to_string(), "invalid-input"),
        (json!({"event": "workflow_run_join", "data": {"runId": run}}).to_string(), "not-found"),
        ("[".repeat(10_000), "invalid-json"),
    ] {
        socket.send(&message).await;
        let answer = socket.next().await.unwrap();
        assert_eq!(short(&answer), format!("error {code}"), "{message}");
        assert!(answer["data"]["status"].is_number() && answer["data"]["detail"].is_string());
    }
    let mut own = harness.socket(&harness.key).await;
    own.join(&run).await;
    own.until("running").await;
}

#[tokio::test]
async fn only_so_many_runs_can_be_joined_on_one_socket() {
    let harness = Harness::new(patient()).await;
    harness.chain().await;
    let mut socket = harness.socket(&harness.key).await;
    let mut first = String::new();
    for n in 0..100 {
        let run = harness.run("chain").await;
        socket.join(&run).await;
        socket.until("completed").await;
        if n == 0 {
            first = run;
        }
    }
    let one_more = harness.run("chain").await;
    socket.join(&one_more).await;
    let answer = socket.next().await.unwrap();
    assert_eq!((short(&answer).as_str(), &answer["data"]["runId"]), ("error too-many-joined", &json!(one_more)));
    socket.leave(&first).await;
    socket.join(&one_more).await;
    socket.until("completed").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_change_of_many_runs_is_told_in_order() {
    let harness = Harness::new(Settings { behind: 1, ..patient() }).await;
    let tasks = json!({
        "wait": {"tool": "hold"},
        "a": {"tool": "echo", "needs": ["wait"]},
        "b": {"tool": "echo", "needs": ["a"]},
    });
    harness.define("many", tasks).await;
    let mut socket = harness.socket(&harness.key).await;
    let mut seen = std::collections::HashMap::new();
    for _ in 0..40 {
        let run = harness.start("many").await;
        socket.join(&run).await;
        socket.until("running").await;
        seen.insert(run, Vec::new());
    }
    harness.tools.permits.add_permits(40);
    let mut done = 0;
    while done < 40 {
        let message = socket.next().await.unwrap();
        let run = message["data"]["instanceID"].as_str().unwrap();
        done += usize::from(short(&message) == "completed");
        seen.get_mut(run).unwrap().push(short(&message));
    }
    for (run, seen) in seen {
        let all = ["wait=success", "a=running", "a=success", "b=running", "b=success", "completed"];
        assert_eq!(seen, all, "{run}");
    }
}

#[tokio::test]
async fn a_socket_that_does_not_answer_is_dropped_and_one_that_does_is_not() {
    let settings = Settings { ping: SHORT, silence: 40 * SHORT, ..patient() };
    let harness = Harness::new(settings).await;
    let mut answers = harness.socket(&harness.key).await;
    let mut silent = harness.socket(&harness.key).await;
    // Answers to pings are sent while the socket is read.
    let reading = tokio::spawn(async move { (answers.next().await, answers) });
    harness.streams(1).await;
    assert!(!reading.is_finished());
    while silent.next().await.is_some() {}
    reading.abort();
    harness.streams(0).await;
}

#[tokio::test]
async fn a_binary_message_is_refused_and_the_socket_stays_open() {
    let harness = Harness::new(patient()).await;
    let mut socket = harness.socket(&harness.key).await;
    socket.send_binary(b"{}").await;
    assert_eq!(short(&socket.next().await.unwrap()), "error invalid-message");
    socket.send("{").await;
    assert_eq!(short(&socket.next().await.unwrap()), "error invalid-json");
}
