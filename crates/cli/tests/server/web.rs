//! Browsers: signing in, cookies, pages of other origins, and host names that resolve here.

use crate::harness::{Answer, Api, Installation, Server};
use crate::raw::{Raw, ask, status};
use serde_json::json;

/// A browser that has followed a link: the pair that it sends from now on.
fn signed_in(server: &Server) -> (String, Answer) {
    let link = server.api.send("POST", "/api/v1/sign-in-links", &[], None).is(201).data();
    let path = link["url"].as_str().unwrap().strip_prefix(&server.url).unwrap();
    let answer = server.without_key().get(path).is(303);
    let cookie = answer.header("set-cookie").split(';').next().unwrap().to_string();
    (cookie, answer)
}

fn with_cookie(anyone: &Api, cookie: &str, method: &str, path: &str, more: &[(&str, &str)]) -> Answer {
    let mut headers = vec![("cookie", cookie)];
    headers.extend(more);
    let body = (method != "GET").then(|| b"{}".to_vec());
    anyone.send(method, path, &headers, body)
}

#[test]
fn a_link_signs_one_browser_in_with_a_cookie_that_scripts_cannot_read() {
    let place = Installation::new();
    let server = place.serve();
    let link = server.link();
    let link = link.strip_prefix(&server.url).unwrap();
    let answer = server.without_key().get(link).is(303);
    let cookie = answer.header("set-cookie").split(';').next().unwrap().to_string();
    let set = answer.header("set-cookie").to_ascii_lowercase();
    assert!(set.contains("httponly") && set.contains("path=/") && set.contains("max-age="), "{set}");
    assert!(set.contains("samesite=lax") || set.contains("samesite=strict"), "{set}");
    assert!(!set.contains("secure"), "over plain HTTP a browser would throw it away: {set}");
    assert_eq!((answer.header("location"), answer.header("cache-control")), ("/", "no-store"));
    let anyone = server.without_key();
    let me = with_cookie(&anyone, &cookie, "GET", "/api/v1/me", &[]).is(200).data();
    assert_eq!((&me["user"], &me["key"]), (&json!("admin"), &json!(null)));
    anyone.get(link).refused(401, "unauthorised");
    anyone.get("/sign-in/wrong").refused(401, "unauthorised");
    // Among other cookies it is found, and a wrong one is no one's.
    with_cookie(&anyone, &format!("a=b; {cookie}; c=d"), "GET", "/api/v1/me", &[]).is(200);
    with_cookie(&anyone, "stepwell_session=wrong", "GET", "/api/v1/me", &[]).refused(401, "unauthorised");
    // It is not in the files in clear.
    let secret = cookie.split_once('=').unwrap().1.as_bytes();
    assert!(!place.bytes().windows(secret.len()).any(|part| part == secret));
    // Signing out ends it.
    let own = [("origin", server.url.as_str())];
    let out = with_cookie(&anyone, &cookie, "POST", "/api/v1/sign-out", &own).is(204);
    assert!(out.header("set-cookie").contains("Max-Age=0"));
    with_cookie(&anyone, &cookie, "GET", "/api/v1/me", &[]).refused(401, "unauthorised");
}

#[test]
fn behind_tls_the_cookie_is_for_tls_only() {
    let place = Installation::new().config("public_url: https://flows.example.com\n");
    let server = place.serve();
    let link = server.link();
    let answer = server.without_key().get(link.strip_prefix("https://flows.example.com").unwrap()).is(303);
    assert!(answer.header("set-cookie").contains("Secure"), "{}", answer.header("set-cookie"));
}

