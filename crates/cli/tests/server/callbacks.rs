//! Callbacks of waits: early, in time, late, repeated, unknown.

use crate::harness::{Installation, Server};
use crate::outside::Outside;
use serde_json::{Value, json};

/// A run that sent its callback address to the test, and holds before its wait until it is released.
fn told(server: &Server, outside: &Outside, timeout: &str) -> (String, String) {
    server.api.define(&json!({"name": "it", "tasks": {
        "tell": {"url": format!("{}/tell", outside.url), "body": {"to": "{{wait.heard.url}}"}},
        "heard": {"needs": ["tell"], "wait_for_webhook": {"timeout": timeout}},
    }, "output": "{{tasks.heard.body ?? null}}"}));
    let run = server.api.trigger("it", &json!({}));
    let to = outside.called("/tell", 1)[0].json()["to"].as_str().unwrap().to_string();
    (run, to.strip_prefix(&server.url).unwrap().to_string())
}

#[test]
fn a_call_that_comes_before_its_step_is_kept_across_a_crash() {
    let place = Installation::new();
    let server = place.serve();
    let outside = Outside::start();
    outside.hold("/tell");
    let (run, to) = told(&server, &outside, "1h");
    server.without_key().post(&to, &json!({"n": 1})).is(200);
    server.without_key().post(&to, &json!({"n": 2})).refused(409, "repeated");
    server.kill();
    outside.let_go("/tell");
    let server = place.serve();
    let end = server.api.end(&run);
    assert_eq!((&end["status"], &end["output"]), (&json!("completed"), &json!({"n": 1})));
}

#[test]
fn a_call_counts_once() {
    let place = Installation::new();
    let server = place.serve();
    let outside = Outside::start();
    let (run, to) = told(&server, &outside, "1h");
    server.api.step(&run, "heard", "waiting");
    let page = server.without_key().get(&to).is(200);
    assert!(page.header("content-type").starts_with("text/html") && page.text().contains("POST"));
    assert_eq!(server.api.run(&run)["status"], "running", "looking delivers nothing");
    assert_eq!(server.without_key().post(&to, &json!({"n": 1})).is(200).data(), json!({"received": true}));
    assert_eq!(server.api.end(&run)["output"], json!({"n": 1}));
    server.without_key().post(&to, &json!({"n": 2})).refused(409, "repeated");
    server.without_key().get(&to).refused(409, "repeated");
    server.api.post(&format!("/api/v1/runs/{run}/steps/heard/deliver"), &json!({})).refused(409, "repeated");
    assert_eq!(server.api.run(&run)["output"], json!({"n": 1}));
}

#[test]
fn a_long_call_is_truncated_and_marked_or_refused_as_configured() {
    const LIMIT: usize = 256 * 1024;
    let long = json!({"text": "ä".repeat(LIMIT)}).to_string();
    for (early, kind, body, expected) in [
        (false, "application/json", long.as_bytes(), LIMIT - 1),
        (true, "text/plain", &vec![b'x'; LIMIT + 1], LIMIT),
        (false, "image/png", &vec![255; 2 * LIMIT], LIMIT.div_ceil(3) * 4),
    ] {
        let (place, outside) = (Installation::new(), Outside::start());
        let server = place.serve();
        if early {
            outside.hold("/tell");
        }
        let (run, to) = told(&server, &outside, "1h");
        server.without_key().send("POST", &to, &[("content-type", kind)], Some(body.to_vec())).is(200);
        if early {
            outside.let_go("/tell");
        }
        let end = server.api.end(&run);
        assert_eq!(end["tasks"]["heard"]["status"], "success", "{kind}");
        assert_eq!(end["tasks"]["heard"]["is_truncated"], true, "{kind}");
        assert_eq!(end["output"].as_str().map(str::len), Some(expected), "{kind}");
    }
    let (place, outside) = (Installation::new(), Outside::start());
    let server = place.serve();
    let (run, to) = told(&server, &outside, "1h");
    server.without_key().send("POST", &to, &[("content-type", "text/plain")], Some(vec![b'x'; LIMIT])).is(200);
    assert_eq!(server.api.end(&run)["output"].as_str().map(str::len), Some(LIMIT));
    let place = Installation::new().config("limits: {long_callbacks: refuse}");
    let server = place.serve();
    let outside = Outside::start();
    let (run, to) = told(&server, &outside, "1h");
    server.without_key().send("POST", &to, &[], Some(vec![b'x'; LIMIT + 1])).refused(413, "body-too-large");
    server.without_key().post(&to, &json!("short")).is(200);
    assert_eq!(server.api.end(&run)["output"], "short");
}

#[test]
fn of_many_calls_at_the_same_time_one_counts() {
    let place = Installation::new();
    let server = place.serve();
    let outside = Outside::start();
    let (run, to) = told(&server, &outside, "1h");
    let anyone = server.without_key();
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let calls: Vec<_> = (0..12)
            .map(|n| {
                scope.spawn({
                    let (anyone, to) = (&anyone, &to);
                    move || anyone.post(to, &json!({"n": n})).status
                })
            })
            .collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    assert!(statuses.iter().all(|status| [200, 409].contains(status)), "{statuses:?}");
    let heard = server.api.end(&run)["output"]["n"].as_u64().unwrap();
    assert_eq!(statuses[usize::try_from(heard).unwrap()], 200, "the one that was told so counts");
}

