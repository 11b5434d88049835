//! Tool calls of older clients that support elicitation: sent as a task, whose questions are put to the client.
//!
//! A call returns when the run ends, or after a while with its current status, but never while a question is open.

use super::bridge::{Bridge, meta};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::Instant;

/// How long a call waits for the end of a run, not counting the time that people take to answer.
const WAIT: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Carries out a call and returns the response for the client.
pub async fn call(bridge: &Bridge, message: &Value) -> Value {
    let mut begin = message.clone();
    begin["params"]["_meta"] = declared();
    let begun = bridge.exchange(&begin).await;
    if begun["result"]["resultType"] != "task" {
        return plain(begun);
    }
    let task = begun["result"]["taskId"].clone();
    let mut until = Instant::now() + WAIT;
    let mut answered = BTreeSet::new();
    loop {
        let now = send(bridge, "tasks/get", json!({"taskId": task})).await;
        let result = &now["result"];
        match result["status"].as_str() {
            Some("working" | "input_required") => {}
            Some("completed") => {
                return plain(json!({"jsonrpc": "2.0", "id": message["id"], "result": result["result"]}));
            }
            // Cancelled, or the server is gone: the status below reports which.
            _ => break,
        }
        let open = result["inputRequests"].as_object().cloned().unwrap_or_default();
        let Some((key, request)) = open.into_iter().find(|(key, _)| !answered.contains(key)) else {
            if Instant::now() >= until {
                break;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
            continue;
        };
        let asked = Instant::now();
        if let Some(answer) = bridge.ask(&request).await {
            send(bridge, "tasks/update", json!({"taskId": task, "inputResponses": {&key: answer}})).await;
        }
        // Ask each question once: if declined, it stays open for others.
        answered.insert(key);
        until += asked.elapsed();
    }
    let arguments = json!({"name": "workflow_status", "arguments": {"run_id": task}});
    let mut status = send(bridge, "tools/call", arguments).await;
    status["id"] = message["id"].clone();
    plain(status)
}

async fn send(bridge: &Bridge, method: &str, mut params: Value) -> Value {
    params["_meta"] = declared();
    let message = json!({"jsonrpc": "2.0", "id": bridge.next_id(), "method": method, "params": params});
    bridge.exchange(&message).await
}

fn declared() -> Value {
    meta(json!({"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}))
}

/// Removes fields that older protocol revisions do not know.
fn plain(mut answer: Value) -> Value {
    if let Some(result) = answer["result"].as_object_mut() {
        result.shift_remove("resultType");
    }
    answer
}
