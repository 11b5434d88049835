//! `errorHandling`: taking the error edge or ending the run, after the last attempt.

use crate::drawn::{echo, graph, run, server};
use crate::harness::statuses;
use serde_json::{Value, json};

/// A node with a permanent or a temporary failure.
fn failing(more: Value) -> Value {
    let mut config = json!({"tool": "fail", "args": {"message": "on purpose", "code": "drill"}, "outputVariable": "r"});
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!(["risky", "tool", config])
}

#[test]
fn a_failure_goes_on_by_its_error_edge_with_what_went_wrong_in_its_variable() {
    let (_place, server) = server();
    for (title, more) in [("default", json!({})), ("said", json!({"errorHandling": "continue"}))] {
        let nodes = json!([
            ["start", "start"],
            failing(more),
            echo("recover", json!("{{ctx.r.error.code}}: {{ctx.r.error.message}}"), "told"),
            echo("after", json!(1), "after"),
            ["end", "end", {"outputParameters": [{"name": "told", "sourceVariable": "told.value"}]}],
        ]);
        let edges = ["start>risky", "risky.success>after", "risky.error>recover", "recover>after", "after>end"];
        let run = run(&server.api, &graph(title, nodes, &edges), &json!({}));
        assert_eq!(statuses(&run), "start=success risky=failed recover=success after=success end=success");
        assert_eq!(
            (&run["status"], &run["output"]["told"]),
            (&json!("completed"), &json!("drill: on purpose")),
            "{run:#}"
        );
    }
}

#[test]
fn a_failure_without_an_error_edge_lets_the_rest_end_and_then_fails_the_run() {
    let (_place, server) = server();
    let nodes = json!([["start", "start"], failing(json!({})), echo("after", json!(1), "a"),
                       ["beside", "delay", {"delayMs": 50}],
                       echo("last", json!(2), "b")]);
    let run = run(
        &server.api,
        &graph("rest", nodes, &["start>risky", "risky>after", "start>beside", "beside>last"]),
        &json!({}),
    );
    assert_eq!(statuses(&run), "start=success risky=failed after=skipped beside=success last=success");
    assert_eq!((&run["status"], &run["error"]["code"]), (&json!("failed"), &json!("drill")), "{run:#}");
}

#[test]
fn fail_workflow_ends_the_run_at_once_though_there_is_an_error_edge() {
    let (_place, server) = server();
    let risky = failing(json!({"errorHandling": "fail_workflow"}));
    let nodes = json!([["start", "start"], risky, echo("recover", json!(1), "a"),
                       ["beside", "delay", {"delayMinutes": 60}]]);
    let edges = ["start>risky", "risky.error>recover", "start>beside"];
    let run = run(&server.api, &graph("at-once", nodes, &edges), &json!({}));
    assert_eq!((&run["status"], &run["error"]["code"]), (&json!("failed"), &json!("drill")), "{run:#}");
    assert_eq!(run["tasks"]["beside"]["status"], "cancelled");
    assert_ne!(run["tasks"]["recover"]["status"], "success");
}

#[test]
fn a_failure_that_may_pass_is_tried_three_times_first() {
    let (_place, server) = server();
    let api = &server.api;
    let args = json!({"args": {"message": "for now", "code": "drill", "retryable": true}});
    let nodes = json!([["start", "start"], failing(args), echo("recover", json!(1), "a")]);
    let id = api.define(&graph("thrice", nodes, &["start>risky", "risky.error>recover"]));
    let run = api.finished(&id, &json!({}));
    assert_eq!(run["status"], "completed");
    let tried: Vec<&str> =
        run["tasks"]["risky"]["attempts"].as_array().unwrap().iter().map(|a| a["status"].as_str().unwrap()).collect();
    assert_eq!(tried, ["failed", "failed", "failed"], "{run:#}");
    // One second, then two.
    let instant = |n: usize, field: &str| -> jiff::Timestamp {
        run["tasks"]["risky"]["attempts"][n][field].as_str().unwrap().parse().unwrap()
    };
    for (n, pause) in [(1, 1_000), (2, 2_000)] {
        let waited = instant(n, "started_at").as_millisecond() - instant(n - 1, "finished_at").as_millisecond();
        assert!(waited >= pause, "{waited} ms before attempt {}", n + 1);
    }
}

#[test]
fn an_item_that_fails_in_a_loop_stops_it_or_is_left_out_as_asked() {
    let (_place, server) = server();
    for (mode, status) in [("stop", "failed"), ("continue", "completed")] {
        let nodes = json!([
            ["start", "start"],
            ["each", "loop", {"sourceVariable": "input.items", "itemVariable": "item", "onItemError": mode,
                              "outputVariable": "all"}],
            ["odd", "condition", {"branches": [{"id": "bad", "condition": "ctx.item == 2"}], "defaultBranch": "good"}],
            ["risky", "tool", {"tool": "fail", "args": {"message": "two"}}],
            echo("fine", json!("{{ctx.item}}"), "x"),
            ["end", "end", {"outputParameters": [{"name": "all", "sourceVariable": "all"}]}],
        ]);
        let edges = [
            "start>each",
            "each.loop>odd",
            "odd.bad>risky",
            "odd.good>fine",
            "risky>each",
            "fine>each",
            "each.done>end",
        ];
        let run = run(&server.api, &graph(mode, nodes, &edges), &json!({"items": [1, 2, 3]}));
        assert_eq!(run["status"], status, "{run:#}");
        let third = &run["tasks"]["each[2].fine"]["status"];
        assert_eq!(third == "success", mode == "continue", "{run:#}");
    }
}
