//! The run loop's interface to the layers above it, which the loop never calls by name.

use super::live::Live;
use crate::error::Error;
use async_trait::async_trait;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use stepwell_core::event::Failure;
use stepwell_core::fact::Fact;
use stepwell_core::graph::OnUnknown;
use stepwell_core::plan::Transition;
use stepwell_core::time::Time;
use stepwell_store::{NewAudit, NodeId, Notice, OrgId, RunId, RunRow, Work, WorkKey};
use url::Url;

/// Gives slots for attempts, and takes them back.
pub trait SlotPool: Send + Sync {
    fn release(&self, org: OrgId);
}

/// The right to execute one attempt on this node. Dropping it returns the slot, whatever happens to its holder.
pub struct Slot {
    pub org: OrgId,
    pool: Arc<dyn SlotPool>,
}

impl Slot {
    pub fn new(org: OrgId, pool: Arc<dyn SlotPool>) -> Slot {
        Slot { org, pool }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.pool.release(self.org);
    }
}

/// Contributes to a commit before it is written, and acts on it once it is on disk.
#[async_trait]
pub trait Sink: Send + Sync {
    /// The organisation's current rules about calls.
    async fn call_rules(&self, org: OrgId) -> Result<Arc<dyn CallRules>, Error>;

    /// The organisation's host policies, for requests that are not made by a step.
    fn host_guard(&self, org: OrgId) -> Arc<dyn HostGuard>;

    /// Notifications about these facts, to be written in the same commit.
    async fn notices(&self, live: &Live, facts: &[Fact], now: Time) -> Result<Vec<Notice>, Error>;

    /// Delivers notifications that were written.
    fn deliver(&self, run: RunId, notices: Vec<Notice>);

    /// Notices about suspended calls that are over, to be written in the same commit.
    fn abandoned(&self, live: &Live, transition: &Transition, now: Time) -> Vec<Notice>;

    /// Tells the called services, once these notices were written.
    fn abandon(&self, run: RunId, notices: Vec<Notice>);

    /// Notifies people of a run that no node drives any more.
    async fn quarantined(&self, row: &RunRow, now: Time);

    /// Takes free slots for new attempts, and assigns these attempts to this node. One slot for each, in order.
    fn reserve(&self, node: NodeId, work: &mut [Work]) -> Vec<Slot>;

    /// Begins an attempt that is claimed under this node id.
    fn begin(&self, live: &Live, key: WorkKey, node: NodeId, slot: Slot);

    /// Begins an attempt that this node holds but does not execute, even if no slot is free.
    fn begin_again(&self, live: &Live, key: WorkKey, node: NodeId);

    /// Whether slots are limited per organisation, so that finished work can free a slot for the organisation's next.
    fn limits_organisations(&self) -> bool;

    /// Reports that the store has ready work of an organisation. False if other nodes should take it.
    fn left_ready(&self, org: OrgId) -> bool;
}

/// Rules about calls that a transition is planned and recorded under.
pub trait CallRules: Send + Sync {
    /// How to treat a call whose outcome was lost; `None` if it may be made again.
    fn at_most_once(&self, kind: &str, input: &Value) -> Option<OnUnknown>;

    /// Audit rows for the calls in this transition.
    fn audit(&self, live: &Live, transition: &Transition, now: Time) -> Vec<NewAudit>;
}

/// Gives a step or a delivery access to the organisation's host policies.
#[async_trait]
pub trait HostGuard: Send + Sync {
    /// The current rules, for one request and its redirects.
    async fn rules(&self) -> Result<Arc<dyn HostRules>, Failure>;
}

/// The host policies at one point in time.
pub trait HostRules: Send + Sync {
    /// Checks a request with this method, in capitals. Must be called before any data is sent there.
    fn check(&self, url: &Url, method: &str) -> Result<(), Failure>;
}

impl fmt::Debug for dyn HostGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostGuard")
    }
}
