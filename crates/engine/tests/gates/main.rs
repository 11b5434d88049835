//! What people must allow: gates, calls that a policy holds, links, and how fast calls may follow each other. Through the
//! engine's own commands, on a store in memory and on virtual time.

// In a test a panic is the report.
#![allow(clippy::unwrap_used)]

mod answers;
mod harness;
mod held;
mod hosts;
mod links;
mod matrix;
mod pace;
mod places;
mod reviewed;
mod shown;
mod trail;
