//! Nodes: their leases, the work they claim, and the hints they send each other.

use crate::{Claim, Claimed, Error, NodeId, OrgId, Position, RunId, WorkKey};
use async_trait::async_trait;
use std::sync::Arc;
use std::time::Duration;
use stepwell_core::time::{Millis, Time};
use tokio::sync::broadcast;

/// Membership of nodes, and the work they have claimed.
#[async_trait]
pub trait Nodes: Send + Sync {
    /// Registers a node: from now on it must send heartbeats.
    async fn join(&self, node: NewNode) -> Result<(), Error>;
    /// Records a heartbeat. Returns false if the node's lease has expired or it never joined; it must then join under a
    /// new id.
    async fn beat(&self, node: NodeId) -> Result<bool, Error>;
    /// Removes a node: its claims become orphans.
    async fn leave(&self, node: NodeId) -> Result<(), Error>;
    /// Returns the nodes that are alive, ordered by id.
    async fn nodes(&self) -> Result<Vec<NodeRow>, Error>;

    /// Claims ready attempts for a node: organisations with the fewest attempts there first, and of each the
    /// longest-waiting. No two claims cover one attempt.
    async fn claim(&self, claim: Claim) -> Result<Vec<Claimed>, Error>;
    /// Returns the attempts that a node has claimed.
    async fn held(&self, node: NodeId) -> Result<Vec<Claimed>, Error>;
    /// Removes nodes whose lease has expired.
    async fn give_up_silent(&self) -> Result<(), Error>;
    /// Returns attempts claimed by nodes that are not alive, ordered by run, step and attempt. `after` is the last
    /// attempt of the previous page.
    async fn orphans(&self, after: Option<(RunId, WorkKey)>, limit: u32) -> Result<Vec<Claimed>, Error>;

    /// Whether other processes may use the same data at the same time.
    fn is_shared(&self) -> bool {
        false
    }
    /// Subscribes to hints from other processes; `None` if the store is not shared.
    fn hear(&self) -> Option<broadcast::Receiver<Hint>> {
        None
    }
    /// Sends a hint to the other processes. Delivery is asynchronous and not guaranteed.
    fn tell(&self, _hint: Hint) {}
    /// How many milliseconds the store's clock is ahead of this machine's. A shared store's clock is authoritative.
    fn ahead(&self) -> i64 {
        0
    }
    /// Whether this process wrote the commit at a position, as far as it remembers.
    fn is_own(&self, _position: Position) -> bool {
        true
    }
    /// For how long writes of this process have been failing or waiting for an answer, if some are.
    fn stalled(&self) -> Option<Duration> {
        None
    }
    /// Background tasks of the store that keep panicking and are not restarted.
    fn gone_tasks(&self) -> Vec<Arc<str>> {
        Vec::new()
    }
}

/// A process that starts to execute steps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewNode {
    pub id: NodeId,
    /// A name for people, usually the host name.
    pub name: String,
    /// The version of the program.
    pub version: String,
    pub slots: u32,
    pub joined: Time,
}

/// A node that is alive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeRow {
    pub node: NewNode,
    /// Time since the last heartbeat.
    pub quiet: Millis,
    /// The number of attempts it has claimed.
    pub running: u64,
}

/// A change made by another process. Hints only save time: a node that misses one reads the rows a little later.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Hint {
    /// Runs that have attempts which a node may still execute although they no longer count.
    pub runs: Vec<RunId>,
    /// Organisations whose epoch has changed.
    pub orgs: Vec<OrgId>,
    /// There is ready work for other nodes.
    pub ready: bool,
    /// Organisations that have a run less: another may start.
    pub freed: Vec<OrgId>,
}
