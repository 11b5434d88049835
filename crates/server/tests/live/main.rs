//! Live events from outside: streams and sockets of a real server.

// In a test a panic is the report.
#![allow(clippy::unwrap_used)]

mod rig;
mod slow;
mod socket;

use rig::{Frame, LONG, Rig, SHORT, patient};
use serde_json::{Value, json};
use std::collections::HashMap;
use stepwell_engine::commands::{NewKey, NewUser, Retry, Source};
use stepwell_server::live::Settings;
use tokio::time::timeout;

/// Nothing missing, nothing twice, and each run's events in their order.
fn check(got: &[(String, i64, usize)], log: &[(String, i64, usize)]) {
    let mut last: HashMap<&str, (i64, usize)> = HashMap::new();
    for (run, version, n) in got {
        let before = last.insert(run, (*version, *n));
        assert!(before < Some((*version, *n)), "{run}: {version}.{n} after {before:?}");
    }
    let (mut got, mut log) = (got.to_vec(), log.to_vec());
    got.sort();
    log.sort();
    assert_eq!(got.len(), log.len());
    assert!(got == log);
}

fn kinds(frames: &[Frame]) -> Vec<&str> {
    frames.iter().map(|frame| frame.event.as_str()).collect()
}

#[tokio::test]
async fn the_stream_of_a_run_has_all_of_it_and_ends_with_it() {
    let rig = Rig::new(patient()).await;
    rig.holding().await;
    let run = rig.start("holding").await;
    let mut stream = rig.stream(&format!("/api/v1/runs/{run}/stream"), None).await;
    // What was there before.
    let first = stream.next().await.unwrap();
    assert_eq!((first.event.as_str(), first.id.as_str()), ("created", "1.0"));
    assert_eq!((&first.data["run_id"], &first.data["type"]), (&json!(run), &json!("created")));
    while stream.next().await.unwrap().data["step"] != "wait" {}
    // What happens now.
    rig.held.add_permits(1);
    let mut frames = stream.rest().await;
    let end = frames.pop().unwrap();
    assert_eq!(end.event, "end");
    assert_eq!((&end.data["status"], &end.data["run_id"]), (&json!("completed"), &json!(run)));
    assert_eq!(kinds(&frames).last(), Some(&"ended"));
    rig.streams(0).await;
    // All of it at once, now that it is over.
    let path = format!("/api/v1/runs/{run}/stream");
    let mut all = rig.stream(&path, None).await.rest().await;
    assert_eq!(all.pop().unwrap(), end);
    check(&all.iter().map(Frame::event).collect::<Vec<_>>(), &rig.log().await);
    // From anywhere on.
    for (n, from) in all.iter().enumerate() {
        let rest = rig.stream(&path, Some(&from.id)).await.rest().await;
        assert_eq!(rest[..rest.len() - 1], all[n + 1..]);
        assert_eq!(rest.last(), Some(&end));
    }
    let after_first: Vec<Frame> = rig.stream(&format!("{path}?after=1"), None).await.rest().await;
    assert!(after_first.iter().all(|frame| frame.data["version"].as_i64() > Some(1)));
    // Whoever has the end too is not to come back.
    assert_eq!(rig.get(&path, &rig.key, Some(&end.id)).await.status(), 204);
    rig.streams(0).await;
}

