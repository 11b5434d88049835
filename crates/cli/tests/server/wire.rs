//! Hostile bodies and connections, and values in templates that must not change a request.

use crate::harness::{Installation, eventually};
use crate::outside::Outside;
use crate::raw::{Raw, ask, status};
use serde_json::{Value, json};
use std::time::Instant;

fn nap() -> Value {
    json!({"name": "nap", "trigger": ["api", "webhook"], "tasks": {"rest": {"sleep": 0}}})
}

#[test]
fn a_body_that_is_too_long_is_refused_wherever_it_is_sent() {
    let place = Installation::new().config("limits: {body: 20KB}\n");
    let server = place.serve();
    server.api.define(&nap());
    let hook = server.api.get("/api/v1/workflows/nap").data()["webhooks"][0].as_str().unwrap().to_string();
    let hook = hook.strip_prefix(&server.url).unwrap().to_string();
    let body = json!({"text": "a".repeat(21 * 1024)}).to_string();
    for (method, path) in [
        ("POST", "/api/v1/workflows"),
        ("PUT", "/api/v1/workflows/nap"),
        ("POST", "/api/v1/workflows/nap/trigger"),
        ("POST", "/api/v1/test-runs"),
        ("POST", "/api/v1/check"),
        ("POST", "/api/v1/users"),
        ("POST", "/api/v1/runs/cancel"),
        ("POST", &hook),
    ] {
        server.api.send(method, path, &[], Some(body.clone().into())).refused(413, "body-too-large");
    }
    // Without a length, too.
    let key = server.api.key.as_deref().unwrap();
    let chunk = format!("{:x}\r\n{}\r\n", 16 * 1024, "a".repeat(16 * 1024));
    let head = format!(
        "POST /api/v1/workflows/nap/trigger HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {key}\r\n\
         Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n",
        server.address()
    );
    let mut raw = Raw::open(server.address());
    raw.send(head).unwrap();
    // It may have been refused before the last one.
    let _ = (0..3).try_for_each(|_| raw.send(&chunk)).and_then(|()| raw.send("0\r\n\r\n"));
    assert_eq!(status(&raw.rest()), 413);
    let fits = json!({"text": "a".repeat(19 * 1024)});
    server.api.post("/api/v1/workflows/nap/trigger?wait=60s", &fits).is(200);
}

#[test]
fn a_body_that_is_nested_too_deep_is_refused_and_affects_no_other() {
    let place = Installation::new();
    let server = place.serve();
    server.api.define(&nap());
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let send = |path: &str, body: String| {
        server.api.send("POST", path, &[("content-type", "application/json")], Some(body.into()))
    };
    for depth in [101, 5_000, 1_000_000] {
        for path in ["/api/v1/workflows/nap/trigger", "/api/v1/test-runs", "/api/v1/runs/cancel"] {
            let answer = send(path, nested(depth));
            assert_eq!(answer.status, 400, "{path} {depth}: {}", answer.text());
        }
        for path in ["/api/v1/workflows", "/api/v1/check"] {
            let answer = send(path, nested(depth));
            assert!([400, 422].contains(&answer.status), "{path} {depth}: {}", answer.text());
            let yaml = format!("name: x\ntasks: {}", nested(depth));
            let answer = server.api.send("POST", path, &[("content-type", "application/yaml")], Some(yaml.into()));
            assert!([400, 422].contains(&answer.status), "{path} {depth}: {}", answer.text());
        }
    }
    let hook = server.api.get("/api/v1/workflows/nap").data()["webhooks"][0].as_str().unwrap().to_string();
    let hook = hook.strip_prefix(&server.url).unwrap();
    // Without a content type it may be text; then it is no nesting at all.
    for depth in [101, 1_000_000] {
        let answer = server.without_key().send("POST", hook, &[], Some(nested(depth).into()));
        assert!([202, 400, 422].contains(&answer.status), "{}", answer.text());
    }
    send("/api/v1/workflows/nap/trigger?wait=60s", nested(99)).is(200);
    server.api.get("/readyz").is(200);
}

#[test]
fn a_client_that_is_slow_with_its_head_is_cut_off() {
    let place = Installation::new().config("limits: {header_timeout: 300ms}\n");
    let server = place.serve();
    for beginning in ["", "GET /", "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: "] {
        let mut raw = Raw::open(server.address());
        let begun = Instant::now();
        raw.send(beginning).unwrap();
        // One byte at a time does not put it off.
        eventually("the end of a slow connection", || {
            if !beginning.is_empty() && raw.send("a").is_err() { Some(()) } else { closed(&raw).then_some(()) }
        });
        assert!(begun.elapsed().as_millis() >= 250, "{beginning:?} was cut off too soon");
    }
    server.api.get("/readyz").is(200);
}

/// Whether the other side has closed: a look that waits for nothing.
fn closed(raw: &Raw) -> bool {
    raw.stream.set_nonblocking(true).unwrap();
    let peeked = raw.stream.peek(&mut [0; 1]);
    raw.stream.set_nonblocking(false).unwrap();
    match peeked {
        Ok(0) => true,
        Ok(_) => false,
        Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
    }
}

