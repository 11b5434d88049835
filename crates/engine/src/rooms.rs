//! The rooms of a running engine, wired together: what the run loop hands upwards arrives here, and so do changes among
//! the nodes of the store.

use crate::access::Access;
use crate::cluster::{Cluster, Peer};
use crate::error::Error;
use crate::execute::{Abandoned, Executor};
use crate::notify::{self, Notifier};
use crate::run::{Activity, CallRules, HostGuard, Live, Message, Runner, Sink, Slot};
use crate::secrets::Secrets;
use crate::triggers::Triggers;
use crate::workflows::Workflows;
use async_trait::async_trait;
use std::sync::Arc;
use stepwell_core::fact::Fact;
use stepwell_core::plan::Transition;
use stepwell_core::time::Time;
use stepwell_store::{Hint, NodeId, Notice, OrgId, RunId, RunRow, Supervisor, Work, WorkKey};
use tokio::task::JoinHandle;

pub struct Rooms {
    pub cluster: Arc<Cluster>,
    pub access: Arc<Access>,
    pub secrets: Arc<Secrets>,
    pub workflows: Arc<Workflows>,
    pub runner: Arc<Runner>,
    pub executor: Arc<Executor>,
    pub notifier: Arc<Notifier>,
    pub triggers: Arc<Triggers>,
    pub supervisor: Supervisor,
}

impl Rooms {
    /// Starts a background task, which is restarted if it panics.
    pub fn supervise<F>(
        self: &Arc<Rooms>,
        name: &'static str,
        begin: impl Fn(Arc<Rooms>) -> F + Send + 'static,
    ) -> JoinHandle<()>
    where
        F: Future<Output = ()> + Send,
    {
        let rooms = self.clone();
        self.supervisor.spawn(name, move || begin(rooms.clone()))
    }
}

#[async_trait]
impl Sink for Rooms {
    async fn call_rules(&self, org: OrgId) -> Result<Arc<dyn CallRules>, Error> {
        Ok(self.executor.policies(org).await?)
    }

    fn host_guard(&self, org: OrgId) -> Arc<dyn HostGuard> {
        self.executor.host_guard(org)
    }

    async fn notices(&self, live: &Live, facts: &[Fact], now: Time) -> Result<Vec<Notice>, Error> {
        notify::notices(&self.notifier, live, facts, now).await
    }

    fn deliver(&self, run: RunId, notices: Vec<Notice>) {
        notify::deliver(&self.notifier, run, notices);
    }

    fn abandoned(&self, live: &Live, transition: &Transition, now: Time) -> Vec<Notice> {
        Abandoned::notices(live, transition, now)
    }

    fn abandon(&self, run: RunId, notices: Vec<Notice>) {
        self.executor.abandon(run, notices);
    }

    async fn quarantined(&self, row: &RunRow, now: Time) {
        if let Err(error) = notify::quarantined(&self.notifier, row, now).await {
            tracing::warn!(run = row.public, %error, "cannot notify people of a quarantined run");
        }
    }

    fn reserve(&self, node: NodeId, work: &mut [Work]) -> Vec<Slot> {
        self.executor.slots.assign(node, work)
    }

    fn begin(&self, live: &Live, key: WorkKey, node: NodeId, slot: Slot) {
        self.executor.begin(live, key, node, slot);
    }

    fn begin_again(&self, live: &Live, key: WorkKey, node: NodeId) {
        self.executor.begin(live, key, node, self.executor.slots.take(live.org));
    }

    fn limits_organisations(&self) -> bool {
        self.executor.slots.limits_orgs()
    }

    fn left_ready(&self, org: OrgId) -> bool {
        let room = self.executor.slots.has_room();
        self.executor.slots.left_ready(Some(org));
        room
    }
}

#[async_trait]
impl Peer for Rooms {
    fn expelled(&self) {
        self.runner.mailboxes.abort_all();
        self.executor.slots.left_ready(None);
    }

    fn share_changed(&self) {
        self.runner.timers.reload();
    }

    fn hint(&self, hint: Hint) {
        hint.orgs.into_iter().for_each(|org| self.access.forget_epoch(org));
        if hint.ready {
            self.executor.slots.left_elsewhere();
        }
        hint.freed.into_iter().for_each(|org| self.runner.place_freed(org, None));
        for run in hint.runs {
            if !self.runner.mailboxes.running(run).is_empty() {
                self.runner.send(run, Message::Reconcile);
            }
        }
        // There may be no receiver.
        let _ = self.runner.activity.send(Activity::Elsewhere);
    }

    fn hints_lost(&self) {
        self.access.forget_all_epochs();
        let mut runs: Vec<RunId> = self.runner.mailboxes.executing().into_iter().map(|(run, _)| run).collect();
        runs.dedup();
        self.hint(Hint { runs, ready: true, ..Hint::default() });
    }

    async fn check_ends(&self) {
        self.runner.check_ends().await;
    }
}
