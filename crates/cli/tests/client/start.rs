//! `trigger` and `rerun`: what they print, and what they wait for.

use crate::served::{CHAIN, FAILS, GATE, Served};
use serde_json::json;

const SCHEMA: &str = "name: strict\ninput_schema: {type: object, required: [n]}\ntasks: {a: {tool: now}}\n";

#[test]
fn a_run_is_started_and_left_waited_for_or_watched() {
    let served = Served::with(&[CHAIN, FAILS, GATE]);
    let started = served.run(&["trigger", "chain"]).expect(0).says("chain, version 1");
    assert!(started.out.starts_with("run_") && started.out.lines().count() == 1, "{}", started.out);
    let document = served.run(&["trigger", "chain", "--json"]).expect(0).json();
    assert_eq!((&document["workflow"], &document["workflow_version"]), (&json!("chain"), &json!(1)));

    let waited = served.run(&["trigger", "chain", "--input", "{\"n\": 7}", "--wait"]).expect(0);
    assert_eq!((waited.json(), waited.err.as_str()), (json!({"got": 7}), ""));
    let whole = served.run(&["trigger", "chain", "--wait", "30s", "--json"]).expect(0).json();
    assert_eq!((&whole["status"], &whole["tasks"]["b"]["status"]), (&json!("completed"), &json!("success")));
    served.run(&["trigger", "fails", "--wait"]).expect(1).says("no luck");
    served.run(&["trigger", "gate", "--wait", "100ms"]).expect(3).says("goes on; watch it with: stepwell watch run_");
    served.run(&["trigger", "gate", "--wait", "long"]).expect(2).says("expected a duration");

    let watched = served.run(&["trigger", "chain", "--watch"]).expect(0).says("a success").says("run completed");
    assert_eq!(watched.json(), json!({"got": 1}));
    let lines = served.run(&["trigger", "chain", "--watch", "--json"]).expect(0).lines();
    let kinds: Vec<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["created", "started", "entered", "finished", "entered", "finished", "ended", "result"]);
}

#[test]
fn input_comes_from_the_command_line_a_file_or_standard_input() {
    let served = Served::with(&[CHAIN, SCHEMA]);
    let file = served.place.file("input.json", "{\"n\": \"é\"}");
    let got = |args: &[&str], fed: &str| {
        served.place.fed(&[&["trigger", "chain", "--wait"], args].concat(), fed).expect(0).json()["got"].clone()
    };
    assert_eq!(got(&["--input", &format!("@{file}")], ""), json!("é"));
    assert_eq!(got(&["--input", "-"], "{\"n\": [1]}"), json!([1]));
    assert_eq!(got(&["--input", "n=2"], ""), json!(2));
    served.place.fed(&["trigger", "chain", "--input", "-"], "{").expect(2).says("standard input is not JSON");
    served.run(&["trigger", "strict"]).expect(2).says("required property");
    served.run(&["trigger", "none"]).expect(2).says("there is no workflow");
}

#[test]
fn a_key_starts_one_run_only_and_labels_are_kept() {
    let served = Served::with(&[CHAIN]);
    let once = served.trigger(&["chain", "--key", "k", "--label", "team=a", "--label", "tier=gold"]);
    let again = served.run(&["trigger", "chain", "--key", "k", "--label", "team=a", "--label", "tier=gold"]).expect(0);
    assert_eq!(again.out.trim(), once);
    again.says("already started by this key");
    served.run(&["trigger", "chain", "--key", "k", "--input", "n=2"]).expect(2).says("used for another request");
    served.run(&["show", &once]).expect(0).says("labels team=a, tier=gold");
    served.run(&["trigger", "chain", "--label", "team"]).expect(2).says("expected NAME=VALUE");
}

#[test]
fn a_run_is_run_again_with_its_input_or_another() {
    let served = Served::with(&[CHAIN]);
    let first = served.trigger(&["chain", "--input", "n=5"]);
    served.run(&["watch", &first, "--quiet"]).expect(0);
    assert_eq!(served.run(&["rerun", &first, "--wait"]).expect(0).json(), json!({"got": 5}));
    assert_eq!(served.run(&["rerun", &first, "--wait", "--input", "n=6"]).expect(0).json(), json!({"got": 6}));
    let other = served.run(&["rerun", &first]).expect(0).out;
    assert_ne!(other.trim(), first);
    served.run(&["rerun", "run_none"]).expect(2).says("there is no run");
}
