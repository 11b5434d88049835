//! What stands in `deploy/` and in docs/deployment.md, tried with the real binary; and the drill of backup and restore.

// In a test a panic is the report.
#![allow(clippy::unwrap_used)]

mod container;
mod copies;
mod documents;
mod drill;
mod dumped;
mod harness;
mod kubernetes;
mod systemd;
