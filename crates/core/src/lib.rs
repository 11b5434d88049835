//! The pure part of the engine: definitions, graphs, expressions, run state and the planner.
//!
//! Not here: text formats (`stepwell-formats`), storage, clocks, sockets. Nothing in this crate does I/O, and time is
//! always an argument.

pub mod approval;
pub mod definition;
pub mod diff;
pub mod event;
pub mod expr;
pub mod fact;
pub mod graph;
pub mod json;
pub mod limits;
pub mod nearest;
pub mod outline;
pub mod plan;
pub mod quote;
pub mod run;
pub mod simulate;
pub mod template;
pub mod time;
pub mod unseen;
pub mod value;