#[test]
fn a_page_of_another_origin_cannot_use_the_cookie_to_change_anything() {
    let place = Installation::new();
    let server = place.serve();
    server.api.define(&json!({"name": "it", "tasks": {"rest": {"sleep": 0}}}));
    let (cookie, _) = signed_in(&server);
    let anyone = server.without_key();
    let trigger = "/api/v1/workflows/it/trigger";
    let port = server.address().rsplit(':').next().unwrap();
    let near = format!("http://127.0.0.1.evil.example:{port}");
    let other_port = "http://127.0.0.1:1".to_string();
    let as_user = format!("http://{}@evil.example", server.address());
    let evil = ["https://evil.example", "null", "", "file://", &near, &other_port, &as_user];
    for origin in evil {
        with_cookie(&anyone, &cookie, "POST", trigger, &[("origin", origin)]).refused(403, "cross-origin");
    }
    // Without an origin no one knows, and another header does not stand in for it.
    with_cookie(&anyone, &cookie, "POST", trigger, &[]).refused(403, "cross-origin");
    with_cookie(&anyone, &cookie, "POST", trigger, &[("referer", &server.url)]).refused(403, "cross-origin");
    for (method, path) in [
        ("PUT", "/api/v1/workflows/it"),
        ("PATCH", "/api/v1/workflows/it"),
        ("DELETE", "/api/v1/workflows/it"),
        ("POST", "/api/v1/keys"),
        ("POST", "/api/v1/sign-out"),
        ("POST", "/api/v1/sign-in-links"),
    ] {
        let foreign = [("origin", "https://evil.example"), ("content-type", "text/plain")];
        with_cookie(&anyone, &cookie, method, path, &foreign).refused(403, "cross-origin");
    }
    assert_eq!(server.api.get("/api/v1/runs").data(), json!([]));
    with_cookie(&anyone, &cookie, "POST", trigger, &[("origin", &server.url)]).is(201);
    // A program with a key has no origin, or any.
    server.api.send("POST", trigger, &[("origin", "https://evil.example")], Some(b"{}".into())).is(201);
}

#[test]
fn answers_are_not_for_pages_of_others_unless_they_are_named() {
    let place = Installation::new();
    let server = place.serve();
    let asked = [("origin", "https://app.example.com"), ("access-control-request-method", "POST")];
    let preflight = server.without_key().send("OPTIONS", "/api/v1/runs", &asked, None);
    assert_eq!(preflight.header("access-control-allow-origin"), "");
    assert_eq!(server.api.send("GET", "/api/v1/me", &asked[..1], None).header("access-control-allow-origin"), "");
    let place = Installation::new().config("cors: {origins: [\"https://app.example.com\"]}\n");
    let server = place.serve();
    let preflight = server.without_key().send("OPTIONS", "/api/v1/runs", &asked, None);
    assert_eq!(preflight.header("access-control-allow-origin"), "https://app.example.com");
    assert_eq!(preflight.header("access-control-allow-credentials"), "", "cookies stay at home");
    let evil = [("origin", "https://evil.example"), ("access-control-request-method", "POST")];
    let refused = server.without_key().send("OPTIONS", "/api/v1/runs", &evil, None);
    assert_eq!(refused.header("access-control-allow-origin"), "");
}

