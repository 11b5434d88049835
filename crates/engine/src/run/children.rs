//! Child runs. A parent's wish to start or cancel one is a notice written with its own commit, so that it survives a crash;
//! a child's end is mail to its parent in the child's own commit.

use super::Runner;
use super::keys::{ChildTask, child_key, child_named};
use super::live::Live;
use super::messages::Message;
use super::start::{Start, start};
use crate::error::Error;
use crate::workflows::labels;
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use stepwell_core::event::{Event, Failure, Outcome, Reply};
use stepwell_core::graph::Kind;
use stepwell_core::run::{Phase, RunStatus};
use stepwell_store::{Mail, OrgId, Parent, RunId, Stale, StoredMail, UniqueKey};

/// The scope of unique keys under which children are found by their parent's step.
pub const SCOPE: &str = "child";

/// How long after nobody got an answer a write may still happen.
const LATEST_START: Duration = Duration::from_secs(5);

/// Children of one run that are started at a time.
const AT_ONCE: usize = 32;
/// Runs nested inside each other: a workflow that starts itself must come to an end.
const MAX_DEPTH: u32 = 20;

/// The key of a child within [`SCOPE`].
pub fn unique(parent: RunId, path: &str, attempt: u32) -> String {
    format!("{}:{attempt}:{path}", parent.0)
}

/// What a child tells its parent at its end.
#[derive(Serialize, Deserialize)]
struct Farewell {
    run: Arc<str>,
    status: RunStatus,
    #[serde(default)]
    output: Arc<Value>,
    #[serde(default)]
    failure: Option<Failure>,
}

pub fn farewell(live: &Live, parent: &Parent) -> Mail {
    let output = live.run.output.and_then(|output| live.run.values.payload(output));
    let body = Farewell {
        run: live.run.id.clone(),
        status: live.run.status,
        output: output.map(|payload| payload.value.clone()).unwrap_or_default(),
        failure: live.run.failure.clone(),
    };
    let body = serde_json::to_string(&body).expect("plain structs with text keys always serialise");
    Mail { to: parent.run, key: child_key(ChildTask::Start, &parent.path, parent.attempt), body }
}

/// The event a child's mail is to its parent. `None` if there is no such step (any more).
pub fn ended(live: &Live, mail: &StoredMail) -> Option<Event> {
    let (_, path, attempt) = child_named(&mail.key)?;
    let at = live.run.find(&live.compiled.definition.graph, path)?;
    let told: Farewell = match serde_json::from_str(&mail.body) {
        Ok(told) => told,
        // Better a failure that is seen than a parent that waits for ever.
        Err(error) => {
            let failure = Failure::new("child_failed", format!("what the child run said cannot be read: {error}"));
            return Some(Event::ChildEnded { at, attempt, outcome: Outcome::Failure { failure, reply: None } });
        }
    };
    let reply = Reply { body: told.output, ..Reply::default() };
    let outcome = if told.status == RunStatus::Completed {
        Outcome::Success(reply)
    } else {
        let why = told.failure.map(|failure| format!(": {}", failure.message)).unwrap_or_default();
        let message = format!("the child run {} ended as {}{why}", told.run, told.status.name());
        Outcome::Failure { failure: Failure::retryable("child_failed", message), reply: Some(reply) }
    };
    Some(Event::ChildEnded { at, attempt, outcome })
}

/// What a notice comes to, with all that is needed to do it without the run.
struct Job {
    key: String,
    path: String,
    attempt: u32,
    /// The child to start; without one, whatever was started is to be cancelled.
    start: Option<(Arc<str>, Arc<Value>)>,
}

/// The run that has notices.
#[derive(Clone)]
pub struct Parenthood {
    pub id: RunId,
    pub public: Arc<str>,
    pub org: OrgId,
    pub by: Arc<str>,
    /// Its own limits, and those of the author of its version.
    pub acts_as: String,
    pub test: bool,
    pub depth: u32,
}

/// A child may do what its parent and the parent's author both may, and no more.
fn narrowed(acts_as: &str, author: &str) -> String {
    if acts_as.split(' ').any(|actor| actor == author) { acts_as.to_string() } else { format!("{acts_as} {author}") }
}

/// Sees to notices of a run, away from the run's own turn: starting a child may have to wait for other runs, even for this
/// one. A notice is removed when it is done, and tried again later if it is not.
pub fn carry_out(runner: &Arc<Runner>, live: &Live, keys: Vec<String>) {
    let parent = Parenthood {
        id: live.id,
        public: live.run.id.clone(),
        org: live.org,
        by: live.run.by.clone(),
        acts_as: narrowed(&live.actors(), &live.compiled.row.author),
        test: live.test,
        depth: live.parent.as_ref().map_or(0, |above| above.depth),
    };
    let jobs: Vec<Job> = keys.into_iter().map(|key| job(live, key)).collect();
    let runner = runner.clone();
    tokio::spawn(async move {
        let all = jobs.into_iter().map(|job| carry_out_one(&runner, &parent, job));
        let all = futures_util::stream::iter(all).buffered(AT_ONCE);
        let done: Vec<(RunId, String)> = all.filter_map(std::future::ready).collect().await;
        if !done.is_empty()
            && let Err(error) = runner.cluster.store.forget(Stale { notices: done, ..Stale::default() }).await
        {
            tracing::warn!(%error, "notices that are done cannot be removed");
        }
    });
}

