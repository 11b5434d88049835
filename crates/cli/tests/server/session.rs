//! An agent's session from the first try to the result: it tries a definition, defines it, is reviewed, runs it, is held,
//! its call is changed and approved, and the server is killed in between. The text in docs/agents.md is made from it.

use crate::agent::Agent;
use crate::harness::{Installation, Server, eventually};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use stepwell_testing::listen;

const BEGIN: &str = "<!-- session -->\n```text\n";
const END: &str = "```\n<!-- /session -->";
/// Where the transcript's shop is.
const SHOP: &str = "https://shop.example";

/// What was said, with everything that differs between two sessions replaced.
struct Transcript {
    text: String,
    shop: String,
}

impl Transcript {
    fn agent(&mut self, agent: &Agent, tool: &str, arguments: Value) -> Value {
        let result = agent.call(tool, arguments.clone());
        let said = result["content"][0]["text"].as_str().unwrap().to_string();
        let call = self.plain(&arguments.to_string());
        let _ = writeln!(self.text, "agent: {tool} {call}");
        self.indented(&said);
        result["structuredContent"].clone()
    }

    fn person(&mut self, place: &Installation, args: &[&str]) -> String {
        let said = place.stepwell(args);
        let quoted = |arg: &&str| if arg.contains([' ', '{']) { format!("'{arg}'") } else { arg.to_string() };
        let command = self.plain(&args.iter().map(quoted).collect::<Vec<_>>().join(" "));
        let _ = writeln!(self.text, "person$ stepwell {command}");
        self.indented(&said);
        said
    }

    fn happens(&mut self, what: &str) {
        let _ = writeln!(self.text, "({what})\n");
    }

    fn indented(&mut self, said: &str) {
        let said = self.plain(said);
        for line in said.lines() {
            let _ = writeln!(self.text, "{}", format!("  {line}").trim_end());
        }
        self.text.push('\n');
    }

    fn plain(&self, text: &str) -> String {
        let text = text.replace(&self.shop, SHOP);
        let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '-' | '.' | '/');
        let mut plain = String::new();
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let end = rest.find(|c| !word(c)).unwrap_or(rest.len());
            plain += &same(&rest[..end]);
            let after = rest[end..].find(word).map_or(rest.len(), |at| end + at);
            plain += &rest[end..after];
            rest = &rest[after..];
        }
        plain
    }
}

/// A word that differs each time, as it is shown.
fn same(word: &str) -> String {
    let bare = word.trim_end_matches(['.', ':']);
    let (tail, digits) = (&word[bare.len()..], bare.len() > 20 && bare.chars().any(|c| c.is_ascii_digit()));
    let shown = match bare {
        _ if bare.starts_with("http://127.0.0.1:") => {
            let path = bare.splitn(4, '/').nth(3).map(|path| format!("/{path}")).unwrap_or_default();
            format!("http://127.0.0.1:7070{path}")
        }
        _ if digits && bare.starts_with("run_") => "run_01JX".into(),
        _ if digits && bare.starts_with("rev_") => "rev_01JX".into(),
        _ if digits && bare.contains('T') && bare.ends_with('Z') => "2026-11-19T09:00:00Z".into(),
        _ if bare.len() == 64 && bare.chars().all(|c| c.is_ascii_hexdigit()) => "5f0c…".into(),
        _ => return word.into(),
    };
    shown + tail
}

fn served(place: &Installation, server: &Server) -> Agent {
    Agent::plain(&server.with_key(&place.agent_key()))
}

#[test]
fn an_agent_tries_is_reviewed_held_changed_killed_and_goes_on() {
    let place = Installation::new();
    let refunds = Arc::new(Mutex::new(Vec::new()));
    let asked = refunds.clone();
    let shop = listen(move |request| {
        if request.path == "/refunds" {
            asked.lock().unwrap().push(serde_json::from_slice::<Value>(&request.body).unwrap());
        }
        ("200 OK", json!({"total": 90}).to_string())
    });
    let mut said = Transcript { text: String::new(), shop: shop.clone() };
    let definition = json!({"name": "refund", "tasks": {
        "order": {"url": format!("{shop}/orders/{{{{input.order}}}}"), "method": "GET"},
        "refund": {"needs": ["order"], "url": format!("{shop}/refunds"), "body": {"order": "{{input.order}}",
            "amount": "{{input.amount}}"}},
        "rest": {"needs": ["refund"], "sleep": "1s"}},
        "output": {"refunded": "{{input.order}}"}});
    let input = json!({"order": "A7", "amount": 900});

    let server = place.serve();
    let writes = ["--when", "args.method != 'GET'"];
    place.stepwell(
        &[&["policy", "set", "refunds", "host:127.0.0.1", "require_approval", "--allow-changes"][..], &writes].concat(),
    );
    let agent = served(&place, &server);
    let given = json!({"definition": definition, "input": input, "calls": {"order": {"body": {"total": 90}}}});
    let tried = said.agent(&agent, "workflow_simulate", given);
    assert_eq!((&tried["status"], &tried["path"]), (&json!("completed"), &json!(["order", "refund", "rest"])));
    assert!(refunds.lock().unwrap().is_empty(), "a dry run calls nothing");
    let reason = "Refunds are done by hand today";
    said.agent(&agent, "workflow_define", json!({"definition": definition, "reason": reason}));
    said.person(&place, &["review", "accept", "refund", "--comment", "Fine"]);
    let run = said.agent(&agent, "workflow_start", json!({"workflow": "refund", "input": input, "wait_seconds": 20}));
    let run = run["run_id"].as_str().unwrap().to_string();
    let held = || Some(server.api.data("/approvals")).filter(|open| open[0]["step"] == "refund");
    eventually("the refund is held", held);
    said.happens("the server is killed, and starts again");
    server.kill();
    let server = place.serve();
    let agent = served(&place, &server);
    said.agent(&agent, "workflow_wait", json!({"run_id": run}));
    let changed = json!({"url": format!("{shop}/refunds"), "method": "POST", "body": {"order": "A7", "amount": 90}});
    let shown = server.api.data(&format!("/runs/{run}/steps/refund/approval"));
    let mut input = shown["asks"]["calls"][0]["input"].clone();
    input["body"] = changed["body"].clone();
    let input = input.to_string();
    said.person(&place, &["approve", &run, "refund", "--input", &input, "--comment", "The order was 90"]);
    eventually("the refund", || Some(()).filter(|()| !refunds.lock().unwrap().is_empty()));
    said.happens("the server is killed again, while the run sleeps");
    server.kill();
    let server = place.serve();
    let agent = served(&place, &server);
    let end = said.agent(&agent, "workflow_wait", json!({"run_id": run}));
    assert_eq!(end["status"], "completed", "{end:#}");
    let state = agent.done("workflow_status", json!({"run_id": run}));
    let step = &state["tasks"]["refund"];
    assert_eq!(
        (&step["input"]["body"]["amount"], &step["changed"]["from"]["body"]["amount"]),
        (&json!(90), &json!(900))
    );
    let log = agent.call("workflow_events", json!({"run_id": run}));
    let log = log["content"][0]["text"].as_str().unwrap();
    assert!(log.contains("refund: the held call was changed by admin"), "{log}");
    let made = refunds.lock().unwrap().clone();
    assert_eq!(made, [json!({"order": "A7", "amount": 90})], "what was approved is what ran, once");
    documented(&said.text);
}

/// Compares with the text in the documents. `UPDATE=1` writes it there.
fn documented(text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/agents.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the page has a place for the session");
    let (written, after) = rest.split_once(END).unwrap();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{text}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(written, text, "run it with UPDATE=1");
}
