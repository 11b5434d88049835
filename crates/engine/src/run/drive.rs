//! The loop of a run: messages → plan → commit → follow-up actions.
//!
//! The driver keeps messages until their effects are on disk. If a commit is refused, or its outcome is unknown, it
//! drops the run in memory, loads it again and plans the messages again: the planner recognises applied messages.

use super::Runner;
use super::children;
use super::commit::{follow_up, write};
use super::driver::Driver;
use super::live::Live;
use super::loads::{Room, SMALL, read_apart};
use super::messages::{Envelope, Message};
use super::plan::Plan;
use super::record::{restore, status};
use super::recovery::{self, Entry};
use super::sink::Sink;
use crate::error::Error;
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use stepwell_core::event::Ignored;
use stepwell_core::run::Phase;
use stepwell_core::time::Time;
use stepwell_store::{LoadedRun, Refused, RunId, Stale, WorkKey, panic_message};

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// After this many panics in a row, messages of a run are given up.
const MAX_PANICS: u32 = 5;

/// Drives a run whose first messages have already been taken from its mailbox.
pub async fn resume(driver: Driver, live: Option<Box<Live>>, messages: Vec<Envelope>) {
    let live = turn(&driver.runner, driver.run, live, messages).await;
    drive(driver, live).await;
}

/// Handles a run's messages until there are none.
pub async fn drive(mut driver: Driver, live: Option<Box<Live>>) {
    let mut live = live;
    while let Some((messages, kept)) = driver.next(live) {
        live = turn(&driver.runner, driver.run, kept, messages).await;
    }
}

/// Turns a panic into an error.
async fn catch_panic<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Caught> {
    match AssertUnwindSafe(work).catch_unwind().await {
        Ok(done) => done.map_err(Caught::Error),
        Err(panic) => Err(Caught::Panic(panic_message(&*panic))),
    }
}

enum Caught {
    Error(Error),
    Panic(String),
}

impl Caught {
    /// A panic is retried some times: it may be due to the moment, and messages are lost if it is given up.
    fn into_error(self, panics: &mut u32) -> Error {
        match self {
            Caught::Error(error) => error,
            Caught::Panic(why) => {
                *panics += 1;
                let kind = if *panics < MAX_PANICS { Error::Unavailable } else { Error::Broken };
                kind(format!("an internal error: {why}"))
            }
        }
    }
}

/// Handles messages, unless the run is quarantined.
async fn turn(
    runner: &Arc<Runner>,
    id: RunId,
    kept: Option<Box<Live>>,
    mut messages: Vec<Envelope>,
) -> Option<Box<Live>> {
    if kept.is_some() || !runner.recovery.concerns(id, runner.cluster.clock.now()) {
        return apply(runner, id, kept, messages).await;
    }
    match recovery::enter(runner, id).await {
        Entry::Freely => apply(runner, id, None, messages).await,
        Entry::Watched(_alone) => {
            let live = apply(runner, id, None, messages).await;
            recovery::left(runner, id).await;
            live
        }
        Entry::Quarantined => {
            recovery::refuse(runner, id, &mut messages);
            if messages.is_empty() {
                return None;
            }
            let live = apply(runner, id, None, messages).await;
            if live.as_ref().is_some_and(|live| live.run.status.is_terminal()) {
                recovery::forget(runner, id).await;
            }
            live
        }
    }
}

