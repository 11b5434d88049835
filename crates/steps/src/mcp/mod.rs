//! MCP servers whose tools steps can call: Stepwell as a client.
//!
//! Each server has a supervisor (`supervise`). It connects (`connect`, with `child` and `probe` or `http` and `client`,
//! and `secrets`), lists the tools (`list`), and reconnects when the connection ends. A call (`call`) looks up its tool
//! here, by organisation and name, and uses the current connection. `result` reads what a tool returns, `deferred`
//! handles questions and tasks, `progress` collects notifications.
//!
//! Not here: authorisation (the engine's grants and policies) and accepting tools (the engine's commands).

mod call;
mod child;
mod client;
mod connect;
mod deferred;
mod http;
mod list;
mod probe;
mod progress;
mod result;
mod secrets;
mod stderr;
mod supervise;
mod upstream;

use crate::egress::Egress;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use stepwell_engine::upstream::{Pins, Server, Servers, Standing};
use stepwell_engine::{Clock, SealedStore};
use stepwell_store::{OrgId, Supervisor};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use upstream::{KnownTool, Upstream};

/// Separates a server's name from its tool's name.
const SEPARATOR: &str = "__";

#[derive(Clone, PartialEq, Debug)]
pub struct ServerConfig {
    pub name: String,
    /// The organisation it belongs to; the first one if `None`.
    pub organisation: Option<String>,
    pub transport: Transport,
    /// Whether steps use its tools' own names, without the prefix `server__`.
    pub plain_names: bool,
    /// Limit for connecting and listing the tools.
    pub connect_timeout: Duration,
}

/// How to reach a server. `{{secrets.NAME}}` may occur in arguments, values of variables and headers, and the URL.
#[derive(Clone, PartialEq, Debug)]
pub enum Transport {
    Stdio { command: String, args: Vec<String>, env: BTreeMap<String, String>, cwd: Option<PathBuf> },
    Http { url: String, headers: BTreeMap<String, String> },
}

impl Transport {
    fn name(&self) -> &'static str {
        match self {
            Transport::Stdio { .. } => "stdio",
            Transport::Http { .. } => "http",
        }
    }
}

/// What supervisors share.
struct Context {
    safe: SealedStore,
    pins: Pins,
    egress: Egress,
    clock: Arc<dyn Clock>,
}

/// The configured servers with their supervisors. Dropping it ends them all; [`Upstreams::stop`] also waits for their
/// end.
pub struct Upstreams {
    all: Vec<Arc<Upstream>>,
    context: Arc<Context>,
    stop: CancellationToken,
    supervisors: Mutex<Vec<JoinHandle<()>>>,
    /// Restarts the supervisors if they panic.
    pub supervisor: Supervisor,
}

/// The meaning of a tool name in an organisation.
pub(crate) enum Lookup {
    Tool(Arc<Upstream>, Arc<KnownTool>),
    /// The server is unavailable and may have the tool.
    Unavailable(Arc<Upstream>),
    /// The server no longer offers the tool.
    Removed(Arc<Upstream>),
}

impl Upstreams {
    /// Starts the supervisors. Must be called within a runtime.
    pub fn start(
        servers: Vec<ServerConfig>,
        safe: SealedStore,
        pins: Pins,
        egress: Egress,
        clock: Arc<dyn Clock>,
    ) -> Arc<Upstreams> {
        let (context, stop) = (Arc::new(Context { safe, pins, egress, clock }), CancellationToken::new());
        let all: Vec<Arc<Upstream>> = servers.into_iter().map(|config| Arc::new(Upstream::new(config))).collect();
        let supervisor = Supervisor::default();
        let begin = |upstream: &Arc<Upstream>| {
            let (upstream, context, stop) = (upstream.clone(), context.clone(), stop.clone());
            let name = format!("MCP server {}", upstream.config.name);
            supervisor.spawn(name, move || supervise::supervise(upstream.clone(), context.clone(), stop.clone()))
        };
        let supervisors = Mutex::new(all.iter().map(begin).collect());
        Arc::new(Upstreams { all, context, stop, supervisors, supervisor })
    }

    /// Closes all connections and waits until all child processes have ended.
    pub async fn stop(&self) {
        self.stop.cancel();
        let supervisors = std::mem::take(&mut *self.supervisors.lock().unwrap_or_else(PoisonError::into_inner));
        for supervisor in supervisors {
            let _ = supervisor.await;
        }
    }

    /// `None` if no server can have a tool of that name.
    pub(crate) fn find(&self, org: OrgId, name: &str) -> Option<Lookup> {
        let mut other = None;
        for upstream in &self.all {
            match upstream.find(org, name) {
                Some(found @ Lookup::Tool(..)) => return Some(found),
                Some(found) => other = other.or(Some(found)),
                None => {}
            }
        }
        other
    }

    /// Whether any organisation has a tool of that name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.all.iter().any(|upstream| upstream.known(name).is_some())
    }

    /// Whether all tools of that name are accepted and declare themselves idempotent.
    pub(crate) fn is_idempotent(&self, name: &str) -> bool {
        self.all.iter().all(|upstream| {
            let known = upstream.known(name);
            known.is_none_or(|known| known.is_idempotent() && upstream.standing(&known.offered) == Standing::Accepted)
        })
    }

    pub(crate) fn names(&self, org: OrgId) -> Vec<String> {
        self.all.iter().flat_map(|upstream| upstream.names(org)).collect()
    }
}

impl Servers for Upstreams {
    fn servers(&self) -> Vec<Server> {
        self.all.iter().map(|upstream| upstream.view()).collect()
    }
}

impl Drop for Upstreams {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
