//! After a crash everything acknowledged is there; an orderly stop waits for requests and steps.

use crate::harness::{Answer, Api, Installation, eventually};
use crate::outside::Outside;
use crate::raw::{Raw, status};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Runs that one thread starts before a kill: so few that all runs of a test fit into one page.
const MOST: u64 = 80;

/// A call that starts the run of this number: once, however often it is made.
fn start(api: &Api, number: u64) -> reqwest::Result<Answer> {
    let (key, body) = (format!("key-{number}"), json!({"n": number}).to_string());
    api.try_send("POST", "/api/v1/workflows/it/trigger", &[("idempotency-key", &key)], Some(body.into()))
}

/// Starts runs from several threads until the server is gone; returns the acknowledged ones by their number.
fn load(api: &Api, first: u64, acknowledged: &Mutex<BTreeMap<u64, String>>) {
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let api = Api::new(&api.url, api.key.as_deref());
            scope.spawn(move || {
                for n in 0..MOST {
                    let number = first + 4 * n + thread;
                    // No answer is no promise.
                    let Ok(answer) = start(&api, number) else { return };
                    let run = answer.is(201).data()["run_id"].as_str().unwrap().to_string();
                    acknowledged.lock().unwrap().insert(number, run);
                }
            });
        }
    });
}

#[test]
fn every_run_that_was_acknowledged_survives_a_kill_and_comes_to_its_end() {
    let place = Installation::new();
    let outside = Outside::start();
    let acknowledged = Mutex::new(BTreeMap::new());
    let mut server = place.serve();
    server.api.define(&json!({"name": "it", "tasks": {
        "first": {"url": format!("{}/first", outside.url), "body": {"n": "{{trigger.body.n}}"}},
        "rest": {"sleep": "5ms", "needs": ["first"]},
        "last": {"url": format!("{}/last", outside.url), "needs": ["rest"], "body": {"n": "{{trigger.body.n}}"}},
    }, "output": {"n": "{{trigger.body.n}}"}}));
    for round in 1..=3 {
        let api = server.api.clone();
        std::thread::scope(|scope| {
            let loading = scope.spawn(|| load(&api, round * 1_000_000, &acknowledged));
            let enough = usize::try_from(round).unwrap() * 60;
            eventually("acknowledged runs", || Some(()).filter(|()| acknowledged.lock().unwrap().len() >= enough));
            server.kill();
            loading.join().unwrap();
        });
        server = place.serve();
    }
    let acknowledged = acknowledged.into_inner().unwrap();
    for (number, run) in &acknowledged {
        let end = server.api.end(run);
        assert_eq!((&end["status"], &end["output"]), (&json!("completed"), &json!({"n": number})), "{end:#}");
        // A repeated request gets the same run.
        assert_eq!(start(&server.api, *number).unwrap().is(200).data()["run_id"], **run);
    }
    // Runs that were not acknowledged are complete too, and there is one run for each number.
    eventually("the end of all runs", || {
        let open = server.api.get("/api/v1/runs?status=queued,running,paused").is(200).data();
        (open == json!([])).then_some(())
    });
    let all = server.api.get("/api/v1/runs?limit=1000").is(200).json();
    assert_eq!(all["next"], Value::Null, "more runs than the test looks at");
    let all = all["data"].as_array().unwrap();
    assert!(all.iter().all(|run| run["status"] == "completed"));
    let numbers = all.iter().map(|run| server.api.run(run["id"].as_str().unwrap())["input"]["n"].as_u64().unwrap());
    assert_eq!(numbers.collect::<BTreeSet<_>>().len(), all.len());
    let sent: BTreeSet<u64> = outside.calls("/last").iter().map(|call| call.json()["n"].as_u64().unwrap()).collect();
    assert_eq!(sent.len(), all.len());
    server.stop();
    place.sound();
}

#[test]
fn a_step_whose_server_was_killed_is_made_again_with_the_same_key() {
    let place = Installation::new();
    let server = place.serve();
    let outside = Outside::start();
    outside.hold("/slow");
    server.api.define(&json!({"name": "it", "tasks": {
        "slow": {"url": format!("{}/slow", outside.url)},
        "once": {"url": format!("{}/slow", outside.url), "at_most_once": true},
    }}));
    let run = server.api.trigger("it", &json!({}));
    outside.called("/slow", 2);
    server.kill();
    outside.let_go("/slow");
    let server = place.serve();
    let end = server.api.end(&run);
    assert_eq!((&end["tasks"]["slow"]["status"], &end["tasks"]["slow"]["attempt"]), (&json!("success"), &json!(2)));
    let attempts: Vec<&Value> =
        end["tasks"]["slow"]["attempts"].as_array().unwrap().iter().map(|one| &one["status"]).collect();
    assert_eq!(attempts, ["lost", "success"]);
    assert_eq!(end["tasks"]["once"]["error"]["code"], "outcome_unknown", "{end:#}");
    let calls = outside.calls("/slow");
    assert_eq!(calls.len(), 3, "the one that may happen once was not made again");
    let key = calls[2].header("idempotency-key").unwrap();
    assert_eq!(calls.iter().filter(|call| call.header("idempotency-key") == Some(key)).count(), 2);
}

