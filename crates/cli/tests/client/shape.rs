//! What every command has in common: a page in the manual, help with examples, JSON of one shape, exit codes.

use crate::harness::Installation;
use crate::served::{CHAIN, FAILS, GATE, Served};
use serde_json::Value;
use std::collections::BTreeSet;

/// Commands that print something else than results about an installation: servers, scripts, and streams of their own.
const NO_JSON: [&str; 10] = [
    "audit-anchor",
    "audit-export",
    "audit-verify",
    "completion",
    "config-check",
    "man",
    "mcp",
    "pipe",
    "schema",
    "serve",
];
/// Commands that are tried elsewhere, because they need another machine, or take too long.
const ELSEWHERE: [&str; 6] = ["bench", "channel-test", "mcp-server-accept", "migrate", "restore", "tool-accept"];

/// The pages of the manual: the names of all commands with their text.
fn pages(served: &Served) -> Vec<(String, String)> {
    let folder = served.place.data().parent().unwrap().join("man1");
    served.run(&["man", folder.to_str().unwrap()]).expect(0).says("pages in");
    let files = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let page = |path: std::path::PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().replacen("stepwell-", "", 1);
        (name, std::fs::read_to_string(&path).unwrap())
    };
    let mut pages: Vec<(String, String)> = files.map(page).collect();
    pages.sort();
    assert!(pages.iter().any(|(name, _)| name == "stepwell"), "the program has a page of its own");
    pages.retain(|(name, _)| name != "stepwell");
    pages
}

#[test]
fn every_command_has_a_manual_page_and_help_with_examples() {
    let served = Served::start();
    let pages = pages(&served);
    assert!(pages.len() > 75, "{}", pages.len());
    let groups: Vec<&str> = pages.iter().filter(|(_, text)| text.contains("SUBCOMMAND")).map(|(n, _)| &**n).collect();
    for (name, text) in pages.iter().filter(|(name, _)| !groups.contains(&&**name)) {
        assert!(text.contains(".TH ") && text.contains("stepwell"), "{name}");
        let path = path_of(name, &groups);
        let help = served.run(&[&path[..], &["--help"]].concat()).expect(0);
        assert!(help.out.contains("Examples:\n  stepwell "), "{name}: {}", help.out);
    }
    let whole = served.run(&["--help"]).expect(0).out;
    for topic in ["Write definitions:", "Runs:", "Approvals:", "Stored data:"] {
        assert!(whole.contains(&format!("\n{topic}\n  ")), "no {topic} in {whole}");
    }
    assert!(!whole.contains("javascript-worker") && !whole.contains('\u{1b}'), "{whole}");
    served.run(&["man"]).expect(0).says(".TH stepwell 1");
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = served.run(&["completion", shell]).expect(0).out;
        assert!(script.contains("mcp-server") && script.contains("dry-run"), "{shell}");
        assert!(!script.contains("javascript-worker"), "{shell}");
    }
}

/// `mcp-server-list` is the command `list` of `mcp-server`.
fn path_of<'a>(name: &'a str, groups: &[&'a str]) -> Vec<&'a str> {
    let group = groups.iter().find(|group| name.strip_prefix(**group).is_some_and(|rest| rest.starts_with('-')));
    match group {
        Some(group) => vec![group, &name[group.len() + 1..]],
        None => vec![name],
    }
}

/// The arguments of a command with `--json` on an installation that has what they name, or nothing.
fn arguments<'a>(name: &str, known: &'a Known) -> Option<Vec<&'a str>> {
    let Known { file, test, done, failed, waits, backup, key, .. } = known;
    Some(match name {
        "check" | "graph" | "simulate" => vec![file],
        "test" => vec![test],
        "run" => vec![file, "--data", &known.other],
        "apply" => vec!["-f", file],
        "workflow-show" | "enable" | "disable" | "pause" | "resume" | "schedule" => vec!["chain"],
        "workflow-diff" => vec!["chain", "1", "2"],
        "workflow-delete" | "workflow-restore" => vec!["spare"],
        "trigger" => vec!["chain"],
        "rerun" | "show" | "watch" | "events" => vec![done],
        "retry" => vec![failed, "--detach"],
        "approve" => vec![waits, "ask"],
        "deny" => vec![&known.also_waits, "ask"],
        "cancel" => vec![&known.still_waits],
        "review-show" | "review-accept" => vec!["mine"],
        "review-refuse" => vec!["yours"],
        "secret-set" => vec!["TOKEN", "--any-host"],
        "secret-delete" => vec!["TOKEN"],
        "connection-set" => vec!["db"],
        "query-set" => vec!["late", "--connection", "db"],
        "query-delete" => vec!["late"],
        "connection-delete" => vec!["db"],
        "policy-set" => vec!["pay", "tool:pay*", "deny"],
        "policy-delete" | "policy-log" => vec!["pay"],
        "key-create" => vec!["ci"],
        "key-pause" | "key-resume" | "key-revoke" => vec![key],
        "user-create" => vec!["bo"],
        "grant-list" => vec!["bo"],
        "grant-add" | "grant-remove" => vec!["bo", "workflow.run"],
        "user-disable" => vec!["bo"],
        "channel-add" => vec!["ntfy", "mail", "--topic", "stepwell-test"],
        "channel-remove" => vec!["mail"],
        "backup" => vec![backup],
        "workflow-list" | "workflows" | "runs" | "approvals" | "secret-list" | "secret-rotate" | "connection-list"
        | "query-list" | "policy-list" | "policy-test" | "mcp-server-list" | "tool-list" | "review-list" | "nodes"
        | "key-list" | "user-list" | "channel-list" | "login" | "doctor" => vec![],
        _ => return None,
    })
}

