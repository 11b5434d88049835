//! Child runs. A parent requests the start or cancellation of a child by a notice in its own commit, so that the
//! request survives a crash. A child reports its result by mail to its parent, in the child's last commit.
//!
//! A child that the organisation's plan has no place for waits as a notice; see `child_starts.rs`.

use super::Runner;
use super::child_starts::InHand;
use super::keys::{ChildTask, START_PREFIX, child_key, child_named};
use super::live::Live;
use super::messages::Message;
use super::start::{Start, start};
use crate::access::{CONCURRENT_RUNS, DESCENDANTS_PER_RUN};
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

/// Scope of the unique keys that identify children by their parent's step.
pub const SCOPE: &str = "child";

/// How long a start whose outcome is unknown may still be in flight: longer than the store waits for an answer.
const START_IN_FLIGHT: Duration = Duration::from_secs(16);

/// Notices of one run that are handled at the same time.
const MAX_CONCURRENT: usize = 32;
/// Notices of one run that are in memory, with the inputs of the children. The others wait in the store.
const MAX_IN_HAND: usize = 256;
/// Maximum nesting of child runs, so that a workflow that starts itself comes to an end.
const MAX_DEPTH: u32 = 20;

/// The key of a child within [`SCOPE`].
pub fn unique(parent: RunId, path: &str, attempt: u32) -> String {
    format!("{}:{attempt}:{path}", parent.0)
}

/// The result of a child run, as mail to its parent.
#[derive(Serialize, Deserialize)]
pub struct ChildResult {
    pub run: Arc<str>,
    pub status: RunStatus,
    #[serde(default)]
    pub output: Arc<Value>,
    #[serde(default)]
    pub failure: Option<Failure>,
}

/// The mail by which a child that has ended reports its result.
pub fn result_mail(live: &Live, parent: &Parent) -> Mail {
    let output = live.run.output.and_then(|output| live.run.values.payload(output));
    let result = ChildResult {
        run: live.run.id.clone(),
        status: live.run.status,
        output: output.map(|payload| payload.value.clone()).unwrap_or_default(),
        failure: live.run.failure.clone(),
    };
    mail(parent, &result)
}

/// The result of a child run as mail.
pub fn mail(parent: &Parent, result: &ChildResult) -> Mail {
    let body = serde_json::to_string(result).expect("plain structs with text keys always serialise");
    Mail { to: parent.run, key: child_key(ChildTask::Start, &parent.path, parent.attempt), body }
}

/// The event for a child's mail. `None` if the parent has no such step, or no longer has it.
pub fn ended(live: &Live, mail: &StoredMail) -> Option<Event> {
    let (_, path, attempt) = child_named(&mail.key)?;
    let at = live.run.find(&live.compiled.definition.graph, path)?;
    let result: ChildResult = match serde_json::from_str(&mail.body) {
        Ok(result) => result,
        // A visible failure is better than a parent that waits for ever.
        Err(error) => {
            let failure = Failure::new("child_failed", format!("the child run's result cannot be read: {error}"));
            return Some(Event::ChildEnded { at, attempt, outcome: Outcome::Failure { failure, reply: None } });
        }
    };
    let reply = Reply { body: result.output, ..Reply::default() };
    let outcome = if result.status == RunStatus::Completed {
        Outcome::Success(reply)
    } else {
        let why = result.failure.map(|failure| format!(": {}", failure.message)).unwrap_or_default();
        let message = format!("the child run {} ended as {}{why}", result.run, result.status.name());
        Outcome::Failure { failure: Failure::retryable("child_failed", message), reply: Some(reply) }
    };
    Some(Event::ChildEnded { at, attempt, outcome })
}

/// The action for a notice, with all data it needs, so that the parent run need not be in memory.
struct ChildAction {
    notice: InHand,
    path: String,
    attempt: u32,
    /// The child to start. `None`: cancel the child if it was started.
    start: Option<ChildSpec>,
}

/// The workflow and input of a child that a step waits for.
struct ChildSpec {
    workflow: Arc<str>,
    input: Arc<Value>,
}

/// The run whose notices are handled.
#[derive(Clone)]
pub struct ParentRun {
    pub id: RunId,
    pub public: Arc<str>,
    pub org: OrgId,
    pub by: Arc<str>,
    pub client: Option<Arc<str>>,
    /// The actors whose rights limit its children: its own and the author of its version.
    pub acts_as: String,
    pub test: bool,
    pub depth: u32,
    /// The run at the top of its tree.
    pub root: RunId,
}

/// A child has only the rights that its parent and the parent's author share.
fn with_author(acts_as: &str, author: &str) -> String {
    if acts_as.split(' ').any(|actor| actor == author) { acts_as.to_string() } else { format!("{acts_as} {author}") }
}

