//! Workflows that are exposed as tools: their type.

use super::WorkflowToolStanding;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stepwell_core::unseen::removed;
use stepwell_engine::commands::{CatalogueEntry, Exposed};
use utoipa::ToSchema;

/// A workflow that is exposed as a tool.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct WorkflowToolView {
    /// The name of the tool.
    pub name: String,
    /// The name of the workflow.
    pub workflow: String,
    pub workflow_id: String,
    /// Its newest version.
    pub version: u32,
    /// Who defined that version.
    pub defined_by: String,
    #[schema(value_type = WorkflowToolStanding)]
    pub standing: String,
    /// Why it is held.
    #[serde(default)]
    pub why: Option<String>,
    /// Whether agents are offered it: accepted, and the workflow enabled.
    pub offered: bool,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub input_schema: Option<Value>,
}

/// A tool that steps may call.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct CatalogueTool {
    pub name: String,
    /// Its first line.
    pub description: String,
    /// JSON Schema of its arguments.
    #[schema(value_type = Object)]
    pub input_schema: Value,
    /// Whether it says that it changes nothing.
    pub read_only: bool,
    /// Whether this key may call it.
    pub allowed: bool,
    /// Its MCP server; null for a built-in tool.
    #[serde(default)]
    pub server: Option<String>,
}

impl From<Exposed> for WorkflowToolView {
    fn from(exposed: Exposed) -> WorkflowToolView {
        let (row, definition) = (&exposed.compiled.row, &exposed.compiled.definition);
        WorkflowToolView {
            workflow: row.name.clone(),
            workflow_id: row.workflow.clone(),
            version: row.version,
            defined_by: row.by.clone(),
            standing: exposed.clash.as_ref().map_or(exposed.state.name(), |_| "held").to_string(),
            offered: exposed.is_offered(),
            description: definition.description.clone(),
            input_schema: definition.input_schema.clone(),
            why: exposed.clash,
            name: exposed.tool,
        }
    }
}

impl From<CatalogueEntry> for CatalogueTool {
    fn from(entry: CatalogueEntry) -> CatalogueTool {
        CatalogueTool {
            description: removed(entry.line()).chars().take(200).collect(),
            name: entry.tool.name,
            input_schema: entry.tool.input_schema,
            read_only: entry.tool.read_only,
            allowed: entry.allowed,
            server: entry.server,
        }
    }
}
