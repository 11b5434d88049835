//! Fairness: no organisation starves another.

use crate::harness::Harness;
use serde_json::json;
use stepwell_engine::Config;
use stepwell_engine::commands::Trigger;
use tokio::time::{Duration, Instant};

const SLOTS: u32 = 4;
const FLOOD: usize = 10_000;

#[tokio::test(start_paused = true)]
async fn a_step_of_another_organisation_waits_for_no_more_than_the_slots_of_a_flood() {
    let harness = Harness::with(|config| Config { slots: SLOTS, ..config }).await;
    let (other, secret) = harness.engine.organisations(&harness.admin).create("other", None).await.unwrap();
    let theirs = harness.engine.identity().authenticate(&secret).await.unwrap();
    let flood = json!({"name": "flood", "tasks": {"each": {
        "for_each": "{{input.items}}", "max_parallel": 1_000, "tasks": {"one": {"tool": "nap", "args": {}}}}}});
    harness.define(&harness.admin, flood).await;
    harness.define(&theirs, json!({"name": "one", "tasks": {"a": {"tool": "nap", "args": {}}}})).await;
    let items: Vec<u32> = (0..1_000).collect();
    for _ in 0..FLOOD / items.len() {
        harness.engine.runs(&harness.admin).trigger(Trigger::new("flood", json!({"items": items}))).await.unwrap();
    }
    for _ in 0..20 {
        harness.pass(1).await;
        let run = harness.start(&theirs, "one").await;
        let ready = harness.called();
        harness.engine.runs(&theirs).wait(&run).await.unwrap();
        let calls = harness.tools.calls();
        let at = calls.iter().position(|call| call.run == run).unwrap();
        assert_eq!(calls[at].org, other.id);
        assert!(at.saturating_sub(ready) <= SLOTS as usize + 1, "{} steps went first", at - ready);
        if calls.len() > FLOOD / 2 {
            break;
        }
    }
    assert!(harness.called() < FLOOD, "the flood was over before anything could be shown");
}

#[tokio::test(start_paused = true)]
async fn a_newcomer_starts_at_once_while_another_organisation_hangs_on_all_slots() {
    let harness = Harness::with(|config| Config { slots: 20, ..config }).await;
    let organisations = harness.engine.organisations(&harness.admin);
    let hang = json!({"name": "hang", "tasks": {"each": {
        "for_each": "{{input.items}}", "max_parallel": 100, "tasks": {"one": {"tool": "hold", "args": {}}}}}});
    harness.define(&harness.admin, hang).await;
    let items: Vec<u32> = (0..30).collect();
    harness.engine.runs(&harness.admin).trigger(Trigger::new("hang", json!({"items": items}))).await.unwrap();
    // One organisation alone uses all slots, and no more than those.
    harness.until_holding(20).await;
    for name in ["first", "second", "third"] {
        let (_, secret) = organisations.create(name, None).await.unwrap();
        let newcomer = harness.engine.identity().authenticate(&secret).await.unwrap();
        harness.define(&newcomer, json!({"name": "one", "tasks": {"a": {"tool": "ok", "args": {}}}})).await;
        let began = Instant::now();
        for _ in 0..10 {
            let run = harness.start(&newcomer, "one").await;
            harness.engine.runs(&newcomer).wait(&run).await.unwrap();
        }
        assert!(began.elapsed() < Duration::from_secs(1), "{name} waited for {:?}", began.elapsed());
    }
    assert_eq!(*harness.tools.holding.borrow(), 20);
    harness.tools.permits.add_permits(30);
    harness.until_holding(0).await;
}
