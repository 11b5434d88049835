//! Hostile requests: bodies that never arrive or cost much, guessed tokens, endless streams.

use crate::agent::Agent;
use crate::harness::{Api, Installation, Server, eventually};
use crate::raw::{Raw, status};
use serde_json::{Value, json};
use std::time::Duration;

const MEGABYTE: usize = 1024 * 1024;

fn rest() -> Value {
    json!({"name": "rest", "trigger": [{"webhook": true}, {"api": {}}], "tasks": {"rest": {"sleep": 0}}})
}

/// A request whose body the server has begun to wait for.
fn unfinished(server: &Server, api: &Api, path: &str) -> Raw {
    let mut raw = Raw::open(server.address());
    let key = api.key.as_deref().unwrap();
    raw.send(format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\nTransfer-Encoding: chunked\r\n\
         Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n\r\n"
    ))
    .unwrap();
    // Sent when the body is read for the first time.
    assert_eq!(status(&raw.head()), 100);
    raw
}

#[test]
fn silent_bodies_of_one_organisation_do_not_keep_another_from_posting() {
    let place = Installation::new();
    let server = place.serve();
    let victim = server.api.new_organisation("victim");
    for api in [&server.api, &victim] {
        api.define(&rest());
    }
    let path = "/api/v1/workflows/rest/trigger";
    let mut silent: Vec<Raw> = (0..11).map(|_| unfinished(&server, &server.api, path)).collect();
    victim.post(path, &json!({"n": 1})).is(201);
    silent.extend((0..100).map(|_| unfinished(&server, &server.api, path)));
    silent.extend((0..100).map(|_| unfinished(&server, &server.api, "/mcp")));
    victim.post(path, &json!({"text": "x".repeat(5 * MEGABYTE)})).is(201);
    // The same organisation is not kept from it either.
    server.api.post(path, &json!({"n": 2})).is(201);
    drop(silent);
}

#[test]
fn bodies_that_fill_the_memory_give_way_to_those_of_another_organisation() {
    let place = Installation::new();
    let server = place.serve();
    let victim = server.api.new_organisation("victim");
    for api in [&server.api, &victim] {
        api.define(&rest());
    }
    let path = "/api/v1/workflows/rest/trigger";
    // More than there is: some wait in the middle, and all others stop just before their end.
    let part = vec![b' '; 9 * MEGABYTE];
    let fill = |bodies: &mut [Raw]| {
        std::thread::scope(|scope| {
            for raw in bodies {
                raw.stream.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
                scope.spawn(|| raw.send(format!("{:x}\r\n", part.len())).and_then(|()| raw.send(&part)));
            }
        });
    };
    let mut held: Vec<Raw> = (0..28).map(|_| unfinished(&server, &server.api, path)).collect();
    fill(&mut held);
    for size in [1, 1_000, 5 * MEGABYTE, 9 * MEGABYTE] {
        victim.post(path, &json!({"text": "x".repeat(size)})).is(201);
    }
    // More than the reserve, and less than half.
    let mut wanted: Vec<Raw> = (0..8).map(|_| unfinished(&server, &victim, path)).collect();
    fill(&mut wanted);
    for mut raw in wanted {
        raw.send("\r\n0\r\n\r\n").unwrap();
        assert_eq!(status(&raw.head()), 201);
    }
    let gave_way = held.iter_mut().any(|raw| {
        raw.stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        status(&raw.head()) == 503
    });
    assert!(gave_way);
}

