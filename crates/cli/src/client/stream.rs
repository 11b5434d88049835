//! Server-sent events of one run. After a lost connection the stream resumes behind the last event it received.

use super::{Call, Client, Refusal};
use reqwest::{Response, StatusCode};
use std::time::{Duration, Instant};

/// The server sends a keep-alive every 15 seconds.
const SILENCE: Duration = Duration::from_secs(45);
/// Bounds of the backoff between reconnects.
const MIN_BACKOFF: Duration = Duration::from_millis(100);
const MAX_BACKOFF: Duration = Duration::from_secs(2);
/// How long to wait for a lost server.
const GIVE_UP_AFTER: Duration = Duration::from_secs(300);

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Frame {
    pub id: String,
    pub event: String,
    pub data: String,
}

pub struct Stream<'a> {
    client: &'a Client,
    run: String,
    /// The id of the last event.
    last: Option<String>,
    open: Option<(Response, Parser)>,
    /// When the connection was lost.
    lost: Option<Instant>,
    backoff: Duration,
}

/// The next item of the stream.
pub enum Next {
    Frame(Frame),
    /// The connection was lost.
    Lost,
    /// The connection was restored.
    Back,
    /// The run has ended and every event was delivered.
    Over,
}

impl<'a> Stream<'a> {
    /// Streams the events after this version of the run.
    pub fn new(client: &'a Client, run: &str, after: Option<i64>) -> Stream<'a> {
        let last = after.map(|version| version.to_string());
        Stream { client, run: run.to_string(), last, open: None, lost: None, backoff: MIN_BACKOFF }
    }

    pub async fn next(&mut self) -> anyhow::Result<Next> {
        loop {
            let Some((response, parser)) = &mut self.open else {
                match self.connect().await? {
                    Some(next) => return Ok(next),
                    None => continue,
                }
            };
            if let Some(frame) = parser.next() {
                self.last = Some(frame.id.clone());
                return Ok(Next::Frame(frame));
            }
            match tokio::time::timeout(SILENCE, response.chunk()).await {
                Ok(Ok(Some(bytes))) => parser.push(&bytes),
                // Ended, broken, or silent for too long.
                Ok(Ok(None) | Err(_)) | Err(_) => {
                    self.open = None;
                    self.lost = Some(Instant::now());
                    self.backoff = MIN_BACKOFF;
                    return Ok(Next::Lost);
                }
            }
        }
    }

    async fn connect(&mut self) -> anyhow::Result<Option<Next>> {
        if self.lost.is_some() {
            tokio::time::sleep(self.backoff).await;
            self.backoff = (self.backoff * 2).min(MAX_BACKOFF);
            self.client.relocate();
        }
        let path = ["runs", &self.run, "stream"];
        let call = Call::get(&path).header("last-event-id", self.last.as_deref())?;
        let request = self.client.request(call)?;
        let answer = match tokio::time::timeout(SILENCE, self.client.send(request)).await {
            Ok(answer) => answer,
            Err(_) => Err(Refusal::unreachable("the server does not answer").into()),
        };
        match answer {
            Ok(response) if response.status() == StatusCode::NO_CONTENT => Ok(Some(Next::Over)),
            Ok(response) => {
                self.open = Some((response, Parser::default()));
                Ok(self.lost.take().map(|_| Next::Back))
            }
            // A missing or forbidden run stays missing or forbidden, so only transient errors are retried.
            Err(error) => match self.lost {
                Some(since) if since.elapsed() < GIVE_UP_AFTER && Refusal::is_transient(&error) => Ok(None),
                _ => Err(error),
            },
        }
    }
}

/// Parses `text/event-stream`, as far as this server uses it.
#[derive(Default)]
pub struct Parser {
    bytes: Vec<u8>,
    frame: Frame,
}

impl Parser {
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub fn next(&mut self) -> Option<Frame> {
        while let Some(end) = self.bytes.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.bytes.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end_matches(['\r', '\n']);
            if line.is_empty() {
                let frame = std::mem::take(&mut self.frame);
                if !frame.data.is_empty() {
                    return Some(frame);
                }
                continue;
            }
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value).to_string();
            match field {
                "id" => self.frame.id = value,
                "event" => self.frame.event = value,
                "data" => self.frame.data = value,
                // Comments keep the connection alive.
                _ => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_parsed_however_the_bytes_are_split() {
        let text =
            "id: 1.0\nevent: created\ndata: {\"a\":\"é\"}\n\n: quiet\n\nid: 2.0\r\nevent: end\r\ndata: {}\r\n\r\nid: 3";
        let frame = |id: &str, event: &str, data: &str| Frame { id: id.into(), event: event.into(), data: data.into() };
        let expected = [frame("1.0", "created", "{\"a\":\"é\"}"), frame("2.0", "end", "{}")];
        for size in 1..text.len() {
            let (mut parser, mut found) = (Parser::default(), Vec::new());
            for piece in text.as_bytes().chunks(size) {
                parser.push(piece);
                found.extend(std::iter::from_fn(|| parser.next()));
            }
            assert_eq!(found, expected, "in pieces of {size}");
        }
    }
}
