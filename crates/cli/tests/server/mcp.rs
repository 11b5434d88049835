//! MCP over HTTP: what agents see and may do, and runs as tasks. `scripts/mcp.sh` tries third-party clients.

use crate::agent::Agent;
use crate::harness::{Api, Installation, Server};
use serde_json::{Value, json};

fn approver(server: &Server, user: &str) -> Api {
    server.api.new_user(user, &["workflow.run", "workflow.read", "workflow.approve", "tool:*"])
}

#[test]
fn a_key_sees_the_tools_that_it_may_call_and_no_others() {
    let installation = Installation::new();
    let server = installation.serve();
    let sees = |grants: &[&str], name: &str| Agent::plain(&server.api.new_user(name, grants)).tools().join(" ");
    assert_eq!(sees(&["workflow.define"], "a"), "workflow_help tools_list workflow_define");
    assert_eq!(
        sees(&["workflow.read"], "b"),
        "workflow_diff workflow_simulate workflow_list_definitions workflow_status workflow_wait step_result \
         workflow_list_runs workflow_events workflow_reviews"
    );
    assert_eq!(
        sees(&["workflow.run"], "c"),
        "workflow_start workflow_deliver workflow_cancel workflow_retry workflow_rerun workflow_schedule"
    );
    assert_eq!(sees(&["workflow.approve"], "d"), "workflow_approve workflow_deny");
    assert_eq!(sees(&[], "e"), "");
    // An administrator answers gates in a browser, or with a key that names the right.
    for key in [server.api.clone(), server.with_key(&installation.agent_key())] {
        let agent = Agent::plain(&key);
        assert_eq!(agent.tools().len(), 18, "{:?}", agent.tools());
        assert!(!agent.tools().iter().any(|tool| tool.contains("approve") || tool.contains("deny")));
    }
    // One that is not shown cannot be called either.
    let reader = Agent::plain(&server.api.new_user("f", &["workflow.read"]));
    assert!(reader.refused("workflow_start", json!({"workflow": "x"})).contains("workflow.run"));
    let unknown = reader.send("tools/call", json!({"name": "rm_rf", "arguments": {}})).json();
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
}

#[test]
fn an_agent_defines_in_any_dialect_starts_and_follows() {
    let installation = Installation::new();
    let server = installation.serve();
    let agent = Agent::plain(&server.with_key(&installation.agent_key()));
    let step = json!({"tool": "echo", "args": {"value": "{{input.word}}"}});
    let tasks = json!({"name": "tasks", "tasks": {"say": step}, "output": "{{tasks.say.body}}"});
    let flow = "name: flow\nflow:\n  start: {tool: echo, args: {value: \"{{input.word}}\"}, done: true}\n";
    let graph = json!({"name": "graph", "nodes": [
        {"id": "start", "type": "start"},
        {"id": "say", "type": "tool", "data": {"tool": "echo", "args": {"value": "{{input.word}}"},
            "outputVariable": "said"}},
        {"id": "end", "type": "end", "data": {"outputParameters": [{"name": "said", "sourceVariable": "said"}]}}],
        "edges": [{"source": "start", "target": "say"}, {"source": "say", "target": "end"}]});
    for (name, definition) in [("tasks", tasks), ("flow", json!(flow)), ("graph", graph)] {
        let checked = agent.done("workflow_define", json!({"definition": definition, "check_only": true}));
        assert_eq!((&checked["valid"], &checked["name"]), (&json!(true), &json!(name)));
        let defined = agent.done("workflow_define", json!({"definition": definition}));
        assert_eq!((&defined["name"], &defined["version"]), (&json!(name), &json!(1)));
        let start = json!({"workflow": name, "input": {"word": "hi"}, "wait_seconds": 20});
        let run = agent.done("workflow_start", start);
        assert_eq!((&run["status"], &run["finished"]), (&json!("completed"), &json!(true)), "{run:#}");
        assert!(run["output"].to_string().contains("hi"), "{run:#}");
        let status = agent.done("workflow_status", json!({"run_id": run["run_id"]}));
        assert!(!status["tasks"].as_object().unwrap().is_empty(), "{status:#}");
        let events = agent.done("workflow_events", json!({"run_id": run["run_id"]}));
        assert_eq!(events["events"][0]["type"], "created", "{events:#}");
    }
    let listed = agent.done("workflow_list_definitions", json!({"limit": 2}));
    assert_eq!((listed["workflows"].as_array().unwrap().len(), &listed["next"]), (2, &json!("graph")));
    let listed = agent.done("workflow_list_definitions", json!({"cursor": "graph"}));
    assert_eq!((&listed["workflows"][0]["name"], &listed["next"]), (&json!("tasks"), &Value::Null));
    let runs = agent.done("workflow_list_runs", json!({"status": ["completed"], "workflow": "flow"}));
    assert_eq!(runs["runs"].as_array().unwrap().len(), 1);
    // The same key starts one run only.
    let start =
        || agent.done("workflow_start", json!({"workflow": "flow", "idempotency_key": "k", "wait_seconds": 20}));
    assert_eq!(start()["run_id"], start()["run_id"]);
}

