//! Calls of older clients that can be asked in the middle of one: carried as a task, whose questions become theirs.
//!
//! A call ends with the run, or after a while with how it stands; not while somebody is being asked.

use super::bridge::{Bridge, meta};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::Instant;

/// How long a call waits for the end of a run, beside the time that people take to answer.
const WAIT: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(250);

/// What the client is answered.
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
            // Cancelled, or the server is gone: it says how it stands, or why not.
            _ => break,
        }
        let open = result["inputRequests"].as_object().cloned().unwrap_or_default();
        let Some((key, request)) = open.into_iter().find(|(key, _)| !answered.contains(key)) else {
            if Instant::now() >= until {
                break;
            }
            tokio::time::sleep(LOOK).await;
            continue;
        };
        let asked = Instant::now();
        if let Some(answer) = bridge.ask(&request).await {
            send(bridge, "tasks/update", json!({"taskId": task, "inputResponses": {&key: answer}})).await;
        }
        // Once: one that is put aside, or not taken, stays open for others.
        answered.insert(key);
        until += asked.elapsed();
    }
    let arguments = json!({"name": "workflow_status", "arguments": {"run_id": task}});
    let mut stands = send(bridge, "tools/call", arguments).await;
    stands["id"] = message["id"].clone();
    plain(stands)
}

async fn send(bridge: &Bridge, method: &str, mut params: Value) -> Value {
    params["_meta"] = declared();
    let message = json!({"jsonrpc": "2.0", "id": bridge.number(), "method": method, "params": params});
    bridge.exchange(&message).await
}

fn declared() -> Value {
    meta(json!({"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}))
}

/// As clients of older revisions know results.
fn plain(mut answer: Value) -> Value {
    if let Some(result) = answer["result"].as_object_mut() {
        result.shift_remove("resultType");
    }
    answer
}
