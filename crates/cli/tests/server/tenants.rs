//! Every route of the API, from the description, requested by users of another organisation and by users without
//! rights.
//!
//! A new route joins by itself. One with a parameter that is not known here fails until somebody says what fills it.

use crate::harness::{Answer, Api, Installation, Server};
use crate::outside::Outside;
use crate::raw::Raw;
use serde_json::{Value, json};

/// Routes that need no key by design: anyone who knows the address may call it.
pub const PUBLIC: [&str; 6] = [
    "POST /in/{token}",
    "POST /wh/{token}",
    "GET /wh/{token}",
    "GET /sign-in/{link}",
    "GET /approve/{token}",
    "POST /approve/{token}",
];
/// Routes that answer without end: they have tests of their own.
pub const ENDLESS: [&str; 2] = ["GET /api/v1/events", "GET /api/v1/ws"];
/// Routes whose parameter names something of the caller's own organisation, made if it is not there.
const OWN: [&str; 5] = [
    "PUT /api/v1/roles/{role}",
    "PUT /api/v1/policies/{policy}",
    "PUT /api/v1/secrets/{secret}",
    "PUT /api/v1/connections/{connection}",
    "PUT /api/v1/queries/{query}",
];
/// What a user without any right may still do: read their identity and their own things, and sign out.
const HARMLESS: [&str; 4] = ["GET /api/v1/me", "GET /api/v1/keys", "GET /api/v1/usage", "POST /api/v1/sign-out"];

pub struct Route {
    pub name: String,
    pub method: String,
    pub path: String,
}

pub fn routes(api: &Api) -> Vec<Route> {
    let described = api.get("/openapi.json").is(200).json();
    let paths = described["paths"].as_object().unwrap().iter();
    let all = paths.flat_map(|(path, methods)| {
        methods.as_object().unwrap().keys().map(move |method| {
            let method = method.to_ascii_uppercase();
            Route { name: format!("{method} {path}"), method, path: path.clone() }
        })
    });
    let all: Vec<Route> = all.collect();
    assert!(all.len() > 50, "only {} routes", all.len());
    for listed in PUBLIC.iter().chain(&ENDLESS).chain(&OWN).chain(&HARMLESS) {
        assert!(all.iter().any(|route| route.name == *listed), "{listed} is listed here but does not exist");
    }
    all
}

/// Things of the first organisation.
pub struct Things {
    workflow: String,
    run: String,
    waiting: String,
    test_run: String,
    step: String,
    user: String,
    key: String,
    channel: String,
    organisation: i64,
    names: Vec<String>,
}

fn things(api: &Api, outside: &Outside) -> Things {
    let workflow = api.define(&json!({"name": "secret-flow", "labels": {"team": "secret-team"},
        "trigger": ["api", "webhook", {"cron": "0 0 1 1 *"}],
        "tasks": {"ask": {"approval": {"message": "secret-question"}}}}));
    api.define(&json!({"name": "secret-wait", "tasks": {
        "tell": {"url": format!("{}/tell", outside.url), "body": {"to": "{{wait.heard.url}}"}},
        "heard": {"wait_for_webhook": {"timeout": "1h"}}}}));
    let run = api.trigger("secret-flow", &json!({"word": "secret-word"}));
    let step = api.step(&run, "ask", "waiting")["tasks"]["ask"]["id"].as_str().unwrap().to_string();
    let waiting = api.trigger("secret-wait", &json!({}));
    api.step(&waiting, "heard", "waiting");
    api.step(&waiting, "tell", "success");
    let test = json!({"definition": {"name": "secret-test", "tasks": {"rest": {"sleep": "1h"}}}});
    let test_run = api.post("/api/v1/test-runs", &test).is(201).data()["run_id"].as_str().unwrap().to_string();
    api.step(&test_run, "rest", "sleeping");
    let role = json!({"grants": ["workflow.read"]});
    api.call("PUT", "/api/v1/roles/secret-role", &role).is(200);
    api.call("PUT", "/api/v1/secrets/SECRET_KEY", &json!({"value": "secret-value"})).is(200);
    api.call("PUT", "/api/v1/connections/secret-db", &json!({"url": "postgres://secret-host/secret-db"})).is(200);
    let query = json!({"connection": "secret-db", "sql": "select 'secret-statement'"});
    api.call("PUT", "/api/v1/queries/secret-query", &query).is(200);
    let policy = json!({"calls": "tool:none", "effect": "deny", "reason": "secret-reason"});
    api.call("PUT", "/api/v1/policies/secret-policy", &policy).is(200);
    let user = api.post("/api/v1/users", &json!({"name": "secret-ann", "roles": ["secret-role"]})).is(201).data();
    let key = api.post("/api/v1/keys", &json!({"user": "secret-ann", "name": "secret-key"})).is(201).data();
    let text = |value: &Value| value.as_str().unwrap().to_string();
    let (user, key) = (text(&user["id"]), text(&key["id"]));
    let organisation = api.get("/api/v1/me").is(200).data()["organisation"]["id"].as_i64().unwrap();
    let channel = json!({"name": "secret-channel", "medium": "webhook", "organisation": true,
        "url": format!("{}/secret-hook", outside.url)});
    let channel = text(&api.post("/api/v1/channels", &channel).is(201).data()["id"]);
    let names = [&workflow, &run, &waiting, &test_run, &step, &user, &key, &channel].into_iter().cloned();
    let names = names.chain(["secret-".to_string()]).collect();
    Things { workflow, run, waiting, test_run, step, user, key, channel, organisation, names }
}

