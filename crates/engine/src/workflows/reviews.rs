//! Reviews: which versions a person answers for. A version that a person wrote is accepted. One that an agent's key wrote
//! is unreviewed until a person accepts it, and a proposal is no version until then.
//!
//! Not here: writing and answering reviews (`commands`), holding the calls of unreviewed versions (`execute`).

use super::{Compiled, Workflows};
use crate::access::{Actor, actors};
use crate::error::Error;
use crate::records::{Kept, body};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;
use stepwell_core::time::Time;
use stepwell_store::{DefinitionRow, OrgId, Record, RunId};

/// A version or a proposal that an agent's key wrote, and what a person answered.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Review {
    /// `wf_…`
    pub workflow: String,
    pub name: String,
    /// `None` for a proposal that is not accepted.
    pub version: Option<u32>,
    /// The proposed text. That of a version is in its row.
    #[serde(default)]
    pub text: Option<String>,
    /// The user whose key wrote it.
    pub by: String,
    /// The actor whose rights limit it.
    pub author: String,
    /// The name of the key.
    #[serde(default)]
    pub key: Option<String>,
    /// What the MCP client calls itself.
    #[serde(default)]
    pub client: Option<String>,
    /// Why, in the agent's words.
    #[serde(default)]
    pub reason: Option<String>,
    pub at: Time,
    #[serde(default)]
    pub answer: Option<ReviewAnswer>,
    /// The runs that a person accepted it for.
    #[serde(default)]
    pub runs: BTreeSet<String>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ReviewAnswer {
    pub accepted: bool,
    pub by: String,
    pub at: Time,
    #[serde(default)]
    pub comment: Option<String>,
}

impl Kept for Review {
    const KIND: &'static str = "review";
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReviewState {
    /// Written by a person, or accepted by one.
    Accepted,
    /// A version that no person has accepted.
    Unreviewed,
    /// Not a version yet: the current one stays until a person accepts it.
    Proposed,
    Refused,
}

impl ReviewState {
    pub fn name(self) -> &'static str {
        match self {
            ReviewState::Accepted => "accepted",
            ReviewState::Unreviewed => "unreviewed",
            ReviewState::Proposed => "proposed",
            ReviewState::Refused => "refused",
        }
    }
}

impl Review {
    pub fn state(&self) -> ReviewState {
        match (&self.answer, self.version) {
            (Some(answer), _) if answer.accepted => ReviewState::Accepted,
            (Some(_), _) => ReviewState::Refused,
            (None, Some(_)) => ReviewState::Unreviewed,
            (None, None) => ReviewState::Proposed,
        }
    }

    /// The record's key: a version is found by its number.
    pub fn key(&self, id: &str) -> String {
        match self.version {
            Some(version) => version_key(&self.workflow, version),
            None => format!("{}/{id}", self.workflow),
        }
    }

    pub fn record(&self, org: OrgId, id: String) -> Record {
        let key = self.key(&id);
        Record { kind: Review::KIND.into(), id, org, key, due: None, body: crate::records::json(self), version: 0 }
    }
}

fn version_key(workflow: &str, version: u32) -> String {
    format!("{workflow}/{version}")
}

/// What counts for the runs of a version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reviewed {
    pub state: ReviewState,
    runs: BTreeSet<String>,
}

impl Reviewed {
    pub fn is_accepted(&self) -> bool {
        self.state == ReviewState::Accepted
    }
}

/// The run that makes a call.
#[derive(Clone, Debug)]
pub struct Origin {
    pub compiled: Arc<Compiled>,
    /// `run_…`
    pub run: Arc<str>,
    pub parent: Option<RunId>,
    /// The actors that the run acts as.
    pub acts_as: Arc<str>,
}

impl Workflows {
    /// Whether a version is accepted. Cached until the organisation's epoch changes.
    pub async fn reviewed(&self, row: &DefinitionRow) -> Result<Arc<Reviewed>, Error> {
        let epoch = self.access.epoch(row.org).await?;
        if let Some(known) = self.reviewed.get(&row.id, epoch) {
            return Ok(known);
        }
        let reviewed = Arc::new(self.read_review(row).await?);
        self.reviewed.put(row.id, epoch, reviewed.clone());
        Ok(reviewed)
    }

    async fn read_review(&self, row: &DefinitionRow) -> Result<Reviewed, Error> {
        if !self.access.is_agent(row.org, &Actor::parse(&row.author)).await? {
            return Ok(Reviewed { state: ReviewState::Accepted, runs: BTreeSet::new() });
        }
        let review: Option<Review> = self.review_of(row).await?.as_ref().map(body).transpose()?;
        Ok(match review {
            Some(review) => Reviewed { state: review.state(), runs: review.runs },
            None => Reviewed { state: ReviewState::Unreviewed, runs: BTreeSet::new() },
        })
    }

    /// The review of a version.
    pub async fn review_of(&self, row: &DefinitionRow) -> Result<Option<Record>, Error> {
        let key = version_key(&row.workflow, row.version);
        let found = self.access.cluster.store.record_with_key(Review::KIND, &key).await?;
        Ok(found.filter(|record| record.org == row.org))
    }

    /// The workflow because of which the calls of a run are held: its own, or that of a run above it. `None` if all are
    /// accepted, or accepted for this run.
    pub async fn unreviewed(&self, origin: &Origin) -> Result<Option<String>, Error> {
        let (mut compiled, mut run, mut parent) = (origin.compiled.clone(), origin.run.clone(), origin.parent);
        loop {
            let reviewed = self.reviewed(&compiled.row).await?;
            if !reviewed.is_accepted() && !reviewed.runs.contains(&*run) {
                return Ok(Some(compiled.row.name.clone()));
            }
            let Some(above) = parent else { return Ok(None) };
            let Some(row) = self.access.cluster.store.run(above).await? else {
                // Purged: what started this run is no longer known.
                return Ok(self.acts_for_agent(origin).await?.then(|| compiled.row.name.clone()));
            };
            compiled = self.version(row.definition).await?;
            (run, parent) = (row.public.into(), row.parent.map(|parent| parent.run));
        }
    }

    async fn acts_for_agent(&self, origin: &Origin) -> Result<bool, Error> {
        for actor in actors(&origin.acts_as) {
            if self.access.is_agent(origin.compiled.row.org, &actor).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
