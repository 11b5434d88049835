//! The loop: event → plan → commit → dispatch, for one run at a time.
//!
//! Letters stay in hand until what they caused is on disk. If a commit is refused, or nobody knows what became of it, the
//! run in memory is thrown away, read again, and the letters are planned again: a letter that had counted already is then
//! recognised as a repetition.

use crate::engine::{Committed, Happened, Inner};
use crate::error::Error;
use crate::letters::{Plan, plan};
use crate::policies::policies;
use crate::record::{Place, record, restore, status};
use crate::runs::{Letter, Live, What};
use crate::{children, dispatch, notify, plans, watch};
use futures_util::FutureExt;
use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use stepwell_core::event::Ignored;
use stepwell_core::plan::{Effect, Transition};
use stepwell_core::run::At;
use stepwell_core::time::{Millis, Time};
use stepwell_store::*;

/// Test runs are looked at and thrown away.
const TEST_RETENTION: Millis = Millis::DAY;
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Drives in a task of its own.
pub fn spawn(inner: Arc<Inner>, run: RunId, live: Option<Box<Live>>) {
    tokio::spawn(async move { drive(&inner, run, live).await });
}

/// Goes on with a run that has letters already.
pub fn resume(inner: Arc<Inner>, run: RunId, live: Option<Box<Live>>, letters: Vec<Letter>) {
    tokio::spawn(async move {
        let work = async {
            let live = turn(&inner, run, live, letters).await;
            see_to_letters(&inner, run, live).await;
        };
        guarded(&inner, run, work).await;
    });
}

/// Sees to a run's letters until there are none. The caller has been told to drive it.
pub async fn drive(inner: &Arc<Inner>, run: RunId, live: Option<Box<Live>>) {
    guarded(inner, run, see_to_letters(inner, run, live)).await;
}

/// A run whose rows make a driver panic must not stay driven for ever by nobody.
async fn guarded(inner: &Arc<Inner>, run: RunId, work: impl Future<Output = ()>) {
    if AssertUnwindSafe(work).catch_unwind().await.is_err() {
        tracing::error!(run = run.0, "the driver of a run broke down");
        inner.runs.wreck(run);
    }
}

async fn see_to_letters(inner: &Arc<Inner>, run: RunId, live: Option<Box<Live>>) {
    let mut live = live;
    while let Some((letters, kept)) = inner.runs.next(run, live) {
        live = turn(inner, run, kept, letters).await;
    }
}

