//! From facts to deliveries: the notice that a commit writes, its recipients, and a delivery for each of their
//! channels.

use super::Notifier;
use super::channel::channels;
use super::deliver::{Delivery, Progress};
use super::message::{Message, Occurrence, Topic, cut, names, occurrences};
use crate::access::{Starter, User};
use crate::error::Error;
use crate::records::json;
use crate::records::{Kept, body, by_name};
use crate::run::Live;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::sync::Arc;
use stepwell_core::fact::Fact;
use stepwell_core::time::Time;
use stepwell_store::{Change, Notice, OrgId, Record, RecordChange, RecordFilter, Refused, RunId, RunRow, Stale};

/// The prefix of the keys of notices for people. All other notices are about child runs.
pub const PREFIX: &str = "notify:";
/// Characters of who asked for a run.
const MAX_STARTER: usize = 300;
/// The role of administrators.
const ADMINISTRATORS: &str = "admin";
/// Users of an organisation that are searched for a role.
const MOST_USERS: u32 = 10_000;

/// Whether a notice is for people.
pub fn is_for_people(key: &str) -> bool {
    key.starts_with(PREFIX)
}

/// The notices of a transition. There are none if the organisation has no channels.
pub async fn notices(notifier: &Notifier, live: &Live, facts: &[Fact], now: Time) -> Result<Vec<Notice>, Error> {
    let occurrences = occurrences(live, facts, now);
    if occurrences.is_empty() || channels(notifier, live.org).await?.all.is_empty() {
        return Ok(Vec::new());
    }
    let starter = starter(notifier, live).await;
    let occurrences = occurrences.into_iter().map(|mut occurrence| {
        occurrence.message.started_by = starter.clone();
        occurrence
    });
    let notice = |occurrence: Occurrence| Notice { key: occurrence.key(), body: json(&occurrence), due: now };
    Ok(occurrences.map(notice).collect())
}

/// Who asked for the run, for the message: a person, or an agent's key with its user and its client.
pub(super) async fn starter(notifier: &Notifier, live: &Live) -> String {
    let mut starter = Starter::of(&live.run.by, &live.acts_as, live.run.client.as_deref());
    // Without its name a key still has its id.
    let _ = notifier.access.name_key(live.org, &mut starter).await;
    cut(&starter.to_string(), MAX_STARTER)
}

/// Turns committed notices into deliveries, in a background task. Notices that fail stay in the outbox and are retried.
pub fn deliver(notifier: &Arc<Notifier>, run: RunId, notices: Vec<Notice>) {
    tokio::spawn(create_deliveries(notifier.clone(), run, notices));
}

/// The same, in the foreground.
pub async fn create_deliveries(notifier: Arc<Notifier>, run: RunId, notices: Vec<Notice>) {
    for Notice { key, body, .. } in notices {
        if let Err(error) = deliveries_of(&notifier, run, &key, &body).await {
            tracing::warn!(run = run.0, %key, %error, "cannot create the deliveries of a notice; will retry");
            continue;
        }
        let done = Stale { notices: vec![(run, key)], ..Stale::default() };
        if let Err(error) = notifier.cluster.store.forget(done).await {
            tracing::warn!(run = run.0, %error, "cannot remove a notice whose deliveries were created");
        }
    }
    notifier.wake.notify_one();
}

/// Notifies the starter of a run and the administrators that no node drives it any more.
pub async fn quarantined(notifier: &Notifier, row: &RunRow, now: Time) -> Result<(), Error> {
    if row.test || channels(notifier, row.org).await?.all.is_empty() {
        return Ok(());
    }
    let workflow = notifier.cluster.store.definition(row.definition).await?.map(|definition| definition.name);
    let message = Message {
        topic: Topic::RunQuarantined,
        at: now,
        workflow: workflow.unwrap_or_default(),
        run: row.public.clone(),
        step: None,
        attempt: 0,
        text:
            "The run is quarantined: the server ended several times in a row while it drove it. Release or cancel it."
                .into(),
        answerers: Vec::new(),
        until: None,
        on_timeout: None,
        started_by: row.by.clone(),
    };
    let to = vec![row.by.clone(), format!("role:{ADMINISTRATORS}")];
    // A run may be quarantined again after its release.
    let key = format!("{PREFIX}quarantined:{}", now.0);
    deliveries_of(notifier, row.id, &key, &json(&Occurrence { org: row.org, message, to })).await?;
    notifier.wake.notify_one();
    Ok(())
}

