//! The command line as a client of the real server: every command against it, and those that need none also without.

// In a test a panic is the report.
#![allow(clippy::unwrap_used)]

mod apply;
mod channels;
mod check;
mod decide;
#[path = "../durable/harness.rs"]
#[allow(dead_code, reason = "shared with the tests of durable runs, which use all of it")]
mod harness;
mod ids;
mod lost;
mod people;
mod sdk;
mod sdks;
mod served;
mod shape;
mod start;
mod switches;
mod versions;
