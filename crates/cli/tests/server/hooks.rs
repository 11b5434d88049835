//! Workflows that are started by a call to their own address.

use crate::harness::{Answer, Api, Installation, Server, eventually};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use std::time::{SystemTime, UNIX_EPOCH};

/// The path of the address of a workflow with this trigger.
fn hook(server: &Server, name: &str, webhook: Value) -> String {
    let definition = json!({"name": name, "trigger": {"webhook": webhook}, "tasks": {"rest": {"sleep": 0}},
        "output": {"body": "{{trigger.body}}", "headers": "{{trigger.headers}}"}});
    server.api.define(&definition);
    address(&server.api, name)
}

fn address(api: &Api, name: &str) -> String {
    let url = api.get(&format!("/api/v1/workflows/{name}")).is(200).data()["webhooks"][0].as_str().unwrap().to_string();
    url.strip_prefix(&api.url).unwrap().to_string()
}

#[track_caller]
fn output(api: &Api, answer: Answer) -> Value {
    let run = answer.is(202).data()["run_id"].as_str().unwrap().to_string();
    api.end(&run)["output"].clone()
}

#[test]
fn any_kind_of_body_starts_a_run() {
    let place = Installation::new();
    let server = place.serve();
    let to = hook(&server, "it", json!(true));
    assert!(to.starts_with("/in/") && to.len() >= 4 + 22, "{to}");
    let bodies: [(&str, &[u8], Value); 11] = [
        ("application/json", br#"{"a": [1]}"#, json!({"a": [1]})),
        ("application/cloudevents+json; charset=utf-8", br#"{"a": 1}"#, json!({"a": 1})),
        ("application/x-www-form-urlencoded", b"a=1&b=x%20y", json!({"a": "1", "b": "x y"})),
        ("text/plain", b"hello", json!("hello")),
        ("application/xml", b"<a/>", json!("<a/>")),
        ("image/png", &[0, 255, 16], json!("AP8Q")),
        ("", br#"{"a": 1}"#, json!({"a": 1})),
        ("", b"not json", json!("not json")),
        ("application/json", b"", json!({})),
        ("text/plain", b"", json!({})),
        ("image/png", b"", json!({})),
    ];
    for (kind, bytes, expected) in bodies {
        let headers = if kind.is_empty() { vec![] } else { vec![("content-type", kind)] };
        let answer = server.without_key().send("POST", &to, &headers, Some(bytes.to_vec()));
        assert_eq!(output(&server.api, answer)["body"], expected, "{kind:?}");
    }
    let broken = [("content-type", "application/json")];
    server.without_key().send("POST", &to, &broken, Some(b"{".into())).refused(400, "invalid-json");
    server.without_key().get(&to).is(405);
}

#[test]
fn a_run_sees_the_query_of_a_call_and_the_headers_of_an_api_request() {
    let place = Installation::new();
    let server = place.serve();
    let definition = json!({"name": "it", "trigger": {"webhook": true}, "tasks": {"rest": {"sleep": 0}},
        "output": {"query": "{{trigger.query}}", "headers": "{{trigger.headers}}",
            "q": "{{trigger.query.q ?? null}}"}});
    server.api.define(&definition);
    let to = address(&server.api, "it");
    let answer = server.without_key().send("POST", &format!("{to}?q=a%20b&n=1&n=2&%C3%A9"), &[], None);
    let seen = output(&server.api, answer);
    assert_eq!(seen["query"], json!({"q": "a b", "n": "2", "é": ""}));
    assert_eq!(seen["q"], "a b");
    let headers = [
        ("x-request-id", "r-7"),
        ("idempotency-key", "k"),
        ("cookie", "hidden=1"),
        ("prefer", "respond-async"),
        ("x-stepwell-scheduled-at", "forged"),
    ];
    let answer = server.api.send("POST", "/api/v1/workflows/it/trigger?label=a%3Db", &headers, Some(b"{}".into()));
    let run = answer.is(201).data()["run_id"].as_str().unwrap().to_string();
    let seen = server.api.end(&run)["output"].clone();
    assert_eq!((&seen["headers"]["x-request-id"], &seen["query"]), (&json!("r-7"), &json!({})));
    for (hidden, _) in &headers[1..] {
        assert!(seen["headers"].get(hidden).is_none(), "{hidden}: {seen}");
    }
    assert!(seen["headers"].get("authorization").is_none(), "{seen}");
    // The same run again has the same headers.
    let again = server.api.post(&format!("/api/v1/runs/{run}/rerun"), &json!({})).is(201).data()["run_id"].clone();
    assert_eq!(server.api.end(again.as_str().unwrap())["output"], seen);
}

#[test]
fn headers_are_seen_but_not_those_that_prove_who_somebody_is() {
    let place = Installation::new();
    let server = place.serve();
    let to = hook(&server, "it", json!(true));
    let secrets = [
        ("authorization", "Bearer hidden-1"),
        ("cookie", "stepwell_session=hidden-2"),
        ("proxy-authorization", "Basic hidden-3"),
        ("x-api-key", "hidden-4"),
    ];
    let mut headers = vec![("x-event", "push"), ("X-Mixed-Case", "Kept As It Is")];
    headers.extend(secrets);
    let run = server.without_key().send("POST", &to, &headers, Some(b"{}".into())).is(202).data()["run_id"].clone();
    let run = server.api.end(run.as_str().unwrap());
    assert_eq!(run["output"]["headers"]["x-event"], "push");
    assert_eq!(run["output"]["headers"]["x-mixed-case"], "Kept As It Is");
    server.stop();
    assert!(!run.to_string().contains("hidden-"), "{run:#}");
    let all = place.bytes();
    assert!(!all.windows(7).any(|part| part == b"hidden-"), "a secret header is in the files");
}

fn mac(secret: &[u8], text: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).unwrap();
    mac.update(text);
    mac.finalize().into_bytes().to_vec()
}

#[test]
fn a_signature_in_a_header_is_checked_with_the_secret_of_the_server() {
    let place = Installation::new().variable("STEPWELL_SECRET_SHOP", "s3cret");
    let server = place.serve();
    let verify = json!({"secret": "SHOP", "header": "X-Signature", "prefix": "sha256="});
    let to = hook(&server, "it", json!({"verify": verify}));
    let anyone = server.without_key();
    let send = |body: &str, signature: Option<&str>| {
        let headers: Vec<(&str, &str)> = signature.into_iter().map(|code| ("x-signature", code)).collect();
        anyone.send("POST", &to, &headers, Some(body.into()))
    };
    let hex = |bytes: Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let signed = |secret: &str, body: &str| format!("sha256={}", hex(mac(secret.as_bytes(), body.as_bytes())));
    send(r#"{"n":1}"#, Some(&signed("s3cret", r#"{"n":1}"#))).is(202);
    let bare = hex(mac(b"s3cret", b"{}"));
    for wrong in
        [None, Some(""), Some("sha256="), Some(&*signed("other", "{}")), Some(&*signed("s3cret", "{ }")), Some(&*bare)]
    {
        let refused = send("{}", wrong);
        assert!([401, 403].contains(&refused.status), "{wrong:?}: {}", refused.text());
        assert!(!refused.text().contains("s3cret"));
    }
    assert_eq!(server.api.get("/api/v1/runs").data().as_array().unwrap().len(), 1);
    // A secret that is not there lets no one in.
    let to = hook(&server, "none", json!({"verify": {"secret": "ABSENT", "header": "X-Signature"}}));
    let empty = hex(mac(b"", b"{}"));
    let refused = anyone.send("POST", &to, &[("x-signature", &empty)], Some(b"{}".into()));
    assert!([401, 403, 503].contains(&refused.status), "{}", refused.text());
    assert_eq!(server.api.get("/api/v1/runs").data().as_array().unwrap().len(), 1);
}

#[test]
fn a_standard_webhook_must_be_signed_and_recent() {
    let place = Installation::new().variable("STEPWELL_SECRET_HOOK", "whsec_c2FuZHdpY2gtb2YtYnl0ZXM=");
    let server = place.serve();
    let to = hook(&server, "it", json!({"verify": {"secret": "HOOK"}, "dedupe": {"header": "webhook-id"}}));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let send = |id: &str, at: u64, body: &str, secret: &[u8]| {
        let at = at.to_string();
        let code = format!("v1,{}", BASE64.encode(mac(secret, format!("{id}.{at}.{body}").as_bytes())));
        let headers = [("webhook-id", id), ("webhook-timestamp", &at), ("webhook-signature", &code)];
        server.without_key().send("POST", &to, &headers, Some(body.into()))
    };
    let secret = b"sandwich-of-bytes";
    let run = send("msg_1", now, "{}", secret).is(202).data()["run_id"].clone();
    // The same message, sent again.
    assert_eq!(send("msg_1", now, "{}", secret).is(200).data()["run_id"], run);
    for refused in [send("msg_2", now, "{}", b"other"), send("msg_2", now - 3600, "{}", secret)] {
        assert!([401, 403].contains(&refused.status), "{}", refused.text());
    }
    let refused = server.without_key().post(&to, &json!({}));
    assert!([401, 403].contains(&refused.status), "{}", refused.text());
    assert_eq!(server.api.get("/api/v1/runs").data().as_array().unwrap().len(), 1);
}

#[test]
fn events_that_say_they_are_the_same_start_one_run() {
    let place = Installation::new();
    let server = place.serve();
    let by_header = hook(&server, "header", json!({"dedupe": {"header": "X-Delivery"}}));
    let by_body = hook(&server, "body", json!({"dedupe": {"body": "event.id"}}));
    let anyone = server.without_key();
    let call = |to: &str, id: &str, body: Value| {
        anyone.send(
            "POST",
            to,
            &[("x-delivery", id), ("content-type", "application/json")],
            Some(body.to_string().into()),
        )
    };
    let first = call(&by_header, "d1", json!({"n": 1})).is(202).data()["run_id"].clone();
    assert_eq!(call(&by_header, "d1", json!({"n": 2})).is(200).data()["run_id"], first);
    assert_ne!(call(&by_header, "d2", json!({"n": 1})).is(202).data()["run_id"], first);
    let first = call(&by_body, "", json!({"event": {"id": 7}, "try": 1})).is(202).data()["run_id"].clone();
    assert_eq!(call(&by_body, "", json!({"event": {"id": 7}, "try": 2})).is(200).data()["run_id"], first);
    assert_ne!(call(&by_body, "", json!({"event": {"id": 8}})).is(202).data()["run_id"], first);
    // What does not say is never the same.
    call(&by_body, "", json!({})).is(202);
    call(&by_body, "", json!({})).is(202);
    // Many at once are one, too.
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let calls: Vec<_> = (0..8).map(|_| scope.spawn(|| call(&by_header, "d3", json!({})).status)).collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 202).count(), 1, "{statuses:?}");
}

#[test]
fn an_address_follows_its_workflow() {
    let place = Installation::new();
    let server = place.serve();
    let api = &server.api;
    let to = hook(&server, "it", json!(true));
    let call = |to: &str| server.without_key().post(to, &json!({}));
    // A new version keeps it.
    let newer = json!({"name": "it", "trigger": "webhook", "tasks": {"rest": {"sleep": "0s"}}});
    api.call("PUT", "/api/v1/workflows/it", &newer).is(200);
    assert_eq!(address(api, "it"), to);
    call(&to).is(202);
    // Switched off, it refuses; switched on, it works again.
    api.call("PATCH", "/api/v1/workflows/it", &json!({"enabled": false})).is(200);
    call(&to).refused(409, "workflow-disabled");
    api.call("PATCH", "/api/v1/workflows/it", &json!({"enabled": true})).is(200);
    call(&to).is(202);
    // Rotated, the old one leads nowhere.
    let rotated = api.send("POST", "/api/v1/workflows/it/rotate-webhooks", &[], None).is(200).data();
    let new = rotated[0].as_str().unwrap().strip_prefix(&server.url).unwrap().to_string();
    assert_ne!(new, to);
    call(&to).refused(404, "not-found");
    call(&new).is(202);
    // Only callers who may change the workflow see it.
    let reader = api.new_user("ann", &["workflow.read"]);
    let shown = reader.get("/api/v1/workflows/it").is(200).text();
    assert!(!shown.contains("/in/"), "{shown}");
    // Deleted, it is gone.
    api.delete("/api/v1/workflows/it").is(204);
    call(&new).refused(404, "not-found");
    eventually("the runs", || {
        Some(()).filter(|()| api.get("/api/v1/runs?status=completed").data().as_array().unwrap().len() == 3)
    });
}
