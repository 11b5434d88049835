//! Responses: repeats, waiting, ETags, problems, compression, content types.

use crate::harness::{Answer, Api, Installation};
use crate::outside::Outside;
use serde_json::{Value, json};
use std::io::Read;

fn nap(length: &str) -> Value {
    json!({"name": "nap", "tasks": {"rest": {"sleep": length}}, "output": {"said": "{{trigger.body.word ?? null}}"}})
}

fn keyed(api: &Api, key: &str, body: &str) -> Answer {
    api.send("POST", "/api/v1/workflows/nap/trigger", &[("idempotency-key", key)], Some(body.into()))
}

#[test]
fn the_same_key_with_the_same_body_starts_one_run() {
    let place = Installation::new();
    let server = place.serve();
    server.api.define(&nap("0s"));
    let first = keyed(&server.api, "k1", r#"{"word": "a", "n": 1}"#).is(201);
    let run = first.data()["run_id"].clone();
    assert_eq!(first.header("location"), format!("/api/v1/runs/{}", run.as_str().unwrap()));
    // Spaces do not make another body, nor does a run that has ended meanwhile.
    server.api.end(run.as_str().unwrap());
    assert_eq!(keyed(&server.api, "k1", r#"{"word":"a","n":1}"#).is(200).data()["run_id"], run);
    keyed(&server.api, "k1", r#"{"word": "b"}"#).refused(409, "idempotency-key-reused");
    assert_ne!(keyed(&server.api, "k2", r#"{"word": "a", "n": 1}"#).is(201).data()["run_id"], run);
    // A key counts for the organisation that used it.
    let other = server.api.new_organisation("other");
    other.define(&nap("0s"));
    assert_ne!(keyed(&other, "k1", r#"{"word": "b"}"#).is(201).data()["run_id"], run);
    // It outlives the process.
    server.stop();
    let server = place.serve();
    assert_eq!(keyed(&server.api, "k1", r#"{"word":"a","n":1}"#).is(200).data()["run_id"], run);
}

#[test]
fn many_calls_with_one_key_at_the_same_time_start_one_run() {
    let place = Installation::new();
    let server = place.serve();
    server.api.define(&nap("0s"));
    let answers: Vec<Answer> = std::thread::scope(|scope| {
        let calls: Vec<_> = (0..16).map(|_| scope.spawn(|| keyed(&server.api, "k", "{}"))).collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), 1);
    let run = answers[0].data()["run_id"].clone();
    assert!(answers.iter().all(|answer| answer.status <= 201 && answer.data()["run_id"] == run));
    assert_eq!(server.api.get("/api/v1/runs").data().as_array().unwrap().len(), 1);
}

#[test]
fn a_key_that_is_empty_or_too_long_is_refused() {
    let place = Installation::new();
    let server = place.serve();
    server.api.define(&nap("0s"));
    for key in ["", &"k".repeat(256)] {
        keyed(&server.api, key, "{}").refused(422, "invalid-input");
    }
    keyed(&server.api, &"k".repeat(255), "{}").is(201);
}

#[test]
fn a_caller_who_waits_gets_the_finished_run_or_the_running_one() {
    let place = Installation::new();
    let server = place.serve();
    server.api.define(&nap("50ms"));
    let trigger = "/api/v1/workflows/nap/trigger";
    let done = server.api.post(&format!("{trigger}?wait=30s"), &json!({"word": "a"})).is(200).data();
    assert_eq!((&done["status"], &done["output"]), (&json!("completed"), &json!({"said": "a"})));
    assert_eq!(done["id"], done["run_id"]);
    let done = server.api.send("POST", trigger, &[("prefer", "respond-async, wait=30")], Some("{}".into())).is(200);
    assert_eq!(done.data()["status"], "completed");
    server.api.call("PUT", "/api/v1/workflows/nap", &nap("1h")).is(200);
    for wait in ["wait=0", "wait=20ms", "wait=0.02"] {
        let open = server.api.post(&format!("{trigger}?{wait}"), &json!({})).is(202).data();
        assert_eq!(open["status"], "running");
        assert_eq!(open["waiting_for"][0]["for"], "sleep");
        server.api.post(&format!("/api/v1/runs/{}/cancel", open["id"].as_str().unwrap()), &json!({})).is(200);
    }
    let open = server.api.send("POST", trigger, &[("prefer", "wait=0")], Some("{}".into())).is(202);
    assert_eq!(open.data()["status"], "running");
    for bad in ["wait=soon", "wait=-1", "wait="] {
        server.api.post(&format!("{trigger}?{bad}"), &json!({})).refused(422, "invalid-input");
    }
}

#[test]
fn a_tag_spares_reading_what_has_not_changed_and_writing_over_what_has() {
    let place = Installation::new();
    let server = place.serve();
    let api = &server.api;
    api.define(&nap("0s"));
    let path = "/api/v1/workflows/nap";
    let got = api.get(path).is(200);
    let tag = got.header("etag").to_string();
    assert!(!tag.is_empty());
    let same = api.send("GET", path, &[("if-none-match", &tag)], None).is(304);
    assert!(same.bytes.is_empty());
    let put =
        |tag: &str, length: &str| api.send("PUT", path, &[("if-match", tag)], Some(nap(length).to_string().into()));
    put(&tag, "1s").is(200);
    put(&tag, "2s").refused(412, "changed-meanwhile");
    put("\"nonsense\"", "2s").refused(412, "changed-meanwhile");
    let newer = api.send("GET", path, &[("if-none-match", &tag)], None).is(200);
    put(newer.header("etag"), "2s").is(200);
    // A switch changes what is shown, so it changes the tag.
    let tag = api.get(path).header("etag").to_string();
    api.call("PATCH", path, &json!({"enabled": false})).is(200);
    api.send("GET", path, &[("if-none-match", &tag)], None).is(200);
}

#[test]
fn a_tag_of_a_finished_run_holds_until_something_changes() {
    let place = Installation::new();
    let server = place.serve();
    let api = &server.api;
    api.define(&nap("0s"));
    let run = api.finished("nap", &json!({}))["id"].as_str().unwrap().to_string();
    let path = format!("/api/v1/runs/{run}");
    let tag = || api.get(&path).is(200).header("etag").to_string();
    let first = tag();
    api.send("GET", &path, &[("if-none-match", &first)], None).is(304);
    api.send("GET", &format!("/api/v1/workflows/nap/runs/{run}"), &[("if-none-match", &first)], None).is(304);
    let label = |labels: Value| api.call("PATCH", &path, &json!({"labels": labels})).is(200);
    label(json!({"team": "a"}));
    let second = tag();
    label(json!({"team": "b"}));
    // Another value of the same length is another state.
    assert_ne!(tag(), second, "a client with {second} would be told that nothing changed");
    assert_eq!(api.send("GET", &path, &[("if-none-match", &second)], None).is(200).data()["labels"]["team"], "b");
}

#[test]
fn a_tag_among_several_counts_and_so_does_a_weak_one() {
    let place = Installation::new();
    let server = place.serve();
    server.api.define(&nap("0s"));
    let tag = server.api.get("/api/v1/workflows/nap").header("etag").to_string();
    for given in [format!("\"other\", {tag}"), format!("W/{tag}")] {
        server.api.send("GET", "/api/v1/workflows/nap", &[("if-none-match", &given)], None).is(304);
    }
}

#[test]
fn every_refusal_is_a_problem_with_a_code_and_the_id_of_its_request() {
    let place = Installation::new();
    let server = place.serve();
    let api = &server.api;
    let json = &[("content-type", "application/json")];
    let send = |method: &str, path: &str, body: &str| {
        let body = Some(body).filter(|body| !body.is_empty()).map(Into::into);
        api.send(method, path, json, body)
    };
    for (method, path, body, status, code) in [
        ("GET", "/nowhere", "", 404, "not-found"),
        ("GET", "/api/v1/nowhere", "", 404, "not-found"),
        ("GET", "/api/v1/workflows/none", "", 404, "not-found"),
        ("GET", "/api/v1/runs/run_none", "", 404, "not-found"),
        ("POST", "/wh/none", "{}", 404, "not-found"),
        ("POST", "/in/none", "{}", 404, "not-found"),
        ("DELETE", "/api/v1/runs", "", 405, "method-not-allowed"),
        ("PATCH", "/openapi.json", "", 405, "method-not-allowed"),
        ("POST", "/api/v1/workflows", "{", 422, "invalid-definition"),
        ("POST", "/api/v1/users", "{", 400, "invalid-json"),
        ("POST", "/api/v1/users", r#"{"name": "a", "colour": 1}"#, 422, "invalid-input"),
        ("POST", "/api/v1/users", r#"{"name": 7}"#, 422, "invalid-input"),
        ("GET", "/api/v1/runs?status=odd", "", 422, "invalid-input"),
        ("GET", "/api/v1/runs?since=yesterday", "", 422, "invalid-input"),
        ("GET", "/api/v1/runs?colour=red", "", 422, "invalid-input"),
        ("GET", "/api/v1/runs?cursor=..", "", 422, "invalid-input"),
        ("GET", "/api/v1/runs?limit=many", "", 422, "invalid-input"),
    ] {
        let answer = send(method, path, body);
        let id = answer.header("x-request-id").to_string();
        let problem = answer.refused(status, code);
        assert_eq!(problem["request_id"], id, "{method} {path}");
        assert!(!id.is_empty() && problem["title"].is_string() && problem["detail"].is_string(), "{problem:#}");
        assert!(problem["type"].as_str().unwrap().ends_with(code), "{problem:#}");
    }
    let named = api.send("GET", "/api/v1/nowhere", &[("x-request-id", "my-request.1")], None);
    assert_eq!(named.refused(404, "not-found")["request_id"], "my-request.1");
    let odd = api.send("GET", "/api/v1/nowhere", &[("x-request-id", "a b\"<script>")], None);
    assert!(!odd.header("x-request-id").contains('<'));
    assert_eq!(server.without_key().get("/api/v1/me").is(401).header("www-authenticate"), "Bearer realm=\"stepwell\"");
}

#[test]
fn a_refused_definition_lists_all_its_faults() {
    let place = Installation::new();
    let server = place.serve();
    let definition = json!({"name": "it", "colour": 1, "max_duration": "soon", "tasks": {
        "a": {"url": "http://127.0.0.1/", "needs": ["c"]},
        "b": {"sleep": "long", "url": "http://127.0.0.1/"},
        "d": {"url": "http://127.0.0.1/", "body": "{{tasks.a.body"},
    }});
    for path in ["/api/v1/workflows", "/api/v1/check"] {
        let problem = server.api.post(path, &definition).refused(422, "invalid-definition");
        let errors = problem["errors"].as_array().unwrap();
        let paths: Vec<&str> = errors.iter().map(|error| error["path"].as_str().unwrap()).collect();
        for path in ["colour", "max_duration", "tasks.a.needs[0]", "tasks.b", "tasks.d.body"] {
            assert!(paths.iter().any(|at| at.starts_with(path)), "nothing about {path} in {problem:#}");
        }
        assert!(errors.iter().all(|error| error["code"].is_string() && error["line"].is_u64()), "{problem:#}");
    }
}

#[test]
fn an_input_that_does_not_fit_its_schema_is_refused_with_the_place() {
    let place = Installation::new();
    let server = place.serve();
    let schema = json!({"type": "object", "required": ["order"], "properties": {"order": {"type": "integer"}}});
    server.api.define(&json!({"name": "it", "input_schema": schema, "tasks": {"rest": {"sleep": 0}}}));
    let problem = server.api.post("/api/v1/workflows/it/trigger", &json!({"order": "x"})).refused(422, "invalid-input");
    assert!(problem["errors"][0]["path"].as_str().unwrap().contains("order"), "{problem:#}");
    server.api.post("/api/v1/workflows/it/trigger", &json!({"order": 1})).is(201);
    assert_eq!(server.api.get("/api/v1/runs").data().as_array().unwrap().len(), 1);
}

#[test]
fn what_is_json_is_taken_whatever_it_is_called() {
    let place = Installation::new();
    let server = place.serve();
    let outside = Outside::start();
    server.api.define(&nap("0s"));
    for kind in ["application/json", "application/json; charset=utf-8", "text/plain", "application/xml"] {
        let body = Some(r#"{"word": "a"}"#.into());
        let answer = server.api.send("POST", "/api/v1/workflows/nap/trigger?wait=30s", &[("content-type", kind)], body);
        assert_eq!(answer.is(200).data()["input"], json!({"word": "a"}), "{kind}");
    }
    let yaml = format!("name: yaml\ntasks:\n  go: {{url: \"{}/go\"}}\n", outside.url);
    let kind = &[("content-type", "application/yaml")];
    server.api.send("POST", "/api/v1/workflows", kind, Some(yaml.into())).is(201);
    server.api.finished("yaml", &json!({}));
    assert_eq!(outside.calls("/go").len(), 1);
    // Any JSON is an input, and none is an empty one.
    for (body, input) in [("[1]", json!([1])), ("\"x\"", json!("x")), ("null", json!(null)), ("", json!({}))] {
        let answer = server.api.send("POST", "/api/v1/workflows/yaml/trigger?wait=30s", &[], Some(body.into()));
        assert_eq!(answer.is(200).data()["input"], input, "{body:?}");
    }
}

#[test]
fn answers_are_compressed_for_those_who_ask() {
    let place = Installation::new();
    let server = place.serve();
    let get = |encoding: &str| server.api.send("GET", "/openapi.json", &[("accept-encoding", encoding)], None).is(200);
    let plain = get("identity");
    assert_eq!(plain.header("content-encoding"), "");
    let gzip = get("gzip");
    assert_eq!(gzip.header("content-encoding"), "gzip");
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(&gzip.bytes[..]).read_to_end(&mut unpacked).unwrap();
    assert_eq!(unpacked, plain.bytes);
    let zstd = get("zstd, gzip;q=0.5");
    assert_eq!(zstd.header("content-encoding"), "zstd");
    assert_eq!(zstd::decode_all(&zstd.bytes[..]).unwrap(), plain.bytes);
    assert!(gzip.bytes.len() * 3 < plain.bytes.len() && zstd.bytes.len() * 3 < plain.bytes.len());
}

#[test]
fn the_reference_fetches_nothing_from_elsewhere() {
    let place = Installation::new();
    let server = place.serve();
    let anyone = server.without_key();
    for path in ["/", "/docs", "/docs/errors", "/docs/reference.css"] {
        let answer = anyone.get(path).is(200);
        let text = answer.text();
        for outside in ["src=\"http", "href=\"http", "src=\"//", "url(http", "@import", "cdn."] {
            assert!(!text.contains(outside), "{path} has {outside}");
        }
        if !path.contains('.') {
            assert!(answer.header("content-security-policy").contains("default-src 'none'"), "{path}");
        }
    }
    let api = anyone.get("/openapi.json").is(200).json();
    assert!(api["openapi"].as_str().unwrap().starts_with("3.1"));
}

#[test]
fn refusals_can_be_read_by_those_who_ask_for_compression() {
    let place = Installation::new();
    let server = place.serve();
    for (api, path, status) in [
        (&server.without_key(), "/api/v1/me", 401),
        (&server.api, "/api/v1/runs/none", 404),
        (&server.api, "/api/v1/runs?status=odd", 422),
    ] {
        for encoding in ["gzip", "zstd"] {
            let answer = api.send("GET", path, &[("accept-encoding", encoding)], None).is(status);
            let mut text = Vec::new();
            match answer.header("content-encoding") {
                "" => text = answer.bytes.clone(),
                "gzip" => drop(flate2::read::GzDecoder::new(&answer.bytes[..]).read_to_end(&mut text)),
                "zstd" => text = zstd::decode_all(&answer.bytes[..]).unwrap_or_default(),
                other => panic!("{other}"),
            }
            let problem: Value = serde_json::from_slice(&text)
                .unwrap_or_else(|_| panic!("{path} says {encoding} and is {:?}", answer.text()));
            assert_eq!(problem["status"], status);
        }
    }
}

#[test]
fn a_list_is_not_taken_for_an_object_that_says_nothing() {
    let place = Installation::new();
    let server = place.serve();
    let api = &server.api;
    api.define(&nap("1h"));
    let run = api.trigger("nap", &json!({}));
    // Taken so, this would mean all runs.
    for filter in [json!([]), json!([null, null]), json!(null), json!("")] {
        api.post("/api/v1/runs/cancel", &json!({"filter": filter})).refused(422, "invalid-input");
    }
    assert_eq!(api.run(&run)["status"], "running");
    for (path, body) in [
        ("/api/v1/users", json!(["eve", ["admin"]])),
        ("/api/v1/keys", json!([null, "key"])),
        ("/api/v1/runs/cancel", json!([{}])),
        (&format!("/api/v1/runs/{run}/cancel"), json!(["why"])),
        ("/api/v1/workflows/nap/pause", json!([])),
    ] {
        api.post(path, &body).refused(422, "invalid-input");
    }
    assert_eq!(api.run(&run)["status"], "running");
    assert_eq!(api.get("/api/v1/workflows/nap").data()["paused"], false);
}

#[test]
fn every_fault_of_a_body_is_told_at_once() {
    let place = Installation::new();
    let server = place.serve();
    let body = json!({"name": 5, "roles": "admin", "colour": "red"});
    let problem = server.api.post("/api/v1/users", &body).refused(422, "invalid-input");
    let faults = problem["errors"].as_array().unwrap();
    assert_eq!(faults.len(), 3, "{problem:#}");
    for part in ["name", "roles", "colour"] {
        let said = |fault: &serde_json::Value| format!("{}{}", fault["path"], fault["message"]).contains(part);
        assert!(faults.iter().any(said), "{part}: {problem:#}");
    }
}

#[test]
fn every_answer_forbids_guessing_its_type_and_tells_no_other_site_where_it_came_from() {
    let place = Installation::new();
    let server = place.serve();
    for path in ["/", "/healthz", "/openapi.json", "/api/v1/runs", "/api/v1/nothing", "/sign-in/wrong"] {
        let answer = server.api.get(path);
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(answer.header("referrer-policy"), "no-referrer", "{path}");
    }
}

#[test]
fn a_path_that_does_not_exist_is_answered_with_those_near_it() {
    let place = Installation::new();
    let server = place.serve();
    let check = |path: &str, expected: &str| {
        let problem = server.api.get(path).refused(404, "not-found");
        assert!(problem["detail"].as_str().unwrap().ends_with(expected), "{path}: {problem:#}");
    };
    check("/api/v1/workflow", "did you mean /api/v1/workflows?");
    check("/v1/approvals", "did you mean /api/v1/approvals?");
    check("/api/v1/runs/run_1/cancle", "did you mean /api/v1/runs/{run}/cancel?");
    check("/api/v1/nowhere", "there is nothing at this path");
}
