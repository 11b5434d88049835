//! What the run loop needs of the rooms above it. They are told what follows a commit; the loop never calls them by name.

use super::live::Live;
use crate::error::Error;
use async_trait::async_trait;
use serde_json::Value;
use std::sync::Arc;
use stepwell_core::fact::Fact;
use stepwell_core::graph::OnUnknown;
use stepwell_core::plan::Transition;
use stepwell_core::time::Time;
use stepwell_store::{NewAudit, NodeId, Notice, OrgId, RunId, Work, WorkKey};

/// Contributes to a commit before it is written, and carries out what follows once it is on disk.
#[async_trait]
pub trait Sink: Send + Sync {
    /// The organisation's rules about calls, as of now.
    async fn call_rules(&self, org: OrgId) -> Result<Arc<dyn CallRules>, Error>;

    /// Notices for people about these facts, to be written with them.
    async fn notices(&self, live: &Live, facts: &[Fact], now: Time) -> Result<Vec<Notice>, Error>;

    /// Delivers notices that were written.
    fn deliver(&self, run: RunId, notices: Vec<Notice>);

    /// Reserves free slots for new attempts, and gives those attempts to this node.
    fn reserve(&self, node: NodeId, work: &mut [Work]);

    /// Returns the slot of an attempt that will not begin.
    fn release(&self, org: OrgId);

    /// Begins an attempt that has a slot, and that the store gave to this node under this id.
    fn begin(&self, live: &Live, key: WorkKey, node: NodeId);

    /// Begins an attempt that this node holds and does not execute, slots or not.
    fn begin_again(&self, live: &Live, key: WorkKey, node: NodeId);

    /// Whether organisations have a limit of slots, so that finished work can make room for their own.
    fn limits_organisations(&self) -> bool;

    /// There is ready work in the store. False if other nodes should take it.
    fn left_ready(&self) -> bool;
}

/// Rules about calls that a transition is planned and recorded under.
pub trait CallRules: Send + Sync {
    /// Whether a call whose outcome was lost may be made again.
    fn at_most_once(&self, kind: &str, input: &Value) -> Option<OnUnknown>;

    /// Audit rows for the calls that this transition says something about.
    fn audit(&self, live: &Live, transition: &Transition, now: Time) -> Vec<NewAudit>;
}
