//! `stepwell migrate` from outside: an installation with runs in every state moves from a directory to a database
//! and back, and sources and targets that cannot be used are refused.

// In a test a panic is the report.
#![allow(clippy::unwrap_used)]

mod harness;
mod moved;
mod refused;
