//! Runs that may be what ends the process: they are driven with care after a crash, and then no more.
//!
//! Every node keeps a record of its life and removes it when it stops in an orderly way. So a record of a node that is no
//! longer there tells that it crashed. For a while after that, on every node, the first turn of each run that is loaded is
//! noted before the run is read, and the note is removed after the turn. A note of a dead node is a death of that run. A
//! run with a death is a suspect: suspects are driven one at a time, so that those beside it are not blamed. With too many
//! deaths in a row a run is quarantined: no node drives it until a person releases or cancels it.
//!
//! Without a crash all this costs one look at a flag. Not here: attempts that were running, which the planner counts.

use super::Runner;
use super::messages::{Envelope, Message};
use crate::error::Error;
use crate::records::{Kept, body, json};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use stepwell_core::time::{Millis, Time};
use stepwell_store::{Change, NodeId, OrgId, Record, RecordChange, RecordFilter, RunId, RunRow};

/// How long runs are driven with care after a crash.
const CARE: Millis = Millis(10 * 60 * 1_000);
/// Nodes and quarantined runs that are read.
const MAX_READ: u32 = 10_000;
/// Runs that are remembered as harmless.
const MAX_HARMLESS: usize = 100_000;
/// What a caller gets who wants a quarantined run to go on.
const REFUSAL: &str = "the run is quarantined, because the server ended several times in a row while it drove it: \
    release or cancel it";

/// A node that has not stopped in an orderly way.
#[derive(Serialize, Deserialize)]
struct Life {
    node: i64,
}

/// A run that is being driven after a crash, or was driven at the last one.
#[derive(Serialize, Deserialize)]
struct Suspect {
    deaths: u8,
    /// The node that drives it.
    node: i64,
}

/// A run that no node drives.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Quarantine {
    pub run: i64,
    pub since: Time,
}

impl Kept for Life {
    const KIND: &'static str = "life";
}

impl Kept for Suspect {
    const KIND: &'static str = "suspect";
}

impl Kept for Quarantine {
    const KIND: &'static str = "quarantine";
}

#[derive(Default)]
pub struct Recovery {
    state: Mutex<State>,
    /// Held while a suspect is driven.
    alone: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    careful_until: Option<Time>,
    /// The id under which this node's life is recorded.
    life: Option<NodeId>,
    /// Crashed nodes, and when this one noticed.
    crashed: BTreeMap<NodeId, Time>,
    quarantined: BTreeSet<RunId>,
    /// Runs that were driven since the crash.
    harmless: BTreeSet<RunId>,
}

/// How a run may be driven.
pub enum Entry<'a> {
    Freely,
    /// The turn is noted; see [`left`].
    Watched(Option<tokio::sync::MutexGuard<'a, ()>>),
    Quarantined,
}

impl Recovery {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the next turn of a run that is not in memory needs [`enter`].
    pub fn concerns(&self, run: RunId, now: Time) -> bool {
        let state = self.state();
        let careful = state.careful_until.is_some_and(|until| now < until);
        state.quarantined.contains(&run) || careful && !state.harmless.contains(&run)
    }

    fn is_harmless(&self, run: RunId) {
        let mut state = self.state();
        if state.harmless.len() >= MAX_HARMLESS {
            state.harmless.clear();
        }
        state.harmless.insert(run);
    }
}

fn record<T: Kept>(org: OrgId, id: i64, is: &T) -> Record {
    Record { kind: T::KIND.into(), id: id.to_string(), org, key: id.to_string(), due: None, body: json(is), version: 0 }
}

fn removed<T: Kept>(id: i64) -> RecordChange {
    RecordChange::Remove { kind: T::KIND.into(), id: id.to_string() }
}

async fn all<T: Kept>(runner: &Runner) -> Result<Vec<T>, Error> {
    let filter = RecordFilter { kind: T::KIND.into(), org: None, prefix: String::new(), after: None, limit: MAX_READ };
    runner.cluster.store.records(filter).await?.iter().map(body).collect()
}