/// Handles notices of a run in a separate task, because starting a child may have to wait for other runs, even for this
/// one. A handled notice is removed; one that failed stays and is retried later.
pub fn handle_notices(runner: &Arc<Runner>, live: &Live, mut keys: Vec<String>) {
    let rest = keys.split_off(keys.len().min(MAX_IN_HAND));
    let keys = keys.into_iter().filter_map(|key| InHand::take(runner, live.id, key));
    let actions: Vec<ChildAction> = keys.map(|notice| action(live, notice)).collect();
    let parent = ParentRun {
        id: live.id,
        public: live.run.id.clone(),
        org: live.org,
        by: live.run.by.clone(),
        client: live.run.client.clone(),
        acts_as: with_author(&live.actors(), &live.compiled.row.author),
        test: live.test,
        depth: live.parent.as_ref().map_or(0, |above| above.depth),
        root: live.parent.as_ref().map_or(live.id, |above| above.root),
    };
    let (starts, cancels): (Vec<_>, Vec<_>) = actions.into_iter().partition(|action| action.start.is_some());
    let runner = runner.clone();
    tokio::spawn(async move {
        let (started, ()) = tokio::join!(start_all(&runner, &parent, starts), cancel_all(&runner, &parent, cancels));
        match started {
            // The rest would have to wait as well.
            Started::Wait => {}
            Started::All if !rest.is_empty() => runner.send(parent.id, Message::Notices(rest)),
            // There may be a place that this run does not need.
            Started::All => runner.place_freed(parent.org, None),
        }
    });
}

/// Handles the start notices of a run whose children waited for a place.
pub async fn start_waiting(runner: &Arc<Runner>, live: &Live) {
    // If the store does not answer now, polling finds the notices.
    let found = runner.cluster.store.notices(live.id, START_PREFIX, MAX_IN_HAND as u32).await.unwrap_or_default();
    handle_notices(runner, live, found.into_iter().map(|notice| notice.key).collect());
}

fn action(live: &Live, notice: InHand) -> ChildAction {
    let (task, path, attempt) = child_named(&notice.key).unwrap_or((ChildTask::Cancel, "", 0));
    let (path, attempt) = (path.to_string(), attempt);
    // If the step no longer waits for the child, it may have been started all the same and has to be cancelled.
    let start = if task == ChildTask::Start { awaited_child(live, &path, attempt) } else { None };
    ChildAction { notice, path, attempt, start }
}

/// The child that this attempt of a step waits for.
fn awaited_child(live: &Live, path: &str, attempt: u32) -> Option<ChildSpec> {
    let graph = &live.compiled.definition.graph;
    let at = live.run.find(graph, path)?;
    let state = live.run.step(graph, at)?;
    let Kind::Child { workflow, .. } = &graph.step(at.step).def.kind else { return None };
    let input = state.input.and_then(|input| live.run.values.payload(input));
    let waits = state.phase == Phase::Child && state.attempt == attempt;
    let input = input.map(|payload| payload.value.clone()).unwrap_or_default();
    waits.then(|| ChildSpec { workflow: workflow.clone(), input })
}

/// Whether all children were started, or some wait for a place under the organisation's plan.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Started {
    All,
    Wait,
}

async fn start_all(runner: &Arc<Runner>, parent: &ParentRun, starts: Vec<ChildAction>) -> Started {
    // Under a limit one after the other: when one has to wait, the others need not be tried.
    let width = match runner.workflows.access.limits_of(parent.org).await {
        Ok((_, limits)) if limits.concurrent_runs.is_some() && !parent.test => 1,
        _ => MAX_CONCURRENT,
    };
    let starts = starts.into_iter().map(|action| start_one(runner, parent, action));
    let mut starts = futures_util::stream::iter(starts).buffer_unordered(width);
    while let Some(started) = starts.next().await {
        if started == Started::Wait {
            return Started::Wait;
        }
    }
    Started::All
}

async fn start_one(runner: &Arc<Runner>, parent: &ParentRun, action: ChildAction) -> Started {
    let ChildAction { notice, path, attempt, start } = action;
    let Some(ChildSpec { workflow, input }) = start else { return Started::All };
    let Some(_permit) = runner.child_starts.permit(parent.org).await else { return Started::All };
    let result = loop {
        let freed = runner.child_starts.freed(parent.org);
        let child = Child { path: &path, attempt, workflow: &workflow, input: input.clone() };
        match start_child(runner, parent, child).await {
            Err(Error::Limit { limit: CONCURRENT_RUNS, .. }) => {
                if runner.child_starts.wait(parent.org, parent.id, freed) {
                    return Started::Wait;
                }
            }
            result => break result,
        }
    };
    let key = notice.key.clone();
    // From here on the parent handles the notice. It stays until the parent has checked whether it waits for the child.
    drop(notice);
    match result {
        Ok(()) => runner.send(parent.id, Message::ChildStarted { notice: key }),
        Err(error @ (Error::Unavailable(_) | Error::Broken(_))) => {
            tracing::warn!(run = %parent.public, %key, %error, "cannot start a child run; will retry");
        }
        // The child can never start, so the parent's step fails.
        Err(error) => {
            let code = match error {
                Error::Limit { limit: DESCENDANTS_PER_RUN, .. } => "too_many_descendants",
                _ => "child_not_started",
            };
            let outcome = Outcome::Failure { failure: Failure::new(code, error.to_string()), reply: None };
            runner.send(parent.id, Message::ChildNotStarted { notice: key, outcome });
        }
    }
    Started::All
}

