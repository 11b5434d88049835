//! Nodes of the in-memory store: leases never expire on their own.

use super::MemoryStore;
use crate::*;
use stepwell_core::time::Millis;
use tokio::sync::broadcast;

#[async_trait]
impl Nodes for MemoryStore {
    async fn join(&self, node: NewNode) -> Result<(), Error> {
        self.lock().nodes.insert(node.id, node);
        Ok(())
    }

    async fn beat(&self, node: NodeId) -> Result<bool, Error> {
        Ok(self.lock().nodes.contains_key(&node))
    }

    async fn leave(&self, node: NodeId) -> Result<(), Error> {
        self.lock().nodes.remove(&node);
        Ok(())
    }

    async fn nodes(&self) -> Result<Vec<NodeRow>, Error> {
        let state = self.lock();
        let row = |node: &NewNode| {
            let running = state.work.held(node.id).count() as u64;
            NodeRow { node: node.clone(), quiet: Millis(0), running }
        };
        Ok(state.nodes.values().map(row).collect())
    }

    async fn claim(&self, claim: Claim) -> Result<Vec<Claimed>, Error> {
        Ok(self.lock().work.claim(claim))
    }

    async fn held(&self, node: NodeId) -> Result<Vec<Claimed>, Error> {
        Ok(self.lock().work.held(node).collect())
    }

    async fn give_up_silent(&self) -> Result<(), Error> {
        Ok(())
    }

    async fn orphans(&self, after: Option<(RunId, WorkKey)>, limit: u32) -> Result<Vec<Claimed>, Error> {
        let state = self.lock();
        Ok(state.work.orphans(&state.nodes, after, limit))
    }

    fn is_shared(&self) -> bool {
        self.hints.is_some()
    }

    fn hear(&self) -> Option<broadcast::Receiver<Hint>> {
        self.hints.as_ref().map(broadcast::Sender::subscribe)
    }

    fn tell(&self, hint: Hint) {
        if let Some(hints) = &self.hints {
            // There may be no subscriber.
            let _ = hints.send(hint);
        }
    }

    fn ahead(&self) -> i64 {
        self.ahead
    }
}
