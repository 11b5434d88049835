//! Runs workflows: takes events, lets the planner decide, commits, and acts on what is on disk.
//!
//! | part | files |
//! | --- | --- |
//! | the way in | `commands/` |
//! | mailboxes, and what letters mean | `runs.rs`, `letters.rs` |
//! | event → plan → commit → dispatch | `drive.rs` (the loop), `dispatch.rs`, `slots.rs` |
//! | a transition as rows, and back | `record.rs`, `keys.rs` |
//! | time | `clock.rs`, `timers.rs` |
//! | child runs | `children.rs` |
//! | telling people | `notify/` |
//! | being one of several nodes | `nodes.rs`, `hints.rs`, `epochs.rs` |
//! | recovery, retention, what was missed | `upkeep.rs` |
//! | looking whether everything is sound | `doctor.rs`, `doctor/` |
//! | what a step is given | `step.rs`, `secrets.rs`, `mask.rs`, `callback.rs` |
//! | what stands before a call | `permit.rs`, `policies.rs`, `pace.rs` |
//! | MCP servers and what was accepted of their tools | `upstream.rs` |
//! | what is kept sealed | `vault.rs` (keys), `safe.rs` (secrets, connections), `hosts.rs` (where they may go) |
//!
//! Not here: what a workflow means (`core`), SQL (`store`), what a call does (`steps`), HTTP (`server`).

mod audit;
mod cache;
mod callback;
mod children;
mod clock;
pub mod commands;
mod connections;
mod definitions;
mod dispatch;
pub mod doctor;
mod drive;
mod engine;
mod epochs;
mod error;
mod guard;
mod hints;
mod hosts;
mod ids;
mod incoming;
mod keys;
mod lend;
mod letters;
mod mask;
mod nodes;
pub mod notify;
mod pace;
mod people;
mod permit;
mod plans;
mod policies;
mod queries;
mod record;
mod rights;
mod runs;
mod safe;
pub mod schema;
mod secrets;
mod slots;
mod step;
mod switches;
mod timers;
pub mod trace;
mod triggers;
mod upkeep;
pub mod upstream;
mod vault;
mod watch;

pub use audit::Verdict as AuditVerdict;
pub use clock::{Clock, SystemClock, TokioClock};
pub use commands::Caller;
pub use connections::{Connection, Connections};
pub use definitions::Compiled;
pub use engine::{Committed, Config, Engine, Happened};
pub use error::Error;
pub use guard::{Guard, Rules};
pub use hosts::Bound;
pub use ids::Ids;
pub use incoming::{Incoming, sign as sign_webhook};
pub use keys::{timer_key, timer_named};
pub use lend::{Lend, Lent};
pub use mask::Mask;
pub use people::{Key, Role, Session, User};
pub use plans::{Limits, Plans, Subscription};
pub use policies::{Effect as PolicyEffect, Policy, Rate, Unknown};
pub use queries::SavedQuery;
pub use record::{Place, StoredRunError, record, restore};
pub use rights::{Actor, Grants, Need, Right};
pub use safe::{Database, Safe, Secret};
pub use secrets::{EnvironmentSecrets, Secrets};
pub use step::{Kinds, Principal, Resumed, StepCall, StepKind, Until, Used, Waits};
pub use switches::{Pause, Switches};
pub use triggers::Hook;
pub use vault::Vault;