async fn write(runner: &Runner, records: Vec<RecordChange>) -> Result<(), Error> {
    let change = Change { records, ..Change::default() };
    let written = runner.cluster.store.change(change).await?;
    written.map_err(|refused| Error::Unavailable(refused.to_string()))
}

/// Records that this node lives, and notices crashed nodes and quarantined runs. Called at the start and by every poll.
pub async fn watch(runner: &Runner) -> Result<(), Error> {
    let cluster = &runner.cluster;
    let (me, now) = (cluster.node.id(), cluster.clock.now());
    let lives: BTreeSet<NodeId> = all::<Life>(runner).await?.iter().map(|life| NodeId(life.node)).collect();
    let alive: BTreeSet<NodeId> = cluster.store.nodes().await?.iter().map(|row| row.node.id).collect();
    let quarantined = all::<Quarantine>(runner).await?.iter().map(|one| RunId(one.run)).collect();
    let mut changes = Vec::new();
    {
        let mut state = runner.recovery.state();
        let mine = state.life;
        // This node was expelled and has another id now.
        if let Some(before) = mine.filter(|life| *life != me) {
            changes.push(removed::<Life>(before.0));
        }
        if !lives.contains(&me) {
            changes.push(RecordChange::Create(record(OrgId(1), me.0, &Life { node: me.0 })));
        }
        for crashed in lives.difference(&alive).filter(|node| **node != me && Some(**node) != mine) {
            let noticed = *state.crashed.entry(*crashed).or_insert_with(|| now);
            if noticed == now {
                (state.careful_until, state.harmless) = (Some(now + CARE), BTreeSet::new());
            }
            if now > noticed + CARE && cluster.node.is_first() {
                changes.push(removed::<Life>(crashed.0));
            }
        }
        state.crashed.retain(|node, _| lives.contains(node));
        let before = std::mem::replace(&mut state.quarantined, quarantined);
        if !before.is_subset(&state.quarantined) {
            // Timers of a released run were dropped.
            runner.timers.reload();
        }
    }
    if !changes.is_empty() {
        write(runner, changes).await?;
    }
    runner.recovery.state().life = Some(me);
    Ok(())
}

/// The nodes that are gone and did not stop in an orderly way.
pub async fn crashed(runner: &Runner) -> Result<BTreeSet<NodeId>, Error> {
    let alive: BTreeSet<NodeId> = runner.cluster.store.nodes().await?.iter().map(|row| row.node.id).collect();
    let lives = all::<Life>(runner).await?.into_iter().map(|life| NodeId(life.node));
    Ok(lives.filter(|node| !alive.contains(node)).collect())
}

/// Removes the record of this node's life: it stops in an orderly way.
pub async fn end(runner: &Runner) -> Result<(), Error> {
    let life = runner.recovery.state().life.take();
    match life {
        Some(life) => write(runner, vec![removed::<Life>(life.0)]).await,
        None => Ok(()),
    }
}

/// Decides whether and how a run that is not in memory may be driven.
pub async fn enter(runner: &Runner, run: RunId) -> Entry<'_> {
    match try_enter(runner, run).await {
        Ok(entry) => entry,
        Err(error) => {
            tracing::warn!(run = run.0, %error, "cannot note that a run is recovered");
            Entry::Freely
        }
    }
}

