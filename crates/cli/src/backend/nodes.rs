//! Nodes: the processes that execute steps.

use super::{Backend, Directory};
use crate::client::Call;
use stepwell_server::view::{NodeView, Page};

impl Backend {
    pub async fn nodes(&self) -> anyhow::Result<Vec<NodeView>> {
        match self {
            Backend::Server(client) => Ok(client.body::<Page<NodeView>>(Call::get(&["nodes"])).await?.data),
            Backend::Directory(Directory { engine, caller }) => {
                Ok(engine.nodes(caller).await?.into_iter().map(NodeView::from).collect())
            }
        }
    }
}
