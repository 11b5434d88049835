//! Queues of concurrency groups: lets waiting runs in when there is room.

use super::Runner;
use super::messages::Message;
use crate::error::Error;
use std::sync::Arc;
use std::time::Duration;
use stepwell_store::OrgId;

/// How long a run may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Admits the runs that wait for room in this group, oldest first, until there is none.
pub async fn admit(runner: Arc<Runner>, org: OrgId, group: String) {
    let mut before = None;
    while !runner.cluster.is_draining() {
        match runner.workflows.access.is_held(org, &group).await {
            Ok(false) => {}
            Ok(true) => return,
            Err(error) => return tracing::warn!(%error, "cannot admit queued runs for now"),
        }
        let first = match runner.cluster.store.first_queued(&group).await {
            Ok(Some(first)) => first,
            Ok(None) => return,
            Err(error) => return tracing::warn!(%error, "cannot admit queued runs for now"),
        };
        let again = Some(first) == before.replace(first);
        let asked = tokio::time::timeout(PATIENCE, runner.ask(first, Message::Admit)).await;
        match asked.unwrap_or_else(|_| Err(Error::Unavailable("the run does not answer".into()))) {
            Ok(()) | Err(Error::Conflict(_)) if !again => {}
            // The group is full, or the next poll tries again.
            _ => return,
        }
    }
}
