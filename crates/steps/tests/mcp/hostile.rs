//! Hostile MCP servers: they flood, lie about sizes, leave processes behind and hide characters. Attacks on memory
//! run in a process of their own, whose peak is checked.

use crate::harness::{Harness, asked, call, http, script, stdio};
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use stepwell_engine::upstream::Server;
use stepwell_steps::mcp::{ServerConfig, Transport};

const ALONE: &str = "STEPWELL_TEST_ALONE";
/// Peak memory of the process during an attack, in MB. The largest message has 16 MB, and is copied a few times.
const MAX_PEAK: u64 = 400;

/// The hostile server, over stdio.
fn hostile(variables: &[(&str, &str)]) -> ServerConfig {
    let mut config = stdio("bad", "python3", &[&script("hostile_server.py")]);
    if let Transport::Stdio { env, .. } = &mut config.transport {
        env.extend(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    }
    config
}

/// The hostile server, over HTTP.
struct Http(Child, String);

impl Http {
    fn start(variables: &[(&str, &str)]) -> Http {
        let mut command = Command::new("python3");
        command.args([&script("hostile_server.py"), "--http"]).envs(variables.iter().copied());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Http(child, format!("http://127.0.0.1:{}/mcp", port.trim()))
    }

    fn config(&self) -> ServerConfig {
        http("bad", &self.1)
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a test in a process of its own and with bounded memory. True in that process.
fn alone(test: &str) -> bool {
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    // The limit keeps a failed bound from taking the machine.
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -v 8000000; exec \"$@\"", "sh"]).arg(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("hostile::{test}"), "--nocapture"]).env(ALONE, "1");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    false
}

/// The peak memory of this process, in MB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

