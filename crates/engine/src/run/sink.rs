//! The run loop's interface to the layers above it, which the loop never calls by name.

use super::live::Live;
use crate::error::Error;
use async_trait::async_trait;
use serde_json::Value;
use std::sync::Arc;
use stepwell_core::fact::Fact;
use stepwell_core::graph::OnUnknown;
use stepwell_core::plan::Transition;
use stepwell_core::time::Time;
use stepwell_store::{NewAudit, NodeId, Notice, OrgId, RunId, RunRow, Work, WorkKey};

/// Contributes to a commit before it is written, and acts on it once it is on disk.
#[async_trait]
pub trait Sink: Send + Sync {
    /// The organisation's current rules about calls.
    async fn call_rules(&self, org: OrgId) -> Result<Arc<dyn CallRules>, Error>;

    /// Notifications about these facts, to be written in the same commit.
    async fn notices(&self, live: &Live, facts: &[Fact], now: Time) -> Result<Vec<Notice>, Error>;

    /// Delivers notifications that were written.
    fn deliver(&self, run: RunId, notices: Vec<Notice>);

    /// Notifies people of a run that no node drives any more.
    async fn quarantined(&self, row: &RunRow, now: Time);

    /// Reserves free slots for new attempts, and assigns these attempts to this node.
    fn reserve(&self, node: NodeId, work: &mut [Work]);

    /// Releases the slot of an attempt that will not begin.
    fn release(&self, org: OrgId);

    /// Begins an attempt that has a slot and is claimed under this node id.
    fn begin(&self, live: &Live, key: WorkKey, node: NodeId);

    /// Begins an attempt that this node holds but does not execute, even if no slot is free.
    fn begin_again(&self, live: &Live, key: WorkKey, node: NodeId);

    /// Whether slots are limited per organisation, so that finished work can free a slot for the organisation's next.
    fn limits_organisations(&self) -> bool;

    /// Reports that the store has ready work. False if other nodes should take it.
    fn left_ready(&self) -> bool;
}

/// Rules about calls that a transition is planned and recorded under.
pub trait CallRules: Send + Sync {
    /// How to treat a call whose outcome was lost; `None` if it may be made again.
    fn at_most_once(&self, kind: &str, input: &Value) -> Option<OnUnknown>;

    /// Audit rows for the calls in this transition.
    fn audit(&self, live: &Live, transition: &Transition, now: Time) -> Vec<NewAudit>;
}
