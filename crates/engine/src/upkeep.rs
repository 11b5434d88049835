//! Periodic upkeep: recovers work after a crash, polls for messages and notices that were missed, admits queued runs,
//! and purges expired runs.

use crate::error::Error;
use crate::notify;
use crate::rooms::Rooms;
use crate::run::{Message, queue};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use stepwell_store::{Change, Notice, RecordChange, RunId, WorkKey};

/// Rows read in one batch.
const BATCH: u32 = 1_000;
/// Rows of finished runs removed in one transaction: short, so that commits hardly wait for it.
const PURGE_ROWS: u32 = 500;
/// How long to wait for a run to respond.
const RUN_TIMEOUT: Duration = Duration::from_secs(30);
/// Polls between two purges.
const PURGE_EVERY: u32 = 12;

/// State that one poll leaves to the next.
#[derive(Default)]
struct PollState {
    /// Runs whose attempts differ between the store and this node.
    differed: BTreeSet<RunId>,
    /// Runs of other nodes that had something to do. If they still do at the next poll, this node takes them.
    skipped: BTreeSet<RunId>,
}

/// Decides which runs this node handles in one poll.
struct OwnedRuns<'a> {
    rooms: &'a Rooms,
    skipped_before: BTreeSet<RunId>,
    skipped: BTreeSet<RunId>,
}

impl OwnedRuns<'_> {
    fn includes(&mut self, run: RunId) -> bool {
        let owned = self.rooms.cluster.node.has(run) || self.skipped_before.contains(&run);
        owned || {
            self.skipped.insert(run);
            false
        }
    }
}

/// Polls the store until the engine stops.
pub async fn run(rooms: Arc<Rooms>, interval: Duration) {
    let mut polls = 0u32;
    let mut state = PollState::default();
    while !rooms.cluster.stop.is_cancelled() {
        if let Err(error) = poll(&rooms, &mut state).await
            && !rooms.cluster.stop.is_cancelled()
        {
            tracing::warn!(%error, "cannot poll the store; will retry");
        }
        if polls.is_multiple_of(PURGE_EVERY) && rooms.cluster.node.is_first() {
            remove_expired_sessions(&rooms).await;
            purge(&rooms).await;
        }
        polls = polls.wrapping_add(1);
        tokio::select! {
            biased;
            () = rooms.cluster.pause(interval) => {}
            () = rooms.cluster.node.fewer.notified() => {}
        }
    }
}

async fn poll(rooms: &Arc<Rooms>, state: &mut PollState) -> Result<(), Error> {
    if rooms.cluster.shared {
        // Another node may have made the chain key.
        rooms.cluster.store.keep_evidence().await?;
        rooms.secrets.sealed.unlock().await?;
    }
    let skipped_before = std::mem::take(&mut state.skipped);
    let mut owned = OwnedRuns { rooms, skipped_before, skipped: BTreeSet::new() };
    if !rooms.cluster.shared || rooms.cluster.node.is_steady() {
        recover_orphans(rooms, &mut owned).await?;
    }
    rooms.executor.slots.left_ready();
    for run in rooms.cluster.store.mailed(BATCH).await?.into_iter().filter(|run| owned.includes(*run)) {
        rooms.runner.send(run, Message::Mail);
    }
    let mut notices: BTreeMap<RunId, Vec<String>> = BTreeMap::new();
    let now = rooms.cluster.clock.now();
    for notice in rooms.cluster.store.outbox(now, BATCH).await? {
        if !notify::is_for_people(&notice.key) {
            notices.entry(notice.run).or_default().push(notice.key);
        } else if owned.includes(notice.run) {
            notify::deliver(&rooms.notifier, notice.run, vec![Notice { key: notice.key, body: notice.body, due: now }]);
        }
    }
    for (run, keys) in notices.into_iter().filter(|(run, _)| owned.includes(*run)) {
        rooms.runner.send(run, Message::Notices(keys));
    }
    for (group, run) in rooms.cluster.store.queued(BATCH).await? {
        if owned.includes(run)
            && let Some(row) = rooms.cluster.store.run(run).await?
        {
            queue::admit(rooms.runner.clone(), row.org, group).await;
        }
    }
    state.skipped = owned.skipped;
    // A run may have ended by a commit whose result this process never received.
    rooms.runner.check_ends().await;
    reconcile(rooms, &mut state.differed).await
}

