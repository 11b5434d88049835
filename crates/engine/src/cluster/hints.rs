//! Hints that nodes on one store send each other. Nodes poll the rows anyway: a hint only reduces latency.

use super::Cluster;
use std::sync::Arc;
use std::time::Duration;
use stepwell_store::Hint;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;

/// Time between two checks whether awaited runs have ended.
const PAUSE: Duration = Duration::from_millis(50);

/// Callbacks into the rest of the engine for changes on other nodes.
#[async_trait::async_trait]
pub trait Peer: Send + Sync {
    /// The other nodes declared this node dead. It has joined under a new id and must drop the attempts it executes.
    fn expelled(&self);
    /// This node now owns another share of the runs.
    fn share_changed(&self);
    /// Another node wrote something.
    fn hint(&self, hint: Hint);
    /// Hints were lost: anything may have changed.
    fn hints_lost(&self);
    /// Checks whether awaited runs have ended on another node.
    async fn check_ends(&self);
}

/// Receives hints until the engine stops, if other processes can send any.
pub async fn listen(cluster: Arc<Cluster>, peer: Arc<dyn Peer>) {
    let Some(mut hints) = cluster.store.hear() else { return };
    let mut checked = Instant::now();
    let mut check: Option<Instant> = None;
    loop {
        let hint = tokio::select! {
            biased;
            () = cluster.stop.cancelled() => return,
            () = tokio::time::sleep_until(check.unwrap_or(checked)), if check.is_some() => {
                peer.check_ends().await;
                checked = Instant::now();
                check = None;
                continue;
            }
            hint = hints.recv() => hint,
        };
        match hint {
            Ok(hint) => peer.hint(hint),
            Err(RecvError::Lagged(_)) => peer.hints_lost(),
            Err(RecvError::Closed) => return,
        }
        check = check.or(Some(checked + PAUSE));
    }
}
