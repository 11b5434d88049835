//! TLS of outgoing calls against servers on loopback: HTTP steps, query steps and email. Each must refuse a certificate of
//! another authority, one of another host and an expired one, and none may go on without TLS that was asked for.

// In tests, a panic is the report.
#![allow(clippy::unwrap_used)]

mod email;
mod postbox;

use async_trait::async_trait;
use axum::Router;
use axum::routing::any;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use stepwell_core::event::{Failure, Outcome};
use stepwell_engine::{Connection, Connections, Error};
use stepwell_steps::{Config, Egress, kinds};
use stepwell_store::OrgId;
use stepwell_testing::{Authority, Cluster, Identity, step_call, success};
use tokio::net::TcpListener;

const HOST: &str = "localhost";

/// Allows loopback and trusts this authority.
fn trusting(authority: &Authority) -> Config {
    Config { egress: Egress { allow_private: true }, authorities: authority.authorities(), ..Config::default() }
}

async fn run(config: Config, kind: &str, input: Value) -> Outcome {
    let kinds = kinds(config);
    let running = kinds.get(kind).unwrap().run(step_call("call", input));
    tokio::time::timeout(Duration::from_secs(60), running).await.expect("this takes too long")
}

fn failure(outcome: Outcome) -> Failure {
    stepwell_testing::failure(outcome).0
}

/// A server that answers without TLS.
async fn hello() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().route("/", any(|| async { r#"{"hello": true}"# }));
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

/// What a server may present, and the part of the message that refuses it.
fn invalid(ours: &Authority) -> [(Identity, &'static str); 3] {
    [
        (Authority::new("another authority").issue(HOST), "UnknownIssuer"),
        (ours.issue("other.example"), "not valid for name"),
        (ours.issue_expired(HOST), "expired"),
    ]
}

#[tokio::test]
async fn an_http_step_calls_only_a_server_with_a_valid_certificate() {
    let ours = Authority::new("our authority");
    let plain = hello().await;
    let call = async |config: Config, at: SocketAddr| {
        run(config, "http", json!({"url": format!("https://{HOST}:{}/", at.port())})).await
    };
    let good = ours.issue(HOST).in_front_of(plain).await;
    assert_eq!(*success(call(trusting(&ours), good).await).body, json!({"hello": true}));
    // The same certificate without the setting.
    let system = Config { authorities: Default::default(), ..trusting(&ours) };
    let refused = failure(call(system, good).await);
    assert!(refused.message.contains("UnknownIssuer"), "{}", refused.message);
    for (identity, part) in invalid(&ours) {
        let refused = failure(call(trusting(&ours), identity.in_front_of(plain).await).await);
        assert_eq!((refused.code.as_ref(), refused.may_have_happened), ("connect_failed", false));
        assert!(refused.message.contains(part), "{part}: {}", refused.message);
    }
    // A server that speaks no TLS at all.
    assert_eq!(failure(call(trusting(&ours), plain).await).code.as_ref(), "connect_failed");
}

struct One(String);

#[async_trait]
impl Connections for One {
    async fn connection(&self, _: OrgId, _: &str) -> Result<Option<Connection>, Error> {
        let url = self.0.clone();
        Ok(Some(Connection { url, write: false, rows: None, timeout: None, identity: [1; 32] }))
    }
}

async fn query(authority: &Authority, url: String) -> Outcome {
    let config = Config { connections: Arc::new(One(url)), ..trusting(authority) };
    let sql = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    run(config, "query", json!({"connection": "db", "sql": sql})).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_step_uses_only_a_database_with_a_valid_certificate() {
    let (ours, other) = (Authority::new("our authority"), Authority::new("another authority"));
    let cluster = Cluster::start();
    let url = |host: &str, mode: &str| {
        format!("postgres://postgres@{host}:{}/postgres?sslmode={mode}", cluster.address().port())
    };
    let refused = failure(query(&ours, url(HOST, "require")).await);
    assert!(refused.message.contains("does not support TLS"), "{}", refused.message);
    assert_eq!(*success(query(&ours, url(HOST, "prefer")).await).body, json!([{"ssl": false}]));
    cluster.present(&ours.issue(HOST));
    for mode in ["prefer", "require", "verify-full"] {
        assert_eq!(*success(query(&ours, url(HOST, mode)).await).body, json!([{"ssl": true}]), "{mode}");
        let refused = failure(query(&other, url(HOST, mode)).await);
        assert!(refused.message.contains("UnknownIssuer"), "{}", refused.message);
        let refused = failure(query(&ours, url("127.0.0.1", mode)).await);
        assert!(refused.message.contains("not valid for name"), "{}", refused.message);
    }
    let refused = failure(query(&ours, format!("{}&sslrootcert=x", url(HOST, "require"))).await);
    assert!(refused.message.contains("`extra_ca_file`"), "{}", refused.message);
    cluster.present(&ours.issue_expired(HOST));
    for mode in ["prefer", "require"] {
        let refused = failure(query(&ours, url(HOST, mode)).await);
        assert!(refused.message.contains("expired"), "{}", refused.message);
    }
}
