//! Workflows as tools: their names, which belong to one tool each. A version is offered as a tool only if it is accepted.

use super::Workflows;
use crate::access::Right;
use crate::error::Error;
use crate::records::{Kept, body, list, name_key, put};
use crate::workflows::{Accepted, Compiled, ExposedTool, ReviewState, is_reserved, tool_name};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use stepwell_core::definition::Definition;
use stepwell_formats::{Fault, Faults, code};
use stepwell_store::RecordChange;

/// A workflow that is exposed as a tool.
#[derive(Clone, Debug)]
pub struct Exposed {
    /// The name of the tool.
    pub tool: String,
    pub compiled: Arc<Compiled>,
    pub state: ReviewState,
    pub enabled: bool,
    /// Why it is not offered although it is accepted: its name belongs to another tool.
    pub clash: Option<String>,
}

impl Exposed {
    /// Whether agents are offered it.
    pub fn is_offered(&self) -> bool {
        self.enabled && self.state == ReviewState::Accepted && self.clash.is_none()
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
            let state = self.rooms.workflows.reviewed(&compiled.row).await?.state;
            found.push(Exposed { tool, compiled, state, enabled, clash });
        }
        Ok(found)
    }

    /// The claim of a version to the name of its tool, or its end.
    pub(super) async fn claim(
        &self,
        workflow: &str,
        version: u32,
        definition: &Definition,
        accepted: bool,
    ) -> Result<Option<RecordChange>, Error> {
        if !definition.expose_as_tool {
            return Ok((version > 1).then(|| unclaimed(workflow)));
        }
        let before = self.rooms.cluster.store.record(ExposedTool::KIND, workflow).await?;
        let (tool, workflow_name) = (tool_name(&definition.name), definition.name.clone());
        let claim = ExposedTool { tool, workflow: workflow_name, held: !accepted };
        Ok(Some(put(before, &claim, || claim.record(self.caller.org, workflow)).1))
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