async fn try_enter(runner: &Runner, run: RunId) -> Result<Entry<'_>, Error> {
    let store = &runner.cluster.store;
    if store.record(Quarantine::KIND, &run.0.to_string()).await?.is_some() {
        runner.recovery.state().quarantined.insert(run);
        return Ok(Entry::Quarantined);
    }
    let me = runner.cluster.node.id();
    let Some(row) = store.run(run).await? else { return Ok(Entry::Freely) };
    let Some(before) = store.record(Suspect::KIND, &run.0.to_string()).await? else {
        write(runner, vec![RecordChange::Create(record(row.org, run.0, &Suspect { deaths: 0, node: me.0 }))]).await?;
        return Ok(Entry::Watched(None));
    };
    let suspect: Suspect = body(&before)?;
    let alive = store.nodes().await?.iter().any(|row| row.node.id.0 == suspect.node);
    if alive && suspect.node != me.0 {
        // Another node drives it. If both write, the store decides.
        return Ok(Entry::Freely);
    }
    let deaths = suspect.deaths.saturating_add(u8::from(!alive));
    // The first crash was before any note.
    if deaths.saturating_add(1) >= runner.max_losses {
        quarantine(runner, &row).await?;
        return Ok(Entry::Quarantined);
    }
    let alone = if deaths > 0 { Some(runner.recovery.alone.lock().await) } else { None };
    let suspect = Suspect { deaths, node: me.0 };
    write(runner, vec![RecordChange::Replace(Record { body: json(&suspect), ..before })]).await?;
    Ok(Entry::Watched(alone))
}

/// Quarantines a run.
pub async fn quarantine(runner: &Runner, row: &RunRow) -> Result<(), Error> {
    let now = runner.cluster.clock.now();
    let new = record(row.org, row.id.0, &Quarantine { run: row.id.0, since: now });
    write(runner, vec![RecordChange::Create(new), removed::<Suspect>(row.id.0)]).await?;
    runner.recovery.state().quarantined.insert(row.id);
    tracing::error!(run = row.public, "a run is quarantined: the process ended too often while it was driven");
    metrics::counter!("stepwell_quarantined_total", "what" => "run").increment(1);
    if let Ok(sink) = runner.sink() {
        sink.quarantined(row, now).await;
    }
    Ok(())
}

/// The turn of a watched run has ended, and the process has not.
pub async fn left(runner: &Runner, run: RunId) {
    runner.recovery.is_harmless(run);
    if let Err(error) = write(runner, vec![removed::<Suspect>(run.0)]).await {
        tracing::warn!(run = run.0, %error, "cannot remove the note about a recovered run");
    }
}

/// Whether a run is quarantined, and since when.
pub async fn quarantined(runner: &Runner, run: RunId) -> Result<Option<Quarantine>, Error> {
    let found = runner.cluster.store.record(Quarantine::KIND, &run.0.to_string()).await?;
    found.as_ref().map(body).transpose()
}

/// The changes that end a quarantine.
pub fn released(run: RunId) -> Vec<RecordChange> {
    vec![removed::<Quarantine>(run.0), removed::<Suspect>(run.0)]
}

/// A quarantine has ended: what was left undone is taken up.
pub fn resume(runner: &Arc<Runner>, run: RunId) {
    runner.recovery.state().quarantined.remove(&run);
    runner.timers.reload();
    runner.send(run, Message::Reconcile);
}

/// A quarantined run has ended, because somebody cancelled it.
pub async fn forget(runner: &Runner, run: RunId) {
    runner.recovery.state().quarantined.remove(&run);
    if let Err(error) = write(runner, released(run)).await {
        tracing::warn!(run = run.0, %error, "cannot end the quarantine of a run that has ended");
    }
}

/// Refuses messages to a quarantined run, except those that cancel it. What is durable is found again after its release.
pub fn refuse(runner: &Runner, run: RunId, messages: &mut Vec<Envelope>) {
    let other = |envelope: &mut Envelope| !matches!(envelope.message, Message::Cancel { .. });
    for envelope in messages.extract_if(.., other) {
        if let Message::Timer { key } = &envelope.message {
            runner.timers.forget(run, key);
        }
        if let Some(reply) = envelope.reply {
            // The caller may have left.
            let _ = reply.send(Err(Error::NotNow(REFUSAL.into())));
        }
    }
}
