//! The files in `deploy/` and the commands in docs/deployment.md, tried with the real binary; and the recovery
//! drill.

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
