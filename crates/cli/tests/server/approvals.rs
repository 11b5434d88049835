//! Gates: who is asked, who may answer, and the effect of an answer.

use crate::harness::{Installation, statuses};
use crate::outside::Outside;
use serde_json::json;

#[test]
fn an_open_gate_is_listed_and_an_approval_lets_the_run_go_on() {
    let place = Installation::new();
    let server = place.serve();
    let outside = Outside::start();
    let api = &server.api;
    api.define(&json!({"name": "deploy", "tasks": {
        "ask": {"approval": {"message": "deploy {{trigger.body.what}}?"}},
        "go": {"needs": ["ask"], "url": format!("{}/go", outside.url)},
    }}));
    assert_eq!(api.get("/api/v1/approvals").is(200).data(), json!([]));
    let run = api.trigger("deploy", &json!({"what": "it"}));
    let open = api.step(&run, "ask", "waiting");
    assert_eq!((&open["status"], &open["waiting_for"][0]["for"]), (&json!("paused"), &json!("approval")));
    let listed = api.get("/api/v1/approvals").is(200).data();
    assert_eq!(listed.as_array().unwrap().len(), 1);
    let gate = &listed[0];
    assert_eq!((&gate["run_id"], &gate["step"], &gate["workflow"]), (&json!(run), &json!("ask"), &json!("deploy")));
    assert_eq!(gate["asks"]["message"], "deploy it?");
    assert_eq!((&gate["mine"], &gate["id"]), (&json!(true), &open["tasks"]["ask"]["id"]));
    assert_eq!(outside.count(), 0);
    let path = format!("/api/v1/runs/{run}/steps/ask/approve");
    api.post(&path, &json!({"comment": "fine"})).is(200);
    let run = api.end(&run);
    assert_eq!((run["status"].as_str().unwrap(), statuses(&run).as_str()), ("completed", "ask=success go=success"));
    let output = &run["tasks"]["ask"]["output"];
    assert_eq!(
        (&output["decision"], &output["by"], &output["comment"]),
        (&json!("approved"), &json!("admin"), &json!("fine"))
    );
    assert_eq!(api.get("/api/v1/approvals").is(200).data(), json!([]));
    // An answer counts once.
    assert_eq!(api.post(&path, &json!({})).refused(409, "step-finished")["status_now"], "completed");
}

#[test]
fn a_denial_cancels_a_run_that_has_no_way_for_it() {
    let place = Installation::new();
    let server = place.serve();
    let outside = Outside::start();
    let api = &server.api;
    let url = &outside.url;
    api.define(&json!({"name": "plain", "tasks": {
        "ask": {"approval": {"message": "well?"}},
        "go": {"needs": ["ask"], "url": format!("{url}/go")},
    }}));
    api.define(&json!({"name": "handled", "tasks": {
        "ask": {"approval": {"message": "well?"}},
        "no": {"needs": ["ask"], "if": "tasks.ask.status == 'denied'", "url": format!("{url}/no")},
    }}));
    let run = api.trigger("plain", &json!({}));
    let gate = api.step(&run, "ask", "waiting")["tasks"]["ask"]["id"].as_str().unwrap().to_string();
    api.post(&format!("/api/v1/steps/{gate}/deny"), &json!({"comment": "no"})).is(200);
    let run = api.end(&run);
    assert_eq!((run["status"].as_str().unwrap(), statuses(&run).as_str()), ("cancelled", "ask=denied go=skipped"));
    let run = api.trigger("handled", &json!({}));
    api.step(&run, "ask", "waiting");
    api.post(&format!("/api/v1/runs/{run}/steps/ask/deny"), &json!({})).is(200);
    let run = api.end(&run);
    assert_eq!((run["status"].as_str().unwrap(), statuses(&run).as_str()), ("completed", "ask=denied no=success"));
    assert_eq!(outside.calls("/go").len(), 0);
}

