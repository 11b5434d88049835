//! MCP servers whose tools can be called: how they stand, accepting what they offer, and calling a tool outside of any
//! workflow, which is a run of one step.

use super::McpServers;
use super::change::{auth, change, settled};
use super::definitions::{check, keep_for_test};
use super::input::bad;
use super::runs::Decided;
use super::{Runs, Source};
use crate::access::{Need, Right};
use crate::error::Error;
use crate::records::{Kept, body, json as json_text, list, name_key};
use crate::run::start::Started;
use crate::workflows::{Accepted, Offered, Pin, Server, Standing};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use stepwell_store::{Change, Record, RecordChange};

/// The label of a run that is nothing but the call of a tool: its value is the tool.
pub const CALLED: &str = "called_tool";

/// A server as this process knows it, and how its tools stand.
#[derive(Clone, PartialEq, Debug)]
pub struct KnownServer {
    /// None if no process that this one knows of is connected to it.
    pub server: Option<Server>,
    pub name: String,
    pub tools: Vec<KnownTool>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct KnownTool {
    /// As its server knows it.
    pub tool: String,
    /// None if the server does not offer it now.
    pub offered: Option<Arc<Offered>>,
    /// None if it was never accepted.
    pub pin: Option<Pin>,
}

impl KnownTool {
    /// None if the server does not offer it now.
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
    /// Of what was looked at; whatever is offered now if there is none.
    pub digest: Option<String>,
}

impl McpServers<'_> {
    /// All servers of the organisation, by name.
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

    pub async fn get(&self, name: &str) -> Result<KnownServer, Error> {
        let all = self.list().await?;
        let found = all.into_iter().find(|known| known.name == name);
        found.ok_or_else(|| Error::NotFound { what: "mcp server", name: name.to_string() })
    }

    /// What the servers of the organisation offer, as this process sees it.
    pub fn offered(&self) -> Vec<Server> {
        self.rooms
            .workflows
            .servers
            .servers()
            .into_iter()
            .filter(|server| server.org == Some(self.caller.org))
            .collect()
    }

    /// Accepts what a server offers now: these tools, or all of them if none is named.
    pub async fn accept(&self, server: &str, which: &[Acceptance]) -> Result<KnownServer, Error> {
        self.caller.check(Right::Admin)?;
        settled(|| self.accept_once(server, which)).await?;
        self.get(server).await
    }

    async fn accept_once(&self, name: &str, which: &[Acceptance]) -> Result<(), Error> {
        let decided = auth(self.rooms, self.caller.org).await?;
        let known = self.get(name).await?;
        if known.server.is_none() {
            let message = format!("{name} is not connected here: ask a server that its configuration names it to");
            return Err(Error::Refused(message));
        }
        let before = self.rooms.cluster.store.record_with_key(Accepted::KIND, &name_key(self.caller.org, name)).await?;
        let mut accepted = match &before {
            Some(record) => body::<Accepted>(record)?,
            None => Accepted { server: name.to_string(), ..Accepted::default() },
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
        let done = Change { records: vec![record], audit, grants_of: Some(self.caller.org), decided: Some(decided) };
        change(self.rooms, done, "mcp server", name).await
    }

    /// Tools of servers that the caller may call and that are as they were accepted, by name.
    pub async fn proxied(&self) -> Result<Vec<Arc<Offered>>, Error> {
        self.caller.check(Right::Run)?;
        let mut found: BTreeMap<String, Arc<Offered>> = BTreeMap::new();
        for server in self.offered() {
            let Some(accepted) = self.rooms.workflows.pins.accepted(self.caller.org, &server.name).await? else {
                continue;
            };
            let good = server.tools.into_iter().filter(|offered| {
                accepted.standing(offered) == Standing::Accepted && self.caller.grants.allow(Need::Tool(&offered.name))
            });
            for offered in good {
                // Of two with one name steps call the first, too.
                found.entry(offered.name.clone()).or_insert(offered);
            }
        }
        Ok(found.into_values().collect())
    }

    /// Calls a tool as a run of one step: with the rights, policies, log and durability of any other.
    pub async fn call_tool(&self, tool: &str, arguments: Value) -> Result<Started, Error> {
        self.caller.check(Right::Run)?;
        // The arguments are data: nothing in them is a template.
        let document = json!({"name": tool, "retention": "7d", "labels": {CALLED: tool},
            "tasks": {"call": {"tool": tool, "args": "{{input}}", "retries": 0}}, "output": "{{tasks.call.body}}"});
        let document = document.to_string();
        let checked = check(self.rooms, Source { text: &document, file: None })?;
        let epoch = self.rooms.access.epoch(self.caller.org).await?;
        let compiled = keep_for_test(self.rooms, self.caller, checked).await?;
        Runs::new(self.rooms, self.caller).call(Decided { compiled, epoch }, tool, arguments).await
    }
}

impl KnownServer {
    /// Puts what is offered beside what was accepted.
    fn compare(&mut self) {
        for offered in self.server.iter().flat_map(|server| &server.tools) {
            match self.tools.iter_mut().find(|known| known.tool == offered.tool) {
                Some(known) => known.offered = Some(offered.clone()),
                None => {
                    let (tool, offered) = (offered.tool.clone(), Some(offered.clone()));
                    self.tools.push(KnownTool { tool, offered, pin: None });
                }
            }
        }
        self.tools.sort_by(|a, b| a.tool.cmp(&b.tool));
    }

    fn choose(&self, wanted: &Acceptance) -> Result<&Arc<Offered>, Error> {
        let found = self.tools.iter().find(|known| known.tool == wanted.tool);
        let missing = || bad("tools", &format!("{} does not offer a tool {:?} now", self.name, wanted.tool));
        let offered = found.and_then(|known| known.offered.as_ref()).ok_or_else(missing)?;
        match &wanted.digest {
            Some(digest) if *digest != offered.digest() => {
                let message = format!("{} is no longer what was looked at: look again and accept that", wanted.tool);
                Err(Error::Refused(message))
            }
            _ => Ok(offered),
        }
    }
}

impl KnownTool {
    fn pinned(tool: String, pin: Pin) -> KnownTool {
        KnownTool { tool, offered: None, pin: Some(pin) }
    }
}
