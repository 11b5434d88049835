//! Servers that start slowly, restart or never start: calls wait for them without using up an attempt.

use crate::harness::{Harness, bad, call, failure, success};
use serde_json::json;
use std::path::Path;
use std::time::Duration;
use stepwell_core::event::FailureKind;
use stepwell_engine::upstream::State;
use stepwell_engine::{Resumed, StepCall, Until};
use stepwell_steps::mcp::ServerConfig;

/// The same server under plain names and under its own, both of which start once this file exists.
fn waiting_for(file: &Path) -> Vec<ServerConfig> {
    let config = bad(&[("WAIT_FOR", file.to_str().unwrap())]);
    vec![ServerConfig { name: "plain".into(), plain_names: true, ..config.clone() }, config]
}

/// Makes attempts as the engine does, until one ends.
async fn patiently(harness: &Harness, call: StepCall) -> (stepwell_core::event::Outcome, Vec<String>) {
    let (mut call, mut reasons) = (call, Vec::new());
    loop {
        match harness.once(call.clone()).await {
            Ok(outcome) => return (outcome, reasons),
            Err(waits) => {
                let Until::Available { pause, why } = waits.until else { panic!("{waits:?}") };
                reasons.push(why);
                tokio::time::sleep(pause).await;
                call.resumed = Some(Resumed { note: waits.note.into(), answers: Vec::new() });
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_waits_for_a_server_that_starts_slowly() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("go");
    let harness = Harness::new(waiting_for(&file));
    let mut waiting = Vec::new();
    for tool in ["steady", "bad__steady"] {
        let Err(waits) = harness.once(call(tool, json!({}))).await else { panic!("{tool} does not wait") };
        let Until::Available { why, .. } = &waits.until else { panic!("{waits:?}") };
        assert!(why.contains("waiting for the MCP server") && why.contains("still connecting"), "{tool}: {why}");
        waiting.push((tool, Resumed { note: waits.note.into(), answers: Vec::new() }));
    }
    std::fs::write(&file, "").unwrap();
    for (tool, resumed) in waiting {
        let (outcome, _) = patiently(&harness, StepCall { resumed: Some(resumed), ..call(tool, json!({})) }).await;
        assert_eq!(*success(outcome).body, "steady", "{tool}");
    }
    harness.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_waits_for_a_server_that_restarts() {
    let plain = ServerConfig { name: "plain".into(), plain_names: true, ..bad(&[]) };
    let harness = Harness::new(vec![plain, bad(&[])]);
    for (server, crash, tool) in [("plain", "crash", "steady"), ("bad", "bad__crash", "bad__steady")] {
        harness.ready(server).await;
        harness.fails(crash, json!({})).await;
        harness.until(server, |server| server.state != State::Ready).await;
        let (outcome, _) = patiently(&harness, call(tool, json!({}))).await;
        assert_eq!(*success(outcome).body, "steady", "{tool}");
    }
    harness.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_never_starts_is_waited_for_up_to_the_timeout() {
    let plain = ServerConfig { name: "plain".into(), plain_names: true, ..bad(&[("MODE", "dies")]) };
    let harness = Harness::new(vec![plain, bad(&[("MODE", "dies")])]);
    for tool in ["steady", "bad__steady"] {
        let begun = std::time::Instant::now();
        let hasty = StepCall { timeout: Duration::from_secs(7), ..call(tool, json!({})) };
        let (outcome, reasons) = patiently(&harness, hasty).await;
        let (away, _) = failure(outcome);
        assert_eq!((&*away.code, away.kind), ("unavailable", FailureKind::Network), "{tool}: {away:?}");
        assert!(away.retryable && !away.may_have_happened, "{tool}: {away:?}");
        assert!(begun.elapsed() >= Duration::from_secs(7) && !reasons.is_empty(), "{tool}: {:?}", begun.elapsed());
        // A timeout that the author set counts instead.
        let author = StepCall { bound: Some(Duration::from_millis(300)), ..call(tool, json!({})) };
        let begun = std::time::Instant::now();
        assert_eq!(&*failure(patiently(&harness, author).await.0).0.code, "unavailable", "{tool}");
        assert!(begun.elapsed() < Duration::from_secs(7), "{tool}: {:?}", begun.elapsed());
    }
    harness.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_tool_is_reported_at_once_when_all_servers_are_listed() {
    let plain = ServerConfig { name: "plain".into(), plain_names: true, ..bad(&[]) };
    let harness = Harness::new(vec![plain]);
    harness.ready("plain").await;
    let unknown = harness.fails("stedy", json!({})).await;
    assert_eq!(&*unknown.code, "unknown_tool");
    assert!(unknown.message.contains("did you mean `steady`?"), "{unknown:?}");
    harness.upstreams.stop().await;
}
