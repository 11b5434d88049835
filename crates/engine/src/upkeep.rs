//! Periodic upkeep: recovers work after a crash, polls for messages and notices that were missed, admits queued runs,
//! and purges expired runs.

use crate::error::Error;
use crate::execute;
use crate::notify;
use crate::rooms::Rooms;
use crate::run::{Message, queue, recovery};
use futures_util::StreamExt;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use stepwell_store::{Change, Due, Notice, RecordChange, RunId, StoredNotice, WorkKey};

/// Rows read in one batch.
const BATCH: u32 = 1_000;
/// Queues and notifications that are handled at the same time.
const WIDTH: usize = 32;
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
    recovery::watch(&rooms.runner).await?;
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
    rooms.executor.slots.left_ready(None);
    rooms.runner.broken.release();
    deliver_mail(rooms, &mut owned).await?;
    handle_notices(rooms, &mut owned).await?;
    admit_queued(rooms, &mut owned).await?;
    state.skipped = owned.skipped;
    // A run may have ended by a commit whose result this process never received.
    rooms.runner.check_ends().await;
    reconcile(rooms, &mut state.differed).await
}

// Each of these reads page by page to the end: rows that cannot be handled now (of other nodes, of full groups) must not
// hide those behind them. A page is handled before the next is read, so that few runs are in memory at a time.

async fn deliver_mail(rooms: &Arc<Rooms>, owned: &mut OwnedRuns<'_>) -> Result<(), Error> {
    let mut after = None;
    loop {
        let page = rooms.cluster.store.mailed(after, BATCH).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = Some(*last);
        ask_all(rooms, page.into_iter().filter(|run| owned.includes(*run)).map(|run| (run, Message::Mail))).await;
    }
}

async fn handle_notices(rooms: &Arc<Rooms>, owned: &mut OwnedRuns<'_>) -> Result<(), Error> {
    let now = rooms.cluster.clock.now();
    let mut after = 0;
    loop {
        let page = rooms.cluster.store.outbox(now, after, BATCH).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.id;
        let page = page.into_iter().filter(|notice| owned.includes(notice.run));
        let (people, others): (Vec<_>, Vec<_>) = page.partition(|notice| notify::is_for_people(&notice.key));
        let (abandoned, children): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|notice| execute::is_abandoned(&notice.key));
        for StoredNotice { run, key, body, .. } in abandoned {
            // Not waited for: a service that is not there must not delay other notices.
            rooms.executor.abandon(run, vec![Notice { key, body, due: now }]);
        }
        let mut keys: BTreeMap<RunId, Vec<String>> = BTreeMap::new();
        for notice in children {
            keys.entry(notice.run).or_default().push(notice.key);
        }
        ask_all(rooms, keys.into_iter().map(|(run, keys)| (run, Message::Notices(keys)))).await;
        let deliveries = people.into_iter().map(|StoredNotice { run, key, body, .. }| {
            notify::create_deliveries(rooms.notifier.clone(), run, vec![Notice { key, body, due: now }])
        });
        futures_util::stream::iter(deliveries).buffer_unordered(WIDTH).collect::<()>().await;
    }
}

async fn admit_queued(rooms: &Arc<Rooms>, owned: &mut OwnedRuns<'_>) -> Result<(), Error> {
    let mut after: Option<String> = None;
    loop {
        let page = rooms.cluster.store.queued(after.as_deref(), BATCH).await?;
        let Some((last, _)) = page.last() else { return Ok(()) };
        after = Some(last.clone());
        let page = page.into_iter().filter(|(_, first)| owned.includes(*first));
        let admissions = page.map(|(group, first)| async move {
            match rooms.cluster.store.run(first).await {
                Ok(Some(row)) => queue::admit(rooms.runner.clone(), row.org, group).await,
                Ok(None) => {}
                Err(error) => tracing::warn!(%error, "cannot admit queued runs; will retry"),
            }
        });
        futures_util::stream::iter(admissions).buffer_unordered(WIDTH).collect::<()>().await;
    }
}

/// Dispatches attempts of dead nodes again.
async fn recover_orphans(rooms: &Arc<Rooms>, owned: &mut OwnedRuns<'_>) -> Result<(), Error> {
    let mut after = None;
    loop {
        let page = rooms.cluster.store.orphans(after, BATCH).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = Some((last.run, last.key.clone()));
        // Read after the orphans: a node that is gone by then does not come back.
        let crashed = held_at_crashes(rooms).await?;
        let lost = page.into_iter().map(|work| (work.run, work.key)).filter(|(run, _)| owned.includes(*run));
        let lost = lost.map(|attempt| (!crashed.contains(&attempt), attempt));
        ask_all(rooms, lost.map(|(stopped, (run, key))| (run, Message::Lost { key, stopped }))).await;
    }
}

/// The attempts of nodes that crashed. Those of nodes that stopped in an orderly way are not among them.
async fn held_at_crashes(rooms: &Rooms) -> Result<BTreeSet<(RunId, WorkKey)>, Error> {
    let mut attempts = BTreeSet::new();
    for node in recovery::crashed(&rooms.runner).await? {
        attempts.extend(rooms.cluster.store.held(node).await?.into_iter().map(|work| (work.run, work.key)));
    }
    Ok(attempts)
}

/// Sends all messages, then waits for the replies.
async fn ask_all(rooms: &Arc<Rooms>, messages: impl Iterator<Item = (RunId, Message)>) {
    let asked = messages.map(|(run, message)| ask(rooms, run, message));
    for answer in futures_util::future::join_all(asked).await {
        if let Err(error @ (Error::Broken(_) | Error::Unavailable(_))) = answer {
            tracing::warn!(%error, "cannot recover a run; will retry");
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
        loop {
            let due = Due::by(rooms.cluster.clock.now());
            let expired = rooms.cluster.store.due_records(kind, due, BATCH).await.unwrap_or_default();
            let gone = expired.into_iter().map(|record| RecordChange::Remove { kind: record.kind, id: record.id });
            let records: Vec<RecordChange> = gone.collect();
            if records.is_empty() {
                break;
            }
            if let Err(error) = rooms.cluster.store.change(Change { records, ..Change::default() }).await {
                tracing::warn!(%error, "cannot remove expired sessions; will retry");
                break;
            }
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