/// Whether the notice asks for the start of a child.
pub fn is_start(notice: &str) -> bool {
    child_named(notice).is_some_and(|(task, ..)| task == ChildTask::Start)
}

/// Whether the run still waits for the child of this notice.
pub fn is_awaited(live: &Live, notice: &str) -> bool {
    child_named(notice).is_some_and(|(_, path, attempt)| awaited_child(live, path, attempt).is_some())
}

/// Cancels the child of a run that was purged.
pub async fn cancel_orphan(runner: &Arc<Runner>, parent: RunId, notice: &str) {
    let Some((_, path, attempt)) = child_named(notice) else { return };
    let now = runner.cluster.clock.now();
    let child = runner.cluster.store.keyed(SCOPE, &unique(parent, path, attempt), now).await;
    if let Ok(Some(child)) = child {
        let reason = Some("the parent run no longer exists".into());
        runner.send(child, Message::Cancel { by: "stepwell".into(), reason });
    }
}

/// Cancels children that the run no longer waits for, and removes their notices.
async fn cancel_all(runner: &Arc<Runner>, parent: &ParentRun, cancels: Vec<ChildAction>) {
    let unknown = cancel_started(runner, parent, cancels).await;
    if unknown.is_empty() {
        return;
    }
    // A start whose outcome is unknown may still be in flight.
    runner.cluster.pause(START_IN_FLIGHT).await;
    if runner.cluster.stop.is_cancelled() {
        return;
    }
    let never_started = cancel_started(runner, parent, unknown).await;
    forget(runner, parent, never_started).await;
}

/// Cancels the children that were started. Returns the others.
async fn cancel_started(runner: &Arc<Runner>, parent: &ParentRun, cancels: Vec<ChildAction>) -> Vec<ChildAction> {
    let cancels = cancels.into_iter().map(|action| async {
        let cancelled = cancel(runner, parent, &action.path, action.attempt).await;
        (action, cancelled)
    });
    let mut cancels = futures_util::stream::iter(cancels).buffer_unordered(MAX_CONCURRENT);
    let (mut done, mut unknown) = (Vec::new(), Vec::new());
    while let Some((action, cancelled)) = cancels.next().await {
        match cancelled {
            Ok(true) => done.push(action),
            Ok(false) => unknown.push(action),
            Err(error) => {
                let key = &action.notice.key;
                tracing::warn!(run = %parent.public, %key, %error, "cannot cancel a child run; will retry");
            }
        }
    }
    forget(runner, parent, done).await;
    unknown
}

/// Removes the notices of handled actions.
async fn forget(runner: &Runner, parent: &ParentRun, done: Vec<ChildAction>) {
    let notices: Vec<_> = done.iter().map(|action| (parent.id, action.notice.key.clone())).collect();
    if !notices.is_empty()
        && let Err(error) = runner.cluster.store.forget(Stale { notices, ..Stale::default() }).await
    {
        tracing::warn!(%error, "cannot remove handled notices");
    }
}

/// Cancels the child of a step. False if there is none.
async fn cancel(runner: &Arc<Runner>, parent: &ParentRun, path: &str, attempt: u32) -> Result<bool, Error> {
    let key = unique(parent.id, path, attempt);
    let Some(child) = runner.cluster.store.keyed(SCOPE, &key, runner.cluster.clock.now()).await? else {
        return Ok(false);
    };
    let reason: Arc<str> = format!("the parent run {} no longer waits for it", parent.public).into();
    match runner.ask(child, Message::Cancel { by: parent.by.clone(), reason: Some(reason) }).await {
        // It ended by itself, or was purged.
        Ok(()) | Err(Error::Conflict(_) | Error::NotFound { .. }) => Ok(true),
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

/// Starts a child. Idempotent: a repeated request finds the child that was started before.
async fn start_child(runner: &Arc<Runner>, parent: &ParentRun, child: Child<'_>) -> Result<(), Error> {
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
        query: None,
        by: parent.by.clone(),
        client: parent.client.clone(),
        acts_as: parent.acts_as.clone(),
        unique: Some(unique),
        parent: Some(Parent { run: parent.id, path: path.to_string(), attempt, depth, root: parent.root }),
        test: parent.test,
        at: None,
        watch: false,
        audit: None,
    };
    start(runner, request).await.map(|_| ())
}
