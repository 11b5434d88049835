//! What keeps an engine sound: taking up what a crash left, looking for what was missed, admitting queued runs, and removing
//! runs whose time is over.

use crate::engine::Inner;
use crate::error::Error;
use crate::runs::What;
use crate::{hints, notify, switches};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use stepwell_store::{Change, OrgId, RecordChange, RunId, WorkKey};

/// Rows looked at in one go.
const BATCH: u32 = 1_000;
/// Rows of finished runs removed in one transaction: short, so that commits hardly wait for it.
const PURGE_ROWS: u32 = 500;
/// How long a run is waited for.
const PATIENCE: Duration = Duration::from_secs(30);
/// Looks between two purges.
const PURGE_EVERY: u32 = 12;

/// What one look leaves to the next.
#[derive(Default)]
struct Looked {
    /// Runs of which the store said otherwise than this node.
    differed: BTreeSet<RunId>,
    /// Runs that are not this node's to look after and had something to be done. Whoever's they are has had time.
    passed_over: BTreeSet<RunId>,
}

/// Which runs this node looks after in one look.
struct Mine<'a> {
    inner: &'a Inner,
    before: BTreeSet<RunId>,
    passed_over: BTreeSet<RunId>,
}

impl Mine<'_> {
    fn has(&mut self, run: RunId) -> bool {
        let mine = self.inner.node.has(run) || self.before.contains(&run);
        mine || {
            self.passed_over.insert(run);
            false
        }
    }
}

pub async fn run(inner: Arc<Inner>) {
    let mut looks = 0u32;
    let mut looked = Looked::default();
    while !inner.stop.is_cancelled() {
        if let Err(error) = look(&inner, &mut looked).await
            && !inner.stop.is_cancelled()
        {
            tracing::warn!(%error, "the store cannot be looked through");
        }
        if looks.is_multiple_of(PURGE_EVERY) && inner.node.is_first() {
            end_sessions(&inner).await;
            purge(&inner).await;
        }
        looks = looks.wrapping_add(1);
        tokio::select! {
            biased;
            () = inner.pause(inner.poll) => {}
            () = inner.node.fewer.notified() => {}
        }
    }
}

async fn look(inner: &Arc<Inner>, looked: &mut Looked) -> Result<(), Error> {
    let before = std::mem::take(&mut looked.passed_over);
    let mut mine = Mine { inner, before, passed_over: BTreeSet::new() };
    if !inner.shared || inner.node.is_steady() {
        orphans(inner, &mut mine).await?;
    }
    inner.slots.left_ready();
    for run in inner.store.mailed(BATCH).await?.into_iter().filter(|run| mine.has(*run)) {
        inner.send(run, What::Mail);
    }
    let mut notices: BTreeMap<RunId, Vec<String>> = BTreeMap::new();
    for notice in inner.store.outbox(inner.clock.now(), BATCH).await? {
        if !notify::belongs(&notice.key) {
            notices.entry(notice.run).or_default().push(notice.key);
        } else if mine.has(notice.run) {
            notify::see_to(inner, notice.run, vec![(notice.key, notice.body)]);
        }
    }
    for (run, keys) in notices.into_iter().filter(|(run, _)| mine.has(*run)) {
        inner.send(run, What::Notices(keys));
    }
    for (place, run) in inner.store.queued(BATCH).await? {
        if mine.has(run)
            && let Some(row) = inner.store.run(run).await?
        {
            admit(inner.clone(), row.org, place).await;
        }
    }
    looked.passed_over = mine.passed_over;
    // Some may have ended by a commit whose answer this process never got.
    hints::ended(inner).await;
    reconcile(inner, &mut looked.differed).await
}

