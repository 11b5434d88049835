//! Starting runs: by a caller, as a test, as the child of another run. A run is acknowledged when it is on disk.

mod unasked;

pub(crate) use unasked::{Begin, ChildOf, begin_as, start_child};

use super::define::{check, check_code, keep_for_test};
use super::labels::labels;
use super::{Caller, Right, Source};
use crate::definitions::Compiled;
use crate::definitions::check_input;
use crate::drive::{self, follow_up, submit};
use crate::engine::{Engine, Inner};
use crate::error::Error;
use crate::letters::callbacks;
use crate::record::{Place, record, status};
use crate::rights::{Need, actors};
use crate::runs::{Live, What};
use crate::{people, plans, switches, upkeep};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::Arc;
use stepwell_core::definition::{Concurrency, WhenFull};
use stepwell_core::event::{Event, Failure, Ignored};
use stepwell_core::plan::{Env, Transition, advance};
use stepwell_core::run::{Run, RunStatus, View};
use stepwell_core::time::{Millis, Time};
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
    /// Beside those of the workflow.
    pub labels: BTreeMap<String, String>,
}

impl<'a> Trigger<'a> {
    pub fn new(workflow: &'a str, input: Value) -> Trigger<'a> {
        Trigger { workflow, input, headers: None, key: None, labels: BTreeMap::new() }
    }
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
    /// As of the answer.
    pub status: String,
    pub created: Time,
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
        let epoch = self.inner.epoch(caller.org).await?;
        let compiled = self.inner.definitions.newest(&self.inner, caller.org, trigger.workflow).await?;
        let unique = trigger.key.map(|key| UniqueKey {
            scope: format!("trigger:{}", compiled.row.workflow),
            key: key.to_string(),
            digest: digest(&trigger.input),
            expires: Some(self.inner.clock.now() + KEY_LIFE),
        });
        let labels = labels(&compiled, trigger.labels)?;
        let audit = self.trail(caller, "run.start", "", json!({"workflow": compiled.row.name}));
        let plain = Beginning::plain(caller, (compiled, epoch), trigger.input, audit);
        Ok(Beginning { headers: trigger.headers.map(Arc::new), labels, unique, ..plain })
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
        check_code(&self.inner, &definition).await?;
        check_input(&definition, &input)?;
        let epoch = self.inner.epoch(caller.org).await?;
        plans::check_steps(&self.inner, caller.org, &definition).await?;
        let compiled = keep_for_test(&self.inner, caller, &definition, source.text).await?;
        let audit = self.trail(caller, "run.test", "", json!({"workflow": definition.name}));
        let plain = Beginning::plain(caller, (compiled, epoch), input, audit);
        begin(&self.inner, Beginning { test: true, ..plain }, &mut None).await
    }

    pub(super) async fn start_call(&self, caller: &Caller, call: Call<'_>) -> Result<Started, Error> {
        let audit = self.trail(caller, "tool.call", "", json!({"tool": call.tool}));
        let labels = labels(&call.compiled, BTreeMap::new())?;
        let plain = Beginning::plain(caller, (call.compiled, call.epoch), call.arguments, audit);
        let beginning = Beginning { labels, ..plain };
        begin(&self.inner, beginning, &mut None).await
    }
}

/// A call of a tool, as a run of one step.
pub(super) struct Call<'a> {
    pub compiled: Arc<Compiled>,
    /// From before everything that the decision to make it rests on.
    pub epoch: i64,
    pub tool: &'a str,
    pub arguments: Value,
}

#[derive(Clone)]
struct Beginning {
    /// Read before everything that the decision to start rests on: whatever changes after that refuses the commit.
    epoch: i64,
    compiled: Arc<Compiled>,
    input: Arc<Value>,
    headers: Option<Arc<Value>>,
    by: Arc<str>,
    /// See [`crate::rights::actors`].
    acts_as: String,
    labels: Vec<String>,
    unique: Option<UniqueKey>,
    parent: Option<Parent>,
    test: bool,
    /// See [`NewRun::most_open`].
    most_open: Option<u32>,
    /// Its target is the run, whose id is not known yet.
    audit: Option<NewAudit>,
}

impl Beginning {
    fn plain(
        caller: &Caller,
        (compiled, epoch): (Arc<Compiled>, i64),
        input: Value,
        audit: Option<NewAudit>,
    ) -> Beginning {
        Beginning {
            epoch,
            compiled,
            input: Arc::new(input),
            headers: None,
            by: caller.name.clone(),
            acts_as: caller.actor().to_string(),
            labels: Vec::new(),
            unique: None,
            parent: None,
            test: false,
            most_open: None,
            audit,
        }
    }
}

/// Whether a run asks for one of the workflow's places, or goes to the queue for it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Entry {
    Enter,
    Queue,
}

/// Set to `Some(None)` by whoever wants to hear of the end, and filled in before the run can reach it.
type Watch = Option<Option<oneshot::Receiver<()>>>;

