//! Several engines on one store: takeover, hints, and limits that hold for all together.

// In a test a panic is the report.
#![allow(clippy::unwrap_used)]

mod harness;
mod losing;
mod sharing;
mod telling;