/// Brings the letters to disk, however often it has to be tried.
async fn turn(inner: &Arc<Inner>, id: RunId, kept: Option<Box<Live>>, mut letters: Vec<Letter>) -> Option<Box<Live>> {
    let mut kept = kept;
    let mut pause = FIRST_PAUSE;
    let mut unsure = false;
    let mut overtaken = None;
    loop {
        let loaded = match kept.take() {
            Some(live) => Ok(Some(live)),
            None => load(inner, id).await,
        };
        let trouble = match loaded {
            Ok(Some(mut live)) => match once(inner, &mut live, &mut letters).await {
                Ok(Tried::Done) => {
                    if unsure {
                        reconcile(inner, &live).await;
                    }
                    return Some(live);
                }
                Ok(Tried::Refused) => continue,
                Ok(Tried::Overtaken) => {
                    // Whoever was quicker may have ended what runs here.
                    unsure = true;
                    // Or is still at it: then the run is as it was when it is read again.
                    if overtaken.replace(live.version) == Some(live.version) {
                        inner.pause(pause).await;
                        pause = (pause * 2).min(LONGEST_PAUSE);
                    }
                    continue;
                }
                Err(error) => error,
            },
            Ok(None) => {
                gone(inner, id, letters).await;
                return None;
            }
            Err(error) => error,
        };
        unsure = true;
        tracing::warn!(run = id.0, error = %trouble, "a run cannot go on for now");
        let hopeless = matches!(trouble, Error::Broken(_));
        // Whoever asked is told; what happened by itself is tried again until it is written.
        letters = letters.into_iter().filter_map(|letter| refuse(inner, id, letter, &trouble, hopeless)).collect();
        if hopeless || inner.stop.is_cancelled() {
            return None;
        }
        if letters.is_empty() {
            // What they asked for may have been written all the same, and somebody has to act on it.
            letters.push(What::Reconcile.into());
        }
        inner.pause(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

fn refuse(inner: &Inner, run: RunId, letter: Letter, trouble: &Error, hopeless: bool) -> Option<Letter> {
    match &letter.what {
        What::Timer { key } if hopeless => inner.timers.put_back(run, key),
        What::Start { org, .. } if hopeless => inner.slots.release(*org),
        _ => {}
    }
    match letter.reply {
        Some(reply) => {
            let error = if hopeless { Error::Broken } else { Error::Unavailable };
            // Whoever asked may have left.
            let _ = reply.send(Err(error(trouble.to_string())));
            None
        }
        None => (!hopeless).then_some(letter),
    }
}

/// The run was purged, or never was.
async fn gone(inner: &Arc<Inner>, id: RunId, letters: Vec<Letter>) {
    let mut stale = Stale::default();
    for letter in letters {
        match &letter.what {
            What::Timer { key } => {
                inner.timers.clear(id, key);
                stale.timers.push((id, key.clone()));
            }
            What::Start { org, .. } => inner.slots.release(*org),
            // A child that was asked for by a run that is gone has nobody to wait for it.
            What::Born { notice } => children::orphaned(inner, id, notice).await,
            // A child may end after its parent was purged. Nobody else would ever read this.
            What::Mail => {
                let mail = inner.store.mail(id).await.unwrap_or_default();
                stale.mail.extend(mail.into_iter().map(|mail| mail.id));
            }
            _ => {}
        }
        if let Some(reply) = letter.reply {
            let _ = reply.send(Err(Error::NotFound { what: "run", name: id.0.to_string() }));
        }
    }
    forget(inner, stale).await;
}

pub async fn load(inner: &Inner, id: RunId) -> Result<Option<Box<Live>>, Error> {
    let Some(stored) = inner.store.load(id).await? else { return Ok(None) };
    revive(inner, &stored).await.map(Some)
}

pub async fn revive(inner: &Inner, stored: &LoadedRun) -> Result<Box<Live>, Error> {
    let compiled = inner.definitions.get(&*inner.store, stored.row.definition).await?;
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
    }))
}

enum Tried {
    Done,
    /// Rights have changed, or there is no place: read it again and plan again.
    Refused,
    /// The same, because the run has moved on.
    Overtaken,
}

async fn once(inner: &Arc<Inner>, live: &mut Live, letters: &mut Vec<Letter>) -> Result<Tried, Error> {
    let has_mail = letters.iter().any(|letter| matches!(letter.what, What::Mail));
    let mail = if has_mail { inner.store.mail(live.id).await? } else { Vec::new() };
    let before = status(&live.run);
    let now = inner.clock.now();
    let policies = policies(inner, live.org).await?;
    let plan = plan(inner, live, (letters, mail), now, policies);
    if !plan.transition.facts.is_empty() {
        match write(inner, live, &plan, before, now).await? {
            Ok(follow) => follow_up(inner, live, follow),
            Err(Refused::AuthChanged) => {
                inner.epochs.forget(live.org);
                return Ok(Tried::Refused);
            }
            Err(Refused::Full) => {
                // Only a run that leaves the queue asks for a place; it stays there.
                let (admissions, others) = letters.drain(..).partition(|letter| matches!(letter.what, What::Admit));
                *letters = others;
                let admissions: Vec<Letter> = admissions;
                for reply in admissions.into_iter().filter_map(|letter| letter.reply) {
                    let _ = reply.send(Err(Error::Full));
                }
                return Ok(Tried::Refused);
            }
            Err(Refused::Conflict | Refused::Taken | Refused::TooManyOpen | Refused::Duplicate { .. }) => {
                return Ok(Tried::Overtaken);
            }
        }
    } else if plan.turns_down() && !is_current(inner, live).await? {
        // What counts for nothing here may count for what another process has written since.
        return Ok(Tried::Overtaken);
    }
    forget(inner, plan.stale).await;
    settle(inner, live, std::mem::take(letters), plan.answers).await;
    Ok(Tried::Done)
}

/// Whether nothing was written since the run was read. A commit finds that out by itself.
async fn is_current(inner: &Inner, live: &Live) -> Result<bool, Error> {
    Ok(inner.store.load(live.id).await?.is_some_and(|stored| stored.version == live.version))
}