#[test]
fn a_run_is_started_later_over_mcp() {
    let installation = Installation::new();
    let server = installation.serve();
    server.api.define(&json!({"name": "later", "tasks": {"say": {"tool": "echo"}}}));
    let agent = Agent::plain(&server.with_key(&installation.agent_key()));
    let late = json!({"workflow": "later", "at": "2999-01-01T00:00:00+01:00"});
    assert!(agent.refused("workflow_start", late).contains("at most 5 years ahead"));
    let run = agent.done("workflow_start", json!({"workflow": "later", "delay": "30d"}));
    assert_eq!((&run["status"], &run["finished"]), (&json!("scheduled"), &json!(false)), "{run:#}");
    let listed = agent.done("workflow_list_runs", json!({"status": ["scheduled"]}));
    assert_eq!(listed["runs"][0]["run_id"], run["run_id"]);
    let cancelled = agent.done("workflow_cancel", json!({"run_id": run["run_id"]}));
    assert_eq!(cancelled["status"], "cancelled", "{cancelled:#}");
    // It is waited for if that is asked.
    let run = agent.done("workflow_start", json!({"workflow": "later", "delay": "300ms", "wait_seconds": 20}));
    assert_eq!(run["status"], "completed", "{run:#}");
}

#[test]
fn check_only_refuses_what_a_definition_would_be_refused_for() {
    let installation = Installation::new().config("plans: {small: {tasks_per_workflow: 2}}\ndefault_plan: small\n");
    let server = installation.serve();
    let agent = Agent::plain(&server.with_key(&installation.agent_key()));
    let code = json!({"name": "code", "tasks": {"add": {"javascript": "return (1 +"}}});
    let nap = json!({"sleep": 0});
    let wide = json!({"name": "wide", "tasks": {"a": nap, "b": nap, "c": nap}});
    for (definition, refusal) in [(code, "bad-code"), (wide, "plan-limit")] {
        for check_only in [true, false] {
            let text = agent.refused("workflow_define", json!({"definition": definition, "check_only": check_only}));
            assert!(text.contains(refusal), "check_only {check_only}: {text}");
        }
    }
    assert_eq!(agent.done("workflow_list_definitions", json!({}))["workflows"], json!([]));
}

