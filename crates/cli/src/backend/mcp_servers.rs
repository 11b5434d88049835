//! MCP servers whose tools steps can call.

use super::{Backend, Directory, or_refusal};
use crate::client::Call;
use serde_json::json;
use stepwell_server::view::*;

impl Backend {
    pub async fn mcp_servers(&self) -> anyhow::Result<Vec<McpServerView>> {
        match self {
            Backend::Server(client) => Ok(client.body::<Page<McpServerView>>(Call::get(&["mcp-servers"])).await?.data),
            Backend::Directory(Directory { engine, caller }) => {
                Ok(or_refusal(engine.mcp_servers(caller).list().await)?.into_iter().map(McpServerView::from).collect())
            }
        }
    }

    pub async fn accept_tools(&self, server: &str, request: AcceptRequest) -> anyhow::Result<McpServerView> {
        match self {
            Backend::Server(client) => {
                client.data(Call::post(&["mcp-servers", server, "accept"]).json(json!(request))).await
            }
            Backend::Directory(Directory { engine, caller }) => {
                let which: Vec<_> = request.tools.into_iter().map(Into::into).collect();
                Ok(or_refusal(engine.mcp_servers(caller).accept(server, &which).await)?.into())
            }
        }
    }
}