/// Tells those who asked, and does what needs no decision.
async fn settle(inner: &Arc<Inner>, live: &Live, letters: Vec<Letter>, answers: Vec<Result<(), Ignored>>) {
    for (letter, answer) in letters.into_iter().zip(answers) {
        match letter.what {
            What::Start { key, node, .. } => dispatch::begin(inner, live, key, node),
            What::Notices(keys) => children::see_to(inner, live, keys),
            // A child that nobody waits for any more is cancelled, by the same notice.
            What::Born { notice } if !children::is_awaited(live, &notice) => {
                children::see_to(inner, live, vec![notice]);
            }
            What::Born { notice } => {
                forget(inner, Stale { notices: vec![(live.id, notice)], ..Stale::default() }).await;
            }
            What::Reconcile => reconcile(inner, live).await,
            _ => {}
        }
        if let Some(reply) = letter.reply {
            let _ = reply.send(answer.map_err(Error::from));
        }
    }
}

/// What to do once a commit is on disk.
pub struct Follow {
    /// Who has what is to begin.
    node: NodeId,
    begin: Vec<WorkKey>,
    abort: Vec<WorkKey>,
    set: Vec<(String, Time)>,
    cleared: Vec<String>,
    notices: Vec<String>,
    /// What people are to be told, by its key.
    told: Vec<(String, String)>,
    hash: [u8; 32],
    left_ready: bool,
    position: Position,
}

async fn write(
    inner: &Inner,
    live: &mut Live,
    plan: &Plan,
    before: &'static str,
    now: Time,
) -> Result<Result<Follow, Refused>, Error> {
    let place = Place {
        run: live.id,
        version: live.version,
        hash: live.hash,
        auth: Auth { org: live.org, epoch: inner.epoch(live.org).await? },
        create: None,
        now,
        status: before,
        definition: live.compiled.row.id,
        purge: Some(now + retention(live)),
        fired: plan.fired.clone(),
        read: plan.read.clone(),
    };
    let mut commit = record(&live.compiled.definition.graph, &live.run, &plan.transition, place);
    commit.sent = plan.sent.clone();
    commit.groups = plan.groups.clone();
    commit.audit = plan.audit.clone();
    commit.audit.extend(watch::calls(live, plan, now));
    // What is written anew comes after what it replaces.
    let written: BTreeSet<(&str, u32)> = commit.steps.iter().map(|row| (&*row.path, row.attempt)).collect();
    let left = plan.retired.iter().filter(|row| !written.contains(&(&*row.path, row.attempt)));
    let left: Vec<StepRow> = left.cloned().collect();
    commit.steps.extend(left);
    submit(inner, live, commit, &plan.transition).await
}

/// How long a run is kept once it has ended.
pub fn retention(live: &Live) -> Millis {
    if live.test { TEST_RETENTION } else { live.compiled.definition.retention }
}

/// Completes a commit with what every transition of this run brings with it, and writes it.
pub async fn submit(
    inner: &Inner,
    live: &Live,
    mut commit: Commit,
    transition: &Transition,
) -> Result<Result<Follow, Refused>, Error> {
    if live.run.status.is_terminal() {
        commit.mail.extend(live.parent.as_ref().map(|parent| children::farewell(live, parent)));
        commit.groups.extend(live.group.clone().map(|key| GroupChange::Leave { key }));
    }
    if !commit.work.put.is_empty() {
        commit.counted.push((plans::counter(live.org, commit.log.at), commit.work.put.len() as i64));
    }
    // About child runs.
    let notices = commit.outbox.iter().map(|notice| notice.key.clone()).collect();
    let told = notify::notices(inner, live, &transition.facts, commit.log.at).await?;
    commit.outbox.extend(told.iter().cloned());
    let node = inner.node.id();
    inner.slots.assign(node, &mut commit.work.put);
    let org = live.org;
    let (begin, left): (Vec<&Work>, Vec<&Work>) = commit.work.put.iter().partition(|work| work.node.is_some());
    let mut follow = Follow {
        node,
        begin: begin.iter().map(|work| work.key.clone()).collect(),
        abort: aborted(live, transition),
        set: commit.timers.put.iter().map(|timer| (timer.key.clone(), timer.due)).collect(),
        cleared: commit.timers.remove.clone(),
        notices,
        told: told.into_iter().map(|notice| (notice.key, notice.body)).collect(),
        hash: commit.log.hash,
        left_ready: !left.is_empty() || (inner.slots.limits_orgs() && !commit.work.remove.is_empty()),
        position: Position::new(0, 0),
    };
    let answer = inner.store.commit(vec![commit]).await;
    let refused = match answer.map(|mut answers| answers.pop()) {
        Ok(Some(Ok(position))) => {
            follow.position = position;
            return Ok(Ok(follow));
        }
        Ok(Some(Err(refused))) => Ok(Err(refused)),
        Ok(None) => Err(Error::Unavailable("the store gave no answer".into())),
        Err(error) => Err(error.into()),
    };
    follow.begin.iter().for_each(|_| inner.slots.release(org));
    refused
}

