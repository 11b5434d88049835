//! What an `http` step sends, and how it reads the response.

use crate::server::{Server, raw, response};
use crate::{call, failure, http, local, soon, success};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use stepwell_core::limits::MAX_READABLE_BODY;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[tokio::test]
async fn a_request_follows_the_definition() {
    let server = Server::responding(200, &[], "").await;
    let url = format!("{}/charge?id=7", server.url);
    let headers = json!({"X-Trace": "abc", "X-Count": 3, "X-Left-Out": null});
    success(http(json!({"url": url, "method": "PUT", "headers": headers, "body": {"amount": 12}})).await);
    let seen = server.only();
    assert_eq!((seen.method.as_str(), seen.uri.to_string()), ("PUT", "/charge?id=7".into()));
    assert_eq!(&*seen.body, br#"{"amount":12}"#);
    let expected = [
        ("content-type", Some("application/json")),
        ("user-agent", Some(concat!("stepwell/", env!("CARGO_PKG_VERSION")))),
        ("idempotency-key", Some("run_1/each[3].charge")),
        ("x-trace", Some("abc")),
        ("x-count", Some("3")),
        ("x-left-out", None),
        // Compressed responses are not requested, because they would not be decompressed.
        ("accept-encoding", None),
        ("cookie", None),
    ];
    for (name, value) in expected {
        assert_eq!(seen.header(name), value, "{name}");
    }
}

#[tokio::test]
async fn a_url_alone_makes_an_empty_post() {
    let server = Server::responding(200, &[], "").await;
    success(http(json!({"url": server.url})).await);
    let seen = server.only();
    assert_eq!((seen.method.as_str(), seen.body.len()), ("POST", 0));
    assert_eq!(seen.header("content-length"), Some("0"));
    assert_eq!(seen.header("content-type"), None);
}

#[tokio::test]
async fn headers_of_the_definition_override_the_defaults() {
    let server = Server::responding(200, &[], "").await;
    let headers = json!({"idempotency-key": "mine", "USER-AGENT": "me", "Content-Type": "application/x"});
    success(http(json!({"url": server.url, "headers": headers, "body": "text"})).await);
    let seen = server.only();
    let given = ["idempotency-key", "user-agent", "content-type"].map(|name| seen.headers.get_all(name).iter().count());
    assert_eq!(given, [1, 1, 1]);
    assert_eq!(seen.header("idempotency-key"), Some("mine"));
    assert_eq!(seen.header("user-agent"), Some("me"));
    assert_eq!(seen.header("content-type"), Some("application/x"));
}

#[tokio::test]
async fn an_object_is_sent_as_a_form_if_its_content_type_says_so() {
    let server = Server::responding(200, &[], "").await;
    let headers = json!({"Content-Type": "application/x-www-form-urlencoded"});
    success(http(json!({"url": server.url, "headers": headers, "body": {"a": "x&y", "n": [1, 2]}})).await);
    let seen = server.only();
    assert_eq!(&*seen.body, b"a=x%26y&n=1&n=2");
    assert_eq!(seen.header("content-type"), Some("application/x-www-form-urlencoded"));
}

#[tokio::test]
async fn an_answer_that_is_not_text_comes_in_base64_with_its_type() {
    let png: &[u8] = &[0x89, b'P', b'N', b'G', 0, 0xff];
    let server = Server::answering(move |_| response(200, &[("content-type", "image/png")], png)).await;
    let reply = success(http(json!({"url": server.url, "method": "GET"})).await);
    assert_eq!(*reply.body, json!("iVBORwD/"));
    assert_eq!(reply.headers.unwrap()["content-type"], "image/png");
}

#[tokio::test]
async fn credentials_in_a_url_become_a_header() {
    let server = Server::responding(200, &[], "").await;
    success(http(json!({"url": server.url.replace("http://", "http://ada:pw@")})).await);
    assert_eq!(server.only().header("authorization"), Some("Basic YWRhOnB3"));
}

#[tokio::test]
async fn a_response_has_its_status_headers_and_body() {
    let headers = &[("Content-Type", "application/problem+json"), ("X-A", "1"), ("x-a", "2")];
    let server = Server::responding(201, headers, r#"{"ok": [1, 2.5]}"#).await;
    let reply = success(http(json!({"url": server.url})).await);
    assert_eq!(reply.status_code, Some(201));
    assert_eq!(*reply.body, json!({"ok": [1, 2.5]}));
    let headers = reply.headers.unwrap();
    assert_eq!((&headers["content-type"], &headers["x-a"]), (&json!("application/problem+json"), &json!("1, 2")));
    assert!(!reply.truncated);
}

#[tokio::test]
async fn every_body_is_readable() {
    let deep = "[".repeat(101) + &"]".repeat(101);
    let check = async |status: u16, content_type: &'static str, body: Vec<u8>, expected: Value| {
        let server =
            Server::answering(move |_| response(status, &[("content-type", content_type)], body.clone())).await;
        assert_eq!(*success(http(json!({"url": server.url})).await).body, expected);
    };
    check(200, "text/plain", b"hello".into(), json!("hello")).await;
    check(200, "text/plain", b" [1]".into(), json!([1])).await;
    check(200, "text/plain", b"12".into(), json!("12")).await;
    check(200, "application/json; charset=utf-8", b"12".into(), json!(12)).await;
    check(200, "application/json", b"{broken".into(), json!("{broken")).await;
    check(200, "application/json", b"".into(), Value::Null).await;
    check(204, "text/plain", b"".into(), Value::Null).await;
    check(200, "text/plain", b"caf\xe9!".into(), json!("caf\u{fffd}!")).await;
    check(200, "application/json", b"[\"\xff\"]".into(), json!("[\"\u{fffd}\"]")).await;
    check(200, "application/json", deep.clone().into_bytes(), json!(deep)).await;
}

#[tokio::test]
async fn a_head_request_has_no_body() {
    let server = Server::responding(200, &[], "not sent").await;
    let reply = success(http(json!({"url": server.url, "method": "head"})).await);
    assert_eq!((reply.status_code, &*reply.body), (Some(200), &Value::Null));
}

#[tokio::test]
async fn a_body_is_complete_up_to_the_limit_and_truncated_beyond() {
    for (length, truncated) in [(MAX_READABLE_BODY, false), (MAX_READABLE_BODY + 1, true)] {
        // JSON, so that a truncated body shows: it is text.
        let body = format!("[\"{}\"]", "a".repeat(length - 4));
        let sent = body.clone();
        let server = Server::answering(move |_| response(200, &[], sent.clone())).await;
        let reply = success(http(json!({"url": server.url})).await);
        assert_eq!((reply.truncated, reply.body.is_string()), (truncated, truncated), "{length}");
        if truncated {
            assert_eq!(*reply.body, json!(body[..MAX_READABLE_BODY]));
        }
    }
}

#[tokio::test]
async fn an_endless_body_is_not_downloaded_to_the_end() {
    let (url, server) = raw(async |mut socket: TcpStream| {
        socket.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        // Ends only when the client has closed the connection.
        while socket.write_all(&[b'a'; 4096]).await.is_ok() {}
    })
    .await;
    let reply = success(http(json!({"url": url})).await);
    assert_eq!((reply.truncated, reply.body.as_str().unwrap().len()), (true, MAX_READABLE_BODY));
    soon(server).await.unwrap();
}

#[tokio::test]
async fn a_response_in_pieces_is_reassembled() {
    let pieces =
        ["HTTP/1.1 2", "00 OK\r\nTransfer-", "Encoding: chunked\r\n\r\n4\r\n[1,", "2\r\n2\r\n3]\r\n0\r\n", "\r\n"];
    let (url, server) = raw(async move |mut socket: TcpStream| {
        for piece in pieces {
            socket.write_all(piece.as_bytes()).await.unwrap();
            socket.flush().await.unwrap();
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(*success(http(json!({"url": url})).await).body, json!([1, 23]));
    soon(server).await.unwrap();
}

#[tokio::test]
async fn connections_are_reused() {
    let server = Server::responding(200, &[], "[]").await;
    let kinds = stepwell_steps::kinds(local());
    for _ in 0..5 {
        success(soon(kinds.get("http").unwrap().run(call(json!({"url": server.url})))).await);
    }
    let from: BTreeSet<_> = server.seen().iter().map(|seen| seen.from).collect();
    assert_eq!((server.seen().len(), from.len()), (5, 1));
}

#[tokio::test]
async fn dropping_the_attempt_closes_its_connection() {
    let (arrived, has_arrived) = tokio::sync::oneshot::channel();
    let (url, server) = raw(async move |mut socket: TcpStream| {
        arrived.send(()).unwrap();
        // Never responds; the read returns nothing once the client is gone.
        socket.read(&mut [0; 64]).await.unwrap_or(0)
    })
    .await;
    let kinds = stepwell_steps::kinds(local());
    let kind = kinds.get("http").unwrap();
    tokio::select! {
        outcome = kind.run(call(json!({"url": url}))) => panic!("{outcome:?}"),
        arrived = soon(has_arrived) => arrived.unwrap(),
    }
    assert_eq!(soon(server).await.unwrap(), 0);
}

#[tokio::test]
async fn an_invalid_request_is_not_sent() {
    let server = Server::responding(200, &[], "").await;
    let (refused, reply) =
        failure(http(json!({"url": server.url, "headers": {"x": "a\r\nb"}, "body": "GET / HTTP/1.1"})).await);
    assert_eq!((&*refused.code, refused.retryable, refused.may_have_happened), ("bad_request", false, false));
    assert!(reply.is_none() && server.seen().is_empty());
}
