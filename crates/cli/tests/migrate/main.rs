//! `stepwell migrate` from outside: an installation with runs in every state goes from a directory to a database and back,
//! and whatever must not be taken is refused.

// In a test a panic is the report.
#![allow(clippy::unwrap_used)]

mod harness;
mod moved;
mod refused;