/// Attempts on nodes that are gone are dispatched again.
async fn orphans(inner: &Arc<Inner>, mine: &mut Mine<'_>) -> Result<(), Error> {
    let mut seen: BTreeSet<(RunId, WorkKey)> = BTreeSet::new();
    loop {
        let orphans = inner.store.orphans(BATCH).await?;
        let orphans = orphans.into_iter().filter(|work| mine.has(work.run));
        let new: Vec<_> = orphans.filter(|work| seen.insert((work.run, work.key.clone()))).collect();
        if new.is_empty() {
            return Ok(());
        }
        // All of them are on their way before the first is waited for.
        let lost = new.into_iter().map(|work| ask(inner, work.run, What::Lost { key: work.key }));
        for answer in futures_util::future::join_all(lost).await {
            if let Err(error @ (Error::Broken(_) | Error::Unavailable(_))) = answer {
                tracing::warn!(%error, "a lost step cannot be taken up");
            }
        }
    }
}

/// Lets runs in from a queue, oldest first, as long as there are places.
pub async fn admit(inner: Arc<Inner>, org: OrgId, place: String) {
    let mut before = None;
    while !inner.is_draining() {
        match switches::is_held(&inner, org, &place).await {
            Ok(false) => {}
            Ok(true) => return,
            Err(error) => return tracing::warn!(%error, "queued runs cannot be admitted for now"),
        }
        let first = match inner.store.first_queued(&place).await {
            Ok(Some(first)) => first,
            Ok(None) => return,
            Err(error) => return tracing::warn!(%error, "queued runs cannot be admitted for now"),
        };
        let again = Some(first) == before.replace(first);
        match ask(&inner, first, What::Admit).await {
            Ok(()) | Err(Error::Conflict(_)) if !again => {}
            // No place is free, or it will be tried again at the next look.
            _ => return,
        }
    }
}

/// One run that does not answer must not hold up the others.
async fn ask(inner: &Arc<Inner>, run: RunId, what: What) -> Result<(), Error> {
    let answer = tokio::time::timeout(PATIENCE, inner.ask(run, what)).await;
    answer.unwrap_or_else(|_| Err(Error::Unavailable("the run does not answer".into())))
}

/// Compares what the store says this node has with what it runs. Whatever differs in two looks, and so not only because
/// something was just beginning or ending, is looked at by the run itself.
async fn reconcile(inner: &Arc<Inner>, differed: &mut BTreeSet<RunId>) -> Result<(), Error> {
    let held = inner.store.held(inner.node.id()).await?;
    let held: BTreeSet<(RunId, WorkKey)> = held.into_iter().map(|work| (work.run, work.key)).collect();
    let running: BTreeSet<(RunId, WorkKey)> = inner.runs.executing().into_iter().collect();
    let differ: BTreeSet<RunId> = held.symmetric_difference(&running).map(|(run, _)| *run).collect();
    for run in differ.intersection(differed) {
        inner.send(*run, What::Reconcile);
    }
    *differed = differ;
    Ok(())
}

/// Sessions and sign-in links that are over.
async fn end_sessions(inner: &Arc<Inner>) {
    for kind in ["session", "link"] {
        let over = inner.store.due_records(kind, inner.clock.now(), BATCH).await.unwrap_or_default();
        let gone = over.into_iter().map(|record| RecordChange::Remove { kind: record.kind, id: record.id });
        let records: Vec<RecordChange> = gone.collect();
        if !records.is_empty()
            && let Err(error) = inner.store.change(Change { records, ..Change::default() }).await
        {
            tracing::warn!(%error, "sessions that are over cannot be removed for now");
        }
    }
}

async fn purge(inner: &Arc<Inner>) {
    while !inner.stop.is_cancelled() {
        match inner.store.purge(inner.clock.now(), PURGE_ROWS).await {
            Ok(0) => break,
            Ok(_) => inner.pause(Duration::from_millis(5)).await,
            Err(error) => return tracing::warn!(%error, "finished runs cannot be removed for now"),
        }
    } // Then the room they took is given back, a little at a time.
    while !inner.stop.is_cancelled() {
        match inner.store.shrink().await {
            Ok(true) => inner.pause(Duration::from_millis(5)).await,
            Ok(false) => return,
            Err(error) => return tracing::warn!(%error, "the store cannot be made smaller for now"),
        }
    }
}
