//! Secrets in a server's configuration: filled in at each connection, sent only where allowed, and masked everywhere.

use crate::harness::{Harness, bad, failure, http, python, script, success, vault};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::Mutex;
use stepwell_engine::commands::NewSecret;
use stepwell_engine::{Caller, Config, Engine, Kinds};
use stepwell_steps::mcp::Transport;
use stepwell_store::memory::MemoryStore;

const VALUE: &str = "hunter2-and-then-some";

async fn with_secret(hosts: &[&str]) -> MemoryStore {
    let store = MemoryStore::default();
    let config = Config { vault: vault(), ..Config::new(Kinds::default()) };
    let engine = Engine::start(Arc::new(store.clone()), config).await.unwrap();
    let hosts = Some(hosts.iter().map(|host| (*host).to_owned()).collect());
    let new = NewSecret { value: Some(VALUE.into()), hosts };
    engine.secrets(&Caller::local("ada")).put("TOKEN", new).await.unwrap();
    engine.shutdown(std::time::Duration::from_secs(5)).await;
    store
}

fn clean(text: &str) {
    assert!(!text.contains("hunter2"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_gets_its_secret_and_its_output_is_masked() {
    let harness = Harness::on(with_secret(&[]).await, vec![bad(&[("TOKEN", "{{secrets.TOKEN}}")])]);
    let leak = harness.ok("bad__leak", json!({})).await;
    assert_eq!(leak, json!({"token": "{{secrets.TOKEN}}", "{{secrets.TOKEN}}": "as a name"}));
    let (failed, reply) = failure(harness.call("bad__leak_error", json!({})).await);
    assert!(failed.message.ends_with("wrong token {{secrets.TOKEN}}"), "{failed:?}");
    clean(&format!("{reply:?}"));
    let steps = success(harness.call("bad__steps", json!({})).await);
    assert!(format!("{:?}", steps.log).contains("step 1 {{secrets.TOKEN}}"), "{steps:?}");
    harness.fails("bad__crash", json!({})).await;
    let why = harness.down("bad").await;
    assert!(why.contains("out of luck {{secrets.TOKEN}}"), "{why}");
    harness.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_inherits_only_listed_variables() {
    let harness = Harness::new(vec![bad(&[("MINE", "yes")])]);
    let environment = harness.ok("bad__environment", json!({})).await;
    assert_eq!(environment["MINE"], "yes");
    let names: Vec<&String> = environment.as_object().unwrap().keys().collect();
    // Cargo sets dozens of variables for tests.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    assert!(!names.iter().any(|name| name.starts_with("CARGO")), "{names:?}");
    assert!(environment.get("PATH").is_some(), "{names:?}");
    harness.upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_or_bound_secret_is_not_given_to_a_process() {
    let harness = Harness::new(vec![bad(&[("TOKEN", "{{secrets.NOWHERE}}")])]);
    let why = harness.down("bad").await;
    assert!(why.contains("there is no secret named NOWHERE"), "{why}");
    harness.upstreams.stop().await;

    let harness = Harness::on(with_secret(&["api.example.com"]).await, vec![bad(&[("TOKEN", "{{secrets.TOKEN}}")])]);
    let why = harness.down("bad").await;
    assert!(why.contains("the secret TOKEN may be sent only to api.example.com, so not to a process"), "{why}");
    harness.upstreams.stop().await;
}

/// Records the URLs and headers it gets, and is not an MCP server.
async fn listener() -> (String, Arc<Mutex<Vec<String>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = seen.clone();
    let answer = move |request: axum::extract::Request| async move {
        let token = request.headers().get("authorization").map(|value| value.to_str().unwrap().to_owned());
        noted.lock().unwrap().push(format!("{} {}", request.uri(), token.unwrap_or_default()));
        let token = request.headers().get("authorization").cloned();
        (axum::http::StatusCode::IM_A_TEAPOT, format!("I know {token:?} and {}", request.uri()))
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, axum::Router::new().fallback(answer)).await });
    (url, seen)
}

fn with_header(mut config: stepwell_steps::mcp::ServerConfig) -> stepwell_steps::mcp::ServerConfig {
    if let Transport::Http { headers, .. } = &mut config.transport {
        headers.insert("Authorization".into(), "Bearer {{secrets.TOKEN}}".into());
    }
    config
}

#[tokio::test(flavor = "multi_thread")]
async fn url_and_headers_get_a_bound_secret_only_for_its_hosts() {
    let (url, seen) = listener().await;
    let config = with_header(http("web", &format!("{url}/mcp?key={{{{secrets.TOKEN}}}}")));
    let harness = Harness::on(with_secret(&["api.example.com"]).await, vec![config.clone()]);
    let why = harness.down("web").await;
    assert!(why.contains("may be sent only to api.example.com, so not to this URL"), "{why}");
    harness.upstreams.stop().await;
    assert_eq!(*seen.lock().unwrap(), Vec::<String>::new());

    let harness = Harness::on(with_secret(&["127.0.0.1"]).await, vec![config]);
    let why = harness.down("web").await;
    clean(&why);
    assert!(why.contains("418"), "{why}");
    harness.upstreams.stop().await;
    assert_eq!(seen.lock().unwrap()[0], format!("/mcp?key={VALUE} Bearer {VALUE}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_http_server_with_a_secret_speaks_the_newest_revision_and_reports_changes() {
    let mut command = tokio::process::Command::new(python());
    command.arg(script("bad_server.py")).args(["--http", "0"]).stdout(std::process::Stdio::piped()).kill_on_drop(true);
    let mut server = command.spawn().unwrap();
    let mut line = String::new();
    let mut out = tokio::io::BufReader::new(server.stdout.take().unwrap());
    tokio::io::AsyncBufReadExt::read_line(&mut out, &mut line).await.unwrap();
    let harness = Harness::on(
        with_secret(&["127.0.0.1"]).await,
        vec![with_header(http("web", &format!("http://127.0.0.1:{}/mcp", line.trim())))],
    );
    assert_eq!(harness.ready("web").await.protocol.as_deref(), Some("2026-07-28"));
    assert_eq!(harness.ok("web__steady", json!({})).await, Value::from("steady"));
    let steps = success(harness.call("web__steps", json!({"count": 2})).await);
    assert_eq!(*steps.body, "all done");
    harness.ok("web__change", json!({})).await;
    harness.until("web", |server| server.tools.iter().any(|tool| tool.name == "web__added")).await;
    harness.upstreams.stop().await;
}
