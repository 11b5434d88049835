//! What a crash leaves behind: everything that was acknowledged. And what a stop waits for.

use crate::outside::Outside;
use crate::raw::{Raw, status};
use crate::rig::{Api, Place, eventually};
use serde_json::{Value, json};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Starts runs from several threads until it is told to stop; those that were acknowledged, by what they were given.
fn load(api: &Api, stop: &AtomicBool, acknowledged: &Mutex<Vec<(u64, String)>>, threads: u64) {
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let api = Api::new(&api.url, api.key.as_deref());
            scope.spawn(move || {
                for n in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let number = thread * 1_000_000 + n;
                    let body = json!({"n": number}).to_string();
                    // No answer is no promise.
                    let key = format!("key-{number}");
                    let headers = [("idempotency-key", key.as_str())];
                    let answer = api.try_send("POST", "/api/v1/workflows/it/trigger", &headers, Some(body.into()));
                    let Ok(answer) = answer else { return };
                    if (200..300).contains(&answer.status) {
                        let run = answer.data()["run_id"].as_str().unwrap().to_string();
                        acknowledged.lock().unwrap().push((number, run));
                    }
                }
            });
        }
    });
}

#[test]
fn every_run_that_was_acknowledged_survives_a_kill_and_comes_to_its_end() {
    let place = Place::new();
    let outside = Outside::start();
    let acknowledged = Mutex::new(Vec::new());
    let mut server = place.serve();
    server.api.define(&json!({"name": "it", "tasks": {
        "first": {"url": format!("{}/first", outside.url), "body": {"n": "{{trigger.body.n}}"}},
        "rest": {"sleep": "5ms", "needs": ["first"]},
        "last": {"url": format!("{}/last", outside.url), "needs": ["rest"], "body": {"n": "{{trigger.body.n}}"}},
    }, "output": {"n": "{{trigger.body.n}}"}}));
    for round in 1..=3 {
        let stop = AtomicBool::new(false);
        let api = server.api.clone();
        let enough = round * 60;
        std::thread::scope(|scope| {
            let loading = scope.spawn(|| load(&api, &stop, &acknowledged, 4));
            eventually("acknowledged runs", || Some(()).filter(|()| acknowledged.lock().unwrap().len() >= enough));
            server.kill();
            stop.store(true, Ordering::Relaxed);
            loading.join().unwrap();
        });
        server = place.serve();
        acknowledged.lock().unwrap().retain({
            let mut seen = std::collections::BTreeSet::new();
            move |(_, run)| seen.insert(run.clone())
        });
    }
    let acknowledged = acknowledged.into_inner().unwrap();
    assert!(acknowledged.len() >= 60);
    for (number, run) in &acknowledged {
        let run = server.api.end(run);
        assert_eq!((&run["status"], &run["output"]), (&json!("completed"), &json!({"n": number})), "{run:#}");
    }
    // Those that nobody was told of are whole as well, and each number was sent by the run that has it.
    eventually("the end of all runs", || {
        let open = server.api.get("/api/v1/runs?status=queued,running,paused").is(200).data();
        (open == json!([])).then_some(())
    });
    let failed = server.api.get("/api/v1/runs?status=failed,cancelled,timeout").is(200).data();
    assert_eq!(failed, json!([]));
    let sent: Vec<Value> = outside.calls("/last").iter().map(|call| call.json()["n"].clone()).collect();
    assert!(acknowledged.iter().all(|(number, _)| sent.contains(&json!(number))));
    server.stop();
    place.sound();
}

#[test]
fn a_step_whose_server_was_killed_is_made_again_with_the_same_key() {
    let place = Place::new();
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
    assert_eq!(end["tasks"]["once"]["error"]["code"], "outcome_unknown", "{end:#}");
    let calls = outside.calls("/slow");
    assert_eq!(calls.len(), 3, "the one that may happen once was not made again");
    let key = calls[2].header("idempotency-key").unwrap();
    assert_eq!(calls.iter().filter(|call| call.header("idempotency-key") == Some(key)).count(), 2);
}

#[test]
fn a_stop_lets_a_running_step_end_and_takes_nothing_new() {
    let place = Place::new();
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
    let place = Place::new().config("drain: 300ms\n");
    let server = place.serve();
    let outside = Outside::start();
    outside.hold("/slow");
    server.api.define(&json!({"name": "it", "tasks": {"slow": {"url": format!("{}/slow", outside.url)}}}));
    let run = server.api.trigger("it", &json!({}));
    outside.called("/slow", 1);
    server.stop();
    outside.let_go("/slow");
    let server = place.serve();
    let end = server.api.end(&run);
    assert_eq!((&end["status"], &end["tasks"]["slow"]["attempt"]), (&json!("completed"), &json!(2)));
}
