//! What tests of several crates need and no program does: a PostgreSQL server that goes away, a network that can be cut, a
//! server for workflows to call, and one switch for which store a suite runs on.
//!
//! `STEPWELL_TEST_STORE=postgres` runs suites on PostgreSQL; without it they run on the embedded store.
//! `STEPWELL_TEST_DATABASE` names a server to use instead of starting one.

// In a test a panic is the report.
#![allow(clippy::unwrap_used)]

mod cluster;
mod outside;
mod place;
mod programs;
mod proxy;
mod rows;
mod schema;
mod wait;

pub use cluster::Cluster;
pub use outside::{Outside, Request, listen};
pub use place::{Place, embedded_only, on_postgres, postgres_only};
pub use proxy::Proxy;
pub use schema::{Schema, execute};
pub use wait::{command, eventually};

use std::time::Duration;

/// Most things take milliseconds; a loaded machine gets its time.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at something that cannot be awaited.
const LOOK: Duration = Duration::from_millis(10);
