//! Runs that are really run, by the real binary on real directories: to their ends, through signals and kills, at
//! terminals and in pipes; and what `doctor` says of directories that someone has meddled with.

// In a test a panic is the report.
#![allow(clippy::unwrap_used)]

mod doctor;
mod evidence;
mod harness;
mod look;
mod pipe;
mod run;
mod terminal;
mod wrong;
