//! Reads the log once for all watchers, from the arrival of the first to the departure of the last.

use super::frames::{Frames, by_version, without_ids};
use super::hub::{Hub, State};
use crate::view::{MessageView, OfRun};
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

/// Rows read at a time.
const PAGE: u32 = 200;

/// Consecutive rows: there are no others between `after` and the last of them.
pub struct Batch {
    pub after: Progress,
    pub rows: Vec<Row>,
}

/// A log row with its events in each format, rendered when the first watcher needs it.
pub struct Row {
    pub fed: Fed,
    /// When the row was known to be on disk. Unknown for past rows.
    pub since: Option<Instant>,
    by_version: OnceLock<Frames>,
    without_ids: OnceLock<Vec<String>>,
    announced: OnceCell<Vec<Announcement>>,
}

impl Row {
    pub fn new(fed: Fed, since: Option<Instant>) -> Row {
        Row { fed, since, by_version: OnceLock::new(), without_ids: OnceLock::new(), announced: OnceCell::new() }
    }

    pub fn by_version(&self, workflow: &str) -> &Frames {
        let of = OfRun { run: &self.fed.public, workflow };
        self.by_version.get_or_init(|| by_version(of, &self.fed.log, None))
    }

    pub fn without_ids(&self, workflow: &str) -> &[String] {
        let of = OfRun { run: &self.fed.public, workflow };
        self.without_ids.get_or_init(|| without_ids(of, &self.fed.log))
    }

    /// Notifications of this row for a caller of the same organisation.
    pub async fn announced(&self, hub: &Hub, caller: &Caller) -> Vec<MessageView> {
        if self.fed.org != caller.org {
            return Vec::new();
        }
        let all = self.announced.get_or_init(|| announced(hub, &self.fed)).await;
        let mine = all.iter().filter(|announcement| announcement.is_for(caller));
        mine.map(|announcement| announcement.message.clone().into()).collect()
    }
}

/// Errors are only logged: people who must be notified have channels.
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
        tracing::warn!(%error, "cannot send live notifications");
        Vec::new()
    })
}

/// Runs until the hub is stopped.
pub async fn run(hub: Arc<Hub>) {
    let work = async {
        loop {
            until(&mut hub.state.subscribe(), |state| state.watchers > 0).await;
            if let Err(error) = while_watched(&hub).await {
                tracing::warn!(%error, "cannot follow the log for live streams");
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
    // Subscribes before reading the position, so that commits in between are not missed.
    let mut hints = hub.engine.activity();
    let mut at = hub.engine.log().progress().await?;
    let mut heard = BTreeMap::new();
    hub.state.send_modify(|state| state.following = true);
    loop {
        tokio::select! {
            biased;
            () = until(&mut state, |state| state.watchers == 0) => {
                // A watcher may have arrived in the meantime.
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
            // Continues from the same position, because watchers could not detect a gap.
            tracing::warn!(%error, "cannot read the log for live streams");
            sleep(hub.settings.poll).await;
        }
        heard.retain(|position, _| !at.has(*position));
    }
}

/// Does not hold the awaited value, which would lock the state.
pub async fn until(state: &mut watch::Receiver<State>, is: impl FnMut(&State) -> bool) {
    // An error means that the hub is gone, which cannot happen while its tasks run.
    let _ = state.wait_for(is).await;
}

/// Reads everything after `at`, and advances it.
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
            // A row may be read before its hint arrives.
            let since = heard.get(&fed.log.position).copied().unwrap_or(read);
            Row::new(fed, Some(since))
        });
        // The last watcher may have left.
        let _ = hub.batches.send(Arc::new(Batch { after, rows: rows.collect() }));
        if count < PAGE as usize {
            return Ok(());
        }
    }
}

/// When commits were known to be on disk, until their rows are read.
type Heard = BTreeMap<Position, Instant>;

/// Drains all pending hints. Returns false if they only concern rows up to `at`.
fn hear(first: Result<Activity, RecvError>, more: &mut Receiver<Activity>, heard: &mut Heard, at: &Progress) -> bool {
    // Lost hints may have concerned any row.
    let mut lost = first.is_err();
    let mut next = first.ok();
    loop {
        match next {
            Some(Activity::Committed(hint)) if !at.has(hint.position) => drop(heard.insert(hint.position, hint.at)),
            Some(Activity::Committed(_)) | None => {}
            // The hint has no position.
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
