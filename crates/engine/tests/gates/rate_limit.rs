//! Rate limits across many steps and runs.

use crate::harness::{Harness, hold, status};
use serde_json::{Map, json};
use stepwell_core::time::Millis;
use stepwell_engine::commands::NewPolicy;
use stepwell_engine::{Error, PolicyEffect, Rate};

fn slow(calls: u32, seconds: u64) -> NewPolicy {
    let rate = Some(Rate { calls, per: Millis::from_secs(seconds) });
    NewPolicy { effect: PolicyEffect::Allow, rate, ..hold("tool:ok") }
}

#[tokio::test(start_paused = true)]
async fn calls_of_many_steps_keep_the_pace_of_the_policy() {
    let tasks: Map<_, _> =
        (0..30).map(|n| (format!("s{n}"), json!({"tool": "ok", "args": {}, "retries": 0}))).collect();
    let harness = Harness::with("w", tasks.into()).await;
    harness.policy("slow", slow(5, 10)).await;
    let (one, two) = (harness.start("w").await, harness.start("w").await);
    for run in [one, two] {
        let view = harness.ended(&run).await;
        assert_eq!(view.status, "completed", "what is put off uses up no attempt: {view:?}");
    }
    let at = harness.called_at();
    assert_eq!(at.len(), 60);
    let took = at.iter().max().unwrap().duration_since(*at.iter().min().unwrap());
    // Five at once, and then one every two seconds.
    assert!((105..=125).contains(&took.as_secs()), "{took:?}");
    for from in &at {
        let window = at.iter().filter(|other| **other >= *from && other.duration_since(*from).as_secs() < 10);
        assert!(window.count() <= 10);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_put_off_says_when_it_will_be_made() {
    let harness =
        Harness::with("w", json!({"a": {"tool": "ok", "args": {}}, "b": {"tool": "ok", "args": {}, "needs": ["a"]}}))
            .await;
    harness.policy("slow", slow(1, 600)).await;
    let run = harness.start("w").await;
    harness.pass(5).await;
    let view = harness.view(&run).await;
    let waiting = view.waiting_for.iter().find(|waiting| waiting.step == "b").unwrap();
    assert!(waiting.until.is_some(), "{waiting:?}");
    assert_eq!(status(&harness.ended(&run).await, "b").0, "success");
}

#[tokio::test(start_paused = true)]
async fn a_rate_on_a_tool_is_one_rate_whatever_it_is_called_with() {
    let call = |n: u32| json!({"url": format!("http://h{n}.example/"), "retries": 0});
    let tasks: Map<_, _> = (0..6).map(|n| (format!("s{n}"), call(n))).collect();
    let harness = Harness::with("w", tasks.into()).await;
    harness.policy("slow", NewPolicy { calls: "tool:http".into(), ..slow(1, 10) }).await;
    harness.ended(&harness.start("w").await).await;
    let at = harness.called_at();
    let took = at.iter().max().unwrap().duration_since(*at.iter().min().unwrap());
    assert!((50..=60).contains(&took.as_secs()), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_delayed_call_cannot_be_marked_ready_before_its_time() {
    let harness =
        Harness::with("w", json!({"a": {"tool": "ok", "args": {}}, "b": {"tool": "ok", "args": {}, "needs": ["a"]}}))
            .await;
    harness.policy("slow", slow(1, 600)).await;
    let run = harness.start("w").await;
    harness.pass(5).await;
    let told = harness.engine.steps(&harness.admin).ready(&run, "b").await;
    assert!(matches!(told, Err(Error::NotNow(_))), "{told:?}");
    harness.pass(5).await;
    assert_eq!(harness.called(), ["a"]);
    harness.ended(&run).await;
    assert_eq!(harness.called(), ["a", "b"]);
}
