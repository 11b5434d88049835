//! Nodes of the one process that has the directory open. The directory lock proves that it is alive, so there are no
//! leases to write or expire.

use super::{SqliteStore, query};
use crate::*;
use stepwell_core::time::Millis;

#[async_trait]
impl Nodes for SqliteStore {
    async fn join(&self, node: NewNode) -> Result<(), Error> {
        self.alive().insert(node.id, node);
        Ok(())
    }

    async fn beat(&self, node: NodeId) -> Result<bool, Error> {
        Ok(self.alive().contains_key(&node))
    }

    async fn leave(&self, node: NodeId) -> Result<(), Error> {
        self.alive().remove(&node);
        Ok(())
    }

    async fn nodes(&self) -> Result<Vec<NodeRow>, Error> {
        let mut rows = Vec::new();
        let alive: Vec<NewNode> = self.alive().values().cloned().collect();
        for node in alive {
            let running = self.held(node.id).await?.len() as u64;
            rows.push(NodeRow { node, quiet: Millis(0), running });
        }
        Ok(rows)
    }

    async fn claim(&self, claim: Claim) -> Result<Vec<Claimed>, Error> {
        self.writer.write(move |db| query::claim(db, &claim)).await
    }

    async fn held(&self, node: NodeId) -> Result<Vec<Claimed>, Error> {
        self.read(move |db| query::held(db, node)).await
    }

    async fn give_up_silent(&self) -> Result<(), Error> {
        Ok(())
    }

    async fn orphans(&self, after: Option<(RunId, WorkKey)>, limit: u32) -> Result<Vec<Claimed>, Error> {
        let alive = self.alive().keys().copied().collect();
        self.read(move |db| query::orphans(db, &alive, after, limit)).await
    }
}