/// A path with the first organisation's things in it.
pub fn filled(route: &Route, things: &Things) -> String {
    let in_run = route.path.contains("/runs/{run}/");
    let deliver = route.path.ends_with("/deliver");
    let parts = route.path.split('/').map(|part| match part {
        "{id}" if route.path.contains("/organisations/") => things.organisation.to_string(),
        "{id}" => things.workflow.clone(),
        "{run}" if route.path.contains("/test-runs/") => things.test_run.clone(),
        "{run}" if deliver => things.waiting.clone(),
        "{run}" => things.run.clone(),
        "{step}" if deliver => "heard".into(),
        "{step}" if in_run => "ask".into(),
        "{step}" => things.step.clone(),
        "{user}" => things.user.clone(),
        "{key}" => things.key.clone(),
        "{channel}" => things.channel.clone(),
        "{role}" => "secret-role".into(),
        "{secret}" => "SECRET_KEY".into(),
        "{connection}" => "secret-db".into(),
        "{query}" => "secret-query".into(),
        "{policy}" => "secret-policy".into(),
        "{server}" => "secret-server".into(),
        "{version}" => "1".into(),
        "{token}" | "{link}" => "unknown".into(),
        other if other.starts_with('{') => panic!("say here what fills {other} of {}", route.name),
        plain => plain.into(),
    });
    parts.collect::<Vec<_>>().join("/")
}

/// A valid body, so that a refusal is about the caller.
pub fn body(route: &Route) -> Value {
    let flow = json!({"name": "secret-flow", "tasks": {"rest": {"sleep": 0}}});
    match route.name.as_str() {
        "POST /api/v1/workflows" | "PUT /api/v1/workflows/{id}" | "POST /api/v1/check" => flow,
        "PATCH /api/v1/workflows/{id}" => json!({"enabled": false}),
        "PATCH /api/v1/runs/{run}" => json!({"labels": {"a": "b"}}),
        "POST /api/v1/runs/cancel" | "POST /api/v1/runs/retry" => json!({"filter": {}}),
        "POST /api/v1/test-runs" => json!({"definition": flow}),
        "POST /api/v1/users" => json!({"name": "bob"}),
        "PATCH /api/v1/users/{user}" => json!({"disabled": true}),
        "PUT /api/v1/roles/{role}" => json!({"grants": []}),
        "PUT /api/v1/secrets/{secret}" => json!({"value": "another"}),
        "PUT /api/v1/connections/{connection}" => json!({"url": "postgres://host/name"}),
        "PUT /api/v1/queries/{query}" => json!({"connection": "db", "sql": "select 1"}),
        "PUT /api/v1/policies/{policy}" => json!({"calls": "tool:none", "effect": "deny"}),
        "POST /api/v1/keys" => json!({"name": "another"}),
        "PATCH /api/v1/keys/{key}" => json!({"paused": true}),
        "POST /api/v1/channels" => {
            json!({"name": "another", "medium": "slack", "url": "http://127.0.0.1:9/another"})
        }
        "POST /api/v1/organisations" => json!({"name": "another"}),
        "PUT /api/v1/organisations/{id}/plan" => json!({"plan": "free"}),
        "POST /api/v1/reviews/{id}/accept" | "POST /api/v1/reviews/{id}/refuse" => json!({"digest": "x"}),
        "POST /api/v1/workflows/{id}/schedules" => json!({"cron": "0 8 * * *"}),
        "POST /api/v1/runs/{run}/steps/{step}/verdict" => json!({"verdict": "fail"}),
        _ => json!({}),
    }
}

