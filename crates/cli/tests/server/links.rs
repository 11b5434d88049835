//! Approval links: what the page shows, what it accepts, and who cannot use it.

use crate::harness::{Answer, Api, Installation, Server, eventually};
use crate::outside::Outside;
use serde_json::{Value, json};

const PAGE: (&str, &str) = ("accept", "text/html");
const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

/// A run that waits at its gate, and the path of a link of this user.
fn asked(server: &Server, workflow: &Value, user: Option<&str>) -> (String, String) {
    let api = &server.api;
    let name = workflow["name"].as_str().unwrap();
    if api.get(&format!("/api/v1/workflows/{name}")).status == 404 {
        api.define(workflow);
    }
    let run = api.trigger(name, &json!({"what": "<b>it</b>"}));
    api.step(&run, "ask", "waiting");
    let body = user.map_or(json!({}), |user| json!({"user": user}));
    let link = api.post(&format!("/api/v1/runs/{run}/steps/ask/link"), &body).is(201).data();
    let url = link["url"].as_str().unwrap();
    (run, url[url.find("/approve/").unwrap()..].to_string())
}

fn gate(form: Option<Value>, url: &str) -> Value {
    let mut ask = json!({"message": "deploy {{trigger.body.what}}?", "timeout": "1h"});
    if let Some(form) = form {
        ask["form"] = form;
    }
    json!({"name": "deploy", "tasks": {"ask": {"approval": ask},
        "go": {"needs": ["ask"], "url": format!("{url}/go"), "method": "POST", "body": {"n": 4711}}}})
}

fn digest(api: &Api, run: &str) -> String {
    let asks = api.get(&format!("/api/v1/runs/{run}/steps/ask/approval")).is(200).data();
    asks["digest"].as_str().unwrap().to_string()
}

fn send(anyone: &Api, link: &str, fields: &str, origin: Option<&str>) -> Answer {
    let mut headers = vec![PAGE, FORM];
    headers.extend(origin.map(|origin| ("origin", origin)));
    anyone.send("POST", link, &headers, Some(fields.into()))
}

#[test]
fn a_page_shows_what_is_asked_and_looking_at_it_decides_nothing() {
    let place = Installation::new();
    let server = place.serve();
    let outside = Outside::start();
    let (run, link) = asked(&server, &gate(None, &outside.url), None);
    let anyone = server.without_key();
    for _ in 0..3 {
        assert_eq!(anyone.send("HEAD", &link, &[PAGE, ("sec-purpose", "prefetch")], None).status, 200);
        let page = anyone.send("GET", &link, &[PAGE], None).is(200);
        let text = page.text();
        let all = ["deploy", &run, "ask", "admin", "4711", "/go", &digest(&server.api, &run), "Without an answer by"];
        assert!(all.iter().all(|shown| text.contains(shown)), "{text}");
        assert!(text.contains("deploy &lt;b&gt;it&lt;/b&gt;?") && !text.contains("<b>it"), "{text}");
        // One script, of this server, which only shows times.
        assert_eq!(text.matches("<script").count(), 1);
        assert!(text.contains("<script type=\"module\" src=\"/docs/approve.js\"></script>"), "{text}");
        assert!(page.header("content-security-policy").contains("default-src 'none'"));
        assert!(page.header("content-security-policy").contains("form-action 'self'"));
        assert_eq!((page.header("cache-control"), page.header("referrer-policy")), ("no-store", "same-origin"));
    }
    assert_eq!((server.api.run(&run)["status"].as_str(), outside.count()), (Some("paused"), 0));
}

#[test]
fn an_answer_from_the_page_counts_once_and_later_ones_are_told_what_became_of_it() {
    let place = Installation::new();
    let server = place.serve();
    let outside = Outside::start();
    let (run, link) = asked(&server, &gate(None, &outside.url), None);
    let anyone = server.without_key();
    let fields = format!("decision=approve&comment=fine+%26+good&digest={}", digest(&server.api, &run));
    // Not from a page of somebody else, not without saying what, and not for something else.
    send(&anyone, &link, &fields, Some("https://evil.example")).refused(403, "cross-origin");
    send(&anyone, &link, &fields, Some("null")).refused(403, "cross-origin");
    for wrong in ["decision=approve", "", "decision=maybe&digest=0", "decision=approve&digest=0000", "%FF=%FF&a"] {
        let page = send(&anyone, &link, wrong, Some(&server.url)).is(422);
        assert!(page.text().contains("class=\"fault\""), "{}", page.text());
    }
    assert_eq!(server.api.run(&run)["status"], "paused");
    let page = send(&anyone, &link, &fields, Some(&server.url)).is(200);
    assert!(page.text().contains("You have approved"), "{}", page.text());
    let end = server.api.end(&run);
    assert_eq!(
        (&end["status"], &end["tasks"]["ask"]["output"]["comment"]),
        (&json!("completed"), &json!("fine & good"))
    );
    assert_eq!(outside.calls("/go").len(), 1);
    for answer in [anyone.send("GET", &link, &[PAGE], None), send(&anyone, &link, &fields, Some(&server.url))] {
        assert!(answer.text().contains("It was approved by admin."), "{}", answer.text());
        assert_eq!(answer.status, 410);
    }
    anyone.send("GET", &link, &[], None).refused(410, "step-finished");
    let trail = server.api.get("/api/v1/audit?action=step.approve").is(200).data();
    assert_eq!((trail.as_array().unwrap().len(), &trail[0]["by"]), (1, &json!("admin")), "{trail:#}");
}

