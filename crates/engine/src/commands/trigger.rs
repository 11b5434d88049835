//! Starting runs: by a caller, as a test, as the child of another run. A run is acknowledged when it is on disk.

use super::define::{check, keep};
use super::{Caller, Right, Source};
use crate::children::Parenthood;
use crate::definitions::Compiled;
use crate::definitions::check_input;
use crate::drive::{self, follow_up, submit};
use crate::engine::{Engine, Inner};
use crate::error::Error;
use crate::letters::callbacks;
use crate::record::{Place, record, status};
use crate::runs::{Live, What};
use crate::{children, upkeep};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use stepwell_core::definition::{Concurrency, WhenFull};
use stepwell_core::event::{Event, Failure, Ignored};
use stepwell_core::plan::{Env, Transition, advance};
use stepwell_core::run::{Run, RunStatus, View};
use stepwell_core::time::Millis;
use stepwell_core::value::check_size;
use stepwell_store::*;
use tokio::sync::oneshot;

/// Runs inside each other at the most: a workflow that starts itself must come to an end.
const MAX_CHILD_DEPTH: u32 = 20;
/// How long an idempotency key is remembered.
const KEY_LIFE: Millis = Millis(30 * Millis::DAY.0);
/// How often a place is made by cancelling the oldest run before the caller is told that there is none.
const MAX_EVICTIONS: u32 = 10;

/// A request to start a run.
#[derive(Clone, Debug)]
pub struct Trigger<'a> {
    pub workflow: &'a str,
    pub input: Value,
    pub headers: Option<Value>,
    /// The same key with the same input starts one run only.
    pub key: Option<&'a str>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Started {
    pub id: RunId,
    /// `run_…`.
    pub run: String,
    pub workflow: String,
    pub version: u32,
    /// The idempotency key had started it before.
    pub repeated: bool,
}

/// Comes when a run has ended.
pub struct End(oneshot::Receiver<()>);

impl End {
    pub async fn reached(self) -> Result<(), Error> {
        self.0.await.map_err(|_| Error::Unavailable("the engine has stopped".into()))
    }
}

impl Engine {
    pub async fn trigger(&self, caller: &Caller, trigger: Trigger<'_>) -> Result<Started, Error> {
        let beginning = self.beginning(caller, trigger).await?;
        begin(&self.inner, beginning, &mut None).await
    }

    /// The same, for a caller who will wait for the end.
    pub async fn trigger_and_watch(&self, caller: &Caller, trigger: Trigger<'_>) -> Result<(Started, End), Error> {
        let beginning = self.beginning(caller, trigger).await?;
        let mut end = Some(None);
        let started = begin(&self.inner, beginning, &mut end).await?;
        match end.flatten() {
            Some(end) if !started.repeated => Ok((started, End(end))),
            _ => {
                let end = self.end_of(started.id).await?;
                Ok((started, end))
            }
        }
    }

    async fn beginning(&self, caller: &Caller, trigger: Trigger<'_>) -> Result<Beginning, Error> {
        caller.check(Right::Run)?;
        let compiled = self.inner.definitions.newest(&*self.inner.store, caller.org, trigger.workflow).await?;
        let unique = trigger.key.map(|key| UniqueKey {
            scope: format!("trigger:{}", compiled.row.workflow),
            key: key.to_string(),
            digest: digest(&trigger.input),
            expires: Some(self.inner.clock.now() + KEY_LIFE),
        });
        Ok(Beginning {
            compiled,
            input: Arc::new(trigger.input),
            headers: trigger.headers.map(Arc::new),
            by: caller.name.clone(),
            unique,
            parent: None,
            test: false,
        })
    }

    /// Comes when the run ends, or at once if it has.
    pub async fn end_of(&self, run: RunId) -> Result<End, Error> {
        // Asked for before looking, so that an end in between is not missed.
        let end = self.inner.end_of(run);
        let gone = || Error::NotFound { what: "run", name: run.0.to_string() };
        let row = self.inner.store.run(run).await?.ok_or_else(gone)?;
        if row.finished.is_some() {
            let (ended, end) = oneshot::channel();
            // The receiver is right here.
            let _ = ended.send(());
            return Ok(End(end));
        }
        Ok(End(end))
    }

