//! Announcements to connected browsers, made from rows of the log. They are not stored: each node with a connected
//! browser follows the log.

use super::Notifier;
use super::channel::channels;
use super::message::{Message, occurrences};
use super::recipients::{people, starter};
use crate::access::{Caller, Right};
use crate::error::Error;
use crate::run::drive;
use std::collections::BTreeSet;
use std::sync::Arc;
use stepwell_core::fact::{Fact, Reason, Wait};
use stepwell_core::graph::Kind;
use stepwell_core::run::{RunStatus, Status, StoredFact};
use stepwell_store::{Fed, RunRow};

/// The names of a workflow's gates. They show whether a finished step was a gate.
pub type Gates = BTreeSet<Arc<str>>;

/// A message to show in the browsers of its recipients.
#[derive(Clone, Debug)]
pub struct Announcement {
    pub message: Message,
    /// The users it is addressed to.
    people: BTreeSet<String>,
    /// Whether it is addressed to all users with the right to approve.
    approvers: bool,
    /// Users who turned off this topic in browsers.
    muted: BTreeSet<String>,
}

impl Announcement {
    /// Whether the caller is a recipient.
    pub fn is_for(&self, caller: &Caller) -> bool {
        let name = &*caller.name;
        let addressed = self.people.contains(name) || (self.approvers && caller.may(Right::Approve));
        addressed && !self.muted.contains(name)
    }
}

impl Notifier {
    /// The gates of the version that a run uses.
    pub async fn gates_of(&self, run: &RunRow) -> Result<Gates, Error> {
        let compiled = self.runner.workflows.version(run.definition).await?;
        let steps = compiled.definition.graph.steps.iter();
        let gates = steps.filter(|step| matches!(step.def.kind, Kind::Gate(_)));
        Ok(gates.map(|step| step.def.name.clone()).collect())
    }

    /// The announcements of a row of the log. A gate that was answered since is not announced.
    pub async fn announced(&self, fed: &Fed, gates: &Gates) -> Result<Vec<Announcement>, Error> {
        let facts: Vec<StoredFact> = serde_json::from_str(&fed.log.row.facts).unwrap_or_default();
        let facts: Vec<StoredFact> = facts.into_iter().filter(|fact| may_be_announced(fact, gates)).collect();
        if facts.is_empty() {
            return Ok(Vec::new());
        }
        let Some(live) = drive::load(&self.runner, fed.run).await? else { return Ok(Vec::new()) };
        let graph = &live.compiled.definition.graph;
        // Steps of an older version cannot be loaded any more.
        let facts: Vec<Fact> = facts.into_iter().filter_map(|fact| live.run.load(graph, fact).ok()).collect();
        let mut all = Vec::new();
        let started_by = starter(self, &live).await;
        for occurrence in occurrences(&live, &facts, fed.log.row.at) {
            let topic = occurrence.message.topic;
            let channels = channels(self, live.org).await?;
            all.push(Announcement {
                approvers: occurrence.to.is_empty(),
                people: people(self, live.org, &occurrence.to).await?,
                muted: channels.not_in_browser(topic),
                message: Message { started_by: started_by.clone(), ..occurrence.message },
            });
        }
        Ok(all)
    }
}

/// Whether a fact may be announced. This check is cheap, and most rows of the log fail it.
fn may_be_announced(fact: &StoredFact, gates: &Gates) -> bool {
    match fact {
        Fact::Entered { wait: Wait::Gate { .. }, .. } | Fact::Escalated { .. } | Fact::Unsure { .. } => true,
        Fact::Held { .. } | Fact::Again { reason: Reason::Approved, .. } => true,
        Fact::Finished { status: Status::Denied, .. } => true,
        Fact::Ended { status, .. } => matches!(status, RunStatus::Failed | RunStatus::Timeout),
        Fact::Finished { step, .. } => gates.contains(step.rsplit('.').next().unwrap_or_default()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepwell_core::value::ValueId;

    #[test]
    fn held_calls_and_approved_calls_are_announced() {
        let step = || "pay".to_string();
        let held = Fact::Held { step: step(), attempt: 1, ask: ValueId(1), until: None, note: None };
        let again = |reason| Fact::Again { step: step(), attempt: 2, reason, until: None };
        assert!(may_be_announced(&held, &Gates::new()));
        assert!(may_be_announced(&again(Reason::Approved), &Gates::new()));
        assert!(!may_be_announced(&again(Reason::Retry), &Gates::new()));
    }
}
