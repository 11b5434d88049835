//! Who may do what, what starts by itself, and what people do to workflows and runs: through the engine's own commands, on
//! a store in memory and on virtual time.

// In a test a panic is the report.
#![allow(clippy::unwrap_used)]

mod agents;
mod broken;
mod commands;
mod everyday;
mod fairness;
mod harness;
mod hooks;
mod lives;
mod panics;
mod people;
mod plans;
mod rights;
mod scheduled;
mod schedules;
mod secrets;
mod switches;
mod tenants;
mod trail;
mod trees;