    /// Runs a definition that is not saved, apart from real runs.
    pub async fn test_run(&self, caller: &Caller, source: Source<'_>, input: Value) -> Result<Started, Error> {
        caller.check(Right::Define)?;
        caller.check(Right::Run)?;
        let definition = check(&self.inner, source)?;
        check_input(&definition, &input)?;
        let compiled = keep(&self.inner, caller, &definition, source.text, true).await?;
        let (input, by) = (Arc::new(input), caller.name.clone());
        let beginning = Beginning { compiled, input, headers: None, by, unique: None, parent: None, test: true };
        begin(&self.inner, beginning, &mut None).await
    }
}

/// A child to be started for a step of its parent.
pub(crate) struct ChildOf<'a> {
    pub parent: &'a Parenthood,
    pub path: &'a str,
    pub attempt: u32,
    pub workflow: &'a str,
    pub input: Arc<Value>,
}

/// Starts a child once, however often it is asked for.
pub(crate) async fn start_child(inner: &Arc<Inner>, child: ChildOf<'_>) -> Result<(), Error> {
    let ChildOf { parent, path, attempt, workflow, input } = child;
    let depth = parent.depth + 1;
    if depth > MAX_CHILD_DEPTH {
        return Err(Error::Refused(format!("child runs are nested more than {MAX_CHILD_DEPTH} deep")));
    }
    let compiled = inner.definitions.newest(&*inner.store, parent.org, workflow).await?;
    let key = children::unique(parent.id, path, attempt);
    let unique = UniqueKey { scope: children::SCOPE.into(), key, digest: String::new(), expires: None };
    let beginning = Beginning {
        compiled,
        input,
        headers: None,
        by: parent.by.clone(),
        unique: Some(unique),
        parent: Some(Parent { run: parent.id, path: path.to_string(), attempt, depth }),
        test: parent.test,
    };
    begin(inner, beginning, &mut None).await.map(|_| ())
}

#[derive(Clone)]
struct Beginning {
    compiled: Arc<Compiled>,
    input: Arc<Value>,
    headers: Option<Arc<Value>>,
    by: Arc<str>,
    unique: Option<UniqueKey>,
    parent: Option<Parent>,
    test: bool,
}

/// Whether a run asks for one of the workflow's places, or goes to the queue for it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Entry {
    Enter,
    Queue,
}

/// Set to `Some(None)` by whoever wants to hear of the end, and filled in before the run can reach it.
type Watch = Option<Option<oneshot::Receiver<()>>>;

async fn begin(inner: &Arc<Inner>, beginning: Beginning, watch: &mut Watch) -> Result<Started, Error> {
    if inner.is_draining() {
        return Err(Error::Unavailable("the engine is stopping".into()));
    }
    let definition = &beginning.compiled.definition;
    if !definition.enabled && !beginning.test {
        return Err(Error::Disabled(definition.name.clone()));
    }
    beginning.compiled.check_input(&beginning.input)?;
    let parts = [("input", Some(&beginning.input)), ("headers", beginning.headers.as_ref())];
    for (path, part) in parts {
        let bad = |failure: Failure| Error::Input { path: path.into(), message: failure.message.to_string() };
        part.map_or(Ok(()), |part| check_size(part)).map_err(bad)?;
    }
    let mut entry = Entry::Enter;
    let mut evictions = 0;
    let mut gone = false;
    loop {
        match try_begin(inner, &beginning, entry, watch).await? {
            Ok(started) => return Ok(started),
            Err(Refused::Duplicate { run, digest }) => match repeated(inner, &beginning, run, &digest).await {
                // It was purged just now, and its key with it.
                Err(Error::NotFound { .. }) if !gone => gone = true,
                answer => return answer,
            },
            Err(Refused::AuthChanged) => inner.forget_epoch(beginning.compiled.row.org),
            // Two runs of one millisecond drew the same number.
            Err(Refused::Conflict) => {}
            Err(Refused::Full) => {
                let when_full = definition.concurrency.as_ref().map(|concurrency| concurrency.when_full);
                match when_full.unwrap_or(WhenFull::Skip) {
                    WhenFull::Queue => entry = Entry::Queue,
                    WhenFull::Skip => return Err(Error::Full),
                    WhenFull::CancelOldest if evictions < MAX_EVICTIONS => {
                        evictions += 1;
                        evict(inner, &beginning).await?;
                    }
                    WhenFull::CancelOldest => return Err(Error::Full),
                }
            }
        }
    }
}