#[test]
fn everything_that_follows_an_answer_or_silence_is_shown_over_the_api_the_link_and_the_command_line() {
    let place = Installation::new();
    let server = place.serve();
    let api = &server.api;
    let far = "x".repeat(5_000);
    api.define(&json!({"name": "pay", "tasks": {
        "ask": {"approval": {"message": "pay?", "approvers": ["admin", "zoe"], "timeout": "1h", "on_timeout": "approve",
            "form": {"type": "object", "properties": {"note": {"type": "string"}}}}},
        "send": {"needs": ["ask"], "tool": "log",
            "args": {"to": "NL01", "far": format!("{far}END"), "note": "{{tasks.ask.body.data.note}}"}},
        "sorry": {"needs": ["ask"], "if": "tasks.ask.status == 'denied'", "tool": "log", "args": {"message": "NL02"}},
    }}));
    let run = api.trigger("pay", &json!({}));
    let open = api.step(&run, "ask", "waiting");
    let gate = api.get(&format!("/api/v1/runs/{run}/steps/ask/approval")).is(200).data();
    let (calls, denied) = (&gate["asks"]["calls"], &gate["asks"]["on_denial"]);
    assert_eq!((&calls[0]["step"], &calls[0]["tool"], &calls[1]), (&json!("send"), &json!("log"), &json!(null)));
    assert_eq!((&calls[0]["input"]["args"]["to"], &calls[0]["unknown"]), (&json!("NL01"), &json!(["/args/note"])));
    assert_eq!((&denied[0]["step"], &denied[0]["input"]["args"]["message"]), (&json!("sorry"), &json!("NL02")));
    assert_eq!(gate["on_timeout"], "approve");
    let warned = |warnings: &serde_json::Value| warnings.to_string().contains("no enabled user \\\"zoe\\\"");
    assert!(warned(&gate["warnings"]) && warned(&open["warnings"]), "{gate:#} {open:#}");

    let link = api.post(&format!("/api/v1/runs/{run}/steps/ask/link"), &json!({})).is(201).data();
    let path = link["url"].as_str().unwrap().strip_prefix(&server.url).unwrap().to_string();
    let page = server.without_key().get(&path).is(200).text();
    let said = place.stepwell(&["deny", &run, "ask"]);
    let page = (page, "not known yet", "it counts as <strong>approved</strong>.");
    for (shown, unknown, silence) in [page, (said, "/args/note", "it counts as approved.")] {
        for part in ["send", "NL01", "xEND", unknown, "sorry", "NL02", "Without an answer by ", silence] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
    }
    assert_eq!(api.end(&run)["tasks"]["sorry"]["status"], "success");
}

#[test]
fn an_agents_key_never_answers_a_gate_unless_it_was_given_that_right_by_name() {
    let place = Installation::new();
    let server = place.serve();
    let api = &server.api;
    api.define(&json!({"name": "gate", "tasks": {"ask": {"approval": {"message": "well?"}}}}));
    api.define(&json!({"name": "named", "tasks": {"ask": {"approval": {"message": "well?", "approvers": ["admin"]}}}}));
    let widest = api.new_key(json!({"name": "agent", "agent": true}));
    for agent in [server.with_key(&place.agent_key()), server.with_key(&widest)] {
        for workflow in ["gate", "named"] {
            let run = agent.trigger(workflow, &json!({}));
            let gate = agent.step(&run, "ask", "waiting")["tasks"]["ask"]["id"].as_str().unwrap().to_string();
            let by_name = format!("/api/v1/runs/{run}/steps/ask");
            for path in [
                format!("{by_name}/approve"),
                format!("{by_name}/deny"),
                format!("/api/v1/steps/{gate}/approve"),
                format!("/api/v1/steps/{gate}/deny"),
                format!("/api/v1/steps/{gate}/ready"),
            ] {
                agent.post(&path, &json!({})).refused(403, "forbidden");
            }
            // Nor does it go around the gate.
            let finish = agent.post(&format!("{by_name}/finish"), &json!({"output": {"decision": "approved"}}));
            assert_eq!(finish.status, 403, "{}", finish.text());
            let deliver = agent.post(&format!("{by_name}/deliver"), &json!({"decision": "approved"}));
            assert_eq!(deliver.status, 409, "{}", deliver.text());
            let listed = agent.get("/api/v1/approvals").is(200).data();
            assert!(listed.as_array().unwrap().iter().all(|gate| gate["mine"] == false), "{listed:#}");
            assert_eq!(api.run(&run)["status"], "paused");
        }
    }
    let trusted =
        json!({"name": "trusted", "agent": true, "grants": ["workflow.run", "workflow.read", "workflow.approve"]});
    let trusted = server.with_key(&api.new_key(trusted));
    let run = trusted.trigger("gate", &json!({}));
    trusted.step(&run, "ask", "waiting");
    trusted.post(&format!("/api/v1/runs/{run}/steps/ask/approve"), &json!({})).is(200);
}

