//! Notifications on virtual time: recipients, failed deliveries, and rights to channels.

// In a test a panic is the report.
#![allow(clippy::unwrap_used)]

mod arriving;
mod audience;
mod harness;
mod owning;
