//! The listener from outside, over raw sockets.

// In a test a panic is the report.
#![allow(clippy::unwrap_used)]

use axum::Router;
use axum::body::Bytes;
use axum::extract::ConnectInfo;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::routing::{get, post};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use stepwell_server::listen::{Limits, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinHandle;

/// So long that a test which waits for it has failed.
const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(100);

const LIMITS: Limits = Limits { connections: 100, header_timeout: LONG, body_timeout: LONG, drain: LONG };

struct Harness {
    address: SocketAddr,
    stop: Arc<Notify>,
    server: JoinHandle<()>,
    /// Lets requests to `/held` end.
    permits: Arc<Semaphore>,
    /// Counts requests to `/held` that have begun.
    held: Arc<Semaphore>,
}

impl Harness {
    async fn new(limits: Limits) -> Harness {
        let (permits, held) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let (release, begun) = (permits.clone(), held.clone());
        let wait = move || async move {
            begun.add_permits(1);
            release.acquire().await.unwrap().forget();
            "held"
        };
        let router = Router::new()
            .route("/", get(|ConnectInfo(peer): ConnectInfo<SocketAddr>| async move { peer.to_string() }))
            .route("/echo", post(|body: Bytes| async move { body }))
            .route("/held", get(wait))
            .route("/ws", get(|upgrade: WebSocketUpgrade| async { upgrade.on_upgrade(echo) }));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = Arc::new(Notify::new());
        let stopped = stop.clone();
        let server = tokio::spawn(async move { serve(listener, router, limits, stopped.notified()).await });
        Harness { address, stop, server, permits, held }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }
}

async fn echo(mut socket: WebSocket) {
    while let Some(Ok(message)) = socket.recv().await {
        if matches!(message, Message::Text(_)) && socket.send(message).await.is_err() {
            return;
        }
    }
}

async fn send(stream: &mut TcpStream, text: &str) {
    stream.write_all(text.as_bytes()).await.unwrap();
}

/// Everything until the server closes.
async fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    // A connection may also be reset when it is cut off.
    let _ = tokio::time::timeout(LONG, stream.read_to_end(&mut bytes)).await.expect("the server closes the connection");
    String::from_utf8(bytes).unwrap()
}

/// Reads until the text is there.
async fn until(stream: &mut TcpStream, wanted: &str) -> String {
    let mut text = String::new();
    while !text.contains(wanted) {
        let mut bytes = [0; 1024];
        let n = tokio::time::timeout(LONG, stream.read(&mut bytes)).await.expect("an answer").unwrap();
        assert!(n > 0, "closed after {text:?}");
        text.push_str(&String::from_utf8_lossy(&bytes[..n]));
    }
    text
}

