//! The workflows of the test, and the expected end of each run.

use serde_json::{Value, json};

/// Workflows that clients start, by name.
pub const STARTED: [&str; 9] = ["chain", "fan", "items", "nap", "parent", "flaky", "careful", "narrow", "hook"];
/// Concurrency limit of `narrow`.
pub const LIMIT: usize = 2;

pub fn definitions(outside: &str) -> Vec<Value> {
    let call = |needs: &[&str]| json!({"url": format!("{outside}/call"), "needs": needs, "body": {"n": "{{input.n}}"}});
    let mut once = call(&["before"]);
    once["at_most_once"] = json!(true);
    let mut flaky = call(&[]);
    flaky["url"] = json!(format!("{outside}/flaky"));
    flaky["retry"] = json!({"attempts": 6, "backoff": "fixed", "first": "300ms"});
    let mut tell = call(&[]);
    tell["body"]["to"] = json!("{{wait.heard.url}}");
    let one = json!({"url": format!("{outside}/call"), "body": {"item": "{{item}}"}});
    let n = json!({"n": "{{input.n}}"});
    vec![
        json!({"name": "chain", "output": n, "tasks": {
            "a": call(&[]), "b": call(&["a"]), "c": call(&["b"])}}),
        json!({"name": "fan", "output": n, "tasks": {
            "top": call(&[]), "p": call(&["top"]), "q": call(&["top"]), "r": call(&["top"]),
            "s": {"needs": "top", "sleep": "500ms"},
            "join": call(&["p", "q", "r", "s"]), "last": call(&["join"])}}),
        json!({"name": "items", "output": n, "tasks": {
            "each": {"for_each": [1, 2, 3, 4], "tasks": {"one": one}}, "join": call(&["each"])}}),
        json!({"name": "nap", "output": n, "tasks": {
            "a": call(&[]), "rest": {"needs": "a", "sleep": "{{input.nap}}"}, "b": call(&["rest"])}}),
        json!({"name": "child", "output": n, "tasks": {"work": call(&[])}}),
        json!({"name": "parent", "output": {"n": "{{tasks.build.body.n}}"}, "tasks": {
            "build": {"workflow": "child", "input": {"n": "{{input.n}}"}}, "join": call(&["build"])}}),
        json!({"name": "flaky", "output": n, "tasks": {"try": flaky, "then": call(&["try"])}}),
        json!({"name": "careful", "output": n, "tasks": {
            "before": call(&[]), "once": once, "after": call(&["once"])}}),
        json!({"name": "narrow", "output": n, "concurrency": {"limit": LIMIT}, "tasks": {
            "a": call(&[]), "b": call(&["a"])}}),
        json!({"name": "hook", "output": {"n": "{{tasks.heard.body.n}}"}, "tasks": {
            "tell": tell, "heard": {"needs": "tell", "wait_for_webhook": true}, "after": call(&["heard"])}}),
        json!({"name": "tick", "trigger": {"cron": "* * * * * *", "catch_up": "all"},
            "output": {"at": "{{trigger.headers.x-stepwell-scheduled-at}}"}, "tasks": {"rest": {"sleep": 0}}}),
    ]
}

pub fn input(workflow: &str, n: usize, nap: u64) -> Value {
    match workflow {
        "nap" => json!({"n": n, "nap": format!("{nap}ms")}),
        _ => json!({"n": n}),
    }
}

/// The steps that call the outside, by path.
pub fn calls(workflow: &str) -> &'static [&'static str] {
    match workflow {
        "chain" => &["a", "b", "c"],
        "fan" => &["top", "p", "q", "r", "join", "last"],
        "items" => &["each[0].one", "each[1].one", "each[2].one", "each[3].one", "join"],
        "nap" | "narrow" => &["a", "b"],
        "child" => &["work"],
        "parent" => &["join"],
        "flaky" => &["try", "then"],
        "careful" => &["before", "once", "after"],
        "hook" => &["tell", "after"],
        _ => &[],
    }
}

/// The steps that call no one.
pub fn others(workflow: &str) -> &'static [&'static str] {
    match workflow {
        "fan" => &["s"],
        "items" => &["each"],
        "nap" | "tick" => &["rest"],
        "parent" => &["build"],
        "hook" => &["heard"],
        _ => &[],
    }
}
