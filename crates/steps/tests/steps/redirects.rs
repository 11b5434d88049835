//! Redirects: which are followed, what they carry along, and what a failure after one means.

use crate::server::{Seen, Server, dead, response};
use crate::{call, failure, http, local, soon, success};
use async_trait::async_trait;
use axum::body::Body;
use axum::http::Response;
use serde_json::json;
use std::sync::Arc;
use stepwell_core::event::Failure;
use stepwell_engine::{HostGuard, HostRules, StepCall};
use stepwell_steps::kinds;
use url::Url;

async fn redirecting(status: u16, to: String) -> Server {
    Server::answering(move |_| response(status, &[("location", to.as_str())], "")).await
}

async fn fails_behind(status: u16, to: String) -> (Failure, Server) {
    let server = redirecting(status, to).await;
    let (failure, reply) = failure(http(json!({"url": server.url, "body": {"a": 1}})).await);
    assert!(reply.is_none());
    (failure, server)
}

#[tokio::test]
async fn the_status_of_a_redirect_decides_whether_the_body_is_sent_again() {
    for (status, method, body) in
        [(303, "GET", ""), (302, "GET", ""), (307, "POST", "{\"a\":1}"), (308, "POST", "{\"a\":1}")]
    {
        let target = Server::responding(200, &[], "[7]").await;
        let server = redirecting(status, format!("{}/there", target.url)).await;
        let reply = success(http(json!({"url": server.url, "body": {"a": 1}})).await);
        assert_eq!(*reply.body, json!([7]));
        let seen = target.only();
        assert_eq!(
            (seen.method.as_str(), seen.uri.path(), &*seen.body),
            (method, "/there", body.as_bytes()),
            "{status}"
        );
    }
}

#[tokio::test]
async fn another_host_gets_neither_the_credentials_nor_the_query_of_the_first() {
    let target = Server::responding(200, &[], "").await;
    let server = redirecting(307, target.url.clone()).await;
    let headers = json!({"Authorization": "Bearer s3cret", "Cookie": "s3cret"});
    success(http(json!({"url": format!("{}/?key=s3cret", server.url), "headers": headers})).await);
    assert_eq!(server.only().header("authorization"), Some("Bearer s3cret"));
    let seen = target.only();
    assert!(!format!("{:?} {}", seen.headers, seen.uri).contains("s3cret"));
}

#[tokio::test]
async fn the_same_host_gets_the_credentials_again() {
    let server = Server::answering(|seen: &Seen| -> Response<Body> {
        let first = seen.uri.path() == "/";
        response(if first { 307 } else { 200 }, &[("location", "/next")], "")
    })
    .await;
    success(http(json!({"url": server.url, "headers": {"Authorization": "Bearer x"}})).await);
    let given: Vec<_> = server.seen().iter().map(|seen| seen.header("authorization").map(str::to_owned)).collect();
    assert_eq!(given, [Some("Bearer x".to_owned()), Some("Bearer x".to_owned())]);
}

/// A policy that refuses `localhost`.
struct NotHome;

#[async_trait]
impl HostGuard for NotHome {
    async fn rules(&self) -> Result<Arc<dyn HostRules>, Failure> {
        Ok(Arc::new(NotHome))
    }
}

impl HostRules for NotHome {
    fn check(&self, url: &Url, _method: &str) -> Result<(), Failure> {
        let refused = || Failure::new("denied_by_policy", "not there");
        if url.host_str() == Some("localhost") { Err(refused()) } else { Ok(()) }
    }
}

#[tokio::test]
async fn a_host_policy_is_checked_for_the_first_url_and_every_redirect() {
    let target = Server::responding(200, &[], "").await;
    let home = target.url.replace("127.0.0.1", "localhost");
    let kinds = kinds(local());
    for (status, maybe_done) in [(307, false), (303, true)] {
        let server = redirecting(status, home.clone()).await;
        for (kind, input) in [
            ("http", json!({"url": server.url, "body": {"a": 1}})),
            ("tool", json!({"tool": "http_request", "args": {"url": server.url, "body": {"a": 1}}})),
        ] {
            let call = StepCall { guard: Some(Arc::new(NotHome)), ..call(input) };
            let (failure, _) = failure(soon(kinds.get(kind).unwrap().run(call)).await);
            assert_eq!((&*failure.code, failure.may_have_happened), ("denied_by_policy", maybe_done), "{kind}");
        }
    }
    let call = StepCall { guard: Some(Arc::new(NotHome)), ..call(json!({"url": home})) };
    let (failure, _) = failure(soon(kinds.get("http").unwrap().run(call)).await);
    assert_eq!((&*failure.code, failure.may_have_happened), ("denied_by_policy", false));
    assert!(target.seen().is_empty());
}

#[tokio::test]
async fn a_redirect_loop_ends_after_ten_redirects() {
    let server = Server::responding(302, &[("location", "/again?key=s3cret")], "").await;
    let (failure, _) = failure(http(json!({"url": server.url, "method": "GET"})).await);
    assert_eq!((&*failure.code, failure.retryable, failure.may_have_happened), ("too_many_redirects", false, false));
    assert!(!failure.message.contains("s3cret"), "{}", failure.message);
    assert_eq!(server.seen().len(), 11);
}

#[tokio::test]
async fn other_schemes_are_not_followed() {
    let (failure, server) = fails_behind(307, "ftp://127.0.0.1/?key=s3cret".into()).await;
    assert_eq!((&*failure.code, failure.retryable), ("bad_redirect", false), "{}", failure.message);
    assert!(!failure.message.contains("s3cret"), "{}", failure.message);
    server.only();
}

#[tokio::test]
async fn a_redirect_without_a_usable_location_is_an_ordinary_response() {
    let nowhere: [&[(&str, &str)]; 2] = [&[], &[("location", "file:///etc/passwd")]];
    for headers in nowhere {
        let server = Server::responding(302, headers, "").await;
        let (failure, reply) = failure(http(json!({"url": server.url})).await);
        assert_eq!((&*failure.code, failure.retryable, failure.may_have_happened), ("http_302", false, false));
        assert_eq!(reply.unwrap().status_code, Some(302));
    }
}

#[tokio::test]
async fn a_failure_after_a_redirect_may_have_happened_if_the_first_server_acted() {
    let (closed, _kept) = dead();
    // 303, "see the result there": the POST was carried out.
    let (failure, _) = fails_behind(303, closed.clone()).await;
    assert_eq!((&*failure.code, failure.may_have_happened), ("connect_failed", true));
    assert!(failure.message.contains(&format!("(redirected to {closed}/)")), "{}", failure.message);
    // 307, "send it there instead": it was not.
    let (failure, _) = fails_behind(307, closed).await;
    assert_eq!((&*failure.code, failure.may_have_happened), ("connect_failed", false));
}
