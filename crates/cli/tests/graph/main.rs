//! Every type of node and every way to handle errors of the graph dialect, drawn as a canvas saves them and run by the
//! real server.

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