#[tokio::test]
async fn a_run_that_is_retried_goes_on_in_its_stream() {
    let rig = Rig::new(patient()).await;
    rig.define("failing", json!({"a": {"tool": "fail"}})).await;
    let run = rig.run("failing").await;
    let path = format!("/api/v1/runs/{run}/stream");
    let first = rig.stream(&path, None).await.rest().await;
    let end = first.last().unwrap();
    assert_eq!(end.data["status"], "failed");
    rig.engine.runs(&rig.caller).retry(&run, Retry::SameVersion).await.unwrap();
    timeout(LONG, rig.engine.runs(&rig.caller).wait(&run)).await.unwrap().unwrap();
    let rest = rig.stream(&path, Some(&end.id)).await.rest().await;
    assert_eq!((kinds(&rest)[0], rest.last().unwrap().event.as_str()), ("retried", "end"));
    let all = rig.stream(&path, None).await.rest().await;
    assert_eq!(kinds(&all).iter().filter(|kind| **kind == "ended").count(), 2);
    assert_eq!(all.len(), first.len() - 1 + rest.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_that_come_and_go_under_load_miss_nothing_and_get_nothing_twice() {
    let rig = Rig::new(Settings { behind: 4, ..patient() }).await;
    rig.chain().await;
    let mut chance = 43_u64;
    let mut draw = move |below: u64| {
        chance ^= chance << 13;
        chance ^= chance >> 7;
        chance ^= chance << 17;
        chance % below
    };
    let stream = rig.stream("/api/v1/events", None).await;
    let reading = async {
        let (mut got, mut stream) = (Vec::new(), stream);
        let mut ended = 0;
        while ended < 500 {
            for _ in 0..1 + draw(120) {
                if ended == 500 {
                    break;
                }
                let frame = stream.next().await.unwrap();
                ended += usize::from(frame.event == "ended");
                got.push(frame.event());
            }
            let last = stream.id.clone();
            drop(stream);
            stream = rig.stream("/api/v1/events", Some(&last)).await;
        }
        got
    };
    let ((), got) = tokio::join!(rig.run_many("chain", 500), async { timeout(LONG, reading).await.unwrap() });
    check(&got, &rig.log().await);
    // Nobody is left over.
    rig.streams(0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_of_single_runs_get_each_run_from_its_first_event_to_its_end() {
    let rig = Rig::new(patient()).await;
    rig.chain().await;
    let one = async |rig: &Rig| {
        let run = rig.start("chain").await;
        rig.stream(&format!("/api/v1/runs/{run}/stream"), None).await.rest().await
    };
    let all = futures_util::future::join_all((0..50).map(|_| one(&rig))).await;
    let events = all.iter().flat_map(|frames| &frames[..frames.len() - 1]).map(Frame::event).collect::<Vec<_>>();
    check(&events, &rig.log().await);
    assert!(all.iter().all(|frames| frames.last().unwrap().data["status"] == "completed"));
}

#[tokio::test]
async fn the_stream_of_an_organisation_has_what_was_asked_for() {
    let rig = Rig::new(patient()).await;
    rig.chain().await;
    rig.define("other", json!({"a": {"tool": "echo"}})).await;
    let mut chains = rig.stream("/api/v1/events?workflow=chain", None).await;
    let mut with_tests = rig.stream("/api/v1/events?tests=true", None).await;
    let mut real = rig.stream("/api/v1/events", None).await;
    let text = json!({"name": "t", "tasks": {"a": {"tool": "echo"}}}).to_string();
    let source = Source { text: &text, file: None };
    let test = rig.engine.runs(&rig.caller).test(source, Value::Null).await.unwrap().run;
    timeout(LONG, rig.engine.runs(&rig.caller).wait(&test)).await.unwrap().unwrap();
    let other = rig.run("other").await;
    let chain = rig.run("chain").await;
    for (stream, runs) in
        [(&mut chains, vec![&chain]), (&mut with_tests, vec![&test, &other, &chain]), (&mut real, vec![&other, &chain])]
    {
        let mut seen: Vec<Value> = Vec::new();
        while seen.len() < runs.len() {
            let frame = stream.next().await.unwrap();
            if frame.event == "ended" {
                seen.push(frame.data["run_id"].clone());
            } else {
                assert_eq!(frame.data["run_id"], json!(runs[seen.len()]), "{frame:?}");
            }
        }
        assert_eq!(seen, runs.iter().map(|run| json!(run)).collect::<Vec<_>>());
    }
    assert_eq!(rig.get("/api/v1/events?workflow=nothing", &rig.key, None).await.status(), 404);
}

#[tokio::test]
async fn what_another_process_commits_is_seen_without_a_hint() {
    let rig = Rig::new(Settings { poll: SHORT, ..patient() }).await;
    rig.define("sleeping", json!({"a": {"wait_for_webhook": {"timeout": "1h"}}})).await;
    let run = rig.start("sleeping").await;
    let mut stream = rig.stream(&format!("/api/v1/runs/{run}/stream"), None).await;
    while stream.next().await.unwrap().event != "entered" {}
    // The same store, but not the same engine.
    let kinds = stepwell_engine::Kinds::default();
    let other = stepwell_engine::Engine::at_rest(rig.store.clone(), stepwell_engine::Config::new(kinds));
    other.runs(&rig.caller).cancel(&run, None).await.unwrap();
    assert_eq!(stream.rest().await.last().unwrap().data["status"], "cancelled");
}

#[tokio::test]
async fn a_quiet_stream_says_that_it_is_there_and_where() {
    let rig = Rig::new(Settings { keep_alive: SHORT, ..patient() }).await;
    rig.holding().await;
    let run = rig.start("holding").await;
    let mut of_run = rig.stream(&format!("/api/v1/runs/{run}/stream"), None).await;
    of_run.until(": quiet").await;
    let position = rig.engine.log().progress().await.unwrap();
    let mut of_all = rig.stream("/api/v1/events", None).await;
    of_all.until(&format!("id: {position}")).await;
}

#[tokio::test]
async fn nobody_watches_runs_of_others_or_without_the_right() {
    let rig = Rig::new(patient()).await;
    rig.chain().await;
    let run = rig.run("chain").await;
    let path = format!("/api/v1/runs/{run}/stream");
    let (_, foreign) = rig.engine.organisations(&rig.caller).create("others", None).await.unwrap();
    let problem: Value = {
        let response = rig.get(&path, &foreign, None).await;
        assert_eq!(response.status(), 404);
        serde_json::from_slice(&response.bytes().await.unwrap()).unwrap()
    };
    assert_eq!(problem["code"], "not-found");
    // Everything from the beginning is nothing.
    let mut theirs = rig.get("/api/v1/events", &foreign, Some("0")).await;
    let first = timeout(LONG, theirs.chunk()).await.unwrap().unwrap().unwrap();
    assert_eq!(&first[..], b": here\nid: 0\n\n");
    let next = tokio::time::timeout(SHORT, theirs.chunk()).await;
    assert!(next.is_err(), "{next:?}");
    drop(theirs);

    let user = NewUser { name: "bob".into(), ..NewUser::default() };
    rig.engine.users(&rig.caller).create(user).await.unwrap();
    let key = NewKey { user: Some("bob".into()), name: "k".into(), ..NewKey::default() };
    let (_, powerless) = rig.engine.keys(&rig.caller).create(key).await.unwrap();
    for path in [&path, "/api/v1/events", "/api/v1/ws"] {
        assert_eq!(rig.get(path, &powerless, None).await.status(), 403, "{path}");
        assert_eq!(rig.get(path, "sw_wrong", None).await.status(), 401, "{path}");
    }
    rig.streams(0).await;
}

#[tokio::test]
async fn a_stream_ends_when_the_right_to_it_is_gone() {
    let rig = Rig::new(Settings { recheck: SHORT, ..patient() }).await;
    rig.holding().await;
    let run = rig.start("holding").await;
    let key = NewKey { name: "k".into(), user: Some("admin".into()), ..NewKey::default() };
    let (made, key) = rig.engine.keys(&rig.caller).create(key).await.unwrap();
    let mut of_run = rig.get(&format!("/api/v1/runs/{run}/stream"), &key, None).await;
    let mut of_all = rig.get("/api/v1/events", &key, None).await;
    let mut socket = rig.socket(&key).await;
    assert_eq!(rig.hub.streams(), 3);
    // It may be written at the same time that the key was used.
    while let Err(error) = rig.engine.keys(&rig.caller).revoke(&made.id).await {
        assert!(error.to_string().contains("at the same time"), "{error}");
    }
    while timeout(LONG, of_run.chunk()).await.unwrap().unwrap().is_some() {}
    while timeout(LONG, of_all.chunk()).await.unwrap().unwrap().is_some() {}
    assert_eq!(socket.next().await, None);
    rig.streams(0).await;
}

#[tokio::test]
async fn there_are_only_so_many_streams() {
    let rig = Rig::new(Settings { streams: 2, ..patient() }).await;
    let first = rig.stream("/api/v1/events", None).await;
    let _second = rig.stream("/api/v1/events", None).await;
    let third = rig.get("/api/v1/events", &rig.key, None).await;
    assert_eq!((third.status().as_u16(), third.headers().contains_key("retry-after")), (503, true));
    let problem: Value = serde_json::from_slice(&third.bytes().await.unwrap()).unwrap();
    assert_eq!(problem["code"], "too-many-streams");
    drop(first);
    rig.streams(1).await;
    rig.stream("/api/v1/events", None).await;
}

#[tokio::test]
async fn a_server_that_stops_ends_its_streams() {
    let rig = Rig::new(patient()).await;
    let stream = rig.stream("/api/v1/events", None).await;
    let mut socket = rig.socket(&rig.key).await;
    rig.stop_listening();
    rig.hub.stop();
    assert_eq!(stream.rest().await, []);
    assert_eq!(socket.next().await, None);
    drop(socket);
    timeout(LONG, rig.server).await.unwrap().unwrap();
}

#[tokio::test]
async fn an_id_that_cannot_be_is_refused() {
    let rig = Rig::new(patient()).await;
    rig.chain().await;
    let run = rig.run("chain").await;
    for path in ["/api/v1/events", &format!("/api/v1/runs/{run}/stream")] {
        for id in ["x", "-1", "1.x", "999999"] {
            assert_eq!(rig.get(path, &rig.key, Some(id)).await.status(), 422, "{path} {id}");
        }
    }
    assert_eq!(rig.get(&format!("/api/v1/runs/{run}/stream?since=1"), &rig.key, None).await.status(), 422);
    rig.streams(0).await;
}

#[tokio::test]
async fn the_delay_from_the_commit_to_the_reader_is_measured() {
    let handle = stepwell_server::metrics::install().unwrap();
    let rig = Rig::new(patient()).await;
    rig.chain().await;
    let mut stream = rig.stream("/api/v1/events", None).await;
    rig.run("chain").await;
    while stream.next().await.unwrap().event != "ended" {}
    let metrics = handle.render();
    let value = |name: &str| {
        let line = metrics.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{name}"));
        line.trim().parse::<f64>().unwrap()
    };
    let (sum, count) = (value("stepwell_live_delay_seconds_sum"), value("stepwell_live_delay_seconds_count"));
    assert!(count >= 3.0 && sum > 0.0 && sum / count < LONG.as_secs_f64(), "{sum} of {count}");
    // Other tests have streams too.
    assert!(value("stepwell_live_streams ") >= 0.0);
}
