//! Executing attempts: slots, the checks before a call, and the call itself behind [`StepKind`].
//!
//! | file | purpose |
//! | --- | --- |
//! | `slots.rs`, `dispatch.rs` | the limit of concurrent attempts; an attempt from its claim to its report |
//! | `step.rs` | the contract with step kinds |
//! | `abandon.rs` | telling services that what a call left there is no longer awaited |
//! | `permit.rs`, `policies.rs`, `rate_limit.rs` | checks before each call: rights, policies, approvals, rate limits |
//! | `conditions.rs`, `policy_log.rs`, `trial.rs` | conditions of policies; what policies would have done |
//! | `host_guard.rs`, `secret_access.rs` | the same checks for requests and secrets during a call |
//! | `call_audit.rs`, `trace.rs` | audit rows for calls; trace ids |
//!
//! An attempt reports through its run's mailbox. May use: `run` and below. Not here: what a call does (crate `steps`).

mod abandon;
mod call_audit;
mod conditions;
mod dispatch;
mod host_guard;
mod permit;
mod policies;
mod policy_log;
mod rate_limit;
mod secret_access;
mod slots;
mod step;
pub mod trace;
mod trial;

pub use abandon::{Abandoned, is_abandoned};
pub use conditions::Condition;
pub use dispatch::claim;
pub use permit::denial;
pub use policies::{
    AGENTS_UNREVIEWED, Effect, MAX_POLICIES, Mode, Policies, Policy, Rate, SUBJECT_KINDS, UNREVIEWED, UnknownOutcome,
    subjects,
};
pub use policy_log::{Counts, PolicyLog, Sample, Verdict};
pub use secret_access::{AccessedSecret, SecretAccess};
pub use step::{Kinds, Missing, Principal, Resumed, StepCall, StepKind, Suspended, ToolInfo, Until};
pub use trial::Trial;

use crate::access::{Access, ByEpoch};
use crate::cluster::Cluster;
use crate::run::Runner;
use crate::secrets::Secrets;
use policy_log::PolicyLogs;
use rate_limit::RateLimits;
use slots::Slots;
use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use stepwell_store::{OrgId, RunId};

/// Executes the attempts that this node has claimed.
pub struct Executor {
    pub cluster: Arc<Cluster>,
    pub access: Arc<Access>,
    pub secrets: Arc<Secrets>,
    pub runner: Arc<Runner>,
    pub kinds: Kinds,
    pub slots: Arc<Slots>,
    policies: ByEpoch<OrgId, Arc<Policies>>,
    rates: RateLimits,
    pub policy_logs: Arc<PolicyLogs>,
    /// Notices about abandoned calls that are being handled here.
    abandoning: Mutex<HashSet<(RunId, String)>>,
    /// Whether calls carry a trace header.
    traced: bool,
}

/// The settings of an executor.
pub struct Settings {
    pub slots: u32,
    pub slots_per_org: Option<u32>,
    pub traced: bool,
}

impl Executor {
    pub fn new(runner: Arc<Runner>, secrets: Arc<Secrets>, kinds: Kinds, settings: Settings) -> Executor {
        let cluster = runner.cluster.clone();
        let Settings { slots, slots_per_org, traced } = settings;
        // A node cannot know how much of an organisation's work others execute.
        let knows_limits = !cluster.shared || slots_per_org.is_none();
        Executor {
            access: runner.workflows.access.clone(),
            policy_logs: PolicyLogs::new(cluster.clone()),
            cluster,
            secrets,
            runner,
            kinds,
            slots: Slots::new(slots, slots_per_org, knows_limits),
            policies: ByEpoch::default(),
            rates: RateLimits::default(),
            abandoning: Mutex::default(),
            traced,
        }
    }
}
