//! MCP servers and their tools: request and response types.

use super::{Instant, McpServerState, McpTransport, ToolStanding};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stepwell_engine::commands::{Acceptance, KnownServer, KnownTool};
use stepwell_engine::upstream::State;
use utoipa::ToSchema;

/// An MCP server whose tools steps can call, as seen by this node.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct McpServerView {
    pub name: String,
    #[schema(value_type = McpServerState)]
    pub state: String,
    /// Why it is down.
    #[serde(default)]
    pub why: Option<String>,
    /// When the next attempt to connect is made.
    #[serde(default)]
    pub next_attempt_at: Option<Instant>,
    #[serde(default)]
    #[schema(value_type = Option<McpTransport>)]
    pub transport: Option<String>,
    /// The name that the server reports.
    #[serde(default)]
    pub about: Option<String>,
    #[serde(default)]
    pub protocol: Option<String>,
    /// How often this node has connected to it.
    pub connections: u32,
    pub tools: Vec<McpToolView>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct McpToolView {
    /// The name in steps, grants and policies; none if the server does not offer the tool now.
    #[serde(default)]
    pub name: Option<String>,
    /// The name on its server.
    pub tool: String,
    #[schema(value_type = ToolStanding)]
    pub standing: String,
    /// Why it cannot be called.
    #[serde(default)]
    pub why: Option<String>,
    #[serde(default)]
    pub title: Option<String>,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub input_schema: Option<Value>,
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub output_schema: Option<Value>,
    /// The server's hints: `readOnlyHint`, `idempotentHint`, …
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub annotations: Option<Value>,
    /// Digest of the name, description, schemas and annotations offered now.
    #[serde(default)]
    pub digest: Option<String>,
    #[serde(default)]
    pub accepted_digest: Option<String>,
    #[serde(default)]
    pub accepted_description: Option<String>,
    #[serde(default)]
    pub accepted_at: Option<Instant>,
    #[serde(default)]
    pub accepted_by: Option<String>,
}

/// The tools to accept.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AcceptRequest {
    /// All tools on offer if omitted.
    pub tools: Vec<AcceptedTool>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AcceptedTool {
    /// The name on its server.
    pub tool: String,
    /// Digest of the reviewed tool. Refused if the server offers a different one by now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

impl From<AcceptedTool> for Acceptance {
    fn from(AcceptedTool { tool, digest }: AcceptedTool) -> Acceptance {
        Acceptance { tool, digest }
    }
}

impl From<KnownServer> for McpServerView {
    fn from(known: KnownServer) -> McpServerView {
        let server = known.server.as_ref();
        let (why, next) = match server.map(|server| &server.state) {
            Some(State::Down { why, next }) => (Some(why.clone()), Some((*next).into())),
            Some(State::Connecting | State::Ready) | None => (None, None),
        };
        McpServerView {
            name: known.name,
            state: server.map_or("absent", |server| server.state.name()).to_string(),
            why,
            next_attempt_at: next,
            transport: server.map(|server| server.transport.to_string()),
            about: server.and_then(|server| server.about.clone()),
            protocol: server.and_then(|server| server.protocol.clone()),
            connections: server.map_or(0, |server| server.connected),
            tools: known.tools.into_iter().map(McpToolView::from).collect(),
        }
    }
}

impl From<KnownTool> for McpToolView {
    fn from(known: KnownTool) -> McpToolView {
        let standing = known.standing().map_or("missing", |standing| standing.name());
        let KnownTool { tool, offered, held, pin } = known;
        let standing = held.as_ref().map_or(standing, |_| "held").to_string();
        let offered = offered.as_ref();
        McpToolView {
            name: offered.map(|offered| &offered.name).or(held.as_ref().map(|held| &held.name)).cloned(),
            tool,
            standing,
            why: held.map(|held| held.why),
            title: offered.and_then(|offered| offered.title.clone()),
            description: offered.map(|offered| offered.description.clone()),
            input_schema: offered.map(|offered| offered.input_schema.clone()),
            output_schema: offered.and_then(|offered| offered.output_schema.clone()),
            annotations: offered.and_then(|offered| offered.annotations.clone()),
            digest: offered.map(|offered| offered.digest()),
            accepted_digest: pin.as_ref().map(|pin| pin.digest.clone()),
            accepted_description: pin.as_ref().map(|pin| pin.description.clone()),
            accepted_at: pin.as_ref().map(|pin| pin.at.into()),
            accepted_by: pin.map(|pin| pin.by),
        }
    }
}
