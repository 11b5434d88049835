//! Reads the log once for everybody who watches, from the moment the first one comes until the last one has gone.

use super::frames::{Frames, by_version, without_ids};
use super::hub::{Hub, State};
use crate::view::MessageView;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use stepwell_engine::notify::Announcement;
use stepwell_engine::{Activity, Caller, Error};
use stepwell_store::{Fed, Position, Progress};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{OnceCell, watch};
use tokio::time::sleep;

/// Rows that are read at a time.
const PAGE: u32 = 200;

/// Rows that follow each other: nothing comes between `after` and the last of them but these.
pub struct Batch {
    pub after: Progress,
    pub rows: Vec<Row>,
}

/// A log row, and its events in the forms in which watchers want them, made when the first one does.
pub struct Row {
    pub fed: Fed,
    /// When it was known to be on disk. Not known for rows of the past.
    pub since: Option<Instant>,
    by_version: OnceLock<Frames>,
    without_ids: OnceLock<Vec<String>>,
    announced: OnceCell<Vec<Announcement>>,
}

impl Row {
    pub fn new(fed: Fed, since: Option<Instant>) -> Row {
        Row { fed, since, by_version: OnceLock::new(), without_ids: OnceLock::new(), announced: OnceCell::new() }
    }

    pub fn by_version(&self) -> &Frames {
        self.by_version.get_or_init(|| by_version(&self.fed.public, &self.fed.log, None))
    }

    pub fn without_ids(&self) -> &[String] {
        self.without_ids.get_or_init(|| without_ids(&self.fed.public, &self.fed.log))
    }

    /// What the row gives to tell this caller of their own organisation.
    pub async fn announced(&self, hub: &Hub, caller: &Caller) -> Vec<MessageView> {
        if self.fed.org != caller.org {
            return Vec::new();
        }
        let all = self.announced.get_or_init(|| announced(hub, &self.fed)).await;
        let mine = all.iter().filter(|announcement| announcement.is_for(caller));
        mine.map(|announcement| announcement.message.clone().into()).collect()
    }
}

/// What cannot be found out now is told to nobody: those who must know have channels.
async fn announced(hub: &Hub, fed: &Fed) -> Vec<Announcement> {
    if fed.log.row.facts.contains("\"adopted\"") {
        hub.forget(fed.run);
    }
    let told = async {
        match hub.about(fed.run).await? {
            Some(about) => hub.engine.log().announcements(fed, &about.gates).await,
            None => Ok(Vec::new()),
        }
    };
    told.await.unwrap_or_else(|error| {
        tracing::warn!(%error, "those who are connected cannot be told of something");
        Vec::new()
    })
}

/// Until the hub is stopped.
pub async fn run(hub: Arc<Hub>) {
    let work = async {
        loop {
            until(&mut hub.state.subscribe(), |state| state.watchers > 0).await;
            if let Err(error) = while_watched(&hub).await {
                tracing::warn!(%error, "the log cannot be followed for those who watch");
                sleep(hub.settings.poll).await;
            }
        }
    };
    tokio::select! {
        () = hub.end() => {}
        () = work => {}
    }
}

async fn while_watched(hub: &Hub) -> Result<(), Error> {
    let mut state = hub.state.subscribe();
    // Before the position: what is committed in between is in both.
    let mut hints = hub.engine.activity();
    let mut at = hub.engine.log().progress().await?;
    let mut heard = BTreeMap::new();
    hub.state.send_modify(|state| state.following = true);
    loop {
        tokio::select! {
            biased;
            () = until(&mut state, |state| state.watchers == 0) => {
                // Somebody may have come since.
                if hub.state.send_if_modified(State::rest) {
                    return Ok(());
                }
                continue;
            }
            hint = hints.recv() => if !hear(hint, &mut hints, &mut heard, &at) {
                continue;
            },
            () = sleep(hub.settings.poll) => {}
        }
        if let Err(error) = pass_on(hub, &mut at, &heard).await {
            // Goes on from the same place: nobody could tell otherwise that something is missing.
            tracing::warn!(%error, "the log cannot be read for those who watch");
            sleep(hub.settings.poll).await;
        }
        heard.retain(|position, _| !at.has(*position));
    }
}

/// What is awaited is not kept: it would be a lock on the state.
pub async fn until(state: &mut watch::Receiver<State>, is: impl FnMut(&State) -> bool) {
    // An error says that the hub is gone, which it cannot be while its tasks run.
    let _ = state.wait_for(is).await;
}

/// Everything after `at`, which moves on.
async fn pass_on(hub: &Hub, at: &mut Progress, heard: &Heard) -> Result<(), Error> {
    loop {
        let read = Instant::now();
        let rows = hub.engine.log().feed(at, PAGE).await?;
        let (count, after) = (rows.len(), at.clone());
        if rows.is_empty() {
            return Ok(());
        }
        rows.iter().for_each(|fed| at.pass(fed.log.position));
        let rows = rows.into_iter().map(|fed| {
            // A row can be read before the hint of it comes.
            let since = heard.get(&fed.log.position).copied().unwrap_or(read);
            Row::new(fed, Some(since))
        });
        // The last watcher may have gone.
        let _ = hub.batches.send(Arc::new(Batch { after, rows: rows.collect() }));
        if count < PAGE as usize {
            return Ok(());
        }
    }
}

/// When commits were known to be on disk, until their rows are read.
type Heard = BTreeMap<Position, Instant>;

/// Takes all hints there are. False if they are about rows up to `at` only.
fn hear(first: Result<Activity, RecvError>, more: &mut Receiver<Activity>, heard: &mut Heard, at: &Progress) -> bool {
    // Hints that were lost may have been about anything.
    let mut lost = first.is_err();
    let mut next = first.ok();
    loop {
        match next {
            Some(Activity::Committed(hint)) if !at.has(hint.position) => drop(heard.insert(hint.position, hint.at)),
            Some(Activity::Committed(_)) | None => {}
            // Whoever wrote it does not say where.
            Some(Activity::Elsewhere) => lost = true,
        }
        next = match more.try_recv() {
            Ok(hint) => Some(hint),
            Err(TryRecvError::Lagged(_)) => {
                lost = true;
                None
            }
            Err(TryRecvError::Empty | TryRecvError::Closed) => return lost || !heard.is_empty(),
        };
    }
}
