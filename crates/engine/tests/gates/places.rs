//! Approvals where engines get them wrong: beside other branches, in loops, in children, on skipped paths, in retried runs.

use crate::rig::{Rig, hold, list, refusal, status};
use serde_json::{Value, json};
use stepwell_engine::commands::{Decision, Retry};

fn gate() -> Value {
    json!({"approval": {"message": "go?"}})
}

#[tokio::test(start_paused = true)]
async fn a_gate_in_one_branch_does_not_stop_the_other_and_covers_its_own_only() {
    let tasks = json!({"gate": gate(), "left": {"needs": ["gate"], "tool": "ok", "args": {"n": 1}},
        "right": {"tool": "ok", "args": {"n": 2}}, "both": {"needs": ["left", "right"], "tool": "ok", "args": {"n": 3}}});
    let rig = Rig::with("w", tasks).await;
    let run = rig.start("w").await;
    let asked = rig.asked(&run, "gate").await;
    let steps: Vec<&Value> = asked.asks["calls"].as_array().unwrap().iter().map(|call| &call["step"]).collect();
    assert_eq!(steps, ["left", "both"]);
    rig.pass(5).await;
    assert_eq!(rig.called(), ["right"]);
    rig.approve(&rig.admin, &run, "gate").await;
    assert_eq!(rig.ended(&run).await.status, "completed");
    assert_eq!(rig.called(), ["right", "left", "both"]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_a_gate_and_for_something_else_is_covered_by_the_gate() {
    let tasks = json!({"gate": gate(), "right": {"tool": "safe", "args": {}},
        "both": {"needs": ["gate", "right"], "tool": "ok", "args": {}}});
    let rig = Rig::with("w", tasks).await;
    rig.policy("money", hold("tool:ok")).await;
    let run = rig.start("w").await;
    rig.approve(&rig.admin, &run, "gate").await;
    assert_eq!(rig.ended(&run).await.status, "completed");
    assert_eq!(rig.called(), ["right", "both"]);
}

#[tokio::test(start_paused = true)]
async fn each_item_has_a_gate_of_its_own_with_its_own_digest() {
    let tasks = json!({"each": {"for_each": "{{input.list}}", "max_parallel": 10, "tasks": {
        "gate": {"approval": {"message": "pay {{item}}?"}},
        "pay": {"needs": ["gate"], "tool": "ok", "args": {"sum": "{{item}}"}}}}});
    let rig = Rig::with("w", tasks).await;
    rig.policy("money", hold("tool:ok")).await;
    let run = rig.start_as(&rig.admin, "w", json!({"list": [1, 2, 2]})).await;
    let mut digests = Vec::new();
    for n in 0..3 {
        let asked = rig.asked(&run, &format!("each[{n}].gate")).await;
        assert_eq!(asked.asks["calls"][0]["step"], format!("each[{n}].pay"));
        digests.push(asked.digest);
    }
    assert!(digests[0] != digests[1] && digests[1] != digests[2], "{digests:?}");
    // The answer for one item is not one for another, though it asks for the same.
    let other = Decision { approve: true, digest: digests[1].clone(), ..Decision::default() };
    assert_eq!(refusal(&rig.engine.gates(&rig.admin).answer(&run, "each[2].gate", other).await), "conflict");
    assert_eq!(refusal(&rig.answer(&rig.admin, &run, "each[1].gate", true).await), "taken");
    rig.pass(5).await;
    assert_eq!(rig.called(), ["each[1].pay"]);
    rig.approve(&rig.admin, &run, "each[0].gate").await;
    rig.answer(&rig.admin, &run, "each[2].gate", false).await.unwrap();
    let view = rig.ended(&run).await;
    assert_eq!(status(&view, "each[2].gate").0, "denied");
    assert_eq!(rig.called().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_gate_before_a_loop_names_its_calls_and_does_not_cover_them() {
    let tasks = json!({"gate": gate(), "each": {"needs": ["gate"], "for_each": "{{input.list}}",
        "tasks": {"pay": {"tool": "ok", "args": {"sum": "{{item}}"}}}}});
    let rig = Rig::with("w", tasks).await;
    rig.policy("money", hold("tool:ok")).await;
    let run = rig.start_as(&rig.admin, "w", json!({"list": [1]})).await;
    let asked = rig.asked(&run, "gate").await;
    let expected = json!([{"step": "each[*].pay", "kind": "tool", "not_yet_known": true, "tool": "ok"}]);
    assert_eq!(asked.asks["calls"], expected);
    rig.approve(&rig.admin, &run, "gate").await;
    rig.pass(5).await;
    rig.approve(&rig.admin, &run, "each[0].pay").await;
    assert_eq!(rig.ended(&run).await.status, "completed");
}

#[tokio::test(start_paused = true)]
async fn a_gate_in_a_child_is_the_childs_and_its_denial_is_the_parents_failure() {
    let rig = Rig::with("child", json!({"gate": gate(), "pay": {"needs": ["gate"], "tool": "ok", "args": {}}})).await;
    rig.define("parent", json!({"call": {"workflow": "child", "input": {}}})).await;
    for (approve, ended, calls) in [(true, "completed", 1), (false, "failed", 1)] {
        let run = rig.start("parent").await;
        let open = loop {
            let (open, _) = rig.engine.gates(&rig.admin).list(None, 10).await.unwrap();
            if let Some(open) = open.into_iter().next() {
                break open;
            }
            rig.pass(1).await;
        };
        assert_ne!(open.run, run);
        let decision = Decision { approve, digest: open.digest, ..Decision::default() };
        rig.engine.gates(&rig.admin).answer(&open.run, "gate", decision).await.unwrap();
        let view = rig.ended(&run).await;
        assert_eq!((view.status, rig.called().len()), (ended, calls), "{view:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_covers_a_child_run_does_not_cover_what_the_child_does() {
    let rig = Rig::with("child", json!({"pay": {"tool": "ok", "args": {}}})).await;
    rig.define("parent", json!({"gate": gate(), "call": {"needs": ["gate"], "workflow": "child", "input": {"n": 1}}}))
        .await;
    rig.policy("money", hold("tool:ok")).await;
    let run = rig.start("parent").await;
    let asked = rig.asked(&run, "gate").await;
    assert_eq!(
        (&asked.asks["calls"][0]["workflow"], &asked.asks["calls"][0]["input"]),
        (&json!("child"), &json!({"n": 1}))
    );
    rig.approve(&rig.admin, &run, "gate").await;
    rig.pass(5).await;
    let (open, _) = rig.engine.gates(&rig.admin).list(None, 10).await.unwrap();
    assert_eq!(open.iter().map(|open| &*open.step).collect::<Vec<_>>(), ["pay"]);
    assert_eq!(rig.called().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_skipped_gate_asks_nothing_and_approves_nothing() {
    let tasks = json!({"gate": {"approval": {"message": "go?"}, "if": "input.ask"},
        "pay": {"needs": ["gate"], "tool": "ok", "args": {}, "if": "tasks.gate.status != 'denied'"}});
    let rig = Rig::with("w", tasks).await;
    let run = rig.start_as(&rig.admin, "w", json!({"ask": false})).await;
    let view = rig.ended(&run).await;
    assert_eq!(status(&view, "gate").0, "skipped");
    assert_eq!(rig.called(), ["pay"]);
    let late = Decision { approve: true, ..Decision::default() };
    assert_eq!(refusal(&rig.engine.gates(&rig.admin).answer(&run, "gate", late).await), "conflict");
    rig.policy("money", hold("tool:ok")).await;
    let run = rig.start_as(&rig.admin, "w", json!({"ask": false})).await;
    rig.pass(5).await;
    rig.asked(&run, "pay").await;
    assert_eq!(rig.called(), ["pay"]);
}

#[tokio::test(start_paused = true)]
async fn a_denied_gate_asks_anew_when_the_run_is_retried_and_old_answers_do_not_count() {
    let rig = Rig::with("w", json!({"gate": gate(), "pay": {"needs": ["gate"], "tool": "ok", "args": {}}})).await;
    let run = rig.start("w").await;
    let first = rig.asked(&run, "gate").await.digest;
    rig.answer(&rig.admin, &run, "gate", false).await.unwrap();
    assert_eq!(rig.ended(&run).await.status, "cancelled");
    rig.engine.runs(&rig.admin).retry(&run, Retry::SameVersion).await.unwrap();
    let second = rig.asked(&run, "gate").await.digest;
    assert_ne!(first, second);
    for digest in [None, first] {
        let stale = Decision { approve: true, digest, ..Decision::default() };
        assert_ne!(refusal(&rig.engine.gates(&rig.admin).answer(&run, "gate", stale).await), "taken");
    }
    rig.approve(&rig.admin, &run, "gate").await;
    assert_eq!(rig.ended(&run).await.status, "completed");
}

#[tokio::test(start_paused = true)]
async fn on_a_newer_version_a_gate_before_a_changed_step_is_asked_again() {
    let version = |sum: i64, tool: &str| {
        let pay = json!({"needs": ["gate"], "tool": tool, "args": {"sum": sum}, "retries": 0});
        json!({"gate": gate(), "pay": pay})
    };
    let rig = Rig::with("w", version(1, "fail")).await;
    let run = rig.start("w").await;
    let first = rig.asked(&run, "gate").await.digest;
    rig.approve(&rig.admin, &run, "gate").await;
    assert_eq!(rig.ended(&run).await.status, "failed");
    rig.define("w", version(1_000, "ok")).await;
    rig.engine.runs(&rig.admin).retry(&run, Retry::Newest).await.unwrap();
    let asked = rig.asked(&run, "gate").await;
    assert_ne!(asked.digest, first);
    assert_eq!(asked.asks["calls"][0]["input"]["args"], json!({"sum": 1_000}));
    rig.approve(&rig.admin, &run, "gate").await;
    assert_eq!(rig.ended(&run).await.status, "completed");
    assert_eq!(rig.called(), list(&["pay", "pay"]));
}
