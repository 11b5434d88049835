//! `check` of a file alone and against a server; `doctor` and `audit` beside a server.

use crate::harness::Installation;
use crate::served::{CHAIN, Served};
use serde_json::Value;

const CODE: &str = "name: code\ntasks:\n  ok: {tool: now}\n  sum:\n    needs: ok\n    javascript: |\n      const a = 1\n\
                    \x20     return a +* 2\n";
const USES: &str = "name: uses
tasks:
  call: {tool: ehco}
  child: {workflow: chian}
  look: {query: {connection: orders, sql: \"select * from t where day = :day and town = :town\", params: {day: 1}}}
  saved: {query: {saved: late}}
";
const QUERIES: &str = "name: queries
tasks:
  few: {query: {connection: crm, sql: \"select $1, $2\", params: [1]}}
  none: {query: {connection: crm, sql: \"select ?\"}}
  many: {query: {connection: crm, sql: \"select '?'\", params: [\"{{input.a}}\"]}}
  saved: {query: {saved: by-day, params: {town: Bonn}}}
  open: {query: {saved: by-day, params: \"{{input.all}}\"}}
  fine: {query: {connection: crm, sql: \"select :a, $$?$$\", params: {a: 1}}}
";

#[test]
fn faults_in_code_point_into_the_document() {
    let place = Installation::new();
    let file = place.file("code.yaml", CODE);
    let found = place.stepwell(&["check", &file]).expect(2);
    assert!(found.out.contains("code.yaml:8:"), "{}", found.out);
    found.says("return a +* 2").says("[bad-code]");
    let fault = place.stepwell(&["check", &file, "--json"]).expect(2).json()["faults"][0].clone();
    assert_eq!((fault["line"].as_u64(), fault["code"].as_str()), (Some(8), Some("bad-code")));
    assert_eq!((&fault["path"], &fault["pointer"]), (&"tasks.sum.javascript".into(), &"/tasks/sum/javascript".into()));
    // The server says the same.
    let served = Served::on(place, "127.0.0.1:0");
    let text = CODE.replace("name: code\n", "name: code\nlabels: {a: b}\n");
    let moved = served.place.file("moved.yaml", &text);
    served.run(&["check", &moved, "--offline"]).expect(2).says("moved.yaml:9:");
    served.run(&["apply", "-f", &moved]).expect(2).says("9:");
}

#[test]
fn what_a_definition_uses_and_a_server_does_not_have_is_a_warning() {
    let served = Served::with(&[CHAIN]);
    let file = served.place.file("uses.yaml", USES);
    let found = served.run(&["check", &file]).expect(0);
    let expected = [
        "uses.yaml: ok: uses (tasks, 4 steps)",
        "uses.yaml:3:16: warning: tasks.call.tool: there is no tool `ehco`; did you mean `echo`?",
        "uses.yaml:4:21: warning: tasks.child.workflow: there is no workflow \"chian\"; did you mean \"chain\"?",
        "uses.yaml:5:30: warning: tasks.look.query.connection: there is no connection",
        "uses.yaml:5:4",
        "warning: tasks.look.query.sql: the statement has a parameter `:town`",
        "uses.yaml:6:26: warning: tasks.saved.query.saved: there is no saved query \"late\"",
        "[missing-here]",
    ];
    expected.iter().for_each(|part| assert!(found.out.contains(part), "no {part} in {}", found.out));
    let report = served.run(&["check", &file, "--json"]).expect(0).json();
    assert_eq!(report["warnings"].as_array().map(Vec::len), Some(5), "{report:#}");
    assert_eq!(report["warnings"][0]["code"], "missing-here");
    let offline = served.run(&["check", &file, "--offline"]).expect(0);
    assert_eq!(offline.out.lines().count(), 1);
    // What only the server can refuse.
    let taken = "{\"name\": \"workflow_approve\", \"expose_as_tool\": true, \"tasks\": {\"a\": {\"sleep\": 1}}}";
    let taken = served.place.file("taken.json", taken);
    served.run(&["check", &taken, "--offline"]).expect(0);
    served.run(&["check", &taken]).expect(2).says("[tool-name-taken]");
    served.run(&["check", &file, "--url", "http://127.0.0.1:1"]).expect(1).says("no server answers");
    // Several files are one object each.
    let lines = served.run(&["check", &file, &taken, "none.yaml", "--json"]).expect(2).lines();
    assert_eq!(
        lines.iter().map(|line| line["ok"].as_bool()).collect::<Vec<_>>(),
        [Some(true), Some(false), Some(false)]
    );
}

#[test]
fn parameters_of_statements_without_a_value_are_warnings() {
    let place = Installation::new();
    // On a database no command makes one.
    place.master_key(Some(&"5a".repeat(32)));
    let served = Served::on(place, "127.0.0.1:0").having(&[CHAIN]);
    let url = format!("sqlite:{}", served.place.file("crm.db", ""));
    let url = served.place.file("url", &url);
    served.run(&["connection", "set", "crm", "--from-file", &url]).expect(0);
    let sql = served.place.file("by-day.sql", "select * from t where day = :day and town = :town and kind = :kind");
    let saved = ["query", "set", "by-day", "--connection", "crm", "--from-file", &sql, "--param", "kind=\"a\""];
    served.run(&saved).expect(0);
    let file = served.place.file("queries.yaml", QUERIES);
    let report = served.run(&["check", &file, "--json"]).expect(0).json();
    let found: Vec<(&str, &str)> = report["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|warning| (warning["path"].as_str().unwrap(), warning["message"].as_str().unwrap()))
        .collect();
    let expected = [
        ("tasks.few.query.sql", "the statement has 2 parameters, but `params` has 1"),
        ("tasks.none.query.sql", "the statement has 1 parameter, but `params` has 0"),
        ("tasks.many.query.sql", "the statement has 0 parameters, but `params` has 1"),
        (
            "tasks.saved.query.saved",
            "the saved query \"by-day\": the statement has a parameter `:day`, but `params` has no \"day\"",
        ),
    ];
    assert_eq!(found, expected);
}

#[test]
fn the_doctor_and_the_audit_trail_are_read_beside_a_server() {
    // A database is read as it is, by any number of processes.
    if stepwell_testing::on_postgres() {
        return;
    }
    let served = Served::with(&[CHAIN]);
    let run = served.trigger(&["chain"]);
    served.run(&["watch", &run, "--quiet"]).expect(0);
    let found = served.run(&["doctor"]).expect(0);
    assert!(found.err.contains("a copy of its present state was examined"), "{}", found.err);
    found.says("nothing is wrong").says("runs      1, 0 unfinished");
    let report: Value = served.run(&["doctor", "--json"]).expect(0).json();
    assert_eq!((&report["sound"], &report["report"]["runs"]), (&true.into(), &1.into()));
    served.run(&["doctor", "--audit"]).expect(0).says("nothing is wrong");
    served.run(&["doctor", "--purge"]).expect(2).says("purges by itself");
    let trail = served.run(&["audit", "export"]).expect(0).out;
    let file = served.place.file("trail.jsonl", &trail);
    served.run(&["audit", "verify", &file]).expect(0).says("nothing is wrong");
    served.run(&["audit", "anchor"]).expect(0);
    // No copy is left, and the server does not notice.
    let left = std::fs::read_dir(served.place.data()).unwrap().flatten().map(|entry| entry.file_name());
    let left: Vec<String> = left.map(|name| name.to_string_lossy().into_owned()).collect();
    assert!(!left.iter().any(|name| name.starts_with("examined-")), "{left:?}");
    served.run(&["rerun", &run, "--wait"]).expect(0);
    served.stop().sound();
}