/// Applies messages and retries until they are on disk.
async fn apply(
    runner: &Arc<Runner>,
    id: RunId,
    kept: Option<Box<Live>>,
    mut messages: Vec<Envelope>,
) -> Option<Box<Live>> {
    let asked = messages.iter().any(|envelope| envelope.reply.is_some());
    if let Some(error) = runner.broken.reason(id).filter(|_| kept.is_none() && !asked) {
        messages.into_iter().for_each(|envelope| drop(fail(runner, id, envelope, &error)));
        return None;
    }
    let mut kept = kept.filter(|live| !messages.iter().any(|envelope| is_news(live, &envelope.message)));
    let mut pause = FIRST_PAUSE;
    let mut needs_reconcile = false;
    let mut conflict_at = None;
    let mut panics = 0;
    loop {
        let loaded = match kept.take() {
            Some(live) => Ok(Some(live)),
            None => catch_panic(load(runner, id)).await,
        };
        let error = match loaded {
            Ok(Some(mut live)) => {
                let attempted =
                    async { transition(runner, &mut live, &mut messages, runner.cluster.clock.now()).await };
                match catch_panic(attempted).await {
                    Ok(Attempted::Done) if !messages.is_empty() => {
                        // The others did not fit the transition.
                        kept = Some(live);
                        continue;
                    }
                    Ok(Attempted::Done) => {
                        runner.broken.remove(id);
                        if needs_reconcile {
                            reconcile(runner, &live).await;
                        }
                        return Some(live);
                    }
                    Ok(Attempted::Refused(Refused::AuthChanged)) => {
                        runner.workflows.access.forget_epoch(live.org);
                        continue;
                    }
                    Ok(Attempted::Refused(Refused::Full)) => {
                        stay_queued(&mut messages);
                        continue;
                    }
                    Ok(Attempted::Refused(
                        Refused::Conflict
                        | Refused::Taken
                        | Refused::TooManyOpen
                        | Refused::TooManyDescendants
                        | Refused::Duplicate { .. },
                    )) => {
                        // The commit that won may have ended attempts that run here.
                        needs_reconcile = true;
                        // If that commit is still in flight, the run loads with its old version.
                        if conflict_at.replace(live.version) == Some(live.version) {
                            runner.cluster.pause(pause).await;
                            pause = (pause * 2).min(LONGEST_PAUSE);
                        }
                        continue;
                    }
                    Err(error) => error,
                }
            }
            Ok(None) => {
                discard(runner, id, messages).await;
                return None;
            }
            Err(error) => error,
        };
        let error = error.into_error(&mut panics);
        needs_reconcile = true;
        let permanent = matches!(error, Error::Broken(_));
        if permanent {
            runner.broken.insert(id, error.to_string());
            if matches!(runner.cluster.store.run(id).await, Ok(Some(row)) if row.finished.is_some()) {
                // It was cancelled without being read: nothing of it counts any more.
                discard(runner, id, messages).await;
                return None;
            }
        } else {
            tracing::warn!(run = id.0, %error, "cannot advance a run; will retry");
        }
        // Callers get the error; all other messages are retried until they are written.
        let fail = |envelope| fail(runner, id, envelope, &error);
        messages = messages.into_iter().filter_map(fail).collect();
        if permanent || runner.cluster.stop.is_cancelled() || runner.sink().is_err() {
            return None;
        }
        if messages.is_empty() {
            // The callers' messages may have been written all the same, and then have effects to act on.
            messages.push(Message::Reconcile.into());
        }
        runner.cluster.pause(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Whether the message tells of a state that another process may have written since the run was loaded.
fn is_news(live: &Live, message: &Message) -> bool {
    match message {
        Message::Start { key, .. } => {
            let graph = &live.compiled.definition.graph;
            let step = live.run.find(graph, &key.path).and_then(|at| live.run.step(graph, at));
            !step.is_some_and(|state| state.phase == Phase::Running && state.attempt == key.attempt)
        }
        // A start that the run seems not to wait for would be cancelled.
        Message::Notices(keys) => keys.iter().any(|key| children::is_start(key) && !children::is_awaited(live, key)),
        Message::ChildStarted { notice } => !children::is_awaited(live, notice),
        Message::Reconcile => true,
        _ => false,
    }
}

/// Returns the error to the caller, if there is one. Returns a message that is to be retried.
fn fail(runner: &Runner, run: RunId, envelope: Envelope, error: &Error) -> Option<Envelope> {
    let permanent = matches!(error, Error::Broken(_));
    if permanent && let Some(key) = envelope.message.reports_on() {
        runner.mailboxes.give_up_report(run, key.clone());
    }
    if permanent && let Message::Timer { key } = &envelope.message {
        runner.timers.set_aside(run, key);
        runner.broken.keep(run, envelope);
        return None;
    }
    match envelope.reply {
        Some(reply) => {
            let kind = if permanent { Error::Broken } else { Error::Unavailable };
            // The caller may have left.
            let _ = reply.send(Err(kind(error.to_string())));
            None
        }
        None => (!permanent).then_some(envelope),
    }
}

/// Drops admissions: the group is full, so the run stays in the queue.
fn stay_queued(messages: &mut Vec<Envelope>) {
    let is_admission = |envelope: &mut Envelope| matches!(envelope.message, Message::Admit);
    for reply in messages.extract_if(.., is_admission).filter_map(|envelope| envelope.reply) {
        let _ = reply.send(Err(Error::Full));
    }
}

/// Handles messages to a run that was purged or never existed.
async fn discard(runner: &Arc<Runner>, id: RunId, messages: Vec<Envelope>) {
    let mut stale = Stale::default();
    for envelope in messages {
        match &envelope.message {
            Message::Timer { key } => {
                runner.timers.clear(id, key);
                stale.timers.push((id, key.to_string()));
            }
            // The parent that started this child was purged.
            Message::ChildStarted { notice } => children::cancel_orphan(runner, id, notice).await,
            // A child may end after its parent was purged; its mail would stay unread for ever.
            Message::Mail => {
                let mail = runner.cluster.store.mail(id).await.unwrap_or_default();
                stale.mail.extend(mail.into_iter().map(|mail| mail.id));
            }
            _ => {}
        }
        if let Some(reply) = envelope.reply {
            let _ = reply.send(Err(Error::NotFound { what: "run", name: id.0.to_string() }));
        }
    }
    forget(runner, stale).await;
}

/// Loads a run. `None` if it does not exist. Waits for memory if the run is large.
pub async fn load(runner: &Runner, id: RunId) -> Result<Option<Box<Live>>, Error> {
    let store = &runner.cluster.store;
    if let Some(stored) = store.load_small(vec![id], SMALL).await?.pop() {
        return revive(runner, stored).await.map(Some);
    }
    let Some(head) = store.head(id).await? else { return Ok(None) };
    let bytes = store.sizes(id).await?.into_iter().map(|(_, bytes)| bytes).sum();
    let room = runner.loads.room(head.row.org, bytes).await?;
    let Some(stored) = store.load(id).await? else { return Ok(None) };
    let live = revive(runner, stored).await?;
    Ok(Some(Box::new(Live { room, ..*live })))
}

/// Builds the run in memory from its rows.
pub async fn revive(runner: &Runner, stored: LoadedRun) -> Result<Box<Live>, Error> {
    let compiled = runner.workflows.version(stored.row.definition).await?;
    let of = compiled.clone();
    let bytes: usize = stored.values.iter().map(|value| value.payload.len()).sum();
    let read = move || {
        let run = restore(&of.definition.graph, &stored);
        run.map(|run| (run, LoadedRun { values: Vec::new(), steps: Vec::new(), ..stored }))
    };
    let (run, stored) = read_apart(bytes, read).await??;
    Ok(Box::new(Live {
        id: stored.row.id,
        org: stored.row.org,
        compiled,
        run,
        version: stored.version,
        hash: stored.hash,
        secret: stored.secret,
        parent: stored.row.parent.clone(),
        group: stored.group.clone(),
        test: stored.row.test,
        acts_as: stored.row.acts_as.as_str().into(),
        erased: stored.row.erased.is_some(),
        watcher: None,
        room: Room::default(),
    }))
}

/// The outcome of one attempt to apply messages.
pub enum Attempted {
    /// The messages that fit the transition were taken out; the others are still to be applied.
    Done,
    /// Nothing was written: the caller loads the run and plans again.
    Refused(Refused),
}

/// Plans messages, writes the transition and acts on it. Also used for the first transition of a run.
pub async fn transition(
    runner: &Arc<Runner>,
    live: &mut Live,
    messages: &mut Vec<Envelope>,
    now: Time,
) -> Result<Attempted, Error> {
    let sink = runner.sink()?;
    let has_mail = messages.iter().any(|envelope| matches!(envelope.message, Message::Mail));
    let mail = if has_mail { runner.cluster.store.mail(live.id).await? } else { Vec::new() };
    let before = status(&live.run);
    let rules = sink.call_rules(live.org).await?;
    let mut plan = Plan::new(&*rules, now, runner.budget(live.org).await?);
    plan.add(runner, live, messages, &mail);
    if !plan.transition.facts.is_empty() {
        match write(runner, &*sink, live, &plan, before).await? {
            Ok(follow) => follow_up(runner, &*sink, live, follow),
            Err(refused) => return Ok(Attempted::Refused(refused)),
        }
    } else if plan.ignores_something() && !is_current(runner, live).await? {
        // A message ignored here may apply to the state that another process has written since.
        return Ok(Attempted::Refused(Refused::Conflict));
    }
    forget(runner, plan.stale).await;
    if plan.mail_left {
        runner.send(live.id, Message::Mail);
    }
    let planned = messages.drain(..plan.answers.len()).collect();
    settle(runner, &*sink, live, planned, plan.answers).await;
    Ok(Attempted::Done)
}

/// Whether nothing was written since the run was loaded. Commits check this themselves.
async fn is_current(runner: &Runner, live: &Live) -> Result<bool, Error> {
    Ok(runner.cluster.store.head(live.id).await?.is_some_and(|stored| stored.version == live.version))
}

/// Replies to callers, and handles the messages that need no planning.
async fn settle(
    runner: &Arc<Runner>,
    sink: &dyn Sink,
    live: &Live,
    messages: Vec<Envelope>,
    answers: Vec<Result<(), Ignored>>,
) {
    for (envelope, answer) in messages.into_iter().zip(answers) {
        match envelope.message {
            Message::Start { key, node, slot } => sink.begin(live, key, node, slot),
            Message::Notices(keys) => children::handle_notices(runner, live, keys),
            Message::PlaceFreed => children::start_waiting(runner, live).await,
            // If the parent no longer waits for the child, the same notice cancels it.
            Message::ChildStarted { notice } if !children::is_awaited(live, &notice) => {
                children::handle_notices(runner, live, vec![notice]);
            }
            Message::ChildStarted { notice } => {
                forget(runner, Stale { notices: vec![(live.id, notice)], ..Stale::default() }).await;
            }
            Message::Reconcile => reconcile(runner, live).await,
            _ => {}
        }
        if let Some(reply) = envelope.reply {
            let _ = reply.send(answer.map_err(Error::from));
        }
    }
}

async fn forget(runner: &Runner, stale: Stale) {
    if stale == Stale::default() {
        return;
    }
    // If this fails, polling finds the rows again.
    if let Err(error) = runner.cluster.store.forget(stale).await {
        tracing::warn!(%error, "cannot remove stale rows");
    }
}

/// Compares the attempts that this node holds in the store with the attempts it executes, for one run.
async fn reconcile(runner: &Runner, live: &Live) {
    if live.run.status.is_terminal() {
        // The result of the last commit may have been lost.
        runner.ended(live.id);
    }
    let node = runner.cluster.node.id();
    // If the store does not answer now, the next poll finds the difference.
    let Ok(held) = runner.cluster.store.held(node).await else { return };
    let Ok(sink) = runner.sink() else { return };
    let held: Vec<WorkKey> = held.into_iter().filter(|work| work.run == live.id).map(|work| work.key).collect();
    let running = runner.mailboxes.running(live.id);
    for key in running.iter().filter(|key| !held.contains(key)) {
        runner.mailboxes.abort(live.id, key);
    }
    for key in held.into_iter().filter(|key| !running.contains(key)) {
        // The attempt was written some time ago: rights may have been revoked since.
        runner.workflows.access.forget_epoch(live.org);
        sink.begin_again(live, key, node);
    }
}
