//! Reviews: what agents' keys wrote, shown with what it changes, and the answers of people.
//!
//! An answer carries the digest of what was shown: the text, the difference from the accepted version, what the
//! simulation and the policies say. If any of them has changed, the answer is refused.

mod rehearsal;
mod shown;

pub use shown::{ReviewView, StepChanges, Uses};

use super::change::{change, current_auth, retry_on_conflict};
use super::definitions::{Defining, NextVersion, Source};
use super::input::{check_text, invalid};
use super::{Reviews, Workflows};
use crate::access::{Key, Right};
use crate::error::Error;
use crate::records::{Kept, With, body, find, json as json_text, read};
use crate::triggers;
use crate::workflows::{Checked, Review, ReviewAnswer, ReviewState};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use stepwell_store::{Auth, Change, DefinitionRow, NewAudit, OrgId, Record, RecordChange, RecordFilter};

/// An answer to a review.
#[derive(Clone, Default, Debug)]
pub struct Reviewing {
    /// Of the review as it was shown.
    pub digest: String,
    pub comment: Option<String>,
    /// Accepts the version for this run only.
    pub run: Option<String>,
}

/// A review that a person answers, and what the answer is decided on.
struct Shown {
    record: Record,
    is: Review,
    view: ReviewView,
    decided: Auth,
}

