//! `stepwell mcp`: MCP over standard input and output, in front of a server and as one.

use crate::harness::{Installation, PATIENCE, eventually};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc;

/// A client of an older revision, which begins with a handshake.
struct Client {
    child: Child,
    input: Option<ChildStdin>,
    said: mpsc::Receiver<Value>,
    ids: u32,
}

impl Client {
    fn start(place: &Installation, arguments: &[&str], capabilities: Value) -> Client {
        let mut command = place.command();
        command.arg("mcp").args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().unwrap();
        let (send, said) = mpsc::channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            out.lines().map_while(Result::ok).try_for_each(|line| send.send(serde_json::from_str(&line).unwrap()))
        });
        let input = child.stdin.take();
        let mut client = Client { child, input, said, ids: 0 };
        let own = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": own});
        let answer = client.ask("initialize", params);
        assert_eq!(answer["protocolVersion"], "2025-06-18", "{answer:#}");
        assert_eq!(answer["capabilities"]["tools"]["listChanged"], true, "{answer:#}");
        client.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn write(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    fn send(&mut self, method: &str, params: Value) -> u32 {
        self.ids += 1;
        self.write(&json!({"jsonrpc": "2.0", "id": self.ids, "method": method, "params": params}));
        self.ids
    }

    fn next(&mut self) -> Value {
        self.said.recv_timeout(PATIENCE).expect("a message")
    }

    /// The answer to a request, past notices.
    fn answer(&mut self, id: u32) -> Value {
        loop {
            let message = self.next();
            if message["id"] == id && message.get("method").is_none() {
                assert!(message.get("error").is_none(), "{message:#}");
                return message["result"].clone();
            }
        }
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.answer(id)
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    fn until(&mut self, method: &str) -> Value {
        loop {
            let message = self.next();
            if message["method"] == method {
                return message;
            }
        }
    }

    fn end(mut self) {
        drop(self.input.take());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn in_front_of_a_server_it_asks_in_the_middle_of_a_call_and_tells_of_new_tools() {
    let place = Installation::new();
    let server = place.serve();
    let grants = ["workflow.run", "workflow.read", "workflow.approve", "workflow.define"];
    let key = server.api.new_user("ann", &grants).key.unwrap();
    let mut client = Client::start(&place, &["--api-key", &key], json!({"elicitation": {}}));
    // The client is notified once it listens; the workflow is defined again until then.
    let told = eventually("a notice", || {
        let n = client.ids;
        let definition = json!({"name": format!("tool {n}"), "expose_as_tool": true,
            "tasks": {"ask": {"approval": {"message": "well?"}}}});
        client.call("workflow_define", json!({"definition": definition}));
        let told = client.said.recv_timeout(std::time::Duration::from_secs(3)).ok();
        told.filter(|told| told["method"] == "notifications/tools/list_changed").map(|_| format!("tool_{n}"))
    });
    let id = client.send("tools/call", json!({"name": told, "arguments": {}}));
    let asked = client.until("elicitation/create");
    assert!(asked["params"]["message"].as_str().unwrap().contains("well?"), "{asked:#}");
    client.write(&json!({"jsonrpc": "2.0", "id": asked["id"],
        "result": {"action": "accept", "content": {"decision": "approve"}}}));
    let done = client.answer(id);
    assert_eq!(
        (&done["isError"], &done["structuredContent"]["status"]),
        (&json!(false), &json!("completed")),
        "{done:#}"
    );
    client.end();
    server.stop();
}

#[test]
fn without_a_server_it_is_one_and_another_on_the_same_data_finds_it_and_takes_over() {
    let place = Installation::new();
    let mut first = Client::start(&place, &[], json!({}));
    let definition = json!({"name": "nap", "tasks": {"rest": {"sleep": "1h"}}});
    first.call("workflow_define", json!({"definition": definition}));
    let run = first.call("workflow_start", json!({"workflow": "nap", "wait_seconds": 0}))["structuredContent"].clone();
    let mut second = Client::start(&place, &[], json!({}));
    let seen = second.call("workflow_status", json!({"run_id": run["run_id"]}));
    assert_eq!(seen["structuredContent"]["status"], "running", "{seen:#}");
    first.end();
    let seen = second.call("workflow_status", json!({"run_id": run["run_id"]}));
    assert_eq!(seen["structuredContent"]["waiting_for"][0]["for"], "sleep", "{seen:#}");
    second.end();
    place.sound();
}

/// Kills the server of a client that waits for a run. Returns the run and what the client is told.
fn killed_during_a_call(place: &Installation, workflow: &str) -> (Value, Value) {
    let server = place.serve();
    let mut client = Client::start(place, &["--url", &server.url], json!({}));
    server.api.define(&json!({"name": workflow, "tasks": {"rest": {"sleep": "1h"}}}));
    let run =
        client.call("workflow_start", json!({"workflow": workflow, "wait_seconds": 0}))["structuredContent"].clone();
    let arguments = json!({"run_id": run["run_id"], "wait_seconds": 20});
    let waits = client.send("tools/call", json!({"name": "workflow_status", "arguments": arguments}));
    server.kill();
    let broken = loop {
        let message = client.next();
        if message["id"] == waits {
            break message;
        }
    };
    client.end();
    (run, broken)
}

#[test]
fn a_server_that_was_killed_is_found_again_and_the_run_goes_on() {
    let place = Installation::new();
    // The server may die before the request was sent. Then there is nothing that could break, and it is tried again.
    let (run, broken) = (0..10)
        .map(|n| killed_during_a_call(&place, &format!("nap-{n}")))
        .find(|(_, broken)| !broken["error"]["message"].as_str().unwrap().contains("no server answers"))
        .unwrap();
    assert!(broken["error"]["message"].as_str().unwrap().contains("connection broke"), "{broken:#}");
    let server = place.serve();
    let mut client = Client::start(&place, &[], json!({}));
    server.api.ready(run["run_id"].as_str().unwrap(), "rest");
    let seen = client.call("workflow_status", json!({"run_id": run["run_id"], "wait_seconds": 20}));
    assert_eq!(seen["structuredContent"]["status"], "completed", "{seen:#}");
    client.end();
}
