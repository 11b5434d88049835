//! Nodes of the in-memory store. Leases are measured on the runtime's clock, which a test may move.

use super::MemoryStore;
use super::state::State;
use crate::*;
use stepwell_core::time::Millis;
use tokio::sync::broadcast;
use tokio::time::Instant;

#[async_trait]
impl Nodes for MemoryStore {
    async fn join(&self, node: NewNode) -> Result<(), Error> {
        let mut state = self.lock();
        state.beats.insert(node.id, Instant::now());
        state.nodes.insert(node.id, node);
        Ok(())
    }

    async fn beat(&self, node: NodeId) -> Result<bool, Error> {
        let mut state = self.lock();
        let alive = state.nodes.contains_key(&node);
        if alive {
            state.beats.insert(node, Instant::now());
        }
        Ok(alive)
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
        let mut state = self.lock();
        let State { nodes, beats, .. } = &mut *state;
        nodes.retain(|node, _| beats.get(node).is_some_and(|beat| beat.elapsed() < self.lease));
        beats.retain(|node, _| nodes.contains_key(node));
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use stepwell_core::time::Time;

    #[tokio::test]
    async fn a_node_that_is_silent_for_its_lease_is_given_up_and_one_that_beats_is_not() {
        let store = MemoryStore::shared();
        let (name, version) = (String::from("one"), String::from("1"));
        store.join(NewNode { id: NodeId(1), name, version, slots: 1, joined: Time(0) }).await.expect("memory");
        store.give_up_silent().await.expect("memory");
        assert!(store.beat(NodeId(1)).await.expect("memory"));
        store.leased(Duration::ZERO).give_up_silent().await.expect("memory");
        assert!(!store.beat(NodeId(1)).await.expect("memory"));
        assert!(store.nodes().await.expect("memory").is_empty());
    }
}
