//! Deliveries: records that are due until their message has arrived, or nobody hopes for it any more.
//!
//! Whoever changes a delivery's record first has it for as long as one attempt may take. So two nodes do not send the same
//! message at once, and one that died does not keep it for ever.

use super::Notifier;
use super::channel::Channel;
use super::message::{Message, is_open};
use super::turns::{Busy, Turn, Turns};
use super::{Courier, Parcel, Undelivered};
use crate::error::Error;
use crate::records::json;
use crate::records::{Kept, body};
use crate::run::{drive, links};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use stepwell_core::time::{Millis, Time};
use stepwell_store::{Change, OrgId, Record, RecordChange};
use tokio::task::JoinSet;

/// How long one attempt may take.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long a delivery belongs to whoever took it.
const LEASE: Millis = Millis::from_secs(20);
/// Attempts at the most: with the pauses between them about an hour.
const ATTEMPTS: u32 = 8;
const FIRST_PAUSE: Millis = Millis::from_secs(5);
const LONGEST_PAUSE: Millis = Millis::from_secs(1_800);
/// How long it can be seen what became of a message.
const KEPT: Millis = Millis(7 * Millis::DAY.0);
/// Until a delivery whose channel has enough to do is looked at again, if it stands in the way of others.
const PUT_OFF: Millis = Millis::from_secs(2);
/// Deliveries of one channel that may wait for a place without being put off.
const IN_LINE: usize = 20;
/// Records looked at in one go.
const BATCH: u32 = 500;
const LONGEST_WAIT: Millis = Millis::from_secs(5);
/// After the store did not answer.
const PAUSE: Millis = Millis::from_secs(1);
/// What is being sent when the engine stops gets so long.
const LAST: Duration = Duration::from_secs(3);

/// A message for one channel.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Delivery {
    pub channel: String,
    /// The channel's.
    pub name: String,
    /// Whose channel it is; the organisation's if nobody's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    pub message: Message,
    pub progress: Progress,
    pub attempts: u32,
    /// When it may be sent, if its channel had too much to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done: Option<Time>,
    /// Why it has not arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Kept for Delivery {
    const KIND: &'static str = "delivery";
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Progress {
    Waiting,
    Sent,
    /// Tried as often as is worth it.
    Failed,
    /// Nobody needs it any more.
    Dropped,
}

impl Progress {
    pub fn name(self) -> &'static str {
        match self {
            Progress::Waiting => "waiting",
            Progress::Sent => "sent",
            Progress::Failed => "failed",
            Progress::Dropped => "dropped",
        }
    }
}

/// What this process is sending.
#[derive(Default)]
struct Desk {
    busy: Busy,
    turns: Turns,
    under_way: HashSet<String>,
}

type Shared = Arc<Mutex<Desk>>;

fn lock(desk: &Shared) -> MutexGuard<'_, Desk> {
    desk.lock().expect("nothing panics while it holds the desk")
}

/// One delivery under way, until this is dropped.
struct Place {
    desk: Shared,
    id: String,
    org: OrgId,
    channel: String,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut desk = lock(&self.desk);
        desk.busy.end(self.org, &self.channel);
        desk.under_way.remove(&self.id);
    }
}

/// Sends what is due for as long as the engine runs.
pub async fn run(notifier: Arc<Notifier>) {
    let Some(courier) = notifier.courier.clone() else { return };
    let desk = Shared::default();
    let mut sending = JoinSet::new();
    while !notifier.cluster.stop.is_cancelled() {
        let now = notifier.cluster.clock.now();
        let wait = match round(&notifier, (&desk, &courier), &mut sending, now).await {
            Ok(next) => next.map_or(LONGEST_WAIT, |next| next.since(now).min(LONGEST_WAIT)),
            Err(error) => {
                tracing::warn!(%error, "deliveries cannot be looked at for now");
                PAUSE
            }
        };
        tokio::select! {
            biased;
            () = notifier.cluster.stop.cancelled() => {}
            () = notifier.wake.notified() => {}
            Some(_) = sending.join_next() => {}
            () = tokio::time::sleep(Duration::from_millis(wait.0.max(1))) => {}
        }
    }
    let rest = async { while sending.join_next().await.is_some() {} };
    // What is cut off is sent again, under the same id.
    let _ = tokio::time::timeout(LAST, rest).await;
}

