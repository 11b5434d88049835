//! Deliveries: records that stay due until their message was delivered, dropped or given up.
//!
//! A node claims a delivery by changing its record, and holds the claim for as long as one attempt may take. So two
//! nodes do not send the same message at once, and a node that died does not hold a delivery for ever.

use super::Notifier;
use super::channel::Channel;
use super::channel_rate::{ChannelRates, InFlightCounts, SendTime};
use super::message::{Message, is_open};
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
use stepwell_store::{Change, Due, OrgId, Record, RecordChange};
use tokio::task::JoinSet;

/// Deadline of one attempt.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(15);
/// How long a node holds a delivery that it claimed.
const LEASE: Millis = Millis::from_secs(20);
/// The most attempts. With the backoff between them they take about an hour.
const ATTEMPTS: u32 = 8;
const FIRST_BACKOFF: Millis = Millis::from_secs(5);
const LONGEST_BACKOFF: Millis = Millis::from_secs(1_800);
/// How long a finished delivery stays visible.
const KEPT: Millis = Millis(7 * Millis::DAY.0);
/// How long a delivery is postponed if its channel is busy and it blocks deliveries of other channels.
const POSTPONED: Millis = Millis::from_secs(2);
/// Deliveries of one channel that may wait for an attempt in progress without being postponed.
const MAX_WAITING: usize = 20;
/// Records read in one batch.
const BATCH: u32 = 500;
const LONGEST_WAIT: Millis = Millis::from_secs(5);
/// Pause after the store did not respond.
const PAUSE: Millis = Millis::from_secs(1);
/// How long attempts in progress get when the engine stops.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);

/// A message for one channel.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Delivery {
    /// The id of the channel.
    pub channel: String,
    /// The name of the channel.
    pub name: String,
    /// The user who owns the channel. `None` if the organisation does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    pub message: Message,
    pub progress: Progress,
    pub attempts: u32,
    /// When it may be sent, if the rate limit of its channel postponed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done: Option<Time>,
    /// Why the last attempt failed, or why the message was dropped.
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
    /// An attempt failed, and the message is not retried any more.
    Failed,
    /// The message is not needed any more.
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

/// The deliveries that this process is sending.
#[derive(Default)]
struct Sending {
    counts: InFlightCounts,
    rates: ChannelRates,
    /// Ids of deliveries.
    in_flight: HashSet<String>,
}

type SharedSending = Arc<Mutex<Sending>>;

fn lock(sending: &SharedSending) -> MutexGuard<'_, Sending> {
    sending.lock().expect("no thread panics while it holds the lock on deliveries")
}

/// Counts one delivery as in flight until this is dropped.
struct InFlight {
    sending: SharedSending,
    id: String,
    org: OrgId,
    channel: String,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut sending = lock(&self.sending);
        sending.counts.end(self.org, &self.channel);
        sending.in_flight.remove(&self.id);
    }
}

/// A delivery and the record that it was read from.
struct Stored {
    record: Record,
    delivery: Delivery,
}

struct Sender {
    notifier: Arc<Notifier>,
    courier: Arc<dyn Courier>,
    sending: SharedSending,
    tasks: JoinSet<()>,
}

/// Sends due deliveries until the engine stops.
pub async fn run(notifier: Arc<Notifier>) {
    let Some(courier) = notifier.courier.clone() else { return };
    let (sending, tasks) = (SharedSending::default(), JoinSet::new());
    let mut sender = Sender { notifier: notifier.clone(), courier, sending, tasks };
    while !notifier.cluster.stop.is_cancelled() {
        let now = notifier.cluster.clock.now();
        let wait = match sender.send_due(now).await {
            Ok(next) => next.map_or(LONGEST_WAIT, |next| next.since(now).min(LONGEST_WAIT)),
            Err(error) => {
                tracing::warn!(%error, "cannot read due deliveries; will retry");
                PAUSE
            }
        };
        tokio::select! {
            biased;
            () = notifier.cluster.stop.cancelled() => {}
            () = notifier.wake.notified() => {}
            Some(_) = sender.tasks.join_next() => {}
            () = tokio::time::sleep(Duration::from_millis(wait.0.max(1))) => {}
        }
    }
    let rest = async { while sender.tasks.join_next().await.is_some() {} };
    // An attempt that is cut off is repeated later, under the same id.
    let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, rest).await;
}