async fn repeated(inner: &Inner, beginning: &Beginning, run: RunId, digest: &str) -> Result<Started, Error> {
    let unique = beginning.unique.as_ref();
    if unique.is_some_and(|unique| unique.digest != digest) {
        return Err(Error::KeyReused(unique.map(|unique| unique.key.clone()).unwrap_or_default()));
    }
    let gone = || Error::NotFound { what: "run", name: run.0.to_string() };
    let stored = inner.store.load(run).await?.ok_or_else(gone)?;
    let compiled = inner.definitions.get(&*inner.store, stored.row.definition).await?;
    Ok(started(run, &stored.row.public, &compiled, true))
}

fn started(id: RunId, run: &str, compiled: &Compiled, repeated: bool) -> Started {
    let (workflow, version) = (compiled.row.name.clone(), compiled.row.version);
    Started { id, run: run.to_string(), workflow, version, repeated }
}

async fn try_begin(
    inner: &Arc<Inner>,
    beginning: &Beginning,
    entry: Entry,
    watch: &mut Watch,
) -> Result<Result<Started, Refused>, Error> {
    let now = inner.clock.now();
    let mut live = fresh(inner, beginning)?;
    let event = Event::Triggered {
        body: beginning.input.clone(),
        headers: beginning.headers.clone(),
        by: beginning.by.clone(),
        queued: entry == Entry::Queue,
    };
    let before = status(&live.run);
    let url = callbacks(inner, &live);
    let env = Env { now, callback: &url };
    let transition = advance(&live.compiled.definition.graph, &mut live.run, event, env)?;
    let new = NewRun {
        public: live.run.id.to_string(),
        org: live.org,
        created: now,
        by: beginning.by.to_string(),
        test: beginning.test,
        secret: live.secret,
        parent: beginning.parent.clone(),
        place: live.place.clone(),
    };
    let place = Place {
        run: live.id,
        version: live.version,
        hash: live.hash,
        auth: Auth { org: live.org, epoch: inner.epoch(live.org).await? },
        create: Some(new),
        now,
        status: before,
        definition: live.compiled.row.id,
        purge: Some(now + drive::retention(&live)),
        fired: Vec::new(),
        read: Vec::new(),
    };
    let mut commit = record(&live.compiled.definition.graph, &live.run, &transition, place);
    commit.unique.extend(beginning.unique.clone());
    commit.places.extend(live.place.clone().map(|key| match entry {
        Entry::Enter => {
            let limit = live.compiled.definition.concurrency.as_ref().map(|concurrency| concurrency.limit);
            PlaceChange::Take { key, limit }
        }
        Entry::Queue => PlaceChange::Queue { key },
    }));
    // Driven from the start, so that nothing overtakes the first commit.
    let id = live.id;
    if !inner.runs.adopt(id) {
        return Ok(Err(Refused::Conflict));
    }
    if let Some(end) = watch {
        *end = Some(inner.end_of(id));
    }
    // In a task of its own: whoever asked may leave, and the commit is under way all the same.
    let written = tokio::spawn(write_first(inner.clone(), live, commit, transition)).await;
    written.unwrap_or_else(|_| Err(Error::Unavailable("the engine is stopping".into())))
}

