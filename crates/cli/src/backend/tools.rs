//! Workflows that are exposed as tools.

use super::{Backend, Directory, or_refusal};
use crate::client::Call;
use stepwell_server::view::*;

impl Backend {
    pub async fn tools(&self) -> anyhow::Result<Vec<WorkflowToolView>> {
        match self {
            Backend::Server(client) => Ok(client.body::<Page<WorkflowToolView>>(Call::get(&["tools"])).await?.data),
            Backend::Directory(Directory { engine, caller }) => {
                Ok(or_refusal(engine.workflows(caller).tools().await)?.into_iter().map(Into::into).collect())
            }
        }
    }

    /// The tools that steps may call.
    pub async fn catalogue(&self) -> anyhow::Result<Vec<CatalogueTool>> {
        match self {
            Backend::Server(client) => {
                Ok(client.body::<Page<CatalogueTool>>(Call::get(&["tools", "catalogue"])).await?.data)
            }
            Backend::Directory(Directory { engine, caller }) => {
                Ok(or_refusal(engine.mcp_servers(caller).catalogue().await)?.into_iter().map(Into::into).collect())
            }
        }
    }
}
