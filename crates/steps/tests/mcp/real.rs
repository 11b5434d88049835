//! Servers of others, over both transports.

use crate::rig::{Rig, call, http, npm, python, script, stdio, until};
use serde_json::json;
use std::process::Stdio;
use stepwell_engine::upstream::State;
use stepwell_steps::mcp::ServerConfig;
use stepwell_store::OrgId;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

#[tokio::test(flavor = "multi_thread")]
async fn everything_answers_over_standard_input_and_output() {
    let rig = Rig::new(vec![stdio("everything", "node", &[&npm("server-everything"), "stdio"])]);
    everything(&rig).await;
    rig.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_answers_over_http() {
    let (_server, url) = everything_over_http(0).await;
    let rig = Rig::new(vec![http("everything", &url)]);
    everything(&rig).await;
    rig.upstreams.stop().await;
}

async fn everything(rig: &Rig) {
    let server = rig.ready("everything").await;
    assert!(server.about.as_ref().unwrap().starts_with("mcp-servers/everything "), "{server:?}");
    assert_eq!(server.connected, 1);
    assert!(server.tools.iter().any(|tool| tool.name == "everything__echo" && tool.tool == "echo"), "{server:?}");
    assert_eq!(rig.ok("everything__echo", json!({"message": "hi"})).await, "Echo: hi");
    let sum = rig.ok("everything__get-sum", json!({"a": 2, "b": 3})).await;
    assert_eq!(sum, "The sum of 2 and 3 is 5.");
    let weather = rig.ok("everything__get-structured-content", json!({"location": "Chicago"})).await;
    assert!(weather["temperature"].is_number(), "{weather}");
    let image = rig.ok("everything__get-tiny-image", json!({})).await;
    assert!(image.as_array().unwrap().iter().any(|block| block["type"] == "image"), "{image}");
    let wrong = rig.fails("everything__get-sum", json!({"a": "two", "b": 3})).await;
    assert_eq!(*wrong.code, *"bad_arguments");
    assert!(wrong.message.contains("`args.a`"), "{wrong:?}");
    let typo = rig.fails("everything__ecko", json!({})).await;
    assert_eq!(*typo.code, *"unknown_tool");
    assert!(typo.message.contains("did you mean `everything__echo`?"), "{typo:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_and_memories_are_kept_by_servers_of_others() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().canonicalize().unwrap().display().to_string();
    let mut memory = stdio("memory", "node", &[&npm("server-memory")]);
    let file = format!("{directory}/memory.jsonl");
    if let stepwell_steps::mcp::Transport::Stdio { env, .. } = &mut memory.transport {
        env.insert("MEMORY_FILE_PATH".into(), file.clone());
    }
    let rig = Rig::new(vec![stdio("files", "node", &[&npm("server-filesystem"), &directory]), memory]);
    let path = format!("{directory}/note.txt");
    rig.ok("files__write_file", json!({"path": path, "content": "kept"})).await;
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "kept");
    let read = rig.ok("files__read_text_file", json!({"path": path})).await;
    assert_eq!(read["content"], "kept", "{read}");
    let outside = rig.fails("files__read_text_file", json!({"path": "/etc/passwd"})).await;
    assert_eq!(*outside.code, *"tool_error");
    assert!(outside.message.contains("Access denied"), "{outside:?}");
    let ada = json!({"entities": [{"name": "Ada", "entityType": "person", "observations": ["likes engines"]}]});
    rig.ok("memory__create_entities", ada).await;
    let found = rig.ok("memory__search_nodes", json!({"query": "engines"})).await;
    assert_eq!(found["entities"][0]["name"], "Ada", "{found}");
    assert!(std::fs::read_to_string(file).unwrap().contains("Ada"));
    rig.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn time_and_git_answer_in_the_newest_revision() {
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
    let rig = Rig::new(servers);
    let protocol = rig.ready("time").await.protocol;
    assert_eq!(protocol.as_deref(), Some("2026-07-28"));
    let args = json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"});
    let converted = rig.ok("time__convert_time", args).await;
    assert_eq!(converted["time_difference"], "+9.0h", "{converted}");
    let log = rig.ok("git__git_log", json!({"repo_path": directory})).await;
    assert!(log.to_string().contains("first of all"), "{log}");
    rig.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tools_of_the_first_flows_go_by_their_own_names_and_before_built_in_ones() {
    let seeds = stdio("seeds", &python(), &[&script("seed_server.py")]);
    let rig = Rig::new(vec![ServerConfig { plain_names: true, ..seeds }]);
    rig.ready("seeds").await;
    assert_eq!(rig.ok("is_admin", json!({})).await, false);
    assert_eq!(rig.ok("get_greeting", json!({"name": "Ada"})).await, "Hello, Ada!");
    let found = rig.ok("knowledge_search", json!({"query": "AI safety"})).await;
    assert_eq!(found[0]["id"], "1", "{found}");
    assert_eq!(rig.ok("knowledge_get", json!({"id": ""})).await["title"], "AI safety");
    let added = rig.ok("knowledge_add", json!({"title": "New", "body": "text"})).await;
    assert_eq!(rig.ok("knowledge_get", json!({"id": added["id"]})).await["title"], "New");
    // There is a built-in one of that name, which has no credentials here.
    assert_eq!(rig.ok("pushover_send", json!({"message": "done"})).await, "sent: done");
    // Others are where they were.
    assert_eq!(rig.ok("echo", json!({"x": 1})).await, json!({"x": 1}));
    rig.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_its_organisation_finds_a_server_s_tools() {
    let rig = Rig::new(vec![stdio("time", &python(), &["-m", "mcp_server_time"])]);
    rig.ready("time").await;
    let mut stranger = call("time__get_current_time", json!({"timezone": "UTC"}));
    stranger.caller.org = OrgId(2);
    let (failure, _) = crate::rig::failure(rig.attempt(stranger).await.unwrap());
    assert_eq!(*failure.code, *"unknown_tool");
    let hint = failure.message.split(';').next_back().unwrap();
    assert!(!hint.contains("time__"), "{failure:?}");
    rig.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_over_http_that_comes_back_is_used_again() {
    let (mut server, url) = everything_over_http(0).await;
    let port: u16 = url.trim_end_matches("/mcp").rsplit(':').next().unwrap().parse().unwrap();
    let rig = Rig::new(vec![http("everything", &url)]);
    rig.ready("everything").await;
    server.kill().await.unwrap();
    let gone = rig.fails("everything__echo", json!({"message": "hi"})).await;
    assert!(gone.retryable, "{gone:?}");
    rig.until("everything", |server| matches!(server.state, State::Down { .. })).await;
    let (_server, _) = everything_over_http(port).await;
    rig.until("everything", |server| server.state == State::Ready && server.connected == 2).await;
    assert_eq!(rig.ok("everything__echo", json!({"message": "again"})).await, "Echo: again");
    rig.upstreams.stop().await;
}

/// A server that was started anew knows nothing of our session.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_gone_is_begun_anew() {
    let (mut server, url) = everything_over_http(0).await;
    let port: u16 = url.trim_end_matches("/mcp").rsplit(':').next().unwrap().parse().unwrap();
    let rig = Rig::new(vec![http("everything", &url)]);
    rig.ready("everything").await;
    server.kill().await.unwrap();
    let (_server, _) = everything_over_http(port).await;
    assert_eq!(rig.ok("everything__echo", json!({"message": "anew"})).await, "Echo: anew");
    rig.upstreams.stop().await;
}

async fn everything_over_http(port: u16) -> (Child, String) {
    let port = if port == 0 { free_port() } else { port };
    let mut command = Command::new("node");
    command.arg(npm("server-everything")).arg("streamableHttp").env("PORT", port.to_string());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let listening = async { while !lines.next_line().await.unwrap().unwrap().contains("listening on port") {} };
    crate::rig::soon(listening).await;
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    (child, format!("http://127.0.0.1:{port}/mcp"))
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_of_processes_after_the_stop() {
    let shell = "sleep 1000 & exec node \"$0\" stdio";
    let rig = Rig::new(vec![stdio("wrapped", "sh", &["-c", shell, &npm("server-everything")])]);
    rig.ready("wrapped").await;
    let mine = || children(std::process::id());
    let group = mine().into_iter().find(|child| children(*child).len() == 1).expect("a server with a child of its own");
    rig.upstreams.stop().await;
    until("its group to end", || members(group).is_empty().then_some(())).await;
    assert!(matches!(rig.server("wrapped").state, State::Down { .. }));
    let after = rig.fails("wrapped__echo", json!({"message": "hi"})).await;
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
async fn addresses_that_may_not_be_reached_are_not() {
    let (_server, url) = everything_over_http(0).await;
    let named = url.replace("127.0.0.1", "localhost");
    let servers = vec![http("literal", &url), http("named", &named), http("metadata", "http://169.254.169.254/mcp")];
    let rig = Rig::within(stepwell_steps::Egress::default(), Default::default(), servers);
    for name in ["literal", "named"] {
        let why = rig.down(name).await;
        assert!(why.contains("is not a public address"), "{name}: {why}");
    }
    assert!(rig.down("metadata").await.contains("cloud metadata"));
    let failure = rig.fails("literal__echo", json!({"message": "hi"})).await;
    assert_eq!((&*failure.code, failure.may_have_happened), ("unavailable", false));
    rig.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_not_followed() {
    let (_server, url) = everything_over_http(0).await;
    let answer = move || async move { axum::response::Redirect::temporary(&url) };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let elsewhere = format!("http://{}/mcp", listener.local_addr().unwrap());
    let app = axum::Router::new().fallback(answer);
    tokio::spawn(async move { axum::serve(listener, app).await });
    let rig = Rig::new(vec![http("moved", &elsewhere)]);
    let why = rig.down("moved").await;
    assert!(why.contains("307"), "{why}");
    assert!(rig.server("moved").tools.is_empty());
    rig.upstreams.stop().await;
}
