//! MCP servers and their tools as the API shows them.

use super::Instant;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stepwell_engine::commands::{Acceptance, KnownServer, KnownTool};
use stepwell_engine::upstream::State;
use utoipa::ToSchema;

/// An MCP server whose tools steps can call, as this node sees it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct McpServerView {
    pub name: String,
    /// `ready`, `connecting`, `down`, or `absent` if this node is not configured to connect to it.
    pub state: String,
    /// Why it is down.
    #[serde(default)]
    pub why: Option<String>,
    /// When it is tried again.
    #[serde(default)]
    pub next_attempt_at: Option<Instant>,
    /// `stdio` or `http`.
    #[serde(default)]
    pub transport: Option<String>,
    /// What it calls itself.
    #[serde(default)]
    pub about: Option<String>,
    #[serde(default)]
    pub protocol: Option<String>,
    /// How often this node connected to it.
    pub connections: u32,
    pub tools: Vec<McpToolView>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct McpToolView {
    /// As steps, grants and policies name it; none if the server does not offer it now.
    #[serde(default)]
    pub name: Option<String>,
    /// As its server knows it.
    pub tool: String,
    /// `accepted`; `changed` and `new` are held until an administrator accepts them; `missing` is not offered now.
    pub standing: String,
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
    /// What the server says of it: `readOnlyHint`, `idempotentHint`, …
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub annotations: Option<Value>,
    /// Over name, description, schemas and annotations as they are offered now.
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

/// What to accept of what a server offers now.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AcceptRequest {
    /// All that it offers if there is none.
    pub tools: Vec<AcceptedTool>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AcceptedTool {
    /// As its server knows it.
    pub tool: String,
    /// Of what was looked at: refused if the server offers something else by now.
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
        let standing = known.standing().map_or("missing", |standing| standing.name()).to_string();
        let KnownTool { tool, offered, pin } = known;
        let offered = offered.as_ref();
        McpToolView {
            name: offered.map(|offered| offered.name.clone()),
            tool,
            standing,
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
