//! `stepwell run` without a terminal: results, exit codes, and resuming after a signal or a kill.

use crate::harness::{Installation, Server};
use rustix::process::Signal;
use serde_json::json;

pub const CHAIN: &str = "name: chain
tasks:
  a: {tool: echo, args: {n: \"{{input.n ?? 1}}\"}}
  b: {needs: a, tool: echo, args: {m: \"{{tasks.a.body.n}}\"}}
output: {got: \"{{tasks.b.body.m}}\"}
";

const GATE: &str = "name: gate\ntasks:\n  ask: {approval: {message: Send it?}}\n  go: {needs: ask, tool: now}\n";

fn sleeper(length: &str) -> String {
    format!("name: sleeper\ntasks:\n  nap: {{sleep: {length}}}\n  b: {{needs: nap, tool: echo, args: {{x: 1}}}}\n")
}

fn caller(server: &Server, more: &str) -> String {
    format!("name: caller\ntasks:\n  call: {{url: \"{}\"{more}}}\noutput: \"{{{{tasks.call.body}}}}\"\n", server.url)
}

#[test]
fn a_run_that_completes_gives_its_output_and_nothing_else_on_standard_output() {
    let place = Installation::new();
    let file = place.file("chain.yaml", CHAIN);
    let ended = place.stepwell(&["run", &file, "--input", "n=7"]).expect(0).says("b success").says("run completed");
    assert_eq!(ended.json(), json!({"got": 7}));
    let quiet = place.stepwell(&["run", &file, "--quiet", "--input", "{\"n\": [1]}"]).expect(0);
    assert_eq!((quiet.json(), quiet.err.as_str()), (json!({"got": [1]}), ""));
    let input = place.file("input.json", "{\"n\": \"é\"}");
    let read = place.stepwell(&["run", &file, "--input", &format!("@{input}")]).expect(0);
    assert_eq!(read.json(), json!({"got": "é"}));
    place.sound();
}

#[test]
fn a_run_that_fails_exits_with_1_and_says_why() {
    let place = Installation::new();
    let file = place.file("fails.yaml", "name: fails\ntasks: {a: {tool: fail, args: {message: no luck}}}\n");
    let ended = place.stepwell(&["run", &file]).expect(1).says("no luck").says("stepwell show run_");
    assert_eq!(ended.out, "");
    place.sound();
}

#[test]
fn what_is_wrong_before_a_run_exits_with_2_and_starts_nothing() {
    let place = Installation::new();
    let bad = place.file("bad.yaml", "name: bad\ntasks: {a: {sleep: 1, needs: b}}\n");
    place.stepwell(&["run", &bad]).expect(2).says("unknown-step");
    assert!(!place.data().exists(), "a wrong definition does not make a data directory");
    place.stepwell(&["run", "no-such-file.yaml"]).expect(2).says("no-such-file.yaml");
    place.stepwell(&["run"]).expect(2);
    let schema = "name: s\ninput_schema: {type: object, required: [n]}\ntasks: {a: {tool: now}}\n";
    let schema = place.file("schema.yaml", schema);
    place.stepwell(&["run", &schema]).expect(2).says("\"n\" is a required property");
    place.stepwell(&["run", &schema, "--input", "nonsense"]).expect(2).says("expected JSON, @FILE or key=value");
    place.stepwell(&["run", "--resume", "run_none"]).expect(2).says("there is no run \"run_none\"");
    assert_eq!(place.stepwell(&["runs"]).expect(0).out, "");
}

#[test]
fn a_run_that_times_out_or_is_denied_exits_with_3() {
    let place = Installation::new();
    let file = place.file("late.yaml", &sleeper("1h").replace("tasks:", "max_duration: 50ms\ntasks:"));
    place.stepwell(&["run", &file]).expect(3).says("run timeout");
    let gate = place.file("gate.yaml", GATE);
    let mut running = place.start(&["run", &gate]);
    running.until("ask asks for approval: Send it?");
    running.signal(Signal::TERM);
    let left = running.end().expect(130).says("continue with: stepwell run --resume run_");
    assert_eq!(left.out, "");
    let run = place.newest();
    place.stepwell(&["deny", &run, "ask", "--comment", "not today"]).expect(0).says("ask is denied");
    place.stepwell(&["deny", &run, "ask"]).expect(1).says("already finished");
    place.stepwell(&["run", "--resume", &run]).expect(3).says("cancelled");
    place.sound();
}

#[test]
fn json_is_one_event_per_line_and_the_result_at_the_end() {
    let place = Installation::new();
    let file = place.file("chain.yaml", CHAIN);
    let lines = place.stepwell(&["run", &file, "--json"]).expect(0).lines();
    let kinds: Vec<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    let expected = ["run", "created", "started", "entered", "finished", "entered", "finished", "ended", "result"];
    assert_eq!(kinds, expected);
    assert!(lines.iter().all(|line| line["run"] == lines[0]["run"]));
    assert_eq!(lines.last().unwrap()["output"], json!({"got": 1}));
    let fails = place.file("fails.yaml", "name: fails\ntasks: {a: {tool: fail, args: {message: no luck}}}\n");
    let lines = place.stepwell(&["run", &fails, "--json"]).expect(1).lines();
    assert_eq!(lines.last().unwrap()["status"], "failed");
}

#[test]
fn a_signal_leaves_a_durable_run_that_resume_finishes() {
    let place = Installation::new();
    let file = place.file("sleeper.yaml", &sleeper("2s"));
    let mut running = place.start(&["run", &file]);
    running.until("nap sleeps");
    running.signal(Signal::INT);
    running.end().expect(130).says("is on disk");
    let run = place.newest();
    place.stepwell(&["run", "--resume", &run]).expect(0).says("b success");
    // Once more: it is over, and says so again.
    place.stepwell(&["run", "--resume", &run]).expect(0);
    let events = place.stepwell(&["events", &run]).expect(0).out;
    assert_eq!(events.matches("nap sleeps").count(), 1, "the sleep went on, it did not begin again:\n{events}");
    place.sound();
}

#[test]
fn a_call_that_ends_while_the_engine_stops_is_not_made_again() {
    let (place, server) = (Installation::new(), Server::start());
    let file = place.file("caller.yaml", &caller(&server, ""));
    server.hold();
    let mut running = place.start(&["run", &file]);
    server.await_requests(1);
    running.until("call dispatched");
    running.signal(Signal::INT);
    running.until("stopping");
    server.release();
    // The run was at its end when the process was.
    assert_eq!(running.end().expect(0).json(), json!({"n": 1}));
    assert_eq!(server.keys().len(), 1);
    place.sound();
}

#[test]
fn a_second_signal_stops_at_once() {
    let (place, server) = (Installation::new(), Server::start());
    let file = place.file("caller.yaml", &caller(&server, ""));
    server.hold();
    let mut running = place.start(&["run", &file]);
    server.await_requests(1);
    running.signal(Signal::INT);
    running.until("stopping");
    running.signal(Signal::INT);
    running.end().expect(130);
    server.release();
    let run = place.newest();
    assert_eq!(place.stepwell(&["run", "--resume", &run]).expect(0).json(), json!({"n": 2}));
    place.sound();
}

#[test]
fn a_run_survives_kill_9_in_the_middle_of_a_call() {
    let (place, server) = (Installation::new(), Server::start());
    let file = place.file("caller.yaml", &caller(&server, ""));
    server.hold();
    let running = place.start(&["run", &file]);
    server.await_requests(1);
    running.kill();
    server.release();
    let run = place.newest();
    let ended = place.stepwell(&["run", "--resume", &run]).expect(0).says("attempt 2");
    assert_eq!(ended.json(), json!({"n": 2}));
    let keys = server.keys();
    assert_eq!(keys.len(), 2);
    assert_eq!(keys[0], keys[1], "the service can tell that it is the same call");
    place.stepwell(&["show", &run]).expect(0).says("attempt 2");
    place.sound();
}

#[test]
fn a_run_survives_kill_9_in_the_middle_of_a_sleep() {
    let place = Installation::new();
    let file = place.file("sleeper.yaml", &sleeper("1500ms"));
    let mut running = place.start(&["run", &file]);
    running.until("nap sleeps");
    running.kill();
    let run = place.newest();
    place.stepwell(&["run", "--resume", &run]).expect(0).says("run completed");
    place.sound();
}

#[test]
fn a_key_starts_one_run_only() {
    let place = Installation::new();
    let file = place.file("chain.yaml", CHAIN);
    place.stepwell(&["run", &file, "--key", "k", "--input", "n=1"]).expect(0);
    place.stepwell(&["run", &file, "--key", "k", "--input", "n=1"]).expect(0).says("already started by this key");
    place.stepwell(&["run", &file, "--key", "k", "--input", "n=2"]).expect(2).says("used for another request");
    assert_eq!(place.stepwell(&["runs", "--json"]).expect(0).lines().len(), 1);
}

#[test]
fn a_changed_file_is_the_next_version() {
    let place = Installation::new();
    let file = place.file("chain.yaml", CHAIN);
    place.stepwell(&["run", &file]).expect(0).says("version 1");
    place.stepwell(&["run", &file]).expect(0).says("version 1");
    place.file("chain.yaml", &CHAIN.replace("got", "had"));
    assert_eq!(place.stepwell(&["run", &file]).expect(0).says("version 2").json(), json!({"had": 1}));
}

#[test]
fn a_child_workflow_is_run_and_shown() {
    let place = Installation::new();
    let child = place.file("chain.yaml", CHAIN);
    let parent = "name: parent\ntasks: {inner: {workflow: chain, input: {n: 5}}}\noutput: \"{{tasks.inner.body}}\"\n";
    let parent = place.file("parent.yaml", parent);
    let ended = place.stepwell(&["run", &parent, "--with", &child]).expect(0).says("inner › b success");
    assert_eq!(ended.json(), json!({"got": 5}));
    // Without it the parent fails, for no one knows the child.
    let other = Installation::new();
    let file = other.file("parent.yaml", &std::fs::read_to_string(parent).unwrap());
    other.stepwell(&["run", &file]).expect(1).says("there is no workflow");
    place.sound();
}

#[test]
fn a_failed_run_is_retried_to_its_end_and_what_stands_is_said() {
    let (place, server) = (Installation::new(), Server::start());
    let text = format!(
        "name: flaky\ntasks:\n  a: {{url: \"{}\"}}\n  b: {{needs: a, tool: fail, args: {{message: broken}}}}\n",
        server.url
    );
    let file = place.file("flaky.yaml", &text);
    place.stepwell(&["run", &file]).expect(1);
    let run = place.newest();
    place.stepwell(&["retry", &run]).expect(1).says("stands: a").says("runs again: b");
    assert_eq!(server.keys().len(), 1, "what succeeded is not called again");
    // Repaired, under a newer version: it is made known by a run of its own.
    let file = place.file("flaky.yaml", &text.replace("tool: fail, args: {message: broken}", "tool: now"));
    place.stepwell(&["run", &file]).expect(0);
    place.stepwell(&["retry", &run, "--newest"]).expect(0).says("stands: a").says("runs again: b");
    assert_eq!(server.keys().len(), 2);
    place.stepwell(&["retry", &run]).expect(1).says("nothing in it to retry");
    place.sound();
}
