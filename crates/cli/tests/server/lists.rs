//! Lists: pages without gaps or repetitions, and every filter.

use crate::harness::{Api, Installation};
use crate::outside::Outside;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// All pages of a list, and how many there were.
#[track_caller]
fn pages(api: &Api, path: &str) -> (Vec<Value>, usize) {
    pages_after(api, path, None)
}

#[track_caller]
fn pages_after(api: &Api, path: &str, mut cursor: Option<String>) -> (Vec<Value>, usize) {
    let (mut all, mut count) = (Vec::new(), 0);
    let joint = if path.contains('?') { "&" } else { "?" };
    loop {
        let after = cursor.map(|cursor| format!("{joint}cursor={cursor}")).unwrap_or_default();
        let page = api.get(&format!("{path}{after}")).is(200).json();
        all.extend(page["data"].as_array().unwrap().iter().cloned());
        count += 1;
        cursor = page["next"].as_str().map(str::to_string);
        if cursor.is_none() {
            return (all, count);
        }
    }
}

fn ids(list: &[Value]) -> Vec<&str> {
    list.iter().map(|item| item["id"].as_str().unwrap()).collect()
}

#[test]
fn pages_of_runs_have_no_gap_and_no_repetition_while_others_are_started() {
    let place = Installation::new();
    let server = place.serve();
    let api = &server.api;
    api.define(&json!({"name": "it", "tasks": {"rest": {"sleep": 0}}}));
    let mut started: Vec<String> = (0..120).map(|n| api.trigger("it", &json!({"n": n}))).collect();
    started.reverse();
    for limit in [1, 7, 40, 60, 120, 1000] {
        let (all, count) = pages(api, &format!("/api/v1/runs?limit={limit}"));
        assert_eq!(ids(&all), started, "newest first, {limit} a page");
        // A page that is just full may be followed by an empty one, no more.
        assert!(count <= 120 / limit + 1, "{count} pages of {limit}");
    }
    assert_eq!(pages(api, "/api/v1/runs").1, 3, "50 a page if nothing is said");
    // Runs that are added while somebody pages do not shift later pages.
    let first = api.get("/api/v1/runs?limit=50").is(200).json();
    (0..10).for_each(|n| drop(api.trigger("it", &json!({"n": n}))));
    let next = first["next"].as_str().map(str::to_string);
    let rest = pages_after(api, "/api/v1/runs?limit=50", next).0;
    let seen: Vec<&str> = ids(first["data"].as_array().unwrap()).into_iter().chain(ids(&rest)).collect();
    assert_eq!(seen, started);
    assert_eq!(ids(&pages(api, "/api/v1/workflows/it/runs?limit=33").0).len(), 130);
}

#[test]
fn pages_of_workflows_go_by_name() {
    let place = Installation::new();
    let server = place.serve();
    let names: BTreeSet<String> = (0..23).map(|n| format!("flow-{n}")).collect();
    for name in &names {
        server.api.define(&json!({"name": name, "tasks": {"rest": {"sleep": 0}}}));
    }
    let (all, count) = pages(&server.api, "/api/v1/workflows?limit=5");
    let listed: Vec<&str> = all.iter().map(|workflow| workflow["name"].as_str().unwrap()).collect();
    assert_eq!((listed, count), (names.iter().map(String::as_str).collect(), 5));
    let (some, _) = pages(&server.api, "/api/v1/workflows?limit=3&q=flow-2");
    assert_eq!(some.len(), 4, "flow-2, flow-20, flow-21, flow-22");
}

