//! Traces, sent to a collector by OTLP over HTTP: a run is a trace, an attempt of a step is a span in it.
//!
//! | part | file |
//! | --- | --- |
//! | facts of the log to spans | `spans.rs` |
//! | spans to a request, and what its answer means | `send.rs` |
//!
//! The exporter follows the log and holds one page of it at the most. While the collector is down it reads no further: the
//! log waits on disk, and the engine never waits for it. It begins at the end of the log, so what happened while the
//! process was not there, or what had not been sent when it ended, has no spans.

mod send;
mod spans;

use crate::config::Otlp;
use send::{Sender, Sent};
use spans::{Collector, Span};
use std::collections::VecDeque;
use std::time::Duration;
use stepwell_engine::{Activity, Engine, LogReader};
use stepwell_store::Progress;
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::time::{sleep, timeout};

/// Log rows read in one go.
const PAGE: u32 = 256;
/// Spans in one request.
const BATCH: usize = 512;
/// How long sending what is left may take when the server stops.
const FLUSH: Duration = Duration::from_secs(2);

/// How patient the exporter is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pace {
    /// After something happened, so that what follows shares its request.
    pub linger: Duration,
    /// The log is looked at this often even if nobody says that something happened.
    pub poll: Duration,
    /// After a request that did not work; then twice as long, and so on.
    pub first_pause: Duration,
    pub longest_pause: Duration,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            linger: Duration::from_secs(1),
            poll: Duration::from_secs(10),
            first_pause: Duration::from_millis(500),
            longest_pause: Duration::from_secs(30),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the log cannot be followed: {0}")]
    Log(#[from] stepwell_engine::Error),
    #[error("no client for the collector: {0}")]
    Client(#[from] reqwest::Error),
}

pub struct Exporter {
    log: LogReader,
    hints: broadcast::Receiver<Activity>,
    progress: Progress,
    collector: Collector,
    /// Not sent yet: no more than one page of the log brings.
    pending: VecDeque<Span>,
    sender: Sender,
    pace: Pace,
}

impl Exporter {
    /// Everything committed from now on will be sent, once [`Exporter::run`] runs.
    pub async fn new(engine: &Engine, config: &Otlp, pace: Pace) -> Result<Exporter, Error> {
        let hints = engine.activity();
        let log = engine.log();
        let progress = log.progress().await?;
        let sender = Sender::new(config)?;
        let collector = Collector::new(log.clone());
        Ok(Exporter { log, hints, progress, collector, pending: VecDeque::new(), sender, pace })
    }

    /// Sends spans until `stop`, then what is left, if that does not take long.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        tokio::select! {
            () = self.follow() => {}
            () = stop => {}
        }
        if timeout(FLUSH, self.flush()).await.is_err() {
            tracing::warn!("the last spans could not be sent in time");
        }
    }

    async fn follow(&mut self) {
        let mut pause = self.pace.first_pause;
        loop {
            while !self.pending.is_empty() {
                match self.send().await {
                    Sent::Done => pause = self.pace.first_pause,
                    Sent::Later(asked) => {
                        sleep(asked.unwrap_or(pause).min(self.pace.longest_pause)).await;
                        pause = (pause * 2).min(self.pace.longest_pause);
                    }
                }
            }
            if !self.gather().await {
                self.something().await;
                sleep(self.pace.linger).await;
            }
        }
    }

    async fn flush(&mut self) {
        loop {
            while !self.pending.is_empty() {
                if let Sent::Later(_) = self.send().await {
                    tracing::warn!("the last spans were not sent: the collector does not take them");
                    return;
                }
            }
            if !self.gather().await {
                return;
            }
        }
    }

    /// Until something was committed, or may have been.
    async fn something(&mut self) {
        let hint = async {
            match self.hints.recv().await {
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                // The engine is gone; only `stop` can follow.
                Err(RecvError::Closed) => std::future::pending().await,
            }
        };
        // Nothing is missed without a hint, it only takes longer.
        let _ = timeout(self.pace.poll, hint).await;
    }

    /// Reads on in the log. False if there was nothing, or nothing could be read.
    async fn gather(&mut self) -> bool {
        let rows = match self.log.feed(&self.progress, PAGE).await {
            Ok(rows) => rows,
            Err(error) => {
                tracing::warn!(%error, "the log cannot be read for traces");
                return false;
            }
        };
        if rows.is_empty() {
            return false;
        }
        match self.collector.collect(&rows).await {
            Ok(spans) => {
                // Together, so that being stopped in between neither loses nor repeats anything.
                self.pending.extend(spans);
                rows.iter().for_each(|row| self.progress.pass(row.log.position));
                true
            }
            Err(error) => {
                tracing::warn!(%error, "runs cannot be read for traces");
                false
            }
        }
    }

    /// Sends some of what is pending. What was taken, or never will be, is pending no more.
    async fn send(&mut self) -> Sent {
        let count = self.pending.len().min(BATCH);
        let sent = self.sender.send(self.pending.range(..count)).await;
        if sent == Sent::Done {
            self.pending.drain(..count);
        }
        sent
    }
}
