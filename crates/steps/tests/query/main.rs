//! Query steps against a real PostgreSQL and a real SQLite file.

// In tests, a panic is the report.
#![allow(clippy::unwrap_used)]

mod cancel;
mod faults;
mod harness;
mod limits;
mod params;
mod pools;
mod read_only;
mod types;
