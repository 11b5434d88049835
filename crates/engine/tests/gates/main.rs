//! Approvals: gates, calls that a policy holds, links, and rate limits. Through the engine's commands, on a store
//! in memory and on virtual time.

// In a test a panic is the report.
#![allow(clippy::unwrap_used)]

mod answers;
mod changed;
mod conditions;
mod harness;
mod held;
mod hosts;
mod links;
mod matrix;
mod places;
mod rate_limit;
mod reviewed;
mod shown;
mod trail;
mod trials;