async fn deliveries_of(notifier: &Notifier, run: RunId, key: &str, text: &str) -> Result<(), Error> {
    let occurrence: Occurrence = match serde_json::from_str(text) {
        Ok(occurrence) => occurrence,
        Err(error) => {
            tracing::error!(run = run.0, %key, %error, "dropping a notice that cannot be read");
            return Ok(());
        }
    };
    let Occurrence { org, message, to } = occurrence;
    let channels = channels(notifier, org).await?;
    let people = people(notifier, org, &to).await?;
    let wanted = channels.all.iter().filter(|(_, channel)| {
        let addressed = channel.user.as_ref().is_none_or(|user| people.contains(user));
        addressed && channel.events.contains(&message.topic.subscribed())
    });
    let records: Vec<RecordChange> = wanted
        .map(|(id, channel)| {
            let delivery = Delivery {
                channel: id.clone(),
                name: channel.name.clone(),
                user: channel.user.clone(),
                message: message.clone(),
                progress: Progress::Waiting,
                attempts: 0,
                turn: None,
                done: None,
                error: None,
            };
            RecordChange::Create(record(run, key, org, &delivery))
        })
        .collect();
    if records.is_empty() {
        return Ok(());
    }
    match notifier.cluster.store.change(Change { records, ..Change::default() }).await? {
        // They exist already: an earlier attempt was interrupted before it removed the notice.
        Ok(()) | Err(Refused::Taken) => Ok(()),
        Err(refused) => Err(Error::Unavailable(refused.to_string())),
    }
}

/// The record of a delivery. Its id is derived from the notice and the channel, so creating it again changes nothing.
/// Its key sorts the newest first.
fn record(run: RunId, notice: &str, org: OrgId, delivery: &Delivery) -> Record {
    let mut hash = Sha256::new();
    for part in [&run.0.to_string(), notice, &delivery.channel] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    let id = format!("ntf_{}", BASE64.encode(&hash.finalize()[..18]));
    let age = i64::MAX - delivery.message.at.0.max(0);
    let key = format!("{}/{age:016x}/{id}", org.0);
    let kind = Delivery::KIND.into();
    Record { kind, id, org, key, due: Some(delivery.message.at), body: json(delivery), version: 0 }
}

/// What keeps a request from reaching the people it names: users and roles that do not exist, and people whom no channel
/// notifies. Empty if it names no one: then all users with the right to approve see it.
pub async fn unreached(notifier: &Notifier, org: OrgId, ask: &Value) -> Result<Vec<String>, Error> {
    let named = |field: &str| names(Some(ask), field);
    let mut warnings = Vec::new();
    for name in [named("approvers"), named("escalate_to"), named("notify")].concat() {
        if people(notifier, org, std::slice::from_ref(&name)).await?.is_empty() {
            let warning = format!("there is no enabled user {name:?}, and no enabled user has a role of that name");
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
    }
    let told = if named("notify").is_empty() { named("approvers") } else { named("notify") };
    let reached = people(notifier, org, &told).await?;
    let channels = channels(notifier, org).await?;
    let mut heard = channels.all.iter().filter(|(_, channel)| {
        let addressed = channel.user.as_ref().is_none_or(|user| reached.contains(user));
        addressed && channel.events.contains(&Topic::GateOpened)
    });
    if !told.is_empty() && heard.next().is_none() {
        warnings.push(format!("no notification channel reaches {}", told.join(", ")));
    }
    Ok(warnings)
}

/// Resolves names of users and roles to users. Disabled users are left out.
pub async fn people(notifier: &Notifier, org: OrgId, names: &[String]) -> Result<BTreeSet<String>, Error> {
    let mut found = BTreeSet::new();
    let mut roles = BTreeSet::new();
    for name in names {
        let user = by_name::<User>(&*notifier.cluster.store, org, name).await?;
        match user.map(|record| body::<User>(&record)).transpose()? {
            Some(user) if user.disabled => {}
            Some(user) => drop(found.insert(user.name)),
            None => drop(roles.insert(name.strip_prefix("role:").unwrap_or(name))),
        }
    }
    if roles.is_empty() {
        return Ok(found);
    }
    let (kind, prefix) = (User::KIND.into(), String::new());
    let filter = RecordFilter { kind, org: Some(org), prefix, after: None, limit: MOST_USERS };
    for record in notifier.cluster.store.records(filter).await? {
        let user: User = body(&record)?;
        if !user.disabled && user.roles.iter().any(|role| roles.contains(role.as_str())) {
            found.insert(user.name);
        }
    }
    Ok(found)
}
