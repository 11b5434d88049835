//! The loop of a run: messages → plan → commit → what follows.
//!
//! Messages stay in hand until what they caused is on disk. If a commit is refused, or its outcome is unknown, the run in
//! memory is dropped, loaded again, and the messages are planned again: the planner recognises one that counted already.

use super::Runner;
use super::children;
use super::commit::{follow_up, write};
use super::live::Live;
use super::messages::{Envelope, Message};
use super::plan::plan;
use super::record::{restore, status};
use super::sink::Sink;
use crate::error::Error;
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use stepwell_core::event::Ignored;
use stepwell_core::time::Time;
use stepwell_store::{LoadedRun, Refused, RunId, Stale, WorkKey};

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Drives a run in a task of its own. The mailbox said that this caller must.
pub fn spawn(runner: Arc<Runner>, run: RunId, live: Option<Box<Live>>) {
    tokio::spawn(async move { drive(&runner, run, live).await });
}

/// Drives a run whose first messages were taken from its mailbox already.
pub fn resume(runner: Arc<Runner>, run: RunId, live: Option<Box<Live>>, messages: Vec<Envelope>) {
    tokio::spawn(async move {
        let work = async {
            let live = turn(&runner, run, live, messages).await;
            drain(&runner, run, live).await;
        };
        guarded(&runner, run, work).await;
    });
}

/// Handles a run's messages until there are none. The mailbox said that this caller must.
pub async fn drive(runner: &Arc<Runner>, run: RunId, live: Option<Box<Live>>) {
    guarded(runner, run, drain(runner, run, live)).await;
}

/// Takes the report of an attempt that has ended here, or only that it has; and drives its run if no other task does.
pub async fn report(runner: &Arc<Runner>, run: RunId, key: &WorkKey, message: Option<Message>) {
    if runner.mailboxes.report(run, key, message) {
        drive(runner, run, None).await;
    }
}

/// A run whose rows make its driver panic must not stay marked as driven.
async fn guarded(runner: &Runner, run: RunId, work: impl Future<Output = ()>) {
    if AssertUnwindSafe(work).catch_unwind().await.is_err() {
        tracing::error!(run = run.0, "the driver of a run panicked");
        runner.mailboxes.wreck(run);
    }
}

async fn drain(runner: &Arc<Runner>, run: RunId, live: Option<Box<Live>>) {
    let mut live = live;
    while let Some((messages, kept)) = runner.mailboxes.next(run, live) {
        live = turn(runner, run, kept, messages).await;
    }
}