#[tokio::test]
async fn a_request_carries_the_address_of_its_peer() {
    let harness = Harness::new(LIMITS).await;
    let mut stream = harness.connect().await;
    send(&mut stream, "GET / HTTP/1.1\r\nHost: x\r\n\r\n").await;
    let own = stream.local_addr().unwrap().to_string();
    until(&mut stream, &own).await;
    // And the connection can be used again.
    send(&mut stream, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
    assert!(rest(&mut stream).await.starts_with("HTTP/1.1 200 OK"));
}

#[tokio::test]
async fn a_head_that_does_not_come_is_not_waited_for() {
    let harness = Harness::new(Limits { header_timeout: SHORT, ..LIMITS }).await;
    let begun = Instant::now();
    for part in ["", "GET / HT", "GET / HTTP/1.1\r\nHost: x\r\nX-Slow: "] {
        let mut stream = harness.connect().await;
        send(&mut stream, part).await;
        assert!(!rest(&mut stream).await.contains("200 OK"), "{part:?}");
    }
    assert!(begun.elapsed() >= 3 * SHORT);
}

#[tokio::test]
async fn a_head_that_trickles_in_does_not_put_its_end_off() {
    let harness = Harness::new(Limits { header_timeout: SHORT, ..LIMITS }).await;
    let mut stream = harness.connect().await;
    let trickle = async {
        // Each line comes well before the time is over; together they never end.
        while stream.write_all(b"X-Slow: 1\r\n").await.is_ok() {
            tokio::time::sleep(SHORT / 10).await;
        }
    };
    tokio::time::timeout(LONG, trickle).await.expect("the server closes the connection");
}

#[tokio::test]
async fn a_connection_that_is_idle_for_long_is_closed() {
    let harness = Harness::new(Limits { header_timeout: SHORT, ..LIMITS }).await;
    let mut stream = harness.connect().await;
    send(&mut stream, "GET / HTTP/1.1\r\nHost: x\r\n\r\n").await;
    until(&mut stream, "127.0.0.1:").await;
    assert!(!rest(&mut stream).await.contains("200 OK"));
}

#[tokio::test]
async fn a_head_that_is_too_long_is_refused() {
    let harness = Harness::new(LIMITS).await;
    let mut stream = harness.connect().await;
    // The server may close before all of it is sent.
    let _ = stream.write_all(format!("GET / HTTP/1.1\r\nHost: x\r\nX-Long: {}", "x".repeat(70_000)).as_bytes()).await;
    until(&mut stream, "HTTP/1.1 431 ").await;
}

#[tokio::test]
async fn a_body_that_does_not_come_in_time_ends_in_408() {
    let harness = Harness::new(Limits { body_timeout: SHORT, ..LIMITS }).await;
    let mut stream = harness.connect().await;
    send(&mut stream, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf").await;
    let answer = rest(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 408 Request Timeout\r\n"), "{answer}");
    assert!(answer.contains("application/problem+json") && answer.contains(r#""code":"request-timeout""#), "{answer}");
}

#[tokio::test]
async fn a_body_that_trickles_in_does_not_put_its_end_off() {
    let harness = Harness::new(Limits { body_timeout: SHORT, ..LIMITS }).await;
    let stream = harness.connect().await;
    let (mut reader, mut writer) = stream.into_split();
    let trickle = tokio::spawn(async move {
        let _ = writer.write_all(b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n").await;
        while writer.write_all(b"1\r\nx\r\n").await.is_ok() {
            tokio::time::sleep(SHORT / 10).await;
        }
    });
    let mut answer = [0; 16];
    tokio::time::timeout(LONG, reader.read_exact(&mut answer)).await.expect("an answer").unwrap();
    assert_eq!(&answer, b"HTTP/1.1 408 Req");
    tokio::time::timeout(LONG, trickle).await.expect("the server closes the connection").unwrap();
}

#[tokio::test]
async fn a_body_that_comes_in_time_is_whole() {
    let harness = Harness::new(LIMITS).await;
    let mut stream = harness.connect().await;
    send(&mut stream, "POST /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 8\r\n\r\nhalf").await;
    send(&mut stream, "half").await;
    assert!(rest(&mut stream).await.ends_with("\r\n\r\nhalfhalf"));
}

#[tokio::test]
async fn a_stop_lets_a_request_end_and_closes_idle_connections_at_once() {
    let harness = Harness::new(LIMITS).await;
    let (mut fresh, mut idle, mut busy) = (harness.connect().await, harness.connect().await, harness.connect().await);
    send(&mut idle, "GET / HTTP/1.1\r\nHost: x\r\n\r\n").await;
    until(&mut idle, "127.0.0.1:").await;
    send(&mut busy, "GET /held HTTP/1.1\r\nHost: x\r\n\r\n").await;
    harness.held.acquire().await.unwrap().forget();
    harness.stop.notify_one();
    assert_eq!(rest(&mut idle).await, "");
    assert_eq!(rest(&mut fresh).await, "");
    assert!(TcpStream::connect(harness.address).await.is_err(), "no connection is accepted any more");
    assert!(!harness.server.is_finished());
    harness.permits.add_permits(1);
    let answer = rest(&mut busy).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("held"), "{answer}");
    tokio::time::timeout(LONG, harness.server).await.expect("the server ends").unwrap();
}

#[tokio::test]
async fn a_request_that_does_not_end_is_cut_off_when_the_drain_is_over() {
    let harness = Harness::new(Limits { drain: SHORT, ..LIMITS }).await;
    let mut busy = harness.connect().await;
    send(&mut busy, "GET /held HTTP/1.1\r\nHost: x\r\n\r\n").await;
    harness.held.acquire().await.unwrap().forget();
    harness.stop.notify_one();
    assert_eq!(rest(&mut busy).await, "");
    tokio::time::timeout(LONG, harness.server).await.expect("the server ends").unwrap();
}

#[tokio::test]
async fn beyond_the_bound_a_connection_waits_until_another_is_closed() {
    let harness = Harness::new(Limits { connections: 1, ..LIMITS }).await;
    let mut first = harness.connect().await;
    send(&mut first, "GET /held HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
    harness.held.acquire().await.unwrap().forget();
    let mut second = harness.connect().await;
    send(&mut second, "GET /held HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert!(tokio::time::timeout(SHORT, harness.held.acquire()).await.is_err(), "the second was served too soon");
    harness.permits.add_permits(2);
    assert!(rest(&mut first).await.ends_with("held"));
    until(&mut second, "held").await;
}

#[tokio::test]
async fn a_websocket_works_and_counts_as_a_connection_until_it_is_closed() {
    let harness = Harness::new(Limits { connections: 1, ..LIMITS }).await;
    let mut socket = harness.connect().await;
    let upgrade = "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                   Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    send(&mut socket, upgrade).await;
    until(&mut socket, "101 Switching Protocols").await;
    // A masked text frame with the mask 0, and the same unmasked.
    socket.write_all(&[0x81, 0x82, 0, 0, 0, 0, b'h', b'i']).await.unwrap();
    let mut frame = [0; 4];
    socket.read_exact(&mut frame).await.unwrap();
    assert_eq!(frame, [0x81, 2, b'h', b'i']);
    let mut second = harness.connect().await;
    send(&mut second, "GET / HTTP/1.1\r\nHost: x\r\n\r\n").await;
    let mut byte = [0];
    assert!(tokio::time::timeout(SHORT, second.read(&mut byte)).await.is_err(), "the second was served too soon");
    drop(socket);
    until(&mut second, "127.0.0.1:").await;
}
