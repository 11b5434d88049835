//! Everything a workflow can mean, in pure code: definitions, graphs, expressions, the state of a run and the planner.
//!
//! Not here: text formats (`stepwell-formats`), storage, clocks, sockets. Nothing in this crate does I/O, and time is
//! always an argument.

pub mod approval;
pub mod definition;
pub mod event;
pub mod expr;
pub mod fact;
pub mod graph;
pub mod limits;
pub mod nearest;
pub mod outline;
pub mod plan;
pub mod run;
pub mod simulate;
pub mod template;
pub mod time;
pub mod value;