/// Brings messages to disk, however often that has to be tried.
async fn turn(
    runner: &Arc<Runner>,
    id: RunId,
    kept: Option<Box<Live>>,
    mut messages: Vec<Envelope>,
) -> Option<Box<Live>> {
    let mut kept = kept;
    let mut pause = FIRST_PAUSE;
    let mut unsure = false;
    let mut overtaken = None;
    loop {
        let loaded = match kept.take() {
            Some(live) => Ok(Some(live)),
            None => load(runner, id).await,
        };
        let trouble = match loaded {
            Ok(Some(mut live)) => {
                match transition(runner, &mut live, &mut messages, runner.cluster.clock.now()).await {
                    Ok(Tried::Done) => {
                        if unsure {
                            reconcile(runner, &live).await;
                        }
                        return Some(live);
                    }
                    Ok(Tried::Refused(Refused::AuthChanged)) => {
                        runner.workflows.access.forget_epoch(live.org);
                        continue;
                    }
                    Ok(Tried::Refused(Refused::Full)) => {
                        stay_queued(&mut messages);
                        continue;
                    }
                    Ok(Tried::Refused(
                        Refused::Conflict | Refused::Taken | Refused::TooManyOpen | Refused::Duplicate { .. },
                    )) => {
                        // The commit that won may have ended what runs here.
                        unsure = true;
                        // Or it is still in flight: then the run reads as it was.
                        if overtaken.replace(live.version) == Some(live.version) {
                            runner.cluster.pause(pause).await;
                            pause = (pause * 2).min(LONGEST_PAUSE);
                        }
                        continue;
                    }
                    Err(error) => error,
                }
            }
            Ok(None) => {
                gone(runner, id, messages).await;
                return None;
            }
            Err(error) => error,
        };
        unsure = true;
        tracing::warn!(run = id.0, error = %trouble, "a run cannot go on for now");
        let hopeless = matches!(trouble, Error::Broken(_));
        // Callers get the error; everything else is tried again until it is written.
        let refused = |envelope| refuse(runner, id, envelope, &trouble);
        messages = messages.into_iter().filter_map(refused).collect();
        if hopeless || runner.cluster.stop.is_cancelled() {
            return None;
        }
        if messages.is_empty() {
            // What the callers asked for may have been written all the same, and must be acted on.
            messages.push(Message::Reconcile.into());
        }
        runner.cluster.pause(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

fn refuse(runner: &Runner, run: RunId, envelope: Envelope, trouble: &Error) -> Option<Envelope> {
    let hopeless = matches!(trouble, Error::Broken(_));
    match &envelope.message {
        Message::Timer { key } if hopeless => runner.timers.put_back(run, key),
        Message::Start { org, .. } if hopeless => release(runner, *org),
        _ => {}
    }
    match envelope.reply {
        Some(reply) => {
            let error = if hopeless { Error::Broken } else { Error::Unavailable };
            // The caller may have left.
            let _ = reply.send(Err(error(trouble.to_string())));
            None
        }
        None => (!hopeless).then_some(envelope),
    }
}

fn release(runner: &Runner, org: stepwell_store::OrgId) {
    if let Ok(sink) = runner.sink() {
        sink.release(org);
    }
}

/// Only a run that leaves its queue asks for room in its group; without any it stays there.
fn stay_queued(messages: &mut Vec<Envelope>) {
    let admission = |envelope: &mut Envelope| matches!(envelope.message, Message::Admit);
    for reply in messages.extract_if(.., admission).filter_map(|envelope| envelope.reply) {
        let _ = reply.send(Err(Error::Full));
    }
}

/// The run was purged, or never was.
async fn gone(runner: &Arc<Runner>, id: RunId, messages: Vec<Envelope>) {
    let mut stale = Stale::default();
    for envelope in messages {
        match &envelope.message {
            Message::Timer { key } => {
                runner.timers.clear(id, key);
                stale.timers.push((id, key.clone()));
            }
            Message::Start { org, .. } => release(runner, *org),
            // The parent that asked for this child is gone.
            Message::ChildStarted { notice } => children::orphaned(runner, id, notice).await,
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

pub async fn load(runner: &Runner, id: RunId) -> Result<Option<Box<Live>>, Error> {
    let Some(stored) = runner.cluster.store.load(id).await? else { return Ok(None) };
    revive(runner, &stored).await.map(Some)
}

pub async fn revive(runner: &Runner, stored: &LoadedRun) -> Result<Box<Live>, Error> {
    let compiled = runner.workflows.version(stored.row.definition).await?;
    let run = restore(&compiled.definition.graph, stored)?;
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
    }))
}

pub enum Tried {
    Done,
    /// Nothing was written: load the run and plan again.
    Refused(Refused),
}

/// Plans messages, writes the transition and acts on it. The first transition of a run is one like any other.
pub async fn transition(
    runner: &Arc<Runner>,
    live: &mut Live,
    messages: &mut Vec<Envelope>,
    now: Time,
) -> Result<Tried, Error> {
    let sink = runner.sink()?;
    let has_mail = messages.iter().any(|envelope| matches!(envelope.message, Message::Mail));
    let mail = if has_mail { runner.cluster.store.mail(live.id).await? } else { Vec::new() };
    let before = status(&live.run);
    let rules = sink.call_rules(live.org).await?;
    let plan = plan(runner, live, messages, mail, &*rules, now);
    if !plan.transition.facts.is_empty() {
        match write(runner, &*sink, live, &plan, before).await? {
            Ok(follow) => follow_up(runner, &*sink, live, follow),
            Err(refused) => return Ok(Tried::Refused(refused)),
        }
    } else if plan.ignores_something() && !is_current(runner, live).await? {
        // What is ignored here may count for what another process has written since.
        return Ok(Tried::Refused(Refused::Conflict));
    }
    forget(runner, plan.stale).await;
    settle(runner, &*sink, live, std::mem::take(messages), plan.answers).await;
    Ok(Tried::Done)
}

/// Whether nothing was written since the run was loaded. A commit finds that out by itself.
async fn is_current(runner: &Runner, live: &Live) -> Result<bool, Error> {
    Ok(runner.cluster.store.load(live.id).await?.is_some_and(|stored| stored.version == live.version))
}

/// Answers callers, and does what needs no decision.
async fn settle(
    runner: &Arc<Runner>,
    sink: &dyn Sink,
    live: &Live,
    messages: Vec<Envelope>,
    answers: Vec<Result<(), Ignored>>,
) {
    for (envelope, answer) in messages.into_iter().zip(answers) {
        match envelope.message {
            Message::Start { key, node, .. } => sink.begin(live, key, node),
            Message::Notices(keys) => children::carry_out(runner, live, keys),
            // A child that its parent no longer waits for is cancelled, by the same notice.
            Message::ChildStarted { notice } if !children::is_awaited(live, &notice) => {
                children::carry_out(runner, live, vec![notice]);
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
    // Polling finds them again if this fails.
    if let Err(error) = runner.cluster.store.forget(stale).await {
        tracing::warn!(%error, "cannot remove stale rows");
    }
}

/// Compares the attempts of a run that the store says this node holds with those it executes.
async fn reconcile(runner: &Runner, live: &Live) {
    if live.run.status.is_terminal() {
        // The answer to the last commit may have been lost.
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
        // Written some time ago: rights may have been revoked since.
        runner.workflows.access.forget_epoch(live.org);
        sink.begin_again(live, key, node);
    }
}
