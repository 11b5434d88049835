//! The events of one run. After a lost connection the stream resumes behind the last event it received.

use crate::call::pause;
use crate::{Call, Client, Error, Event, Frame, Parser};
use reqwest::{Response, StatusCode};
use std::time::{Duration, Instant};

/// The server sends a keep-alive every 15 seconds.
const SILENCE: Duration = Duration::from_secs(45);
/// How long to wait for a lost server.
const PATIENCE: Duration = Duration::from_secs(60);

/// The typed events of a run; see [`Client::watch`].
pub struct Events<'a> {
    stream: Stream<'a>,
    is_over: bool,
}

impl<'a> Events<'a> {
    pub(crate) fn new(client: &'a Client, run: &str, after: Option<i64>) -> Events<'a> {
        // The run may have been started by a server that is just gone.
        let stream = Stream { lost: Some(Instant::now()), ..Stream::new(client, run, after) };
        Events { stream, is_over: false }
    }

    /// The next event, as soon as there is one; `None` after `end`.
    pub async fn next(&mut self) -> Result<Option<Event>, Error> {
        while !self.is_over {
            match self.stream.next().await? {
                Next::Frame(frame) => {
                    let mut event: Event = serde_json::from_str(&frame.data)
                        .map_err(|error| Error::Unexpected(format!("cannot parse an event: {error}")))?;
                    if event.kind.is_empty() {
                        event.kind.clone_from(&frame.event);
                    }
                    self.is_over = frame.event == "end";
                    return Ok(Some(event));
                }
                Next::Over => self.is_over = true,
                Next::Lost | Next::Back => {}
            }
        }
        Ok(None)
    }
}

/// The events of a run as the server sends them, with news of the connection: for programs that show them.
pub struct Stream<'a> {
    client: &'a Client,
    run: String,
    /// The id of the last event.
    last: Option<String>,
    open: Option<(Response, Parser)>,
    /// When the connection was lost.
    lost: Option<Instant>,
    attempt: u32,
    patience: Duration,
}

/// The next item of a [`Stream`].
pub enum Next {
    /// An event.
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
        Stream { client, run: run.to_string(), last, open: None, lost: None, attempt: 0, patience: PATIENCE }
    }

    /// Waits this long for a lost server, in place of a minute.
    pub fn patience(self, patience: Duration) -> Stream<'a> {
        Stream { patience, ..self }
    }

    /// The next event or change of the connection.
    pub async fn next(&mut self) -> Result<Next, Error> {
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
                    self.attempt = 1;
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    self.client.relocate();
                    return Ok(Next::Lost);
                }
            }
        }
    }

    async fn connect(&mut self) -> Result<Option<Next>, Error> {
        let path = ["runs", self.run.as_str(), "stream"];
        let call = Call::get(&path).header("last-event-id", self.last.as_deref())?;
        let request = self.client.prepare(&call)?;
        let answer = match tokio::time::timeout(SILENCE, self.client.send(request)).await {
            Ok(answer) => answer,
            Err(_) => {
                let (url, cause) = (self.client.url().to_string(), "it takes too long".to_string());
                Err(Error::ConnectionFailed { url, cause, sent: true })
            }
        };
        match answer {
            Ok(response) if response.status() == StatusCode::NO_CONTENT => Ok(Some(Next::Over)),
            Ok(response) => {
                self.open = Some((response, Parser::default()));
                Ok(self.lost.take().map(|_| Next::Back))
            }
            // A missing or forbidden run stays missing or forbidden, so only errors that may pass are retried.
            Err(error) => match self.lost {
                Some(since) if since.elapsed() < self.patience && error.may_recover() => {
                    tokio::time::sleep(pause(self.attempt, &error)).await;
                    self.attempt += 1;
                    self.client.relocate();
                    Ok(None)
                }
                _ => Err(error),
            },
        }
    }
}
