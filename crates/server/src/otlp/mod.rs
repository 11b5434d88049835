//! Traces, exported to a collector by OTLP over HTTP: a run is a trace, and an attempt of a step is a span in it.
//!
//! | part | file |
//! | --- | --- |
//! | facts of the log to spans | `spans.rs` |
//! | spans to a request, and handling of its response | `send.rs` |
//!
//! The exporter follows the log and holds at most one page of it. While the collector is down it reads no further: the
//! log waits on disk, and the engine never waits for the exporter. It starts at the end of the log, so events from
//! while the process was down, and events not yet sent when it stopped, have no spans.

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

/// Log rows read at a time.
const PAGE: u32 = 256;
/// Spans per request.
const BATCH: usize = 512;
/// How long sending the remaining spans may take when the server stops.
const FLUSH: Duration = Duration::from_secs(2);

/// Intervals and timeouts of the exporter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Intervals {
    /// Delay after a commit, so that later spans share the request.
    pub linger: Duration,
    /// How often the log is polled without a hint.
    pub poll: Duration,
    /// Backoff after a failed request; doubles each time.
    pub first_pause: Duration,
    pub longest_pause: Duration,
}

impl Default for Intervals {
    fn default() -> Intervals {
        Intervals {
            linger: Duration::from_secs(1),
            poll: Duration::from_secs(10),
            first_pause: Duration::from_millis(500),
            longest_pause: Duration::from_secs(30),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot follow the log: {0}")]
    Log(#[from] stepwell_engine::Error),
    #[error("cannot create the client for the collector: {0}")]
    Client(#[from] reqwest::Error),
}

pub struct Exporter {
    log: LogReader,
    hints: broadcast::Receiver<Activity>,
    progress: Progress,
    collector: Collector,
    /// Not sent yet: at most the spans of one page of the log.
    pending: VecDeque<Span>,
    sender: Sender,
    intervals: Intervals,
}

impl Exporter {
    /// Everything committed from now on is exported once [`Exporter::run`] runs.
    pub async fn new(engine: &Engine, config: &Otlp, intervals: Intervals) -> Result<Exporter, Error> {
        let hints = engine.activity();
        let log = engine.log();
        let progress = log.progress().await?;
        let sender = Sender::new(config)?;
        let collector = Collector::new(log.clone());
        Ok(Exporter { log, hints, progress, collector, pending: VecDeque::new(), sender, intervals })
    }

    /// Exports spans until `stop`, then the remaining ones within a time limit.
    pub async fn run(&mut self, stop: impl Future<Output = ()>) {
        tokio::select! {
            () = self.follow() => {}
            () = stop => {}
        }
        if timeout(FLUSH, self.flush()).await.is_err() {
            tracing::warn!("the last spans were not sent in time");
        }
    }

    async fn follow(&mut self) {
        let mut pause = self.intervals.first_pause;
        loop {
            while !self.pending.is_empty() {
                match self.send().await {
                    Sent::Done => pause = self.intervals.first_pause,
                    Sent::Later(asked) => {
                        sleep(asked.unwrap_or(pause).min(self.intervals.longest_pause)).await;
                        pause = (pause * 2).min(self.intervals.longest_pause);
                    }
                }
            }
            if !self.gather().await {
                self.something().await;
                sleep(self.intervals.linger).await;
            }
        }
    }

    async fn flush(&mut self) {
        loop {
            while !self.pending.is_empty() {
                if let Sent::Later(_) = self.send().await {
                    tracing::warn!("the last spans were not sent: the collector does not accept them");
                    return;
                }
            }
            if !self.gather().await {
                return;
            }
        }
    }

    /// Waits until something was or may have been committed.
    async fn something(&mut self) {
        let hint = async {
            match self.hints.recv().await {
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                // The engine is gone; only `stop` can follow.
                Err(RecvError::Closed) => std::future::pending().await,
            }
        };
        // Without a hint nothing is missed, it only takes longer.
        let _ = timeout(self.intervals.poll, hint).await;
    }

    /// Reads the next page of the log. Returns false if there was nothing or reading failed.
    async fn gather(&mut self) -> bool {
        let rows = match self.log.feed(&self.progress, PAGE).await {
            Ok(rows) => rows,
            Err(error) => {
                tracing::warn!(%error, "cannot read the log for traces");
                return false;
            }
        };
        if rows.is_empty() {
            return false;
        }
        match self.collector.collect(&rows).await {
            Ok(spans) => {
                // Updated together, so that a cancellation in between neither loses nor repeats spans.
                self.pending.extend(spans);
                rows.iter().for_each(|row| self.progress.pass(row.log.position));
                true
            }
            Err(error) => {
                tracing::warn!(%error, "cannot read runs for traces");
                false
            }
        }
    }

    /// Sends some of the pending spans. Spans that were accepted or rejected for good are removed.
    async fn send(&mut self) -> Sent {
        let count = self.pending.len().min(BATCH);
        let sent = self.sender.send(self.pending.range(..count)).await;
        if sent == Sent::Done {
            self.pending.drain(..count);
        }
        sent
    }
}
