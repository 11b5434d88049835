//! Connections that stay open, and requests that are refused before a key is checked.

use crate::world::{Flood, World, withstand};
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

fn address(world: &World) -> String {
    world.attacker.url.trim_start_matches("http://").to_string()
}

fn request(world: &World, line: &str, rest: &str) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(address(world)).ok()?;
    let key = world.attacker.key.as_deref().unwrap();
    let head = format!("{line} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {key}\r\n{rest}\r\n", address(world));
    stream.write_all(head.as_bytes()).ok()?;
    Some(stream)
}

#[test]
fn silent_bodies_do_not_block_the_requests_of_others() {
    withstand("200 silent bodies", |world| {
        let head = "content-type: application/json\r\ntransfer-encoding: chunked\r\n";
        let open = || request(world, "POST /api/v1/workflows", head);
        (0..200).filter_map(|_| open()).collect::<Vec<TcpStream>>()
    });
}

#[test]
fn slow_large_bodies_do_not_block_the_requests_of_others() {
    withstand("50 slow bodies of 9 MB", |world| {
        let length = 9 << 20;
        let head = format!("content-type: application/json\r\ncontent-length: {length}\r\n");
        let half = vec![b' '; length / 2];
        let send = |_| {
            let mut stream = request(world, "POST /api/v1/workflows", &head)?;
            stream.set_write_timeout(Some(Duration::from_secs(2))).ok()?;
            // The server may stop reading, or refuse it.
            let _ = stream.write_all(&half);
            Some(stream)
        };
        (0..50).filter_map(send).collect::<Vec<TcpStream>>()
    });
}

#[test]
fn one_caller_cannot_hold_all_live_streams() {
    withstand("1,200 live streams", |world| {
        world.define(&json!({"name": "it", "tasks": {"a": {"tool": "echo", "args": {"message": "x"}}}}));
        let open = || request(world, "GET /api/v1/events", "accept: text/event-stream\r\n");
        let streams: Vec<TcpStream> = (0..1_200).filter_map(|_| open()).collect();
        let mut refused = 0;
        for mut stream in streams.iter().rev().take(100) {
            stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            let mut start = [0; 12];
            if stream.read_exact(&mut start).is_ok() && !start.ends_with(b"200") {
                refused += 1;
            }
        }
        assert!(refused > 0, "no stream was refused");
        streams
    });
}

#[test]
fn wrong_tokens_are_cheap_and_throttled() {
    withstand("wrong tokens", |world| {
        let outside = stepwell_testing::Api::new(&world.attacker.url, None);
        Flood::of(4, move || {
            for path in ["/wh/run_01a1edc597fb79ce8ded99ad96466c1e.x.y", "/in/none", "/approve/none", "/sign-in/none"] {
                let answer = outside.get(path);
                assert!(answer.status < 500, "{path}: {}", answer.text());
            }
        })
    });
}
