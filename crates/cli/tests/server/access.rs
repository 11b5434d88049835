//! Keys and rights: how keys are stored, what a narrow key can do, and rate limits.

use crate::harness::{Installation, eventually};
use crate::raw::{ask, status};
use serde_json::{Value, json};

#[test]
fn keys_are_not_in_the_files_in_clear() {
    let place = Installation::new();
    let server = place.serve();
    let made = server.api.new_key(json!({"name": "one"}));
    let of_other = server.api.new_organisation("other").key.unwrap();
    let keys = [server.api.key.clone().unwrap(), place.agent_key(), made, of_other];
    let listed = server.api.get("/api/v1/keys").is(200).text();
    for key in &keys {
        assert!(key.starts_with("sw_") && key.len() >= 3 + 43, "256 bits are 43 letters: {}", key.len());
        assert!(!listed.contains(key.as_str()));
        // Nor enough of it to guess the rest.
        assert!(!listed.contains(&key[..key.len() - 20]), "{listed}");
    }
    for file in ["admin.key", "agent.key"] {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(place.data().join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    // While it runs and after it has stopped.
    let found = |key: &String| {
        let secret = key.trim_start_matches("sw_").as_bytes().to_vec();
        place.bytes().windows(secret.len()).any(|part| part == secret)
    };
    assert!(!keys.iter().any(found));
    server.stop();
    assert!(!keys.iter().any(found));
}

#[test]
fn others_on_the_machine_cannot_read_the_store() {
    if stepwell_testing::embedded_only("who can read a database is its administrator's business") {
        return;
    }
    use std::os::unix::fs::PermissionsExt;
    let place = Installation::new();
    let _server = place.serve();
    let directory = std::fs::metadata(place.data()).unwrap().permissions().mode();
    let store = std::fs::metadata(place.data().join("stepwell.db")).unwrap().permissions().mode();
    // Inputs and outputs of runs are in there.
    assert!(directory & 0o077 == 0 || store & 0o077 == 0, "directory {directory:o}, store {store:o}");
}

#[test]
fn a_key_works_until_it_is_paused_revoked_or_over() {
    let place = Installation::new();
    let server = place.serve();
    let api = &server.api;
    let made = api.post("/api/v1/keys", &json!({"name": "one"})).is(201).data();
    let (id, key) = (made["id"].as_str().unwrap(), server.with_key(made["key"].as_str().unwrap()));
    key.get("/api/v1/me").is(200);
    let path = format!("/api/v1/keys/{id}");
    api.call("PATCH", &path, &json!({"paused": true})).is(200);
    key.get("/api/v1/me").is(403);
    api.call("PATCH", &path, &json!({"paused": false})).is(200);
    key.get("/api/v1/me").is(200);
    api.delete(&path).is(204);
    key.get("/api/v1/me").refused(401, "unauthorised");
    // Permanently, and across a restart.
    api.call("PATCH", &path, &json!({"paused": false}));
    key.get("/api/v1/me").refused(401, "unauthorised");
    api.post("/api/v1/keys", &json!({"name": "old", "expires_at": "2020-01-01T00:00:00Z"}))
        .refused(422, "invalid-input");
    // On a busy machine a short life may be over before the first request.
    let soon = [2, 8, 32].into_iter().find_map(|seconds| {
        let soon = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() + seconds;
        let soon = api.new_key(json!({"name": format!("for {seconds} s"), "expires_at": instant(soon)}));
        let soon = server.with_key(&soon);
        (soon.get("/api/v1/me").status == 200).then_some(soon)
    });
    let soon = soon.expect("a key that works before it expires");
    eventually("the end of a key", || Some(soon.get("/api/v1/me").status).filter(|status| *status == 401));
}

/// An instant as text, as the API writes it.
fn instant(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Civil date from days since 1970, by Howard Hinnant's method.
    let z = days + 719_468;
    let (era, day) = (z / 146_097, z % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let date = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{date:02}T{:02}:{:02}:{:02}Z", rest / 3600, rest / 60 % 60, rest % 60)
}

#[test]
fn a_narrow_key_cannot_widen_itself() {
    let place = Installation::new();
    let server = place.serve();
    let api = &server.api;
    let made =
        api.post("/api/v1/keys", &json!({"name": "narrow", "grants": ["workflow.run", "workflow.read"]})).is(201);
    let narrow = server.with_key(made.data()["key"].as_str().unwrap());
    let id = made.data()["id"].as_str().unwrap().to_string();
    let me = narrow.get("/api/v1/me").is(200).data();
    assert_eq!(me["grants"], json!(["workflow.read", "workflow.run"]));
    for (method, path, body) in [
        ("POST", "/api/v1/keys".to_string(), json!({"name": "wide"})),
        ("POST", "/api/v1/keys".into(), json!({"name": "same", "grants": ["workflow.run"]})),
        ("POST", "/api/v1/keys".into(), json!({"name": "wide", "grants": ["admin"]})),
        ("PATCH", format!("/api/v1/keys/{id}"), json!({"paused": false})),
        ("POST", "/api/v1/users".into(), json!({"name": "eve", "roles": ["admin"]})),
        ("PATCH", "/api/v1/users/admin".into(), json!({"grants": ["operator"]})),
        ("PUT", "/api/v1/roles/mine".into(), json!({"grants": ["admin"]})),
        ("POST", "/api/v1/sign-in-links".into(), json!({})),
        ("POST", "/api/v1/organisations".into(), json!({"name": "mine"})),
        ("PUT", "/api/v1/organisations/1/plan".into(), json!({"plan": "free"})),
        ("POST", "/api/v1/workflows".into(), json!({"name": "x", "tasks": {"a": {"sleep": 0}}})),
    ] {
        let answer = narrow.call(method, &path, &body);
        assert_eq!(answer.status, 403, "{method} {path} {body}: {}", answer.text());
    }
    // An organisation's administrator is no operator, and cannot give rights that they do not have.
    let other = api.new_organisation("other");
    other.get("/api/v1/users").is(200);
    for (method, path, body) in [
        ("POST", "/api/v1/organisations", json!({"name": "mine"})),
        ("GET", "/api/v1/organisations", json!({})),
        ("POST", "/api/v1/users", json!({"name": "eve", "grants": ["operator"]})),
        ("POST", "/api/v1/keys", json!({"name": "wide", "grants": ["operator"]})),
        ("PUT", "/api/v1/roles/mine", json!({"grants": ["operator"]})),
        ("PATCH", "/api/v1/users/admin", json!({"grants": ["operator"]})),
    ] {
        let answer = other.call(method, path, &body);
        assert_eq!(answer.status, 403, "{method} {path} {body}: {}", answer.text());
    }
    // A key with the right to administer, and nothing else beside it, is no operator either.
    let admin = server.with_key(&api.new_key(json!({"name": "admin", "grants": ["admin"]})));
    admin.get("/api/v1/users").is(200);
    for (path, body) in [
        ("/api/v1/keys", json!({"name": "all"})),
        ("/api/v1/organisations", json!({"name": "mine"})),
        ("/api/v1/sign-in-links", json!({})),
    ] {
        let answer = admin.post(path, &body);
        let wider = answer.status == 201 && widened(&server.without_key(), &answer.data());
        assert!(answer.status == 403 || !wider, "{path}: {}", answer.text());
    }
}

/// Whether the created user or key can operate the server.
fn widened(anyone: &crate::harness::Api, made: &Value) -> bool {
    if let Some(key) = made["key"].as_str() {
        return anyone.but(key).get("/api/v1/organisations").status == 200;
    }
    let Some(url) = made["url"].as_str() else { return true };
    let signed_in = anyone.get(url.strip_prefix(&anyone.url).unwrap()).is(303);
    let cookie = signed_in.header("set-cookie").split(';').next().unwrap().to_string();
    anyone.send("GET", "/api/v1/organisations", &[("cookie", &cookie)], None).status == 200
}

#[test]
fn a_right_that_is_taken_away_stops_the_next_step() {
    let place = Installation::new();
    let server = place.serve();
    let api = &server.api;
    let grants = ["workflow.run", "workflow.read", "workflow.define", "tool:*"];
    let ann = api.new_user("ann", &grants);
    ann.define(&json!({"name": "it", "tasks": {
        "hold": {"wait_for_webhook": {"timeout": "1h"}},
        "say": {"needs": ["hold"], "tool": "echo", "args": {"text": "hi"}, "retries": 0},
    }}));
    let free = ann.trigger("it", &json!({}));
    ann.step(&free, "hold", "waiting");
    ann.ready(&free, "hold");
    assert_eq!(ann.end(&free)["status"], "completed");
    let run = ann.trigger("it", &json!({}));
    ann.step(&run, "hold", "waiting");
    api.call("PATCH", "/api/v1/users/ann", &json!({"grants": ["workflow.run", "workflow.read"]})).is(200);
    api.ready(&run, "hold");
    let run = api.end(&run);
    assert_eq!((&run["status"], &run["tasks"]["say"]["status"]), (&json!("failed"), &json!("failed")));
    assert!(run["tasks"]["say"]["error"].to_string().contains("tool:echo"), "{run:#}");
    ann.post("/api/v1/workflows", &json!({"name": "x", "tasks": {"a": {"sleep": 0}}})).refused(403, "forbidden");
    api.delete("/api/v1/users/ann").is(204);
    ann.get("/api/v1/me").refused(401, "unauthorised");
}

#[test]
fn the_last_administrator_cannot_be_removed() {
    let place = Installation::new();
    let server = place.serve();
    for answer in [
        server.api.delete("/api/v1/users/admin"),
        server.api.call("PATCH", "/api/v1/users/admin", &json!({"disabled": true})),
        server.api.call("PATCH", "/api/v1/users/admin", &json!({"roles": [], "grants": []})),
    ] {
        assert_eq!(answer.status, 409, "{}", answer.text());
    }
    server.api.get("/api/v1/users").is(200);
}

#[test]
fn a_caller_over_the_rate_is_told_when_to_ask_again() {
    let place = Installation::new().config("limits: {requests_per_second: 1, burst: 5}\n");
    let server = place.serve();
    let mut answers = (0..20).map(|_| server.api.get("/api/v1/me"));
    let refused = answers.find(|answer| answer.status == 429).expect("a limit");
    let wait: u64 = refused.header("retry-after").parse().unwrap();
    assert!((1..=2).contains(&wait));
    refused.refused(429, "rate-limited");
    // Another key has a bucket of its own, and probes have none.
    server.with_key(&place.agent_key()).get("/api/v1/me").is(200);
    server.api.get("/readyz").is(200);
    eventually("another request", || Some(server.api.get("/api/v1/me").status).filter(|status| *status == 200));
}

#[test]
fn guessing_keys_is_slowed_down_and_those_who_have_one_are_not() {
    let place = Installation::new();
    let server = place.serve();
    let client = server.without_key();
    let statuses: Vec<u16> = (0..60).map(|n| client.but(&format!("sw_{n:043}")).get("/api/v1/me").status).collect();
    assert_eq!(statuses[0], 401);
    assert!(statuses.contains(&429) && statuses.iter().all(|status| [401, 429].contains(status)), "{statuses:?}");
    // Nor are addresses that start something guessed any faster.
    for path in ["/in/", "/wh/"] {
        let statuses: Vec<u16> = (0..60).map(|n| client.post(&format!("{path}{n:032}"), &json!({})).status).collect();
        assert!(statuses.contains(&429), "{path}: {statuses:?}");
    }
    server.api.get("/api/v1/me").is(200);
}

#[test]
fn metrics_are_for_this_machine_or_for_those_who_have_the_token() {
    let place = Installation::new();
    let server = place.serve();
    let get = |server: &crate::harness::Server, headers: &str| {
        ask(server.address(), &format!("GET /metrics HTTP/1.1\r\n{headers}Connection: close\r\n\r\n"))
    };
    let own = format!("Host: {}\r\n", server.address());
    server.api.get("/readyz").is(200);
    let answer = get(&server, &own);
    assert!(status(&answer) == 200 && answer.contains("stepwell_http_requests_total"), "{answer}");
    for from_elsewhere in
        ["X-Forwarded-For: 1.2.3.4\r\n", "Forwarded: for=1.2.3.4\r\n", "X-Real-IP: 1.2.3.4\r\n", "Via: 1.1 x\r\n"]
    {
        assert_eq!(status(&get(&server, &format!("{own}{from_elsewhere}"))), 403, "{from_elsewhere}");
    }
    assert_eq!(status(&get(&server, "Host: evil.example\r\n")), 403);
    let place = Installation::new().config("metrics: {token: open-sesame}\n");
    let server = place.serve();
    let own = format!("Host: {}\r\n", server.address());
    assert_eq!(status(&get(&server, &own)), 401);
    assert_eq!(status(&get(&server, &format!("{own}Authorization: Bearer open-sesam\r\n"))), 401);
    let key = server.api.key.as_deref().unwrap();
    assert_eq!(status(&get(&server, &format!("{own}Authorization: Bearer {key}\r\n"))), 401, "a key is no token");
    assert_eq!(status(&get(&server, &format!("{own}Authorization: Bearer open-sesame\r\n"))), 200);
}

#[test]
fn a_server_exports_and_anchors_the_audit_trail_for_operators() {
    let place = Installation::new();
    let server = place.serve();
    let file = |name: &str, text: &str| {
        let path = place.data().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let export = server.api.get("/api/v1/audit/export").is(200);
    assert_eq!(export.header("content-type"), "application/x-ndjson");
    assert!(export.text().contains("organisation.create"), "{}", export.text());
    let said = place.stepwell(&["audit", "verify", &file("trail.ndjson", &export.text())]);
    assert!(said.contains("nothing is wrong"), "{said}");
    let later = server.api.get("/api/v1/audit/export?since=2100-01-01T00:00:00Z").is(200).text();
    assert_eq!(later.lines().count(), 2, "{later}");
    server.api.get("/api/v1/audit/export?since=soon").refused(422, "invalid-input");
    let anchor = server.api.get("/api/v1/audit/anchor").is(200).data().to_string();
    let said = place.stepwell(&["doctor", "--anchor", &file("anchors", &anchor)]);
    assert!(said.contains("nothing is wrong"), "{said}");
    let other = server.api.new_organisation("others");
    for path in ["/api/v1/audit/export", "/api/v1/audit/anchor"] {
        other.get(path).refused(403, "forbidden");
    }
}

#[test]
fn what_changes_something_is_in_the_trail_and_the_trail_holds() {
    let place = Installation::new();
    let server = place.serve();
    let api = &server.api;
    api.define(&json!({"name": "it", "tasks": {"rest": {"sleep": "1h"}}}));
    let run = api.trigger("it", &json!({}));
    api.post(&format!("/api/v1/runs/{run}/cancel"), &json!({"reason": "why not"})).is(200);
    api.new_user("ann", &[]);
    let trail = api.get("/api/v1/audit?limit=1000").is(200).data();
    let actions: Vec<&str> = trail.as_array().unwrap().iter().map(|row| row["action"].as_str().unwrap()).collect();
    for action in ["workflow.define", "run.start", "run.cancel", "user.create", "key.create"] {
        assert!(actions.contains(&action), "{action} is not in {actions:?}");
    }
    let cancelled = api.get("/api/v1/audit?action=run.cancel").is(200).data();
    assert_eq!((&cancelled[0]["by"], &cancelled[0]["target"]), (&json!("admin"), &json!(run)));
    assert_eq!(api.get("/api/v1/audit/verify").is(200).data()["broken_at"], Value::Null);
    server.stop();
    assert_eq!(place.sql("UPDATE audit SET by = 'eve' WHERE action = 'run.cancel'"), 1);
    let server = place.serve();
    assert!(!server.api.get("/api/v1/audit/verify").is(200).data()["broken_at"].is_null());
}
