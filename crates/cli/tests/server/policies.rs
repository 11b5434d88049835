//! Policies through the API: valid fields, whose calls they apply to, and held calls that survive a crash.

use crate::harness::Installation;
use crate::outside::Outside;
use serde_json::json;

#[test]
fn a_policy_is_made_shown_changed_and_removed_by_administrators() {
    let place = Installation::new();
    let server = place.serve();
    let api = &server.api;
    let built_in = api.get("/api/v1/policies").is(200).data();
    assert_eq!((built_in.as_array().unwrap().len(), &built_in[0]["name"]), (1, &json!("agents-unreviewed")));
    let full = json!({"calls": "host:*.example.com", "effect": "require_approval", "approvers": ["role:ops", "ann"],
        "approvals": 2, "allow_self": false, "timeout": "1h30m", "at_most_once": "ask",
        "rate": {"calls": 10, "per": "1m"}, "reason": "money",
        "when": "args.method == 'POST'", "mode": "log"});
    let made = api.call("PUT", "/api/v1/policies/money", &full).is(200).data();
    for (field, value) in full.as_object().unwrap() {
        assert_eq!(&made[field], value, "{field}");
    }
    assert_eq!((&made["name"], &made["created_by"]), (&json!("money"), &json!("admin")));
    assert_eq!(api.get("/api/v1/policies/money").is(200).data(), made);
    let less = json!({"calls": "tool:*", "effect": "allow"});
    let changed = api.call("PUT", "/api/v1/policies/money", &less).is(200).data();
    assert_eq!(
        (&changed["effect"], &changed["rate"], &changed["approvals"]),
        (&json!("allow"), &json!(null), &json!(1))
    );
    let ann = api.new_user("ann", &["workflow.read", "workflow.run", "workflow.define", "workflow.approve"]);
    assert_eq!(ann.get("/api/v1/policies").is(200).data()[1], changed);
    ann.call("PUT", "/api/v1/policies/money", &less).refused(403, "forbidden");
    ann.delete("/api/v1/policies/money").refused(403, "forbidden");
    api.delete("/api/v1/policies/money").is(204);
    api.delete("/api/v1/policies/money").refused(404, "not-found");
    let trail = api.get("/api/v1/audit?target=money").is(200).data();
    let actions: Vec<&str> = trail.as_array().unwrap().iter().map(|row| row["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["policy.remove", "policy.put", "policy.put"]);
}

#[test]
fn what_a_logged_policy_would_have_stopped_is_shown_over_the_api() {
    let place = Installation::new();
    let server = place.serve();
    let api = &server.api;
    api.define(&json!({"name": "w", "tasks": {"say": {"tool": "echo", "args": {"n": "{{input.n}}"}}}}));
    let policy = json!({"calls": "tool:echo", "effect": "deny", "when": "args.n > 5", "mode": "log"});
    api.call("PUT", "/api/v1/policies/large", &policy).is(200);
    for n in [4, 6] {
        assert_eq!(api.finished("w", &json!({"n": n}))["status"], "completed");
    }
    let log = api.get("/api/v1/policies/large/log").is(200).data();
    assert_eq!((&log["counts"]["denied"], &log["counts"]["held"]), (&json!(1), &json!(0)));
    let sample = &log["samples"][0];
    assert_eq!((&sample["verdict"], &sample["step"]), (&json!("denied"), &json!("say")), "{log:#}");
    assert_eq!(sample["args"], r#"{"n":6}"#);
    api.get("/api/v1/policies/other/log").refused(404, "not-found");
}

#[test]
fn policies_are_tested_on_past_calls_over_the_api_and_on_the_command_line() {
    let place = Installation::new();
    let server = place.serve();
    let api = &server.api;
    api.define(&json!({"name": "w", "tasks": {"say": {"tool": "echo", "args": {"n": "{{input.n}}"}}}}));
    for n in [4, 6] {
        api.finished("w", &json!({"n": n}));
    }
    let large = json!({"large": {"calls": "tool:echo", "effect": "deny", "when": "args.n > 5"}});
    let tested = api.post("/api/v1/policy-tests", &json!({"policies": large, "since": "1d"})).is(200).data();
    assert_eq!((&tested["calls"], &tested["is_complete"]), (&json!(2), &json!(true)), "{tested:#}");
    assert_eq!((&tested["counts"]["denied"], &tested["policies"][0]["name"]), (&json!(1), &json!("large")));
    assert_eq!(tested["policies"][0]["samples"][0]["args"], r#"{"n":6}"#);
    api.post("/api/v1/policy-tests", &json!({"since": "91d"})).is(422);
    let file = place.data().join("candidates.yaml");
    std::fs::write(&file, "large: {calls: 'tool:echo', effect: deny, when: args.n > 5}").unwrap();
    let file_name = file.to_str().unwrap();
    let said = place.stepwell(&["policy", "test", file_name, "--since", "1d"]);
    assert!(said.contains("2 calls of 2 runs") && said.contains("large: 1 denied"), "{said}");
    let said = place.stepwell(&["policy", "test", "--json"]);
    assert!(said.contains(r#""name":"agents-unreviewed""#), "{said}");
    std::fs::write(&file, "large: {calls: 'tool:echo', effect: deny, when: arg.n > 5}").unwrap();
    let said = place.stepwell(&["policy", "test", file_name]);
    assert!(said.contains("did you mean `args`"), "{said}");
}

#[test]
fn no_agents_key_changes_a_policy_over_the_api_or_the_command_line() {
    let place = Installation::new();
    let server = place.serve();
    let api = &server.api;
    let held = json!({"calls": "tool:*", "effect": "require_approval"});
    let held = api.call("PUT", "/api/v1/policies/held", &held).is(200).data();
    let key = api.new_key(json!({"name": "agent", "agent": true, "grants": ["admin", "workflow.approve"]}));
    let agent = server.with_key(&key);
    let relaxed = json!({"calls": "tool:*", "effect": "allow"});
    agent.call("PUT", "/api/v1/policies/held", &relaxed).refused(403, "refused");
    agent.delete("/api/v1/policies/held").refused(403, "refused");
    agent.post("/api/v1/keys", &json!({"name": "mine"})).refused(403, "refused");
    agent.post("/api/v1/sign-in-links", &json!({})).refused(403, "refused");
    agent.call("PATCH", "/api/v1/users/admin", &json!({"grants": ["operator"]})).refused(403, "refused");
    for command in [&["policy", "delete", "held"][..], &["policy", "set", "held", "tool:*", "allow"]] {
        let output = place.command().args(command).env("STEPWELL_KEY", &key).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains("an agent's key never has the right admin"), "{said}");
    }
    assert_eq!(api.get("/api/v1/policies/held").is(200).data(), held);
}

#[test]
fn what_is_wrong_with_a_policy_is_said_with_its_place() {
    let place = Installation::new();
    let server = place.serve();
    for (path, body) in [
        ("calls", json!({"calls": "mail.*", "effect": "deny"})),
        ("calls", json!({"calls": "tool:", "effect": "deny"})),
        ("when", json!({"calls": "tool:*", "effect": "deny", "when": "input.sum > 5"})),
        ("mode", json!({"calls": "tool:*", "effect": "deny", "mode": "off"})),
        ("effect", json!({"calls": "tool:*", "effect": "maybe"})),
        ("approvals", json!({"calls": "tool:*", "effect": "deny", "approvals": 0})),
        ("approvers", json!({"calls": "tool:*", "effect": "deny", "approvers": [" "]})),
        ("timeout", json!({"calls": "tool:*", "effect": "deny", "timeout": "soon"})),
        ("timeout", json!({"calls": "tool:*", "effect": "deny", "timeout": "10"})),
        ("rate", json!({"calls": "tool:*", "effect": "deny", "rate": {"calls": 1, "per": "2d"}})),
        ("rate.per", json!({"calls": "tool:*", "effect": "deny", "rate": {"calls": 1, "per": 3}})),
        ("at_most_once", json!({"calls": "tool:*", "effect": "deny", "at_most_once": true})),
        ("", json!({"calls": "tool:*", "effect": "deny", "colour": "red"})),
        ("", json!({"effect": "deny"})),
    ] {
        let problem = server.api.call("PUT", "/api/v1/policies/p", &body).refused(422, "invalid-input");
        let said = problem["errors"][0]["path"].as_str().unwrap();
        assert_eq!(said, path, "{body}: {problem:#}");
    }
    assert_eq!(server.api.get("/api/v1/policies").is(200).data().as_array().unwrap().len(), 1);
}

#[test]
fn a_held_call_is_held_through_a_kill_and_made_once_when_it_is_approved() {
    let place = Installation::new();
    let outside = Outside::start();
    let server = place.serve();
    let flow = json!({"name": "pay", "tasks": {"call": {"url": format!("{}/pay", outside.url), "method": "POST",
        "body": {"sum": "{{trigger.body.sum}}"}}}});
    server.api.define(&flow);
    let policy = json!({"calls": "host:127.0.0.1", "effect": "require_approval", "reason": "money"});
    server.api.call("PUT", "/api/v1/policies/money", &policy).is(200);
    let run = server.api.trigger("pay", &json!({"sum": 12}));
    let held = server.api.step(&run, "call", "waiting");
    assert_eq!((&held["status"], &held["waiting_for"][0]["for"]), (&json!("paused"), &json!("approval")), "{held:#}");
    let path = format!("/api/v1/runs/{run}/steps/call");
    let before = server.api.get(&format!("{path}/approval")).is(200).data();
    assert_eq!(before["asks"]["calls"][0]["input"]["body"], json!({"sum": 12}), "{before:#}");
    server.kill();
    let server = place.serve();
    let after = server.api.get(&format!("{path}/approval")).is(200).data();
    assert_eq!(after, before);
    assert_eq!(server.api.get("/api/v1/approvals").is(200).data(), json!([before]));
    // Only what was shown can be approved.
    server.api.post(&format!("{path}/approve"), &json!({})).refused(422, "invalid-input");
    server.api.post(&format!("{path}/approve"), &json!({"digest": "0"})).refused(409, "other-digest");
    assert_eq!(outside.count(), 0);
    server.api.post(&format!("{path}/approve"), &json!({"digest": before["digest"]})).is(200);
    assert_eq!(server.api.end(&run)["status"], "completed");
    assert_eq!(outside.calls("/pay").len(), 1);
    server.stop();
    place.sound();
}

#[test]
fn what_a_policy_lets_happen_once_is_not_called_again_when_its_node_is_killed_in_the_middle() {
    let outside = Outside::start();
    outside.hold("/pay");
    let place = Installation::new();
    let server = place.serve();
    let once = json!({"calls": "tool:http_request", "effect": "allow", "at_most_once": "fail"});
    server.api.call("PUT", "/api/v1/policies/once", &once).is(200);
    let pay = |path: &str| {
        let args = json!({"url": format!("{}{path}", outside.url), "method": "POST"});
        json!({"tool": "http_request", "args": args})
    };
    server.api.define(&json!({"name": "pay", "tasks": {"it": pay("/pay")}}));
    let run = server.api.trigger("pay", &json!({}));
    outside.called("/pay", 1);
    server.kill();
    let server = place.serve();
    let ended = server.api.end(&run);
    assert_eq!(ended["tasks"]["it"]["error"]["code"], "outcome_unknown", "{ended:#}");
    assert_eq!(ended["status"], "failed");
    // One without the policy is called again.
    outside.hold("/look");
    server.api.delete("/api/v1/policies/once").is(204);
    server.api.define(&json!({"name": "look", "tasks": {"it": pay("/look")}}));
    let run = server.api.trigger("look", &json!({}));
    outside.called("/look", 1);
    server.kill();
    outside.let_go("/look");
    let server = place.serve();
    assert_eq!(server.api.end(&run)["status"], "completed");
    assert_eq!((outside.calls("/pay").len(), outside.calls("/look").len()), (1, 2));
}
