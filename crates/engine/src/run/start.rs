//! Starting runs: for callers, triggers, parents and tests. A run is acknowledged when it is on disk.

use super::drive::{self, Attempted, transition};
use super::live::Live;
use super::loads::Room;
use super::messages::{Begin, Envelope, Message};
use super::record::{scheduled_for, status};
use super::{Driver, Runner, callbacks, due, queue};
use crate::access::{Need, Right, actors, too_many_descendants, too_many_runs};
use crate::error::Error;
use crate::workflows::Compiled;
use serde_json::Value;
use std::cell::Cell;
use std::sync::Arc;
use stepwell_core::approval::digest;
use stepwell_core::definition::{Concurrency, WhenFull};
use stepwell_core::event::{Event, Failure, Ignored};
use stepwell_core::plan::{Env, advance};
use stepwell_core::run::{Run, RunStatus, View};
use stepwell_core::time::{Millis, Time};
use stepwell_core::value::check_size;
use stepwell_store::{NewAudit, NewRun, Parent, Refused, RunId, UniqueKey, Version};
use tokio::sync::oneshot;
use tokio::task::JoinError;

/// How long an idempotency key is remembered.
pub const KEY_LIFE: Millis = Millis(30 * Millis::DAY.0);
/// A key that expires this soon counts as expired: it may be free when the run is committed.
const KEY_MARGIN: Millis = Millis::from_secs(60);
/// How many oldest runs are cancelled to make room before the start is refused.
const MAX_EVICTIONS: u32 = 10;

/// A run to start.
#[derive(Clone)]
pub struct Start {
    /// Read before all other data that the start depends on: a later change makes the store refuse the commit.
    pub epoch: i64,
    pub compiled: Arc<Compiled>,
    pub input: Arc<Value>,
    pub headers: Option<Arc<Value>>,
    pub query: Option<Arc<Value>>,
    pub by: Arc<str>,
    /// What the client called itself.
    pub client: Option<Arc<str>>,
    /// See [`actors`].
    pub acts_as: String,
    pub labels: Vec<String>,
    pub unique: Option<UniqueKey>,
    pub parent: Option<Parent>,
    pub test: bool,
    /// When the run begins. `None`, or a time that has passed: at once.
    pub at: Option<Time>,
    /// The caller wants to know when the run ends.
    pub watch: bool,
    /// Its target becomes the run, whose id is not known yet.
    pub audit: Option<NewAudit>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Started {
    pub id: RunId,
    /// `run_…`.
    pub run: String,
    /// `wf_…`.
    pub workflow_id: String,
    pub workflow: String,
    pub version: u32,
    /// As of this response.
    pub status: String,
    pub created: Time,
    /// When the run begins, if it is scheduled.
    pub scheduled: Option<Time>,
    /// An earlier request with the same idempotency key started the run.
    pub repeated: bool,
}

/// Resolves when a run has ended.
pub struct End(oneshot::Receiver<()>);

impl End {
    /// Waits for the end of the run.
    pub async fn reached(self) -> Result<(), Error> {
        self.0.await.map_err(|_| Error::Unavailable("the engine has stopped".into()))
    }
}

/// Resolves when the run ends, or at once if it has ended.
pub async fn end_of(runner: &Runner, run: RunId) -> Result<End, Error> {
    // Registered before the row is read, so that an end in between is not missed.
    let end = runner.end_of(run);
    let missing = || Error::NotFound { what: "run", name: run.0.to_string() };
    let row = runner.cluster.store.run(run).await?.ok_or_else(missing)?;
    if row.finished.is_some() {
        let (ended, end) = oneshot::channel();
        // Cannot fail: this function holds the receiver.
        let _ = ended.send(());
        return Ok(End(end));
    }
    Ok(End(end))
}

/// Starts a run, or returns the run that its unique key has started. Returns the end only of a new, watched run.
pub async fn start(runner: &Arc<Runner>, mut request: Start) -> Result<(Started, Option<End>), Error> {
    if runner.cluster.is_draining() {
        return Err(Error::Unavailable("the engine is stopping".into()));
    }
    let org = request.compiled.row.org;
    let (headers, query) = (request.headers.as_ref(), request.query.as_ref());
    let parts = [("input", Some(&request.input)), ("headers", headers), ("query", query)];
    for (path, part) in parts {
        let invalid = |failure: Failure| Error::Input { path: path.into(), message: failure.message.to_string() };
        part.map_or(Ok(()), |part| check_size(part)).map_err(invalid)?;
    }
    // A request that was granted before is not checked again.
    if !was_granted(runner, &request).await? {
        check_start(runner, &request).await?;
    }
    let mut bounds = bounds(runner, &request).await?;
    let (mut entry, mut evictions, mut purged) = (Entry::Enter, 0, false);
    loop {
        match try_start(runner, &request, bounds, entry).await? {
            Ok(started) => return Ok(started),
            Err(Refused::Duplicate { run, digest }) => match repeated(runner, &request, run, &digest).await {
                // It has just been purged, together with its key.
                Err(Error::NotFound { .. }) if !purged => {
                    purged = true;
                    check_start(runner, &request).await?;
                }
                answer => return answer.map(|started| (started, None)),
            },
            Err(Refused::AuthChanged) => {
                runner.workflows.access.forget_epoch(org);
                refresh(runner, &mut request).await?;
                check_start(runner, &request).await?;
                bounds = self::bounds(runner, &request).await?;
            }
            // The same request may have been granted in the meantime.
            Err(Refused::TooManyOpen) => match bounds.open.take() {
                Some(most) if !was_granted(runner, &request).await? => return Err(too_many_runs(most)),
                _ => {}
            },
            Err(Refused::TooManyDescendants) => {
                return Err(too_many_descendants(bounds.descendants.unwrap_or_default()));
            }
            // Two runs of the same millisecond drew the same id.
            Err(Refused::Conflict | Refused::Taken) => {}
            Err(Refused::Full) => {
                let concurrency = request.compiled.definition.concurrency.as_ref();
                match concurrency.map_or(WhenFull::Skip, |concurrency| concurrency.when_full) {
                    WhenFull::Queue => entry = Entry::Queue,
                    WhenFull::Skip => return Err(Error::Full),
                    WhenFull::CancelOldest if evictions < MAX_EVICTIONS => {
                        evictions += 1;
                        evict(runner, &request).await?;
                    }
                    WhenFull::CancelOldest => return Err(Error::Full),
                }
            }
        }
    }
}

/// Whether a run enters its concurrency group at once or waits in the group's queue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Entry {
    Enter,
    Queue,
}

