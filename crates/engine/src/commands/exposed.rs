//! Workflows as tools: their names, which belong to one tool each, and accepting what agents expose.
//!
//! A version that a person defines is accepted with it. A version that an agent's key defines is held until a person
//! accepts it: other users may call the tool.

use super::Workflows;
use super::change::{change, current_auth, retry_on_conflict};
use crate::access::Right;
use crate::error::Error;
use crate::records::{Kept, body, list, name_key, put};
use crate::workflows::{Accepted, AcceptedVersion, Compiled, ExposedTool, Standing, is_reserved, tool_name};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use stepwell_core::definition::Definition;
use stepwell_formats::{Fault, Faults, code};
use stepwell_store::{Change, RecordChange};

/// A workflow that is exposed as a tool.
#[derive(Clone, Debug)]
pub struct Exposed {
    /// The name of the tool.
    pub tool: String,
    pub compiled: Arc<Compiled>,
    /// Whether the newest version is accepted, changed since, or never was.
    pub standing: Standing,
    /// `None` also for workflows that were exposed before versions had to be accepted.
    pub accepted: Option<AcceptedVersion>,
    pub enabled: bool,
    /// Why it is not offered although it is accepted: its name belongs to another tool.
    pub clash: Option<String>,
}

impl Exposed {
    /// Whether agents are offered it.
    pub fn is_offered(&self) -> bool {
        self.enabled && self.standing == Standing::Accepted && self.clash.is_none()
    }
}

