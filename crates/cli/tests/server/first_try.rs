//! What an agent needs to get a definition right the first time, and answers that it can use.

use crate::agent::Agent;
use crate::harness::{Installation, Server};
use serde_json::{Value, json};

fn agent(installation: &Installation, server: &Server) -> Agent {
    Agent::plain(&server.with_key(&installation.agent_key()))
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

#[test]
fn an_agent_reads_the_help_and_the_catalogue_of_tools() {
    let installation = Installation::new();
    let server = installation.serve();
    let agent = agent(&installation, &server);
    for topic in ["dialects", "steps", "expressions", "gates", "examples"] {
        let help = agent.call("workflow_help", json!({"topic": topic}));
        assert!(text(&help).starts_with("# ") && help["isError"] == false, "{topic}: {help:#}");
    }
    assert!(text(&agent.call("workflow_help", json!({}))).starts_with("# Dialects"));
    assert!(agent.refused("workflow_help", json!({"topic": "prices"})).contains("topic"));
    let listed = agent.done("tools_list", json!({"query": "echo"}));
    let echo = &listed["tools"][0];
    assert_eq!((&echo["name"], &echo["read_only"], &echo["allowed"]), (&json!("echo"), &json!(true), &json!(true)));
    assert_eq!(echo["input_schema"]["type"], "object", "{echo:#}");
    // A page at a time, and the same over REST.
    let first = agent.done("tools_list", json!({"limit": 5}));
    let rest = agent.done("tools_list", json!({"cursor": first["next"]}));
    let names = |list: &Value| list.as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect::<Vec<_>>();
    let all = server.api.get("/api/v1/tools/catalogue").is(200).data();
    assert_eq!([names(&first["tools"]), names(&rest["tools"])].concat(), names(&all));
    let printed = installation.stepwell(&["tool", "list", "--steps"]);
    assert!(printed.lines().any(|line| line.starts_with("echo  [reads]  ")), "{printed}");
    // Who may not call a tool sees that.
    let other = Agent::plain(&server.api.new_user("drafter", &["workflow.define", "tool:log"]));
    let tools = other.done("tools_list", json!({}))["tools"].clone();
    let may =
        |name: &str| tools.as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap()["allowed"].clone();
    assert_eq!((may("log"), may("http_request")), (json!(true), json!(false)));
}

#[test]
fn a_guess_comes_back_with_a_correction_that_can_be_applied() {
    let installation = Installation::new();
    let server = installation.serve();
    let agent = agent(&installation, &server);
    let guess = json!({"name": "guess", "steps": [
        {"id": "say", "type": "tool", "tool": "echo", "arguments": {"value": "hi"}, "retry": 3},
        {"id": "ask", "type": "approval", "prompt": "Go on?"}]});
    let refused = agent.call("workflow_define", json!({"definition": guess}));
    assert_eq!(refused["isError"], true, "{refused:#}");
    assert!(text(&refused).contains("\"needs\":[\"say\"]"), "{}", text(&refused));
    let fix = refused["structuredContent"]["errors"][0]["fix"].clone();
    assert_eq!(fix["path"], "");
    let defined = agent.done("workflow_define", json!({"definition": fix["value"]}));
    assert_eq!((&defined["name"], &defined["valid"]), (&json!("guess"), &json!(true)));
}

#[test]
fn what_a_definition_uses_and_is_not_here_is_said_when_it_is_defined() {
    let installation = Installation::new();
    let server = installation.serve();
    let agent = agent(&installation, &server);
    let definition = json!({"name": "odd", "tasks": {
        "a": {"tool": "ecko"},
        "b": {"tool": "echo", "args": {"vaule": 1}},
        "c": {"workflow": "nothing"},
        "d": {"url": "https://x.test", "headers": {"authorization": "{{secrets.NOPE}}"}},
        "e": {"approval": {"approvers": ["nobody-here", "admin"]}},
        "f": {"query": {"connection": "crm", "sql": "select 1"}},
        "g": {"tool": "hash_sha256", "args": {"text": "{{input.text}}"}}}});
    for check_only in [true, false] {
        let result = agent.call("workflow_define", json!({"definition": definition, "check_only": check_only}));
        let said = text(&result).to_string();
        for part in ["`ecko`", "no workflow \"nothing\"", "no secret \"NOPE\"", "\"nobody-here\"", "crm"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(!said.contains("\"admin\""), "{said}");
        let warnings = result["structuredContent"]["warnings"].as_array().unwrap();
        assert!(warnings.iter().all(|warning| warning["path"] != "g"), "{warnings:#?}");
    }
}

#[test]
fn an_input_that_came_as_text_is_read_or_refused() {
    let installation = Installation::new();
    let server = installation.serve();
    let agent = agent(&installation, &server);
    let echo = json!({"say": {"tool": "echo", "args": {"value": "{{input}}"}}});
    let define = |name: &str, schema: Value| {
        server
            .api
            .define(&json!({"name": name, "input_schema": schema, "tasks": echo, "output": "{{tasks.say.body}}"}));
    };
    define("typed", json!({"type": "object", "properties": {"n": {"type": "integer"}}}));
    define("texts", json!({"type": "string"}));
    define("any", json!(true));
    let start = |name: &str| json!({"workflow": name, "input": "{\"n\": 1}", "wait_seconds": 20});
    assert!(agent.done("workflow_start", start("typed"))["output"].to_string().contains("\"n\":1"));
    assert!(agent.done("workflow_start", start("texts"))["output"].to_string().contains("\\\"n\\\""));
    let said = agent.refused("workflow_start", start("any"));
    assert!(said.contains("pass the object itself"), "{said}");
    // The values of a text are counted like those of a body, and not only its bytes.
    let many = json!(format!("{{\"n\": [{}0]}}", "0,".repeat(1_000_000)));
    let said = agent.refused("workflow_start", json!({"workflow": "typed", "input": many}));
    assert!(said.contains("values: send less"), "{said}");
    let said = agent.refused("workflow_start", json!({"workflow": "texts", "input": "", "labels": many}));
    assert!(said.contains("values: send less"), "{said}");
}

#[test]
fn large_results_are_cut_and_can_be_read_in_pages() {
    let installation = Installation::new();
    let server = installation.serve();
    let agent = agent(&installation, &server);
    server.api.define(&json!({"name": "large", "output": "{{tasks.say.body}}",
        "tasks": {"say": {"tool": "echo", "args": {"value": "{{input.word}}"}}}}));
    let word = "äbc".repeat(20_000);
    let started =
        agent.call("workflow_start", json!({"workflow": "large", "input": {"word": word}, "wait_seconds": 20}));
    let run = started["structuredContent"]["run_id"].as_str().unwrap().to_string();
    let status = agent.call("workflow_status", json!({"run_id": run}));
    for result in [started, status] {
        let structured = result["structuredContent"].to_string();
        println!(
            "an answer about {} bytes: {} of text, {} structured",
            word.len(),
            text(&result).len(),
            structured.len()
        );
        assert!(text(&result).len() <= 8_000 && structured.len() <= 16_000);
        assert!(text(&result).contains("step_result"), "{}", text(&result));
        let link = &result["content"][1];
        assert_eq!((&link["type"], &link["uri"]), (&json!("resource_link"), &json!(format!("stepwell://runs/{run}"))));
    }
    let more = agent.done("workflow_status", json!({"run_id": run, "max_bytes": 200_000}));
    assert!(more.to_string().len() > 80_000);
    let (mut whole, mut offset) = (String::new(), json!(0));
    while offset != Value::Null {
        let page = agent
            .done("step_result", json!({"run_id": run, "step_name": "say", "offset": offset, "max_bytes": 50_000}));
        whole += page["text"].as_str().unwrap();
        offset = page["next"].clone();
    }
    assert!(whole.contains(&word));
    assert!(agent.refused("step_result", json!({"run_id": run, "step_name": "none"})).contains("no step"));
}

#[test]
fn at_a_gate_the_answer_says_whom_to_tell_and_what_silence_means() {
    let installation = Installation::new();
    let server = installation.serve();
    let agent = agent(&installation, &server);
    server.api.define(&json!({"name": "gated", "tasks": {
        "ask": {"approval": {"message": "Pay?", "timeout": "1h"}}, "pay": {"needs": ["ask"], "tool": "log", "args": {"message": "x"}}}}));
    let run = agent.done("workflow_start", json!({"workflow": "gated", "wait_seconds": 0}))["run_id"].clone();
    let waited = agent.call("workflow_wait", json!({"run_id": run}));
    let run = run.as_str().unwrap();
    let command = format!("stepwell approve {run} ask");
    for part in [&command, &format!("{}/approvals", server.url), &"counts as denied".to_string()] {
        assert!(text(&waited).contains(part), "{part}: {}", text(&waited));
    }
    let gate = &waited["structuredContent"]["approvals"][0];
    assert_eq!((&gate["command"], &gate["mine"]), (&json!(command), &json!(false)));
    server.api.post(&format!("/api/v1/runs/{run}/steps/ask/approve"), &json!({"comment": "go ahead"})).is(200);
    let done = agent.done("workflow_wait", json!({"run_id": run}));
    assert_eq!(done["status"], "completed", "{done:#}");
    let log = agent.call("workflow_events", json!({"run_id": run}));
    assert!(text(&log).contains("ask: ended as success by admin: go ahead"), "{}", text(&log));
    assert!(text(&log).contains("the run was created by"), "{}", text(&log));
}

#[test]
fn an_agent_retries_reruns_delivers_and_compares() {
    let installation = Installation::new();
    let server = installation.serve();
    let agent = agent(&installation, &server);
    server.api.define(&json!({"name": "calls", "tasks": {"call": {"wait_for_webhook": {"timeout": "1h"}}},
        "output": "{{tasks.call.body}}"}));
    let run = agent.done("workflow_start", json!({"workflow": "calls", "wait_seconds": 0}))["run_id"].clone();
    server.api.step(run.as_str().unwrap(), "call", "waiting");
    agent.done("workflow_deliver", json!({"run_id": run, "step_name": "call", "body": {"paid": true}}));
    assert_eq!(agent.done("workflow_wait", json!({"run_id": run}))["output"], json!({"paid": true}));
    let fails = |message: &str| {
        let step = json!({"tool": "fail", "args": {"message": message}, "retries": 0});
        json!({"name": "fails", "tasks": {"a": step}})
    };
    server.api.define(&fails("one"));
    let failed =
        agent.call("workflow_start", json!({"workflow": "fails", "wait_seconds": 20}))["structuredContent"].clone();
    assert_eq!(failed["status"], "failed", "{failed:#}");
    let retried = agent.done("workflow_retry", json!({"run_id": failed["run_id"], "wait_seconds": 20}));
    assert_eq!((&retried["run_id"], &retried["status"]), (&failed["run_id"], &json!("failed")));
    let again =
        agent.call("workflow_rerun", json!({"run_id": failed["run_id"], "wait_seconds": 20}))["structuredContent"]
            .clone();
    assert!(again["run_id"] != failed["run_id"] && again["status"] == "failed", "{again:#}");
    server.api.call("PUT", "/api/v1/workflows/fails", &fails("two")).is(200);
    let diff = agent.done("workflow_diff", json!({"workflow": "fails"}));
    let message = |side: &str| diff["steps"]["a"][side]["args"]["message"].clone();
    assert_eq!((message("from"), message("to")), (json!("one"), json!("two")), "{diff:#}");
    let same = agent.done("workflow_diff", json!({"workflow": "fails", "definition": fails("two")}));
    assert_eq!(same["changed"], false, "{same:#}");
}

#[test]
fn a_dry_run_makes_up_what_is_not_given_and_calls_nothing() {
    let installation = Installation::new();
    let server = installation.serve();
    let agent = agent(&installation, &server);
    let definition = json!({"name": "dry", "tasks": {
        "pay": {"url": "https://pay.example/charges", "retries": 0},
        "ok": {"needs": ["pay"], "approval": {"message": "Ship {{tasks.pay.body.items[1].id}}?", "timeout": "2d"}},
        "each": {"needs": ["ok"], "for_each": "{{tasks.pay.body.items}}",
            "tasks": {"ship": {"tool": "log", "args": {"message": "{{item.id}}"}}}}}});
    let played = agent.call("workflow_simulate", json!({"definition": definition}));
    assert!(text(&played).contains("ends as completed") && text(&played).contains("Made-up results"), "{played:#}");
    let played = &played["structuredContent"];
    assert_eq!(played["path"], json!(["pay", "ok", "each", "each[0].ship", "each[1].ship"]), "{played:#}");
    assert_eq!(played["made_up"]["pay"]["items"][0]["id"], "made up: item.id", "{played:#}");
    let refused = json!({"definition": definition, "calls": {"pay": {"status": 402}}});
    let failed = agent.done("workflow_simulate", refused);
    assert_eq!((&failed["status"], &failed["steps"]["ok"]), (&json!("failed"), &json!("skipped")), "{failed:#}");
    let denied = json!({"definition": definition, "answers": {"ok": "deny"}});
    assert_eq!(agent.done("workflow_simulate", denied)["status"], "cancelled");
    let late = json!({"definition": definition, "answers": {"ok": "timeout"}});
    assert_eq!(agent.done("workflow_simulate", late)["took_ms"], 172_800_000);
    let why = agent.refused("workflow_simulate", json!({"definition": definition, "calls": {"pya": {"body": 1}}}));
    assert!(why.contains("calls.pya") && why.contains("did you mean \"pay\"?"), "{why}");
    let why = agent.refused("workflow_simulate", json!({"definition": definition, "calls": {"pay": {"bdy": 1}}}));
    assert!(why.contains("calls.pay") && why.contains("bdy"), "{why}");
    assert!(agent.refused("workflow_simulate", json!({})).contains("workflow or definition"));
    assert_eq!(server.api.data("/runs"), json!([]), "nothing ran");
}

#[test]
fn an_agent_schedules_what_a_person_accepted() {
    let installation = Installation::new();
    let server = installation.serve();
    let agent = agent(&installation, &server);
    server.api.define(&json!({"name": "nightly", "tasks": {"nap": {"sleep": 0}}}));
    let added = agent.call("workflow_schedule", json!({"workflow": "nightly", "cron": "0 3 * * *"}));
    assert!(text(&added).contains("It fires next at"), "{}", text(&added));
    let schedules = agent.done("workflow_schedule", json!({"workflow": "nightly"}))["schedules"].clone();
    let id = schedules[0]["id"].clone();
    assert_eq!(schedules, server.api.data("/workflows/nightly/schedule"));
    assert!(agent.refused("workflow_schedule", json!({"workflow": "nightly", "cron": "never"})).contains("cron"));
    server.api.define(&json!({"name": "other", "tasks": {"nap": {"sleep": 0}}}));
    let elsewhere = json!({"workflow": "other", "remove": id});
    assert!(agent.refused("workflow_schedule", elsewhere).contains("has no schedule"));
    let left = agent.done("workflow_schedule", json!({"workflow": "nightly", "remove": id}))["schedules"].clone();
    assert_eq!(left, json!([]));
    agent.done("workflow_define", json!({"definition": {"name": "mine", "tasks": {"nap": {"sleep": 0}}}}));
    let added = agent.call("workflow_schedule", json!({"workflow": "mine", "cron": "0 3 * * *"}));
    assert!(text(&added).contains("It does not fire"), "{}", text(&added));
}

#[test]
fn approvers_see_which_agent_asks_and_may_change_its_call_over_mcp() {
    let installation = Installation::new();
    let server = installation.serve();
    let agent = agent(&installation, &server);
    let policy = json!({"calls": "tool:log", "effect": "require_approval", "allow_changes": true});
    server.api.call("PUT", "/api/v1/policies/logs", &policy).is(200);
    assert_eq!(server.api.data("/policies/logs")["allow_changes"], true);
    server.api.define(&json!({"name": "tell", "tasks": {"log": {"tool": "log", "args": {"message": "900"}}}}));
    let started = agent.done("workflow_start", json!({"workflow": "tell", "wait_seconds": 20}));
    let run = started["run_id"].as_str().unwrap();
    let asked_by = "agent key agent of admin, client bot 1.0";
    let approval = server.api.data(&format!("/runs/{run}/steps/log/approval"));
    assert_eq!(approval["asked_by"], asked_by, "{approval:#}");
    assert_eq!(server.api.run(run)["started_by"]["client"], "bot 1.0");
    assert!(installation.stepwell(&["approvals"]).contains(&format!("asked by {asked_by}")));
    let approver = Agent::plain(&server.api.new_user("desk", &["workflow.read", "workflow.approve"]));
    let shown = approver.call("workflow_status", json!({"run_id": run}));
    assert!(text(&shown).contains(asked_by), "{}", text(&shown));
    let answer =
        |input: Value| json!({"run_id": run, "step_name": "log", "digest": approval["digest"], "input": input});
    let why = approver.refused("workflow_approve", answer(json!({"tool": "log", "args": {"message": 9}})));
    assert!(why.contains("`args.message` must be text"), "{why}");
    approver.done("workflow_approve", answer(json!({"tool": "log", "args": {"message": "90"}})));
    let told = agent.call("workflow_wait", json!({"run_id": run}));
    assert!(text(&told).contains("changed"), "the agent is told: {}", text(&told));
    let step = server.api.end(run)["tasks"]["log"].clone();
    assert_eq!((&step["input"]["args"]["message"], &step["changed"]["by"]), (&json!("90"), &json!("desk")));
}