async fn write_first(
    inner: Arc<Inner>,
    mut live: Box<Live>,
    commit: Commit,
    transition: Transition,
) -> Result<Result<Started, Refused>, Error> {
    let inner = &inner;
    match submit(inner, &live, commit, &transition).await {
        Ok(Ok(follow)) => {
            let started = started(live.id, &live.run.id, &live.compiled, false);
            follow_up(inner, &mut live, follow);
            if live.run.status == RunStatus::Queued
                && let Some(place) = live.place.clone()
            {
                // The place may have become free before the run was in the queue, and then nobody looked for it there.
                tokio::spawn(upkeep::admit(inner.clone(), place));
            }
            leave(inner, live.id, Some(live));
            Ok(Ok(started))
        }
        Ok(Err(refused)) => {
            leave(inner, live.id, None);
            Ok(Err(refused))
        }
        Err(error) => {
            leave(inner, live.id, None);
            unsure(inner, live.id, &live, error).await
        }
    }
}

/// Leaves the run to itself, or to a driver if something happened to it meanwhile.
fn leave(inner: &Arc<Inner>, id: RunId, live: Option<Box<Live>>) {
    if let Some((letters, live)) = inner.runs.next(id, live) {
        drive::resume(inner.clone(), id, live, letters);
    }
}

/// Nobody knows what became of the first commit: looks.
async fn unsure(inner: &Arc<Inner>, id: RunId, live: &Live, error: Error) -> Result<Result<Started, Refused>, Error> {
    match inner.store.load(id).await {
        Ok(Some(_)) => {
            inner.send(id, What::Reconcile);
            Ok(Ok(started(id, &live.run.id, &live.compiled, false)))
        }
        _ => Err(error),
    }
}

fn fresh(inner: &Inner, beginning: &Beginning) -> Result<Box<Live>, Error> {
    let now = inner.clock.now();
    let compiled = beginning.compiled.clone();
    let public = inner.ids.public("run", now);
    let run = Run::new(public, inner.ids.number() >> 11, compiled.definition.max_duration);
    let mut live = Live {
        id: inner.ids.run(now),
        org: compiled.row.org,
        run,
        version: Version(0),
        hash: [0; 32],
        secret: inner.ids.bytes(),
        parent: beginning.parent.clone(),
        place: None,
        test: beginning.test,
        compiled,
    };
    if !beginning.test
        && let Some(concurrency) = &live.compiled.definition.concurrency
    {
        live.place = Some(place(inner, &live, beginning, concurrency)?);
    }
    Ok(Box::new(live))
}

/// Which limit the run counts against: the workflow's, or that of its key.
fn place(inner: &Inner, live: &Live, beginning: &Beginning, concurrency: &Concurrency) -> Result<String, Error> {
    let workflow = &live.compiled.row.workflow;
    let Some(key) = &concurrency.key else { return Ok(workflow.clone()) };
    // The key reads only the input, which a queued run has.
    let mut run = live.run.clone();
    let event = Event::Triggered {
        body: beginning.input.clone(),
        headers: beginning.headers.clone(),
        by: beginning.by.clone(),
        queued: true,
    };
    let url = callbacks(inner, live);
    let env = Env { now: inner.clock.now(), callback: &url };
    let graph = &live.compiled.definition.graph;
    advance(graph, &mut run, event, env)?;
    let view = View { graph, run: &run, instance: 0, result: None, callback: &url };
    let missing =
        |missing: &dyn std::fmt::Display| Error::Input { path: "concurrency.key".into(), message: missing.to_string() };
    let key = key.resolve(&view).map_err(|error| missing(&error))?;
    Ok(format!("{workflow}:{}", digest(&key.value)))
}

/// Makes room by cancelling the run that has had its place longest.
async fn evict(inner: &Arc<Inner>, beginning: &Beginning) -> Result<(), Error> {
    let live = fresh(inner, beginning)?;
    let Some(place) = &live.place else { return Ok(()) };
    let Some(oldest) = inner.store.holder(place).await? else { return Ok(()) };
    let reason: Arc<str> = "a newer run took its place".into();
    match inner.ask(oldest, What::Cancel { by: beginning.by.clone(), reason: Some(reason) }).await {
        Ok(()) | Err(Error::Conflict(Ignored::RunFinished)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// The same for equal values, whatever the order of their keys.
fn digest(value: &Value) -> String {
    let mut sorted = value.clone();
    sorted.sort_all_objects();
    let mut digest = Sha256::new();
    digest.update(sorted.to_string().as_bytes());
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