#[test]
fn what_is_wrong_with_a_call_is_listed_with_its_place() {
    let installation = Installation::new();
    let server = installation.serve();
    let agent = Agent::plain(&server.with_key(&installation.agent_key()));
    let definition = "name: x\ntasks:\n  a: {sleep: 1s, needs: [b]}\n  c: {sleeep: 1s}\n";
    let said = agent.refused("workflow_define", json!({"definition": definition}));
    assert!(said.contains("2 faults") && said.contains("tasks.a") && said.contains("line 3"), "{said}");
    assert!(said.contains("sleeep") && said.contains("line 4"), "{said}");
    let said = agent.refused("workflow_define", json!({"definition": 3, "chek_only": true}));
    assert!(said.contains("definition") && said.contains("chek_only"), "{said}");
    let said = agent.refused("workflow_start", json!({"workflow": "none"}));
    assert!(said.contains("there is no workflow \"none\""), "{said}");
    server.api.define(&json!({"name": "typed", "tasks": {"nap": {"sleep": 0}},
        "input_schema": {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}}));
    let said = agent.refused("workflow_start", json!({"workflow": "typed", "input": {"n": "x"}}));
    assert!(said.contains("input/n"), "{said}");
    let said = agent.refused("workflow_status", json!({"run_id": "run_none"}));
    assert!(said.contains("there is no run"), "{said}");
    let said = agent.refused("workflow_status", json!({"run_id": "run_\u{0}"}));
    assert!(said.contains("NUL"), "{said}");
    let mut deep = json!(1);
    for _ in 0..110 {
        deep = json!([deep]);
    }
    let said = agent.refused("workflow_start", json!({"workflow": "typed", "input": deep}));
    assert!(said.contains("body-too-deep"), "{said}");
}

#[test]
fn a_workflow_that_asks_for_it_is_a_tool_of_its_own() {
    let installation = Installation::new();
    let server = installation.serve();
    let agent = Agent::plain(&server.with_key(&installation.agent_key()));
    let schema = json!({"type": "object", "required": ["word"], "properties": {"word": {"type": "string"}}});
    server.api.define(&json!({"name": "Say it", "description": "Says a word", "expose_as_tool": true,
        "input_schema": schema, "tasks": {"say": {"tool": "echo", "args": {"value": "{{input.word}}"}}},
        "output": "{{tasks.say.body}}"}));
    server.api.define(&json!({"name": "hidden", "tasks": {"nap": {"sleep": 0}}}));
    server.api.define(&json!({"name": "number", "expose_as_tool": true, "input_schema": {"type": "integer"},
        "tasks": {"say": {"tool": "echo", "args": {"value": "{{input}}"}}}, "output": "{{tasks.say.body}}"}));
    let tools = agent.ask("tools/list", json!({}))["tools"].as_array().unwrap().clone();
    let tool = tools.iter().find(|tool| tool["name"] == "Say_it").unwrap();
    assert_eq!((&tool["description"], &tool["inputSchema"]), (&json!("Says a word"), &schema));
    assert!(!agent.tools().contains(&"hidden".to_string()));
    assert!(agent.done("Say_it", json!({"word": "hi"}))["output"].to_string().contains("hi"));
    assert!(agent.refused("Say_it", json!({})).contains("word"));
    assert!(agent.done("number", json!({"input": 7}))["output"].to_string().contains('7'));
    server.api.call("PATCH", "/api/v1/workflows/Say%20it", &json!({"enabled": false})).is(200);
    assert!(!agent.tools().contains(&"Say_it".to_string()));
    assert_eq!(agent.send("tools/call", json!({"name": "Say_it", "arguments": {}})).json()["error"]["code"], -32602);
    // Callers who may not start runs do not see it.
    server.api.call("PATCH", "/api/v1/workflows/Say%20it", &json!({"enabled": true})).is(200);
    let reader = Agent::plain(&server.api.new_user("reader", &["workflow.read"]));
    assert!(!reader.tools().contains(&"Say_it".to_string()));
    assert_eq!(reader.send("tools/call", json!({"name": "Say_it", "arguments": {}})).json()["error"]["code"], -32602);
}

const GATE: &str = "name: gate\ntasks:\n  ask: {approval: {message: 'send {{input.n}}?', form: {type: object, \
                    required: [limit], properties: {limit: {type: integer, maximum: 10}}}}}\n  \
                    go: {needs: [ask], tool: echo, args: {value: '{{tasks.ask.body.data.limit}}'}}\n\
                    output: '{{tasks.go.body}}'\n";

