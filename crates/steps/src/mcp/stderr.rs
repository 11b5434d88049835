//! What a child process says to people: always read, so that it never blocks; kept and logged only so far.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use stepwell_engine::Mask;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::Instant;

/// Bytes of a line that are kept.
const MAX_LINE: usize = 500;
const MOST_LINES: usize = 10;
/// Lines that are logged in a second.
const MOST_LOGGED: u32 = 20;

/// The last lines.
#[derive(Default)]
pub struct Tail(Mutex<VecDeque<String>>);

impl Tail {
    fn push(&self, line: String) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == MOST_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    pub fn text(&self) -> String {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().map(String::as_str).collect::<Vec<_>>().join(" | ")
    }
}

/// Reads to the end.
pub async fn follow(mut from: impl AsyncRead + Unpin, tail: Arc<Tail>, mask: Arc<Mask>, server: String) {
    let (mut buffer, mut line) = (vec![0; 16 * 1024], Vec::new());
    let (mut since, mut logged) = (Instant::now(), 0);
    let mut end = |line: &mut Vec<u8>| {
        // A bit more than is kept, so that a secret is not cut before it is found.
        let text = String::from_utf8_lossy(line).trim().to_owned();
        line.clear();
        if text.is_empty() {
            return;
        }
        let mut text = mask.shown(&text).into_owned();
        text.truncate(text.floor_char_boundary(MAX_LINE));
        if since.elapsed() >= Duration::from_secs(1) {
            (since, logged) = (Instant::now(), 0);
        }
        logged += 1;
        match logged {
            ..=MOST_LOGGED => tracing::debug!(%server, line = %text, "an MCP server says"),
            n if n == MOST_LOGGED + 1 => tracing::debug!(%server, "an MCP server says more than is logged"),
            _ => {}
        }
        tail.push(text);
    };
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        for part in buffer[..count].split_inclusive(|byte| *byte == b'\n') {
            let room = (8 * MAX_LINE).saturating_sub(line.len());
            line.extend_from_slice(&part[..part.len().min(room)]);
            if part.ends_with(b"\n") {
                end(&mut line);
            }
        }
    }
    end(&mut line);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn of_a_flood_the_last_lines_are_kept_without_secrets() {
        let mut said = Vec::new();
        (0..10_000).for_each(|n| said.extend(format!("line {n}\n").into_bytes()));
        said.extend(vec![b'x'; 1 << 20]);
        said.extend(b"\nthe key is hunter2hunter2\nlast");
        let mut mask = Mask::default();
        mask.hide("KEY", "hunter2hunter2");
        let tail = Arc::new(Tail::default());
        follow(&said[..], tail.clone(), Arc::new(mask), "test".into()).await;
        let text = tail.text();
        assert!(text.starts_with("line 9993 | ") && text.ends_with("x | the key is {{secrets.KEY}} | last"), "{text}");
        assert!(text.len() < MOST_LINES * (MAX_LINE + 3), "{}", text.len());
    }
}
