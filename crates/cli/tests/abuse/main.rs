//! Attacks on a shared server, with two organisations on the real binary: one attacks, the other works. Each test
//! is one attack. During it the other organisation makes progress, and the server stays within its memory.
//!
//! A test prints a row: the attack, how long the victim's runs took without and under it, and the most memory that the
//! server used. The attacks run one after the other, because they are measured.

// In a test a panic is the report.
#![allow(clippy::unwrap_used)]

mod connections;
mod documents;
mod execution;
mod world;
