//! The application API: the only way in. REST, MCP, the command line and the dashboard are thin over it.
//!
//! Commands are grouped by noun. A handle knows its caller, and every command checks the caller's rights:
//! `engine.runs(&caller).trigger(…)`. What comes with a token in place of a caller is in [`Inbound`] and [`Identity`].

mod change;
mod channels;
mod connections;
mod definitions;
mod gates;
mod identity;
mod inbound;
mod input;
mod keys;
mod organisations;
mod policies;
mod queries;
mod runs;
mod secrets;
mod servers;
mod steps;
mod users;
mod workflows;

pub use crate::access::Right;
pub use crate::records::With;
pub use crate::run::start::{End, Started};
pub use channels::{NewChannel, Wishes};
pub use connections::NewConnection;
pub use definitions::{Defined, Source};
pub use gates::{Approval, Decision, Refusal};
pub use inbound::{Asks, Linked};
pub use keys::{KeyChange, NewKey};
pub use organisations::{AuditQuery, Organisation, Usage};
pub use policies::NewPolicy;
pub use queries::NewQuery;
pub use runs::{
    AttemptView, Bulk, EventView, ParentView, Retry, RunFilters, RunPage, RunQuery, RunSummary, RunView, StepView,
    Trigger, page_size,
};
pub use secrets::{NewSecret, Rotated};
pub use servers::{Acceptance, CALLED, KnownServer, KnownTool};
pub use steps::Override;
pub use users::{NewUser, UserChange};
pub use workflows::{ScheduleView, State, WorkflowPage, WorkflowQuery};

use crate::access::Caller;
use crate::engine::Engine;
use crate::error::Error;
use crate::rooms::Rooms;
use std::sync::Arc;
use stepwell_store::NodeRow;

/// Declares a handle for each noun, and the method of the engine that returns it.
macro_rules! handles {
    ($($(#[$doc:meta])* $method:ident: $handle:ident,)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy)]
            pub struct $handle<'a> {
                rooms: &'a Arc<Rooms>,
                caller: &'a Caller,
            }

            impl<'a> $handle<'a> {
                fn new(rooms: &'a Arc<Rooms>, caller: &'a Caller) -> $handle<'a> {
                    $handle { rooms, caller }
                }
            }
        )*

        impl Engine {
            $(
                $(#[$doc])*
                pub fn $method<'a>(&'a self, caller: &'a Caller) -> $handle<'a> {
                    $handle::new(&self.rooms, caller)
                }
            )*
        }
    };
}

handles! {
    /// Runs: starting, controlling and reading them.
    runs: Runs,
    /// Single steps of runs.
    steps: Steps,
    /// What people are asked, and their answers.
    gates: Gates,
    /// Workflows, their versions, switches, schedules and addresses.
    workflows: Workflows,
    /// Users of the organisation.
    users: Users,
    /// Roles of the organisation.
    roles: Roles,
    /// API keys.
    keys: Keys,
    /// Secrets. Their values go in and never come out.
    secrets: Secrets,
    /// Databases for query steps.
    connections: Connections,
    /// Saved queries.
    queries: Queries,
    /// Policies about calls.
    policies: Policies,
    /// Where people are notified, and what became of notifications.
    channels: Channels,
    /// MCP servers and what was accepted of their tools.
    mcp_servers: McpServers,
    /// Organisations and their plans.
    organisations: Organisations,
    /// The audit trail.
    audit: Audit,
}

/// Calls that carry a token in place of a key.
#[derive(Clone, Copy)]
pub struct Inbound<'a> {
    rooms: &'a Arc<Rooms>,
}

/// Finds the caller of a request, and signs people in.
#[derive(Clone, Copy)]
pub struct Identity<'a> {
    rooms: &'a Arc<Rooms>,
}

impl<'a> Identity<'a> {
    fn new(rooms: &'a Arc<Rooms>) -> Identity<'a> {
        Identity { rooms }
    }
}

impl Engine {
    pub fn inbound(&self) -> Inbound<'_> {
        Inbound { rooms: &self.rooms }
    }

    pub fn identity(&self) -> Identity<'_> {
        Identity::new(&self.rooms)
    }

    /// The nodes on this store, by id.
    pub async fn nodes(&self, caller: &Caller) -> Result<Vec<NodeRow>, Error> {
        caller.check(Right::Read)?;
        Ok(self.rooms.cluster.store.nodes().await?)
    }
}
