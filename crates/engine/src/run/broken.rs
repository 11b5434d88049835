//! Runs that cannot be read: their stored state or their definition is damaged or exceeds a limit of the database.
//!
//! Such a run is left alone for a while instead of being read again for each of its timers and messages. It can be
//! cancelled without being read, and then it is purged like any other.

use super::children::{self, ChildResult};
use super::messages::{Envelope, Message};
use super::{Runner, queue};
use crate::error::Error;
use crate::records::json;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use stepwell_core::event::Failure;
use stepwell_core::fact::Fact;
use stepwell_core::run::{RunStatus, StoredFact};
use stepwell_core::time::Millis;
use stepwell_store::{
    Auth, Commit, Diff, GroupChange, Head, Hint, LoadedRun, LogRow, NewAudit, RunId, StepRow, WorkKey, hash,
};
use tokio::time::Instant;

/// How long a run is left alone after it could not be read.
const PAUSE: Duration = Duration::from_secs(600);
/// Maximum number of runs that are remembered.
const MAX_RUNS: usize = 10_000;
/// How long a cancelled run is kept if its definition, which says so, cannot be read.
const RETENTION: Millis = Millis(30 * Millis::DAY.0);

/// The runs that could not be read a moment ago.
#[derive(Default)]
pub struct BrokenRuns(Mutex<BTreeMap<RunId, Broken>>);

struct Broken {
    why: String,
    until: Instant,
    /// Timers that have fired, so that they do not fire again meanwhile.
    timers: Vec<Envelope>,
}

impl BrokenRuns {
    fn runs(&self) -> MutexGuard<'_, BTreeMap<RunId, Broken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers that a run could not be read. The first time, and when the reason changes, it is logged.
    pub fn insert(&self, run: RunId, why: String) {
        let mut runs = self.runs();
        let known = runs.get(&run).is_some_and(|broken| broken.why == why);
        if !known {
            tracing::error!(run = run.0, why, "a run cannot be read: it is left alone, and can be cancelled");
        }
        if runs.len() >= MAX_RUNS {
            runs.pop_first();
        }
        let timers = runs.remove(&run).map(|broken| broken.timers).unwrap_or_default();
        runs.insert(run, Broken { why, until: Instant::now() + PAUSE, timers });
    }

    /// Why the run is left alone, if it is.
    pub fn reason(&self, run: RunId) -> Option<Error> {
        let runs = self.runs();
        let broken = runs.get(&run).filter(|broken| broken.until > Instant::now());
        broken.map(|broken| Error::Broken(broken.why.clone()))
    }

    /// Keeps a timer that has fired, so that it does not fire again while the run is left alone.
    pub fn keep(&self, run: RunId, timer: Envelope) {
        if let Some(broken) = self.runs().get_mut(&run) {
            broken.timers.push(timer);
        }
    }

    /// Forgets a run that was read.
    pub fn remove(&self, run: RunId) {
        self.runs().remove(&run);
    }

    /// Lets timers of runs that were left alone long enough fire again.
    pub fn release(&self) {
        let now = Instant::now();
        for broken in self.runs().values_mut().filter(|broken| broken.until <= now) {
            broken.timers.clear();
        }
    }
}

/// A cancellation of a run that cannot be read.
pub struct Cancellation {
    pub run: RunId,
    pub by: Arc<str>,
    pub why: String,
    pub audit: Option<NewAudit>,
}

