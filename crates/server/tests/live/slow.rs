//! Readers that do not read.

use crate::check;
use crate::harness::{Frame, Harness, LONG, frames, patient};
use serde_json::json;
use std::time::Duration;
use stepwell_server::live::Settings;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

/// Runs whose events together are more than the system keeps for a connection.
const RUNS: usize = 300;
const LENGTH: usize = 60_000;

/// Asks for the organisation's events and takes only their beginning.
async fn ask(harness: &Harness) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(8 * 1024).unwrap();
    let mut stream = socket.connect(harness.address).await.unwrap();
    let request = format!(
        "GET /api/v1/events HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n",
        harness.address, harness.key
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    assert!(head.starts_with(b"HTTP/1.1 200 OK"));
    stream
}

/// The chunks of a body without what is around them.
fn body(mut bytes: &[u8]) -> String {
    let mut text = Vec::new();
    while let Some(line) = bytes.windows(2).position(|two| two == b"\r\n") {
        let length = usize::from_str_radix(std::str::from_utf8(&bytes[..line]).unwrap(), 16).unwrap();
        let from = line + 2;
        let to = (from + length).min(bytes.len());
        text.extend_from_slice(&bytes[from..to]);
        bytes = bytes.get(to + 2..).unwrap_or_default();
    }
    String::from_utf8(text).unwrap()
}

async fn failing(settings: Settings) -> Harness {
    let harness = Harness::new(settings).await;
    let fail = json!({"tool": "fail", "args": {"length": LENGTH}});
    harness.define("failing", json!({"a": fail})).await;
    harness
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_takes_nothing_is_dropped_and_others_get_everything() {
    let harness = failing(Settings { patience: Duration::from_millis(300), ..patient() }).await;
    let mut slow = ask(&harness).await;
    let mut other = harness.stream("/api/v1/events", None).await;
    let reading = async {
        let (mut got, mut ended) = (Vec::new(), 0);
        while ended < RUNS {
            let frame = other.next().await.unwrap();
            ended += usize::from(frame.event == "ended");
            got.push(frame.event());
        }
        got
    };
    let ((), got) = tokio::join!(harness.run_many("failing", RUNS), async { timeout(LONG, reading).await.unwrap() });
    let log = harness.log().await;
    check(&got, &log);
    harness.streams(1).await;

    // What it had been sent is whole, and the rest is there when it comes back.
    let mut bytes = Vec::new();
    let _ = timeout(LONG, slow.read_to_end(&mut bytes)).await.unwrap();
    let first = frames(&body(&bytes));
    let mut got: Vec<_> = first.iter().map(Frame::event).collect();
    assert!(!got.is_empty() && got.len() < log.len(), "{} of {}", got.len(), log.len());
    let mut again = harness.stream("/api/v1/events", Some(&first.last().unwrap().id)).await;
    while got.len() < log.len() {
        got.push(again.next().await.unwrap().event());
    }
    check(&got, &log);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_pauses_for_longer_than_batches_are_kept_gets_everything_in_order() {
    let harness = failing(Settings { behind: 2, ..patient() }).await;
    let mut of_all = harness.stream("/api/v1/events", None).await;
    let first = harness.start("failing").await;
    let of_run = harness.stream(&format!("/api/v1/runs/{first}/stream"), None).await;
    harness.run_many("failing", RUNS).await;
    let log = harness.log().await;
    let mut got = Vec::new();
    while got.len() < log.len() {
        got.push(of_all.next().await.unwrap().event());
    }
    check(&got, &log);
    let of_first: Vec<_> = log.into_iter().filter(|(run, ..)| *run == first).collect();
    let frames = of_run.rest().await;
    check(&frames[..frames.len() - 1].iter().map(Frame::event).collect::<Vec<_>>(), &of_first);
}
