//! One server as seen by calls: its state, its tools, which ones are accepted, and its connection, if any.

use super::connect::truncated;
use super::limits::Verdict;
use super::progress::ProgressTracker;
use super::{Lookup, SEPARATOR, ServerConfig};
use rmcp::{Peer, RoleClient};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use stepwell_engine::Mask;
use stepwell_engine::schema::{self, Schema};
use stepwell_engine::upstream::{Accepted, Held, Offered, Server, Standing, State};
use stepwell_store::OrgId;
use tokio::sync::{Notify, watch};

pub struct Upstream {
    pub config: ServerConfig,
    shared: Mutex<Shared>,
    /// Incremented at every change of the state.
    changes: watch::Sender<u64>,
    /// Notified when a call finds the connection broken.
    pub suspect: Notify,
}

struct Shared {
    org: Option<OrgId>,
    state: State,
    about: Option<String>,
    protocol: Option<String>,
    connected: u32,
    /// By the names that steps use. Kept while the server is unavailable.
    tools: BTreeMap<String, Arc<KnownTool>>,
    /// Tools that it offers but that cannot be called.
    held: Vec<Held>,
    /// Whether its tools have been listed at least once.
    listed: bool,
    accepted: Option<Accepted>,
    link: Option<Link>,
    /// Whether it refused the credentials at the last attempt to connect.
    denied: bool,
}

/// A live connection.
#[derive(Clone)]
pub struct Link {
    pub peer: Peer<RoleClient>,
    pub progress: Arc<ProgressTracker>,
    /// Masks the secrets in the server's configuration.
    pub mask: Arc<Mask>,
    /// Ends the connection.
    pub verdict: Arc<Verdict>,
    /// Whether it speaks revision 2026-07-28 or newer.
    pub modern: bool,
}

/// Maximum number of reported faults of a value.
const MAX_FAULTS: usize = 5;

/// A tool whose schemas are read on first use.
pub struct KnownTool {
    pub offered: Arc<Offered>,
    input: OnceLock<Option<Schema>>,
    output: OnceLock<Option<Schema>>,
}

impl KnownTool {
    pub fn new(offered: Offered) -> KnownTool {
        KnownTool { offered: Arc::new(offered), input: OnceLock::new(), output: OnceLock::new() }
    }

    /// What is wrong with the arguments. If the schema cannot be used, only the server checks them.
    pub async fn bad_input(&self, args: &Value) -> Option<String> {
        let schema = self.input.get_or_init(|| self.usable(&self.offered.input_schema));
        self.mismatch(schema.as_ref()?, args, "args").await
    }

    /// What is wrong with a structured result.
    pub async fn bad_output(&self, result: &Value) -> Option<String> {
        let schema = self.offered.output_schema.as_ref();
        let schema = self.output.get_or_init(|| schema.and_then(|schema| self.usable(schema)));
        self.mismatch(schema.as_ref()?, result, "result").await
    }

    fn usable(&self, schema: &Value) -> Option<Schema> {
        Schema::bounded(schema).inspect_err(|error| self.unchecked(error)).ok()
    }

    fn unchecked(&self, error: &schema::Error) {
        tracing::warn!(tool = self.offered.name, %error, "cannot check values against the schema of a tool");
    }

    async fn mismatch(&self, schema: &Schema, value: &Value, root: &str) -> Option<String> {
        let faults = match schema.faults(Arc::new(value.clone()), MAX_FAULTS).await {
            Ok(faults) => faults,
            Err(error @ schema::Error::Costly(_)) => return Some(error.to_string()),
            Err(error) => {
                self.unchecked(&error);
                return None;
            }
        };
        let faults = faults.into_iter().map(|fault| {
            let path = fault.path.replace('/', ".");
            format!("`{root}{path}`: {}", truncated(&fault.message))
        });
        Some(faults.collect::<Vec<_>>().join("; ")).filter(|faults| !faults.is_empty())
    }

    pub fn is_idempotent(&self) -> bool {
        self.hint("idempotentHint") || self.is_read_only()
    }

    pub fn is_read_only(&self) -> bool {
        self.hint("readOnlyHint")
    }

    fn hint(&self, name: &str) -> bool {
        self.offered.annotations.as_ref().and_then(|hints| hints.get(name)) == Some(&Value::Bool(true))
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
            held: Vec::new(),
            listed: false,
            accepted: None,
            link: None,
            denied: false,
        };
        Upstream { config, shared: Mutex::new(shared), changes: watch::Sender::new(0), suspect: Notify::new() }
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// The name by which steps call a tool of this server.
    pub fn full_name(&self, tool: &str) -> String {
        if self.config.plain_names { tool.to_owned() } else { format!("{}{SEPARATOR}{tool}", self.name()) }
    }