/// Whether the request's unique key has started a run and has not expired.
async fn was_granted(runner: &Runner, request: &Start) -> Result<bool, Error> {
    Ok(match &request.unique {
        Some(unique) => {
            let soon = runner.cluster.clock.now() + KEY_MARGIN;
            runner.cluster.store.keyed(&unique.scope, &unique.key, soon).await?.is_some()
        }
        None => false,
    })
}

/// Checks whether the run may start now.
async fn check_start(runner: &Runner, request: &Start) -> Result<(), Error> {
    let access = &runner.workflows.access;
    let org = request.compiled.row.org;
    let definition = &request.compiled.definition;
    let switches = access.switches(org, &request.compiled.row.workflow).await?;
    if !switches.enabled.unwrap_or(definition.enabled) && !request.test {
        return Err(Error::Disabled(definition.name.clone()));
    }
    if request.at.is_some() {
        due::check_count(runner, org).await?;
    }
    request.compiled.check_input(&request.input).await?;
    let (_, limits) = access.limits_of(org).await?;
    access.check_executions(org, &limits).await
}

/// The limits that the store checks in the commit.
#[derive(Clone, Copy)]
struct Bounds {
    /// Of the organisation's open runs.
    open: Option<u32>,
    /// Of the descendants of a child's root.
    descendants: Option<u32>,
}

async fn bounds(runner: &Runner, request: &Start) -> Result<Bounds, Error> {
    let (_, limits) = runner.workflows.access.limits_of(request.compiled.row.org).await?;
    Ok(Bounds {
        open: limits.concurrent_runs.filter(|_| !request.test),
        descendants: limits.descendants_per_run.filter(|_| request.parent.is_some()),
    })
}

/// Checks rights and reads the newest version again, after the organisation's epoch has changed.
async fn refresh(runner: &Runner, request: &mut Start) -> Result<(), Error> {
    let access = &runner.workflows.access;
    let org = request.compiled.row.org;
    request.epoch = access.epoch(org).await?;
    for actor in actors(&request.acts_as).filter(|actor| !actor.is_local()) {
        let grants = access.grants(org, &actor).await?;
        if !grants.is_some_and(|grants| grants.allow(Need::Right(Right::Run))) {
            return Err(Error::Forbidden { who: actor.user, right: Right::Run.name() });
        }
    }
    if !request.test {
        request.compiled = runner.workflows.newest(org, &request.compiled.row.workflow).await?;
    }
    Ok(())
}

