//! Tools of connected servers, offered to agents: each call is a run, so one that needs an approval waits durably.

use crate::agent::Agent;
use crate::harness::eventually;
use crate::{again, program, serve};
use serde_json::{Value, json};

fn seeds() -> Value {
    json!({"kb": program("seed_server.py", json!({}))})
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

#[test]
fn an_agent_sees_and_calls_what_its_key_was_granted() {
    let (_place, server) = serve(&seeds());
    let ann = server.api.new_user("ann", &["workflow.run", "workflow.read", "tool:kb__get_*"]);
    let agent = Agent::plain(&ann);
    let tools: Vec<String> = agent.tools().into_iter().filter(|name| name.starts_with("kb__")).collect();
    assert_eq!(tools, ["kb__get_greeting"]);
    let result = agent.call("kb__get_greeting", json!({"name": "Ann"}));
    assert_eq!((text(&result), &result["isError"]), ("Hello, Ann!", &json!(false)), "{result:#}");
    let refused = agent.send("tools/call", json!({"name": "kb__knowledge_add", "arguments": {}})).json();
    assert!(refused["error"]["message"].as_str().unwrap().contains("Unknown tool"), "{refused:#}");
    // What is wrong with a call is said before it is made.
    let wrong = agent.refused("kb__get_greeting", json!({"name": 7}));
    assert!(wrong.contains("name"), "{wrong}");
    // A template is text.
    let result = agent.call("kb__get_greeting", json!({"name": "{{secrets.API_KEY}}"}));
    assert_eq!(text(&result), "Hello, {{secrets.API_KEY}}!", "{result:#}");
    let runs = server.api.get("/api/v1/runs?label=called_tool%3Dkb__get_greeting").is(200).data();
    assert_eq!(runs.as_array().unwrap().len(), 3, "{runs:#}");

    let other = server.api.new_organisation("other");
    let tools = Agent::plain(&other).tools();
    assert!(tools.iter().all(|name| !name.starts_with("kb__")), "{tools:?}");
    other.get("/api/v1/mcp-servers/kb").refused(404, "not-found");
}

#[test]
fn a_call_that_needs_an_approval_is_pending_survives_a_crash_and_is_made_once_approved() {
    let servers = seeds();
    let (place, server) = serve(&servers);
    let policy = json!({"calls": "tool:kb__knowledge_add", "effect": "require_approval"});
    server.api.call("PUT", "/api/v1/policies/writes", &policy).is(200);
    let ann = server.api.new_user("ann", &["workflow.run", "workflow.read", "tool:kb__*"]);
    let pending = Agent::plain(&ann).done("kb__knowledge_add", json!({"title": "Tides"}));
    assert_eq!((&pending["status"], &pending["finished"]), (&json!("paused"), &json!(false)), "{pending:#}");
    let task = Agent::able(&ann).call("kb__knowledge_add", json!({"title": "Moons"}));
    let (run, task) = (pending["run_id"].as_str().unwrap(), task["taskId"].as_str().unwrap());
    eventually("both are asked", || {
        let open = server.api.get("/api/v1/approvals").is(200).data();
        (open.as_array().unwrap().len() == 2).then_some(())
    });
    server.kill();

    let server = again(&place, &servers);
    let ann = server.with_key(ann.key.as_ref().unwrap());
    let open = server.api.get("/api/v1/approvals").is(200).data();
    let shown = &open[0]["asks"]["calls"][0]["input"];
    assert_eq!((&shown["tool"], &shown["args"]["title"]), (&json!("kb__knowledge_add"), &json!("Tides")), "{open:#}");
    for gate in open.as_array().unwrap() {
        let path = format!("/api/v1/runs/{}/steps/call/approve", gate["run_id"].as_str().unwrap());
        server.api.post(&path, &json!({"digest": gate["digest"]})).is(200);
    }
    let ended = server.api.end(run);
    assert_eq!((&ended["status"], &ended["output"]["title"]), (&json!("completed"), &json!("Tides")), "{ended:#}");
    let done = Agent::able(&ann).task(task, "completed");
    assert_eq!(done["result"]["structuredContent"]["title"], "Moons", "{done:#}");
    let found = Agent::plain(&ann).call("kb__knowledge_search", json!({"query": "tides"}));
    let found: Value = serde_json::from_str(text(&found)).unwrap();
    assert_eq!(found.as_array().unwrap().len(), 1, "{found:#}");
}

#[test]
fn a_call_that_a_policy_denies_says_so() {
    let (_place, server) = serve(&seeds());
    let policy = json!({"calls": "tool:kb__*", "effect": "deny", "reason": "not on Mondays"});
    server.api.call("PUT", "/api/v1/policies/mondays", &policy).is(200);
    let said = Agent::plain(&server.api).refused("kb__get_greeting", json!({}));
    assert!(said.contains("not on Mondays"), "{said}");
}
