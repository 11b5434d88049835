//! Servers that crash, hang, flood their output and return wrong results.

use crate::harness::{Harness, bad, call, failure, soon, stdio, success, until};
use serde_json::{Value, json};
use std::time::Duration;
use stepwell_core::event::FailureKind;
use stepwell_engine::upstream::State;
use stepwell_steps::mcp::ServerConfig;

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_during_a_call_is_restarted_and_the_call_may_have_happened() {
    let harness = Harness::new(vec![bad(&[])]);
    let lost = harness.fails("bad__crash", json!({})).await;
    assert_eq!((&*lost.code, lost.kind), ("connection_lost", FailureKind::Network), "{lost:?}");
    assert!(lost.retryable && lost.may_have_happened, "{lost:?}");
    let why = harness.down("bad").await;
    assert!(why.contains("exit status: 7") && why.contains("out of luck"), "{why}");
    let away = harness.away("bad__steady").await;
    assert_eq!((&*away.code, away.retryable, away.may_have_happened), ("unavailable", true, false), "{away:?}");
    harness.until("bad", |server| server.connected == 2).await;
    assert_eq!(harness.ok("bad__steady", json!({})).await, "steady");
    harness.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_a_call_cancels_it_on_the_server() {
    let harness = Harness::new(vec![bad(&[])]);
    harness.ready("bad").await;
    let counts = |expected: Value| {
        let harness = &harness;
        async move {
            while harness.ok("bad__hanging_calls", json!({})).await != expected {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    };
    tokio::select! {
        outcome = harness.kind.attempt(call("bad__hang", json!({}))) => panic!("{outcome:?}"),
        () = soon(counts(json!([1, 0]))) => {}
    }
    soon(counts(json!([1, 1]))).await;
    harness.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_exits_on_an_unknown_message_gets_the_older_handshake() {
    let harness = Harness::new(vec![bad(&[("MODE", "strict")])]);
    let why = harness.down("bad").await;
    assert!(why.contains("exit status: 4"), "{why}");
    assert_eq!(harness.ready("bad").await.protocol.as_deref(), Some("2025-11-25"));
    assert_eq!(harness.ok("bad__steady", json!({})).await, "steady");
    harness.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_on_standard_error_neither_blocks_nor_is_kept() {
    let harness = Harness::new(vec![bad(&[("MODE", "floods")])]);
    harness.ready("bad").await;
    let before = memory();
    assert_eq!(harness.ok("bad__flood_stderr", json!({})).await, "done");
    assert!(memory() < before + (50 << 20), "{before} {}", memory());
    harness.upstreams.stop().await;
}

fn memory() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

#[tokio::test(flavor = "multi_thread")]
async fn output_that_is_not_a_message_is_ignored() {
    let harness = Harness::new(vec![bad(&[("MODE", "babbles")])]);
    harness.ready("bad").await;
    assert_eq!(harness.ok("bad__babble", json!({})).await, "still here");
    assert_eq!(harness.ok("bad__steady", json!({})).await, "steady");
    assert_eq!(harness.server("bad").connected, 1);
    harness.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_a_handshake_is_abandoned_and_retried() {
    let silent = ServerConfig { connect_timeout: Duration::from_millis(300), ..bad(&[("MODE", "silent")]) };
    let harness = Harness::new(vec![silent]);
    let why = harness.down("bad").await;
    assert!(why.contains("did not complete the handshake and list its tools within 0.3 s"), "{why}");
    let away = harness.away("bad__steady").await;
    assert_eq!((&*away.code, away.retryable, away.may_have_happened), ("unavailable", true, false), "{away:?}");
    harness.until("bad", |server| server.state == State::Connecting).await;
    harness.down("bad").await;
    harness.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reason_for_being_down_includes_the_last_output() {
    let nothing = stdio("nothing", "no-such-program-anywhere", &[]);
    let harness = Harness::new(vec![bad(&[("MODE", "dies")]), nothing]);
    let why = harness.down("bad").await;
    assert!(why.contains("exit status: 3") && why.contains("no configuration for"), "{why}");
    let why = harness.down("nothing").await;
    assert!(why.contains("`no-such-program-anywhere` cannot be started: there is no such program"), "{why}");
    harness.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_does_not_match_the_schema_is_refused() {
    let harness = Harness::new(vec![bad(&[])]);
    let lie = harness.fails("bad__lies", json!({})).await;
    assert_eq!((&*lie.code, lie.may_have_happened), ("bad_result", true));
    assert!(lie.message.contains("`result.result`: \"many\" is not of type \"integer\""), "{lie:?}");
    let missing = harness.fails("bad__missing", json!({})).await;
    assert_eq!((&*missing.code, missing.retryable, missing.may_have_happened), ("mcp_error", false, false));
    assert!(missing.message.contains("Unknown tool: missing"), "{missing:?}");
    harness.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_becomes_the_log_of_the_step() {
    let harness = Harness::new(vec![bad(&[])]);
    let reply = success(harness.call("bad__steps", json!({"count": 3})).await);
    assert_eq!(*reply.body, "all done");
    let log = reply.log.expect("a log");
    let lines: Vec<&str> = log.as_array().unwrap().iter().map(|line| line["text"].as_str().unwrap().trim()).collect();
    assert_eq!(lines, ["1 of 3: step 1", "2 of 3: step 2", "3 of 3: step 3"]);
    let reply = success(harness.call("bad__steps", json!({"count": 5000})).await);
    let log = reply.log.expect("a log");
    assert!(log.as_array().unwrap().len() <= 1_001);
    harness.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_carries_the_idempotency_key_and_the_trace_context() {
    let harness = Harness::new(vec![bad(&[])]);
    let meta = harness.ok("bad__meta", json!({})).await;
    assert_eq!(meta["stepwell/idempotencyKey"], "run_1:use", "{meta}");
    assert_eq!(meta["traceparent"], "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01", "{meta}");
    assert!(!meta["progress_token"].is_null(), "{meta}");
    let capabilities = &meta["io.modelcontextprotocol/clientCapabilities"];
    assert_eq!(capabilities["extensions"], json!({"io.modelcontextprotocol/tasks": {}}), "{meta}");
    assert!(capabilities.get("sampling").is_none() && capabilities.get("roots").is_none(), "{meta}");
    harness.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_arguments_are_not_sent_and_nulls_count_as_absent() {
    let harness = Harness::new(vec![bad(&[])]);
    let wrong = harness.fails("bad__steps", json!({"count": "many"})).await;
    assert_eq!((&*wrong.code, wrong.may_have_happened), ("bad_arguments", false));
    assert!(wrong.message.contains("`args.count`"), "{wrong:?}");
    let list = harness.fails("bad__steps", json!([1])).await;
    assert_eq!(*list.code, *"bad_arguments");
    assert_eq!(harness.ok("bad__steps", json!({"count": null})).await, "all done");
    harness.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_calls_share_one_connection() {
    let harness = Harness::new(vec![bad(&[])]);
    harness.ready("bad").await;
    let calls = (0..200).map(|_| harness.ok("bad__steady", json!({})));
    let all = futures_util::future::join_all(calls).await;
    assert!(all.iter().all(|answer| answer == "steady"));
    assert_eq!(harness.server("bad").connected, 1);
    harness.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_the_supervisors_ends_the_processes() {
    let harness = Harness::new(vec![bad(&[("MARK", "dropped-harness")])]);
    let found = harness.ok("bad__environment", json!({})).await;
    assert_eq!(found["MARK"], "dropped-harness");
    let living = || {
        let environments = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path().join("environ"));
        environments
            .filter_map(|path| std::fs::read(path).ok())
            .any(|environment| contains(&environment, b"MARK=dropped-harness"))
    };
    assert!(living());
    drop(harness);
    until("the process to end", || (!living()).then_some(())).await;
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_error_fails_the_step_with_its_message() {
    let harness = Harness::new(vec![bad(&[])]);
    let (failed, reply) = failure(harness.call("bad__leak_error", json!({})).await);
    assert_eq!((&*failed.code, failed.retryable), ("tool_error", false));
    assert!(failed.message.contains("wrong token"), "{failed:?}");
    assert_eq!(reply.unwrap().body[0]["type"], "text");
    harness.upstreams.stop().await;
}