/// The run that an earlier request with the same unique key started.
async fn repeated(runner: &Runner, request: &Start, run: RunId, digest: &str) -> Result<Started, Error> {
    let unique = request.unique.as_ref();
    if unique.is_some_and(|unique| unique.digest != digest) {
        return Err(Error::KeyReused(unique.map(|unique| unique.key.clone()).unwrap_or_default()));
    }
    let missing = || Error::NotFound { what: "run", name: run.0.to_string() };
    let stored = runner.cluster.store.head(run).await?.ok_or_else(missing)?;
    let compiled = runner.workflows.version(stored.row.definition).await?;
    let scheduled = scheduled_for(&stored)?;
    Ok(Started {
        id: run,
        run: stored.row.public.clone(),
        workflow_id: compiled.row.workflow.clone(),
        workflow: compiled.row.name.clone(),
        version: compiled.row.version,
        status: stored.row.status,
        created: stored.row.created,
        scheduled,
        repeated: true,
    })
}

fn just_started(live: &Live, created: Time) -> Started {
    Started {
        id: live.id,
        run: live.run.id.to_string(),
        workflow_id: live.compiled.row.workflow.clone(),
        workflow: live.compiled.row.name.clone(),
        version: live.compiled.row.version,
        status: status(&live.run).into(),
        created,
        scheduled: live.run.scheduled,
        repeated: false,
    }
}

type Attempt = Result<Result<(Started, Option<End>), Refused>, Error>;

async fn try_start(runner: &Arc<Runner>, request: &Start, bounds: Bounds, mut entry: Entry) -> Attempt {
    let now = runner.cluster.clock.now();
    let mut live = fresh(runner, request, now)?;
    let at = request.at.filter(|at| *at > now);
    let switches = runner.workflows.access.switches(live.org, &live.compiled.row.workflow).await?;
    if at.is_none() && switches.hold(live.group.as_deref()).is_some() && !request.test {
        entry = Entry::Queue;
        live.group.get_or_insert_with(|| live.compiled.row.workflow.clone());
    }
    let begin = Begin {
        body: request.input.clone(),
        headers: request.headers.clone(),
        query: request.query.clone(),
        by: request.by.clone(),
        queued: entry == Entry::Queue,
        at,
        epoch: request.epoch,
        new: NewRun {
            public: live.run.id.to_string(),
            org: live.org,
            created: now,
            by: request.by.to_string(),
            acts_as: request.acts_as.clone(),
            labels: request.labels.clone(),
            test: request.test,
            secret: live.secret,
            parent: request.parent.clone(),
            group: live.group.clone(),
            // A scheduled run counts as open when it is due.
            most_open: bounds.open.filter(|_| at.is_none()),
            most_descendants: bounds.descendants,
        },
        unique: request.unique.clone(),
    };
    let audit = request.audit.clone().map(|row| NewAudit { target: live.run.id.to_string(), ..row });
    let end = request.watch.then(|| {
        let (ended, end) = oneshot::channel();
        live.watcher = Some(ended);
        End(end)
    });
    // Driven from the start, so that no other commit precedes the first.
    let Some(driver) = runner.create_driven(live.id) else { return Ok(Err(Refused::Conflict)) };
    // In a task of its own: if the caller disconnects, the commit is still in flight.
    let first = tokio::spawn(first_transition(driver, live, begin, audit));
    let stopped = |error: JoinError| match error.is_panic() {
        true => Error::Broken("an internal error: the start of the run panicked".into()),
        false => Error::Unavailable("the engine is stopping".into()),
    };
    let started = first.await.unwrap_or_else(|error| Err(stopped(error)))?;
    Ok(started.map(|started| (started, end)))
}

async fn first_transition(
    driver: Driver,
    mut live: Box<Live>,
    begin: Begin,
    audit: Option<NewAudit>,
) -> Result<Result<Started, Refused>, Error> {
    let (runner, created) = (driver.runner.clone(), begin.new.created);
    let (reply, mut answer) = oneshot::channel();
    let mut messages = vec![Envelope { message: Message::Begin(Box::new(begin)), reply: Some(reply), audit }];
    match transition(&runner, &mut live, &mut messages, created).await {
        Ok(Attempted::Done) => {
            let planned = answer.try_recv().unwrap_or(Ok(()));
            let started = just_started(&live, created);
            if planned.is_ok() {
                metrics::counter!("stepwell_runs_started_total").increment(1);
            }
            if live.run.status == RunStatus::Queued
                && let Some(group) = live.group.clone()
            {
                // Room may have become free before the run was queued.
                tokio::spawn(queue::admit(runner.clone(), live.org, group));
            }
            stop_driving(driver, Some(live));
            planned.map(|()| Ok(started))
        }
        Ok(Attempted::Refused(refused)) => {
            stop_driving(driver, None);
            Ok(Err(refused))
        }
        Err(error) => {
            stop_driving(driver, None);
            reconcile(&runner, live, created, error).await
        }
    }
}

