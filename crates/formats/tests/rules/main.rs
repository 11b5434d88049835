//! The rules of the planner, one sentence per test. Each story also checks, after every event, that folding the log and
//! restoring a snapshot both result in the planner's state.

// In a test a panic is the report.
#![allow(clippy::unwrap_used)]

mod attempts;
mod budgets;
mod gates;
mod joins;
mod loops;
mod recovery;
mod runs;
mod seeds;
mod story;
mod templates;
mod vars;
mod waits;
