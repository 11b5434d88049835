//! Those who are connected: what a row of the log gives to tell them. Nothing is stored for it; the log is followed on every
//! node where somebody watches.

use super::Notifier;
use super::channel::channels;
use super::message::{Message, occurrences};
use super::spread::people;
use crate::access::{Caller, Right};
use crate::error::Error;
use crate::run::drive;
use std::collections::BTreeSet;
use std::sync::Arc;
use stepwell_core::fact::{Fact, Reason, Wait};
use stepwell_core::graph::Kind;
use stepwell_core::run::{RunStatus, Status, StoredFact};
use stepwell_store::{Fed, RunRow};

/// The names of a workflow's gates: what tells that a finished step was one.
pub type Gates = BTreeSet<Arc<str>>;

/// Something to show to those whom it concerns.
#[derive(Clone, Debug)]
pub struct Announcement {
    pub message: Message,
    /// Who is meant by name.
    people: BTreeSet<String>,
    /// Everyone who may answer is meant.
    approvers: bool,
    /// Those who do not want to see it.
    spared: BTreeSet<String>,
}

impl Announcement {
    pub fn is_for(&self, caller: &Caller) -> bool {
        let name = &*caller.name;
        let meant = self.people.contains(name) || (self.approvers && caller.may(Right::Approve));
        meant && !self.spared.contains(name)
    }
}

impl Notifier {
    /// The gates of the version that a run is on.
    pub async fn gates_of(&self, run: &RunRow) -> Result<Gates, Error> {
        let compiled = self.runner.workflows.version(run.definition).await?;
        let steps = compiled.definition.graph.steps.iter();
        let gates = steps.filter(|step| matches!(step.def.kind, Kind::Gate(_)));
        Ok(gates.map(|step| step.def.name.clone()).collect())
    }

    /// What a row of the log gives to tell those who are connected. A gate that was answered since asks nobody.
    pub async fn announced(&self, fed: &Fed, gates: &Gates) -> Result<Vec<Announcement>, Error> {
        let facts: Vec<StoredFact> = serde_json::from_str(&fed.log.row.facts).unwrap_or_default();
        let facts: Vec<StoredFact> = facts.into_iter().filter(|fact| may_be_told(fact, gates)).collect();
        if facts.is_empty() {
            return Ok(Vec::new());
        }
        let Some(live) = drive::load(&self.runner, fed.run).await? else { return Ok(Vec::new()) };
        let graph = &live.compiled.definition.graph;
        // Steps of an older version are not known any more.
        let facts: Vec<Fact> = facts.into_iter().filter_map(|fact| live.run.load(graph, fact).ok()).collect();
        let mut all = Vec::new();
        for told in occurrences(&live, &facts, fed.log.row.at) {
            let topic = told.message.topic;
            let channels = channels(self, live.org).await?;
            all.push(Announcement {
                approvers: told.to.is_empty(),
                people: people(self, live.org, &told.to).await?,
                spared: channels.not_in_browser(topic),
                message: told.message,
            });
        }
        Ok(all)
    }
}

/// Cheap: most rows of the log are about steps that nobody is told of.
fn may_be_told(fact: &StoredFact, gates: &Gates) -> bool {
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
    fn browsers_hear_of_calls_that_are_held_and_of_those_that_go_on() {
        let step = || "pay".to_string();
        let held = Fact::Held { step: step(), attempt: 1, ask: ValueId(1), until: None, note: None };
        let again = |reason| Fact::Again { step: step(), attempt: 2, reason, until: None };
        assert!(may_be_told(&held, &Gates::new()));
        assert!(may_be_told(&again(Reason::Approved), &Gates::new()));
        assert!(!may_be_told(&again(Reason::Retry), &Gates::new()));
    }
}
