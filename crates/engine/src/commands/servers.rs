//! MCP servers: the state of their tools, accepting tools, and calling a tool outside of a workflow, which is a run of
//! one step.

use super::McpServers;
use super::change::{change, current_auth, retry_on_conflict};
use super::definitions::{check, store_for_test};
use super::input::invalid;
use super::runs::VersionToRun;
use super::{Runs, Source};
use crate::access::{Need, Right};
use crate::error::Error;
use crate::records::{Kept, body, json as json_text, list, name_key};
use crate::run::start::Started;
use crate::workflows::{Accepted, Held, Offered, Pin, Server, Standing, clash};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use stepwell_store::{Change, Record, RecordChange};

/// The label of a run that only calls a tool. Its value is the tool's name.
pub const CALLED: &str = "called_tool";

/// A server as this process knows it, with the state of its tools.
#[derive(Clone, PartialEq, Debug)]
pub struct KnownServer {
    /// `None` if this process knows no connection to it.
    pub server: Option<Server>,
    pub name: String,
    pub tools: Vec<KnownTool>,
}

/// A tool that a server offers, or that was accepted.
#[derive(Clone, PartialEq, Debug)]
pub struct KnownTool {
    /// The server's name for it.
    pub tool: String,
    /// `None` if the server does not offer it now.
    pub offered: Option<Arc<Offered>>,
    /// Why it cannot be called although it is offered.
    pub held: Option<Held>,
    /// `None` if it was never accepted.
    pub pin: Option<Pin>,
}

impl KnownTool {
    /// Whether the offered tool is new, accepted or changed. `None` if the server does not offer it now.
    pub fn standing(&self) -> Option<Standing> {
        let digest = self.offered.as_ref()?.digest();
        Some(match &self.pin {
            None => Standing::New,
            Some(pin) if pin.digest == digest => Standing::Accepted,
            Some(_) => Standing::Changed,
        })
    }
}

/// A tool to accept, by its server's name for it.
#[derive(Clone, PartialEq, Debug)]
pub struct Acceptance {
    pub tool: String,
    /// The digest of the tool that was reviewed. `None` accepts what is offered now.
    pub digest: Option<String>,
}