impl Workflows<'_> {
    /// All workflows that are exposed as tools, by name. Needs the right to read.
    pub async fn tools(&self) -> Result<Vec<Exposed>, Error> {
        self.caller.check(Right::Read)?;
        self.all_exposed().await
    }

    /// The workflows that agents are offered as tools, by name. Needs the right to run.
    pub async fn exposed(&self) -> Result<Vec<Exposed>, Error> {
        self.caller.check(Right::Run)?;
        Ok(self.all_exposed().await?.into_iter().filter(Exposed::is_offered).collect())
    }

    async fn all_exposed(&self) -> Result<Vec<Exposed>, Error> {
        let (store, org) = (&*self.rooms.cluster.store, self.caller.org);
        let claims = list::<ExposedTool>(store, org).await?;
        let claims: BTreeMap<String, ExposedTool> = claims.into_iter().map(|with| (with.id, with.is)).collect();
        let mut taken: BTreeSet<String> = claims.values().map(|claim| claim.tool.clone()).collect();
        let mut found = Vec::new();
        for row in store.definitions(org).await? {
            let compiled = self.rooms.workflows.compile(row)?;
            if !compiled.definition.expose_as_tool {
                continue;
            }
            let tool = tool_name(&compiled.row.name);
            let enabled = self.state(&compiled).await?.enabled;
            let claim = claims.get(&compiled.row.workflow);
            // Exposed before names were claimed: it has its name unless a later workflow claimed it.
            let lost = is_reserved(&tool) || claim.is_none() && !taken.insert(tool.clone());
            let clash = lost.then(|| "its name belongs to another tool: define it under another name".to_string());
            let accepted = claim.and_then(|claim| claim.accepted.clone());
            let standing = match (&accepted, claim) {
                (_, None) => Standing::Accepted,
                (Some(accepted), _) if accepted.version == compiled.row.version => Standing::Accepted,
                (Some(_), _) => Standing::Changed,
                (None, _) => Standing::New,
            };
            found.push(Exposed { tool, compiled, standing, accepted, enabled, clash });
        }
        Ok(found)
    }

    /// Accepts the newest version of a workflow as a tool; `version` is the one that was reviewed. Needs the right to
    /// define, and a person.
    pub async fn accept_tool(&self, workflow: &str, version: Option<u32>) -> Result<Exposed, Error> {
        self.caller.check(Right::Define)?;
        self.caller.check_person("accept tools")?;
        let id = retry_on_conflict(|| self.accept_tool_once(workflow, version)).await?;
        let found = self.all_exposed().await?.into_iter().find(|exposed| exposed.compiled.row.workflow == id);
        found.ok_or_else(|| Error::NotFound { what: "tool", name: workflow.to_string() })
    }

    async fn accept_tool_once(&self, workflow: &str, version: Option<u32>) -> Result<String, Error> {
        let decided = current_auth(self.rooms, self.caller.org).await?;
        let compiled = self.newest(workflow).await?;
        let (row, definition) = (&compiled.row, &compiled.definition);
        if !definition.expose_as_tool {
            return Err(Error::NotNow(format!("the workflow {:?} is not exposed as a tool", row.name)));
        }
        if version.is_some_and(|version| version != row.version) {
            let message = format!("{:?} has changed since it was reviewed: review version {}", row.name, row.version);
            return Err(Error::Refused(message));
        }
        self.check_tool_name(Some(&row.workflow), definition).await?;
        let now = self.rooms.cluster.clock.now();
        let records = vec![self.claimed(&row.workflow, definition, Some(row.version)).await?];
        let audit = vec![self.caller.audit(now, "workflow.accept_tool", &row.name, json!({"version": row.version}))];
        let update = Change { records, audit, grants_of: Some(self.caller.org), decided: Some(decided) };
        change(self.rooms, update, "workflow", workflow).await?;
        Ok(row.workflow.clone())
    }

    /// The claim of a new version to the name of its tool, or its end.
    pub(super) async fn claim(
        &self,
        workflow: &str,
        version: u32,
        definition: &Definition,
    ) -> Result<Option<RecordChange>, Error> {
        if !definition.expose_as_tool {
            return Ok((version > 1).then(|| unclaimed(workflow)));
        }
        let accepted = (!self.caller.grants.is_agent()).then_some(version);
        Ok(Some(self.claimed(workflow, definition, accepted).await?))
    }

    /// The claim with this version accepted, or as it was accepted before.
    async fn claimed(
        &self,
        workflow: &str,
        definition: &Definition,
        version: Option<u32>,
    ) -> Result<RecordChange, Error> {
        let before = self.rooms.cluster.store.record(ExposedTool::KIND, workflow).await?;
        let known: Option<ExposedTool> = before.as_ref().map(body).transpose()?;
        let accepted = version.map(|version| AcceptedVersion {
            version,
            at: self.rooms.cluster.clock.now(),
            by: self.caller.name.to_string(),
        });
        let accepted = accepted.or(known.and_then(|known| known.accepted));
        let claim = ExposedTool { tool: tool_name(&definition.name), workflow: definition.name.clone(), accepted };
        Ok(put(before, &claim, || claim.record(self.caller.org, workflow)).1)
    }

    /// Refuses a name that belongs to another tool.
    pub(super) async fn check_tool_name(&self, workflow: Option<&str>, definition: &Definition) -> Result<(), Error> {
        if !definition.expose_as_tool {
            return Ok(());
        }
        let tool = tool_name(&definition.name);
        let Some(owner) = self.owner(workflow, &tool).await? else { return Ok(()) };
        let message = format!("its tool would be named `{tool}`, which is the name of {owner}; rename the workflow");
        let fault = Fault::of(code::TOOL_NAME_TAKEN, "expose_as_tool".into(), message);
        Err(Error::Definition(Faults::of(vec![fault], 0)))
    }

    /// What else has a tool of that name.
    async fn owner(&self, workflow: Option<&str>, tool: &str) -> Result<Option<String>, Error> {
        if is_reserved(tool) {
            return Ok(Some("one of Stepwell's own tools".into()));
        }
        let (store, org) = (&*self.rooms.cluster.store, self.caller.org);
        let claim = store.record_with_key(ExposedTool::KIND, &name_key(org, tool)).await?;
        if let Some(claim) = claim.filter(|claim| workflow != Some(&claim.id)) {
            return Ok(Some(format!("the workflow {:?}", body::<ExposedTool>(&claim)?.workflow)));
        }
        for row in store.definitions(org).await? {
            // Exposed before names were claimed.
            let may_be = workflow != Some(&row.workflow) && row.source.contains("expose_as_tool");
            if may_be
                && tool_name(&row.name) == tool
                && self.rooms.workflows.compile(row.clone())?.definition.expose_as_tool
            {
                return Ok(Some(format!("the workflow {:?}", row.name)));
            }
        }
        let live = self.rooms.workflows.servers.servers().into_iter().filter(|server| server.org == Some(org));
        if let Some(server) = { live }.find(|server| server.tools.iter().any(|offered| offered.name == tool)) {
            return Ok(Some(format!("a tool of the MCP server {}", server.name)));
        }
        // Servers that are not connected, or only to other nodes.
        let accepted = list::<Accepted>(store, org).await?.into_iter().map(|with| with.is);
        let remembered = { accepted }.find(|server| server.plain && server.tools.contains_key(tool));
        Ok(remembered.map(|server| format!("a tool of the MCP server {}", server.server)))
    }
}

/// Ends a workflow's claim to the name of its tool.
pub(super) fn unclaimed(workflow: &str) -> RecordChange {
    RecordChange::Remove { kind: ExposedTool::KIND.into(), id: workflow.to_string() }
}