impl Reviews<'_> {
    /// The reviews that wait for a person, oldest first; or all. Needs the right to read.
    pub async fn list(&self, all: bool) -> Result<Vec<With<Review>>, Error> {
        self.caller.check(Right::Read)?;
        let (store, org) = (&*self.rooms.cluster.store, self.caller.org);
        let mut found = read_all(self.rooms, org, String::new()).await?;
        let current = store.definitions(org).await?;
        let known: BTreeSet<(String, Option<u32>)> =
            found.iter().map(|review| (review.is.workflow.clone(), review.is.version)).collect();
        for row in &current {
            let is_known = known.contains(&(row.workflow.clone(), Some(row.version)));
            if !is_known && !self.rooms.workflows.reviewed(row).await?.is_accepted() {
                found.push(before_reviews(row));
            }
        }
        if !all {
            let current: BTreeMap<String, u32> = current.into_iter().map(|row| (row.workflow, row.version)).collect();
            found.retain(|review| is_open(&review.is, current.get(&review.is.workflow).copied()));
        }
        found.sort_by_key(|review| review.is.at);
        Ok(found)
    }

    /// A review with all that is shown of it, by its id, or by the workflow if one review of it is open. Needs the right
    /// to read.
    pub async fn get(&self, review: &str) -> Result<ReviewView, Error> {
        self.caller.check(Right::Read)?;
        let record = self.find(review).await?;
        self.show(&record.id, body(&record)?).await
    }

    async fn find(&self, review: &str) -> Result<Record, Error> {
        let (store, org) = (&*self.rooms.cluster.store, self.caller.org);
        let Some(row) = store.find_definition(org, review).await? else { return self.record(review).await };
        let open = self.list(false).await?.into_iter().filter(|open| open.is.workflow == row.workflow);
        let ids: Vec<String> = open.map(|open| open.id).collect();
        match &*ids {
            [id] => self.record(id).await,
            [] => Err(Error::NotFound { what: "open review of the workflow", name: review.to_string() }),
            _ => Err(invalid("review", &format!("has several open reviews: name one of {}", ids.join(", ")))),
        }
    }

    async fn record(&self, id: &str) -> Result<Record, Error> {
        let (store, org) = (&*self.rooms.cluster.store, self.caller.org);
        let found = find::<Review>(store, org, id).await;
        let Some((workflow, _)) = id.strip_prefix("rev_").and_then(|id| id.split_once('.')) else { return found };
        match (found, store.find_definition(org, workflow).await?.map(|row| before_reviews(&row))) {
            (Err(Error::NotFound { .. }), Some(review)) if review.id == id => Ok(review.is.record(org, review.id)),
            (found, _) => found,
        }
    }

    /// Accepts what was shown, as a version or for one run. Needs the right to define, and a person.
    pub async fn accept(&self, review: &str, answer: Reviewing) -> Result<With<Review>, Error> {
        self.check_reviewer(&answer)?;
        let id = retry_on_conflict(|| self.accept_once(review, &answer)).await?;
        self.rooms.triggers.rescheduled.notify_one();
        read(&find::<Review>(&*self.rooms.cluster.store, self.caller.org, &id).await?)
    }

    /// Refuses what was shown; the agent can read the comment. Needs the right to define, and a person.
    pub async fn refuse(&self, review: &str, answer: Reviewing) -> Result<With<Review>, Error> {
        self.check_reviewer(&answer)?;
        let id = retry_on_conflict(|| self.refuse_once(review, &answer)).await?;
        read(&find::<Review>(&*self.rooms.cluster.store, self.caller.org, &id).await?)
    }

    fn check_reviewer(&self, answer: &Reviewing) -> Result<(), Error> {
        self.caller.check(Right::Define)?;
        self.caller.check_person("answer reviews")?;
        check_text("comment", answer.comment.as_deref())
    }

    /// The open review, if it is still what was shown.
    async fn shown(&self, review: &str, digest: &str) -> Result<Shown, Error> {
        let decided = current_auth(self.rooms, self.caller.org).await?;
        let record = self.find(review).await?;
        let is: Review = body(&record)?;
        let view = self.show(&record.id, is.clone()).await?;
        if !view.is_open {
            return Err(Error::NotNow(format!("the review {} is not open", record.id)));
        }
        if view.digest != digest {
            return Err(Error::Refused("the review has changed since it was shown: look at it again".into()));
        }
        Ok(Shown { record, is, view, decided })
    }

    async fn accept_once(&self, review: &str, answer: &Reviewing) -> Result<String, Error> {
        let shown = self.shown(review, &answer.digest).await?;
        let id = shown.record.id.clone();
        match (&answer.run, shown.is.version) {
            (Some(run), Some(version)) => self.accept_run(shown, version, run).await?,
            (Some(_), None) => return Err(invalid("run", "cannot be given for a proposal: no run has this version")),
            (None, Some(_)) => self.accept_version(shown, answer).await?,
            (None, None) => self.accept_proposal(shown, answer).await?,
        }
        Ok(id)
    }

    async fn accept_run(&self, shown: Shown, version: u32, run: &str) -> Result<(), Error> {
        let Shown { record, mut is, view, decided } = shown;
        let none = || Error::NotFound { what: "run", name: run.to_string() };
        let id = super::runs::find(self.rooms, self.caller, run).await?;
        let row = self.rooms.cluster.store.run(id).await?.ok_or_else(none)?;
        let of = self.rooms.workflows.version(row.definition).await?;
        if (&of.row.workflow, of.row.version) != (&is.workflow, version) {
            return Err(invalid("run", &format!("is not a run of version {version} of {:?}", is.name)));
        }
        is.runs.insert(run.to_string());
        let audit = self.audit("review.accept_run", &is.name, json!({"run": run, "digest": view.digest}));
        self.commit(vec![replaced(record, &is)], audit, decided).await
    }

    async fn accept_version(&self, shown: Shown, answer: &Reviewing) -> Result<(), Error> {
        let Shown { record, is, decided, .. } = shown;
        let compiled = self.rooms.workflows.newest(self.caller.org, &is.workflow).await?;
        let (row, workflows) = (&compiled.row, self.workflows());
        workflows.check_tool_name(Some(&row.workflow), &compiled.definition).await?;
        let mut records = vec![replaced(record, &self.answered(is, answer, true))];
        records.extend(workflows.claim(&row.workflow, row.version, &compiled.definition, true).await?);
        // What was to start at a time that has passed meanwhile starts now.
        records.extend(triggers::enabled(&self.rooms.triggers, row.org, &row.workflow).await?);
        let detail = json!({"version": row.version, "digest": answer.digest, "comment": answer.comment});
        self.commit(records, self.audit("review.accept", &row.name, detail), decided).await
    }

    async fn accept_proposal(&self, shown: Shown, answer: &Reviewing) -> Result<(), Error> {
        let Shown { record, is, view, decided } = shown;
        let workflows = self.workflows();
        let checked = workflows.check(Source { text: &view.text, file: None }).await?;
        self.rooms.access.check_definition(self.caller.org, &checked.definition).await?;
        let current = self.rooms.cluster.store.find_definition(self.caller.org, &is.workflow).await?;
        let before = current.ok_or_else(|| Error::NotFound { what: "workflow", name: is.name.clone() })?;
        workflows.check_tool_name(Some(&before.workflow), &checked.definition).await?;
        let (by, author) = (is.by.clone(), is.author.clone());
        let accepted = self.answered(Review { version: Some(before.version + 1), text: None, ..is }, answer, true);
        let next = NextVersion {
            checked: &checked,
            before: Some(&before),
            by,
            author,
            accepted: true,
            records: vec![replaced(record, &accepted)],
            action: "review.accept",
            detail: json!({"digest": answer.digest, "comment": answer.comment}),
            decided,
        };
        workflows.next_version(before.workflow.clone(), next).await.map(drop)
    }

    async fn refuse_once(&self, review: &str, answer: &Reviewing) -> Result<String, Error> {
        let Shown { record, is, decided, .. } = self.shown(review, &answer.digest).await?;
        let id = record.id.clone();
        let detail = json!({"version": is.version, "digest": answer.digest, "comment": answer.comment});
        let audit = self.audit("review.refuse", &is.name, detail);
        self.commit(vec![replaced(record, &self.answered(is, answer, false))], audit, decided).await?;
        Ok(id)
    }

    fn answered(&self, review: Review, answer: &Reviewing, accepted: bool) -> Review {
        let by = self.caller.name.to_string();
        let at = self.rooms.cluster.clock.now();
        Review { answer: Some(ReviewAnswer { accepted, by, at, comment: answer.comment.clone() }), ..review }
    }

    fn audit(&self, action: &str, workflow: &str, detail: Value) -> NewAudit {
        self.caller.audit(self.rooms.cluster.clock.now(), action, workflow, detail)
    }

    async fn commit(&self, records: Vec<RecordChange>, audit: NewAudit, decided: Auth) -> Result<(), Error> {
        let workflow = audit.target.clone();
        let update = Change { records, audit: vec![audit], grants_of: Some(self.caller.org), decided: Some(decided) };
        change(self.rooms, update, "review", &workflow).await
    }

    fn workflows(&self) -> Workflows<'_> {
        Workflows::new(self.rooms, self.caller)
    }
}

