//! No organisation keeps another from its turn.

use crate::harness::Harness;
use serde_json::json;
use stepwell_engine::Config;
use stepwell_engine::commands::Trigger;

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
