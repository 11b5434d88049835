//! MCP servers whose tools steps can call: Stepwell as a client.
//!
//! Each server has a supervisor (`supervise`). It connects (`connect`, with `child` and `probe` or `http` and `client`,
//! and `secrets`), lists the tools (`list`), and reconnects when the connection ends. A call (`call`) looks up its tool
//! here, by organisation and name, and uses the current connection (`absent`: or waits for it). `result` reads what a
//! tool returns, `deferred` handles questions and tasks, `abandon` tells servers that they are no longer awaited,
//! `progress` collects notifications.
//!
//! Not here: authorisation (the engine's grants and policies) and accepting tools (the engine's commands).

mod abandon;
mod absent;
mod call;
mod child;
mod client;
mod connect;
mod deferred;
mod guard;
mod http;
mod keeper;
mod limits;
mod list;
mod message;
mod pipes;
mod probe;
mod progress;
mod result;
mod secrets;
mod stderr;
mod supervise;
mod upstream;

pub use keeper::{KEEPER, keep};

use crate::egress::Egress;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use stepwell_engine::upstream::{Held, Pins, Server, Servers, Standing};
use stepwell_engine::{Clock, SealedStore};
use stepwell_store::tls::Authorities;
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
    /// Trusted besides the system's, for a server behind a URL.
    pub authorities: Authorities,
    /// The program and the arguments that start a keeper for a process; empty for none. Without one, processes that
    /// leave the process group of their server outlive it.
    pub keeper: Vec<OsString>,
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
    /// All servers, in the order of the configuration.
    all: Vec<Arc<Upstream>>,
}

impl Context {
    /// Why a server cannot have a tool of that name, if another one comes first.
    fn clash(&self, upstream: &Upstream, org: OrgId, name: &str) -> Option<String> {
        let earlier = self.all.iter().take_while(|other| other.name() != upstream.name());
        let owner = { earlier }.find(|other| other.owns(org, name))?;
        Some(format!("the server {} has a tool of the same name and comes first", owner.name()))
    }
}

/// The configured servers with their supervisors. Dropping it ends them all; [`Upstreams::stop`] also waits for their
/// end.
pub struct Upstreams {
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
    /// The same, but only because its tools were never listed: any name may be one.
    Unlisted(Arc<Upstream>),
    /// The server no longer offers the tool.
    Removed(Arc<Upstream>),
    /// The server offers a tool that cannot be called, for this reason.
    Held(Arc<Upstream>, String),
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
        let all: Vec<Arc<Upstream>> = servers.into_iter().map(|config| Arc::new(Upstream::new(config))).collect();
        let (context, stop) = (Arc::new(Context { safe, pins, egress, clock, all }), CancellationToken::new());
        let supervisor = Supervisor::default();
        let begin = |upstream: &Arc<Upstream>| {
            let (upstream, context, stop) = (upstream.clone(), context.clone(), stop.clone());
            let name = format!("MCP server {}", upstream.config.name);
            supervisor.spawn(name, move || supervise::supervise(upstream.clone(), context.clone(), stop.clone()))
        };
        let supervisors = Mutex::new(context.all.iter().map(begin).collect());
        Arc::new(Upstreams { context, stop, supervisors, supervisor })
    }

    /// Closes all connections and waits until all child processes have ended.
    pub async fn stop(&self) {
        self.stop.cancel();
        let supervisors = std::mem::take(&mut *self.supervisors.lock().unwrap_or_else(PoisonError::into_inner));
        for supervisor in supervisors {
            let _ = supervisor.await;
        }
    }

    /// `None` if no server can have a tool of that name. If several do, the first in the configuration has it, even
    /// while it is unavailable.
    pub(crate) fn find(&self, org: OrgId, name: &str) -> Option<Lookup> {
        let (mut other, mut unlisted) = (None, None);
        for upstream in &self.context.all {
            match upstream.find(org, name) {
                Some(found @ (Lookup::Tool(..) | Lookup::Unavailable(_))) => return Some(found),
                Some(found @ (Lookup::Removed(_) | Lookup::Held(..))) => other = other.or(Some(found)),
                Some(found @ Lookup::Unlisted(_)) => unlisted = unlisted.or(Some(found)),
                None => {}
            }
        }
        other.or(unlisted)
    }

    pub(crate) fn named(&self, org: OrgId, server: &str) -> Option<&Arc<Upstream>> {
        self.context.all.iter().find(|upstream| upstream.name() == server && upstream.org() == Some(org))
    }

    /// Whether any organisation has a tool of that name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.context.all.iter().any(|upstream| upstream.known(name).is_some())
    }

    /// The schema of a tool's arguments, as its server has it.
    pub(crate) fn schema(&self, name: &str) -> Option<serde_json::Value> {
        self.context
            .all
            .iter()
            .find_map(|upstream| upstream.known(name))
            .map(|known| known.offered.input_schema.clone())
    }

    /// Whether all tools of that name are accepted and declare themselves idempotent.
    pub(crate) fn is_idempotent(&self, name: &str) -> bool {
        self.all_declare(name, KnownTool::is_idempotent)
    }

    /// Whether all tools of that name are accepted and declare themselves read-only.
    pub(crate) fn is_read_only(&self, name: &str) -> bool {
        self.all_declare(name, KnownTool::is_read_only)
    }

    fn all_declare(&self, name: &str, declares: fn(&KnownTool) -> bool) -> bool {
        self.context.all.iter().all(|upstream| {
            let known = upstream.known(name);
            known.is_none_or(|known| declares(&known) && upstream.standing(&known.offered) == Standing::Accepted)
        })
    }

    pub(crate) fn names(&self, org: OrgId) -> Vec<String> {
        self.context.all.iter().flat_map(|upstream| upstream.names(org)).collect()
    }
}

impl Servers for Upstreams {
    fn servers(&self) -> Vec<Server> {
        let mut all: Vec<Server> = self.context.all.iter().map(|upstream| upstream.view()).collect();
        // The list of a server may be older than that of a server before it.
        for (server, upstream) in all.iter_mut().zip(&self.context.all) {
            let Some(org) = server.org else { continue };
            for offered in std::mem::take(&mut server.tools) {
                match self.context.clash(upstream, org, &offered.name) {
                    Some(why) => {
                        server.held.push(Held { name: offered.name.clone(), tool: offered.tool.clone(), why });
                    }
                    None => server.tools.push(offered),
                }
            }
        }
        all
    }
}

impl Drop for Upstreams {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
