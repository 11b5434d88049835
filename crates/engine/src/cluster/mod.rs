//! This process among the nodes that share a store: the store itself, time, ids, membership, and hints between nodes.
//!
//! The lowest room: of the engine it imports only errors. The rooms above react to membership changes and hints through
//! [`Peer`].

mod clock;
mod hints;
mod ids;
mod node;

pub use clock::{Clock, SharedClock, SystemClock, TokioClock};
pub use hints::{Peer, listen};
pub use ids::Ids;
pub use node::{Node, beat, host_name, join, refresh};

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use stepwell_store::{Hint, Store};
use tokio_util::sync::CancellationToken;

/// The state that all rooms of the engine share.
pub struct Cluster {
    pub store: Arc<dyn Store>,
    /// Whether other processes may use the store, too.
    pub shared: bool,
    pub clock: Arc<dyn Clock>,
    pub ids: Ids,
    pub node: Node,
    /// Cancelled when the engine stops.
    pub stop: CancellationToken,
    draining: AtomicBool,
}

impl Cluster {
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, ids: Ids, node: Node) -> Cluster {
        let shared = store.is_shared();
        let clock = if shared { Arc::new(SharedClock::new(clock, store.clone())) } else { clock };
        let (stop, draining) = (CancellationToken::new(), AtomicBool::new(false));
        Cluster { store, shared, clock, ids, node, stop, draining }
    }

    /// Stops this node from starting new work.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::SeqCst);
    }

    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }

    /// Sleeps, or returns early if the engine stops.
    pub async fn pause(&self, length: Duration) {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => {}
            () = tokio::time::sleep(length) => {}
        }
    }

    /// Sends a hint to the other nodes, if there are any.
    pub fn send_hint(&self, hint: Hint) {
        if self.shared {
            self.store.tell(hint);
        }
    }
}
