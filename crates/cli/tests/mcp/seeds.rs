//! The flows of the seed documents, unchanged, with their tools on a real MCP server.

use crate::agent::Agent;
use crate::harness::{Api, Installation, eventually, statuses};
use crate::outside::Outside;
use crate::{again, program, serve};
use serde_json::{Value, json};

const RESEARCH: &str = include_str!("../../../formats/tests/cases/seeds/research.json");
const BRANCHING: &str = include_str!("../../../formats/tests/cases/seeds/branching.json");
const APPROVAL: &str = include_str!("../../../formats/tests/cases/seeds/approval.json");

fn seeds(environment: Value) -> Value {
    json!({"kb": program("seed_server.py", json!({"plainNames": true, "env": environment}))})
}

#[track_caller]
fn define(api: &Api, text: &str) {
    api.define(&serde_json::from_str(text).unwrap());
}

#[test]
fn steps_call_tools_by_their_plain_names_one_after_the_other() {
    let outside = Outside::start();
    outside.answer("/1/messages.json", 200, json!({"status": 1}));
    let servers = seeds(json!({}));
    let place = Installation::new().config(&json!({"mcpServers": servers}).to_string());
    let pushover = [("PUSHOVER_URL", outside.url.as_str()), ("PUSHOVER_USER", "u-james"), ("PUSHOVER_TOKEN", "t-0")];
    let place = pushover.into_iter().fold(place, |place, (name, value)| place.variable(name, value));
    let server = again(&place, &servers);
    define(&server.api, RESEARCH);
    let run = server.api.finished("research", &json!({"topic": "AI safety"}));
    assert_eq!(statuses(&run), "search=success summarize=success notify=success", "{run:#}");
    assert_eq!(run["tasks"]["search"]["output"][0]["title"], "AI safety", "{run:#}");
    let sent = &outside.called("/1/messages.json", 1)[0].body;
    assert!(sent.contains("message=Research+complete") && sent.contains("user=u-james"), "{sent}");
}

#[test]
fn a_tools_result_decides_which_way_is_taken() {
    for (admin, taken) in [("true", "admin_action"), ("false", "user_action")] {
        let (_place, server) = serve(&seeds(json!({"ADMIN": admin})));
        define(&server.api, BRANCHING);
        let run = server.api.finished("branching", &json!({"title": "by an administrator"}));
        assert_eq!(run["status"], "completed", "{run:#}");
        assert_eq!(run["tasks"][taken]["status"], "success", "{run:#}");
    }
}

#[test]
fn a_gate_holds_a_write_through_a_crash_until_somebody_approves_it_over_mcp() {
    let kept = tempfile::NamedTempFile::new().unwrap();
    let path = kept.path().with_extension("json");
    let servers = seeds(json!({"KNOWLEDGE": path}));
    let (place, server) = serve(&servers);
    define(&server.api, APPROVAL);
    let desk = server.api.new_user("desk", &["workflow.read", "workflow.run", "workflow.approve", "tool:*"]);
    let run = server.api.trigger("approval", &json!({"title": "Tides", "body": "Twice a day"}));
    eventually("paused", || (server.api.run(&run)["status"] == "paused").then_some(()));
    server.kill();
    assert!(!path.exists());

    let server = again(&place, &servers);
    let desk = server.with_key(desk.key.as_ref().unwrap());
    Agent::plain(&desk).done("workflow_approve", json!({"run_id": run, "step_name": "request_approval"}));
    let ended = server.api.end(&run);
    assert_eq!(statuses(&ended), "request_approval=success execute_write=success", "{ended:#}");
    let kept: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let titles: Vec<&Value> = kept.as_object().unwrap().values().map(|document| &document["title"]).collect();
    assert_eq!(titles.iter().filter(|title| **title == "Tides").count(), 1, "{kept:#}");
    std::fs::remove_file(path).unwrap();
}
