//! No tool receives calls that are meant for another: names are unique, the product's own names are reserved, and a
//! tool that an agent exposes is held until a person accepts it.

use crate::agent::Agent;
use crate::harness::{Api, Installation};
use crate::{again, calling, program, script, serve, standing};
use serde_json::{Value, json};

/// A workflow that is exposed as a tool and says this.
fn exposed(name: &str, says: &str) -> Value {
    json!({"name": name, "description": says, "expose_as_tool": true, "output": says,
        "tasks": {"nap": {"sleep": 0}}})
}

fn hostile(environment: Value, plain: bool) -> Value {
    json!({"bad": {"command": "python3", "args": [script("hostile_server.py")], "plainNames": plain, "env": environment}})
}

#[track_caller]
fn taken(api: &Api, name: &str, by: &str) {
    for path in ["/api/v1/workflows", "/api/v1/check"] {
        let refused = api.post(path, &exposed(name, "mine"));
        assert_eq!(refused.status, 422, "{path}: {}", refused.text());
        let fault = &refused.json()["errors"][0];
        let expected = (&json!("expose_as_tool"), &json!("tool-name-taken"));
        assert_eq!((&fault["path"], &fault["code"]), expected, "{path}: {fault:#}");
        assert!(fault["message"].as_str().unwrap().contains(by), "{path}: {fault:#}");
    }
    let check = json!({"definition": exposed(name, "mine"), "check_only": true});
    let refused = Agent::plain(api).refused("workflow_define", check);
    assert!(refused.contains("tool-name-taken"), "{refused}");
}

#[test]
fn a_workflow_cannot_take_the_name_of_another_tool() {
    let servers = json!({"kb": program("seed_server.py", json!({"plainNames": true}))});
    let (place, server) = serve(&servers);
    taken(&server.api, "knowledge_search", "a tool of the MCP server kb");
    taken(&server.api, "workflow_approve", "one of Stepwell's own tools");
    taken(&server.api, "http_request", "one of Stepwell's own tools");
    server.api.define(&exposed("Say it", "one"));
    taken(&server.api, "Say, it", "the workflow \"Say it\"");
    // The name of a workflow that is not exposed is no tool's.
    server.api.define(&json!({"name": "knowledge_search", "tasks": {"nap": {"sleep": 0}}}));
    // A deleted workflow gives its name back, and so does one that is no longer exposed.
    server.api.call("DELETE", "/api/v1/workflows/Say%20it", &json!(null)).is(204);
    server.api.define(&exposed("Say, it", "two"));
    let hidden = json!({"name": "Say, it", "tasks": {"nap": {"sleep": 0}}});
    server.api.call("PUT", "/api/v1/workflows/Say,%20it", &hidden).is(200);
    server.api.define(&exposed("Say it", "three"));
    server.stop();
    // The name is the server's even while it is not connected.
    let place = place.config("{}");
    taken(&place.serve().api, "knowledge_get", "a tool of the MCP server kb");
}

#[test]
fn a_server_cannot_pose_as_the_product_or_as_a_workflow() {
    let place = Installation::new();
    let server = place.serve();
    server.api.define(&exposed("deploy", "the real one"));
    server.stop();
    let servers = hostile(json!({"LIST": "pose"}), true);
    let place = place.config(&json!({"mcpServers": servers}).to_string());
    let server = again(&place, &servers);
    let api = &server.api;
    assert_eq!(standing(api, "bad", "steady"), "accepted");
    for tool in ["workflow_approve", "echo", "deploy"] {
        assert_eq!(standing(api, "bad", tool), "held", "{tool}");
    }
    let listed = place.stepwell(&["mcp-server", "list"]);
    assert!(listed.contains("its name is that of one of Stepwell's own tools"), "{listed}");
    assert!(listed.contains("the workflow \"deploy\" is exposed as a tool of the same name"), "{listed}");
    let tools = Agent::plain(api).ask("tools/list", json!({}))["tools"].as_array().unwrap().clone();
    let trusted: Vec<&Value> = tools.iter().filter(|tool| tool["description"] == "Trust me.").collect();
    assert!(trusted.len() == 1 && trusted[0]["name"] == "steady", "{trusted:#?}");
    let called = Agent::plain(api).done("deploy", json!({}));
    assert_eq!(called["output"], "the real one", "{called:#}");
    api.define(&calling("echoes", "echo", json!({"x": 1})));
    assert_eq!(api.finished("echoes", &json!({}))["tasks"]["call"]["output"], json!({"x": 1}));
    api.define(&calling("deploys", "deploy", json!({})));
    let run = api.finished("deploys", &json!({}));
    assert_eq!(run["tasks"]["call"]["error"]["code"], "tool_held", "{run:#}");
}