#[test]
fn a_client_that_is_slow_with_its_body_is_cut_off_and_starts_nothing() {
    let place = Installation::new().config("limits: {body_timeout: 300ms}\n");
    let server = place.serve();
    server.api.define(&nap());
    let key = server.api.key.as_deref().unwrap();
    let mut raw = Raw::open(server.address());
    let head = format!(
        "POST /api/v1/workflows/nap/trigger HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\
         Content-Length: 1000\r\n\r\n[1"
    );
    raw.send(head).unwrap();
    assert_eq!(status(&raw.rest()), 408);
    assert_eq!(server.api.get("/api/v1/runs").data(), json!([]));
}

#[test]
fn many_idle_connections_keep_no_other_client_out() {
    let place = Installation::new();
    let server = place.serve();
    let idle: Vec<Raw> = (0..300).map(|_| Raw::open(server.address())).collect();
    server.api.get("/readyz").is(200);
    drop(idle);
}

#[test]
fn a_head_that_is_too_long_is_refused() {
    let place = Installation::new();
    let server = place.serve();
    let long = "a".repeat(256 * 1024);
    let mut raw = Raw::open(server.address());
    // It may be refused before all of it is there.
    let _ = raw.send(format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: {long}\r\n\r\n"));
    let answer = raw.rest();
    assert!(answer.is_empty() || status(&answer) == 431, "{answer}");
    server.api.get("/readyz").is(200);
}

#[test]
fn requests_that_two_readers_would_read_differently_are_refused() {
    let place = Installation::new();
    let server = place.serve();
    for framing in [
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Content-Length: -1",
        "Content-Length: 0x5",
        "Transfer-Encoding: chunked, identity",
    ] {
        let hidden = "0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        let request = format!("POST /api/v1/check HTTP/1.1\r\nHost: localhost\r\n{framing}\r\n\r\n{hidden}");
        let mut raw = Raw::open(server.address());
        raw.send(request).unwrap();
        raw.stream.shutdown(std::net::Shutdown::Write).unwrap();
        let answer = raw.rest();
        assert!(!answer.contains("\r\n\r\nok\n"), "{framing}: a hidden request was answered: {answer}");
    }
}

#[test]
fn line_ends_from_an_input_do_not_become_headers() {
    let place = Installation::new();
    let server = place.serve();
    let outside = Outside::start();
    server.api.define(&json!({"name": "it", "tasks": {
        "value": {"url": format!("{}/value", outside.url), "headers": {"X-Name": "{{trigger.body.name}}"}},
        "part": {"url": format!("{}/part", outside.url), "headers": {"X-Name": "mr {{trigger.body.name}} sir"}},
        "url": {"url": format!("{}/url?q={{{{trigger.body.name}}}}", outside.url)},
    }}));
    for name in ["a\r\nX-Evil: 1", "a\nX-Evil: 1", "a\rX-Evil: 1", "a\r\n\r\nGET /evil HTTP/1.1\r\n\r\n", "a\0b"] {
        let run = server.api.finished("it", &json!({"name": name}));
        for step in ["value", "part"] {
            let status = run["tasks"][step]["status"].as_str().unwrap();
            assert!(["failed", "template_error"].contains(&status), "{step} with {name:?}: {run:#}");
        }
    }
    assert_eq!(outside.calls("/value").len() + outside.calls("/part").len() + outside.calls("/evil").len(), 0);
    let all = outside.all();
    assert!(all.iter().all(|call| call.header("x-evil").is_none()), "{all:?}");
    // What is harmless goes out.
    let run = server.api.finished("it", &json!({"name": "ann"}));
    assert_eq!(run["status"], "completed", "{run:#}");
    assert_eq!(outside.calls("/part")[0].header("x-name"), Some("mr ann sir"));
}

#[test]
fn names_of_headers_cannot_be_made_up_by_an_input() {
    let place = Installation::new();
    let server = place.serve();
    let outside = Outside::start();
    server.api.define(&json!({"name": "it", "trigger": "webhook", "tasks": {
        "go": {"url": format!("{}/go", outside.url), "headers": {"X-From": "{{trigger.headers.x-from}}"}},
    }}));
    let hook = server.api.get("/api/v1/workflows/it").data()["webhooks"][0].as_str().unwrap().to_string();
    let hook = hook.strip_prefix(&server.url).unwrap().to_string();
    server.without_key().send("POST", &hook, &[("x-from", "somebody")], Some(b"{}".into())).is(202);
    assert_eq!(outside.called("/go", 1)[0].header("x-from"), Some("somebody"));
}

#[test]
fn ids_that_climb_lead_nowhere() {
    let place = Installation::new();
    let server = place.serve();
    server.api.define(&nap());
    let key = server.api.key.as_deref().unwrap();
    // As it is: a decent client would tidy the path up.
    let send = |method: &str, path: &str| {
        let head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n");
        ask(server.address(), &format!("{head}Content-Length: 2\r\nConnection: close\r\n\r\n{{}}"))
    };
    let odd = [
        "..%2f..%2fetc%2fpasswd",
        "..%5c..%5c",
        "%2e%2e",
        "%00",
        "nap%00",
        "nap%2f..%2fnap",
        "..%252f",
        "'%20OR%201=1--",
        "%F0%9F%92%A9",
        "run_%25",
        "_%25",
        "*",
        "-1",
        "99999999999999999999999999",
    ];
    for id in odd.into_iter().map(str::to_string).chain([("a").repeat(8_000)]) {
        for path in [
            format!("/api/v1/workflows/{id}"),
            format!("/api/v1/workflows/{id}/schedule"),
            format!("/api/v1/workflows/nap/versions/{id}"),
            format!("/api/v1/runs/{id}"),
            format!("/api/v1/runs/{id}/events"),
            format!("/api/v1/runs/{id}/stream"),
            format!("/api/v1/users/{id}"),
            format!("/sign-in/{id}"),
            format!("/wh/{id}"),
            format!("/docs/{id}"),
        ] {
            let answer = send("GET", &path);
            assert!([400, 401, 404, 422, 429].contains(&status(&answer)), "{path}: {answer}");
        }
        for (method, path) in [
            ("DELETE", format!("/api/v1/keys/{id}")),
            ("DELETE", format!("/api/v1/test-runs/{id}")),
            ("POST", format!("/api/v1/steps/{id}/ready")),
            ("POST", format!("/in/{id}")),
            ("POST", format!("/api/v1/runs/{id}/cancel")),
            ("DELETE", format!("/api/v1/workflows/{id}")),
        ] {
            let answer = send(method, &path);
            assert!([400, 404, 422, 429].contains(&status(&answer)), "{method} {path}: {answer}");
        }
    }
    // A path in plain dots is resolved by no one.
    let plain = "GET /api/v1/workflows/../../../etc/passwd HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    assert!([400, 401, 404].contains(&status(&ask(server.address(), plain))));
}

#[test]
fn refusals_tell_nothing_of_the_machine_or_of_secrets() {
    let place = Installation::new().variable("STEPWELL_SECRET_TOKEN", "the-secret-itself");
    let server = place.serve();
    let outside = Outside::start();
    outside.answer("/go", 400, json!({"you-sent": "the-secret-itself"}));
    let api = &server.api;
    api.define(&json!({"name": "it", "tasks": {
        "go": {"url": format!("{}/go", outside.url), "headers": {"Authorization": "Bearer {{secrets.TOKEN}}"}},
        "gone": {"url": "http://127.0.0.1:1/{{secrets.TOKEN}}", "retries": 0},
    }}));
    let run = api.finished("it", &json!({}));
    assert_eq!(outside.calls("/go")[0].header("authorization"), Some("Bearer the-secret-itself"));
    let id = run["id"].as_str().unwrap();
    let key = api.key.clone().unwrap();
    let directory = place.data().to_string_lossy().into_owned();
    let mut said = vec![run.to_string(), api.get(&format!("/api/v1/runs/{id}/events")).text()];
    for (method, path, body) in [
        ("GET", "/api/v1/runs/none", ""),
        ("POST", "/api/v1/workflows", "{"),
        ("POST", "/api/v1/users", "{\"name\": []}"),
        ("GET", "/api/v1/runs?limit=x", ""),
        ("POST", "/in/none", "{}"),
        ("GET", "/sign-in/none", ""),
        ("GET", "/metrics", ""),
        ("GET", "/readyz", ""),
        ("GET", "/api/v1/me", ""),
        ("GET", "/api/v1/keys", ""),
        ("GET", "/api/v1/audit", ""),
    ] {
        said.push(api.send(method, path, &[], Some(body.into())).text());
        said.push(server.with_key("sw_some-wrong-key").send(method, path, &[], Some(body.into())).text());
    }
    let log = server.stop();
    said.push(log);
    for text in &said {
        for hidden in [
            &*key,
            "the-secret-itself",
            &directory,
            env!("CARGO_MANIFEST_DIR"),
            ".rs:",
            "panicked",
            "sw_some-wrong-key",
        ] {
            assert!(!text.contains(hidden), "{hidden:?} is in {text}");
        }
    }
    let all = place.bytes();
    assert!(!all.windows(17).any(|part| part == b"the-secret-itself"), "the secret is in the files");
}

#[test]
fn steps_never_reach_the_metadata_of_a_cloud() {
    let place = Installation::new().config("private_addresses: true\n");
    let server = place.serve();
    let hosts =
        ["169.254.169.254", "[fe80::1]", "[::ffff:169.254.169.254]", "0xA9FEA9FE", "2852039166", "0251.0376.0251.0376"];
    let tasks: serde_json::Map<String, Value> = hosts
        .iter()
        .enumerate()
        .map(|(n, host)| {
            (format!("s{n}"), json!({"url": format!("http://{host}/latest"), "retries": 0, "timeout": "5s"}))
        })
        .collect();
    server.api.define(&json!({"name": "it", "tasks": tasks}));
    let run = server.api.finished("it", &json!({}));
    for (name, task) in run["tasks"].as_object().unwrap() {
        assert_eq!(task["error"]["code"], "egress_refused", "{name}: {task:#}");
    }
}
