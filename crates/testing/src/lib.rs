//! The test kit: an engine with controllable step kinds, calls of a step kind, the real server and a client of its API, a
//! temporary PostgreSQL server, a network that can be cut, a server for workflows to call, and one switch for the store that
//! suites run on. No program depends on it.
//!
//! `STEPWELL_TEST_STORE=postgres` runs suites on PostgreSQL; without it they run on the embedded store.
//! `STEPWELL_TEST_DATABASE` names a server to use instead of starting one.

// In a test a panic is the report.
#![allow(clippy::unwrap_used)]

mod api;
mod call;
mod certificates;
mod cluster;
mod engine;
mod outside;
mod programs;
mod proxy;
mod rows;
mod schema;
mod server;
mod step_kind;
mod test_store;
mod virtual_store;
mod wait;

pub use api::{Answer, Api, DESCRIBED};
pub use call::{failure, step_call, success};
pub use certificates::{Authority, Identity};
pub use cluster::Cluster;
pub use engine::{ADMIN, AGENT, EngineHarness, START, chain, list, policy};
pub use outside::{Outside, Request, listen};
pub use proxy::Proxy;
pub use schema::{Schema, execute};
pub use server::{Process, Server};
pub use step_kind::{ToolCall, Tools};
pub use test_store::{TestStore, embedded_only, on_postgres, postgres_only};
pub use virtual_store::VirtualStore;
pub use wait::{command, eventually};

use std::time::Duration;

/// Most things take milliseconds; a loaded machine gets its time.
pub const PATIENCE: Duration = Duration::from_secs(180);
/// Between two looks at something that cannot be awaited.
const LOOK: Duration = Duration::from_millis(10);