#[test]
fn only_those_whom_the_gate_names_may_answer_it() {
    let place = Installation::new();
    let server = place.serve();
    let api = &server.api;
    let grants = ["workflow.run", "workflow.read", "workflow.approve"];
    let (ann, bob) = (api.new_user("ann", &grants), api.new_user("bob", &grants));
    let reader = api.new_user("eve", &["workflow.read", "workflow.run"]);
    api.define(&json!({"name": "named", "tasks": {"ask": {"approval": {"message": "?", "approvers": ["ann"]}}}}));
    api.define(&json!({"name": "eyes", "tasks": {"ask": {"approval": {"message": "?", "allow_self": false}}}}));
    let answer = |run: &str| format!("/api/v1/runs/{run}/steps/ask/approve");
    let run = bob.trigger("named", &json!({}));
    api.step(&run, "ask", "waiting");
    bob.post(&answer(&run), &json!({})).refused(403, "refused");
    api.post(&answer(&run), &json!({})).refused(403, "refused");
    ann.post(&answer(&run), &json!({})).is(200);
    let run = bob.trigger("eyes", &json!({}));
    api.step(&run, "ask", "waiting");
    reader.post(&answer(&run), &json!({})).refused(403, "forbidden");
    bob.post(&answer(&run), &json!({})).refused(403, "refused");
    ann.post(&answer(&run), &json!({})).is(200);
}

#[test]
fn of_two_answers_at_the_same_time_one_counts() {
    let place = Installation::new();
    let server = place.serve();
    let api = &server.api;
    api.define(&json!({"name": "gate", "tasks": {"ask": {"approval": {"message": "well?"}}}}));
    for _ in 0..10 {
        let run = api.trigger("gate", &json!({}));
        api.step(&run, "ask", "waiting");
        let post = |verb: &str| api.post(&format!("/api/v1/runs/{run}/steps/ask/{verb}"), &json!({})).status;
        let (yes, no) = std::thread::scope(|scope| {
            let (yes, no) = (scope.spawn(|| post("approve")), scope.spawn(|| post("deny")));
            (yes.join().unwrap(), no.join().unwrap())
        });
        let end = api.end(&run)["status"].as_str().unwrap().to_string();
        assert!([(200, 409, "completed"), (409, 200, "cancelled")].contains(&(yes, no, &end)), "{yes} {no} {end}");
    }
}

#[test]
fn an_open_gate_tells_how_many_have_to_approve_and_who_is_asked_later() {
    let place = Installation::new();
    let server = place.serve();
    let api = &server.api;
    let gate =
        json!({"message": "well?", "approvals": 2, "escalate_to": "carol", "escalate_after": "1h", "timeout": "4h"});
    api.define(&json!({"name": "pay", "tasks": {"ask": {"approval": gate}}}));
    let run = api.trigger("pay", &json!({}));
    api.step(&run, "ask", "waiting");
    let path = format!("/api/v1/runs/{run}/steps/ask");
    let open = api.get(&format!("{path}/approval")).is(200).data();
    assert_eq!((&open["approvals"], &open["approved_by"], &open["escalated"]), (&json!(2), &json!([]), &json!(false)));
    let (since, later) = (open["escalates_at"].as_str().unwrap(), open["until"].as_str().unwrap());
    assert!(since < later, "{since} {later}");
    api.post(&format!("{path}/approve"), &json!({"digest": open["digest"]})).is(200);
    let open = api.get(&format!("{path}/approval")).is(200).data();
    assert_eq!(open["approved_by"], json!(["admin"]));
}
