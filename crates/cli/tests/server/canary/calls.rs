//! Calls: requests, tools, code and queries.

use super::echo::{percent, written};
use super::{Canary, DIGITS, DOOR, KEY, PASS, masked};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use stepwell_testing::Cluster;

fn workflow(url: &str) -> Value {
    let header = json!({"X-Key": "{{secrets.KEY}}", "Authorization": "Bearer {{secrets.PASS}}"});
    let with_user = url.replacen("http://", "http://user:{{secrets.PASS}}@", 1);
    let deep = json!({"deep": [{"k": "{{secrets.KEY}}"}]});
    json!({"name": "canary", "tasks": {
        "header": {"url": format!("{url}/ok?q={{{{secrets.KEY}}}}"), "headers": header, "body": deep},
        "basic": {"url": format!("{with_user}/ok")},
        "text": {"url": format!("{url}/ok"), "body": "pin {{secrets.DIGITS}} and {{secrets.KEY}}"},
        "path": {"url": format!("{url}/bad/{{{{secrets.PASS}}}}"), "retries": 0},
        "html": {"url": format!("{url}/html"), "body": "{{secrets.KEY}}", "retries": 0},
        "long": {"url": format!("{url}/long"), "body": "{{secrets.KEY}}"},
        "nobody": {"url": "http://127.0.0.1:1/{{secrets.PASS}}", "retries": 0},
        "wrong": {"url": "{{secrets.PASS}}", "retries": 0},
        "echo": {"tool": "echo", "args": {"message": "{{secrets.KEY}}"}},
        "log": {"tool": "log", "args": {"message": "it is {{secrets.KEY}} or {{secrets.PASS}}", "level": "error"}},
        "fail": {"tool": "fail", "args": {"message": "no {{secrets.KEY}}", "code": "{{secrets.PASS}}"}, "retries": 0},
        "encode": {"tool": "base64_encode", "args": {"text": "user:{{secrets.KEY}}"}},
        "request": {"tool": "http_request", "args": {"url": format!("{url}/ok"), "headers": header}},
        "later": {"url": format!("{url}/ok"), "needs": ["header", "basic", "text"]},
        "called": {"wait_for_webhook": {"timeout": "1h"}, "needs": ["later"]},
    }})
}

#[test]
fn no_secret_of_a_request_or_a_tool_leaves_or_is_stored_in_any_form() {
    let mut canary = Canary::start();
    let url = json!({"url": format!("postgres://u:{PASS}@127.0.0.1:1/x")});
    let told = canary.server.api.call("PUT", "/api/v1/connections/shop", &url).is(200);
    canary.transcript.add("a connection", told.bytes);
    let run = canary.trigger(&workflow(&canary.echo.url));
    canary.server.api.step(&run, "called", "waiting");
    let back = json!({"all": written(KEY), "pass": PASS});
    canary.server.api.post(&format!("/api/v1/runs/{run}/steps/called/deliver"), &back).is(200);
    let ended = canary.ended(&run);
    masked(
        &ended,
        &["header", "basic", "text", "long", "echo", "log", "encode", "request", "later", "called"],
        "success",
    );
    for step in ["path", "html", "nobody", "wrong", "fail"] {
        assert_eq!(ended["tasks"][step]["status"], "failed", "{step}: {}", ended["tasks"][step]);
    }
    let heard = canary.echo.heard.lock().unwrap().clone();
    assert!(heard.contains(&STANDARD.encode(format!("user:{PASS}"))), "{heard}");
    canary.keeps_silent();
}

