//! Third-party servers over both transports.

use crate::harness::{Harness, call, http, npm, python, script, stdio, until};
use serde_json::json;
use std::process::Stdio;
use stepwell_engine::upstream::State;
use stepwell_steps::mcp::ServerConfig;
use stepwell_store::OrgId;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

#[tokio::test(flavor = "multi_thread")]
async fn the_everything_server_works_over_stdio() {
    let harness = Harness::new(vec![stdio("everything", "node", &[&npm("server-everything"), "stdio"])]);
    everything(&harness).await;
    harness.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_everything_server_works_over_http() {
    let (_server, url) = everything_over_http(0).await;
    let harness = Harness::new(vec![http("everything", &url)]);
    everything(&harness).await;
    harness.upstreams.stop().await;
}

async fn everything(harness: &Harness) {
    let server = harness.ready("everything").await;
    assert!(server.about.as_ref().unwrap().starts_with("mcp-servers/everything "), "{server:?}");
    assert_eq!(server.connected, 1);
    assert!(server.tools.iter().any(|tool| tool.name == "everything__echo" && tool.tool == "echo"), "{server:?}");
    assert_eq!(harness.ok("everything__echo", json!({"message": "hi"})).await, "Echo: hi");
    let sum = harness.ok("everything__get-sum", json!({"a": 2, "b": 3})).await;
    assert_eq!(sum, "The sum of 2 and 3 is 5.");
    let weather = harness.ok("everything__get-structured-content", json!({"location": "Chicago"})).await;
    assert!(weather["temperature"].is_number(), "{weather}");
    let image = harness.ok("everything__get-tiny-image", json!({})).await;
    assert!(image.as_array().unwrap().iter().any(|block| block["type"] == "image"), "{image}");
    let wrong = harness.fails("everything__get-sum", json!({"a": "two", "b": 3})).await;
    assert_eq!(*wrong.code, *"bad_arguments");
    assert!(wrong.message.contains("`args.a`"), "{wrong:?}");
    let typo = harness.fails("everything__ecko", json!({})).await;
    assert_eq!(*typo.code, *"unknown_tool");
    assert!(typo.message.contains("did you mean `everything__echo`?"), "{typo:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_filesystem_and_memory_servers_keep_their_data() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().canonicalize().unwrap().display().to_string();
    let mut memory = stdio("memory", "node", &[&npm("server-memory")]);
    let file = format!("{directory}/memory.jsonl");
    if let stepwell_steps::mcp::Transport::Stdio { env, .. } = &mut memory.transport {
        env.insert("MEMORY_FILE_PATH".into(), file.clone());
    }
    let harness = Harness::new(vec![stdio("files", "node", &[&npm("server-filesystem"), &directory]), memory]);
    let path = format!("{directory}/note.txt");
    harness.ok("files__write_file", json!({"path": path, "content": "kept"})).await;
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "kept");
    let read = harness.ok("files__read_text_file", json!({"path": path})).await;
    assert_eq!(read["content"], "kept", "{read}");
    let outside = harness.fails("files__read_text_file", json!({"path": "/etc/passwd"})).await;
    assert_eq!(*outside.code, *"tool_error");
    assert!(outside.message.contains("Access denied"), "{outside:?}");
    let ada = json!({"entities": [{"name": "Ada", "entityType": "person", "observations": ["likes engines"]}]});
    harness.ok("memory__create_entities", ada).await;
    let found = harness.ok("memory__search_nodes", json!({"query": "engines"})).await;
    assert_eq!(found["entities"][0]["name"], "Ada", "{found}");
    assert!(std::fs::read_to_string(file).unwrap().contains("Ada"));
    harness.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_time_and_git_servers_speak_the_newest_revision() {
    let repository = tempfile::tempdir().unwrap();
    let directory = repository.path().canonicalize().unwrap().display().to_string();
    let git = |args: &[&str]| {
        let who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"];
        let done = std::process::Command::new("git").arg("-C").arg(&directory).args(who).args(args).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    git(&["init", "-q"]);
    git(&["commit", "-q", "--allow-empty", "-m", "first of all"]);
    let servers = vec![
        stdio("time", &python(), &["-m", "mcp_server_time", "--local-timezone", "UTC"]),
        stdio("git", &python(), &["-m", "mcp_server_git", "--repository", &directory]),
    ];
    let harness = Harness::new(servers);
    let protocol = harness.ready("time").await.protocol;
    assert_eq!(protocol.as_deref(), Some("2026-07-28"));
    let args = json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"});
    let converted = harness.ok("time__convert_time", args).await;
    assert_eq!(converted["time_difference"], "+9.0h", "{converted}");
    let log = harness.ok("git__git_log", json!({"repo_path": directory})).await;
    assert!(log.to_string().contains("first of all"), "{log}");
    harness.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_names_have_no_prefix_and_never_replace_built_in_tools() {
    let seeds = stdio("seeds", &python(), &[&script("seed_server.py")]);
    let harness = Harness::new(vec![ServerConfig { plain_names: true, ..seeds }]);
    harness.ready("seeds").await;
    assert_eq!(harness.ok("is_admin", json!({})).await, false);
    assert_eq!(harness.ok("get_greeting", json!({"name": "Ada"})).await, "Hello, Ada!");
    let found = harness.ok("knowledge_search", json!({"query": "AI safety"})).await;
    assert_eq!(found[0]["id"], "1", "{found}");
    assert_eq!(harness.ok("knowledge_get", json!({"id": ""})).await["title"], "AI safety");
    let added = harness.ok("knowledge_add", json!({"title": "New", "body": "text"})).await;
    assert_eq!(harness.ok("knowledge_get", json!({"id": added["id"]})).await["title"], "New");
    // The built-in tool of this name is called, which has no credentials here.
    let built_in = harness.fails("pushover_send", json!({"message": "done"})).await;
    assert_eq!(*built_in.code, *"no_credentials", "{built_in:?}");
    let held = &harness.server("seeds").held;
    assert_eq!((&*held[0].name, &*held[0].why), ("pushover_send", "its name is that of one of Stepwell's own tools"));
    assert_eq!(harness.ok("echo", json!({"x": 1})).await, json!({"x": 1}));
    harness.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_its_organisation_finds_the_tools_of_a_server() {
    let harness = Harness::new(vec![stdio("time", &python(), &["-m", "mcp_server_time"])]);
    harness.ready("time").await;
    let mut stranger = call("time__get_current_time", json!({"timezone": "UTC"}));
    stranger.caller.org = OrgId(2);
    let (failure, _) = crate::harness::failure(harness.attempt(stranger).await.unwrap());
    assert_eq!(*failure.code, *"unknown_tool");
    let hint = failure.message.split(';').next_back().unwrap();
    assert!(!hint.contains("time__"), "{failure:?}");
    harness.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_http_server_that_comes_back_is_used_again() {
    let (mut server, url) = everything_over_http(0).await;
    let port: u16 = url.trim_end_matches("/mcp").rsplit(':').next().unwrap().parse().unwrap();
    let harness = Harness::new(vec![http("everything", &url)]);
    harness.ready("everything").await;
    server.kill().await.unwrap();
    let gone = harness.fails("everything__echo", json!({"message": "hi"})).await;
    assert!(gone.retryable, "{gone:?}");
    harness.until("everything", |server| matches!(server.state, State::Down { .. })).await;
    let (_server, _) = everything_over_http(port).await;
    harness.until("everything", |server| server.state == State::Ready && server.connected == 2).await;
    assert_eq!(harness.ok("everything__echo", json!({"message": "again"})).await, "Echo: again");
    harness.upstreams.stop().await;
}

/// A restarted server does not know our session.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_session_is_replaced() {
    let (mut server, url) = everything_over_http(0).await;
    let port: u16 = url.trim_end_matches("/mcp").rsplit(':').next().unwrap().parse().unwrap();
    let harness = Harness::new(vec![http("everything", &url)]);
    harness.ready("everything").await;
    server.kill().await.unwrap();
    let (_server, _) = everything_over_http(port).await;
    assert_eq!(harness.ok("everything__echo", json!({"message": "anew"})).await, "Echo: anew");
    harness.upstreams.stop().await;
}

async fn everything_over_http(port: u16) -> (Child, String) {
    let port = if port == 0 { free_port() } else { port };
    let mut command = Command::new("node");
    command.arg(npm("server-everything")).arg("streamableHttp").env("PORT", port.to_string());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let listening = async { while !lines.next_line().await.unwrap().unwrap().contains("listening on port") {} };
    crate::harness::soon(listening).await;
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    (child, format!("http://127.0.0.1:{port}/mcp"))
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_process_is_left_after_the_stop() {
    let shell = "sleep 1000 & exec node \"$0\" stdio";
    let harness = Harness::new(vec![stdio("wrapped", "sh", &["-c", shell, &npm("server-everything")])]);
    harness.ready("wrapped").await;
    let mine = || children(std::process::id());
    let group = mine().into_iter().find(|child| children(*child).len() == 1).expect("a server with a child of its own");
    harness.upstreams.stop().await;
    until("its group to end", || members(group).is_empty().then_some(())).await;
    assert!(matches!(harness.server("wrapped").state, State::Down { .. }));
    let after = harness.away_with("wrapped__echo", json!({"message": "x"})).await;
    assert_eq!((&*after.code, after.retryable, after.may_have_happened), ("unavailable", true, false));
}

fn processes() -> Vec<(u32, Vec<String>)> {
    let numbers =
        std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let read = |id: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        let fields = stat.rsplit_once(')')?.1.split_whitespace().map(str::to_owned).collect();
        Some((id, fields))
    };
    numbers.filter_map(read).collect()
}

fn children(of: u32) -> Vec<u32> {
    processes().into_iter().filter(|(_, fields)| fields[1] == of.to_string()).map(|(id, _)| id).collect()
}

fn members(group: u32) -> Vec<u32> {
    let living = |fields: &[String]| fields[2] == group.to_string() && fields[0] != "Z";
    processes().into_iter().filter(|(_, fields)| living(fields)).map(|(id, _)| id).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn forbidden_addresses_are_not_contacted() {
    let (_server, url) = everything_over_http(0).await;
    let named = url.replace("127.0.0.1", "localhost");
    let servers = vec![http("literal", &url), http("named", &named), http("metadata", "http://169.254.169.254/mcp")];
    let harness = Harness::within(stepwell_steps::Egress::default(), Default::default(), servers);
    for name in ["literal", "named"] {
        let why = harness.down(name).await;
        assert!(why.contains("is not a public address"), "{name}: {why}");
    }
    assert!(harness.down("metadata").await.contains("cloud metadata"));
    let failure = harness.away("literal__echo").await;
    assert_eq!((&*failure.code, failure.may_have_happened), ("unavailable", false));
    harness.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_not_followed() {
    let (_server, url) = everything_over_http(0).await;
    let answer = move || async move { axum::response::Redirect::temporary(&url) };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let elsewhere = format!("http://{}/mcp", listener.local_addr().unwrap());
    let app = axum::Router::new().fallback(answer);
    tokio::spawn(async move { axum::serve(listener, app).await });
    let harness = Harness::new(vec![http("moved", &elsewhere)]);
    let why = harness.down("moved").await;
    assert!(why.contains("307"), "{why}");
    assert!(harness.server("moved").tools.is_empty());
    harness.upstreams.stop().await;
}