#[test]
fn a_step_that_runs_whenever_the_server_dies_is_quarantined_until_a_person_decides() {
    let place = Installation::new();
    let mut server = place.serve();
    let outside = Outside::start();
    outside.hold("/slow");
    server.api.define(&json!({"name": "it", "tasks": {"slow": {"url": format!("{}/slow", outside.url)}}}));
    let run = server.api.trigger("it", &json!({}));
    for times in 1..=3 {
        outside.called("/slow", times);
        server.kill();
        server = place.serve();
    }
    let view =
        eventually("a quarantined step", || Some(server.api.run(&run)).filter(|view| view["status"] == "paused"));
    assert_eq!(view["waiting_for"][0]["for"], "verdict", "{view:#}");
    assert!(view["waiting_for"][0]["moved_on_by"].as_str().unwrap().contains("several times in a row"), "{view:#}");
    assert_eq!(outside.calls("/slow").len(), 3);
    let metrics = server.api.get("/metrics").is(200).text();
    assert!(metrics.contains("stepwell_quarantined_total{what=\"step\"} 1"), "{metrics}");
    let verdict = format!("/api/v1/runs/{run}/steps/slow/verdict");
    let agent = server.with_key(&place.agent_key());
    agent.post(&verdict, &json!({"verdict": "run_again"})).is(403);
    agent.post(&format!("/api/v1/runs/{run}/release"), &json!({})).is(403);
    server.api.post(&format!("/api/v1/runs/{run}/release"), &json!({})).is(409);
    outside.let_go("/slow");
    server.api.post(&verdict, &json!({"verdict": "run_again"})).is(200);
    assert_eq!(server.api.end(&run)["status"], "completed");
}

#[test]
fn a_stop_lets_a_running_step_end_and_takes_nothing_new() {
    let place = Installation::new();
    let mut server = place.serve();
    let outside = Outside::start();
    outside.hold("/slow");
    server.api.define(&json!({"name": "it", "tasks": {
        "slow": {"url": format!("{}/slow", outside.url)},
        "next": {"sleep": 0, "needs": ["slow"]},
    }}));
    let run = server.api.trigger("it", &json!({}));
    outside.called("/slow", 1);
    // A request that began before the stop, and whose body comes after it.
    let body = r#"{"late": true}"#;
    let mut late = Raw::open(server.address());
    late.send(format!(
        "POST /api/v1/workflows/it/trigger HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
        server.api.key.as_deref().unwrap(),
        body.len(),
        &body[..5]
    ))
    .unwrap();
    // So that its head is read before the stop comes.
    server.api.get("/readyz").is(200);
    server.ask_to_stop();
    eventually("a server that takes no connection", || std::net::TcpStream::connect(server.address()).err());
    late.send(&body[5..]).unwrap();
    let answer = late.rest();
    assert_eq!(status(&answer), 503, "{answer}");
    assert!(answer.contains("application/problem+json") && answer.contains("unavailable"), "{answer}");
    outside.let_go("/slow");
    let (code, log) = server.gone();
    assert_eq!(code, Some(0), "{log}");
    assert!(!place.data().join("server.url").exists(), "others would look for a server that is gone");
    let server = place.serve();
    let end = server.api.end(&run);
    assert_eq!((&end["status"], &end["tasks"]["slow"]["attempt"]), (&json!("completed"), &json!(1)));
    assert_eq!(outside.calls("/slow").len(), 1, "the step that ran came to its end");
    assert_eq!(server.api.get("/api/v1/runs").data().as_array().unwrap().len(), 1);
    server.stop();
    place.sound();
}

#[test]
fn a_stop_does_not_wait_longer_than_it_may() {
    let drain = Duration::from_millis(1_500);
    let place = Installation::new().config(&format!("drain: {}ms\n", drain.as_millis()));
    let server = place.serve();
    let outside = Outside::start();
    outside.hold("/slow");
    server.api.define(&json!({"name": "it", "tasks": {"slow": {"url": format!("{}/slow", outside.url)}}}));
    let run = server.api.trigger("it", &json!({}));
    outside.called("/slow", 1);
    let asked = Instant::now();
    server.stop();
    // The step is still held. A server that ignores the setting waits for 30 seconds, which is the default.
    let took = asked.elapsed();
    assert!(took >= drain && took < Duration::from_secs(25), "it took {took:?}");
    outside.let_go("/slow");
    let server = place.serve();
    let end = server.api.end(&run);
    assert_eq!((&end["status"], &end["tasks"]["slow"]["attempt"]), (&json!("completed"), &json!(2)));
}
