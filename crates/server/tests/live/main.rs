//! Live events from outside: streams and sockets of a real server.

// In a test a panic is the report.
#![allow(clippy::unwrap_used)]

mod harness;
mod slow;
mod socket;

use harness::{Frame, Harness, LONG, SHORT, patient};
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
    let harness = Harness::new(patient()).await;
    harness.holding().await;
    let run = harness.start("holding").await;
    let mut stream = harness.stream(&format!("/api/v1/runs/{run}/stream"), None).await;
    // What was there before.
    let first = stream.next().await.unwrap();
    assert_eq!((first.event.as_str(), first.id.as_str()), ("created", "1.0"));
    assert_eq!((&first.data["run_id"], &first.data["type"]), (&json!(run), &json!("created")));
    while stream.next().await.unwrap().data["step"] != "wait" {}
    // What happens now.
    harness.tools.permits.add_permits(1);
    let mut frames = stream.rest().await;
    let end = frames.pop().unwrap();
    assert_eq!(end.event, "end");
    assert_eq!((&end.data["status"], &end.data["run_id"]), (&json!("completed"), &json!(run)));
    assert_eq!(kinds(&frames).last(), Some(&"ended"));
    harness.streams(0).await;
    // All of it at once, now that it is over.
    let path = format!("/api/v1/runs/{run}/stream");
    let mut all = harness.stream(&path, None).await.rest().await;
    assert_eq!(all.pop().unwrap(), end);
    check(&all.iter().map(Frame::event).collect::<Vec<_>>(), &harness.log().await);
    // From anywhere on.
    for (n, from) in all.iter().enumerate() {
        let rest = harness.stream(&path, Some(&from.id)).await.rest().await;
        assert_eq!(rest[..rest.len() - 1], all[n + 1..]);
        assert_eq!(rest.last(), Some(&end));
    }
    let after_first: Vec<Frame> = harness.stream(&format!("{path}?after=1"), None).await.rest().await;
    assert!(after_first.iter().all(|frame| frame.data["version"].as_i64() > Some(1)));
    // A reader who also has the end must not come back.
    assert_eq!(harness.get(&path, &harness.key, Some(&end.id)).await.status(), 204);
    harness.streams(0).await;
}

