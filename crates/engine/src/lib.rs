//! Runs workflows: takes events, lets the planner decide, commits, and acts on what is on disk.
//!
//! Here so far: what a transition is to the store and how a stored run becomes a run again. The loop, claims, timers and
//! step kinds follow.

mod keys;
mod record;

pub use keys::{timer_key, timer_named};
pub use record::{Place, StoredRunError, record, restore};
