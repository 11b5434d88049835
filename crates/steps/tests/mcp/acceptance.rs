//! A changed tool is not called until an administrator accepts it.

use crate::harness::{Harness, ORG, bad};
use serde_json::json;
use std::sync::Arc;
use stepwell_engine::upstream::{Accepted, Pins, Standing};
use stepwell_store::{Change, RecordChange, Registry};

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_or_new_tool_is_held_until_accepted() {
    let harness = Harness::new(vec![bad(&[])]);
    let first = harness.ready("bad").await;
    assert!(harness.kind.is_idempotent(&json!({"tool": "bad__steady"})));
    assert!(!harness.kind.is_idempotent(&json!({"tool": "bad__change"})));
    assert_eq!(harness.ok("bad__leaving", json!({})).await, "here");
    harness.ok("bad__change", json!({})).await;
    // The server has sent a notification.
    let server = harness.until("bad", |server| server.tools.iter().any(|tool| tool.name == "bad__added")).await;
    assert_eq!(server.tools.len(), first.tools.len());

    let changed = harness.fails("bad__steady", json!({})).await;
    assert_eq!((&*changed.code, changed.retryable, changed.may_have_happened), ("tool_changed", false, false));
    assert!(changed.message.contains("`stepwell mcp-server list`"), "{changed:?}");
    assert!(changed.message.contains("`stepwell mcp-server accept bad steady`"), "{changed:?}");
    let new = harness.fails("bad__added", json!({})).await;
    assert_eq!(*new.code, *"tool_new");
    let gone = harness.fails("bad__leaving", json!({})).await;
    assert_eq!(*gone.code, *"unknown_tool");
    assert!(gone.message.contains("bad no longer offers `bad__leaving`"), "{gone:?}");
    assert!(!harness.kind.is_idempotent(&json!({"tool": "bad__steady"})));

    accept(&harness, "steady").await;
    assert_eq!(harness.ok("bad__steady", json!({})).await, "changed");
    assert_eq!(*harness.fails("bad__added", json!({})).await.code, *"tool_new");
    harness.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn accepted_tools_survive_the_process() {
    let harness = Harness::new(vec![bad(&[])]);
    harness.ready("bad").await;
    harness.upstreams.stop().await;
    // Another description was accepted, but the tool is unchanged.
    let pins = Pins::new(Arc::new(harness.store.clone()));
    let mut accepted = pins.accepted(ORG, "bad").await.unwrap().unwrap();
    accepted.tools.get_mut("steady").unwrap().digest = "another".into();
    accepted.tools.remove("hang");
    write(&harness, &accepted).await;
    let again = Harness::on(harness.store.clone(), vec![bad(&[])]);
    assert_eq!(*again.fails("bad__steady", json!({})).await.code, *"tool_changed");
    assert_eq!(*again.fails("bad__hang", json!({})).await.code, *"tool_new");
    assert_eq!(again.ok("bad__steps", json!({})).await, "all done");
    again.upstreams.stop().await;
}

/// Accepts a tool, as an administrator on another node does.
async fn accept(harness: &Harness, tool: &str) {
    let server = harness.server("bad");
    let offered = server.tools.iter().find(|offered| offered.tool == tool).unwrap();
    let pins = Pins::new(Arc::new(harness.store.clone()));
    let mut accepted = pins.accepted(ORG, "bad").await.unwrap().unwrap();
    assert_ne!(accepted.standing(offered), Standing::Accepted);
    accepted.tools.get_mut(tool).unwrap().digest = offered.digest();
    write(harness, &accepted).await;
}

async fn write(harness: &Harness, accepted: &Accepted) {
    let mut record = harness.store.record("mcp_server", "mcp_1_bad").await.unwrap().unwrap();
    record.body = serde_json::to_string(accepted).unwrap();
    let change = Change { records: vec![RecordChange::Replace(record)], ..Change::default() };
    harness.store.change(change).await.unwrap().unwrap();
}