#[test]
fn a_call_that_comes_too_late_is_told_so() {
    let place = Installation::new();
    let server = place.serve();
    let outside = Outside::start();
    let (run, to) = told(&server, &outside, "50ms");
    assert_eq!(server.api.end(&run)["tasks"]["heard"]["status"], "timeout");
    server.without_key().post(&to, &json!({})).refused(410, "step-finished");
    server.without_key().get(&to).refused(410, "step-finished");
}

#[test]
fn a_call_for_a_run_that_was_cancelled_is_told_so() {
    let place = Installation::new();
    let server = place.serve();
    let outside = Outside::start();
    let (run, to) = told(&server, &outside, "1h");
    server.api.step(&run, "heard", "waiting");
    server.api.post(&format!("/api/v1/runs/{run}/cancel"), &json!({})).is(200);
    let late = server.without_key().post(&to, &json!({})).is(410);
    assert!(["run-finished", "step-finished"].contains(&late.json()["code"].as_str().unwrap()));
}

#[test]
fn an_address_that_was_not_given_out_leads_nowhere() {
    let place = Installation::new();
    let server = place.serve();
    let outside = Outside::start();
    let (run, to) = told(&server, &outside, "1h");
    server.api.step(&run, "heard", "waiting");
    let anyone = server.without_key();
    let token = to.strip_prefix("/wh/").unwrap();
    let mut parts: Vec<&str> = token.split('.').collect();
    let signature = parts.pop().unwrap();
    // 128 bits as text are 22 letters.
    assert!(signature.len() >= 22, "{signature}");
    let flipped = if signature.starts_with('A') { "B" } else { "A" };
    let head = parts.join(".");
    for wrong in [
        format!("{head}.{flipped}{}", &signature[1..]),
        format!("{head}.{}", &signature[1..]),
        format!("{head}."),
        head.clone(),
        format!("{}.{}.{signature}", parts[0], "dGVsbA"),
        "x".repeat(5000),
        "%00".into(),
        "..%2f..%2fapi%2fv1%2fme".into(),
    ] {
        for answer in [anyone.post(&format!("/wh/{wrong}"), &json!({})), anyone.get(&format!("/wh/{wrong}"))] {
            // A caller who guesses too often gets no answer at all.
            assert!([404, 429].contains(&answer.status), "{wrong}: {}", answer.text());
        }
    }
    assert_eq!(server.api.run(&run)["status"], "running");
}

#[test]
fn callbacks_take_whatever_kind_of_body_comes() {
    let place = Installation::new();
    let server = place.serve();
    let outside = Outside::start();
    let bodies: [(&str, &[u8], Value); 5] = [
        ("application/json", br#"{"a": 1}"#, json!({"a": 1})),
        ("application/x-www-form-urlencoded", b"a=1&b=x%20y", json!({"a": "1", "b": "x y"})),
        ("text/plain", b"hello", json!("hello")),
        ("application/octet-stream", &[0, 255], json!("AP8=")),
        ("", b"", json!({})),
    ];
    server.api.define(&json!({"name": "it", "tasks": {
        "tell": {"url": format!("{}/tell", outside.url), "body": {"to": "{{wait.heard.url}}"}},
        "heard": {"needs": ["tell"], "wait_for_webhook": {"timeout": "1h"}},
    }}));
    for (n, (kind, bytes, expected)) in bodies.into_iter().enumerate() {
        let run = server.api.trigger("it", &json!({}));
        let to = outside.called("/tell", n + 1)[n].json()["to"].as_str().unwrap().to_string();
        let headers = if kind.is_empty() { vec![] } else { vec![("content-type", kind)] };
        let path = to.strip_prefix(&server.url).unwrap();
        server.without_key().send("POST", path, &headers, Some(bytes.to_vec())).is(200);
        let heard = server.api.end(&run)["tasks"]["heard"]["output"].clone();
        assert_eq!(heard, expected, "{kind:?}");
    }
}

#[test]
fn addresses_begin_with_the_public_one() {
    let place = Installation::new().config("public_url: https://flows.example.com/base/\nprivate_addresses: true\n");
    let server = place.serve();
    let outside = Outside::start();
    server.api.define(&json!({"name": "it", "trigger": "webhook", "tasks": {
        "tell": {"url": format!("{}/tell", outside.url), "body": {"to": "{{wait.heard.url}}"}},
        "heard": {"needs": ["tell"], "wait_for_webhook": {"timeout": "1h"}},
    }}));
    server.api.trigger("it", &json!({}));
    let to = outside.called("/tell", 1)[0].json()["to"].as_str().unwrap().to_string();
    assert!(to.starts_with("https://flows.example.com/base/wh/"), "{to}");
    let hook = server.api.get("/api/v1/workflows/it").data()["webhooks"][0].as_str().unwrap().to_string();
    assert!(hook.starts_with("https://flows.example.com/base/in/"), "{hook}");
    let link = server.link();
    assert!(link.starts_with("https://flows.example.com/base/sign-in/"), "{link}");
}
