//! Questions and tasks of tools: people answer the questions, and both waits survive a crash of the server.

use crate::harness::{Api, eventually};
use crate::{again, calling, program, python, script, serve};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A server that survives when ours is killed.
struct Apart {
    child: Child,
    port: u16,
}

impl Apart {
    fn new() -> Apart {
        Apart::noting(None)
    }

    /// Writes to this file what it is notified of about tasks and questions.
    fn noting(log: Option<&Path>) -> Apart {
        let mut command = Command::new(python());
        command.envs(log.map(|log| ("LOG", log)));
        command.arg(script("bad_server.py")).args(["--http", "0"]).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Apart { child, port: line.trim().parse().unwrap() }
    }

    fn servers(&self) -> Value {
        json!({"odd": {"type": "http", "url": format!("http://127.0.0.1:{}/mcp", self.port)}})
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[track_caller]
fn asked(api: &Api, run: &str) -> Value {
    eventually("a question", || {
        let open = api.get("/api/v1/approvals").is(200).data();
        open.as_array().unwrap().iter().find(|gate| gate["run_id"] == run).cloned()
    })
}

#[test]
fn a_question_of_a_tool_waits_through_a_crash_for_somebody_to_answer_it() {
    let servers = json!({"odd": program("bad_server.py", json!({}))});
    let (place, server) = serve(&servers);
    server.api.define(&calling("ask", "odd__ask", json!({})));
    let run = server.api.trigger("ask", &json!({}));
    asked(&server.api, &run);
    server.kill();

    let server = again(&place, &servers);
    let gate = asked(&server.api, &run);
    assert!(gate["asks"]["message"].as_str().unwrap().contains("Which color?"), "{gate:#}");
    assert_eq!(gate["asks"]["form"]["required"], json!(["color"]), "{gate:#}");
    let approve = format!("/api/v1/runs/{run}/steps/call/approve");
    let without = server.api.post(&approve, &json!({"digest": gate["digest"]}));
    assert_eq!(without.status, 422, "{}", without.text());
    server.api.post(&approve, &json!({"digest": gate["digest"], "data": {"color": "blue"}})).is(200);
    let ended = server.api.end(&run);
    let body = &ended["tasks"]["call"]["output"];
    assert_eq!(body["answers"]["color"]["content"]["color"], "blue", "{ended:#}");
    assert_eq!(body["state"], "kept by the client", "{ended:#}");
}

#[test]
fn an_answer_to_a_tools_question_is_no_approval_of_the_call() {
    let (_place, server) = serve(&json!({"odd": program("bad_server.py", json!({}))}));
    let api = &server.api;
    let policy = json!({"calls": "tool:odd__ask", "effect": "require_approval", "approvers": ["boss"]});
    api.call("PUT", "/api/v1/policies/asks", &policy).is(200);
    let boss = api.new_user("boss", &["workflow.read", "workflow.approve"]);
    api.define(&calling("ask", "odd__ask", json!({})));
    let run = api.trigger("ask", &json!({}));
    let approve = format!("/api/v1/runs/{run}/steps/call/approve");
    let held = asked(api, &run);
    boss.post(&approve, &json!({"digest": held["digest"]})).is(200);
    let question =
        eventually("the question", || Some(asked(api, &run)).filter(|gate| gate["asks"]["form"].is_object()));
    api.post(&approve, &json!({"digest": question["digest"], "data": {"color": "red"}})).is(200);
    // The approval of before still stands: no one is asked for it again.
    let ended = api.end(&run);
    assert_eq!(ended["status"], "completed", "{ended:#}");
}

#[test]
fn a_task_that_a_tool_began_is_taken_up_again_after_a_crash_and_not_begun_twice() {
    let apart = Apart::new();
    let servers = apart.servers();
    let (place, server) = serve(&servers);
    server.api.define(&calling("task", "odd__task", json!({"word": "tides"})));
    let run = server.api.trigger("task", &json!({}));
    eventually("it is under way", || {
        let events = server.api.get(&format!("/api/v1/runs/{run}/events")).is(200).text();
        events.contains("under_way").then_some(())
    });
    server.kill();

    let server = again(&place, &servers);
    let ended = server.api.end(&run);
    assert_eq!(ended["tasks"]["call"]["output"]["said"]["word"], "tides", "{ended:#}");
    // The next task is the second.
    let second = server.api.finished("task", &json!({}));
    assert_eq!(second["status"], "completed", "{second:#}");
    let events = server.api.get(&format!("/api/v1/runs/{}/events", second["id"].as_str().unwrap())).is(200).text();
    assert!(!events.contains("task-2"), "{events}");
}

#[test]
fn a_task_that_asks_gets_its_answer_from_people() {
    let (_place, server) = serve(&json!({"odd": program("bad_server.py", json!({}))}));
    let api = &server.api;
    api.define(&calling("task", "odd__task_asks", json!({})));
    let run = api.trigger("task", &json!({}));
    let gate = asked(api, &run);
    assert!(gate["asks"]["message"].as_str().unwrap().contains("Who is it for?"), "{gate:#}");
    let approve = format!("/api/v1/runs/{run}/steps/call/approve");
    api.post(&approve, &json!({"digest": gate["digest"], "data": {"name": "Ann"}})).is(200);
    let ended = api.end(&run);
    assert_eq!(ended["tasks"]["call"]["output"]["said"]["who"]["content"]["name"], "Ann", "{ended:#}");
}

#[test]
fn a_denied_question_ends_the_step() {
    let (_place, server) = serve(&json!({"odd": program("bad_server.py", json!({}))}));
    let api = &server.api;
    api.define(&calling("ask", "odd__ask", json!({})));
    let run = api.trigger("ask", &json!({}));
    let gate = asked(api, &run);
    let deny = format!("/api/v1/runs/{run}/steps/call/deny");
    api.post(&deny, &json!({"digest": gate["digest"], "comment": "none of its business"})).is(200);
    let ended = api.end(&run);
    assert_eq!(ended["tasks"]["call"]["status"], "denied", "{ended:#}");
}

#[track_caller]
fn told(log: &Path, what: &str) {
    eventually(what, || std::fs::read_to_string(log).ok()?.lines().any(|line| line == what).then_some(()));
}

#[test]
fn a_server_is_told_what_is_not_awaited_through_a_crash_of_this_side() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let apart = Apart::noting(Some(&log));
    let servers = apart.servers();
    let (place, server) = serve(&servers);
    let api = &server.api;
    api.define(&calling("ask", "odd__ask", json!({})));
    let run = api.trigger("ask", &json!({}));
    let gate = asked(api, &run);
    api.post(&format!("/api/v1/runs/{run}/steps/call/deny"), &json!({"digest": gate["digest"]})).is(200);
    told(&log, "decline ask kept by the client");

    api.define(&calling("slow", "odd__task_slow", json!({})));
    let run = api.trigger("slow", &json!({}));
    let waiting = eventually("its progress", || {
        let waiting = api.run(&run)["waiting_for"][0].clone();
        waiting["message"].as_str().is_some_and(|said| said.contains("page 3 of 7")).then_some(waiting)
    });
    assert_eq!(waiting["step"], "call", "{waiting:#}");
    server.kill();
    let server = again(&place, &servers);
    server.api.post(&format!("/api/v1/runs/{run}/cancel"), &json!({})).is(200);
    told(&log, "cancel task-0");
    assert_eq!(server.api.end(&run)["status"], "cancelled");
}