fn aborted(live: &Live, transition: &Transition) -> Vec<WorkKey> {
    let key = |at: At, attempt| WorkKey { path: live.run.path(&live.compiled.definition.graph, at), attempt };
    let aborts = transition.effects.iter().filter_map(|effect| match *effect {
        Effect::Abort { at, attempt } => Some(key(at, attempt)),
        Effect::Dispatch { .. }
        | Effect::SetTimer { .. }
        | Effect::ClearTimer { .. }
        | Effect::StartChild { .. }
        | Effect::CancelChild { .. } => None,
    });
    aborts.collect()
}

/// The commit is on disk: acts on it.
pub fn follow_up(inner: &Arc<Inner>, live: &mut Live, follow: Follow) {
    live.version = Version(live.version.0 + 1);
    live.hash = follow.hash;
    let ended = live.run.status.is_terminal();
    if inner.happened.receiver_count() > 0 {
        let (run, org, version, at) = (live.id, live.org, live.version, std::time::Instant::now());
        // Nobody may be listening any more.
        let commit = Committed { run, org, version, position: follow.position, ended, at };
        let _ = inner.happened.send(Happened::Here(commit));
    }
    let elsewhere = follow.abort.iter().filter(|key| !inner.runs.abort(live.id, key)).count();
    let left = follow.left_ready && !inner.slots.has_room();
    inner.tell(Hint { runs: if elsewhere > 0 { vec![live.id] } else { Vec::new() }, orgs: Vec::new(), ready: left });
    for key in follow.begin {
        dispatch::begin(inner, live, key, follow.node);
    }
    if follow.left_ready {
        inner.slots.left_ready();
    }
    follow.cleared.iter().for_each(|key| inner.timers.clear(live.id, key));
    follow.set.iter().for_each(|(key, due)| inner.timers.set(live.id, key, *due));
    if !follow.notices.is_empty() {
        // In this run's own turn, so that a child's start and its cancellation keep their order.
        inner.send(live.id, What::Notices(follow.notices));
    }
    if !follow.told.is_empty() {
        notify::see_to(inner, live.id, follow.told);
    }
    if ended {
        metrics::counter!("stepwell_runs_ended_total", "status" => live.run.status.name()).increment(1);
        inner.ended(live.id);
        if let Some(parent) = &live.parent {
            inner.send(parent.run, What::Mail);
        }
        if let Some(place) = live.group.clone() {
            tokio::spawn(crate::upkeep::admit(inner.clone(), live.org, place));
        }
    }
}

async fn forget(inner: &Inner, stale: Stale) {
    if stale == Stale::default() {
        return;
    }
    // They are found again if this does not work.
    if let Err(error) = inner.store.forget(stale).await {
        tracing::warn!(%error, "stale rows cannot be removed");
    }
}

/// Compares what the store says this node runs of a run with what it does run.
async fn reconcile(inner: &Arc<Inner>, live: &Live) {
    if live.run.status.is_terminal() {
        // The answer to the last commit may have been lost: whoever waits for the end is told now.
        inner.ended(live.id);
    }
    let node = inner.node.id();
    let held = match inner.store.held(node).await {
        Ok(held) => held,
        // The next look will tell.
        Err(_) => return,
    };
    let held: Vec<WorkKey> = held.into_iter().filter(|work| work.run == live.id).map(|work| work.key).collect();
    let running = inner.runs.running(live.id);
    for key in running.iter().filter(|key| !held.contains(key)) {
        inner.runs.abort(live.id, key);
    }
    for key in held.into_iter().filter(|key| !running.contains(key)) {
        // Written some time ago: rights may have been taken away since.
        inner.epochs.forget(live.org);
        inner.slots.take(live.org);
        dispatch::begin(inner, live, key, node);
    }
}