impl McpServers<'_> {
    /// All servers of the organisation, by name. Needs the right to read.
    pub async fn list(&self) -> Result<Vec<KnownServer>, Error> {
        self.caller.check(Right::Read)?;
        let accepted = list::<Accepted>(&*self.rooms.cluster.store, self.caller.org).await?;
        let mut known: BTreeMap<String, KnownServer> = BTreeMap::new();
        for server in self.offered() {
            let name = server.name.clone();
            known.insert(name.clone(), KnownServer { name, tools: Vec::new(), server: Some(server) });
        }
        for accepted in accepted.into_iter().map(|with| with.is) {
            let name = accepted.server.clone();
            let entry = known.entry(name.clone());
            let server = entry.or_insert_with(|| KnownServer { name, tools: Vec::new(), server: None });
            server.tools = accepted.tools.into_iter().map(|(tool, pin)| KnownTool::pinned(tool, pin)).collect();
        }
        known.values_mut().for_each(KnownServer::compare);
        Ok(known.into_values().collect())
    }

    /// Returns a server by name. Needs the right to read.
    pub async fn get(&self, name: &str) -> Result<KnownServer, Error> {
        let all = self.list().await?;
        let found = all.into_iter().find(|known| known.name == name);
        found.ok_or_else(|| Error::NotFound { what: "mcp server", name: name.to_string() })
    }

    /// The organisation's servers and the tools they offer, as this process sees them. Needs no right.
    pub fn offered(&self) -> Vec<Server> {
        self.rooms
            .workflows
            .servers
            .servers()
            .into_iter()
            .filter(|server| server.org == Some(self.caller.org))
            .collect()
    }

    /// Accepts tools that a server offers now: these, or all if none are named. Needs the right to administer.
    pub async fn accept(&self, server: &str, which: &[Acceptance]) -> Result<KnownServer, Error> {
        self.caller.check(Right::Admin)?;
        retry_on_conflict(|| self.accept_once(server, which)).await?;
        self.get(server).await
    }

    async fn accept_once(&self, name: &str, which: &[Acceptance]) -> Result<(), Error> {
        let decided = current_auth(self.rooms, self.caller.org).await?;
        let known = self.get(name).await?;
        if known.server.is_none() {
            let message = format!("{name} is not connected to this process: use a node whose configuration names it");
            return Err(Error::Refused(message));
        }
        let before = self.rooms.cluster.store.record_with_key(Accepted::KIND, &name_key(self.caller.org, name)).await?;
        let mut accepted = match &before {
            Some(record) => body::<Accepted>(record)?,
            None => {
                let plain = known.server.as_ref().is_some_and(|server| server.plain_names);
                Accepted { server: name.to_string(), plain, ..Accepted::default() }
            }
        };
        let now = self.rooms.cluster.clock.now();
        let offered = known.tools.iter().filter_map(|tool| tool.offered.as_ref());
        let chosen: Vec<&Arc<Offered>> = match which {
            [] => offered.collect(),
            which => which.iter().map(|wanted| known.choose(wanted)).collect::<Result<_, _>>()?,
        };
        for offered in &chosen {
            accepted.tools.insert(offered.tool.clone(), offered.pin(now, &self.caller.name));
        }
        let record = match before {
            Some(record) => RecordChange::Replace(Record { body: json_text(&accepted), ..record }),
            None => RecordChange::Create(accepted.record(self.caller.org)),
        };
        let digests: BTreeMap<&str, String> = chosen.iter().map(|offered| (&*offered.tool, offered.digest())).collect();
        let audit = vec![self.caller.audit(now, "mcp_server.accept", name, json!(digests))];
        let update = Change { records: vec![record], audit, grants_of: Some(self.caller.org), decided: Some(decided) };
        change(self.rooms, update, "mcp server", name).await
    }

    /// The accepted, unchanged tools that the caller may call, by name. Needs the right to run.
    pub async fn proxied(&self) -> Result<Vec<Arc<Offered>>, Error> {
        self.caller.check(Right::Run)?;
        let mut found: BTreeMap<String, Arc<Offered>> = BTreeMap::new();
        let exposed = self.rooms.workflows.pins.exposed(self.caller.org).await?;
        for server in self.offered() {
            let Some(accepted) = self.rooms.workflows.pins.accepted(self.caller.org, &server.name).await? else {
                continue;
            };
            let callable = server.tools.into_iter().filter(|offered| {
                accepted.standing(offered) == Standing::Accepted
                    && clash(&exposed, &offered.name).is_none()
                    && self.caller.grants.allow(Need::Tool(&offered.name))
            });
            for offered in callable {
                // If two tools have the same name, steps call the first as well.
                found.entry(offered.name.clone()).or_insert(offered);
            }
        }
        Ok(found.into_values().collect())
    }

    /// Calls a tool as a run of one step, with the same checks, log and durability as any run. Needs the right to run.
    pub async fn call_tool(&self, tool: &str, arguments: Value) -> Result<Started, Error> {
        self.caller.check(Right::Run)?;
        // Passed as input, so that the arguments are not parsed as templates.
        let document = json!({"name": tool, "retention": "7d", "labels": {CALLED: tool},
            "tasks": {"call": {"tool": tool, "args": "{{input}}", "retries": 0}}, "output": "{{tasks.call.body}}"});
        let document = document.to_string();
        let checked = check(self.rooms, Source { text: &document, file: None })?;
        let epoch = self.rooms.access.epoch(self.caller.org).await?;
        let compiled = store_for_test(self.rooms, self.caller, checked).await?;
        Runs::new(self.rooms, self.caller).call(VersionToRun { compiled, epoch }, tool, arguments).await
    }
}

impl KnownServer {
    /// Adds the offered tools to the accepted ones.
    fn compare(&mut self) {
        for offered in self.server.iter().flat_map(|server| &server.tools) {
            match self.tools.iter_mut().find(|known| known.tool == offered.tool) {
                Some(known) => known.offered = Some(offered.clone()),
                None => {
                    let (tool, offered) = (offered.tool.clone(), Some(offered.clone()));
                    self.tools.push(KnownTool { tool, offered, held: None, pin: None });
                }
            }
        }
        for held in self.server.iter().flat_map(|server| &server.held) {
            match self.tools.iter_mut().find(|known| known.tool == held.tool) {
                Some(known) => known.held = Some(held.clone()),
                None => {
                    let (tool, held) = (held.tool.clone(), Some(held.clone()));
                    self.tools.push(KnownTool { tool, offered: None, held, pin: None });
                }
            }
        }
        self.tools.sort_by(|a, b| a.tool.cmp(&b.tool));
    }

    /// The offered tool to accept. Fails if it has changed since it was reviewed.
    fn choose(&self, wanted: &Acceptance) -> Result<&Arc<Offered>, Error> {
        let found = self.tools.iter().find(|known| known.tool == wanted.tool);
        let missing = || invalid("tools", &format!("{} does not offer a tool {:?} now", self.name, wanted.tool));
        let offered = found.and_then(|known| known.offered.as_ref()).ok_or_else(missing)?;
        match &wanted.digest {
            Some(digest) if *digest != offered.digest() => {
                let message = format!("{} has changed since it was reviewed: review it again", wanted.tool);
                Err(Error::Refused(message))
            }
            _ => Ok(offered),
        }
    }
}

impl KnownTool {
    fn pinned(tool: String, pin: Pin) -> KnownTool {
        KnownTool { tool, offered: None, held: None, pin: Some(pin) }
    }
}