struct Known {
    file: String,
    test: String,
    other: String,
    done: String,
    failed: String,
    waits: String,
    also_waits: String,
    still_waits: String,
    backup: String,
    key: String,
}

fn prepare(served: &Served) -> Known {
    let at = |name: &str| served.place.data().parent().unwrap().join(name).to_str().unwrap().to_string();
    let spare = served.place.file("spare.yaml", &CHAIN.replace("name: chain", "name: spare"));
    served.run(&["apply", "-f", &spare]).expect(0);
    let file = served.place.file("chain.yaml", &format!("{CHAIN}# again\n"));
    served.run(&["apply", "-f", &file]).expect(0);
    let cases = "cases: [{name: a, calls: {a: {result: {n: 1}}, b: {result: {m: 1}}}}]\n";
    let test = served.place.file("chain.test.yaml", cases);
    let (done, failed) = (served.trigger(&["chain"]), served.trigger(&["fails"]));
    served.run(&["watch", &done, "--quiet"]).expect(0);
    served.run(&["watch", &failed, "--quiet"]).expect(1);
    let gate = || {
        let run = served.trigger(&["gate"]);
        let mut watching = served.place.start(&["watch", &run]);
        watching.until("ask asks for approval");
        run
    };
    let key = served.run(&["key", "create", "it", "--json"]).expect(0).json()["id"].as_str().unwrap().to_string();
    let (waits, also_waits, still_waits) = (gate(), gate(), gate());
    let (other, backup) = (at("other"), at("copy.backup"));
    let robot = served.run(&["key", "create", "robot", "--agent", "--json"]).expect(0).json()["key"].clone();
    for name in ["mine", "yours"] {
        let written = served.place.file("robot.yaml", &CHAIN.replace("name: chain", &format!("name: {name}")));
        served.run(&["apply", "-f", &written, "--api-key", robot.as_str().unwrap()]).expect(0);
    }
    Known { file, test, other, done, failed, waits, also_waits, still_waits, backup, key }
}

#[test]
fn every_command_prints_json_objects_one_per_line() {
    let place = Installation::new();
    // On a database no command makes one.
    place.master_key(Some(&"5a".repeat(32)));
    let served = Served::on(place, "127.0.0.1:0").having(&[CHAIN, FAILS, GATE]);
    let known = prepare(&served);
    let pages = pages(&served);
    let groups: Vec<&str> = pages.iter().filter(|(_, text)| text.contains("SUBCOMMAND")).map(|(n, _)| &**n).collect();
    let mut names: Vec<&str> = pages.iter().map(|(name, _)| &**name).filter(|name| !groups.contains(name)).collect();
    // Things are created before they are changed and removed.
    let order = |name: &&str| match name.rsplit('-').next().unwrap_or_default() {
        _ if name.starts_with("grant") => 2,
        "create" | "set" | "add" => {
            if name.starts_with("query") {
                1
            } else {
                0
            }
        }
        "delete" | "remove" | "revoke" => {
            if name.starts_with("connection") {
                5
            } else {
                4
            }
        }
        "disable" if name.starts_with("user") => 5,
        "restore" if name.starts_with("workflow") => 6,
        "accept" | "refuse" => 3,
        _ => 2,
    };
    names.sort_by_key(order);
    let mut tried = BTreeSet::new();
    for name in names {
        // A database is copied with its own tools.
        let postgres = name == "backup" && stepwell_testing::on_postgres();
        if postgres || NO_JSON.contains(&name) || ELSEWHERE.contains(&name) || name == "release" {
            continue;
        }
        let more = arguments(name, &known).unwrap_or_else(|| panic!("say here what {name} --json is tried with"));
        let args = [path_of(name, &groups), more, vec!["--json"]].concat();
        let fed = match name {
            "connection-set" => "sqlite:/nowhere/orders.db",
            "query-set" => "select 1",
            _ => "a secret of some length",
        };
        let done = served.place.fed(&args, fed);
        assert_eq!(done.code, 0, "{args:?}: {} {}", done.out, done.err);
        for line in done.out.lines() {
            let object = serde_json::from_str::<Value>(line).is_ok_and(|value| value.is_object());
            assert!(object, "{args:?}: {line}");
        }
        tried.insert(name);
    }
    assert!(tried.len() > 50, "{tried:?}");
}

#[test]
fn errors_are_json_too_and_exit_codes_tell_them_apart() {
    let served = Served::with(&[CHAIN, FAILS, GATE]);
    let check = |args: &[&str], code: i32, word: &str| {
        let done = served.run(&[args, &["--json"]].concat()).expect(code);
        let error: Value = serde_json::from_str(done.err.trim()).unwrap_or_else(|_| panic!("{args:?}: {}", done.err));
        assert_eq!(error["error"]["code"], word, "{args:?}: {}", done.err);
        assert!(error["error"]["message"].is_string());
    };
    check(&["show", "run_none"], 2, "not-found");
    check(&["workflow", "show", "none"], 2, "not-found");
    check(&["user", "create", "admin"], 2, "exists");
    check(&["runs", "--url", "http://127.0.0.1:1"], 1, "unreachable");
    check(&["runs", "--status", "odd"], 2, "invalid");
    let run = served.trigger(&["chain"]);
    served.run(&["watch", &run, "--quiet"]).expect(0);
    check(&["cancel", &run], 1, "run-finished");
    // 1: the outcome is bad. 2: the command line is wrong. 3: it was cancelled or took too long.
    served.run(&["trigger", "fails", "--wait"]).expect(1);
    served.run(&["chekc"]).expect(2).says("check");
    served.run(&["trigger", "gate", "--wait", "10ms"]).expect(3);
    let place = served.stop();
    let done = place.stepwell(&["show", "run_none", "--json"]).expect(2);
    assert!(done.err.contains("\"code\":\"not-found\""), "{}", done.err);
}