fn call(api: &Api, route: &Route, path: &str) -> Answer {
    match route.method.as_str() {
        "GET" | "DELETE" => api.send(&route.method, path, &[], None),
        _ => api.call(&route.method, path, &body(route)),
    }
}

/// All that can be seen of an organisation, without when keys were last used.
pub fn everything(api: &Api, things: &Things) -> Value {
    let mut keys = api.get("/api/v1/keys").is(200).data();
    keys.as_array_mut().unwrap().iter_mut().for_each(|key| key["last_used_at"] = Value::Null);
    let path = |path: &str| api.get(path).is(200).json();
    let runs = [&things.run, &things.waiting, &things.test_run];
    let runs: Vec<Value> =
        runs.iter().flat_map(|run| [api.run(run), path(&format!("/api/v1/runs/{run}/events"))]).collect();
    let lists = [
        "/api/v1/workflows",
        "/api/v1/workflows/secret-flow",
        "/api/v1/workflows/secret-flow/versions",
        "/api/v1/runs",
        "/api/v1/runs?tests=true",
        "/api/v1/approvals",
        "/api/v1/users",
        "/api/v1/roles",
        "/api/v1/policies",
        "/api/v1/schedules",
        "/api/v1/secrets",
        "/api/v1/connections",
        "/api/v1/queries",
        "/api/v1/audit?limit=1000",
        "/api/v1/usage",
        "/api/v1/channels",
        "/api/v1/notifications",
    ];
    json!({"keys": keys, "runs": runs, "lists": lists.map(path)})
}

pub struct Scene {
    pub server: Server,
    pub things: Things,
    _outside: Outside,
    _place: Installation,
}

pub fn scene() -> Scene {
    let servers = "mcpServers: {secret-server: {command: /nowhere/secret-program}}\n";
    let place = Installation::new().variable("STEPWELL_MASTER_KEY", crate::canary::MASTER).config(servers);
    let server = place.serve();
    let outside = Outside::start();
    let things = things(&server.api, &outside);
    Scene { server, things, _outside: outside, _place: place }
}