    /// The server's own name of a tool that a step calls.
    fn own_name<'a>(&self, name: &'a str) -> Option<&'a str> {
        if self.config.plain_names {
            return Some(name);
        }
        name.strip_prefix(self.name())?.strip_prefix(SEPARATOR)
    }

    pub fn known(&self, name: &str) -> Option<Arc<KnownTool>> {
        self.shared().tools.get(name).cloned()
    }

    pub fn find(self: &Arc<Upstream>, org: OrgId, name: &str) -> Option<Lookup> {
        let own = self.own_name(name)?;
        let shared = self.shared();
        match shared.org {
            Some(owner) if owner == org => {}
            Some(_) => return None,
            // Its organisation is looked up at the start.
            None => return Some(Lookup::Unlisted(self.clone())),
        }
        if let Some(known) = shared.tools.get(name) {
            return Some(Lookup::Tool(self.clone(), known.clone()));
        }
        if let Some(held) = shared.held.iter().find(|held| held.name == name) {
            return Some(Lookup::Held(self.clone(), held.why.clone()));
        }
        // Every name with its prefix belongs to it. Without prefixes, only accepted names are known to belong to it.
        let remembered = shared.accepted.as_ref().is_some_and(|accepted| accepted.tools.contains_key(own));
        match (shared.listed, self.config.plain_names) {
            (false, true) if !remembered => Some(Lookup::Unlisted(self.clone())),
            (false, _) => Some(Lookup::Unavailable(self.clone())),
            (true, _) if remembered => Some(Lookup::Removed(self.clone())),
            (true, _) => None,
        }
    }

    /// Whether a name belongs to a tool of this server, listed or remembered from an earlier connection.
    pub fn owns(self: &Arc<Upstream>, org: OrgId, name: &str) -> bool {
        matches!(self.find(org, name), Some(Lookup::Tool(..) | Lookup::Unavailable(_)))
    }

    pub fn names(&self, org: OrgId) -> Vec<String> {
        let shared = self.shared();
        if shared.org == Some(org) { shared.tools.keys().cloned().collect() } else { Vec::new() }
    }

    pub fn view(&self) -> Server {
        let shared = self.shared();
        Server {
            name: self.config.name.clone(),
            org: shared.org,
            transport: self.config.transport.name(),
            state: shared.state.clone(),
            about: shared.about.clone(),
            protocol: shared.protocol.clone(),
            connected: shared.connected,
            plain_names: self.config.plain_names,
            tools: shared.tools.values().map(|known| known.offered.clone()).collect(),
            held: shared.held.clone(),
        }
    }

    pub fn standing(&self, offered: &Offered) -> Standing {
        self.shared().accepted.as_ref().map_or(Standing::New, |accepted| accepted.standing(offered))
    }

    pub fn org(&self) -> Option<OrgId> {
        self.shared().org
    }

    pub fn set_org(&self, org: OrgId) {
        self.shared().org = Some(org);
    }

    pub fn set_accepted(&self, accepted: Accepted) {
        self.shared().accepted = Some(accepted);
    }

    pub fn set_connecting(&self) {
        self.set(State::Connecting, None);
    }

    pub fn denied(&self) -> bool {
        self.shared().denied
    }

    pub fn set_denied(&self, denied: bool) {
        self.shared().denied = denied;
    }

    pub fn set_down(&self, state: State) {
        self.set(state, None);
    }

    pub fn set_ready(&self, link: Link, about: Option<String>, protocol: Option<String>) {
        let mut shared = self.shared();
        (shared.about, shared.protocol, shared.denied) = (about, protocol, false);
        shared.connected += 1;
        drop(shared);
        self.set(State::Ready, Some(link));
    }

    pub fn set_tools(&self, tools: Vec<KnownTool>, held: Vec<Held>, accepted: Accepted) {
        let mut shared = self.shared();
        shared.tools = tools.into_iter().map(|known| (known.offered.name.clone(), Arc::new(known))).collect();
        (shared.held, shared.listed) = (held, true);
        shared.accepted = Some(accepted);
    }

    fn set(&self, state: State, link: Option<Link>) {
        let mut shared = self.shared();
        (shared.state, shared.link) = (state, link);
        drop(shared);
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// The connection, if there is one.
    pub fn current(&self) -> Option<Link> {
        self.shared().link.clone()
    }

    /// Why there is no connection.
    pub fn trouble(&self) -> String {
        match &self.shared().state {
            State::Connecting | State::Ready => "it is still connecting".into(),
            State::Down { why, .. } => why.clone(),
        }
    }

    /// Returns the connection, waiting for one that is being established, or why there is none.
    pub async fn link(&self) -> Result<Link, String> {
        let mut changes = self.changes.subscribe();
        let settled = async {
            loop {
                changes.borrow_and_update();
                let (state, link) = {
                    let shared = self.shared();
                    (shared.state.clone(), shared.link.clone())
                };
                match (state, link) {
                    (_, Some(link)) => return Ok(link),
                    (State::Down { why, .. }, None) => return Err(why),
                    (State::Connecting | State::Ready, None) => {}
                }
                if changes.changed().await.is_err() {
                    return Err("it is shutting down".to_owned());
                }
            }
        };
        let waited = tokio::time::timeout(self.config.connect_timeout, settled).await;
        waited.unwrap_or_else(|_| Err("it is still connecting".into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tool(schema: &Value) -> KnownTool {
        KnownTool::new(Offered {
            name: "s__t".into(),
            tool: "t".into(),
            title: None,
            description: String::new(),
            input_schema: schema.clone(),
            output_schema: Some(schema.clone()),
            annotations: None,
        })
    }

    #[tokio::test]
    async fn a_hostile_schema_of_a_tool_is_not_applied() {
        let refs = |next: usize| json!({"allOf": vec![json!({"$ref": format!("#/$defs/s{next}")}); 10]});
        let mut defs: serde_json::Map<String, Value> = (0..9).map(|ix| (format!("s{ix}"), refs(ix + 1))).collect();
        defs.insert("s9".into(), json!({"type": "string"}));
        let hostile = tool(&json!({"$ref": "#/$defs/s0", "$defs": defs}));
        assert_eq!(hostile.bad_input(&json!({})).await, None);
        assert_eq!(hostile.bad_output(&json!({})).await, None);
        let honest = tool(&json!({"type": "object", "required": ["a"]}));
        assert!(honest.bad_input(&json!({})).await.is_some_and(|why| why.contains("required")));
        assert!(honest.bad_output(&json!({})).await.is_some_and(|why| why.contains("required")));
    }
}