#[tokio::test]
async fn a_run_that_is_retried_goes_on_in_its_stream() {
    let harness = Harness::new(patient()).await;
    harness.define("failing", json!({"a": {"tool": "fail"}})).await;
    let run = harness.run("failing").await;
    let path = format!("/api/v1/runs/{run}/stream");
    let first = harness.stream(&path, None).await.rest().await;
    let end = first.last().unwrap();
    assert_eq!(end.data["status"], "failed");
    harness.engine.runs(&harness.admin).retry(&run, Retry::SameVersion).await.unwrap();
    timeout(LONG, harness.engine.runs(&harness.admin).wait(&run)).await.unwrap().unwrap();
    let rest = harness.stream(&path, Some(&end.id)).await.rest().await;
    assert_eq!((kinds(&rest)[0], rest.last().unwrap().event.as_str()), ("retried", "end"));
    let all = harness.stream(&path, None).await.rest().await;
    assert_eq!(kinds(&all).iter().filter(|kind| **kind == "ended").count(), 2);
    assert_eq!(all.len(), first.len() - 1 + rest.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_that_come_and_go_under_load_miss_nothing_and_get_nothing_twice() {
    let harness = Harness::new(Settings { behind: 4, ..patient() }).await;
    harness.chain().await;
    let mut chance = 43_u64;
    let mut draw = move |below: u64| {
        chance ^= chance << 13;
        chance ^= chance >> 7;
        chance ^= chance << 17;
        chance % below
    };
    let stream = harness.stream("/api/v1/events", None).await;
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
            stream = harness.stream("/api/v1/events", Some(&last)).await;
        }
        got
    };
    let ((), got) = tokio::join!(harness.run_many("chain", 500), async { timeout(LONG, reading).await.unwrap() });
    check(&got, &harness.log().await);
    // No one is left over.
    harness.streams(0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_of_single_runs_get_each_run_from_its_first_event_to_its_end() {
    let harness = Harness::new(patient()).await;
    harness.chain().await;
    let one = async |harness: &Harness| {
        let run = harness.start("chain").await;
        harness.stream(&format!("/api/v1/runs/{run}/stream"), None).await.rest().await
    };
    let all = futures_util::future::join_all((0..50).map(|_| one(&harness))).await;
    let events = all.iter().flat_map(|frames| &frames[..frames.len() - 1]).map(Frame::event).collect::<Vec<_>>();
    check(&events, &harness.log().await);
    assert!(all.iter().all(|frames| frames.last().unwrap().data["status"] == "completed"));
}

#[tokio::test]
async fn the_stream_of_an_organisation_has_what_was_asked_for() {
    let harness = Harness::new(patient()).await;
    harness.chain().await;
    harness.define("other", json!({"a": {"tool": "echo"}})).await;
    let mut chains = harness.stream("/api/v1/events?workflow=chain", None).await;
    let mut with_tests = harness.stream("/api/v1/events?tests=true", None).await;
    let mut real = harness.stream("/api/v1/events", None).await;
    let text = json!({"name": "t", "tasks": {"a": {"tool": "echo"}}}).to_string();
    let source = Source { text: &text, file: None };
    let test = harness.engine.runs(&harness.admin).test(source, Value::Null).await.unwrap().run;
    timeout(LONG, harness.engine.runs(&harness.admin).wait(&test)).await.unwrap().unwrap();
    let other = harness.run("other").await;
    let chain = harness.run("chain").await;
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
    assert_eq!(harness.get("/api/v1/events?workflow=nothing", &harness.key, None).await.status(), 404);
}

#[tokio::test]
async fn what_another_process_commits_is_seen_without_a_hint() {
    let harness = Harness::new(Settings { poll: SHORT, ..patient() }).await;
    harness.define("sleeping", json!({"a": {"wait_for_webhook": {"timeout": "1h"}}})).await;
    let run = harness.start("sleeping").await;
    let mut stream = harness.stream(&format!("/api/v1/runs/{run}/stream"), None).await;
    while stream.next().await.unwrap().event != "entered" {}
    // The same store, but not the same engine.
    let kinds = stepwell_engine::Kinds::default();
    let other = stepwell_engine::Engine::at_rest(harness.store.clone(), stepwell_engine::Config::new(kinds));
    other.runs(&harness.admin).cancel(&run, None).await.unwrap();
    assert_eq!(stream.rest().await.last().unwrap().data["status"], "cancelled");
}

#[tokio::test]
async fn a_quiet_stream_says_that_it_is_there_and_where() {
    let harness = Harness::new(Settings { keep_alive: SHORT, ..patient() }).await;
    harness.holding().await;
    let run = harness.start("holding").await;
    let mut of_run = harness.stream(&format!("/api/v1/runs/{run}/stream"), None).await;
    of_run.until(": quiet").await;
    let position = harness.engine.log().progress().await.unwrap();
    let mut of_all = harness.stream("/api/v1/events", None).await;
    of_all.until(&format!("id: {position}")).await;
}

#[tokio::test]
async fn only_readers_of_an_organisation_can_watch_its_runs() {
    let harness = Harness::new(patient()).await;
    harness.chain().await;
    let run = harness.run("chain").await;
    let path = format!("/api/v1/runs/{run}/stream");
    let (_, foreign) = harness.engine.organisations(&harness.admin).create("others", None).await.unwrap();
    let problem: Value = {
        let response = harness.get(&path, &foreign, None).await;
        assert_eq!(response.status(), 404);
        serde_json::from_slice(&response.bytes().await.unwrap()).unwrap()
    };
    assert_eq!(problem["code"], "not-found");
    // Everything from the beginning is nothing.
    let mut theirs = harness.get("/api/v1/events", &foreign, Some("0")).await;
    let first = timeout(LONG, theirs.chunk()).await.unwrap().unwrap().unwrap();
    assert_eq!(&first[..], b": here\nid: 0\n\n");
    let next = tokio::time::timeout(SHORT, theirs.chunk()).await;
    assert!(next.is_err(), "{next:?}");
    drop(theirs);

    let user = NewUser { name: "bob".into(), ..NewUser::default() };
    harness.engine.users(&harness.admin).create(user).await.unwrap();
    let key = NewKey { user: Some("bob".into()), name: "k".into(), ..NewKey::default() };
    let (_, powerless) = harness.engine.keys(&harness.admin).create(key).await.unwrap();
    for path in [&path, "/api/v1/events", "/api/v1/ws"] {
        assert_eq!(harness.get(path, &powerless, None).await.status(), 403, "{path}");
        assert_eq!(harness.get(path, "sw_wrong", None).await.status(), 401, "{path}");
    }
    harness.streams(0).await;
}

#[tokio::test]
async fn a_stream_ends_when_the_right_to_it_is_gone() {
    let harness = Harness::new(Settings { recheck: SHORT, ..patient() }).await;
    harness.holding().await;
    let run = harness.start("holding").await;
    let key = NewKey { name: "k".into(), user: Some("admin".into()), ..NewKey::default() };
    let (made, key) = harness.engine.keys(&harness.admin).create(key).await.unwrap();
    let mut of_run = harness.get(&format!("/api/v1/runs/{run}/stream"), &key, None).await;
    let mut of_all = harness.get("/api/v1/events", &key, None).await;
    let mut socket = harness.socket(&key).await;
    assert_eq!(harness.hub.streams(), 3);
    // It may be written at the same time that the key was used.
    while let Err(error) = harness.engine.keys(&harness.admin).revoke(&made.id).await {
        assert!(error.to_string().contains("at the same time"), "{error}");
    }
    while timeout(LONG, of_run.chunk()).await.unwrap().unwrap().is_some() {}
    while timeout(LONG, of_all.chunk()).await.unwrap().unwrap().is_some() {}
    assert_eq!(socket.next().await, None);
    harness.streams(0).await;
}

#[tokio::test]
async fn there_are_only_so_many_streams() {
    let harness = Harness::new(Settings { streams: 2, ..patient() }).await;
    let first = harness.stream("/api/v1/events", None).await;
    let _second = harness.stream("/api/v1/events", None).await;
    let third = harness.get("/api/v1/events", &harness.key, None).await;
    assert_eq!((third.status().as_u16(), third.headers().contains_key("retry-after")), (503, true));
    let problem: Value = serde_json::from_slice(&third.bytes().await.unwrap()).unwrap();
    assert_eq!(problem["code"], "too-many-streams");
    drop(first);
    harness.streams(1).await;
    harness.stream("/api/v1/events", None).await;
}

#[tokio::test]
async fn a_server_that_stops_ends_its_streams() {
    let harness = Harness::new(patient()).await;
    let stream = harness.stream("/api/v1/events", None).await;
    let mut socket = harness.socket(&harness.key).await;
    harness.stop_listening();
    harness.hub.stop();
    assert_eq!(stream.rest().await, []);
    assert_eq!(socket.next().await, None);
    drop(socket);
    timeout(LONG, harness.server).await.unwrap().unwrap();
}

#[tokio::test]
async fn an_id_that_cannot_be_is_refused() {
    let harness = Harness::new(patient()).await;
    harness.chain().await;
    let run = harness.run("chain").await;
    for path in ["/api/v1/events", &format!("/api/v1/runs/{run}/stream")] {
        for id in ["x", "-1", "1.x", "999999"] {
            assert_eq!(harness.get(path, &harness.key, Some(id)).await.status(), 422, "{path} {id}");
        }
    }
    assert_eq!(harness.get(&format!("/api/v1/runs/{run}/stream?since=1"), &harness.key, None).await.status(), 422);
    harness.streams(0).await;
}
