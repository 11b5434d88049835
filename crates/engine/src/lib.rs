//! Runs workflows: takes messages, lets the planner decide, commits, and acts on what is on disk.
//!
//! The rooms, from the lowest to the highest. A room imports from those below it only; a tidy test checks that.
//!
//! | room | what is in it |
//! | --- | --- |
//! | `error`, `records` | errors by what a caller can do about them; helpers for stored records |
//! | `cluster` | the store, time, ids, membership among nodes, hints between them |
//! | `access` | callers, users and grants, plans, switches of workflows |
//! | `secrets` | sealed values, revealing them for a call, masking them in what comes back |
//! | `workflows` | compiled definitions, connections, saved queries, tools of MCP servers |
//! | `run` | mailboxes, starting runs, the loop of a run, timers, child runs |
//! | `execute` | slots, checks before a call, the call itself behind [`StepKind`] |
//! | `notify`, `triggers` | telling people; schedules and addresses that start runs |
//! | `rooms`, `upkeep`, `doctor`, `log` | the rooms wired together; recovery and retention; examination; reading the log |
//! | `commands` | the application API, the only way in |
//! | `engine` | settings, start and stop |
//!
//! Not here: what a workflow means (`core`), SQL (`store`), what a call does (`steps`), HTTP (`server`).

mod access;
mod cluster;
pub mod commands;
pub mod doctor;
mod engine;
mod error;
mod execute;
mod log;
pub mod notify;
mod records;
mod rooms;
mod run;
pub mod schema;
mod secrets;
mod triggers;
mod upkeep;
mod workflows;

pub use access::{
    Actor, Caller, Grants, Key, Limits, Need, Pause, Plans, Right, Role, Session, Subscription, Switches, User,
};
pub use cluster::{Clock, Ids, SystemClock, TokioClock};
pub use doctor::audit::Verdict as AuditVerdict;
pub use engine::{Config, Engine};
pub use error::Error;
pub use execute::{
    AGENTS_UNREVIEWED, AccessedSecret, Counts as PolicyCounts, Effect as PolicyEffect, Kinds, Missing,
    Mode as PolicyMode, Policy, PolicyLog, Principal, Rate, Resumed, Sample as PolicySample, SecretAccess, StepCall,
    StepKind, Suspended, ToolInfo, UnknownOutcome, Until, Verdict as PolicyVerdict, trace,
};
pub use log::LogReader;
pub use run::{
    Activity, CommitContext, Committed, HostGuard, HostRules, StoredRunError, record, restore, timer_key, timer_named,
};
pub use secrets::{Bound, EnvironmentSecrets, Mask, SealedStore, Secret, SecretSource, UsedSecrets, Vault};
pub use triggers::{Hook, Incoming, sign as sign_webhook};
pub use workflows::{
    Checked, Compiled, Connection, Connections, Database, Review, ReviewAnswer, ReviewState, SavedQuery,
};

/// MCP servers as the engine knows them.
pub mod upstream {
    pub use crate::workflows::{
        Accepted, BUILT_IN_TOOLS, FirstSeen, Held, NoServers, OWN_TOOLS, Offered, Pin, Pins, Server, Servers, Standing,
        State, clash, tool_name,
    };
}
