//! `/metrics` from outside: its content, and who may read it.

// In a test a panic is the report.
#![allow(clippy::unwrap_used)]

use axum::routing::get;
use axum::{Router, middleware};
use reqwest::{Client, Method, StatusCode};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use stepwell_server::config::Secret;
use stepwell_server::listen::{Limits, serve};
use stepwell_server::metrics::{Endpoint, count, install};
use stepwell_store::sqlite::SqliteStore;
use tokio::net::TcpListener;

/// A server with a route that has an id in it. The directory is there as long as this is.
struct Harness {
    address: SocketAddr,
    client: Client,
    _directory: tempfile::TempDir,
}

impl Harness {
    async fn new(token: Option<&str>) -> Harness {
        let directory = tempfile::tempdir().unwrap();
        let store = Arc::new(SqliteStore::open(directory.path()).unwrap());
        let metrics = Endpoint::new(install().unwrap(), store, token.map(Secret::new)).router();
        let things = Router::new().route("/things/{id}", get(async || "thing")).layer(middleware::from_fn(count));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let long = Duration::from_secs(30);
        let limits = Limits { connections: 10, header_timeout: long, body_timeout: long, drain: long };
        tokio::spawn(serve(listener, things.merge(metrics), limits, std::future::pending()));
        stepwell_store::tls::install();
        Harness { address, client: Client::new(), _directory: directory }
    }

    async fn ask(&self, method: Method, path: &str, headers: &[(&str, &str)]) -> (StatusCode, String) {
        let request = self.client.request(method, format!("http://{}{path}", self.address));
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let response = request.send().await.unwrap();
        (response.status(), response.text().await.unwrap())
    }

    async fn metrics(&self) -> String {
        let (status, text) = self.ask(Method::GET, "/metrics", &[]).await;
        assert_eq!(status, StatusCode::OK, "{text}");
        text
    }
}

#[tokio::test]
async fn requests_are_counted_by_route_and_not_by_id() {
    let harness = Harness::new(None).await;
    for id in 0..3 {
        harness.ask(Method::GET, &format!("/things/{id}"), &[]).await;
    }
    harness.ask(Method::from_bytes(b"BREW").unwrap(), "/things/1", &[]).await;
    let text = harness.metrics().await;
    let counted = r#"stepwell_http_requests_total{method="GET",route="/things/{id}",status="200"} 3"#;
    assert!(text.contains(counted), "{text}");
    assert!(text.contains(r#"{method="other",route="/things/{id}",status="405"} 1"#), "{text}");
    let timed = r#"stepwell_http_request_seconds_bucket{method="GET",route="/things/{id}",le="+Inf"} 3"#;
    assert!(text.contains(timed), "{text}");
    assert!(text.contains("# HELP stepwell_http_requests_total Requests handled"), "{text}");
    assert!(text.contains("# TYPE stepwell_http_request_seconds histogram"), "{text}");
}

#[tokio::test]
async fn the_size_of_the_store_is_told() {
    let harness = Harness::new(None).await;
    let text = harness.metrics().await;
    for part in ["data", "free", "journal"] {
        assert!(text.contains(&format!("stepwell_store_bytes{{part=\"{part}\"}}")), "{text}");
    }
    let data = text.lines().find_map(|line| line.strip_prefix("stepwell_store_bytes{part=\"data\"} ")).unwrap();
    assert!(data.parse::<f64>().unwrap() > 0.0);
}

#[tokio::test]
async fn without_a_token_only_this_machine_may_read_and_no_proxy_on_it() {
    let harness = Harness::new(None).await;
    assert_eq!(harness.ask(Method::GET, "/metrics", &[]).await.0, StatusCode::OK);
    let through_a_proxy = [("X-Forwarded-For", "203.0.113.9"), ("Forwarded", "for=203.0.113.9"), ("Via", "1.1 proxy")];
    let through_a_page = [("Host", "evil.example"), ("Host", "localhost.evil.example:7070")];
    for header in through_a_proxy.into_iter().chain(through_a_page) {
        let (status, text) = harness.ask(Method::GET, "/metrics", &[header]).await;
        assert_eq!(status, StatusCode::FORBIDDEN);
        assert!(!text.contains("stepwell_"), "{text}");
    }
}

#[tokio::test]
async fn with_a_token_only_who_has_it_may_read() {
    let harness = Harness::new(Some("correct")).await;
    for given in ["", "Bearer", "Bearer wrong", "Bearer correctly", "Basic correct"] {
        let (status, text) = harness.ask(Method::GET, "/metrics", &[("Authorization", given)]).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{given}");
        assert!(!text.contains("stepwell_"), "{text}");
    }
    assert_eq!(harness.ask(Method::GET, "/metrics", &[("Authorization", "bearer correct")]).await.0, StatusCode::OK);
}

#[tokio::test]
async fn panics_of_background_tasks_are_counted_by_task() {
    let harness = Harness::new(None).await;
    let mut left = 2;
    let task = stepwell_store::Supervisor::default().spawn("brittle", move || {
        let panics = left > 0;
        left -= 1;
        async move { assert!(!panics, "as asked") }
    });
    task.await.unwrap();
    let text = harness.metrics().await;
    assert!(text.contains(r#"stepwell_tasks_panicked_total{task="brittle"} 2"#), "{text}");
}
