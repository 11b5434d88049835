//! Message keeps an engine sound: taking up what a crash left, looking for what was missed, admitting queued runs, and removing
//! runs whose time is over.

use crate::error::Error;
use crate::notify;
use crate::rooms::Rooms;
use crate::run::{Message, queue};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use stepwell_store::{Change, Notice, RecordChange, RunId, WorkKey};

/// Rows looked at in one go.
const BATCH: u32 = 1_000;
/// Rows of finished runs removed in one transaction: short, so that commits hardly wait for it.
const PURGE_ROWS: u32 = 500;
/// How long a run is waited for.
const PATIENCE: Duration = Duration::from_secs(30);
/// Looks between two purges.
const PURGE_EVERY: u32 = 12;

/// Message one look leaves to the next.
#[derive(Default)]
struct Looked {
    /// Runs of which the store said otherwise than this node.
    differed: BTreeSet<RunId>,
    /// Runs that are not this node's to look after and had something to be done. Whoever's they are has had time.
    passed_over: BTreeSet<RunId>,
}

/// Which runs this node looks after in one look.
struct Mine<'a> {
    rooms: &'a Rooms,
    before: BTreeSet<RunId>,
    passed_over: BTreeSet<RunId>,
}

impl Mine<'_> {
    fn has(&mut self, run: RunId) -> bool {
        let mine = self.rooms.cluster.node.has(run) || self.before.contains(&run);
        mine || {
            self.passed_over.insert(run);
            false
        }
    }
}

pub async fn run(rooms: Arc<Rooms>, poll: Duration) {
    let mut looks = 0u32;
    let mut looked = Looked::default();
    while !rooms.cluster.stop.is_cancelled() {
        if let Err(error) = look(&rooms, &mut looked).await
            && !rooms.cluster.stop.is_cancelled()
        {
            tracing::warn!(%error, "the store cannot be looked through");
        }
        if looks.is_multiple_of(PURGE_EVERY) && rooms.cluster.node.is_first() {
            end_sessions(&rooms).await;
            purge(&rooms).await;
        }
        looks = looks.wrapping_add(1);
        tokio::select! {
            biased;
            () = rooms.cluster.pause(poll) => {}
            () = rooms.cluster.node.fewer.notified() => {}
        }
    }
}

async fn look(rooms: &Arc<Rooms>, looked: &mut Looked) -> Result<(), Error> {
    let before = std::mem::take(&mut looked.passed_over);
    let mut mine = Mine { rooms, before, passed_over: BTreeSet::new() };
    if !rooms.cluster.shared || rooms.cluster.node.is_steady() {
        orphans(rooms, &mut mine).await?;
    }
    rooms.executor.slots.left_ready();
    for run in rooms.cluster.store.mailed(BATCH).await?.into_iter().filter(|run| mine.has(*run)) {
        rooms.runner.send(run, Message::Mail);
    }
    let mut notices: BTreeMap<RunId, Vec<String>> = BTreeMap::new();
    let now = rooms.cluster.clock.now();
    for notice in rooms.cluster.store.outbox(now, BATCH).await? {
        if !notify::belongs(&notice.key) {
            notices.entry(notice.run).or_default().push(notice.key);
        } else if mine.has(notice.run) {
            notify::deliver(&rooms.notifier, notice.run, vec![Notice { key: notice.key, body: notice.body, due: now }]);
        }
    }
    for (run, keys) in notices.into_iter().filter(|(run, _)| mine.has(*run)) {
        rooms.runner.send(run, Message::Notices(keys));
    }
    for (group, run) in rooms.cluster.store.queued(BATCH).await? {
        if mine.has(run)
            && let Some(row) = rooms.cluster.store.run(run).await?
        {
            queue::admit(rooms.runner.clone(), row.org, group).await;
        }
    }
    looked.passed_over = mine.passed_over;
    // Some may have ended by a commit whose answer this process never got.
    rooms.runner.check_ends().await;
    reconcile(rooms, &mut looked.differed).await
}

/// Attempts on nodes that are gone are dispatched again.
async fn orphans(rooms: &Arc<Rooms>, mine: &mut Mine<'_>) -> Result<(), Error> {
    let mut seen: BTreeSet<(RunId, WorkKey)> = BTreeSet::new();
    loop {
        let orphans = rooms.cluster.store.orphans(BATCH).await?;
        let orphans = orphans.into_iter().filter(|work| mine.has(work.run));
        let new: Vec<_> = orphans.filter(|work| seen.insert((work.run, work.key.clone()))).collect();
        if new.is_empty() {
            return Ok(());
        }
        // All of them are on their way before the first is waited for.
        let lost = new.into_iter().map(|work| ask(rooms, work.run, Message::Lost { key: work.key }));
        for answer in futures_util::future::join_all(lost).await {
            if let Err(error @ (Error::Broken(_) | Error::Unavailable(_))) = answer {
                tracing::warn!(%error, "a lost step cannot be taken up");
            }
        }
    }
}

async fn ask(rooms: &Arc<Rooms>, run: RunId, message: Message) -> Result<(), Error> {
    let answer = tokio::time::timeout(PATIENCE, rooms.runner.ask(run, message)).await;
    answer.unwrap_or_else(|_| Err(Error::Unavailable("the run does not answer".into())))
}

/// Compares what the store says this node has with what it runs. Messageever differs in two looks, and so not only because
/// something was just beginning or ending, is looked at by the run itself.
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

/// Sessions and sign-in links that are over.
async fn end_sessions(rooms: &Arc<Rooms>) {
    for kind in ["session", "link"] {
        let over = rooms.cluster.store.due_records(kind, rooms.cluster.clock.now(), BATCH).await.unwrap_or_default();
        let gone = over.into_iter().map(|record| RecordChange::Remove { kind: record.kind, id: record.id });
        let records: Vec<RecordChange> = gone.collect();
        if !records.is_empty()
            && let Err(error) = rooms.cluster.store.change(Change { records, ..Change::default() }).await
        {
            tracing::warn!(%error, "sessions that are over cannot be removed for now");
        }
    }
}

async fn purge(rooms: &Arc<Rooms>) {
    while !rooms.cluster.stop.is_cancelled() {
        match rooms.cluster.store.purge(rooms.cluster.clock.now(), PURGE_ROWS).await {
            Ok(0) => break,
            Ok(_) => rooms.cluster.pause(Duration::from_millis(5)).await,
            Err(error) => return tracing::warn!(%error, "finished runs cannot be removed for now"),
        }
    } // Then the room they took is given back, a little at a time.
    while !rooms.cluster.stop.is_cancelled() {
        match rooms.cluster.store.shrink().await {
            Ok(true) => rooms.cluster.pause(Duration::from_millis(5)).await,
            Ok(false) => return,
            Err(error) => return tracing::warn!(%error, "the store cannot be made smaller for now"),
        }
    }
}