impl Workflows<'_> {
    /// Refuses to let an agent's key take away or bring back what a person answers for.
    pub(super) async fn check_replaceable(&self, row: &DefinitionRow, what: &str) -> Result<(), Error> {
        if self.caller.grants.is_agent() && self.rooms.workflows.reviewed(row).await?.is_accepted() {
            return self.caller.check_person(&format!("{what} a workflow that a person wrote or accepted"));
        }
        Ok(())
    }

    /// Stores a proposal in place of the author's earlier one. False if it is the same.
    pub(super) async fn propose(
        &self,
        checked: &Checked,
        current: &DefinitionRow,
        defining: &Defining,
        decided: Auth,
    ) -> Result<(With<Review>, bool), Error> {
        let review = self.new_review(&current.workflow, None, checked, defining).await?;
        let mut records = Vec::new();
        for earlier in read_all(self.rooms, self.caller.org, format!("{}/", current.workflow)).await? {
            if earlier.is.state() != ReviewState::Proposed || earlier.is.author != review.is.author {
                continue;
            }
            if earlier.is.text == review.is.text {
                return Ok((earlier, false));
            }
            records.push(RecordChange::Remove { kind: Review::KIND.into(), id: earlier.id });
        }
        records.push(RecordChange::Create(review.is.record(self.caller.org, review.id.clone())));
        let detail = json!({"review": review.id, "after": current.version, "reason": defining.reason});
        let now = self.rooms.cluster.clock.now();
        let audit = vec![self.caller.audit(now, "workflow.propose", &current.name, detail)];
        let update = Change { records, audit, grants_of: None, decided: Some(decided) };
        change(self.rooms, update, "review", &current.name).await?;
        Ok((review, true))
    }

    /// The review of what the caller wrote.
    pub(super) async fn new_review(
        &self,
        workflow: &str,
        version: Option<u32>,
        checked: &Checked,
        defining: &Defining,
    ) -> Result<With<Review>, Error> {
        let (cluster, at) = (&self.rooms.cluster, self.rooms.cluster.clock.now());
        let key = match &self.caller.key {
            Some(key) => cluster.store.record(Key::KIND, key).await?,
            None => None,
        };
        let is = Review {
            workflow: workflow.to_string(),
            name: checked.definition.name.clone(),
            version,
            text: version.is_none().then(|| checked.text.clone()),
            by: self.caller.name.to_string(),
            author: self.caller.actor().to_string(),
            key: key.as_ref().map(body::<Key>).transpose()?.map(|key| key.name),
            client: self.caller.client.as_deref().map(str::to_string),
            reason: defining.reason.clone(),
            at,
            answer: None,
            runs: BTreeSet::new(),
        };
        Ok(With { id: cluster.ids.public("rev", at), is })
    }
}

/// Whether a person can answer: a version as long as it is the current one.
fn is_open(review: &Review, current: Option<u32>) -> bool {
    match review.state() {
        ReviewState::Proposed => current.is_some(),
        ReviewState::Unreviewed => review.version == current,
        ReviewState::Refused => review.version.is_some() && review.version == current,
        ReviewState::Accepted => false,
    }
}

/// The review of a version that an agent's key wrote before there were reviews. It is not stored until it is answered.
fn before_reviews(row: &DefinitionRow) -> With<Review> {
    let is = Review {
        workflow: row.workflow.clone(),
        name: row.name.clone(),
        version: Some(row.version),
        text: None,
        by: row.by.clone(),
        author: row.author.clone(),
        key: None,
        client: None,
        reason: None,
        at: row.at,
        answer: None,
        runs: BTreeSet::new(),
    };
    With { id: format!("rev_{}.{}", row.workflow, row.version), is }
}

fn replaced(record: Record, review: &Review) -> RecordChange {
    let stored = record.version > 0;
    let record = Record { key: review.key(&record.id), body: json_text(review), ..record };
    if stored { RecordChange::Replace(record) } else { RecordChange::Create(record) }
}

async fn read_all(rooms: &crate::rooms::Rooms, org: OrgId, prefix: String) -> Result<Vec<With<Review>>, Error> {
    let filter = RecordFilter { kind: Review::KIND.into(), org: Some(org), prefix, after: None, limit: u32::MAX };
    rooms.cluster.store.records(filter).await?.iter().map(read).collect()
}
