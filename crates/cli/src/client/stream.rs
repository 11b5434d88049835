//! Server-sent events of one run, across lost connections: whatever was seen is not asked for again.

use super::{Call, Client, Refusal};
use reqwest::{Response, StatusCode};
use std::time::{Duration, Instant};

/// The server says every 15 seconds that it is there.
const SILENCE: Duration = Duration::from_secs(45);
/// Between two attempts to connect again, growing.
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(2);
/// How long a lost server is waited for.
const PATIENCE: Duration = Duration::from_secs(300);

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
    /// Since when there is no connection.
    lost: Option<Instant>,
    pause: Duration,
}

/// What comes next.
pub enum Next {
    Frame(Frame),
    /// The connection is gone; for the one who watches.
    Lost,
    Back,
    /// The run has ended, and all of it was seen.
    Over,
}

impl<'a> Stream<'a> {
    /// From after this version of the run on.
    pub fn new(client: &'a Client, run: &str, after: Option<i64>) -> Stream<'a> {
        let last = after.map(|version| version.to_string());
        Stream { client, run: run.to_string(), last, open: None, lost: None, pause: SHORTEST }
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
                // At its end, broken, or silent for too long.
                Ok(Ok(None) | Err(_)) | Err(_) => {
                    self.open = None;
                    self.lost = Some(Instant::now());
                    self.pause = SHORTEST;
                    return Ok(Next::Lost);
                }
            }
        }
    }

    async fn connect(&mut self) -> anyhow::Result<Option<Next>> {
        if self.lost.is_some() {
            tokio::time::sleep(self.pause).await;
            self.pause = (self.pause * 2).min(LONGEST);
            self.client.relocate();
        }
        let path = ["runs", &self.run, "stream"];
        let call = Call::get(&path).header("last-event-id", self.last.as_deref())?;
        let request = self.client.request(call)?;
        let answer = match tokio::time::timeout(SILENCE, self.client.send(request)).await {
            Ok(answer) => answer,
            Err(_) => Err(Refusal::silence("the server does not answer").into()),
        };
        match answer {
            Ok(response) if response.status() == StatusCode::NO_CONTENT => Ok(Some(Next::Over)),
            Ok(response) => {
                self.open = Some((response, Parser::default()));
                Ok(self.lost.take().map(|_| Next::Back))
            }
            // What may not be looked at, or is not there, will not be next time either.
            Err(error) => match self.lost {
                Some(since) if since.elapsed() < PATIENCE && Refusal::is_passing(&error) => Ok(None),
                _ => Err(error),
            },
        }
    }
}

/// `text/event-stream`, as far as this server uses it.
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
    fn frames_are_read_however_they_are_cut() {
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