#[test]
fn a_form_is_filled_in_on_the_page() {
    let place = Installation::new();
    let server = place.serve();
    let outside = Outside::start();
    let form = json!({"type": "object", "required": ["size", "n"], "properties": {
        "size": {"enum": ["small", "large"]}, "n": {"type": "integer", "minimum": 1, "title": "How many"},
        "sure": {"type": "boolean"}, "note": {"type": "string"}}});
    let (run, link) = asked(&server, &gate(Some(form), &outside.url), None);
    let anyone = server.without_key();
    let text = anyone.send("GET", &link, &[PAGE], None).is(200).text();
    assert!(["How many", "<select", "type=\"checkbox\"", ">large<"].iter().all(|part| text.contains(part)), "{text}");
    let with = |fields: &str| format!("decision=approve&digest={}&{fields}", digest(&server.api, &run));
    let wrong = send(&anyone, &link, &with("form.size=1&form.n=0&form.note=%3Ci%3E"), Some(&server.url)).is(422).text();
    assert!(wrong.contains("class=\"fault\"") && wrong.contains("value=\"&lt;i&gt;\""), "{wrong}");
    send(&anyone, &link, &with("form.size=1&form.n=2&form.sure=on"), Some(&server.url)).is(200);
    let end = server.api.end(&run);
    assert_eq!(end["tasks"]["ask"]["output"]["data"], json!({"size": "large", "n": 2, "sure": true}));
}

#[test]
fn links_of_others_made_up_ones_and_those_of_people_who_may_no_longer_lead_nowhere() {
    let place = Installation::new();
    let server = place.serve();
    let outside = Outside::start();
    let api = &server.api;
    let bob = api.new_user("bob", &["workflow.run", "workflow.read", "workflow.approve"]);
    let (run, link) = asked(&server, &gate(None, &outside.url), Some("bob"));
    let anyone = server.without_key();
    assert!(anyone.send("GET", &link, &[PAGE], None).is(200).text().contains("bob"));
    // Only an administrator makes links for others.
    let path = format!("/api/v1/runs/{run}/steps/ask/link");
    bob.post(&path, &json!({"user": "admin"})).refused(403, "forbidden");
    bob.post(&path, &json!({})).is(201);
    let agent = server.with_key(&place.agent_key());
    agent.post(&path, &json!({})).refused(403, "refused");
    let middle = link.len() - 5;
    let forged =
        format!("{}{}{}", &link[..middle], if &link[middle..=middle] == "x" { "y" } else { "x" }, &link[middle + 1..]);
    anyone.send("GET", &forged, &[], None).refused(404, "not-found");
    assert_eq!(anyone.send("GET", &forged, &[PAGE], None).status, 404);
    api.call("PATCH", "/api/v1/users/bob", &json!({"grants": ["workflow.read"]})).is(200);
    let fields = format!("decision=approve&digest={}", digest(api, &run));
    let page = send(&anyone, &link, &fields, None).is(403).text();
    assert!(page.contains("You may not answer this"), "{page}");
    api.call("PATCH", "/api/v1/users/bob", &json!({"disabled": true})).is(200);
    send(&anyone, &link, &fields, None).is(403);
    assert_eq!(api.run(&run)["status"], "paused");
}

#[test]
fn a_link_survives_a_kill_of_the_server() {
    let place = Installation::new();
    let outside = Outside::start();
    let server = place.serve();
    let (run, link) = asked(&server, &gate(None, &outside.url), None);
    let digest = digest(&server.api, &run);
    server.kill();
    let server = place.serve();
    let fields = format!("decision=deny&digest={digest}");
    let page = eventually("the page", || {
        Some(send(&server.without_key(), &link, &fields, None)).filter(|page| page.status != 503)
    });
    assert!(page.is(200).text().contains("You have denied"));
    assert_eq!(server.api.end(&run)["status"], "cancelled");
    assert_eq!(outside.count(), 0);
}
