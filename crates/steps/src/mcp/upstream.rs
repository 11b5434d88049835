//! One server as calls see it: its state, its tools, what was accepted of them, and the connection, if there is one.

use super::book::Book;
use super::{BETWEEN, Found, ServerConfig};
use jsonschema::Validator;
use rmcp::{Peer, RoleClient};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use stepwell_engine::Mask;
use stepwell_engine::upstream::{Accepted, Offered, Server, Standing, State};
use stepwell_store::OrgId;
use tokio::sync::{Notify, watch};

pub struct Upstream {
    pub config: ServerConfig,
    shared: Mutex<Shared>,
    /// Moves at every change of the state.
    moved: watch::Sender<u64>,
    /// A call found the connection broken.
    pub doubt: Notify,
}

struct Shared {
    org: Option<OrgId>,
    state: State,
    about: Option<String>,
    protocol: Option<String>,
    connected: u32,
    /// By the names that steps use. Kept while the server is away.
    tools: BTreeMap<String, Arc<Known>>,
    /// It has said at least once what it offers.
    listed: bool,
    accepted: Option<Accepted>,
    link: Option<Link>,
}

/// A way to a server that answers.
#[derive(Clone)]
pub struct Link {
    pub peer: Peer<RoleClient>,
    pub book: Arc<Book>,
    /// Secrets that the server was given.
    pub mask: Arc<Mask>,
    /// It speaks 2026-07-28 or newer.
    pub modern: bool,
}

/// A tool, with its schemas read once they are needed.
pub struct Known {
    pub offered: Arc<Offered>,
    input: OnceLock<Option<Validator>>,
    output: OnceLock<Option<Validator>>,
}

impl Known {
    pub fn new(offered: Offered) -> Known {
        Known { offered: Arc::new(offered), input: OnceLock::new(), output: OnceLock::new() }
    }

    /// None where the schema is none that can be checked here: then only the server can.
    pub fn input(&self) -> Option<&Validator> {
        self.input.get_or_init(|| jsonschema::validator_for(&self.offered.input_schema).ok()).as_ref()
    }

    pub fn output(&self) -> Option<&Validator> {
        let read = || self.offered.output_schema.as_ref().and_then(|schema| jsonschema::validator_for(schema).ok());
        self.output.get_or_init(read).as_ref()
    }

    pub fn is_idempotent(&self) -> bool {
        let hint =
            |name| self.offered.annotations.as_ref().and_then(|hints| hints.get(name)) == Some(&Value::Bool(true));
        hint("idempotentHint") || hint("readOnlyHint")
    }
}

impl Upstream {
    pub fn new(config: ServerConfig) -> Upstream {
        let shared = Shared {
            org: config.organisation.is_none().then_some(OrgId(1)),
            state: State::Connecting,
            about: None,
            protocol: None,
            connected: 0,
            tools: BTreeMap::new(),
            listed: false,
            accepted: None,
            link: None,
        };
        Upstream { config, shared: Mutex::new(shared), moved: watch::Sender::new(0), doubt: Notify::new() }
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// As steps call a tool of this server.
    pub fn full_name(&self, tool: &str) -> String {
        if self.config.plain_names { tool.to_owned() } else { format!("{}{BETWEEN}{tool}", self.name()) }
    }

    /// The server's own name for what a step calls.
    fn own_name<'a>(&self, name: &'a str) -> Option<&'a str> {
        if self.config.plain_names {
            return Some(name);
        }
        name.strip_prefix(self.name())?.strip_prefix(BETWEEN)
    }

    pub fn known(&self, name: &str) -> Option<Arc<Known>> {
        self.shared().tools.get(name).cloned()
    }

    pub fn find(self: &Arc<Upstream>, org: OrgId, name: &str) -> Option<Found> {
        let own = self.own_name(name)?;
        let shared = self.shared();
        if shared.org != Some(org) {
            return None;
        }
        if let Some(known) = shared.tools.get(name) {
            return Some(Found::Tool(self.clone(), known.clone()));
        }
        // Whatever begins with its name is its own; of the others it may know those that were accepted.
        let remembered = shared.accepted.as_ref().is_some_and(|accepted| accepted.tools.contains_key(own));
        match (shared.listed, self.config.plain_names) {
            (false, true) if !remembered => None,
            (false, _) => Some(Found::Away(self.clone())),
            (true, _) if remembered => Some(Found::Gone(self.clone())),
            (true, _) => None,
        }
    }

    pub fn names(&self, org: OrgId) -> Vec<String> {
        let shared = self.shared();
        if shared.org == Some(org) { shared.tools.keys().cloned().collect() } else { Vec::new() }
    }

    pub fn shown(&self) -> Server {
        let shared = self.shared();
        Server {
            name: self.config.name.clone(),
            org: shared.org,
            transport: self.config.transport.name(),
            state: shared.state.clone(),
            about: shared.about.clone(),
            protocol: shared.protocol.clone(),
            connected: shared.connected,
            tools: shared.tools.values().map(|known| known.offered.clone()).collect(),
        }
    }

    pub fn standing(&self, offered: &Offered) -> Standing {
        self.shared().accepted.as_ref().map_or(Standing::New, |accepted| accepted.standing(offered))
    }

    pub fn org(&self) -> Option<OrgId> {
        self.shared().org
    }

    pub fn belongs_to(&self, org: OrgId) {
        self.shared().org = Some(org);
    }

    pub fn accepts(&self, accepted: Accepted) {
        self.shared().accepted = Some(accepted);
    }

    pub fn connecting(&self) {
        self.set(State::Connecting, None);
    }

    pub fn down(&self, state: State) {
        self.set(state, None);
    }

    pub fn ready(&self, link: Link, about: Option<String>, protocol: Option<String>) {
        let mut shared = self.shared();
        (shared.about, shared.protocol) = (about, protocol);
        shared.connected += 1;
        drop(shared);
        self.set(State::Ready, Some(link));
    }

    pub fn offers(&self, tools: Vec<Known>, accepted: Accepted) {
        let mut shared = self.shared();
        shared.tools = tools.into_iter().map(|known| (known.offered.name.clone(), Arc::new(known))).collect();
        shared.listed = true;
        shared.accepted = Some(accepted);
    }

    fn set(&self, state: State, link: Option<Link>) {
        let mut shared = self.shared();
        (shared.state, shared.link) = (state, link);
        drop(shared);
        self.moved.send_modify(|moves| *moves += 1);
    }

    /// The connection; one that is just being made is waited for. Otherwise why there is none.
    pub async fn link(&self) -> Result<Link, String> {
        let mut moves = self.moved.subscribe();
        let settled = async {
            loop {
                moves.borrow_and_update();
                let (state, link) = {
                    let shared = self.shared();
                    (shared.state.clone(), shared.link.clone())
                };
                match (state, link) {
                    (_, Some(link)) => return Ok(link),
                    (State::Down { why, .. }, None) => return Err(why),
                    (State::Connecting | State::Ready, None) => {}
                }
                if moves.changed().await.is_err() {
                    return Err("it is being shut down".to_owned());
                }
            }
        };
        let waited = tokio::time::timeout(self.config.connect_timeout, settled).await;
        waited.unwrap_or_else(|_| Err("it is still being connected to".into()))
    }
}