/// Ends a run as cancelled without reading its state or payloads. What it leaves behind, as timers, is removed when it
/// comes up, and with the run.
pub async fn cancel(runner: &Arc<Runner>, cancellation: Cancellation) -> Result<(), Error> {
    let run = cancellation.run;
    let missing = || Error::NotFound { what: "run", name: run.0.to_string() };
    let stored = runner.cluster.store.head(run).await?.ok_or_else(missing)?;
    if stored.row.finished.is_some() {
        return Err(Error::NotNow("the run has ended".into()));
    }
    // Only to stop what runs; if they cannot be read either, the attempts end by themselves.
    let steps = runner.cluster.store.attempts(run).await.unwrap_or_default();
    let commit = commit(runner, &stored, &steps, cancellation).await?;
    let written = runner.cluster.store.commit(vec![commit]).await?.pop();
    match written {
        Some(Ok(_)) => {}
        Some(Err(_)) => return Err(Error::NotNow("the run was changed at the same time: try again".into())),
        None => return Err(Error::Unavailable("the store returned no result".into())),
    }
    for key in runner.mailboxes.running(run) {
        runner.mailboxes.abort(run, &key);
    }
    runner.broken.remove(run);
    runner.ended(run);
    runner.cluster.send_hint(Hint { freed: vec![stored.row.org], ..Hint::default() });
    runner.place_freed(stored.row.org, stored.row.parent.as_ref().map(|parent| parent.run));
    if let Some(parent) = &stored.row.parent {
        runner.send(parent.run, Message::Mail);
    }
    if let Some(group) = stored.group {
        tokio::spawn(queue::admit(runner.clone(), stored.row.org, group));
    }
    Ok(())
}

async fn commit(
    runner: &Runner,
    stored: &LoadedRun,
    steps: &[StepRow],
    cancellation: Cancellation,
) -> Result<Commit, Error> {
    let (row, now) = (&stored.row, runner.cluster.clock.now());
    let failure = Failure::new("unreadable", format!("cancelled without being read: {}", cancellation.why));
    let ended: StoredFact = Fact::Ended {
        status: RunStatus::Cancelled,
        output: None,
        failure: Some(failure.clone()),
        by: Some(cancellation.by),
    };
    let facts = json(&[ended]);
    let kept = runner.workflows.version(row.definition).await.map_or(RETENTION, |it| it.definition.retention);
    let open: Vec<&StepRow> = steps.iter().filter(|step| step.ended.is_none()).collect();
    let keys = open.iter().map(|step| WorkKey { path: step.path.clone(), attempt: step.attempt });
    let result = ChildResult {
        run: row.public.as_str().into(),
        status: RunStatus::Cancelled,
        output: Arc::default(),
        failure: Some(failure),
    };
    Ok(Commit {
        run: row.id,
        expect: stored.version,
        previous: stored.hash,
        create: None,
        auth: Auth { org: row.org, epoch: runner.workflows.access.epoch(row.org).await? },
        head: Some(Head {
            status: RunStatus::Cancelled.name().into(),
            definition: row.definition,
            started: row.started,
            finished: Some(now),
            purge: Some(now + kept),
        }),
        state: cancelled(&stored.state),
        log: LogRow {
            at: now,
            hash: runner.cluster.store.chain_key().seal(hash(&stored.hash, now, &facts, "")),
            facts,
            payloads: String::new(),
        },
        steps: Vec::new(),
        values: Vec::new(),
        work: Diff { put: Vec::new(), remove: keys.collect() },
        timers: Diff::default(),
        mail: row.parent.iter().map(|parent| children::mail(parent, &result)).collect(),
        read: Vec::new(),
        outbox: Vec::new(),
        sent: Vec::new(),
        unique: Vec::new(),
        groups: stored.group.iter().map(|key| GroupChange::Leave { key: key.clone() }).collect(),
        gates: Diff { put: Vec::new(), remove: open.iter().map(|step| step.path.clone()).collect() },
        counted: Vec::new(),
        audit: cancellation.audit.into_iter().collect(),
    })
}

/// The state with the status of a cancelled run, if that much of it can be read.
fn cancelled(state: &str) -> String {
    match serde_json::from_str::<Value>(state) {
        Ok(Value::Object(mut fields)) if fields.contains_key("status") => {
            fields.insert("status".into(), RunStatus::Cancelled.name().into());
            Value::Object(fields).to_string()
        }
        _ => state.to_string(),
    }
}