impl Sender {
    /// Starts an attempt for each due delivery. Returns when the next one is due, if that is known.
    async fn send_due(&mut self, now: Time) -> Result<Option<Time>, Error> {
        let store = self.notifier.cluster.store.clone();
        if self.notifier.cluster.is_draining() {
            return Ok(None);
        }
        let mut due = Due::by(now + LONGEST_WAIT);
        let mut waiting = HashMap::new();
        // Page by page: deliveries that wait for their channel must not hide those behind them.
        loop {
            let page = store.due_records(Delivery::KIND, due.clone(), BATCH).await?;
            let Some(last) = page.last() else { return Ok(None) };
            due.after = last.due.map(|due| (due, last.id.clone()));
            let (changes, progress) = self.send_page(page, &mut waiting, now);
            // One transaction each: if another node changed a record first, only that change is refused.
            let writes = changes.into_iter().map(|change| {
                let records = vec![change];
                store.change(Change { records, ..Change::default() })
            });
            for written in futures_util::future::join_all(writes).await {
                let _ = written?;
            }
            match progress {
                PageProgress::Read => {}
                PageProgress::Full => return Ok(None),
                PageProgress::Until(next) => return Ok(Some(next)),
            }
        }
    }

    /// Starts an attempt for each due delivery of a page. Returns the changes to write.
    fn send_page(
        &mut self,
        page: Vec<Record>,
        waiting: &mut HashMap<String, usize>,
        now: Time,
    ) -> (Vec<RecordChange>, PageProgress) {
        let mut changes = Vec::new();
        for record in page {
            if let Some(due) = record.due.filter(|due| *due > now) {
                return (changes, PageProgress::Until(due));
            }
            let delivery: Delivery = match body(&record) {
                Ok(delivery) => delivery,
                Err(error) => {
                    tracing::error!(delivery = %record.id, %error, "removing a delivery that cannot be read");
                    changes.push(RecordChange::Remove { kind: record.kind, id: record.id });
                    continue;
                }
            };
            let stored = Stored { record, delivery };
            match decide(&self.sending, &stored, waiting, now) {
                Decision::Wait => {}
                Decision::Full => return (changes, PageProgress::Full),
                Decision::Remove => {
                    let Record { kind, id, .. } = stored.record;
                    changes.push(RecordChange::Remove { kind, id });
                }
                Decision::Postpone(turn) => changes.push(stored.postponed(turn)),
                Decision::Drop => {
                    let why = "too many messages were already waiting for the channel".to_string();
                    changes.push(RecordChange::Replace(stored.finished(Progress::Dropped, Some(why), now)));
                }
                Decision::Send(in_flight) => {
                    self.tasks.spawn(send(self.notifier.clone(), self.courier.clone(), stored, in_flight));
                }
            }
        }
        (changes, PageProgress::Read)
    }
}

/// How far a page of deliveries was read.
enum PageProgress {
    /// To its end.
    Read,
    /// Until no more attempts could start.
    Full,
    /// Until a delivery that is due later.
    Until(Time),
}

/// What to do with a due delivery.
enum Decision {
    /// It is in flight, or waits for an attempt of the same channel to end.
    Wait,
    /// No more attempts can start now, for any channel.
    Full,
    /// It finished and was kept long enough.
    Remove,
    Postpone(Time),
    Drop,
    Send(InFlight),
}

