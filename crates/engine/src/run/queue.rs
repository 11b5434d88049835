//! Queues of concurrency groups: admits waiting runs when there is room.

use super::Runner;
use super::messages::Message;
use crate::error::Error;
use std::sync::Arc;
use std::time::Duration;
use stepwell_store::OrgId;

/// How long a run may take to reply.
const REPLY_TIMEOUT: Duration = Duration::from_secs(30);

/// Groups read in one batch.
const BATCH: u32 = 1_000;

/// Admits the runs that wait for room in any group of this workflow. Polling finds the groups that are missed here.
pub async fn admit_all(runner: Arc<Runner>, org: OrgId, workflow: &str) {
    admit(runner.clone(), org, workflow.to_string()).await;
    // The groups of the workflow's keys follow each other; see `keyed_group`.
    let prefix = format!("{workflow}:");
    let mut after = prefix.clone();
    while let Ok(page) = runner.cluster.store.queued(Some(&after), BATCH).await {
        for (group, _) in page.iter().take_while(|(group, _)| group.starts_with(&prefix)) {
            admit(runner.clone(), org, group.clone()).await;
        }
        match page.last() {
            Some((last, _)) if last.starts_with(&prefix) => after = last.clone(),
            _ => return,
        }
    }
}

/// Admits the runs that wait for room in this group, oldest first, until there is none.
pub async fn admit(runner: Arc<Runner>, org: OrgId, group: String) {
    let mut before = None;
    while !runner.cluster.is_draining() {
        match runner.workflows.access.is_held(org, &group).await {
            Ok(false) => {}
            Ok(true) => return,
            Err(error) => return tracing::warn!(%error, "cannot admit queued runs; will retry"),
        }
        let first = match runner.cluster.store.first_queued(&group).await {
            Ok(Some(first)) => first,
            Ok(None) => return,
            Err(error) => return tracing::warn!(%error, "cannot admit queued runs; will retry"),
        };
        let repeated = Some(first) == before.replace(first);
        let reply = tokio::time::timeout(REPLY_TIMEOUT, runner.ask(first, Message::Admit)).await;
        match reply.unwrap_or_else(|_| Err(Error::Unavailable("the run does not reply".into()))) {
            Ok(()) | Err(Error::Conflict(_)) if !repeated => {}
            // The group is full, or the next poll retries.
            _ => return,
        }
    }
}
