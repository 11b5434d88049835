//! Nodes: the processes that execute steps.

use super::Instant;
use serde::{Deserialize, Serialize};
use stepwell_core::time::Millis;
use stepwell_store::NodeRow;
use utoipa::ToSchema;

/// A process that executes steps.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct NodeView {
    /// `node_…`, new for every process.
    pub id: String,
    /// The configured name.
    pub name: String,
    /// Version of the program.
    pub version: String,
    /// Maximum number of concurrent attempts.
    pub slots: u32,
    /// Attempts running now.
    pub running: u64,
    pub joined_at: Instant,
    /// Time since its last heartbeat.
    pub quiet_ms: u64,
}

impl From<NodeRow> for NodeView {
    fn from(row: NodeRow) -> NodeView {
        let NodeRow { node, quiet: Millis(quiet_ms), running } = row;
        NodeView {
            id: format!("node_{:x}", node.id.0),
            name: node.name,
            version: node.version,
            slots: node.slots,
            running,
            joined_at: node.joined.into(),
            quiet_ms,
        }
    }
}