/// Stops driving the run, or hands it to a driver if messages have arrived.
fn stop_driving(mut driver: Driver, live: Option<Box<Live>>) {
    if let Some((messages, live)) = driver.next(live) {
        tokio::spawn(drive::resume(driver, live, messages));
    }
}

/// Checks whether the run exists, after a first commit whose outcome is unknown.
async fn reconcile(
    runner: &Arc<Runner>,
    mut live: Box<Live>,
    created: Time,
    error: Error,
) -> Result<Result<Started, Refused>, Error> {
    match runner.cluster.store.head(live.id).await {
        Ok(Some(_)) => {
            live.watcher.take().into_iter().for_each(|watcher| runner.notify_end(live.id, watcher));
            runner.send(live.id, Message::Reconcile);
            Ok(Ok(just_started(&live, created)))
        }
        _ => Err(error),
    }
}

/// A run that is not on disk yet.
fn fresh(runner: &Runner, request: &Start, now: Time) -> Result<Box<Live>, Error> {
    let ids = &runner.cluster.ids;
    let compiled = request.compiled.clone();
    let public = ids.public("run", now);
    let mut run = Run::new(public, ids.number() >> 11, compiled.definition.max_duration);
    run.client = request.client.clone();
    let mut live = Live {
        id: ids.run(now),
        org: compiled.row.org,
        run,
        version: Version(0),
        hash: [0; 32],
        secret: ids.bytes(),
        parent: request.parent.clone(),
        group: None,
        test: request.test,
        acts_as: request.acts_as.as_str().into(),
        erased: false,
        watcher: None,
        room: Room::default(),
        compiled,
    };
    if !request.test
        && let Some(concurrency) = &live.compiled.definition.concurrency
    {
        live.group = Some(group(runner, &live, request, concurrency)?);
    }
    Ok(Box::new(live))
}

/// The concurrency group that the run counts against: the workflow's, or the group of its key.
fn group(runner: &Runner, live: &Live, request: &Start, concurrency: &Concurrency) -> Result<String, Error> {
    let workflow = &live.compiled.row.workflow;
    let Some(key) = &concurrency.key else { return Ok(workflow.clone()) };
    // The key depends only on the input, which a queued run has.
    let mut run = live.run.clone();
    let event = Event::Triggered {
        body: request.input.clone(),
        headers: request.headers.clone(),
        query: request.query.clone(),
        by: request.by.clone(),
        queued: true,
    };
    let url = callbacks::urls(&runner.base_url, live);
    let now = runner.cluster.clock.now();
    let env = Env::plain(now, &url);
    let graph = &live.compiled.definition.graph;
    advance(graph, &mut run, event, env)?;
    let work = Cell::new(0);
    let view = View { graph, run: &run, instance: 0, result: None, callback: &url, now, work: &work };
    let invalid =
        |error: &dyn std::fmt::Display| Error::Input { path: "concurrency.key".into(), message: error.to_string() };
    let key = key.resolve(&view).map_err(|error| invalid(&error))?;
    Ok(keyed_group(workflow, &key.value))
}

/// The concurrency group of a workflow's runs with this key.
pub fn keyed_group(workflow: &str, key: &Value) -> String {
    format!("{workflow}:{}", digest(key))
}

/// Makes room by cancelling the run that has been in the group longest.
async fn evict(runner: &Arc<Runner>, request: &Start) -> Result<(), Error> {
    let live = fresh(runner, request, runner.cluster.clock.now())?;
    let Some(group) = &live.group else { return Ok(()) };
    let Some(oldest) = runner.cluster.store.holder(group).await? else { return Ok(()) };
    let reason: Arc<str> = "replaced by a newer run".into();
    match runner.ask(oldest, Message::Cancel { by: request.by.clone(), reason: Some(reason) }).await {
        Ok(()) | Err(Error::Conflict(Ignored::RunFinished)) => Ok(()),
        Err(error) => Err(error),
    }
}