fn decide(sending: &SharedSending, stored: &Stored, waiting: &mut HashMap<String, usize>, now: Time) -> Decision {
    let Stored { record, delivery } = stored;
    let mut state = lock(sending);
    if state.in_flight.contains(&record.id) {
        return Decision::Wait;
    }
    if delivery.progress != Progress::Waiting {
        return Decision::Remove;
    }
    if state.counts.is_full() {
        return Decision::Full;
    }
    let room = state.counts.has_room(record.org, &delivery.channel);
    if !room {
        let waiting = waiting.entry(delivery.channel.clone()).or_default();
        *waiting += 1;
        if *waiting <= MAX_WAITING {
            return Decision::Wait;
        }
    }
    match state.rates.reserve(&delivery.channel, delivery.turn, now) {
        SendTime::Now if !room => Decision::Postpone(now + POSTPONED),
        SendTime::Now => {
            state.counts.begin(record.org, &delivery.channel);
            state.in_flight.insert(record.id.clone());
            let (id, channel) = (record.id.clone(), delivery.channel.clone());
            Decision::Send(InFlight { sending: sending.clone(), id, org: record.org, channel })
        }
        SendTime::At(turn) => Decision::Postpone(turn),
        SendTime::Never => Decision::Drop,
    }
}

impl Stored {
    fn postponed(self, turn: Time) -> RecordChange {
        let body = json(&Delivery { turn: Some(turn), ..self.delivery });
        RecordChange::Replace(Record { due: Some(turn), body, ..self.record })
    }

    /// The record of a delivery that is over. It becomes due again when it is to be removed.
    fn finished(self, progress: Progress, error: Option<String>, now: Time) -> Record {
        metrics::counter!("stepwell_notifications_total", "result" => progress.name()).increment(1);
        let body = json(&Delivery { progress, error, done: Some(now), turn: None, ..self.delivery });
        Record { due: Some(now + KEPT), body, ..self.record }
    }
}

/// Claims a delivery, makes one attempt and writes the result. `_in_flight` is released at the end.
async fn send(notifier: Arc<Notifier>, courier: Arc<dyn Courier>, stored: Stored, _in_flight: InFlight) {
    let Stored { record, delivery } = stored;
    let delivery = Delivery { attempts: delivery.attempts + 1, turn: None, ..delivery };
    let claimed = Record { due: Some(notifier.cluster.clock.now() + LEASE), body: json(&delivery), ..record };
    match write(&notifier, claimed.clone()).await {
        Ok(true) => {}
        Ok(false) => return,
        Err(error) => return tracing::warn!(delivery = %claimed.id, %error, "cannot claim a delivery; will retry"),
    }
    let claimed = Record { version: claimed.version + 1, ..claimed };
    let result = match try_once(&notifier, &*courier, &claimed, &delivery).await {
        // The right master key may arrive later, so a channel that cannot be opened is retried like any failure.
        Err(Error::Broken(why)) => Ok(Attempted::Undelivered(Undelivered::for_now(why))),
        result => result,
    };
    let now = notifier.cluster.clock.now();
    let claimed = Stored { record: claimed, delivery };
    let id = claimed.record.id.clone();
    let after = match result {
        Ok(Attempted::Delivered) => claimed.finished(Progress::Sent, None, now),
        Ok(Attempted::Unneeded(why)) => claimed.finished(Progress::Dropped, Some(why.into()), now),
        Ok(Attempted::Undelivered(undelivered)) if undelivered.again && claimed.delivery.attempts < ATTEMPTS => {
            let due = now + backoff(claimed.delivery.attempts).max(undelivered.after.unwrap_or_default());
            tracing::debug!(delivery = %id, why = %undelivered.why, %due, "delivery failed; will retry");
            let body = json(&Delivery { error: Some(undelivered.why), ..claimed.delivery });
            Record { due: Some(due), body, ..claimed.record }
        }
        Ok(Attempted::Undelivered(undelivered)) => {
            tracing::warn!(delivery = %id, channel = %claimed.delivery.channel, why = %undelivered.why,
                "delivery failed for good");
            claimed.finished(Progress::Failed, Some(undelivered.why), now)
        }
        // The store did not respond. The delivery is due again when its lease expires.
        Err(error) => return tracing::warn!(delivery = %id, %error, "cannot attempt a delivery; will retry"),
    };
    if let Err(error) = write(&notifier, after).await {
        tracing::warn!(delivery = %id, %error, "cannot write the result of a delivery");
    }
}

