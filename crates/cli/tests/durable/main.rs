//! Runs of the real binary on real directories: to their ends, through signals and kills, on terminals and in
//! pipes; and `doctor` on directories that were changed from outside.

// In a test a panic is the report.
#![allow(clippy::unwrap_used)]

mod doctor;
mod evidence;
mod harness;
mod listing;
mod pipe;
mod run;
mod terminal;
mod wrong;
