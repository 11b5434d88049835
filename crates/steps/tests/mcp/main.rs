//! Tools of MCP servers as steps call them: real servers of others (`scripts/mcp-install.sh` installs them), and one of our
//! own that does what servers should not.

// In a test a panic is the report.
#![allow(clippy::unwrap_used)]

mod bad;
mod pins;
mod real;
mod rig;
mod runs;
mod secrets;
mod waits;
