//! Gates in unusual positions: beside other branches, in loops, in children, on skipped paths, in retried runs.

use crate::harness::{Harness, hold, list, refusal, status};
use serde_json::{Value, json};
use stepwell_engine::commands::{Decision, Retry};

fn gate() -> Value {
    json!({"approval": {"message": "go?"}})
}

#[tokio::test(start_paused = true)]
async fn a_gate_in_one_branch_does_not_stop_the_other_and_covers_its_own_only() {
    let tasks = json!({"gate": gate(), "left": {"needs": ["gate"], "tool": "ok", "args": {"n": 1}},
        "right": {"tool": "ok", "args": {"n": 2}}, "both": {"needs": ["left", "right"], "tool": "ok", "args": {"n": 3}}});
    let harness = Harness::with("w", tasks).await;
    let run = harness.start("w").await;
    let asked = harness.asked(&run, "gate").await;
    let steps: Vec<&Value> = asked.asks["calls"].as_array().unwrap().iter().map(|call| &call["step"]).collect();
    assert_eq!(steps, ["left", "both"]);
    harness.pass(5).await;
    assert_eq!(harness.called(), ["right"]);
    harness.approve(&harness.admin, &run, "gate").await;
    assert_eq!(harness.ended(&run).await.status, "completed");
    assert_eq!(harness.called(), ["right", "left", "both"]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_a_gate_and_for_something_else_is_covered_by_the_gate() {
    let tasks = json!({"gate": gate(), "right": {"tool": "safe", "args": {}},
        "both": {"needs": ["gate", "right"], "tool": "ok", "args": {}}});
    let harness = Harness::with("w", tasks).await;
    harness.policy("money", hold("tool:ok")).await;
    let run = harness.start("w").await;
    harness.approve(&harness.admin, &run, "gate").await;
    assert_eq!(harness.ended(&run).await.status, "completed");
    assert_eq!(harness.called(), ["right", "both"]);
}

#[tokio::test(start_paused = true)]
async fn each_item_has_a_gate_of_its_own_with_its_own_digest() {
    let tasks = json!({"each": {"for_each": "{{input.list}}", "max_parallel": 10, "tasks": {
        "gate": {"approval": {"message": "pay {{item}}?"}},
        "pay": {"needs": ["gate"], "tool": "ok", "args": {"sum": "{{item}}"}}}}});
    let harness = Harness::with("w", tasks).await;
    harness.policy("money", hold("tool:ok")).await;
    let run = harness.start_as(&harness.admin, "w", json!({"list": [1, 2, 2]})).await;
    let mut digests = Vec::new();
    for n in 0..3 {
        let asked = harness.asked(&run, &format!("each[{n}].gate")).await;
        assert_eq!(asked.asks["calls"][0]["step"], format!("each[{n}].pay"));
        digests.push(asked.digest);
    }
    assert!(digests[0] != digests[1] && digests[1] != digests[2], "{digests:?}");
    // The answer for one item is not one for another, though it asks for the same.
    let other = Decision { approve: true, digest: digests[1].clone(), ..Decision::default() };
    assert_eq!(refusal(&harness.engine.gates(&harness.admin).answer(&run, "each[2].gate", other).await), "conflict");
    assert_eq!(refusal(&harness.answer(&harness.admin, &run, "each[1].gate", true).await), "taken");
    harness.pass(5).await;
    assert_eq!(harness.called(), ["each[1].pay"]);
    harness.approve(&harness.admin, &run, "each[0].gate").await;
    harness.answer(&harness.admin, &run, "each[2].gate", false).await.unwrap();
    let view = harness.ended(&run).await;
    assert_eq!(status(&view, "each[2].gate").0, "denied");
    assert_eq!(harness.called().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_gate_before_a_loop_names_its_calls_and_does_not_cover_them() {
    let tasks = json!({"gate": gate(), "each": {"needs": ["gate"], "for_each": "{{input.list}}",
        "tasks": {"pay": {"tool": "ok", "args": {"sum": "{{item}}"}}}}});
    let harness = Harness::with("w", tasks).await;
    harness.policy("money", hold("tool:ok")).await;
    let run = harness.start_as(&harness.admin, "w", json!({"list": [1]})).await;
    let asked = harness.asked(&run, "gate").await;
    let expected = json!([{"step": "each[*].pay", "kind": "tool", "not_yet_known": true, "tool": "ok",
        "input": {"tool": "ok", "args": {"sum": "{{item}}"}}, "unknown": ["/args/sum"]}]);
    assert_eq!(asked.asks["calls"], expected);
    harness.approve(&harness.admin, &run, "gate").await;
    harness.pass(5).await;
    harness.approve(&harness.admin, &run, "each[0].pay").await;
    assert_eq!(harness.ended(&run).await.status, "completed");
}

#[tokio::test(start_paused = true)]
async fn a_gate_in_a_child_is_the_childs_and_its_denial_is_the_parents_failure() {
    let harness =
        Harness::with("child", json!({"gate": gate(), "pay": {"needs": ["gate"], "tool": "ok", "args": {}}})).await;
    harness.define("parent", json!({"call": {"workflow": "child", "input": {}}})).await;
    for (approve, ended, calls) in [(true, "completed", 1), (false, "failed", 1)] {
        let run = harness.start("parent").await;
        let open = loop {
            let (open, _) = harness.engine.gates(&harness.admin).list(None, 10).await.unwrap();
            if let Some(open) = open.into_iter().next() {
                break open;
            }
            harness.pass(1).await;
        };
        assert_ne!(open.run, run);
        let decision = Decision { approve, digest: open.digest, ..Decision::default() };
        harness.engine.gates(&harness.admin).answer(&open.run, "gate", decision).await.unwrap();
        let view = harness.ended(&run).await;
        assert_eq!((view.status, harness.called().len()), (ended, calls), "{view:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_covers_a_child_run_does_not_cover_what_the_child_does() {
    let harness = Harness::with("child", json!({"pay": {"tool": "ok", "args": {}}})).await;
    harness
        .define("parent", json!({"gate": gate(), "call": {"needs": ["gate"], "workflow": "child", "input": {"n": 1}}}))
        .await;
    harness.policy("money", hold("tool:ok")).await;
    let run = harness.start("parent").await;
    let asked = harness.asked(&run, "gate").await;
    assert_eq!(
        (&asked.asks["calls"][0]["workflow"], &asked.asks["calls"][0]["input"]),
        (&json!("child"), &json!({"n": 1}))
    );
    harness.approve(&harness.admin, &run, "gate").await;
    harness.pass(5).await;
    let (open, _) = harness.engine.gates(&harness.admin).list(None, 10).await.unwrap();
    assert_eq!(open.iter().map(|open| &*open.step).collect::<Vec<_>>(), ["pay"]);
    assert_eq!(harness.called().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_skipped_gate_asks_nothing_and_approves_nothing() {
    let tasks = json!({"gate": {"approval": {"message": "go?"}, "if": "input.ask"},
        "pay": {"needs": ["gate"], "tool": "ok", "args": {}, "if": "tasks.gate.status != 'denied'"}});
    let harness = Harness::with("w", tasks).await;
    let run = harness.start_as(&harness.admin, "w", json!({"ask": false})).await;
    let view = harness.ended(&run).await;
    assert_eq!(status(&view, "gate").0, "skipped");
    assert_eq!(harness.called(), ["pay"]);
    let late = Decision { approve: true, ..Decision::default() };
    assert_eq!(refusal(&harness.engine.gates(&harness.admin).answer(&run, "gate", late).await), "conflict");
    harness.policy("money", hold("tool:ok")).await;
    let run = harness.start_as(&harness.admin, "w", json!({"ask": false})).await;
    harness.pass(5).await;
    harness.asked(&run, "pay").await;
    assert_eq!(harness.called(), ["pay"]);
}

#[tokio::test(start_paused = true)]
async fn a_denied_gate_asks_anew_when_the_run_is_retried_and_old_answers_do_not_count() {
    let harness =
        Harness::with("w", json!({"gate": gate(), "pay": {"needs": ["gate"], "tool": "ok", "args": {}}})).await;
    let run = harness.start("w").await;
    let first = harness.asked(&run, "gate").await.digest;
    harness.answer(&harness.admin, &run, "gate", false).await.unwrap();
    assert_eq!(harness.ended(&run).await.status, "cancelled");
    harness.engine.runs(&harness.admin).retry(&run, Retry::SameVersion).await.unwrap();
    let second = harness.asked(&run, "gate").await.digest;
    assert_ne!(first, second);
    for digest in [None, first] {
        let stale = Decision { approve: true, digest, ..Decision::default() };
        assert_ne!(refusal(&harness.engine.gates(&harness.admin).answer(&run, "gate", stale).await), "taken");
    }
    harness.approve(&harness.admin, &run, "gate").await;
    assert_eq!(harness.ended(&run).await.status, "completed");
}

#[tokio::test(start_paused = true)]
async fn on_a_newer_version_a_gate_before_a_changed_step_is_asked_again() {
    let version = |sum: i64, tool: &str| {
        let pay = json!({"needs": ["gate"], "tool": tool, "args": {"sum": sum}, "retries": 0});
        json!({"gate": gate(), "pay": pay})
    };
    let harness = Harness::with("w", version(1, "fail")).await;
    let run = harness.start("w").await;
    let first = harness.asked(&run, "gate").await.digest;
    harness.approve(&harness.admin, &run, "gate").await;
    assert_eq!(harness.ended(&run).await.status, "failed");
    harness.define("w", version(1_000, "ok")).await;
    harness.engine.runs(&harness.admin).retry(&run, Retry::Newest).await.unwrap();
    let asked = harness.asked(&run, "gate").await;
    assert_ne!(asked.digest, first);
    assert_eq!(asked.asks["calls"][0]["input"]["args"], json!({"sum": 1_000}));
    harness.approve(&harness.admin, &run, "gate").await;
    assert_eq!(harness.ended(&run).await.status, "completed");
    assert_eq!(harness.called(), list(&["pay", "pay"]));
}
