//! Everything that runs refer to by name: compiled definitions, connections, saved queries, and the tools of MCP
//! servers.
//!
//! May use: `secrets`, `access` and below. Not here: storing a new version (`commands`), runs (`run`).

mod connections;
mod definitions;
mod labels;
mod names;
mod queries;
mod reviews;
mod tools;

pub use connections::{Connection, Connections, Database, Part, hide_password, parts};
pub use definitions::{Checked, Compiled, Definitions, code, read as read_definition, secrets as secrets_of};
pub use labels::{label_list, labels};
pub use names::{BUILT_IN_TOOLS, ExposedTool, OWN_TOOLS, clash, is_reserved, tool_name};
pub use queries::SavedQuery;
pub use reviews::{Origin, Review, ReviewAnswer, ReviewState, Reviewed};
pub use tools::{Accepted, FirstSeen, Held, NoServers, Offered, Pin, Pins, Server, Servers, Standing, State};

use crate::access::{Access, ByEpoch};
use crate::error::Error;
use std::sync::Arc;
use stepwell_store::{DefinitionRow, OrgId};

pub struct Workflows {
    pub access: Arc<Access>,
    /// MCP servers that this process is connected to.
    pub servers: Arc<dyn Servers>,
    pub pins: Pins,
    definitions: Definitions,
    reviewed: ByEpoch<i64, Arc<Reviewed>>,
}

impl Workflows {
    pub fn new(access: Arc<Access>, servers: Arc<dyn Servers>) -> Workflows {
        let pins = Pins::new(access.cluster.store.clone());
        Workflows { access, servers, pins, definitions: Definitions::default(), reviewed: ByEpoch::default() }
    }

    /// The newest version of a workflow that is not deleted, by name or `wf_…`.
    pub async fn newest(&self, org: OrgId, name: &str) -> Result<Arc<Compiled>, Error> {
        self.definitions.newest(&self.access, org, name).await
    }

    /// The version with this row id.
    pub async fn version(&self, id: i64) -> Result<Arc<Compiled>, Error> {
        self.definitions.get(&*self.access.cluster.store, id).await
    }

    /// Caches a stored version that was checked already.
    pub fn insert(&self, row: DefinitionRow, checked: Checked) -> Arc<Compiled> {
        self.definitions.insert(row, checked)
    }

    /// Compiles a stored version, unless it is cached.
    pub fn compile(&self, row: DefinitionRow) -> Result<Arc<Compiled>, Error> {
        self.definitions.keep(row)
    }
}
