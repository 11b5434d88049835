//! The tools that steps may call: built-in ones, and the accepted tools of connected MCP servers.

use super::McpServers;
use crate::access::{Need, Right};
use crate::error::Error;
use crate::execute::ToolInfo;
use crate::workflows::Standing;
use serde_json::Value;
use std::collections::BTreeMap;
use stepwell_core::graph::Call;

/// A tool of the catalogue.
#[derive(Clone, PartialEq, Debug)]
pub struct CatalogueEntry {
    pub tool: ToolInfo,
    /// Its MCP server; `None` for a built-in tool.
    pub server: Option<String>,
    /// Whether the caller may call it.
    pub allowed: bool,
}

impl McpServers<'_> {
    /// The tools that steps may call, by name, with those that the caller may not call marked. Needs the right to
    /// define or to read.
    pub async fn catalogue(&self) -> Result<Vec<CatalogueEntry>, Error> {
        if !self.caller.may(Right::Define) {
            self.caller.check(Right::Read)?;
        }
        let built_in = self.rooms.executor.kinds.get(Call::Tool.name()).map(|kind| kind.tools()).unwrap_or_default();
        let mut found: BTreeMap<String, (ToolInfo, Option<String>)> =
            built_in.into_iter().map(|tool| (tool.name.clone(), (tool, None))).collect();
        for server in self.offered() {
            let pins = &self.rooms.workflows.pins;
            let Some(accepted) = pins.accepted(self.caller.org, &server.name).await? else { continue };
            for offered in server.tools.iter().filter(|offered| accepted.standing(offered) == Standing::Accepted) {
                let hint = |name: &str| offered.annotations.as_ref()?.get(name)?.as_bool();
                let tool = ToolInfo {
                    name: offered.name.clone(),
                    description: offered.description.clone(),
                    input_schema: offered.input_schema.clone(),
                    read_only: hint("readOnlyHint") == Some(true),
                };
                // Of two with the same name, steps call the first.
                found.entry(tool.name.clone()).or_insert((tool, Some(server.name.to_string())));
            }
        }
        let entry = |(tool, server): (ToolInfo, Option<String>)| {
            let allowed = self.caller.grants.allow(Need::Tool(&tool.name));
            CatalogueEntry { tool, server, allowed }
        };
        Ok(found.into_values().map(entry).collect())
    }
}

impl CatalogueEntry {
    /// The first line of its description.
    pub fn line(&self) -> &str {
        self.tool.description.lines().next().unwrap_or_default()
    }

    pub fn schema(&self) -> &Value {
        &self.tool.input_schema
    }
}
