//! MCP servers whose tools steps can call: their state in this process, and which of their tools were accepted.
//!
//! A server may change the description and the schema of a tool at any time. The tools that it offers when it is first
//! seen are accepted. New and changed tools are held until an administrator accepts them.

use super::names::ExposedTool;
use crate::error::Error;
use crate::records::{Kept, body, json as text, list, name_key};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use stepwell_core::approval::digest;
use stepwell_core::time::Time;
use stepwell_store::{Change, OrgId, Record, RecordChange, Refused, Store};

/// Characters of an accepted description that are stored for comparison.
const MAX_KEPT: usize = 2_000;

/// Lists the servers that this process is connected or connecting to.
pub trait Servers: Send + Sync {
    fn servers(&self) -> Vec<Server>;
}

/// For processes without MCP servers.
#[derive(Clone, Copy, Default, Debug)]
pub struct NoServers;

impl Servers for NoServers {
    fn servers(&self) -> Vec<Server> {
        Vec::new()
    }
}

#[derive(Clone, PartialEq, Debug)]
pub struct Server {
    /// Its name in the configuration.
    pub name: String,
    /// The organisation that owns it. Others neither see nor call its tools.
    pub org: Option<OrgId>,
    /// `stdio` or `http`.
    pub transport: &'static str,
    pub state: State,
    /// The name and version that the server reports.
    pub about: Option<String>,
    pub protocol: Option<String>,
    /// The number of connections made so far.
    pub connected: u32,
    /// Whether its tools have their own names, without the prefix `server__`.
    pub plain_names: bool,
    /// The tools that it offered last, by name.
    pub tools: Vec<Arc<Offered>>,
    /// The tools that it offered last and that cannot be called even if they are accepted.
    pub held: Vec<Held>,
}

/// A tool that cannot be called: its name belongs to another one, or it exceeds a limit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Held {
    /// The name that it would have in steps.
    pub name: String,
    /// The server's own name for it.
    pub tool: String,
    pub why: String,
}

/// What a server offers on a connection.
#[derive(Clone, Copy, Debug)]
pub struct FirstSeen<'a> {
    pub server: &'a str,
    /// Whether its tools have their own names.
    pub plain: bool,
    pub offered: &'a [Arc<Offered>],
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum State {
    Connecting,
    Ready,
    /// The next connection attempt is at `next`.
    Down {
        why: String,
        next: Time,
    },
}

impl State {
    pub fn name(&self) -> &'static str {
        match self {
            State::Connecting => "connecting",
            State::Ready => "ready",
            State::Down { .. } => "down",
        }
    }
}

/// A tool that a server offers.
#[derive(Clone, PartialEq, Debug)]
pub struct Offered {
    /// The name in steps, grants and policies: `server__tool`, or its own name if configured so.
    pub name: String,
    /// The server's own name for it.
    pub tool: String,
    pub title: Option<String>,
    pub description: String,
    pub input_schema: Value,
    pub output_schema: Option<Value>,
    /// As the server sends them: `readOnlyHint`, …
    pub annotations: Option<Value>,
}

impl Offered {
    /// A digest of everything that describes the tool.
    pub fn digest(&self) -> String {
        digest(&json!({
            "tool": self.tool,
            "title": self.title,
            "description": self.description,
            "input_schema": self.input_schema,
            "output_schema": self.output_schema,
            "annotations": self.annotations,
        }))
    }

    pub(crate) fn pin(&self, at: Time, by: &str) -> Pin {
        let description = self.description.chars().take(MAX_KEPT).collect();
        Pin { digest: self.digest(), description, at, by: by.to_string() }
    }
}

/// The accepted tools of one server, by the server's own names.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Accepted {
    pub server: String,
    /// Whether its tools have their own names, which no workflow can take then.
    #[serde(default)]
    pub plain: bool,
    pub tools: BTreeMap<String, Pin>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Pin {
    pub digest: String,
    pub description: String,
    pub at: Time,
    pub by: String,
}

impl Kept for Accepted {
    const KIND: &'static str = "mcp_server";
}

impl Accepted {
    /// Whether an offered tool is accepted, changed or new.
    pub fn standing(&self, offered: &Offered) -> Standing {
        match self.tools.get(&offered.tool) {
            None => Standing::New,
            Some(pin) if pin.digest == offered.digest() => Standing::Accepted,
            Some(_) => Standing::Changed,
        }
    }

    /// The record. Its id is fixed per server, so that concurrent nodes create only one.
    pub(crate) fn record(&self, org: OrgId) -> Record {
        let (kind, key) = (Accepted::KIND.to_string(), name_key(org, &self.server));
        let id = format!("mcp_{}_{}", org.0, self.server);
        Record { kind, id, org, key, due: None, body: text(self), version: 0 }
    }
}

/// Only accepted tools can be called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    Accepted,
    Changed,
    New,
}

impl Standing {
    pub fn name(self) -> &'static str {
        match self {
            Standing::Accepted => "accepted",
            Standing::Changed => "changed",
            Standing::New => "new",
        }
    }
}

/// The store of accepted tools.
#[derive(Clone)]
pub struct Pins {
    store: Arc<dyn Store>,
}

impl Pins {
    pub fn new(store: Arc<dyn Store>) -> Pins {
        Pins { store }
    }

    /// The organisation with this name.
    pub async fn organisation(&self, name: &str) -> Result<Option<OrgId>, Error> {
        let all = self.store.organisations().await?;
        Ok(all.into_iter().find(|(_, known)| known == name).map(|(org, _)| org))
    }

    pub async fn accepted(&self, org: OrgId, server: &str) -> Result<Option<Accepted>, Error> {
        let record = self.store.record_with_key(Accepted::KIND, &name_key(org, server)).await?;
        record.as_ref().map(body).transpose()
    }

    /// The workflows whose accepted version is exposed as a tool, by the tool's name.
    pub async fn exposed(&self, org: OrgId) -> Result<BTreeMap<String, String>, Error> {
        let all = list::<ExposedTool>(&*self.store, org).await?.into_iter().map(|with| with.is);
        Ok(all.filter(|tool| !tool.held).map(|tool| (tool.tool, tool.workflow)).collect())
    }

    /// The accepted tools of a server. If the server is new, all tools that it offers are accepted.
    pub async fn first_seen(&self, org: OrgId, seen: FirstSeen<'_>, now: Time) -> Result<Accepted, Error> {
        let FirstSeen { server, plain, offered } = seen;
        let record = self.store.record_with_key(Accepted::KIND, &name_key(org, server)).await?;
        let known = record.as_ref().map(body::<Accepted>).transpose()?;
        let change = match (record, known) {
            (Some(_), Some(known)) if known.plain == plain => return Ok(known),
            (Some(record), Some(known)) => {
                RecordChange::Replace(Record { body: text(&Accepted { plain, ..known }), ..record })
            }
            _ => {
                let pins = offered.iter().map(|offered| (offered.tool.clone(), offered.pin(now, "first seen")));
                let accepted = Accepted { server: server.to_string(), plain, tools: pins.collect() };
                RecordChange::Create(accepted.record(org))
            }
        };
        let change = Change { records: vec![change], ..Change::default() };
        match self.store.change(change).await? {
            // Another node may have been faster.
            Ok(()) | Err(Refused::Taken | Refused::Duplicate { .. } | Refused::Conflict) => {
                let known = self.accepted(org, server).await?;
                known.ok_or_else(|| Error::Unavailable(format!("cannot read the accepted tools of {server}")))
            }
            Err(_) => Err(Error::Unavailable(format!("cannot write the accepted tools of {server}"))),
        }
    }
}
