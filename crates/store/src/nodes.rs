//! Who executes: nodes and their leases, what they claim, and what they tell each other.

use crate::{Claim, Claimed, Error, NodeId, OrgId, RunId};
use async_trait::async_trait;
use stepwell_core::time::{Millis, Time};
use tokio::sync::broadcast;

#[async_trait]
pub trait Nodes: Send + Sync {
    /// Makes a node known: from now on it has to be heard of.
    async fn join(&self, node: NewNode) -> Result<(), Error>;
    /// Says that the node is alive; `false` if it was given up, or never joined, and must join under a new id.
    async fn beat(&self, node: NodeId) -> Result<bool, Error>;
    async fn leave(&self, node: NodeId) -> Result<(), Error>;
    /// Those that are alive, by id.
    async fn nodes(&self) -> Result<Vec<NodeRow>, Error>;

    /// Gives ready attempts to the node, the longest waiting of each organisation in turn.
    async fn claim(&self, claim: Claim) -> Result<Vec<Claimed>, Error>;
    /// What the store says the node has.
    async fn held(&self, node: NodeId) -> Result<Vec<Claimed>, Error>;
    /// Gives up nodes that were not heard of for too long.
    async fn give_up_silent(&self) -> Result<(), Error>;
    /// Attempts on nodes that are not alive.
    async fn orphans(&self, limit: u32) -> Result<Vec<Claimed>, Error>;

    /// Whether other processes may use the same data at the same time.
    fn is_shared(&self) -> bool {
        false
    }
    /// What other processes say, if there can be any.
    fn hear(&self) -> Option<broadcast::Receiver<Hint>> {
        None
    }
    /// Says something to the other processes, soon, and perhaps to none of them.
    fn tell(&self, _hint: Hint) {}
    /// By how many milliseconds the store's clock is ahead of this machine's: it decides where there are several.
    fn ahead(&self) -> i64 {
        0
    }
}

/// A process that begins to execute.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewNode {
    pub id: NodeId,
    /// What people call it: the machine's name, mostly.
    pub name: String,
    /// Of the program.
    pub version: String,
    pub slots: u32,
    pub joined: Time,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeRow {
    pub node: NewNode,
    /// For how long nothing was heard of it.
    pub quiet: Millis,
    /// Attempts that it has.
    pub running: u64,
}

/// What happened in another process. Rows are the truth: who misses a hint finds out a little later.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Hint {
    /// Runs that a node may execute an attempt of which does not count any more.
    pub runs: Vec<RunId>,
    /// Organisations whose epoch has changed.
    pub orgs: Vec<OrgId>,
    /// Some work was left for others.
    pub ready: bool,
}
