//! Schedules: each tick once, across crashes; single times; enabling and disabling; previews.

use crate::harness::{Api, Installation, eventually};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const EVERY_SECOND: &str = "* * * * * *";

fn ticking(name: &str, trigger: Value) -> Value {
    json!({"name": name, "trigger": trigger, "tasks": {"rest": {"sleep": 0}},
        "output": {"at": "{{trigger.headers.x-stepwell-scheduled-at ?? null}}"}})
}

fn runs(api: &Api) -> Vec<String> {
    runs_of(api, "tick")
}

fn runs_of(api: &Api, workflow: &str) -> Vec<String> {
    let list = api.get(&format!("/api/v1/workflows/{workflow}/runs?limit=1000")).is(200).data();
    list.as_array().unwrap().iter().rev().map(|run| run["id"].as_str().unwrap().to_string()).collect()
}

/// The runs once there are so many.
fn at_least(api: &Api, count: usize) -> Vec<String> {
    eventually(&format!("{count} ticks"), || Some(runs(api)).filter(|runs| runs.len() >= count))
}

/// The time that each run of a schedule was started for, which is in the headers it was started with.
fn ticks(api: &Api, runs: &[String]) -> Vec<String> {
    let tick = |run: &String| {
        let end = api.end(run);
        assert_eq!(end["status"], "completed", "{end:#}");
        end["output"]["at"].as_str().unwrap_or_else(|| panic!("no tick in {end:#}")).to_string()
    };
    runs.iter().map(tick).collect()
}

#[test]
fn every_tick_fires_once_across_a_crash() {
    let place = Installation::new();
    let server = place.serve();
    server.api.define(&ticking("tick", json!({"cron": EVERY_SECOND, "catch_up": "all"})));
    at_least(&server.api, 3);
    server.kill();
    let server = place.serve();
    let before = runs(&server.api).len();
    at_least(&server.api, before + 3);
    server.kill();
    let server = place.serve();
    let before = runs(&server.api).len();
    at_least(&server.api, before + 2);
    server.api.call("PATCH", "/api/v1/workflows/tick", &json!({"enabled": false})).is(200);
    let all = runs(&server.api);
    let ticks = ticks(&server.api, &all);
    let different: BTreeSet<&String> = ticks.iter().collect();
    assert_eq!(different.len(), ticks.len(), "a tick fired twice: {ticks:?}");
    // Each second between the first and the last, although the process was dead for some.
    let seconds = |tick: &String| -> i64 {
        let clock: Vec<i64> = tick[11..19].split(':').map(|part| part.parse().unwrap()).collect();
        clock[0] * 3600 + clock[1] * 60 + clock[2]
    };
    let (first, last) = (seconds(&ticks[0]), seconds(&ticks[ticks.len() - 1]));
    assert_eq!((last - first).rem_euclid(86_400) + 1, ticks.len() as i64, "a tick is missing: {ticks:?}");
}

#[test]
fn a_workflow_that_is_switched_off_does_not_fire_and_goes_on_later() {
    let place = Installation::new();
    let server = place.serve();
    let api = &server.api;
    api.define(&ticking("tick", json!({"cron": EVERY_SECOND, "catch_up": "all"})));
    at_least(api, 1);
    let switch = |on: bool| drop(api.call("PATCH", "/api/v1/workflows/tick", &json!({"enabled": on})).is(200));
    switch(false);
    let off = runs(api);
    api.define(&ticking("clock", json!({"cron": EVERY_SECOND})));
    // Another schedule shows that ticks have passed: both are polled at once.
    let clock = eventually("ticks", || Some(runs_of(api, "clock")).filter(|runs| runs.len() >= 3));
    assert_eq!(runs(api), off, "it fired while it was off");
    api.post("/api/v1/workflows/tick/trigger", &json!({})).refused(409, "workflow-disabled");
    let passed = ticks(api, &clock);
    switch(true);
    let on = at_least(api, off.len() + 2);
    // What would have fired while it was off is not made up for. The last tick of the other may still be in progress.
    let before_last = &passed[passed.len() - 2];
    let fired = ticks(api, &on[off.len()..]);
    assert!(fired.iter().all(|tick| tick > before_last), "{fired:?} after {passed:?}");
}

#[test]
fn a_single_time_fires_once() {
    let place = Installation::new();
    let server = place.serve();
    let api = &server.api;
    // One time is over when it is read, the other is far away.
    let never = json!([{"at": "2020-01-01T00:00:00Z", "input": {"n": 1}}, {"at": "2999-01-01T00:00:00Z"}]);
    api.post("/api/v1/workflows", &ticking("never", never)).is(201);
    let preview = api.get("/api/v1/workflows/never/schedule").is(200).data();
    assert_eq!((&preview[0]["next"], preview[1]["next"].as_array().unwrap().len()), (&json!([]), 1), "{preview:#}");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    api.define(&ticking("tick", json!({"at": (now + 1_500).to_string(), "input": {"n": 2}})));
    let fired = api.end(&at_least(api, 1)[0]);
    assert_eq!((&fired["status"], &fired["input"]), (&json!("completed"), &json!({"n": 2})));
    server.stop();
    let server = place.serve();
    let api = &server.api;
    // Ticks of another schedule show that schedules were polled after the start.
    api.define(&ticking("clock", json!({"cron": EVERY_SECOND})));
    eventually("ticks", || Some(()).filter(|()| runs_of(api, "clock").len() >= 2));
    assert_eq!(api.get("/api/v1/workflows/tick/schedule").is(200).data()[0]["next"], json!([]));
    assert_eq!((runs(api).len(), runs_of(api, "never")), (1, Vec::new()));
}

