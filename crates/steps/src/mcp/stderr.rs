//! The standard error of a child process: always read, so that the process never blocks; kept and logged within limits.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use stepwell_engine::Mask;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::Instant;

/// Bytes kept of each line.
const MAX_LINE: usize = 500;
const MAX_LINES: usize = 10;
/// Lines logged per second.
const MAX_LOGGED: u32 = 20;

/// The last lines.
#[derive(Default)]
pub struct Tail(Mutex<VecDeque<String>>);

impl Tail {
    fn push(&self, line: String) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == MAX_LINES {
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
        // Longer than what is kept, so that a secret is masked before the line is cut.
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
            ..=MAX_LOGGED => tracing::debug!(%server, line = %text, "MCP server stderr"),
            n if n == MAX_LOGGED + 1 => tracing::debug!(%server, "MCP server stderr is rate limited"),
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
    async fn a_flood_keeps_its_last_lines_with_secrets_masked() {
        let mut output = Vec::new();
        (0..10_000).for_each(|n| output.extend(format!("line {n}\n").into_bytes()));
        output.extend(vec![b'x'; 1 << 20]);
        output.extend(b"\nthe key is hunter2hunter2\nlast");
        let mut mask = Mask::default();
        mask.hide("KEY", "hunter2hunter2");
        let tail = Arc::new(Tail::default());
        follow(&output[..], tail.clone(), Arc::new(mask), "test".into()).await;
        let text = tail.text();
        assert!(text.starts_with("line 9993 | ") && text.ends_with("x | the key is {{secrets.KEY}} | last"), "{text}");
        assert!(text.len() < MAX_LINES * (MAX_LINE + 3), "{}", text.len());
    }
}