#[test]
fn a_run_is_a_task_and_its_gate_a_question_to_those_who_may_answer() {
    let installation = Installation::new();
    let server = installation.serve();
    let api = approver(&server, "ann");
    server.api.send("POST", "/api/v1/workflows", &[], Some(GATE.into())).is(201);
    let agent = Agent::able(&api);
    let begun = agent.call("workflow_start", json!({"workflow": "gate", "input": {"n": 3}}));
    assert_eq!(begun["resultType"], "task", "{begun:#}");
    let id = begun["taskId"].as_str().unwrap();
    assert!(id.starts_with("run_"));
    let task = agent.task(id, "input_required");
    let (key, request) = task["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert!(key.starts_with("ask#1@"), "{key}");
    assert!(request["params"]["message"].as_str().unwrap().contains("send 3?"), "{request:#}");
    assert_eq!(request["params"]["requestedSchema"]["properties"]["limit"]["type"], "integer");
    // A user who may not answer sees a task that works, and cannot answer it by its name.
    let other = Agent::able(&server.with_key(&installation.agent_key()));
    assert_eq!(other.task(id, "working")["inputRequests"], Value::Null);
    let answer = |limit: u32| json!({"action": "accept", "content": {"decision": "approve", "limit": limit}});
    let told = other.send("tasks/update", json!({"taskId": id, "inputResponses": {key.as_str(): answer(1)}})).text();
    assert!(told.contains("this key is not allowed to answer"), "{told}");
    // An answer that the form does not allow is not taken, and the next look says why.
    agent.ask("tasks/update", json!({"taskId": id, "inputResponses": {key.as_str(): answer(11)}}));
    let told = agent.task(id, "input_required")["statusMessage"].as_str().unwrap().to_string();
    assert!(told.contains("was refused") && told.contains("limit") && told.contains("10"), "{told}");
    // Nor is one to another question.
    let stale = format!("ask#1@{}", "0".repeat(64));
    agent.ask("tasks/update", json!({"taskId": id, "inputResponses": {stale: answer(1)}}));
    let told = agent.task(id, "input_required")["statusMessage"].as_str().unwrap().to_string();
    assert!(told.contains("no longer open"), "{told}");
    agent.ask("tasks/update", json!({"taskId": id, "inputResponses": {key.as_str(): answer(7)}}));
    let task = agent.task(id, "completed");
    assert_eq!(
        (&task["result"]["isError"], task["result"]["structuredContent"]["output"].to_string().contains('7')),
        (&json!(false), true),
        "{task:#}"
    );
}

#[test]
fn a_client_that_does_not_say_so_gets_no_task_and_no_question() {
    let installation = Installation::new();
    let server = installation.serve();
    let api = approver(&server, "ann");
    server.api.send("POST", "/api/v1/workflows", &[], Some(GATE.into())).is(201);
    let plain = Agent::plain(&api);
    let run = plain.done("workflow_start", json!({"workflow": "gate", "input": {"n": 1}, "wait_seconds": 20}));
    // A gate ends the wait: nothing happens before somebody has answered.
    assert_eq!((&run["status"], &run["approvals"][0]["mine"]), (&json!("paused"), &json!(true)), "{run:#}");
    assert_eq!(plain.send("tasks/get", json!({"taskId": run["run_id"]})).json()["error"]["code"], -32021);
    let silent = Agent { capabilities: json!({"extensions": {"io.modelcontextprotocol/tasks": {}}}), ..plain };
    let task = silent.task(run["run_id"].as_str().unwrap(), "working");
    assert!(task["statusMessage"].as_str().unwrap().contains("You may answer"), "{task:#}");
}

#[test]
fn a_client_without_tasks_is_asked_in_the_answer_of_its_call() {
    let installation = Installation::new();
    let server = installation.serve();
    let form = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    server.api.define(&json!({"name": "two", "tasks": {"a": {"approval": {"message": "one?", "form": form}},
        "b": {"needs": ["a"], "approval": {"message": "two?"}}}, "output": "{{tasks.a.body.data.n}}"}));
    let asks = Agent { capabilities: json!({"elicitation": {}}), ..Agent::plain(&approver(&server, "ann")) };
    let call = json!({"name": "workflow_start", "arguments": {"workflow": "two", "wait_seconds": 20}});
    let asked = asks.ask("tools/call", call.clone());
    let question = |asked: &Value| asked["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    assert_eq!(asked["resultType"], "input_required", "{asked:#}");
    let again = |asked: &Value, content: Value| {
        let mut call = call.clone();
        call["requestState"] = asked["requestState"].clone();
        call["inputResponses"] = json!({question(asked): {"action": "accept", "content": content}});
        asks.ask("tools/call", call)
    };
    // A refused answer is told, and not asked for again at once.
    let refused = again(&asked, json!({"decision": "approve", "n": "x"}));
    let said = refused["content"][0]["text"].as_str().unwrap();
    assert!(said.starts_with("The answer to \"a\" was refused:"), "{refused:#}");
    let second = again(&asked, json!({"decision": "approve", "n": 7}));
    assert!(question(&second).starts_with("b#1@"), "{second:#}");
    let done = again(&second, json!({"decision": "approve"}));
    assert_eq!((&done["isError"], &done["structuredContent"]["output"]), (&json!(false), &json!(7)), "{done:#}");
    // One who may not answer is not asked, nor does the state of another's call help.
    let other =
        Agent { capabilities: json!({"elicitation": {}}), ..Agent::plain(&server.with_key(&installation.agent_key())) };
    let plain = other.ask("tools/call", call.clone());
    assert!(plain.get("inputRequests").is_none(), "{plain:#}");
    let mut forged = call;
    forged["requestState"] = plain["structuredContent"]["run_id"].clone();
    forged["inputResponses"] = json!({"a#1@x": {"action": "accept", "content": {"decision": "approve", "n": 1}}});
    assert_eq!(other.ask("tools/call", forged)["isError"], true);
}

#[test]
fn gates_are_answered_with_the_right_by_name_and_only_for_what_was_shown() {
    let installation = Installation::new();
    let server = installation.serve();
    server.api.define(&json!({"name": "ask", "tasks": {"ask": {"approval": {"message": "well?"}}}}));
    let agent = Agent::plain(&server.with_key(&installation.agent_key()));
    let run = agent.done("workflow_start", json!({"workflow": "ask"}));
    let named = json!({"run_id": run["run_id"], "step_name": "ask"});
    for key in [server.api.clone(), server.with_key(&installation.agent_key())] {
        for tool in ["workflow_approve", "workflow_deny"] {
            assert!(Agent::plain(&key).refused(tool, named.clone()).contains("workflow.approve"));
        }
    }
    let grants = json!({"name": "by name", "grants": ["workflow.read", "workflow.approve"]});
    let named_key = Agent::plain(&server.with_key(&server.api.new_key(grants)));
    let gate = named_key.done("workflow_status", json!({"run_id": run["run_id"]}))["approvals"][0].clone();
    assert_eq!(gate["mine"], true, "{gate:#}");
    let mut wrong = named.clone();
    wrong["digest"] = "0".repeat(64).into();
    assert!(named_key.refused("workflow_approve", wrong).contains("other-digest"));
    assert!(named_key.refused("workflow_approve", json!({"run_id": run["run_id"]})).contains("step_id"));
    let shown = json!({"step_id": gate["id"], "digest": gate["digest"], "comment": "fine"});
    named_key.done("workflow_approve", shown);
    assert_eq!(server.api.end(run["run_id"].as_str().unwrap())["status"], "completed");
    assert!(named_key.refused("workflow_approve", named).contains("step-finished"));
}

#[test]
fn a_gate_that_cannot_be_shown_in_full_is_not_asked_over_mcp() {
    let installation = Installation::new();
    let server = installation.serve();
    let api = approver(&server, "ann");
    let call = |n: usize, size: usize| {
        (
            format!("c{n}"),
            json!({"needs": ["ask"], "tool": "log",
        "args": {"text": "x".repeat(size)}}),
        )
    };
    let define = |name: &str, calls: Vec<(String, Value)>| {
        let mut tasks = json!({"ask": {"approval": {"message": "well?", "timeout": "1h", "on_timeout": "approve"}}});
        tasks.as_object_mut().unwrap().extend(calls);
        server.api.define(&json!({"name": name, "tasks": tasks}));
    };
    define("short", (0..30).map(|n| call(n, 5)).collect());
    define("long", vec![call(0, 5_000), call(1, 5_000)]);
    let agent = Agent::able(&api);
    let begin = |workflow: &str| {
        agent.call("workflow_start", json!({"workflow": workflow}))["taskId"].as_str().unwrap().to_string()
    };
    let short = agent.task(&begin("short"), "input_required");
    let request = short["inputRequests"].as_object().unwrap().values().next().unwrap();
    let message = request["params"]["message"].as_str().unwrap();
    assert!((0..30).all(|n| message.contains(&format!("- c{n}: tool log "))), "{message}");
    assert!(message.ends_with("it counts as approved."), "{message}");

    let id = begin("long");
    server.api.step(&id, "ask", "waiting");
    let task = agent.task(&id, "working");
    let told = task["statusMessage"].as_str().unwrap();
    assert!(told.contains("too long to be shown in full") && told.contains("stepwell approve"), "{told}");
    let gate = api.get(&format!("/api/v1/runs/{id}/steps/ask/approval")).is(200).data();
    let key = format!("ask#1@{}", gate["digest"].as_str().unwrap());
    let yes = json!({"action": "accept", "content": {"decision": "approve"}});
    agent.ask("tasks/update", json!({"taskId": id, "inputResponses": {key: yes}}));
    let named = json!({"run_id": id, "step_name": "ask", "digest": gate["digest"]});
    assert!(Agent::plain(&api).refused("workflow_approve", named.clone()).contains("not-shown"));
    assert_eq!(server.api.run(&id)["status"], "paused");
    Agent::plain(&api).done("workflow_deny", named);
    assert_eq!(server.api.end(&id)["status"], "cancelled");
}

#[test]
fn a_run_that_failed_is_a_completed_task_with_an_error_and_a_cancelled_one_is_cancelled() {
    let installation = Installation::new();
    let server = installation.serve();
    let agent = Agent::able(&approver(&server, "ann"));
    server.api.define(
        &json!({"name": "bad", "tasks": {"bad": {"tool": "fail", "args": {"message": "no luck"}, "retries": 0}}}),
    );
    server.api.define(&json!({"name": "ask", "tasks": {"ask": {"approval": {"message": "well?"}}}}));
    let begin = |workflow: &str| {
        agent.call("workflow_start", json!({"workflow": workflow}))["taskId"].as_str().unwrap().to_string()
    };
    let task = agent.task(&begin("bad"), "completed");
    assert_eq!(task["result"]["isError"], true, "{task:#}");
    assert!(task["result"]["content"][0]["text"].as_str().unwrap().contains("failed"), "{task:#}");
    let cancelled = begin("ask");
    agent.ask("tasks/cancel", json!({"taskId": cancelled}));
    agent.task(&cancelled, "cancelled");
    // Once more changes nothing.
    agent.ask("tasks/cancel", json!({"taskId": cancelled}));
    let denied = begin("ask");
    let asked = agent.task(&denied, "input_required");
    let key = asked["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    agent.ask("tasks/update", json!({"taskId": denied, "inputResponses": {key: {"action": "decline"}}}));
    let task = agent.task(&denied, "cancelled");
    assert!(task["statusMessage"].as_str().unwrap().contains("denied by ann"), "{task:#}");
}

#[test]
fn what_belongs_to_others_is_not_there() {
    let installation = Installation::new();
    let server = installation.serve();
    server.api.define(&json!({"name": "mine", "expose_as_tool": true, "tasks": {"nap": {"sleep": 0}}}));
    let run = server.api.finished("mine", &json!({}))["id"].as_str().unwrap().to_string();
    let other = Agent::able(&server.api.new_organisation("other"));
    assert!(!other.tools().contains(&"mine".to_string()));
    assert!(other.refused("workflow_status", json!({"run_id": run})).contains("there is no run"));
    assert!(other.refused("workflow_cancel", json!({"run_id": run})).contains("there is no run"));
    assert!(other.refused("workflow_start", json!({"workflow": "mine"})).contains("there is no workflow"));
    for (method, params) in [
        ("tasks/get", json!({"taskId": run})),
        ("tasks/cancel", json!({"taskId": run})),
        ("tasks/update", json!({"taskId": run, "inputResponses": {"x": {"action": "accept"}}})),
        ("resources/read", json!({"uri": format!("stepwell://runs/{run}")})),
        ("resources/read", json!({"uri": "stepwell://workflows/mine"})),
    ] {
        let answer = other.send(method, params).json();
        assert_eq!(answer["error"]["code"], -32602, "{method}: {answer:#}");
    }
    assert_eq!(other.ask("resources/list", json!({}))["resources"], json!([]));
}

#[test]
fn runs_and_workflows_can_be_read_and_the_format_explains_itself() {
    let installation = Installation::new();
    let server = installation.serve();
    let agent = Agent::plain(&server.with_key(&installation.agent_key()));
    server.api.define(&json!({"name": "two words", "tasks": {"nap": {"sleep": 0}}}));
    let run = server.api.finished("two%20words", &json!({}))["id"].as_str().unwrap().to_string();
    let listed = agent.ask("resources/list", json!({}))["resources"].as_array().unwrap().clone();
    let uris: Vec<&str> = listed.iter().map(|resource| resource["uri"].as_str().unwrap()).collect();
    assert_eq!(uris, ["stepwell://workflows/two%20words", &format!("stepwell://runs/{run}")]);
    let read = |uri: &str| {
        let contents = agent.ask("resources/read", json!({"uri": uri}))["contents"][0].clone();
        serde_json::from_str::<Value>(contents["text"].as_str().unwrap()).unwrap()
    };
    assert!(read(uris[0])["source"].as_str().unwrap().contains("two words"));
    assert_eq!(read(uris[1])["status"], "completed");
    assert_eq!(agent.ask("resources/templates/list", json!({}))["resourceTemplates"].as_array().unwrap().len(), 2);
    let prompts = agent.ask("prompts/list", json!({}))["prompts"].as_array().unwrap().clone();
    assert_eq!(prompts[0]["name"], "define_workflow");
    let prompt = agent.ask("prompts/get", json!({"name": "define_workflow", "arguments": {"goal": "greet"}}));
    let text = prompt["messages"][0]["content"]["text"].as_str().unwrap();
    assert!(text.contains("greet") && text.contains("# Approval gates"), "{text}");
    let unknown = agent.send("prompts/get", json!({"name": "other"})).json();
    assert_eq!(unknown["error"]["code"], -32602);
}

#[test]
fn only_those_with_a_key_and_no_pages_of_others_come_in() {
    let installation = Installation::new().config("cors: {origins: ['https://app.example.com']}\n");
    let server = installation.serve();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}});
    let post = |api: &Api, more: &[(&str, &str)]| {
        let mut headers = vec![("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
        headers.extend_from_slice(more);
        api.send("POST", "/mcp", &headers, Some(body.to_string().into()))
    };
    post(&server.without_key(), &[]).refused(401, "unauthorised");
    post(&server.with_key("sw_wrong"), &[]).refused(401, "unauthorised");
    post(&server.api, &[]).is(200);
    post(&server.api, &[("origin", "https://evil.example.com")]).refused(403, "cross-origin");
    post(&server.api, &[("origin", "null")]).refused(403, "cross-origin");
    post(&server.api, &[("origin", "https://app.example.com")]).is(200);
    post(&server.api, &[("origin", &server.url)]).is(200);
    post(&server.api, &[("host", "evil.example.com")]).refused(421, "unknown-host");
    assert_eq!(server.api.send("GET", "/mcp", &[("accept", "text/event-stream")], None).status, 405);
    let broken = server.api.send(
        "POST",
        "/mcp",
        &[("content-type", "application/json"), ("accept", "application/json, text/event-stream")],
        Some(b"{".to_vec()),
    );
    assert!((400..500).contains(&broken.status), "{} {}", broken.status, broken.text());
}