#[test]
fn no_secret_that_code_sends_comes_back_to_it_or_to_a_later_step() {
    let mut canary = Canary::start();
    let send = "
        const answer = await fetch(ctx.input.url + '/ok?q=' + secrets.KEY, {
            method: 'POST', headers: {'X-Key': secrets.KEY, authorization: 'Bearer ' + secrets['PASS']},
            body: `{\"key\": \"${secrets.KEY}\", \"pin\": ${secrets.DIGITS}}`});
        const text = await answer.text();
        console.log(text);
        console.error(answer.headers.get('x-echo'), answer.headers.get('x-basic'));
        return {text, echo: answer.headers.get('x-echo')}";
    let throw = "throw new Error(await (await fetch(ctx.input.url + '/bad/' + secrets.PASS)).text())";
    let object = "throw {said: await (await fetch(ctx.input.url + '/html/' + secrets.PASS)).text()}";
    let unreachable = "await fetch('http://127.0.0.1:1/' + secrets.PASS)";
    // These send nothing, and are told what others sent.
    let ask = "const text = await (await fetch(ctx.input.url + '/ok')).text();
        console.log(text); return {text, back: [...text].reverse().join('')}";
    let again = "throw new Error('x'.repeat(3900) + await (await fetch(ctx.input.url + '/bad')).text())";
    let workflow = json!({"name": "canary", "allow_hosts": "127.0.0.1", "tasks": {
        "send": {"javascript": send},
        "throw": {"javascript": throw, "retries": 0, "needs": ["send"]},
        "object": {"javascript": object, "retries": 0, "needs": ["send"]},
        "unreachable": {"javascript": unreachable, "retries": 0},
        "ask": {"javascript": ask, "needs": ["send"]},
        "again": {"javascript": again, "retries": 0, "needs": ["send"]},
        "later": {"url": "{{input.url}}/ok", "needs": ["send"]},
    }});
    let run = canary.trigger(&workflow);
    let ended = canary.ended(&run);
    masked(&ended, &["send", "ask", "later"], "success");
    masked(&ended, &["throw", "object", "unreachable"], "failed");
    for backwards in [KEY, PASS, DIGITS].map(|secret| secret.chars().rev().collect::<String>()) {
        assert!(!ended.to_string().contains(&backwards), "the code had it: {backwards}");
    }
    canary.keeps_silent();
}

#[test]
fn neither_a_parameter_nor_the_password_of_a_database_comes_back_from_it() {
    let mut canary = Canary::start();
    let schema = Cluster::shared().schema();
    schema.execute("CREATE TABLE kept (what text)");
    for what in written(DOOR) {
        schema.execute(&format!("INSERT INTO kept VALUES ('{}')", what.replace('\'', "''")));
    }
    let (user, rest) = schema.url().split_once('@').unwrap();
    let with_password = [
        ("shop", format!("{user}:{}@{rest}", percent(DOOR, true))),
        ("other", format!("{user}@{rest}&password={}", percent(DOOR, false))),
    ];
    for (name, url) in with_password {
        let told = canary.server.api.call("PUT", &format!("/api/v1/connections/{name}"), &json!({"url": url})).is(200);
        canary.transcript.add("a connection", told.bytes);
    }
    let file = canary.place.data().join("crm.db");
    rusqlite::Connection::open(&file).unwrap();
    let crm = json!({"url": format!("sqlite:{}", file.display())});
    canary.server.api.call("PUT", "/api/v1/connections/crm", &crm).is(200);
    let query = |connection: &str, sql: &str, params: Value| {
        let query = json!({"connection": connection, "sql": sql, "params": params});
        json!({"query": query, "retries": 0})
    };
    let echo = "select $1::text as same, encode(convert_to($1, 'UTF8'), 'base64') as b64, to_json($1) as json,
        encode(convert_to(repeat('-', 50) || $1, 'UTF8'), 'base64') as lines, convert_to($1, 'UTF8') as bytes,
        jsonb_build_object($1, $2::text::bigint) as keyed, $3::text[] as list";
    let key = "{{secrets.KEY}}";
    let workflow = json!({"name": "canary", "tasks": {
        "send": {"url": "{{input.url}}/ok", "headers": {"x-key": key}, "body": "{{secrets.PASS}} {{secrets.DIGITS}}"},
        "rows": query("shop", echo, json!([key, "{{secrets.DIGITS}}", [key, "{{secrets.PASS}}"]])),
        "error": query("shop", "select $1::text::int", json!([key])),
        "bind": query("shop", "select $1::int", json!([key])),
        "kept": query("shop", "select what from kept", json!([])),
        "kept_error": query("shop", "select what::int from kept", json!([])),
        "other": query("other", "select what from kept", json!([])),
        "file": query("crm", "select :k as k, hex(:k) as hex, json_quote(:k) as json", json!({"k": key})),
        "file_error": query("crm", "select json_extract('{}', :k)", json!({"k": key})),
    }});
    let run = canary.trigger(&workflow);
    let ended = canary.ended(&run);
    masked(&ended, &["send", "rows", "file"], "success");
    masked(&ended, &["error", "bind", "file_error"], "failed");
    for (step, status) in [("kept", "success"), ("other", "success"), ("kept_error", "failed")] {
        let task = &ended["tasks"][step];
        assert_eq!(task["status"], status, "{step}: {task}");
        assert!(task.to_string().contains("(the password of "), "{step}: {task}");
    }
    canary.keeps_silent();
}