/// Begins with what is due; when to look again, if that is known.
async fn round(
    notifier: &Arc<Notifier>,
    (desk, courier): (&Shared, &Arc<dyn Courier>),
    sending: &mut JoinSet<()>,
    now: Time,
) -> Result<Option<Time>, Error> {
    if notifier.cluster.is_draining() {
        return Ok(None);
    }
    let due = notifier.cluster.store.due_records(Delivery::KIND, now + LONGEST_WAIT, BATCH).await?;
    let whole = due.len() < BATCH as usize;
    let mut later = Vec::new();
    let mut in_line = HashMap::new();
    let mut next = None;
    for record in due {
        if record.due.is_some_and(|due| due > now) {
            next = record.due;
            break;
        }
        let delivery: Delivery = match body(&record) {
            Ok(delivery) => delivery,
            Err(error) => {
                tracing::error!(%error, "a delivery cannot be read and is removed");
                later.push(RecordChange::Remove { kind: record.kind, id: record.id });
                continue;
            }
        };
        match sort(desk, (&record, &delivery), &mut in_line, now) {
            Sorted::Waits => {}
            Sorted::Full => break,
            Sorted::Over => later.push(RecordChange::Remove { kind: record.kind, id: record.id }),
            Sorted::Later(turn) => later.push(put_off(record, delivery, turn)),
            Sorted::TooMany => {
                let why = "the channel had too many messages waiting already";
                later.push(RecordChange::Replace(over(record, delivery, (Progress::Dropped, Some(why.into())), now)));
            }
            Sorted::Now(place) => {
                sending.spawn(send(notifier.clone(), courier.clone(), (record, delivery), place));
            }
        }
    }
    let acted = !later.is_empty();
    // Each by itself: one that another node was quicker with is none of ours.
    let written = later.into_iter().map(|record| {
        let records = vec![record];
        notifier.cluster.store.change(Change { records, ..Change::default() })
    });
    for done in futures_util::future::join_all(written).await {
        let _ = done?;
    }
    Ok(if acted && !whole { Some(now) } else { next })
}

enum Sorted {
    /// It is under way, or will be when something else has arrived.
    Waits,
    /// As much is under way as may be.
    Full,
    /// It was kept for long enough.
    Over,
    Later(Time),
    TooMany,
    Now(Place),
}

fn sort(
    desk: &Shared,
    (record, delivery): (&Record, &Delivery),
    in_line: &mut HashMap<String, usize>,
    now: Time,
) -> Sorted {
    let mut this = lock(desk);
    if this.under_way.contains(&record.id) {
        return Sorted::Waits;
    }
    if delivery.progress != Progress::Waiting {
        return Sorted::Over;
    }
    if this.busy.is_full() {
        return Sorted::Full;
    }
    let room = this.busy.has_room(record.org, &delivery.channel);
    if !room {
        let waiting = in_line.entry(delivery.channel.clone()).or_default();
        *waiting += 1;
        if *waiting <= IN_LINE {
            return Sorted::Waits;
        }
    }
    match this.turns.of(&delivery.channel, delivery.turn, now) {
        Turn::Now if !room => Sorted::Later(now + PUT_OFF),
        Turn::Now => {
            this.busy.begin(record.org, &delivery.channel);
            this.under_way.insert(record.id.clone());
            let (id, channel) = (record.id.clone(), delivery.channel.clone());
            Sorted::Now(Place { desk: desk.clone(), id, org: record.org, channel })
        }
        Turn::At(turn) => Sorted::Later(turn),
        Turn::Never => Sorted::TooMany,
    }
}

fn put_off(record: Record, delivery: Delivery, turn: Time) -> RecordChange {
    let body = json(&Delivery { turn: Some(turn), ..delivery });
    RecordChange::Replace(Record { due: Some(turn), body, ..record })
}

/// Nothing more happens to it until it is removed.
fn over(record: Record, delivery: Delivery, (progress, error): (Progress, Option<String>), now: Time) -> Record {
    metrics::counter!("stepwell_notifications_total", "result" => progress.name()).increment(1);
    let body = json(&Delivery { progress, error, done: Some(now), turn: None, ..delivery });
    Record { due: Some(now + KEPT), body, ..record }
}

/// Takes a delivery, makes one attempt and writes what came of it.
async fn send(
    notifier: Arc<Notifier>,
    courier: Arc<dyn Courier>,
    (record, delivery): (Record, Delivery),
    _place: Place,
) {
    let delivery = Delivery { attempts: delivery.attempts + 1, turn: None, ..delivery };
    let taken = Record { due: Some(notifier.cluster.clock.now() + LEASE), body: json(&delivery), ..record };
    match write(&notifier, taken.clone()).await {
        Ok(true) => {}
        Ok(false) => return,
        Err(error) => return tracing::warn!(delivery = %taken.id, %error, "a delivery cannot be taken for now"),
    }
    let taken = Record { version: taken.version + 1, ..taken };
    let came = match try_once(&notifier, &*courier, &taken, &delivery).await {
        // A channel that does not open may once the right key is there; not for ever, though.
        Err(Error::Broken(why)) => Ok(Came::Back(Undelivered::for_now(why))),
        came => came,
    };
    let now = notifier.cluster.clock.now();
    let after = match came {
        Ok(Came::Arrived) => over(taken, delivery, (Progress::Sent, None), now),
        Ok(Came::Needless(why)) => over(taken, delivery, (Progress::Dropped, Some(why.into())), now),
        Ok(Came::Back(undelivered)) if undelivered.again && delivery.attempts < ATTEMPTS => {
            let due = now + pause(delivery.attempts).max(undelivered.after.unwrap_or_default());
            tracing::debug!(delivery = %taken.id, why = %undelivered.why, %due, "a message did not arrive");
            let body = json(&Delivery { error: Some(undelivered.why), ..delivery });
            Record { due: Some(due), body, ..taken }
        }
        Ok(Came::Back(undelivered)) => {
            tracing::warn!(delivery = %taken.id, channel = %delivery.channel, why = %undelivered.why,
                "a message is given up");
            over(taken, delivery, (Progress::Failed, Some(undelivered.why)), now)
        }
        // The store did not answer: it is taken up again when nobody has it any more.
        Err(error) => return tracing::warn!(delivery = %taken.id, %error, "a delivery cannot be made for now"),
    };
    if let Err(error) = write(&notifier, after).await {
        tracing::warn!(%error, "it cannot be written what became of a delivery");
    }
}