#[test]
fn no_route_shows_or_changes_anything_of_another_organisation() {
    let Scene { server, things, .. } = &scene();
    let stranger = server.api.new_organisation("strangers");
    let before = everything(&server.api, things);
    let mut wrong = Vec::new();
    let mut all = routes(&server.api);
    all.retain(|route| !PUBLIC.contains(&&*route.name) && !ENDLESS.contains(&&*route.name));
    // Last, so that what the stranger makes of the same name is not taken for the other's.
    all.sort_by_key(|route| OWN.contains(&&*route.name));
    for route in &all {
        let path = filled(route, things);
        let answer = call(&stranger, route, &path);
        let own = !route.path.contains('{') || OWN.contains(&&*route.name);
        if !own && ![403, 404].contains(&answer.status) || answer.status >= 500 {
            wrong.push(format!("{}: {} {}", route.name, answer.status, answer.text()));
        }
        // A refusal may say what was asked for; nothing else may name it. What the stranger made is theirs.
        let text = answer.text();
        let asked = if path.contains(&things.step) { format!("{path}{}", things.run) } else { path.clone() };
        let said = |name: &String| text.contains(name.as_str()) && !asked.contains(name.as_str());
        if !own && things.names.iter().any(said) || own && things.names[..8].iter().any(|name| text.contains(name)) {
            wrong.push(format!("{} tells of {text}", route.name));
        }
    }
    // Filters are no way around it.
    for filter in [
        format!("/api/v1/runs?workflow={}", things.workflow),
        format!("/api/v1/runs?q={}", &things.run[8..]),
        "/api/v1/runs?created_by=admin&label=team%3Dsecret-team".into(),
        format!("/api/v1/audit?target={}", things.run),
        format!("/api/v1/events?workflow={}", things.workflow),
    ] {
        let answer = stranger.get(&filter);
        if answer.status != 404 && answer.data() != json!([]) {
            wrong.push(format!("{filter}: {}", answer.text()));
        }
    }
    for verb in ["cancel", "retry"] {
        let filter = json!({"filter": {"workflow": things.workflow}});
        let answer = stranger.post(&format!("/api/v1/runs/{verb}"), &filter);
        if answer.status != 404 && answer.data()["done"] != json!([]) {
            wrong.push(format!("{verb}: {}", answer.text()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(everything(&server.api, things), before, "something of the first organisation changed");
}

#[test]
fn no_route_but_the_public_ones_answers_without_a_key() {
    let Scene { server, things, .. } = &scene();
    let before = everything(&server.api, things);
    let callers = [server.without_key(), server.with_key("sw_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")];
    let mut wrong = Vec::new();
    for route in routes(&server.api) {
        for caller in &callers {
            let answer = call(caller, &route, &filled(&route, things));
            // Guessing is slowed down after a while, which is as good.
            let expected: &[u16] = match route.name.as_str() {
                "GET /sign-in/{link}" => &[401, 429],
                name if PUBLIC.contains(&name) => &[404, 429],
                _ if caller.key.is_some() => &[401, 429],
                _ => &[401],
            };
            if !expected.contains(&answer.status) {
                wrong.push(format!("{}: {} {}", route.name, answer.status, answer.text()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(everything(&server.api, things), before);
}

#[test]
fn a_user_without_rights_can_do_nothing_in_their_own_organisation() {
    let Scene { server, things, .. } = &scene();
    let no_rights = server.api.new_user("nobody", &[]);
    let before = everything(&server.api, things);
    let mut wrong = Vec::new();
    for route in routes(&server.api) {
        if PUBLIC.contains(&&*route.name) || HARMLESS.contains(&&*route.name) || route.name == "GET /api/v1/ws" {
            continue;
        }
        let answer = call(&no_rights, &route, &filled(&route, things));
        if answer.status != 403 {
            wrong.push(format!("{}: {} {}", route.name, answer.status, answer.text()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(everything(&server.api, things), before);
    let keys = no_rights.get("/api/v1/keys").is(200).data();
    assert_eq!(keys.as_array().unwrap().len(), 1, "their own only: {keys:#}");
}

#[test]
fn a_reader_reads_and_changes_nothing() {
    let Scene { server, things, .. } = &scene();
    let reader = server.api.new_user("reader", &["workflow.read"]);
    let before = everything(&server.api, things);
    // Harmless calls that are not a GET: a check keeps nothing, and where somebody is told is their own affair.
    let allowed = ["POST /api/v1/check", "POST /api/v1/sign-out", "POST /api/v1/channels", "PATCH /api/v1/preferences"];
    let mut wrong = Vec::new();
    for route in routes(&server.api) {
        if route.method == "GET" || PUBLIC.contains(&&*route.name) || allowed.contains(&&*route.name) {
            continue;
        }
        let answer = call(&reader, &route, &filled(&route, things));
        if answer.status != 403 {
            wrong.push(format!("{}: {} {}", route.name, answer.status, answer.text()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(everything(&server.api, things), before);
    reader.get(&format!("/api/v1/runs/{}", things.run)).is(200);
    let lists = ["users", "roles", "secrets", "connections", "queries", "organisations"];
    for path in lists.iter().chain(&["audit", "audit/verify", "audit/export", "audit/anchor"]) {
        reader.get(&format!("/api/v1/{path}")).refused(403, "forbidden");
    }
}

#[test]
fn live_events_are_those_of_the_callers_organisation() {
    let Scene { server, things, .. } = &scene();
    let stranger = server.api.new_organisation("strangers");
    let mut raw = Raw::open(server.address());
    let key = stranger.key.as_deref().unwrap();
    let from_start = "Last-Event-ID: 0\r\n";
    let head =
        format!("GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n{from_start}\r\n");
    raw.send(head).unwrap();
    assert!(raw.head().starts_with("HTTP/1.1 200"));
    server.api.post(&format!("/api/v1/runs/{}/steps/ask/approve", things.run), &json!({})).is(200);
    stranger.define(&json!({"name": "own", "tasks": {"rest": {"sleep": 0}}}));
    let own = stranger.finished("own", &json!({}))["id"].as_str().unwrap().to_string();
    let seen = raw.until(&own);
    assert!(things.names.iter().all(|name| !seen.contains(name.as_str())), "{seen}");
}

#[test]
fn a_live_socket_joins_no_run_of_another_organisation() {
    let Scene { server, things, .. } = &scene();
    let stranger = server.api.new_organisation("strangers");
    stranger.define(&json!({"name": "own", "tasks": {"rest": {"sleep": 0}}}));
    let own = stranger.finished("own", &json!({}))["id"].as_str().unwrap().to_string();
    let mut raw = Raw::open(server.address());
    raw.send(format!(
        "GET /api/v1/ws HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nConnection: Upgrade\r\n\
         Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        stranger.key.as_deref().unwrap()
    ))
    .unwrap();
    assert!(raw.head().starts_with("HTTP/1.1 101"));
    for run in [&things.run, &own] {
        raw.frame(&json!({"event": "workflow_run_join", "data": {"runId": run}}).to_string());
    }
    let seen = raw.until("workflow_status_update");
    assert!(seen.contains("error") && seen.contains("not-found"), "{seen}");
    let of_theirs = seen.matches(things.run.as_str()).count();
    assert!(!seen.contains("secret-") && of_theirs <= 2, "{seen}");
}

#[test]
fn a_secret_of_the_server_is_not_for_another_organisation() {
    let place = Installation::new().variable("STEPWELL_SECRET_TOKEN", "of-the-first");
    let server = place.serve();
    let outside = Outside::start();
    let flow = json!({"name": "it", "tasks": {
        "send": {"url": format!("{}/send", outside.url), "body": {"got": "{{secrets.TOKEN}}"}, "retries": 0},
    }});
    server.api.define(&flow);
    assert_eq!(server.api.finished("it", &json!({}))["status"], "completed");
    assert_eq!(outside.calls("/send")[0].json(), json!({"got": "of-the-first"}));
    let stranger = server.api.new_organisation("strangers");
    stranger.define(&flow);
    assert_eq!(stranger.finished("it", &json!({}))["status"], "failed");
    assert_eq!(outside.calls("/send").len(), 1, "a stranger was given {}", outside.calls("/send")[1].body);
}

#[test]
fn a_plan_limits_one_organisation_and_no_other() {
    let place = Installation::new()
        .config("plans: {small: {workflows: 1, tasks_per_workflow: 2, concurrent_runs: 1, cron: false}}\n");
    let server = place.serve();
    let made = server.api.post("/api/v1/organisations", &json!({"name": "small", "plan": "small"})).is(201).data();
    let small = server.with_key(made["admin_key"].as_str().unwrap());
    let flow =
        |name: &str, trigger: Value| json!({"name": name, "trigger": trigger, "tasks": {"rest": {"sleep": "1h"}}});
    let three = json!({"a": {"sleep": 0}, "b": {"sleep": 0}, "c": {"sleep": 0}});
    small.post("/api/v1/workflows", &json!({"name": "wide", "tasks": three})).refused(403, "plan-limit");
    small.post("/api/v1/workflows", &flow("cron", json!({"cron": "0 0 1 1 *"}))).refused(403, "plan-limit");
    small.define(&flow("one", json!("api")));
    small.post("/api/v1/workflows", &flow("two", json!("api"))).refused(403, "plan-limit");
    let run = small.trigger("one", &json!({}));
    small.post("/api/v1/workflows/one/trigger", &json!({})).refused(429, "plan-limit");
    small.post(&format!("/api/v1/runs/{run}/cancel"), &json!({})).is(200);
    small.trigger("one", &json!({}));
    for name in ["one", "two", "three"] {
        server.api.define(&flow(name, json!([{"cron": "0 0 1 1 *"}, "api"])));
        server.api.trigger(name, &json!({}));
    }
}
