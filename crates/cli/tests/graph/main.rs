//! Every node type and every way to handle errors of the graph dialect, as a canvas saves them, on the real server.

// In a test a panic is the report.
#![allow(clippy::unwrap_used)]

mod code;
mod data;
mod delays;
mod drawn;
mod errors;
mod joins;
mod nodes;
// Shared with the server's own suite, which uses more of it.
#[allow(dead_code, unused_imports)]
#[path = "../server/harness.rs"]
mod harness;
mod shapes;