#[test]
fn a_name_that_somebody_else_points_here_is_not_served() {
    let place = Installation::new().config("hosts: [flows.local]\n");
    let server = place.serve();
    let key = server.api.key.clone().unwrap();
    let get = |host: &str, path: &str| {
        let auth = format!("Authorization: Bearer {key}");
        ask(server.address(), &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{auth}\r\nConnection: close\r\n\r\n"))
    };
    for host in [
        "evil.example",
        "evil.example:80",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "flows.local.evil",
        "",
        "a b",
    ] {
        for path in ["/api/v1/me", "/", "/openapi.json", "/wh/x", "/in/x", "/api/v1/events"] {
            let answer = get(host, path);
            assert!([400, 421].contains(&status(&answer)), "{host:?} {path}: {answer}");
        }
    }
    let port = server.address().rsplit(':').next().unwrap();
    for host in
        [server.address(), &format!("localhost:{port}"), "localhost", "[::1]:80", "flows.local", "FLOWS.LOCAL:9"]
    {
        assert_eq!(status(&get(host, "/api/v1/me")), 200, "{host}");
    }
    // Probes come by any name, and say nothing else.
    assert_eq!(status(&get("10.0.0.7:7070", "/healthz")), 200);
    assert_eq!(status(&get("10.0.0.7:7070", "/readyz")), 200);
    // Metrics are for this machine under its own name.
    assert_eq!(status(&get("evil.example", "/metrics")), 403);
    // Two hosts, or one in the request line that says otherwise, do not get around it.
    let twice = "GET /api/v1/me HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
    assert_ne!(status(&ask(server.address(), twice)), 200);
    let none = "GET /api/v1/me HTTP/1.1\r\nConnection: close\r\n\r\n";
    assert!([400, 421].contains(&status(&ask(server.address(), none))));
}

/// The status of an attempt to open a live socket.
fn upgrade(server: &Server, headers: &[(&str, &str)]) -> u16 {
    let mut raw = Raw::open(server.address());
    let mut request = format!(
        "GET /api/v1/ws HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
        server.address()
    );
    headers.iter().for_each(|(name, value)| request += &format!("{name}: {value}\r\n"));
    raw.send(request + "\r\n").unwrap();
    status(&raw.head())
}

#[test]
fn a_live_socket_opens_only_for_pages_of_this_server() {
    let place = Installation::new();
    let server = place.serve();
    let (cookie, _) = signed_in(&server);
    let own = server.url.as_str();
    assert_eq!(upgrade(&server, &[]), 401);
    assert_eq!(upgrade(&server, &[("Cookie", &cookie)]), 403, "a cookie without an origin");
    assert_eq!(upgrade(&server, &[("Cookie", &cookie), ("Origin", "https://evil.example")]), 403);
    assert_eq!(upgrade(&server, &[("Cookie", &cookie), ("Origin", "null")]), 403);
    assert_eq!(upgrade(&server, &[("Cookie", &cookie), ("Origin", own)]), 101);
    let bearer = format!("Bearer {}", server.api.key.as_deref().unwrap());
    assert_eq!(upgrade(&server, &[("Authorization", &bearer)]), 101);
    assert_eq!(upgrade(&server, &[("Authorization", "Bearer sw_wrong")]), 401);
}

#[test]
fn a_sessions_secret_is_not_a_key_and_a_key_is_not_a_session() {
    let place = Installation::new();
    let server = place.serve();
    let (cookie, _) = signed_in(&server);
    let anyone = server.without_key();
    // Used once, so that the server may remember it.
    with_cookie(&anyone, &cookie, "GET", "/api/v1/me", &[]).is(200);
    server.api.get("/api/v1/me").is(200);
    let secret = cookie.split_once('=').unwrap().1;
    server.with_key(secret).get("/api/v1/me").refused(401, "unauthorised");
    let key = format!("stepwell_session={}", server.api.key.as_deref().unwrap());
    with_cookie(&anyone, &key, "GET", "/api/v1/me", &[]).refused(401, "unauthorised");
}

#[test]
fn an_administrator_makes_a_link_that_signs_somebody_else_in() {
    let place = Installation::new();
    let server = place.serve();
    let ann = server.api.new_user("ann", &["workflow.read", "workflow.approve"]);
    ann.send("POST", "/api/v1/sign-in-links", &[], None).refused(403, "forbidden");
    ann.send("POST", "/api/v1/sign-in-links?user=admin", &[], None).refused(403, "forbidden");
    server.api.send("POST", "/api/v1/sign-in-links?user=nobody", &[], None).refused(404, "not-found");
    let said = place.stepwell(&["login", "--user", "ann"]);
    let link = said.trim().strip_prefix(&server.url).unwrap().to_string();
    let browser = server.without_key();
    let cookie = browser.get(&link).is(303).header("set-cookie").split(';').next().unwrap().to_string();
    let me = browser.send("GET", "/api/v1/me", &[("cookie", &cookie)], None).is(200).data();
    assert_eq!(me["user"], "ann", "{me:#}");
    // It is no administrator's session.
    browser.send("GET", "/api/v1/audit", &[("cookie", &cookie)], None).refused(403, "forbidden");
}
