//! The server that messages go to: one that runs already, or one that this process starts.
//!
//! Several programs may each start a `stepwell mcp` on one data directory. The first serves it, the others find it there;
//! when it ends, the next that notices takes over.

use super::super::serve::serve;
use crate::client::{At, Client};
use crate::home::{configured, variable};
use anyhow::{Context, bail};
use std::sync::Arc;
use std::time::Duration;
use stepwell_core::time::Millis;
use stepwell_server::config::Config;
use tokio::sync::{Mutex, oneshot};
use tokio::task::JoinHandle;

/// How long a server is looked for that is not there, or not yet.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(200);
/// What runs when the client goes away has so long to come to its end; the rest goes on at the next start.
const DRAIN: Millis = Millis(2_000);

pub struct Host {
    at: At,
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
    pub fn new(at: At) -> Host {
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
                Err(error) if begun.elapsed() > PATIENCE || !is_busy(&error) => return Err(error),
                // Another process has the directory, and is about to serve it or to leave.
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    /// It did not answer: it is looked for again.
    pub async fn lost(&self, client: &Arc<Client>) {
        let mut state = self.state.lock().await;
        if state.client.as_ref().is_some_and(|known| Arc::ptr_eq(known, client)) {
            state.client = None;
        }
    }

    async fn reach(&self, state: &mut State) -> anyhow::Result<Client> {
        if let Some(found) = self.at.server_of_agents().await? {
            return Ok(found);
        }
        if self.at.is_named() {
            bail!("the server that was named does not answer");
        }
        match &state.own {
            Some(own) if !own.ended.is_finished() => {}
            _ => state.own = Some(self.start().await?),
        }
        self.at.server_of_agents().await?.context("the server that was just started does not answer")
    }

    /// Starts a server on the data directory, on a port of this machine only.
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
                // Whoever waits for it is in this function.
                let _ = ready.send(());
            };
            serve(&data, config, started, stop).await
        });
        match started.await {
            Ok(()) => Ok(Own { stop, ended }),
            Err(_) => Err(ended.await?.err().context("the server ended as soon as it had started")?),
        }
    }

    /// Lets a server of this process end in order.
    pub async fn end(&self) {
        if let Some(Own { stop, ended }) = self.state.lock().await.own.take() {
            // One that has ended already hears nothing.
            let _ = stop.send(());
            if let Ok(Err(error)) = ended.await {
                tracing::warn!(%error, "the server did not end in order");
            }
        }
    }
}

/// Somebody else has the directory just now.
fn is_busy(error: &anyhow::Error) -> bool {
    let said = error.to_string();
    said.contains("has this directory open") || said.contains("does not answer")
}
