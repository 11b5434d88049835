//! Rights, triggers, and changes to workflows and runs, through the engine's commands, on a store in memory and on
//! virtual time.

// In a test a panic is the report.
#![allow(clippy::unwrap_used)]

mod agents;
mod broken;
mod commands;
mod fairness;
mod harness;
mod hooks;
mod lives;
mod overrides;
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