fn job(live: &Live, key: String) -> Job {
    let (task, path, attempt) = child_named(&key).unwrap_or((ChildTask::Cancel, "", 0));
    let (path, attempt) = (path.to_string(), attempt);
    // A wish to start that nobody has any more: should it have been granted, the child is in the way.
    let start = if task == ChildTask::Start { awaited(live, &path, attempt) } else { None };
    Job { key, path, attempt, start }
}

/// The child that a step waits for: its workflow and its input.
fn awaited(live: &Live, path: &str, attempt: u32) -> Option<(Arc<str>, Arc<Value>)> {
    let graph = &live.compiled.definition.graph;
    let at = live.run.find(graph, path)?;
    let state = live.run.step(graph, at)?;
    let Kind::Child { workflow, .. } = &graph.step(at.step).def.kind else { return None };
    let input = state.input.and_then(|input| live.run.values.payload(input));
    let waits = state.phase == Phase::Child && state.attempt == attempt;
    waits.then(|| (workflow.clone(), input.map(|payload| payload.value.clone()).unwrap_or_default()))
}

/// The notice, if it is done.
async fn carry_out_one(runner: &Arc<Runner>, parent: &Parenthood, job: Job) -> Option<(RunId, String)> {
    let Job { key, path, attempt, start } = job;
    let started = start.is_some();
    let result = match start {
        Some((workflow, input)) => {
            start_child(runner, parent, Child { path: &path, attempt, workflow: &workflow, input }).await
        }
        None => cancel(runner, parent, &path, attempt).await,
    };
    match result {
        // The parent says whether it still wants it; until then the notice stays.
        Ok(()) if started => {
            runner.send(parent.id, Message::ChildStarted { notice: key });
            None
        }
        Ok(()) => Some((parent.id, key)),
        Err(error @ (Error::Unavailable(_) | Error::Broken(_))) => {
            tracing::warn!(run = %parent.public, %key, %error, "a child run cannot be reached for now");
            None
        }
        // It will never start: the parent's step has failed.
        Err(error) => {
            let failure = Failure::new("child_not_started", error.to_string());
            let outcome = Outcome::Failure { failure, reply: None };
            runner.send(parent.id, Message::ChildNotStarted { notice: key, outcome });
            None
        }
    }
}

/// Whether the run still waits for the child of this notice.
pub fn is_awaited(live: &Live, notice: &str) -> bool {
    child_named(notice).is_some_and(|(_, path, attempt)| awaited(live, path, attempt).is_some())
}

/// Cancels the child of a run that is gone.
pub async fn orphaned(runner: &Arc<Runner>, parent: RunId, notice: &str) {
    let Some((_, path, attempt)) = child_named(notice) else { return };
    let child = runner.cluster.store.keyed(SCOPE, &unique(parent, path, attempt)).await;
    if let Ok(Some(child)) = child {
        runner.send(child, Message::Cancel { by: "stepwell".into(), reason: Some("its parent run is gone".into()) });
    }
}

async fn cancel(runner: &Arc<Runner>, parent: &Parenthood, path: &str, attempt: u32) -> Result<(), Error> {
    let key = unique(parent.id, path, attempt);
    let mut child = runner.cluster.store.keyed(SCOPE, &key).await?;
    if child.is_none() {
        // A start whose outcome nobody knows may still be on its way.
        runner.cluster.pause(LATEST_START).await;
        if runner.cluster.stop.is_cancelled() {
            return Err(Error::Unavailable("the engine is stopping".into()));
        }
        child = runner.cluster.store.keyed(SCOPE, &key).await?;
    }
    let Some(child) = child else { return Ok(()) };
    let reason: Arc<str> = format!("its parent run {} no longer waits for it", parent.public).into();
    match runner.ask(child, Message::Cancel { by: parent.by.clone(), reason: Some(reason) }).await {
        // It ended by itself, or is long gone.
        Ok(()) | Err(Error::Conflict(_) | Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// A child to start for a step of its parent.
struct Child<'a> {
    path: &'a str,
    attempt: u32,
    workflow: &'a str,
    input: Arc<Value>,
}

/// Starts a child once, however often it is asked for.
async fn start_child(runner: &Arc<Runner>, parent: &Parenthood, child: Child<'_>) -> Result<(), Error> {
    let Child { path, attempt, workflow, input } = child;
    let depth = parent.depth + 1;
    if depth > MAX_DEPTH {
        return Err(Error::Refused(format!("child runs are nested more than {MAX_DEPTH} deep")));
    }
    let epoch = runner.workflows.access.epoch(parent.org).await?;
    let compiled = runner.workflows.newest(parent.org, workflow).await?;
    let key = unique(parent.id, path, attempt);
    let unique = UniqueKey { scope: SCOPE.into(), key, digest: String::new(), expires: None };
    let request = Start {
        epoch,
        labels: labels(&compiled, BTreeMap::new())?,
        compiled,
        input,
        headers: None,
        by: parent.by.clone(),
        acts_as: parent.acts_as.clone(),
        unique: Some(unique),
        parent: Some(Parent { run: parent.id, path: path.to_string(), attempt, depth }),
        test: parent.test,
        watch: false,
        audit: None,
    };
    start(runner, request).await.map(|_| ())
}