/// False if somebody else has changed it.
async fn write(notifier: &Notifier, record: Record) -> Result<bool, Error> {
    let records = vec![RecordChange::Replace(record)];
    Ok(notifier.cluster.store.change(Change { records, ..Change::default() }).await?.is_ok())
}

/// What came of an attempt.
enum Came {
    Arrived,
    Back(Undelivered),
    Needless(&'static str),
}

async fn try_once(
    notifier: &Notifier,
    courier: &dyn Courier,
    record: &Record,
    delivery: &Delivery,
) -> Result<Came, Error> {
    let channel = notifier.cluster.store.record(Channel::KIND, &delivery.channel).await?;
    let Some(channel) = channel.filter(|channel| channel.org == record.org) else {
        return Ok(Came::Needless("the channel was removed"));
    };
    if delivery.message.topic.asks() && !is_asked(notifier, &delivery.message).await? {
        return Ok(Came::Needless("it was answered before it was told"));
    }
    let channel: Channel = body(&channel)?;
    let to = To { id: &record.id, org: record.org, channel: &channel };
    Ok(match attempt(notifier, courier, to, &delivery.message).await? {
        Ok(()) => Came::Arrived,
        Err(undelivered) => Came::Back(undelivered),
    })
}

/// Whether an answer is still waited for.
async fn is_asked(notifier: &Notifier, message: &Message) -> Result<bool, Error> {
    let Some(run) = notifier.cluster.store.find_run(&message.run).await? else { return Ok(false) };
    let Some(live) = drive::load(&notifier.runner, run).await? else { return Ok(false) };
    Ok(is_open(&live, message.step.as_deref().unwrap_or_default(), message.attempt))
}

/// Where a message is to go.
pub struct To<'a> {
    /// Of the delivery.
    pub id: &'a str,
    pub org: OrgId,
    pub channel: &'a Channel,
}

/// Sends a message through a channel, once.
pub async fn attempt(
    notifier: &Notifier,
    courier: &dyn Courier,
    to: To<'_>,
    message: &Message,
) -> Result<Result<(), Undelivered>, Error> {
    let parcel = Parcel {
        id: to.id.to_string(),
        message: message.clone(),
        link: link_for(notifier, message, to.channel.user.as_deref()).await?,
        to: to.channel.settings(notifier, to.org)?,
        now: notifier.cluster.clock.now(),
    };
    let sent = tokio::time::timeout(PATIENCE, courier.send(&parcel)).await;
    let late = || Err(Undelivered::for_now(format!("no answer came within {} s", PATIENCE.as_secs())));
    Ok(sent.unwrap_or_else(|_| late()))
}

/// Where the recipient can look at the run, or answer without signing in: a channel that is somebody's own gets a link that
/// speaks for them. Made when the message is sent: what opens something is not stored.
async fn link_for(notifier: &Notifier, message: &Message, recipient: Option<&str>) -> Result<Option<String>, Error> {
    if message.run.is_empty() {
        return Ok(None);
    }
    let look = format!("{}/runs/{}", notifier.runner.base_url, message.run);
    let (Some(user), Some(step), true) = (recipient, &message.step, message.topic.asks()) else {
        return Ok(Some(look));
    };
    let Some(run) = notifier.cluster.store.find_run(&message.run).await? else { return Ok(Some(look)) };
    let Some(live) = drive::load(&notifier.runner, run).await? else { return Ok(Some(look)) };
    let link = links::link_of(&live, step, user).map(|link| format!("{}/approve/{link}", notifier.runner.base_url));
    Ok(Some(link.unwrap_or(look)))
}

/// 5 s, 15 s, 45 s and so on.
fn pause(attempts: u32) -> Millis {
    let times = 3u64.saturating_pow(attempts.saturating_sub(1));
    Millis(FIRST_PAUSE.0.saturating_mul(times)).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_attempts_together_take_about_an_hour() {
        assert_eq!((pause(1), pause(2), pause(3)), (Millis(5_000), Millis(15_000), Millis(45_000)));
        let all: u64 = (1..ATTEMPTS).map(|attempt| pause(attempt).0).sum();
        assert!((3_000_000..=4_200_000).contains(&all), "{all} ms");
        assert_eq!(pause(u32::MAX), LONGEST_PAUSE);
    }
}