#[test]
fn the_next_ten_times_of_a_schedule_are_shown() {
    let place = Installation::new();
    let server = place.serve();
    let api = &server.api;
    api.define(&ticking(
        "tick",
        json!([{"cron": "0 8 * * 1-5", "timezone": "Europe/Amsterdam"}, {"cron": "*/15 * * * *"}, "api"]),
    ));
    let shown = api.get("/api/v1/workflows/tick/schedule").is(200).data();
    assert_eq!(shown.as_array().unwrap().len(), 2, "{shown:#}");
    assert_eq!((&shown[0]["cron"], &shown[0]["timezone"]), (&json!("0 8 * * 1-5"), &json!("Europe/Amsterdam")));
    for schedule in shown.as_array().unwrap() {
        let next: Vec<&str> = schedule["next"].as_array().unwrap().iter().map(|at| at.as_str().unwrap()).collect();
        assert_eq!(next.len(), 10);
        assert!(next.is_sorted() && next.windows(2).all(|pair| pair[0] != pair[1]), "{next:?}");
    }
    for at in shown[0]["next"].as_array().unwrap() {
        let at = at.as_str().unwrap();
        // Eight in Amsterdam is six or seven in UTC.
        assert!(["T06:00:00", "T07:00:00"].contains(&&at[10..19]), "{at}");
    }
    assert_eq!(api.get("/api/v1/schedules").is(200).data(), shown);
}

#[test]
fn a_schedule_that_may_not_overlap_waits_for_its_run() {
    let place = Installation::new();
    let server = place.serve();
    let api = &server.api;
    api.define(&json!({"name": "tick", "trigger": {"cron": EVERY_SECOND, "overlap": "skip"},
        "tasks": {"rest": {"wait_for_webhook": {"timeout": "1h"}}}}));
    let first = at_least(api, 1)[0].clone();
    let error = eventually("a tick that was skipped", || {
        let shown = api.get("/api/v1/workflows/tick/schedule").is(200).data();
        shown[0]["last_error"].as_str().map(str::to_string)
    });
    assert!(error.contains(&first), "{error}");
    assert_eq!(runs(api).len(), 1);
    api.ready(&first, "rest");
    at_least(api, 2);
}

#[test]
fn a_run_that_begins_later_is_listed_and_cancelled_and_survives_a_kill() {
    let place = Installation::new();
    let server = place.serve();
    let api = &server.api;
    api.define(&json!({"name": "later", "tasks": {"rest": {"sleep": 0}}}));
    let far = api.post("/api/v1/workflows/later/trigger?delay=1d", &json!({"n": 1})).is(201).data();
    assert_eq!((&far["status"], far.get("started_at")), (&json!("scheduled"), None), "{far:#}");
    let listed = api.data("/runs?status=scheduled");
    assert_eq!((&listed[0]["id"], &listed[0]["scheduled_for"]), (&far["run_id"], &far["scheduled_for"]));
    let path = format!("/api/v1/runs/{}/cancel", far["run_id"].as_str().unwrap());
    assert_eq!(api.post(&path, &json!({})).is(200).data()["status"], "cancelled");
    // A plus sign that is not encoded would be a space.
    let past = api.post("/api/v1/workflows/later/trigger?at=2026-01-01T00:00:00%2B01:00", &json!({})).is(201).data();
    assert_ne!(past["status"], "scheduled");
    for wrong in ["at=soon", "delay=soon", "at=2026-01-01T00:00:00Z&delay=1m", "delay=6000d", "after=1m"] {
        api.post(&format!("/api/v1/workflows/later/trigger?{wrong}"), &json!({})).is(422);
    }
    let near = place.stepwell(&["trigger", "later", "--delay", "1s"]);
    let near = near.lines().find(|line| line.starts_with("run_")).unwrap().split(':').next().unwrap();
    server.kill();
    let server = place.serve();
    let end = server.api.end(near);
    assert_eq!(end["status"], "completed", "{end:#}");
    assert!(end["started_at"].as_str() >= end["scheduled_for"].as_str(), "{end:#}");
    place.sound();
}

#[test]
fn a_schedule_is_added_shown_and_removed_by_a_user_who_may_only_run() {
    let place = Installation::new();
    let server = place.serve();
    let api = &server.api;
    api.define(&ticking("tick", json!("api")));
    let ann = api.new_user("ann", &["workflow.run", "workflow.read"]);
    let schedule = json!({"cron": EVERY_SECOND, "timezone": "Europe/Paris", "input": {"n": 7}});
    let added = ann.post("/api/v1/workflows/tick/schedules", &schedule).is(201).data();
    assert_eq!((&added["by"], &added["timezone"]), (&json!("ann"), &json!("Europe/Paris")));
    let run = api.end(&at_least(api, 1)[0]);
    assert_eq!((&run["created_by"], &run["input"]), (&json!("ann"), &json!({"n": 7})));
    let shown = place.stepwell(&["schedule", "tick"]);
    assert!(shown.contains("added by ann"), "{shown}");
    ann.delete(&format!("/api/v1/schedules/{}", added["id"].as_str().unwrap())).is(204);
    assert_eq!(api.data("/schedules"), json!([]));
    let refused = ann.post("/api/v1/workflows/tick/schedules", &json!({"cron": "99 * * * *"})).is(422);
    assert!(refused.text().contains("minute"), "{}", refused.text());
    assert_eq!(refused.json()["errors"][0]["pointer"], "/cron");
    place.stepwell(&["schedule", "tick", "--add", "@daily", "--input", "n=1"]);
    assert_eq!(api.data("/schedules").as_array().unwrap().len(), 1);
}
