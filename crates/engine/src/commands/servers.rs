//! MCP servers whose tools can be called: how they stand, accepting what they offer, and calling a tool outside of any
//! workflow, which is a run of one step.

use super::change::{auth, change, settled};
use super::define::{Source, check, keep_for_test};
use super::people::{bad, list};
use super::trigger::Call;
use super::{Caller, Right, Started};
use crate::engine::Engine;
use crate::error::Error;
use crate::people::{Kept, body, name_key};
use crate::record::json as text;
use crate::rights::Need;
use crate::upstream::{Accepted, Offered, Pin, Server, Standing};
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

impl Engine {
    /// All servers of the organisation, by name.
    pub async fn mcp_servers(&self, caller: &Caller) -> Result<Vec<KnownServer>, Error> {
        caller.check(Right::Read)?;
        let accepted = list::<Accepted>(&self.inner, caller.org).await?;
        let mut known: BTreeMap<String, KnownServer> = BTreeMap::new();
        for server in self.offered(caller) {
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

    pub async fn mcp_server(&self, caller: &Caller, name: &str) -> Result<KnownServer, Error> {
        let all = self.mcp_servers(caller).await?;
        let found = all.into_iter().find(|known| known.name == name);
        found.ok_or_else(|| Error::NotFound { what: "mcp server", name: name.to_string() })
    }

    /// What the servers of the organisation offer, as this process sees it.
    pub fn offered(&self, caller: &Caller) -> Vec<Server> {
        self.inner.servers.servers().into_iter().filter(|server| server.org == Some(caller.org)).collect()
    }

    /// Accepts what a server offers now: these tools, or all of them if none is named.
    pub async fn accept_tools(
        &self,
        caller: &Caller,
        server: &str,
        which: &[Acceptance],
    ) -> Result<KnownServer, Error> {
        caller.check(Right::Admin)?;
        settled(|| self.accept_once(caller, server, which)).await?;
        self.mcp_server(caller, server).await
    }

    async fn accept_once(&self, caller: &Caller, name: &str, which: &[Acceptance]) -> Result<(), Error> {
        let decided = auth(&self.inner, caller.org).await?;
        let known = self.mcp_server(caller, name).await?;
        if known.server.is_none() {
            let message = format!("{name} is not connected here: ask a server that its configuration names it to");
            return Err(Error::Refused(message));
        }
        let before = self.inner.store.record_with_key(Accepted::KIND, &name_key(caller.org, name)).await?;
        let mut accepted = match &before {
            Some(record) => body::<Accepted>(record)?,
            None => Accepted { server: name.to_string(), ..Accepted::default() },
        };
        let now = self.inner.clock.now();
        let offered = known.tools.iter().filter_map(|tool| tool.offered.as_ref());
        let chosen: Vec<&Arc<Offered>> = match which {
            [] => offered.collect(),
            which => which.iter().map(|wanted| known.choose(wanted)).collect::<Result<_, _>>()?,
        };
        for offered in &chosen {
            accepted.tools.insert(offered.tool.clone(), offered.pin(now, &caller.name));
        }
        let record = match before {
            Some(record) => RecordChange::Replace(Record { body: text(&accepted), ..record }),
            None => RecordChange::Create(accepted.record(caller.org)),
        };
        let digests: BTreeMap<&str, String> = chosen.iter().map(|offered| (&*offered.tool, offered.digest())).collect();
        let audit = vec![caller.audit(now, "mcp_server.accept", name, json!(digests))];
        let done = Change { records: vec![record], audit, grants_of: Some(caller.org), decided: Some(decided) };
        change(&self.inner, done, "mcp server", name).await
    }

    /// Tools of servers that the caller may call and that are as they were accepted, by name.
    pub async fn proxied(&self, caller: &Caller) -> Result<Vec<Arc<Offered>>, Error> {
        caller.check(Right::Run)?;
        let mut found: BTreeMap<String, Arc<Offered>> = BTreeMap::new();
        for server in self.offered(caller) {
            let Some(accepted) = self.inner.pins.accepted(caller.org, &server.name).await? else { continue };
            let good = server.tools.into_iter().filter(|offered| {
                accepted.standing(offered) == Standing::Accepted && caller.grants.allow(Need::Tool(&offered.name))
            });
            for offered in good {
                // Of two with one name steps call the first, too.
                found.entry(offered.name.clone()).or_insert(offered);
            }
        }
        Ok(found.into_values().collect())
    }

    /// Calls a tool as a run of one step: with the rights, policies, log and durability of any other.
    pub async fn call_tool(&self, caller: &Caller, tool: &str, arguments: Value) -> Result<Started, Error> {
        caller.check(Right::Run)?;
        // The arguments are data: nothing in them is a template.
        let document = json!({"name": tool, "retention": "7d", "labels": {CALLED: tool},
            "tasks": {"call": {"tool": tool, "args": "{{input}}", "retries": 0}}, "output": "{{tasks.call.body}}"});
        let document = document.to_string();
        let definition = check(&self.inner, Source { text: &document, file: None })?;
        let epoch = self.inner.epoch(caller.org).await?;
        let compiled = keep_for_test(&self.inner, caller, &definition, &document).await?;
        self.start_call(caller, Call { compiled, epoch, arguments, tool }).await
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
