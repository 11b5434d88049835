//! MCP servers whose tools steps call: Stepwell as a client.
//!
//! One supervisor per server (`supervise`) connects (`connect`; `child` and `probe`, or `http` and `post`; `secrets`), lists
//! the tools (`list`), and connects again when that ends. A call (`call`) finds its tool here, by organisation and name, and
//! goes through whatever connection there is. What a tool gives back is read by `result`; what it asks or begins is put off
//! by `waits`.
//!
//! Not here: who may call what (the engine's grants and policies), and accepting tools (its commands).

mod book;
mod call;
mod child;
mod connect;
mod http;
mod list;
mod post;
mod probe;
mod result;
mod secrets;
mod stderr;
mod supervise;
mod upstream;
mod waits;

use crate::egress::Egress;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use stepwell_engine::upstream::{Pins, Server, Servers, Standing};
use stepwell_engine::{Clock, SealedStore};
use stepwell_store::OrgId;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use upstream::{Known, Upstream};

/// Between a server's name and its tool's.
const BETWEEN: &str = "__";

#[derive(Clone, PartialEq, Debug)]
pub struct ServerConfig {
    pub name: String,
    /// Whose it is; the first one's if none is named.
    pub organisation: Option<String>,
    pub transport: Transport,
    /// Its tools go by their own names, without `server__` before them.
    pub plain_names: bool,
    /// How long connecting and listing may take.
    pub connect_timeout: Duration,
}

/// `{{secrets.NAME}}` may stand in arguments, values of variables and headers, and the URL.
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

/// What supervisors work with.
struct Around {
    safe: SealedStore,
    pins: Pins,
    egress: Egress,
    clock: Arc<dyn Clock>,
}

/// The servers of a configuration, each with its supervisor. Dropping it ends them all; [`Upstreams::stop`] also waits for
/// that.
pub struct Upstreams {
    all: Vec<Arc<Upstream>>,
    around: Arc<Around>,
    stop: CancellationToken,
    supervisors: Mutex<Vec<JoinHandle<()>>>,
}

/// What a name means to an organisation.
pub(crate) enum Found {
    Tool(Arc<Upstream>, Arc<Known>),
    /// A server that cannot say now whether it has it.
    Away(Arc<Upstream>),
    /// It was there and is not offered any more.
    Gone(Arc<Upstream>),
}

impl Upstreams {
    /// To be called within a runtime.
    pub fn start(
        servers: Vec<ServerConfig>,
        safe: SealedStore,
        pins: Pins,
        egress: Egress,
        clock: Arc<dyn Clock>,
    ) -> Arc<Upstreams> {
        let (around, stop) = (Arc::new(Around { safe, pins, egress, clock }), CancellationToken::new());
        let all: Vec<Arc<Upstream>> = servers.into_iter().map(|config| Arc::new(Upstream::new(config))).collect();
        let begin = |upstream: &Arc<Upstream>| {
            tokio::spawn(supervise::supervise(upstream.clone(), around.clone(), stop.clone()))
        };
        let supervisors = Mutex::new(all.iter().map(begin).collect());
        Arc::new(Upstreams { all, around, stop, supervisors })
    }

    /// Hangs up everywhere; afterwards no process that was started here is left.
    pub async fn stop(&self) {
        self.stop.cancel();
        let supervisors = std::mem::take(&mut *self.supervisors.lock().unwrap_or_else(PoisonError::into_inner));
        for supervisor in supervisors {
            let _ = supervisor.await;
        }
    }

    /// Nothing if no server has to do with that name.
    pub(crate) fn find(&self, org: OrgId, name: &str) -> Option<Found> {
        let mut other = None;
        for upstream in &self.all {
            match upstream.find(org, name) {
                Some(found @ Found::Tool(..)) => return Some(found),
                Some(found) => other = other.or(Some(found)),
                None => {}
            }
        }
        other
    }

    /// Of whichever organisation.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.all.iter().any(|upstream| upstream.known(name).is_some())
    }

    /// Whether every tool of that name is accepted and says so of itself.
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
        self.all.iter().map(|upstream| upstream.shown()).collect()
    }
}

impl Drop for Upstreams {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