async fn begin(inner: &Arc<Inner>, mut beginning: Beginning, watch: &mut Watch) -> Result<Started, Error> {
    if inner.is_draining() {
        return Err(Error::Unavailable("the engine is stopping".into()));
    }
    let org = beginning.compiled.row.org;
    let parts = [("input", Some(&beginning.input)), ("headers", beginning.headers.as_ref())];
    for (path, part) in parts {
        let bad = |failure: Failure| Error::Input { path: path.into(), message: failure.message.to_string() };
        part.map_or(Ok(()), |part| check_size(part)).map_err(bad)?;
    }
    // A request that was granted before is not asked again whether it may be.
    if !was_granted(inner, &beginning).await? {
        beginning.most_open = decide(inner, &beginning).await?;
    }
    let (mut entry, mut evictions, mut gone) = (Entry::Enter, 0, false);
    loop {
        match try_begin(inner, &beginning, entry, watch).await? {
            Ok(started) => return Ok(started),
            Err(Refused::Duplicate { run, digest }) => match repeated(inner, &beginning, run, &digest).await {
                // It was purged just now, and its key with it.
                Err(Error::NotFound { .. }) if !gone => gone = true,
                answer => return answer,
            },
            Err(Refused::AuthChanged) => {
                inner.epochs.forget(org);
                look_again(inner, &mut beginning).await?;
                beginning.most_open = decide(inner, &beginning).await?;
            }
            // The same request may have been granted meanwhile.
            Err(Refused::TooManyOpen) => match beginning.most_open.take() {
                Some(most) if !was_granted(inner, &beginning).await? => return Err(plans::too_many_runs(most)),
                _ => {}
            },
            // Two runs of one millisecond drew the same number.
            Err(Refused::Conflict | Refused::Taken) => {}
            Err(Refused::Full) => {
                let concurrency = beginning.compiled.definition.concurrency.as_ref();
                match concurrency.map_or(WhenFull::Skip, |concurrency| concurrency.when_full) {
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

async fn was_granted(inner: &Inner, beginning: &Beginning) -> Result<bool, Error> {
    Ok(match &beginning.unique {
        Some(unique) => inner.store.keyed(&unique.scope, &unique.key).await?.is_some(),
        None => false,
    })
}

/// Whether the run may start, as things are; and how many the organisation may have at a time with it.
async fn decide(inner: &Inner, beginning: &Beginning) -> Result<Option<u32>, Error> {
    let org = beginning.compiled.row.org;
    let definition = &beginning.compiled.definition;
    let switches = switches::switches(inner, org, &beginning.compiled.row.workflow).await?;
    if !switches.enabled.unwrap_or(definition.enabled) && !beginning.test {
        return Err(Error::Disabled(definition.name.clone()));
    }
    beginning.compiled.check_input(&beginning.input)?;
    let (_, limits) = plans::limits_of(inner, org).await?;
    plans::check_executions(inner, org, &limits).await?;
    Ok(limits.concurrent_runs.filter(|_| !beginning.test && beginning.parent.is_none()))
}

/// Something about the organisation has changed: rights and the newest version are looked up again.
async fn look_again(inner: &Inner, beginning: &mut Beginning) -> Result<(), Error> {
    let org = beginning.compiled.row.org;
    beginning.epoch = inner.epoch(org).await?;
    for actor in actors(&beginning.acts_as).filter(|actor| !actor.is_local()) {
        let grants = people::grants(inner, org, &actor).await?;
        if !grants.is_some_and(|grants| grants.allow(Need::Right(Right::Run))) {
            return Err(Error::Forbidden { who: actor.user, right: Right::Run });
        }
    }
    if !beginning.test {
        beginning.compiled = inner.definitions.newest(inner, org, &beginning.compiled.row.workflow).await?;
    }
    Ok(())
}

async fn repeated(inner: &Inner, beginning: &Beginning, run: RunId, digest: &str) -> Result<Started, Error> {
    let unique = beginning.unique.as_ref();
    if unique.is_some_and(|unique| unique.digest != digest) {
        return Err(Error::KeyReused(unique.map(|unique| unique.key.clone()).unwrap_or_default()));
    }
    let gone = || Error::NotFound { what: "run", name: run.0.to_string() };
    let stored = inner.store.load(run).await?.ok_or_else(gone)?;
    let compiled = inner.definitions.get(&*inner.store, stored.row.definition).await?;
    let (status, created) = (stored.row.status, stored.row.created);
    Ok(Started { status, created, repeated: true, ..started(run, &stored.row.public, &compiled) })
}

fn started(id: RunId, run: &str, compiled: &Compiled) -> Started {
    Started {
        id,
        run: run.to_string(),
        workflow_id: compiled.row.workflow.clone(),
        workflow: compiled.row.name.clone(),
        version: compiled.row.version,
        status: String::new(),
        created: Time(0),
        repeated: false,
    }
}

fn just_started(live: &Live, created: Time) -> Started {
    Started { status: status(&live.run).into(), created, ..started(live.id, &live.run.id, &live.compiled) }
}

async fn try_begin(
    inner: &Arc<Inner>,
    beginning: &Beginning,
    mut entry: Entry,
    watch: &mut Watch,
) -> Result<Result<Started, Refused>, Error> {
    let now = inner.clock.now();
    let mut live = fresh(inner, beginning)?;
    let switches = switches::switches(inner, live.org, &live.compiled.row.workflow).await?;
    if switches.hold(live.group.as_deref()).is_some() && !beginning.test {
        entry = Entry::Queue;
        live.group.get_or_insert_with(|| live.compiled.row.workflow.clone());
    }
    let event = Event::Triggered {
        body: beginning.input.clone(),
        headers: beginning.headers.clone(),
        by: beginning.by.clone(),
        queued: entry == Entry::Queue,
    };
    let before = status(&live.run);
    let url = callbacks(inner, &live);
    let env = Env { version: live.compiled.row.version, ..Env::plain(now, &url) };
    let transition = advance(&live.compiled.definition.graph, &mut live.run, event, env)?;
    let new = NewRun {
        public: live.run.id.to_string(),
        org: live.org,
        created: now,
        by: beginning.by.to_string(),
        acts_as: beginning.acts_as.clone(),
        labels: beginning.labels.clone(),
        test: beginning.test,
        secret: live.secret,
        parent: beginning.parent.clone(),
        group: live.group.clone(),
        most_open: beginning.most_open,
    };
    let place = Place {
        run: live.id,
        version: live.version,
        hash: live.hash,
        auth: Auth { org: live.org, epoch: beginning.epoch },
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
    commit.audit.extend(beginning.audit.clone().map(|row| NewAudit { target: live.run.id.to_string(), ..row }));
    commit.groups.extend(live.group.clone().map(|key| match entry {
        Entry::Enter => {
            let limit = live.compiled.definition.concurrency.as_ref().map(|concurrency| concurrency.limit);
            GroupChange::Enter { key, limit }
        }
        Entry::Queue => GroupChange::Queue { key },
    }));
    // Driven from the start, so that nothing overtakes the first commit.
    let id = live.id;
    if !inner.runs.adopt(id) {
        return Ok(Err(Refused::Conflict));
    }
    let ended = watch.as_mut().map(|end| {
        let (ended, reached) = oneshot::channel();
        *end = Some(reached);
        ended
    });
    // In a task of its own: whoever asked may leave, and the commit is under way all the same.
    let written = tokio::spawn(write_first(inner.clone(), live, (commit, transition), ended)).await;
    written.unwrap_or_else(|_| Err(Error::Unavailable("the engine is stopping".into())))
}

async fn write_first(
    inner: Arc<Inner>,
    mut live: Box<Live>,
    (commit, transition): (Commit, Transition),
    ended: Option<oneshot::Sender<()>>,
) -> Result<Result<Started, Refused>, Error> {
    let inner = &inner;
    let at = commit.log.at;
    match submit(inner, &live, commit, &transition).await {
        Ok(Ok(follow)) => {
            let started = just_started(&live, at);
            metrics::counter!("stepwell_runs_started_total").increment(1);
            // The run is there, and has not come to its end.
            ended.into_iter().for_each(|ended| inner.tell_end(live.id, ended));
            follow_up(inner, &mut live, follow);
            if live.run.status == RunStatus::Queued
                && let Some(place) = live.group.clone()
            {
                // The place may have become free before the run was in the queue, and then nobody looked for it there.
                tokio::spawn(upkeep::admit(inner.clone(), live.org, place));
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
            unsure(inner, &live, (at, ended), error).await
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
async fn unsure(
    inner: &Arc<Inner>,
    live: &Live,
    (at, ended): (Time, Option<oneshot::Sender<()>>),
    error: Error,
) -> Result<Result<Started, Refused>, Error> {
    match inner.store.load(live.id).await {
        Ok(Some(_)) => {
            ended.into_iter().for_each(|ended| inner.tell_end(live.id, ended));
            inner.send(live.id, What::Reconcile);
            Ok(Ok(just_started(live, at)))
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
        group: None,
        test: beginning.test,
        acts_as: beginning.acts_as.as_str().into(),
        erased: false,
        compiled,
    };
    if !beginning.test
        && let Some(concurrency) = &live.compiled.definition.concurrency
    {
        live.group = Some(place(inner, &live, beginning, concurrency)?);
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
    let env = Env::plain(inner.clock.now(), &url);
    let graph = &live.compiled.definition.graph;
    advance(graph, &mut run, event, env)?;
    let view = View { graph, run: &run, instance: 0, result: None, callback: &url };
    let missing =
        |missing: &dyn std::fmt::Display| Error::Input { path: "concurrency.key".into(), message: missing.to_string() };
    let key = key.resolve(&view).map_err(|error| missing(&error))?;
    Ok(keyed_place(workflow, &key.value))
}

/// The place that runs with this concurrency key count against.
pub(super) fn keyed_place(workflow: &str, key: &Value) -> String {
    format!("{workflow}:{}", digest(key))
}

/// Makes room by cancelling the run that has had its place longest.
async fn evict(inner: &Arc<Inner>, beginning: &Beginning) -> Result<(), Error> {
    let live = fresh(inner, beginning)?;
    let Some(place) = &live.group else { return Ok(()) };
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
