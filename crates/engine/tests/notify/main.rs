//! Telling people, on virtual time: who hears of what, once; what happens to a message that does not arrive; and who may
//! have which channel.

// In a test a panic is the report.
#![allow(clippy::unwrap_used)]

mod arriving;
mod audience;
mod harness;
mod owning;
