//! Tools that change are held until somebody accepts them.

use crate::rig::{ORG, Rig, bad};
use serde_json::json;
use std::sync::Arc;
use stepwell_engine::upstream::{Accepted, Pins, Standing};
use stepwell_store::{Change, RecordChange, Registry};

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_changed_or_is_new_is_held_until_it_is_accepted() {
    let rig = Rig::new(vec![bad(&[])]);
    let first = rig.ready("bad").await;
    assert!(rig.kind.is_idempotent(&json!({"tool": "bad__steady"})));
    assert!(!rig.kind.is_idempotent(&json!({"tool": "bad__change"})));
    assert_eq!(rig.ok("bad__leaving", json!({})).await, "here");
    rig.ok("bad__change", json!({})).await;
    // The server has said so by itself.
    let server = rig.until("bad", |server| server.tools.iter().any(|tool| tool.name == "bad__added")).await;
    assert_eq!(server.tools.len(), first.tools.len());

    let changed = rig.fails("bad__steady", json!({})).await;
    assert_eq!((&*changed.code, changed.retryable, changed.may_have_happened), ("tool_changed", false, false));
    assert!(changed.message.contains("`stepwell mcp-server list`"), "{changed:?}");
    assert!(changed.message.contains("`stepwell mcp-server accept bad steady`"), "{changed:?}");
    let new = rig.fails("bad__added", json!({})).await;
    assert_eq!(*new.code, *"tool_new");
    let gone = rig.fails("bad__leaving", json!({})).await;
    assert_eq!(*gone.code, *"unknown_tool");
    assert!(gone.message.contains("bad does not offer `bad__leaving` any more"), "{gone:?}");
    assert!(!rig.kind.is_idempotent(&json!({"tool": "bad__steady"})));

    accept(&rig, "steady").await;
    assert_eq!(rig.ok("bad__steady", json!({})).await, "changed");
    assert_eq!(*rig.fails("bad__added", json!({})).await.code, *"tool_new");
    rig.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_accepted_outlives_the_process() {
    let rig = Rig::new(vec![bad(&[])]);
    rig.ready("bad").await;
    rig.upstreams.stop().await;
    // Somebody accepted another description of it, and it is as it was.
    let pins = Pins::new(Arc::new(rig.store.clone()));
    let mut accepted = pins.accepted(ORG, "bad").await.unwrap().unwrap();
    accepted.tools.get_mut("steady").unwrap().digest = "another".into();
    accepted.tools.remove("hang");
    write(&rig, &accepted).await;
    let again = Rig::on(rig.store.clone(), vec![bad(&[])]);
    assert_eq!(*again.fails("bad__steady", json!({})).await.code, *"tool_changed");
    assert_eq!(*again.fails("bad__hang", json!({})).await.code, *"tool_new");
    assert_eq!(again.ok("bad__steps", json!({})).await, "all done");
    again.upstreams.stop().await;
}

/// As an administrator on another node does.
async fn accept(rig: &Rig, tool: &str) {
    let server = rig.server("bad");
    let offered = server.tools.iter().find(|offered| offered.tool == tool).unwrap();
    let pins = Pins::new(Arc::new(rig.store.clone()));
    let mut accepted = pins.accepted(ORG, "bad").await.unwrap().unwrap();
    assert_ne!(accepted.standing(offered), Standing::Accepted);
    accepted.tools.get_mut(tool).unwrap().digest = offered.digest();
    write(rig, &accepted).await;
}

async fn write(rig: &Rig, accepted: &Accepted) {
    let mut record = rig.store.record("mcp_server", "mcp_1_bad").await.unwrap().unwrap();
    record.body = serde_json::to_string(accepted).unwrap();
    let change = Change { records: vec![RecordChange::Replace(record)], ..Change::default() };
    rig.store.change(change).await.unwrap().unwrap();
}