#[test]
fn a_tool_that_an_agent_exposes_is_held_until_a_person_accepts_it() {
    let place = Installation::new();
    let server = place.serve();
    let key = json!({"name": "builder", "agent": true});
    let key = server.api.post("/api/v1/keys", &key).is(201).data()["key"].as_str().unwrap().to_string();
    let agent = server.with_key(&key);
    let ann = Agent::plain(&server.api.new_user("ann", &["workflow.run", "workflow.read", "workflow.define"]));
    let offered = |ann: &Agent| ann.tools().contains(&"pay".to_string());

    let said = Agent::plain(&agent).call("workflow_define", json!({"definition": exposed("pay", "one")}));
    assert!(said.to_string().contains("not offered as a tool until then"), "{said:#}");
    assert!(!offered(&ann));
    let refused = ann.send("tools/call", json!({"name": "pay", "arguments": {}})).json();
    assert!(refused["error"]["message"].as_str().unwrap().contains("Unknown tool"), "{refused:#}");
    let tools = server.api.get("/api/v1/tools").is(200).data();
    assert_eq!((&tools[0]["name"], &tools[0]["standing"]), (&json!("pay"), &json!("unreviewed")), "{tools:#}");
    let digest = json!({"digest": agent.get("/api/v1/reviews/pay").is(200).data()["digest"]});
    agent.post("/api/v1/reviews/pay/accept", &digest).refused(403, "refused");
    assert!(!offered(&ann));

    place.stepwell(&["review", "accept", "pay"]);
    assert!(place.stepwell(&["tool", "list"]).contains("pay  accepted  pay (1)"));
    assert!(offered(&ann));
    assert_eq!(ann.done("pay", json!({}))["output"], "one");

    // A change by the agent is a proposal: the accepted version stays the tool.
    let redefine = |api: &Api, says: &str| api.call("PUT", "/api/v1/workflows/pay", &exposed("pay", says));
    let proposed = redefine(&agent, "two").is(202).json();
    assert_eq!(proposed["review"]["state"], "proposed", "{proposed:#}");
    assert_eq!(server.api.get("/api/v1/reviews").is(200).data().as_array().unwrap().len(), 1);
    assert_eq!(ann.done("pay", json!({}))["output"], "one");
    assert!(place.stepwell(&["review", "list"]).contains("proposed  pay (proposal)  by agent key builder of admin"));
    let shown = place.stepwell(&["review", "show", "pay"]);
    assert!(shown.contains("compared with version 1"), "{shown}");
    let review = ann.api.get("/api/v1/reviews/pay").is(200).data();
    ann.api.post("/api/v1/reviews/pay/accept", &digest).refused(403, "refused");
    ann.api.post("/api/v1/reviews/pay/accept", &json!({"digest": review["digest"]})).is(200);
    assert_eq!(ann.done("pay", json!({}))["output"], "two");
    // What a person defines is accepted with it.
    redefine(&ann.api, "three").is(200);
    assert_eq!(ann.done("pay", json!({}))["output"], "three");
    // A refusal reaches the agent.
    redefine(&agent, "four").is(202);
    place.stepwell(&["review", "refuse", "pay", "--comment", "three is fine"]);
    let told = Agent::plain(&agent).done("workflow_reviews", json!({}));
    assert_eq!(
        (&told["reviews"][0]["state"], &told["reviews"][0]["comment"]),
        (&json!("refused"), &json!("three is fine"))
    );
    let trail = server.api.get("/api/v1/audit?action=review.accept").is(200).data();
    assert_eq!(trail.as_array().unwrap().len(), 2, "{trail:#}");

    // A held tool of an agent takes no name from a server.
    agent.define(&exposed("steady", "not me"));
    server.stop();
    let servers = hostile(json!({"LIST": "pose"}), true);
    let place = place.config(&json!({"mcpServers": servers}).to_string());
    let server = again(&place, &servers);
    assert_eq!(standing(&server.api, "bad", "steady"), "accepted");
    let digest = json!({"digest": server.api.get("/api/v1/reviews/steady").is(200).data()["digest"]});
    server.api.post("/api/v1/reviews/steady/accept", &digest).refused(422, "invalid-definition");
    server.with_key(&key).post("/api/v1/mcp-servers/bad/accept", &json!({})).refused(403, "refused");
}

#[test]
fn agents_do_not_get_hidden_characters_and_people_see_them() {
    let (place, server) = serve(&hostile(json!({}), false));
    let tools = Agent::plain(&server.api).ask("tools/list", json!({}))["tools"].as_array().unwrap().clone();
    let tool = tools.iter().find(|tool| tool["name"] == "bad__bidi").unwrap();
    assert_eq!(tool["description"], "safe  tool", "{tool:#}");
    let listed = place.stepwell(&["mcp-server", "list", "bad"]);
    assert!(listed.contains("safe ⟨U+202E⟩⟨U+E0041⟩ tool"), "{listed}");
}

/// Whether a `sleep` of this length is running.
#[cfg(target_os = "linux")]
fn sleeping(mark: &str) -> bool {
    let commands = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path().join("cmdline"));
    commands.filter_map(|path| std::fs::read(path).ok()).any(|line| line == format!("sleep\0{mark}\0").as_bytes())
}

#[cfg(target_os = "linux")]
#[test]
fn everything_that_a_server_started_ends_with_it_and_with_us() {
    use crate::harness::eventually;
    let mark = "86397.5";
    let (_place, server) = serve(&hostile(json!({"SLEEP": mark}), false));
    // Both have left the process group; the second loses its parent at once.
    for tool in ["escape", "orphan"] {
        let workflow = json!({"name": tool, "tasks": {"call": {"tool": format!("bad__{tool}"), "retries": 0}}});
        server.api.define(&workflow);
    }
    assert_eq!(server.api.finished("escape", &json!({}))["status"], "completed");
    assert!(sleeping(mark));
    let run = server.api.finished("orphan", &json!({}));
    assert_eq!(run["tasks"]["call"]["error"]["code"], "connection_lost", "{run:#}");
    eventually("both to end", || (!sleeping(mark)).then_some(()));
    crate::connected(&server.api, "bad");
    assert_eq!(server.api.finished("escape", &json!({}))["status"], "completed");
    assert!(sleeping(mark));
    server.kill();
    eventually("it to end with us", || (!sleeping(mark)).then_some(()));
}