/// Calls a tool of a server that is to be disconnected for it. Returns the reason.
async fn over_limit(config: ServerConfig, tool: &str) -> String {
    let harness = Harness::new(vec![config]);
    harness.ready("bad").await;
    let failed = harness.fails(&format!("bad__{tool}"), json!({})).await;
    assert_eq!((&*failed.code, failed.retryable, failed.may_have_happened), ("server_over_limit", false, true));
    let why = harness.down("bad").await;
    let reason = why.split(';').next().unwrap();
    assert!(failed.message.contains(reason), "{} {why}", failed.message);
    // It is connected again, and its other tools still work.
    harness.until("bad", |server| server.connected == 2).await;
    assert_eq!(harness.ok("bad__steady", json!({})).await, "steady");
    harness.upstreams.stop().await;
    assert!(peak() < MAX_PEAK, "{} MB", peak());
    why
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_floods_pings_and_never_reads_is_disconnected() {
    if alone("a_server_that_floods_pings_and_never_reads_is_disconnected") {
        let why = over_limit(hostile(&[]), "ping_flood").await;
        assert!(why.contains("more than 64 requests without reading the replies"), "{why}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_pings_over_http_disconnects_the_server() {
    if alone("a_flood_of_pings_over_http_disconnects_the_server") {
        let server = Http::start(&[]);
        let why = over_limit(server.config(), "ping_flood").await;
        assert!(why.contains("more than 64 requests without reading the replies"), "{why}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_a_long_id_disconnects_the_server() {
    let why = over_limit_in_this_process("long_id").await;
    assert!(why.contains("an id of more than 256 bytes"), "{why}");
}

async fn over_limit_in_this_process(tool: &str) -> String {
    let harness = Harness::new(vec![hostile(&[])]);
    harness.ready("bad").await;
    let failed = harness.fails(&format!("bad__{tool}"), json!({})).await;
    assert_eq!(*failed.code, *"server_over_limit", "{failed:?}");
    let why = harness.down("bad").await;
    harness.upstreams.stop().await;
    why
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_of_unknown_calls_is_not_kept() {
    if alone("progress_of_unknown_calls_is_not_kept") {
        let harness = Harness::new(vec![hostile(&[])]);
        assert_eq!(harness.ok("bad__progress_flood", json!({})).await, "done");
        assert_eq!(harness.server("bad").connected, 1);
        assert!(peak() < MAX_PEAK, "{} MB", peak());
        harness.upstreams.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_tools_has_limits_in_bytes_and_number() {
    if alone("a_list_of_tools_has_limits_in_bytes_and_number") {
        for (list, expected) in [("large", "larger than 8 MB"), ("many", "offers more than 1000 tools")] {
            let harness = Harness::new(vec![hostile(&[("LIST", list)])]);
            let why = harness.down("bad").await;
            assert!(why.contains(expected), "{why}");
            harness.upstreams.stop().await;
        }
        assert!(peak() < MAX_PEAK, "{} MB", peak());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_over_its_limits_is_held_with_the_reason_and_the_others_work() {
    let harness = Harness::new(vec![hostile(&[("LIST", "long")])]);
    let server = harness.ready("bad").await;
    assert_eq!(
        held(&server),
        "wordy: its description has 100000 bytes; the limit is 32768 | \
        wide: its output schema has 70008 bytes; the limit is 65536"
    );
    assert_eq!(harness.ok("bad__steady", json!({})).await, "steady");
    let refused = harness.fails("bad__wordy", json!({})).await;
    assert_eq!((&*refused.code, refused.may_have_happened), ("tool_held", false), "{refused:?}");
    harness.upstreams.stop().await;
}

fn held(server: &Server) -> String {
    server.held.iter().map(|held| format!("{}: {}", held.tool, held.why)).collect::<Vec<_>>().join(" | ")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_or_a_state_over_its_limit_fails_the_call_and_disconnects_the_server() {
    if alone("a_form_or_a_state_over_its_limit_fails_the_call_and_disconnects_the_server") {
        let attacks = [
            ("big_form", "a form of more than 64 KB"),
            ("many_fields", "a form of more than"),
            ("big_state", "a state of more than 256 KB"),
        ];
        for (tool, expected) in attacks {
            let why = over_limit(hostile(&[]), tool).await;
            assert!(why.contains(expected), "{tool}: {why}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_over_its_limit_in_bytes_or_values_disconnects_the_server() {
    if alone("a_message_over_its_limit_in_bytes_or_values_disconnects_the_server") {
        let web = Http::start(&[]);
        for (tool, expected) in [("long", "a message of more than 16"), ("many_values", "of more than 500000 values")] {
            for config in [hostile(&[]), web.config()] {
                let why = over_limit(config, tool).await;
                assert!(why.contains(expected), "{tool}: {why}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_response_fails_its_call_at_once() {
    let web = Http::start(&[]);
    for config in [hostile(&[]), web.config()] {
        let harness = Harness::new(vec![config]);
        for tool in ["bad__cut", "bad__no_result"] {
            let failed = harness.fails(tool, json!({})).await;
            assert_eq!((&*failed.code, failed.retryable, failed.may_have_happened), ("bad_result", false, true));
            assert!(failed.message.contains("cannot be read"), "{failed:?}");
        }
        assert_eq!(harness.ok("bad__steady", json!({})).await, "steady");
        assert_eq!(harness.server("bad").connected, 1);
        harness.upstreams.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_credentials_are_not_retried() {
    for status in ["401", "403"] {
        // While it is called, or already when it is connected to.
        for variables in [&[("STATUS", status)][..], &[("STATUS", status), ("ALWAYS", "1")]] {
            let web = Http::start(variables);
            let harness = Harness::new(vec![web.config()]);
            let failed = harness.fails("bad__steady", json!({})).await;
            assert_eq!((&*failed.code, failed.retryable, failed.may_have_happened), ("unauthorized", false, false));
            assert!(failed.message.contains(status), "{failed:?}");
            harness.upstreams.stop().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_died_counts_as_dead_although_a_process_holds_its_pipe() {
    // Longer than this test waits. Without a keeper, which only the binary has, the orphan lives that long.
    let harness = Harness::new(vec![hostile(&[("SLEEP", "90")])]);
    let lost = harness.fails("bad__orphan", json!({})).await;
    assert_eq!((&*lost.code, lost.may_have_happened), ("connection_lost", true), "{lost:?}");
    let why = harness.down("bad").await;
    assert!(why.contains("exit status: 9"), "{why}");
    harness.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn people_see_hidden_characters_of_messages_and_forms() {
    let harness = Harness::new(vec![hostile(&[])]);
    let failed = harness.fails("bad__bidi", json!({})).await;
    assert_eq!(&*failed.message, "safe ⟨U+202E⟩⟨U+E0041⟩ tool");
    let waits = harness.waits(call("bad__ask_bidi", json!({}))).await;
    let ask = asked(&waits);
    assert_eq!(ask["message"], "safe ⟨U+202E⟩⟨U+E0041⟩ tool");
    assert_eq!(ask["form"]["properties"]["a"]["title"], "safe ⟨U+202E⟩⟨U+E0041⟩ tool");
    // Two values that look the same could not be told apart.
    let refused = harness.fails("bad__ask_hidden", json!({})).await;
    assert_eq!(*refused.code, *"unsupported_request", "{refused:?}");
    harness.upstreams.stop().await;
}