#[test]
fn a_body_of_too_many_values_is_refused_before_it_is_parsed() {
    let place = Installation::new();
    let server = place.serve();
    server.api.define(&rest());
    let workflow = server.api.data("/workflows/rest");
    let address = workflow["webhooks"][0].as_str().unwrap().strip_prefix(&server.url).unwrap().to_string();
    let json = [("content-type", "application/json")];
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let mcp = [json[0], ("accept", "application/json, text/event-stream"), ("mcp-protocol-version", "2025-06-18")];
    let many = |start: &str, one: &str, end: &str| {
        (start.to_string() + &one.repeat((9 * MEGABYTE) / one.len()) + end).into_bytes()
    };
    let trigger = "/api/v1/workflows/rest/trigger";
    let call = r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "workflow_start", "arguments":
                   {"workflow": "rest", "input": [0"#;
    let before = server.peak_memory();
    for (path, headers, body, expected) in [
        (trigger, &json[..], many("[0", ",0", "]"), (413, "too-many-values")),
        (trigger, &json, many("[", "[", ""), (400, "body-too-deep")),
        (trigger, &json, many("[{}", ",{\"\":0}", "]"), (413, "too-many-values")),
        ("/api/v1/keys", &json, many("{\"name\": [0", ",0", "]}"), (413, "too-many-values")),
        ("/mcp", &mcp, many(call, ",0", "]}}}"), (413, "too-many-values")),
        (&address, &json, many("[0", ",0", "]"), (413, "too-many-values")),
        (&address, &form, many("a", "&a", ""), (413, "too-many-values")),
        (&address, &form, many("[0", ",0", "]"), (202, "")),
        (&address, &[], many("[0", ",0", "]"), (202, "")),
    ] {
        let answer = server.api.send("POST", path, headers, Some(body));
        let code = answer.json()["code"].as_str().unwrap_or_default().to_string();
        assert_eq!((answer.status, code.as_str()), expected, "{path}: {}", answer.text());
    }
    let more = (server.peak_memory() - before) / MEGABYTE as u64;
    assert!(more < 250, "it took {more} MB more");
    // As many as are allowed are taken.
    let allowed = format!("[0{}]", ",0".repeat(249_990));
    server.api.send("POST", trigger, &json, Some(allowed.into())).is(201);
}

#[test]
fn compressed_bodies_are_refused() {
    let place = Installation::new();
    let server = place.serve();
    server.api.define(&rest());
    for encoding in ["gzip", "deflate", "zstd", "br", "identity, gzip"] {
        for path in ["/api/v1/workflows/rest/trigger", "/api/v1/workflows", "/mcp"] {
            let answer = server.api.send("POST", path, &[("content-encoding", encoding)], Some(b"x".to_vec()));
            answer.refused(415, "content-encoding");
        }
    }
}

/// Asks until guessing is refused.
#[track_caller]
fn throttled(ask: impl Fn(usize) -> crate::harness::Answer, wrong: u16) {
    for n in 0..1_000 {
        match ask(n).status {
            429 => return assert!(n >= 10, "only after some guesses"),
            status => assert_eq!(status, wrong),
        }
    }
    panic!("nothing was refused");
}

#[test]
fn wrong_tokens_of_every_kind_are_throttled_and_right_ones_work() {
    for kind in ["wh", "approve", "in", "sign-in"] {
        let place = Installation::new();
        let server = place.serve();
        server.api.define(&json!({"name": "it", "trigger": [{"webhook": true}, {"api": {}}], "tasks": {
            "ask": {"approval": {"message": "?"}},
            "tell": {"tool": "echo", "args": {"value": "{{wait.heard.url}}"}},
            "heard": {"wait_for_webhook": {"timeout": "1h"}}}}));
        let run = server.api.trigger("it", &json!({}));
        server.api.step(&run, "ask", "waiting");
        server.api.step(&run, "heard", "waiting");
        let anyone = server.without_key();
        let of_run = |n: usize| format!("{run}.aGVhcmQ.{:A>22}", n % 10);
        match kind {
            "wh" => throttled(|n| anyone.get(&format!("/wh/{}", of_run(n))), 404),
            "approve" => throttled(|n| anyone.get(&format!("/approve/{}", of_run(n))), 404),
            "in" => throttled(|n| anyone.post(&format!("/in/{n}"), &json!({})), 404),
            _ => throttled(|n| anyone.get(&format!("/sign-in/{n}")), 401),
        }
        assert_eq!(anyone.post("/wh/x.y.z", &json!({})).status, 429, "all kinds count together");
        let path = |url: &str| url.strip_prefix(&server.url).unwrap().to_string();
        let told = server.api.step(&run, "tell", "success").to_string();
        let callback = told.split('"').find(|part| part.contains("/wh/")).unwrap();
        anyone.get(&path(callback)).is(200);
        let link = server.api.post(&format!("/api/v1/runs/{run}/steps/ask/link"), &json!({})).is(201).data();
        anyone.get(&path(link["url"].as_str().unwrap())).is(200);
        let hook = server.api.data("/workflows/it")["webhooks"][0].as_str().unwrap().to_string();
        anyone.post(&path(&hook), &json!({})).is(202);
        let link = server.api.post("/api/v1/sign-in-links", &json!({})).is(201).data();
        anyone.get(&path(link["url"].as_str().unwrap())).is(303);
    }
}

#[test]
fn a_wrong_token_does_not_load_the_run() {
    let place = Installation::new();
    let server = place.serve();
    server.api.define(&json!({"name": "it", "tasks": {"ask": {"approval": {"message": "?"}}}}));
    let run = server.api.trigger("it", &json!({}));
    server.api.step(&run, "ask", "waiting");
    let link = server.api.post(&format!("/api/v1/runs/{run}/steps/ask/link"), &json!({})).is(201).data();
    let link = link["url"].as_str().unwrap().strip_prefix(&server.url).unwrap().to_string();
    let anyone = server.without_key();
    anyone.get(&link).is(200);
    assert_eq!(place.sql("UPDATE workflow_runs SET state = 'broken'"), 1);
    anyone.get(&link).is(500);
    let (head, code) = link.rsplit_once('.').unwrap();
    let wrong = format!("{head}.{}", code.chars().rev().collect::<String>());
    let unknown = wrong.replace(&run, "run_0000000000000000000000");
    let answers = [wrong, unknown].map(|path| {
        let mut problem = anyone.get(&path).is(404).json();
        problem["request_id"].take();
        problem
    });
    assert_eq!(answers[0], answers[1], "an unknown run and a wrong token are told alike");
    let callback = format!("/wh/{run}.aGVhcmQ.{}", "A".repeat(22));
    anyone.get(&callback).is(404);
    anyone.post(&callback, &json!({})).is(404);
}

fn stream(server: &Server, key: &str) -> (u16, Raw) {
    let mut raw = Raw::open(server.address());
    raw.send(format!("GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\r\n")).unwrap();
    (status(&raw.head()), raw)
}

fn socket(server: &Server, key: &str) -> (u16, Raw) {
    let mut raw = Raw::open(server.address());
    raw.send(format!(
        "GET /api/v1/ws HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\nConnection: Upgrade\r\n\
         Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    ))
    .unwrap();
    (status(&raw.head()), raw)
}

#[test]
fn a_key_has_its_number_of_streams_and_an_organisation_gives_way_to_another() {
    let place = Installation::new().config("limits: {live_streams: 8, live_streams_per_key: 4}\n");
    let server = place.serve();
    let stranger = server.api.new_organisation("strangers");
    let keys: Vec<String> =
        ["a", "b"].iter().map(|name| server.api.new_key(json!({"name": name, "grants": ["workflow.read"]}))).collect();
    let mut open = Vec::new();
    for key in &keys {
        for n in 0..4 {
            let (status, raw) = if n % 2 == 0 { stream(&server, key) } else { socket(&server, key) };
            assert_eq!(status, [200, 101][n % 2]);
            open.push(raw);
        }
        let (status, mut raw) = stream(&server, key);
        assert_eq!(status, 503);
        assert!(raw.until("one key").contains("too-many-streams"));
        assert_eq!(socket(&server, key).0, 503);
    }
    assert_eq!(stream(&server, server.api.key.as_deref().unwrap()).0, 503, "all are taken by the organisation");
    let theirs = stranger.key.as_deref().unwrap();
    let got: Vec<(u16, Raw)> = (0..4).map(|_| stream(&server, theirs)).collect();
    assert!(got.iter().all(|(status, _)| *status == 200), "a newcomer gets its share");
    // The ends of the oldest were told.
    let mut ended = open.into_iter().take(4);
    assert!(ended.next().unwrap().rest().ends_with("0\r\n\r\n"));
    assert!(ended.next().unwrap().rest().contains("another organisation"));
    assert_eq!(stream(&server, &keys[0]).0, 503, "the others keep theirs");
    drop(got);
    eventually("a place", || (stream(&server, &keys[0]).0 == 200).then_some(()));
}

#[test]
fn a_reader_cannot_make_the_audit_trail_grow() {
    let place = Installation::new();
    let server = place.serve();
    server.api.define(&json!({"name": "it", "tasks": {"ask": {"approval": {"message": "?"}}}}));
    let run = server.api.trigger("it", &json!({}));
    server.api.step(&run, "ask", "waiting");
    let reader = Agent::able(&server.api.new_user("reader", &["workflow.read"]));
    let audit = || server.api.get("/api/v1/audit?limit=500").is(200).text();
    let before = audit();
    let answer = json!({"action": "accept", "content": {"decision": "approve"}});
    let long = "x".repeat(MEGABYTE);
    for name in ["ask", "invented", &long, "ask#1@0", &format!("ask#1@{long}")] {
        let told = reader.send("tasks/update", json!({"taskId": run, "inputResponses": {name: answer}})).text();
        assert!(told.contains("not allowed to answer") || told.contains("no open question"), "{told}");
        assert!(told.len() < 1_000, "{}", told.len());
    }
    let many: serde_json::Map<String, Value> = (0..1_000).map(|n| (format!("ask#{n}@0"), answer.clone())).collect();
    let told = reader.send("tasks/update", json!({"taskId": run, "inputResponses": many})).text();
    assert!(told.contains("at most 50"), "{told}");
    assert_eq!(audit(), before);
    // An approver's refused answers are recorded once each, under the name of the real question.
    let approver = Agent::able(&server.api.new_user("ann", &["workflow.read", "workflow.approve"]));
    let before = audit();
    for _ in 0..5 {
        approver.ask("tasks/update", json!({"taskId": run, "inputResponses": {format!("ask#1@{long}"): answer}}));
    }
    let after = audit();
    assert!(after.len() > before.len() && after.len() < before.len() + 1_000, "{after}");
}

#[test]
fn texts_of_callers_have_a_length() {
    let place = Installation::new();
    let server = place.serve();
    server.api.define(&json!({"name": "it", "tasks": {"ask": {"approval": {"message": "?"}}}}));
    let run = server.api.trigger("it", &json!({}));
    let long = "x".repeat(10_001);
    server.api.post(&format!("/api/v1/runs/{run}/cancel"), &json!({"reason": long})).refused(422, "invalid-input");
    let agent = Agent::plain(&server.api);
    let said = agent.refused("workflow_start", json!({"workflow": "it", "idempotency_key": "k".repeat(256)}));
    assert!(said.contains("idempotency_key"), "{said}");
    server.api.post(&format!("/api/v1/runs/{run}/cancel"), &json!({"reason": "done"})).is(200);
}
