//! Delay nodes: fixed, computed, and until an instant.

use crate::drawn::{echo, graph, server};
use crate::harness::Api;
use serde_json::{Value, json};

fn delayed(title: &str, config: Value) -> Value {
    let nodes = json!([["start", "start"], ["wait", "delay", config], echo("after", json!(1), "x")]);
    graph(title, nodes, &["start>wait", "wait>after"])
}

/// How long the delay of a run takes, in milliseconds, from when it began.
#[track_caller]
fn length(api: &Api, run: &str) -> i64 {
    let run = api.step(run, "wait", "sleeping");
    let waiting = &run["waiting_for"][0];
    let instant = |field: &str| -> jiff::Timestamp { waiting[field].as_str().unwrap().parse().unwrap() };
    instant("until").as_millisecond() - instant("since").as_millisecond()
}

#[test]
fn a_delay_takes_as_long_as_it_says() {
    let (_place, server) = server();
    let api = &server.api;
    let far = "2999-01-01T00:00:00Z";
    for (title, config, input, expected) in [
        ("fixed", json!({"delayType": "fixed", "delayMinutes": 5}), json!({}), 300_000),
        ("sum", json!({"delayMinutes": 1, "delaySeconds": "30", "delayMs": 5}), json!({}), 90_005),
        ("dynamic", json!({"delayType": "dynamic", "delayVariable": "ctx.input.pause"}), json!({"pause": 90}), 90_000),
        (
            "words",
            json!({"delayType": "dynamic", "delayVariable": "input.pause"}),
            json!({"pause": "1h30m"}),
            5_400_000,
        ),
    ] {
        let id = api.define(&delayed(title, config));
        let run = api.trigger(&id, &input);
        assert_eq!(length(api, &run), expected, "{title}");
        // Seed 003 has no other way on than time; here a person can say that it is over.
        api.ready(&run, "wait");
        assert_eq!(api.end(&run)["status"], "completed");
    }
    let id = api.define(&delayed("until", json!({"delayType": "until", "untilTime": "{{ctx.input.at}}"})));
    let run = api.trigger(&id, &json!({"at": far}));
    let asleep = api.step(&run, "wait", "sleeping");
    let until: jiff::Timestamp = asleep["waiting_for"][0]["until"].as_str().unwrap().parse().unwrap();
    assert_eq!(until, far.parse().unwrap());
    // An instant that is over is no wait.
    assert_eq!(api.finished(&id, &json!({"at": "2020-01-01T00:00:00Z"}))["status"], "completed");
    let wrong = api.finished(&id, &json!({"at": "soon"}));
    assert_eq!((&wrong["status"], &wrong["tasks"]["wait"]["status"]), (&json!("failed"), &json!("template_error")));
}

#[test]
fn a_short_delay_is_really_waited_for() {
    let (_place, server) = server();
    let id = server.api.define(&delayed("short", json!({"delayMs": 200})));
    let run = server.api.finished(&id, &json!({}));
    assert_eq!(run["status"], "completed");
    assert!(run["tasks"]["wait"]["duration_ms"].as_i64().unwrap() >= 200, "{run:#}");
}

#[test]
fn a_delay_outlives_the_server() {
    let (place, server) = server();
    let id = server.api.define(&delayed("long", json!({"delaySeconds": 3})));
    let run = server.api.trigger(&id, &json!({}));
    server.api.step(&run, "wait", "sleeping");
    server.kill();
    let server = place.serve();
    assert_eq!(server.api.end(&run)["status"], "completed");
}
