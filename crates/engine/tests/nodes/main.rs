//! Several engines on one store: who takes over from whom, what they tell each other, and what holds for all together.

// In a test a panic is the report.
#![allow(clippy::unwrap_used)]

mod harness;
mod losing;
mod sharing;
mod telling;
