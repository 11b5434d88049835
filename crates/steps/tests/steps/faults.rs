//! Everything that can go wrong with a request, and how it is reported.

use crate::server::{Server, dead, raw_bytes, response};
use crate::{Config, failure, http, local, run};
use serde_json::json;
use std::time::Duration;
use stepwell_core::event::{Failure, FailureKind, Reply};
use stepwell_core::limits::MAX_RETRY_AFTER;

const SECRET: &str = "s3cret";

/// Makes the request with secrets in its URL, which no message may show.
async fn fails(url: &str) -> (Failure, Option<Reply>) {
    let url = url.replace("://", &format!("://user:{SECRET}@"));
    let (failure, reply) = failure(http(json!({"url": format!("{url}/path?key={SECRET}")})).await);
    let shown = format!("{failure:?}");
    assert!(!shown.contains(SECRET), "{shown}");
    assert!(failure.message.contains("POST http") && failure.message.contains("/path"), "{shown}");
    (failure, reply)
}

async fn check_network(url: &str, code: &str, may_have_happened: bool) {
    let (failure, reply) = fails(url).await;
    assert_eq!((&*failure.code, failure.kind), (code, FailureKind::Network), "{}", failure.message);
    assert_eq!((failure.retryable, failure.may_have_happened), (true, may_have_happened), "{}", failure.message);
    assert!(reply.is_none());
}

#[tokio::test]
async fn a_refused_connection_had_no_effect() {
    let (url, _kept) = dead();
    check_network(&url, "connect_failed", false).await;
}

#[tokio::test]
async fn an_unresolvable_name_had_no_effect() {
    // Too long for a label, so no name server is queried.
    check_network(&format!("http://{}", "a".repeat(70)), "connect_failed", false).await;
}

#[tokio::test]
async fn a_failed_tls_handshake_had_no_effect() {
    // A server that does not speak TLS.
    let server = Server::responding(200, &[], "").await;
    check_network(&server.url.replace("http://", "https://"), "connect_failed", false).await;
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn a_connect_timeout_had_no_effect() {
    // Accepts, but does not respond to the TLS handshake.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    let config = Config { connect_timeout: Duration::from_millis(20), ..local() };
    let (failure, _) = failure(run(config, "http", json!({"url": url})).await);
    assert_eq!((&*failure.code, failure.kind), ("connect_failed", FailureKind::Network), "{}", failure.message);
    assert_eq!((failure.retryable, failure.may_have_happened), (true, false));
}

#[tokio::test]
async fn a_connection_closed_before_the_response_may_have_had_an_effect() {
    check_network(&raw_bytes(b"").await, "connection_lost", true).await;
    check_network(&raw_bytes(b"HTTP/1.1 200").await, "connection_lost", true).await;
}

#[tokio::test]
async fn a_response_that_is_not_http_may_have_had_an_effect() {
    check_network(&raw_bytes(b"SSH-2.0-OpenSSH_9.2\r\n\r\n").await, "connection_lost", true).await;
    check_network(&raw_bytes(b"HTTP/1.1 2x0 OK\r\n\r\n").await, "connection_lost", true).await;
    check_network(&raw_bytes(b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n").await, "connection_lost", true).await;
}

#[tokio::test]
async fn a_connection_closed_within_the_body_of_a_success_is_lost() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n[1, 2";
    check_network(&raw_bytes(head).await, "connection_lost", true).await;
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n";
    check_network(&raw_bytes(chunked).await, "connection_lost", true).await;
}

#[tokio::test]
async fn a_status_counts_even_if_its_body_is_cut_short() {
    let head = b"HTTP/1.1 404 Not Found\r\nContent-Length: 100\r\n\r\nno such";
    let (failure, reply) = fails(&raw_bytes(head).await).await;
    assert_eq!((&*failure.code, failure.retryable, failure.may_have_happened), ("http_404", false, false));
    assert_eq!(*reply.unwrap().body, json!("no such"));
}

#[tokio::test]
async fn the_status_decides_whether_a_retry_makes_sense() {
    let check = async |status: u16, retryable: bool, may_have_happened: bool| {
        let server = Server::answering(move |_| response(status, &[("retry-after", "7")], r#"{"why": "no"}"#)).await;
        let (failure, reply) = fails(&server.url).await;
        assert_eq!(*failure.code, *format!("http_{status}"));
        assert_eq!(failure.kind, FailureKind::Error);
        assert_eq!((failure.retryable, failure.may_have_happened), (retryable, may_have_happened), "{status}");
        assert_eq!(failure.retry_after.map(|pause| pause.0), retryable.then_some(7_000), "{status}");
        // The response is kept: expressions read it, and retry rules match on its status.
        let reply = reply.unwrap();
        assert_eq!((reply.status_code, &*reply.body), (Some(status), &json!({"why": "no"})));
    };
    for status in [400, 401, 403, 404, 409, 410, 422] {
        check(status, false, false).await;
    }
    for status in [408, 425, 429] {
        check(status, true, false).await;
    }
    for status in [500, 502, 503, 504] {
        check(status, true, true).await;
    }
}

#[tokio::test]
async fn a_message_names_the_method_the_url_and_the_status() {
    let server = Server::responding(404, &[], "").await;
    let url = format!("{}/a/b?key={SECRET}", server.url);
    let (failure, _) = failure(http(json!({"url": url, "method": "GET"})).await);
    assert_eq!(*failure.message, *format!("GET {}/a/b returned 404 Not Found", server.url));
}

#[tokio::test]
async fn retry_after_dates_are_limited_to_a_day() {
    let server = Server::responding(503, &[("retry-after", "Fri, 31 Dec 2100 23:59:59 GMT")], "").await;
    let (failure, _) = fails(&server.url).await;
    assert_eq!(failure.retry_after, Some(MAX_RETRY_AFTER));
    let server = Server::responding(503, &[("retry-after", "Thu, 01 Jan 1998 00:00:00 GMT")], "").await;
    let (failure, _) = fails(&server.url).await;
    assert_eq!(failure.retry_after.map(|pause| pause.0), Some(0));
}
