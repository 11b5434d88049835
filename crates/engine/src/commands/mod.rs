//! The application API. REST, MCP, the command line and the dashboard are thin layers over it.
//!
//! Commands are grouped by noun. A handle has a caller, and each command checks the caller's rights:
//! `engine.runs(&caller).trigger(…)`. Requests with a token instead of a caller are in [`Inbound`] and [`Identity`].

mod catalogue;
mod change;
mod channels;
mod connections;
mod definitions;
mod deleted;
mod exposed;
mod gates;
mod identity;
mod inbound;
mod input;
mod keys;
mod missing;
mod organisations;
mod policies;
mod policy_tests;
mod queries;
mod reviews;
mod runs;
mod schedules;
mod secrets;
mod servers;
mod simulate;
mod steps;
mod users;
mod workflows;

pub use crate::access::{Right, StartedWith, Starter};
pub use crate::records::With;
pub use crate::run::start::{End, Started};
pub use catalogue::CatalogueEntry;
pub use channels::{NewChannel, NotificationPreferences};
pub use connections::NewConnection;
pub use definitions::{Defined, Defining, Source, check_code};
pub use exposed::Exposed;
pub use gates::{Approval, Decision, Refusal};
pub use inbound::{Asks, Linked};
pub use keys::{KeyChange, NewKey};
pub use organisations::{AuditExport, AuditQuery, Organisation, Usage};
pub use policies::NewPolicy;
pub use policy_tests::PolicyTest;
pub use queries::NewQuery;
pub use reviews::{ReviewView, Reviewing, StepChanges, Uses};
pub use runs::{
    AttemptView, BulkOutcome, ChangedCall, EventPage, EventView, How, ParentView, Retry, RunFilters, RunPage, RunQuery,
    RunSummary, RunView, RunWarning, StartedBy, StepPage, StepQuery, StepView, Trigger, When, page_size,
};
pub use schedules::ScheduleView;
pub use secrets::{NewSecret, Rotated};
pub use servers::{Acceptance, CALLED, KnownServer, KnownTool};
pub use simulate::{Rehearsed, Simulation};
pub use steps::{CallBody, Override};
pub use users::{NewUser, UserChange};
pub use workflows::{State, WorkflowPage, WorkflowQuery};

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
    /// Approvals and their answers.
    gates: Gates,
    /// Workflows, their versions, switches, schedules and trigger URLs.
    workflows: Workflows,
    /// Users of the organisation.
    users: Users,
    /// Roles of the organisation.
    roles: Roles,
    /// API keys.
    keys: Keys,
    /// Secrets. Their values are never returned.
    secrets: Secrets,
    /// Databases for query steps.
    connections: Connections,
    /// Saved queries.
    queries: Queries,
    /// What agents wrote, and the answers of people.
    reviews: Reviews,
    /// Policies about calls.
    policies: Policies,
    /// Notification channels, preferences and deliveries.
    channels: Channels,
    /// MCP servers and their accepted tools.
    mcp_servers: McpServers,
    /// Organisations and their plans.
    organisations: Organisations,
    /// The audit trail.
    audit: Audit,
}

/// Requests with a token instead of an API key.
#[derive(Clone, Copy)]
pub struct Inbound<'a> {
    rooms: &'a Arc<Rooms>,
}

/// Authenticates requests and signs users in.
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
    /// Requests with a token instead of an API key.
    pub fn inbound(&self) -> Inbound<'_> {
        Inbound { rooms: &self.rooms }
    }

    /// Authentication.
    pub fn identity(&self) -> Identity<'_> {
        Identity::new(&self.rooms)
    }

    /// The nodes of the cluster, by id. Needs the right to read.
    pub async fn nodes(&self, caller: &Caller) -> Result<Vec<NodeRow>, Error> {
        caller.check(Right::Read)?;
        Ok(self.rooms.cluster.store.nodes().await?)
    }
}
