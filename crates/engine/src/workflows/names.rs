//! Names of tools. Within an organisation every name means one tool: the product's own tools first, then workflows that
//! are exposed as tools, then tools of MCP servers in the order of the configuration.

use crate::records::Kept;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use stepwell_store::{OrgId, Record};

/// Maximum length of a tool's name. All MCP clients accept 64.
const LONGEST: usize = 60;

/// The tools that Stepwell's MCP server offers.
pub const OWN_TOOLS: [&str; 20] = [
    "step_result",
    "tools_list",
    "workflow_approve",
    "workflow_cancel",
    "workflow_define",
    "workflow_deliver",
    "workflow_deny",
    "workflow_diff",
    "workflow_events",
    "workflow_help",
    "workflow_list_definitions",
    "workflow_list_runs",
    "workflow_rerun",
    "workflow_retry",
    "workflow_reviews",
    "workflow_schedule",
    "workflow_simulate",
    "workflow_start",
    "workflow_status",
    "workflow_wait",
];

/// The tools that are built into steps.
pub const BUILT_IN_TOOLS: [&str; 12] = [
    "base64_decode",
    "base64_encode",
    "echo",
    "fail",
    "hash_sha256",
    "http_request",
    "json_parse",
    "log",
    "now",
    "pushover_send",
    "random",
    "uuid",
];

/// Whether a name belongs to the product.
pub fn is_reserved(name: &str) -> bool {
    OWN_TOOLS.contains(&name) || BUILT_IN_TOOLS.contains(&name)
}

/// The name of a workflow's tool. A double underscore separates MCP servers from their tools, so it has none.
pub fn tool_name(workflow: &str) -> String {
    let mut name = String::new();
    for c in workflow.chars() {
        let c = if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        if !(c == '_' && name.ends_with('_')) && name.len() < LONGEST {
            name.push(c);
        }
    }
    name
}

/// A workflow's claim to the name of its tool. Its record has the workflow's id, and the name as its key.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ExposedTool {
    pub tool: String,
    pub workflow: String,
    /// No person has accepted the version: the name is still free for a tool of an MCP server.
    #[serde(default)]
    pub held: bool,
}

impl Kept for ExposedTool {
    const KIND: &'static str = "exposed_tool";
}

impl ExposedTool {
    pub fn record(&self, org: OrgId, workflow: &str) -> Record {
        crate::records::named(workflow.to_string(), org, &self.tool, self)
    }
}

/// Why a tool of an MCP server cannot have this name. `taken` are the workflows that are exposed as tools, by name.
pub fn clash(taken: &BTreeMap<String, String>, name: &str) -> Option<String> {
    if is_reserved(name) {
        return Some("its name is that of one of Stepwell's own tools".into());
    }
    taken.get(name).map(|workflow| format!("the workflow {workflow:?} is exposed as a tool of the same name"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_tool_is_one_that_clients_accept() {
        assert_eq!(tool_name("deploy-it"), "deploy-it");
        assert_eq!(tool_name("Send mail, please"), "Send_mail_please");
        assert_eq!(tool_name("a__b"), "a_b");
        assert_eq!(tool_name("日本"), "_");
        assert!(tool_name(&"x".repeat(128)).len() <= LONGEST);
    }
}