/// Returns false if another node changed the record first.
async fn write(notifier: &Notifier, record: Record) -> Result<bool, Error> {
    let records = vec![RecordChange::Replace(record)];
    Ok(notifier.cluster.store.change(Change { records, ..Change::default() }).await?.is_ok())
}

/// The result of an attempt.
enum Attempted {
    Delivered,
    Undelivered(Undelivered),
    Unneeded(&'static str),
}

async fn try_once(
    notifier: &Notifier,
    courier: &dyn Courier,
    record: &Record,
    delivery: &Delivery,
) -> Result<Attempted, Error> {
    let channel = notifier.cluster.store.record(Channel::KIND, &delivery.channel).await?;
    let Some(channel) = channel.filter(|channel| channel.org == record.org) else {
        return Ok(Attempted::Unneeded("the channel was removed"));
    };
    if delivery.message.topic.asks() && !is_asked(notifier, &delivery.message).await? {
        return Ok(Attempted::Unneeded("the gate was answered before the message was sent"));
    }
    let channel: Channel = body(&channel)?;
    let to = To { id: &record.id, org: record.org, channel: &channel };
    Ok(match attempt(notifier, courier, to, &delivery.message).await? {
        Ok(()) => Attempted::Delivered,
        Err(undelivered) => Attempted::Undelivered(undelivered),
    })
}

/// Whether the gate of a message is still open.
async fn is_asked(notifier: &Notifier, message: &Message) -> Result<bool, Error> {
    let Some(run) = notifier.cluster.store.find_run(&message.run).await? else { return Ok(false) };
    let Some(live) = drive::load(&notifier.runner, run).await? else { return Ok(false) };
    Ok(is_open(&live, message.step.as_deref().unwrap_or_default(), message.attempt))
}

/// The destination of a message.
pub struct To<'a> {
    /// The id of the delivery.
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
        guard: Some(notifier.runner.sink()?.host_guard(to.org)),
        now: notifier.cluster.clock.now(),
    };
    let sent = tokio::time::timeout(ATTEMPT_TIMEOUT, courier.send(&parcel)).await;
    let late = || Err(Undelivered::for_now(format!("no response within {} s", ATTEMPT_TIMEOUT.as_secs())));
    Ok(sent.unwrap_or_else(|_| late()))
}

/// The link in a message. It shows the run. In a user's own channel, a link to an open gate also lets the user answer
/// without signing in. It is made when the message is sent, because a link that grants access must not be stored.
async fn link_for(notifier: &Notifier, message: &Message, recipient: Option<&str>) -> Result<Option<String>, Error> {
    if message.run.is_empty() {
        return Ok(None);
    }
    let show = format!("{}/runs/{}", notifier.runner.base_url, message.run);
    let (Some(user), Some(step), true) = (recipient, &message.step, message.topic.asks()) else {
        return Ok(Some(show));
    };
    let Some(run) = notifier.cluster.store.find_run(&message.run).await? else { return Ok(Some(show)) };
    let Some(live) = drive::load(&notifier.runner, run).await? else { return Ok(Some(show)) };
    let link = links::link_of(&live, step, user).map(|link| format!("{}/approve/{link}", notifier.runner.base_url));
    Ok(Some(link.unwrap_or(show)))
}

/// 5 s, 15 s, 45 s and so on.
fn backoff(attempts: u32) -> Millis {
    let times = 3u64.saturating_pow(attempts.saturating_sub(1));
    Millis(FIRST_BACKOFF.0.saturating_mul(times)).min(LONGEST_BACKOFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_attempts_together_take_about_an_hour() {
        assert_eq!((backoff(1), backoff(2), backoff(3)), (Millis(5_000), Millis(15_000), Millis(45_000)));
        let all: u64 = (1..ATTEMPTS).map(|attempt| backoff(attempt).0).sum();
        assert!((3_000_000..=4_200_000).contains(&all), "{all} ms");
        assert_eq!(backoff(u32::MAX), LONGEST_BACKOFF);
    }
}
