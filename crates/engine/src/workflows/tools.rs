//! MCP servers whose tools steps can call: what the engine knows of those that this process is connected to, and what was
//! accepted of their tools.
//!
//! A server may change what a tool says and takes at any time. What was offered when the server was first seen counts as
//! accepted; what is offered otherwise, or anew, is held until an administrator accepts it.

use crate::error::Error;
use crate::records::{Kept, body, json as text, name_key};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use stepwell_core::approval::digest;
use stepwell_core::time::Time;
use stepwell_store::{Change, OrgId, Record, RecordChange, Refused, Store};

/// Of a description that is kept to compare with.
const MAX_KEPT: usize = 2_000;

/// The servers that this process is connected to, or tries to be.
pub trait Servers: Send + Sync {
    fn servers(&self) -> Vec<Server>;
}

/// For processes that are connected to none.
#[derive(Clone, Copy, Default, Debug)]
pub struct NoServers;

impl Servers for NoServers {
    fn servers(&self) -> Vec<Server> {
        Vec::new()
    }
}

#[derive(Clone, PartialEq, Debug)]
pub struct Server {
    /// As the configuration names it.
    pub name: String,
    /// Whose it is: others neither see nor call its tools.
    pub org: Option<OrgId>,
    /// `stdio` or `http`.
    pub transport: &'static str,
    pub state: State,
    /// What the server calls itself, with its version.
    pub about: Option<String>,
    pub protocol: Option<String>,
    /// How often it was connected to.
    pub connected: u32,
    /// What it offered last, by name.
    pub tools: Vec<Arc<Offered>>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum State {
    Connecting,
    Ready,
    /// It is tried again at the time.
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

/// A tool as its server offers it.
#[derive(Clone, PartialEq, Debug)]
pub struct Offered {
    /// As steps, grants and policies name it: `server__tool`, or its own name if the configuration says so.
    pub name: String,
    /// As its server knows it.
    pub tool: String,
    pub title: Option<String>,
    pub description: String,
    pub input_schema: Value,
    pub output_schema: Option<Value>,
    /// As the server gives them: `readOnlyHint`, …
    pub annotations: Option<Value>,
}

impl Offered {
    /// Over everything that tells what it does.
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

/// What was accepted of one server's tools, by the server's names for them.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Accepted {
    pub server: String,
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
    pub fn standing(&self, offered: &Offered) -> Standing {
        match self.tools.get(&offered.tool) {
            None => Standing::New,
            Some(pin) if pin.digest == offered.digest() => Standing::Accepted,
            Some(_) => Standing::Changed,
        }
    }

    /// There is one for each server, whoever makes it.
    pub(crate) fn record(&self, org: OrgId) -> Record {
        let (kind, key) = (Accepted::KIND.to_string(), name_key(org, &self.server));
        let id = format!("mcp_{}_{}", org.0, self.server);
        Record { kind, id, org, key, due: None, body: text(self), version: 0 }
    }
}

/// Only what is accepted can be called.
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

/// Where what was accepted is kept.
#[derive(Clone)]
pub struct Pins {
    store: Arc<dyn Store>,
}

impl Pins {
    pub fn new(store: Arc<dyn Store>) -> Pins {
        Pins { store }
    }

    /// `None` if there is no organisation of that name.
    pub async fn organisation(&self, name: &str) -> Result<Option<OrgId>, Error> {
        let all = self.store.organisations().await?;
        Ok(all.into_iter().find(|(_, known)| known == name).map(|(org, _)| org))
    }

    pub async fn accepted(&self, org: OrgId, server: &str) -> Result<Option<Accepted>, Error> {
        let record = self.store.record_with_key(Accepted::KIND, &name_key(org, server)).await?;
        record.as_ref().map(body).transpose()
    }

    /// What was accepted of a server. One that was never seen before is taken as it is.
    pub async fn first_seen(
        &self,
        org: OrgId,
        server: &str,
        offered: &[Arc<Offered>],
        now: Time,
    ) -> Result<Accepted, Error> {
        if let Some(known) = self.accepted(org, server).await? {
            return Ok(known);
        }
        let tools = offered.iter().map(|offered| (offered.tool.clone(), offered.pin(now, "first seen"))).collect();
        let accepted = Accepted { server: server.to_string(), tools };
        let change = Change { records: vec![RecordChange::Create(accepted.record(org))], ..Change::default() };
        match self.store.change(change).await? {
            Ok(()) => Ok(accepted),
            // Another node saw it first.
            Err(Refused::Taken | Refused::Duplicate { .. } | Refused::Conflict) => {
                let known = self.accepted(org, server).await?;
                known.ok_or_else(|| Error::Unavailable(format!("what was accepted of {server} cannot be read")))
            }
            Err(_) => Err(Error::Unavailable(format!("what is accepted of {server} cannot be written"))),
        }
    }
}
