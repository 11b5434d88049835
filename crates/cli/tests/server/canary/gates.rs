//! Texts for people: gates, held calls, links, notifications.

use super::{Canary, KEY, PASS, masked};
use crate::harness::eventually;
use serde_json::json;

#[test]
fn neither_approvers_nor_recipients_are_shown_a_secret() {
    let mut canary = Canary::start();
    let policy = json!({"calls": "tool:log", "effect": "require_approval"});
    canary.server.api.call("PUT", "/api/v1/policies/held", &policy).is(200);
    let send = json!({"url": "{{input.url}}/ok?q={{secrets.KEY}}", "headers": {"x-key": "{{secrets.KEY}}"},
        "body": "{{secrets.PASS}} {{secrets.DIGITS}}"});
    let told = "{{tasks.send.body.n}} {{tasks.send.headers.x-echo}} {{tasks.send.body.sent}}";
    let args = json!({"key": "{{secrets.KEY}}", "told": "{{tasks.send.body}}"});
    let workflow = json!({"name": "canary", "tasks": {
        "send": send,
        "ask": {"approval": {"message": format!("well? {told}"), "timeout": "1h", "escalate_to": ["admin"],
            "escalate_after": "1ms"}, "needs": ["send"]},
        "go": {"tool": "echo", "args": args, "needs": ["ask"]},
        "no": {"approval": {"message": format!("or not? {told}")}, "needs": ["send"], "if": "true"},
        "held": {"tool": "log", "args": {"message": format!("it is {{{{secrets.PASS}}}}, {told}")}, "needs": ["send"]},
    }});
    let run = canary.trigger(&workflow);
    for step in ["ask", "no", "held"] {
        canary.server.api.step(&run, step, "waiting");
        let asked = canary.read(&format!("/api/v1/runs/{run}/steps/{step}/approval"));
        assert!(asked.contains("{{secrets."), "{asked}");
        let link = canary.server.api.post(&format!("/api/v1/runs/{run}/steps/{step}/link"), &json!({})).is(201).data();
        let link = link["url"].as_str().unwrap();
        let page = canary.server.without_key().get(&link[link.find("/approve/").unwrap()..]).is(200);
        canary.transcript.add("the page of a link", page.bytes);
    }
    canary.read("/api/v1/approvals");
    canary.transcript.add("approvals", canary.place.stepwell(&["approvals"]));
    for (step, how) in [("no", "deny"), ("ask", "approve"), ("held", "approve")] {
        let path = format!("/api/v1/runs/{run}/steps/{step}");
        let asked = canary.server.api.get(&format!("{path}/approval")).is(200).data();
        let answer = json!({"comment": format!("not with {KEY} and {PASS}"), "digest": asked["digest"]});
        canary.server.api.post(&format!("{path}/{how}"), &answer).is(200);
    }
    let ended = canary.ended(&run);
    masked(&ended, &["send", "go", "held"], "success");
    let code =
        "throw new Error(await (await fetch(ctx.input.url + '/bad/' + secrets.PASS + '/' + secrets.KEY)).text())";
    let fail = json!({"name": "fails", "allow_hosts": "127.0.0.1", "tasks": {
        "send": {"url": "{{input.url}}/ok", "body": "{{secrets.DIGITS}}"},
        "fail": {"javascript": code, "retries": 0, "needs": ["send"]},
    }});
    let run = canary.trigger(&fail);
    masked(&canary.ended(&run), &["fail"], "failed");
    for medium in ["/hook", "/ntfy"] {
        for words in ["well? ", "or not? ", "denied by", "I do not like"] {
            let told = eventually(&format!("{words} for {medium}"), || {
                canary.outside.calls(medium).into_iter().map(|call| call.body).find(|body| body.contains(words))
            });
            assert!(told.contains("{{secrets."), "{medium}: {told}");
        }
    }
    canary.keeps_silent();
}
