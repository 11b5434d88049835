//! Steps that call tools of MCP servers: third-party servers (installed by `scripts/mcp-install.sh`), and a
//! misbehaving one of our own.

// In tests, a panic is the report.
#![allow(clippy::unwrap_used)]

mod absent;
mod acceptance;
mod deferred;
mod faults;
mod harness;
mod hostile;
mod runs;
mod secrets;
mod third_party;