/// Dispatches attempts of dead nodes again.
async fn recover_orphans(rooms: &Arc<Rooms>, owned: &mut OwnedRuns<'_>) -> Result<(), Error> {
    let mut seen: BTreeSet<(RunId, WorkKey)> = BTreeSet::new();
    loop {
        let orphans = rooms.cluster.store.orphans(BATCH).await?;
        let orphans = orphans.into_iter().filter(|work| owned.includes(work.run));
        let new: Vec<_> = orphans.filter(|work| seen.insert((work.run, work.key.clone()))).collect();
        if new.is_empty() {
            return Ok(());
        }
        // Sends all messages before it awaits the first reply.
        let lost = new.into_iter().map(|work| ask(rooms, work.run, Message::Lost { key: work.key }));
        for answer in futures_util::future::join_all(lost).await {
            if let Err(error @ (Error::Broken(_) | Error::Unavailable(_))) = answer {
                tracing::warn!(%error, "cannot recover a lost attempt");
            }
        }
    }
}

async fn ask(rooms: &Arc<Rooms>, run: RunId, message: Message) -> Result<(), Error> {
    let answer = tokio::time::timeout(RUN_TIMEOUT, rooms.runner.ask(run, message)).await;
    answer.unwrap_or_else(|_| Err(Error::Unavailable("the run does not respond".into())))
}

/// Compares the attempts that the store assigns to this node with those that it executes. A run that differs in two
/// polls in a row reconciles itself; a difference in one poll may be an attempt that was just starting or ending.
async fn reconcile(rooms: &Arc<Rooms>, differed: &mut BTreeSet<RunId>) -> Result<(), Error> {
    let held = rooms.cluster.store.held(rooms.cluster.node.id()).await?;
    let held: BTreeSet<(RunId, WorkKey)> = held.into_iter().map(|work| (work.run, work.key)).collect();
    let running: BTreeSet<(RunId, WorkKey)> = rooms.runner.mailboxes.executing().into_iter().collect();
    let differ: BTreeSet<RunId> = held.symmetric_difference(&running).map(|(run, _)| *run).collect();
    for run in differ.intersection(differed) {
        rooms.runner.send(*run, Message::Reconcile);
    }
    *differed = differ;
    Ok(())
}

/// Removes expired sessions and sign-in links.
async fn remove_expired_sessions(rooms: &Arc<Rooms>) {
    for kind in ["session", "link"] {
        let expired = rooms.cluster.store.due_records(kind, rooms.cluster.clock.now(), BATCH).await.unwrap_or_default();
        let gone = expired.into_iter().map(|record| RecordChange::Remove { kind: record.kind, id: record.id });
        let records: Vec<RecordChange> = gone.collect();
        if !records.is_empty()
            && let Err(error) = rooms.cluster.store.change(Change { records, ..Change::default() }).await
        {
            tracing::warn!(%error, "cannot remove expired sessions; will retry");
        }
    }
}

/// Removes expired runs, then returns the freed space to the file system.
async fn purge(rooms: &Arc<Rooms>) {
    while !rooms.cluster.stop.is_cancelled() {
        match rooms.cluster.store.purge(rooms.cluster.clock.now(), PURGE_ROWS).await {
            Ok(0) => break,
            Ok(_) => rooms.cluster.pause(Duration::from_millis(5)).await,
            Err(error) => return tracing::warn!(%error, "cannot purge finished runs; will retry"),
        }
    }
    // In small steps, so that commits hardly wait.
    while !rooms.cluster.stop.is_cancelled() {
        match rooms.cluster.store.shrink().await {
            Ok(true) => rooms.cluster.pause(Duration::from_millis(5)).await,
            Ok(false) => return,
            Err(error) => return tracing::warn!(%error, "cannot shrink the store; will retry"),
        }
    }
}
