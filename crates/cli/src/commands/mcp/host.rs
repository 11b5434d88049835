//! The server that messages go to: a running one, or one that this process starts.
//!
//! Several clients may each start a `stepwell mcp` on one data directory. The first process serves it and the others
//! use that server; when it ends, the first to notice takes over.

use super::super::serve::serve;
use crate::client::{Client, Target};
use crate::home::{configured, variable};
use anyhow::{Context, bail};
use std::sync::Arc;
use std::time::Duration;
use stepwell_core::time::Millis;
use stepwell_server::config::Config;
use tokio::sync::{Mutex, oneshot};
use tokio::task::JoinHandle;

/// How long to look for a server that is not available yet.
const TIMEOUT: Duration = Duration::from_secs(30);
const RETRY_DELAY: Duration = Duration::from_millis(200);
/// How long running steps may take to finish after the client disconnects; the rest continue at the next start.
const DRAIN: Millis = Millis(2_000);

pub struct Host {
    at: Target,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    client: Option<Arc<Client>>,
    own: Option<Own>,
}

/// A server in this process.
struct Own {
    stop: oneshot::Sender<()>,
    ended: JoinHandle<anyhow::Result<()>>,
}

impl Host {
    pub fn new(at: Target) -> Host {
        Host { at, state: Mutex::default() }
    }

    /// The server, found or started.
    pub async fn client(&self) -> anyhow::Result<Arc<Client>> {
        let mut state = self.state.lock().await;
        if let Some(client) = &state.client {
            return Ok(client.clone());
        }
        let begun = tokio::time::Instant::now();
        loop {
            match self.reach(&mut state).await {
                Ok(client) => return Ok(state.client.insert(Arc::new(client)).clone()),
                Err(error) if begun.elapsed() > TIMEOUT || !is_busy(&error) => return Err(error),
                // Another process has the directory open and is about to serve it or to exit.
                Err(_) => tokio::time::sleep(RETRY_DELAY).await,
            }
        }
    }

    /// Forgets a server that did not answer, so that the next message looks for it again.
    pub async fn lost(&self, client: &Arc<Client>) {
        let mut state = self.state.lock().await;
        if state.client.as_ref().is_some_and(|known| Arc::ptr_eq(known, client)) {
            state.client = None;
        }
    }

    async fn reach(&self, state: &mut State) -> anyhow::Result<Client> {
        if let Some(found) = self.at.server_for_agents().await? {
            return Ok(found);
        }
        if self.at.is_named() {
            bail!("the named server does not answer");
        }
        match &state.own {
            Some(own) if !own.ended.is_finished() => {}
            _ => state.own = Some(self.start().await?),
        }
        self.at.server_for_agents().await?.context("the server just started does not answer")
    }

    /// Starts a server on the data directory, on a loopback port.
    async fn start(&self) -> anyhow::Result<Own> {
        let data = self.at.data.clone();
        let lookup = |name: &str| match name {
            "STEPWELL_LISTEN" => Some("127.0.0.1:0".to_string()),
            "STEPWELL_DATABASE" => data.database().or_else(|| variable(name)),
            _ => variable(name),
        };
        let config = Config { drain: DRAIN, ..configured(None, &lookup)? };
        let data = data.or(config.data.clone());
        let (stop, stopped) = oneshot::channel();
        let (ready, started) = oneshot::channel();
        let ended = tokio::spawn(async move {
            let stop = async { drop(stopped.await) };
            let started = move |_: &_, _: &_| {
                // The receiver is in this function.
                let _ = ready.send(());
            };
            serve(&data, config, started, stop).await
        });
        match started.await {
            Ok(()) => Ok(Own { stop, ended }),
            Err(_) => Err(ended.await?.err().context("the server ended during its start")?),
        }
    }

    /// Stops the server of this process gracefully.
    pub async fn end(&self) {
        if let Some(Own { stop, ended }) = self.state.lock().await.own.take() {
            // The server may already have ended.
            let _ = stop.send(());
            if let Ok(Err(error)) = ended.await {
                tracing::warn!(%error, "the server did not shut down cleanly");
            }
        }
    }
}

/// Whether another process has the directory open at the moment.
fn is_busy(error: &anyhow::Error) -> bool {
    let text = error.to_string();
    text.contains("has this directory open") || text.contains("does not answer")
}
