//! One event stream: a bounded buffer to its client, and the caller's right to read it.
//!
//! The task that produces the text waits for the client only for a limited time. A dropped client has the id of its
//! last event and can resume from there.

use super::follow::Batch;
use super::hub::Watch;
use crate::app::App;
use crate::auth::Auth;
use crate::error::Problem;
use axum::body::Body;
use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Request, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::StreamExt;
use metrics::{counter, histogram};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;
use stepwell_engine::Caller;
use stepwell_engine::commands::Right;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use tokio::time::{self, sleep_until, timeout};
use tokio_stream::wrappers::ReceiverStream;

/// Chunks buffered for the client. Each is at most one log row.
const WAITING: usize = 16;

/// The credentials of a request, kept so that they can be checked again.
#[derive(Clone)]
pub struct Credentials {
    pub headers: HeaderMap,
    peer: Option<ConnectInfo<SocketAddr>>,
}

impl FromRequestParts<App> for Credentials {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Credentials, Infallible> {
        Ok(Credentials { headers: parts.headers.clone(), peer: parts.extensions.get().copied() })
    }
}

impl Credentials {
    /// Authenticates again, and requires the right to read runs.
    pub async fn again(&self, app: &App) -> Result<Caller, Problem> {
        let (mut parts, ()) = Request::new(()).into_parts();
        parts.headers.clone_from(&self.headers);
        if let Some(peer) = self.peer {
            parts.extensions.insert(peer);
        }
        let Auth(caller) = Auth::from_request_parts(&mut parts, app).await?;
        caller.check(Right::Read)?;
        Ok(caller)
    }

    /// Whether the caller has lost access. Temporary errors are checked again later.
    pub async fn is_barred(&self, app: &App) -> bool {
        let problem = self.again(app).await.err();
        problem.is_some_and(|problem| matches!(problem.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN))
    }
}

/// Why a stream ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Over {
    /// Everything was sent.
    Done,
    /// The client disconnected.
    Left,
    /// The client accepted no data for too long.
    Slow,
    /// The other side of a socket was silent for too long.
    Silent,
    /// The caller may no longer read runs.
    Barred,
    /// Another organisation needed its place.
    Reclaimed,
    /// The server stops.
    Stopped,
    /// The log could not be read.
    Broken,
}

impl Over {
    /// Counts streams that the server ended.
    pub fn count(self) {
        let why = match self {
            Over::Done | Over::Left | Over::Stopped => return,
            Over::Slow => "slow",
            Over::Silent => "silent",
            Over::Barred => "barred",
            Over::Reclaimed => "reclaimed",
            Over::Broken => "broken",
        };
        counter!("stepwell_live_dropped_total", "why" => why).increment(1);
    }
}

impl From<stepwell_engine::Error> for Over {
    fn from(error: stepwell_engine::Error) -> Over {
        tracing::warn!(%error, "cannot read the log for a live stream");
        Over::Broken
    }
}

pub fn measure(since: Option<Instant>) {
    if let Some(since) = since {
        histogram!("stepwell_live_delay_seconds").record(since.elapsed().as_secs_f64());
    }
}

struct Piece {
    text: Bytes,
    since: Option<Instant>,
}

/// The parts common to all event streams.
pub struct Stream {
    pub app: App,
    pub watch: Watch,
    credentials: Credentials,
    out: mpsc::Sender<Piece>,
    /// When to check the caller's rights again.
    recheck: time::Instant,
    /// When to send the next keep-alive.
    keep_alive: time::Instant,
}

/// The next thing to send.
pub enum Next {
    Batch(Arc<Batch>),
    /// Some batches were missed: read them from the store.
    Missed,
    /// Nothing happened for a while: send a keep-alive.
    Quiet,
}

impl Stream {
    /// Returns the stream and the response that carries it.
    pub fn new(app: App, watch: Watch, credentials: Credentials) -> (Stream, Response) {
        let (out, pieces) = mpsc::channel(WAITING);
        let pieces = ReceiverStream::new(pieces).map(|piece: Piece| {
            measure(piece.since);
            Ok::<_, Infallible>(piece.text)
        });
        let mut response = Response::new(Body::from_stream(pieces));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        // Otherwise some proxies buffer the response.
        headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
        let (now, settings) = (time::Instant::now(), watch.hub.settings);
        let (recheck, keep_alive) = (now + settings.recheck, now + settings.keep_alive);
        (Stream { app, watch, credentials, out, recheck, keep_alive }, response)
    }

    pub async fn rows(&mut self, text: Bytes, since: Option<Instant>) -> Result<(), Over> {
        if text.is_empty() { Ok(()) } else { self.write(text, since).await }
    }

    pub async fn write(&mut self, text: impl Into<Bytes>, since: Option<Instant>) -> Result<(), Over> {
        self.tend().await?;
        let settings = self.watch.hub.settings;
        self.keep_alive = time::Instant::now() + settings.keep_alive;
        let piece = Piece { text: text.into(), since };
        tokio::select! {
            biased;
            sent = timeout(settings.patience, self.out.send(piece)) => match sent {
                Ok(Ok(())) => Ok(()),
                Ok(Err(_)) => Err(Over::Left),
                Err(_) => Err(Over::Slow),
            },
            over = self.watch.end() => Err(over),
        }
    }

    /// Checks whether the stream must end for a reason outside the log.
    pub async fn tend(&mut self) -> Result<(), Over> {
        if self.out.is_closed() {
            return Err(Over::Left);
        }
        self.watch.is_over()?;
        let now = time::Instant::now();
        if now >= self.recheck {
            self.recheck = now + self.watch.hub.settings.recheck;
            if self.credentials.is_barred(&self.app).await {
                return Err(Over::Barred);
            }
        }
        Ok(())
    }

    /// Waits for something to send.
    pub async fn next(&mut self) -> Result<Next, Over> {
        let end = self.watch.end();
        tokio::pin!(end);
        loop {
            self.tend().await?;
            tokio::select! {
                biased;
                over = &mut end => return Err(over),
                () = self.out.closed() => return Err(Over::Left),
                () = sleep_until(self.recheck) => {}
                batch = self.watch.batches.recv() => return match batch {
                    Ok(batch) => Ok(Next::Batch(batch)),
                    Err(RecvError::Lagged(_)) => Ok(Next::Missed),
                    Err(RecvError::Closed) => Err(Over::Stopped),
                },
                () = sleep_until(self.keep_alive) => return Ok(Next::Quiet),
            }
        }
    }
}