#[test]
fn every_filter_narrows_the_runs() {
    let place = Installation::new();
    let server = place.serve();
    let outside = Outside::start();
    outside.answer("/broken", 400, "{}");
    let api = &server.api;
    api.define(&json!({"name": "good", "tasks": {"rest": {"sleep": 0}}}));
    let bad = api.define(&json!({"name": "bad", "tasks": {"go": {"url": format!("{}/broken", outside.url)}}}));
    api.define(&json!({"name": "long", "tasks": {"rest": {"sleep": "1h"}}}));
    let ann = api.new_user("ann", &["workflow.run", "workflow.read", "workflow.define"]);
    let done = |api: &Api, workflow: &str, label: &str| {
        let path = format!("/api/v1/workflows/{workflow}/trigger?wait=60s&label={label}");
        api.post(&path, &json!({})).is(200).data()["id"].as_str().unwrap().to_string()
    };
    let one = done(api, "good", "team=red,place=here");
    let two = done(&ann, "good", "team=blue");
    let three = done(api, "bad", "team=red");
    let four = api.trigger("long", &json!({}));
    let five = api.trigger("long", &json!({}));
    api.post(&format!("/api/v1/runs/{five}/cancel"), &json!({})).is(200);
    let gate = json!({"name": "gate", "tasks": {"ask": {"approval": {"message": "well?"}}}});
    api.define(&gate);
    let six = api.trigger("gate", &json!({}));
    api.step(&six, "ask", "waiting");
    let made = |run: &str| api.run(run)["created_at"].as_str().unwrap().to_string();
    let (since, until) = (made(&three), made(&four));
    for (filter, expected) in [
        ("status=completed".to_string(), vec![&two, &one]),
        ("status=completed,failed".into(), vec![&three, &two, &one]),
        ("status=running".into(), vec![&four]),
        ("status=cancelled".into(), vec![&five]),
        ("status=paused".into(), vec![&six]),
        ("status=queued".into(), vec![]),
        ("workflow=good".into(), vec![&two, &one]),
        (format!("workflow={bad}"), vec![&three]),
        ("created_by=ann".into(), vec![&two]),
        ("label=team%3Dred".into(), vec![&three, &one]),
        ("label=team%3Dred,place%3Dhere".into(), vec![&one]),
        ("label=team%3Dgreen".into(), vec![]),
        ("label=team%3Dred&status=completed".into(), vec![&one]),
        (format!("q={}", &one[8..]), vec![&one]),
        ("q=ann".into(), vec![&two]),
        ("q=blue".into(), vec![&two]),
        (format!("since={since}"), vec![&six, &five, &four, &three]),
        (format!("until={since}"), vec![&two, &one]),
        (format!("since={since}&until={until}"), vec![&three]),
        ("tests=true".into(), vec![]),
    ] {
        let list = api.get(&format!("/api/v1/runs?{filter}")).is(200).data();
        assert_eq!(ids(list.as_array().unwrap()), expected, "{filter}");
    }
    let list = api.get("/api/v1/workflows/long/runs?status=cancelled").is(200).data();
    assert_eq!(ids(list.as_array().unwrap()), [&five]);
    // A workflow that does not exist has no runs, and says so.
    let none = api.get("/api/v1/workflows/none/runs");
    assert!(none.status == 404 || none.data() == json!([]), "{}", none.text());
}

#[test]
fn the_log_of_a_run_comes_in_pages_too() {
    let place = Installation::new();
    let server = place.serve();
    let tasks: serde_json::Map<String, Value> = (0..30)
        .map(|n| {
            let needs = if n == 0 { json!([]) } else { json!([format!("s{}", n - 1)]) };
            (format!("s{n}"), json!({"sleep": 0, "needs": needs}))
        })
        .collect();
    server.api.define(&json!({"name": "it", "tasks": tasks}));
    let run = server.api.finished("it", &json!({}))["id"].as_str().unwrap().to_string();
    let (all, count) = pages(&server.api, &format!("/api/v1/runs/{run}/events?limit=4"));
    let (whole, _) = pages(&server.api, &format!("/api/v1/runs/{run}/events?limit=1000"));
    assert_eq!(all, whole);
    assert!(count > 1);
    let versions: Vec<i64> = all.iter().map(|event| event["version"].as_i64().unwrap()).collect();
    assert!(versions.is_sorted() && versions[0] == 1, "{versions:?}");
    assert_eq!(all.iter().filter(|event| event["type"] == "finished").count(), 30, "{all:#?}");
    let after = server.api.get(&format!("/api/v1/runs/{run}/events?after={}", versions[versions.len() - 1])).is(200);
    assert_eq!(after.data(), json!([]));
}
