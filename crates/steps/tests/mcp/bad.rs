//! Servers that crash, hang, babble and lie.

use crate::rig::{Rig, bad, call, failure, soon, stdio, success, until};
use serde_json::{Value, json};
use std::time::Duration;
use stepwell_core::event::FailureKind;
use stepwell_engine::upstream::State;
use stepwell_steps::mcp::ServerConfig;

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_in_a_call_is_started_again_and_the_call_may_have_happened() {
    let rig = Rig::new(vec![bad(&[])]);
    let lost = rig.fails("bad__crash", json!({})).await;
    assert_eq!((&*lost.code, lost.kind), ("connection_lost", FailureKind::Network), "{lost:?}");
    assert!(lost.retryable && lost.may_have_happened, "{lost:?}");
    let why = rig.down("bad").await;
    assert!(why.contains("exit status: 7") && why.contains("out of luck"), "{why}");
    let away = rig.fails("bad__steady", json!({})).await;
    assert_eq!((&*away.code, away.retryable, away.may_have_happened), ("unavailable", true, false), "{away:?}");
    rig.until("bad", |server| server.connected == 2).await;
    assert_eq!(rig.ok("bad__steady", json!({})).await, "steady");
    rig.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_given_up_is_given_up_by_the_server_too() {
    let rig = Rig::new(vec![bad(&[])]);
    rig.ready("bad").await;
    let counts = |expected: Value| {
        let rig = &rig;
        async move {
            while rig.ok("bad__hanging_calls", json!({})).await != expected {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    };
    tokio::select! {
        outcome = rig.kind.attempt(call("bad__hang", json!({}))) => panic!("{outcome:?}"),
        () = soon(counts(json!([1, 0]))) => {}
    }
    soon(counts(json!([1, 1]))).await;
    rig.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_ends_at_a_message_it_does_not_know_is_spoken_to_in_the_older_way() {
    let rig = Rig::new(vec![bad(&[("MODE", "strict")])]);
    let why = rig.down("bad").await;
    assert!(why.contains("exit status: 4"), "{why}");
    assert_eq!(rig.ready("bad").await.protocol.as_deref(), Some("2025-11-25"));
    assert_eq!(rig.ok("bad__steady", json!({})).await, "steady");
    rig.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_on_standard_error_neither_blocks_nor_is_kept() {
    let rig = Rig::new(vec![bad(&[("MODE", "floods")])]);
    rig.ready("bad").await;
    let before = memory();
    assert_eq!(rig.ok("bad__flood_stderr", json!({})).await, "done");
    assert!(memory() < before + (50 << 20), "{before} {}", memory());
    rig.upstreams.stop().await;
}

fn memory() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_message_is_passed_over() {
    let rig = Rig::new(vec![bad(&[("MODE", "babbles")])]);
    rig.ready("bad").await;
    assert_eq!(rig.ok("bad__babble", json!({})).await, "still here");
    assert_eq!(rig.ok("bad__steady", json!({})).await, "steady");
    assert_eq!(rig.server("bad").connected, 1);
    rig.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_introduce_itself_is_given_up_and_tried_again() {
    let silent = ServerConfig { connect_timeout: Duration::from_millis(300), ..bad(&[("MODE", "silent")]) };
    let rig = Rig::new(vec![silent]);
    let why = rig.down("bad").await;
    assert!(why.contains("did not introduce itself and its tools within 0.3 s"), "{why}");
    let away = rig.fails("bad__steady", json!({})).await;
    assert_eq!((&*away.code, away.retryable, away.may_have_happened), ("unavailable", true, false), "{away:?}");
    rig.until("bad", |server| server.state == State::Connecting).await;
    rig.down("bad").await;
    rig.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn why_a_server_is_down_is_in_its_last_words() {
    let nothing = stdio("nothing", "no-such-program-anywhere", &[]);
    let rig = Rig::new(vec![bad(&[("MODE", "dies")]), nothing]);
    let why = rig.down("bad").await;
    assert!(why.contains("exit status: 3") && why.contains("no configuration for"), "{why}");
    let why = rig.down("nothing").await;
    assert!(why.contains("`no-such-program-anywhere` cannot be started: there is no such program"), "{why}");
    rig.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn results_that_are_not_what_was_promised_are_refused() {
    let rig = Rig::new(vec![bad(&[])]);
    let lie = rig.fails("bad__lies", json!({})).await;
    assert_eq!((&*lie.code, lie.may_have_happened), ("bad_result", true));
    assert!(lie.message.contains("`result.result`: \"many\" is not of type \"integer\""), "{lie:?}");
    let missing = rig.fails("bad__missing", json!({})).await;
    assert_eq!((&*missing.code, missing.retryable, missing.may_have_happened), ("mcp_error", false, false));
    assert!(missing.message.contains("Unknown tool: missing"), "{missing:?}");
    rig.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_becomes_the_log_of_the_step() {
    let rig = Rig::new(vec![bad(&[])]);
    let reply = success(rig.call("bad__steps", json!({"count": 3})).await);
    assert_eq!(*reply.body, "all done");
    let log = reply.log.expect("a log");
    let lines: Vec<&str> = log.as_array().unwrap().iter().map(|line| line["text"].as_str().unwrap().trim()).collect();
    assert_eq!(lines, ["1 of 3: step 1", "2 of 3: step 2", "3 of 3: step 3"]);
    let reply = success(rig.call("bad__steps", json!({"count": 5000})).await);
    let log = reply.log.expect("a log");
    assert!(log.as_array().unwrap().len() <= 1_001);
    rig.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_told_which_call_it_is() {
    let rig = Rig::new(vec![bad(&[])]);
    let meta = rig.ok("bad__meta", json!({})).await;
    assert_eq!(meta["stepwell/idempotencyKey"], "run_1:use", "{meta}");
    assert_eq!(meta["traceparent"], "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01", "{meta}");
    assert!(!meta["progress_token"].is_null(), "{meta}");
    let capabilities = &meta["io.modelcontextprotocol/clientCapabilities"];
    assert_eq!(capabilities["extensions"], json!({"io.modelcontextprotocol/tasks": {}}), "{meta}");
    assert!(capabilities.get("sampling").is_none() && capabilities.get("roots").is_none(), "{meta}");
    rig.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_that_do_not_fit_are_not_sent_and_nulls_count_as_none() {
    let rig = Rig::new(vec![bad(&[])]);
    let wrong = rig.fails("bad__steps", json!({"count": "many"})).await;
    assert_eq!((&*wrong.code, wrong.may_have_happened), ("bad_arguments", false));
    assert!(wrong.message.contains("`args.count`"), "{wrong:?}");
    let list = rig.fails("bad__steps", json!([1])).await;
    assert_eq!(*list.code, *"bad_arguments");
    assert_eq!(rig.ok("bad__steps", json!({"count": null})).await, "all done");
    rig.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_calls_share_one_connection() {
    let rig = Rig::new(vec![bad(&[])]);
    rig.ready("bad").await;
    let calls = (0..200).map(|_| rig.ok("bad__steady", json!({})));
    let all = futures_util::future::join_all(calls).await;
    assert!(all.iter().all(|answer| answer == "steady"));
    assert_eq!(rig.server("bad").connected, 1);
    rig.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_everything_ends_the_processes_too() {
    let rig = Rig::new(vec![bad(&[("MARK", "dropped-rig")])]);
    let found = rig.ok("bad__environment", json!({})).await;
    assert_eq!(found["MARK"], "dropped-rig");
    let living = || {
        let environments = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path().join("environ"));
        environments
            .filter_map(|path| std::fs::read(path).ok())
            .any(|environment| contains(&environment, b"MARK=dropped-rig"))
    };
    assert!(living());
    drop(rig);
    until("the process to end", || (!living()).then_some(())).await;
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_says_it_failed_fails_with_its_words() {
    let rig = Rig::new(vec![bad(&[])]);
    let (failed, reply) = failure(rig.call("bad__leak_error", json!({})).await);
    assert_eq!((&*failed.code, failed.retryable), ("tool_error", false));
    assert!(failed.message.contains("wrong token"), "{failed:?}");
    assert_eq!(reply.unwrap().body[0]["type"], "text");
    rig.upstreams.stop().await;
}
