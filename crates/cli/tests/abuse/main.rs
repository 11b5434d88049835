//! Attacks on a shared server: two organisations on the real binary, and one means no good. Each test is one attack. While
//! it lasts, the other organisation goes on working, and the server stays within its memory.
//!
//! A test prints a row: the attack, how long the victim's runs took without and under it, and the most memory that the
//! server used. The attacks run one after the other, because they are measured.

// In a test a panic is the report.
#![allow(clippy::unwrap_used)]

mod connections;
mod documents;
mod execution;
mod world;
