//! Query steps against a real PostgreSQL and a real SQLite file.

// In a test a panic is the report.
#![allow(clippy::unwrap_used)]

mod cancel;
mod faults;
mod held;
mod limits;
mod params;
mod pools;
mod rig;
mod types;
