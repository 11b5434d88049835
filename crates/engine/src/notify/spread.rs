//! From what happened to deliveries: the notice that a commit carries, who is meant by it, and a delivery for each channel.

use super::Notifier;
use super::channel::channels;
use super::deliver::{Delivery, Progress};
use super::message::{Told, occurrences};
use crate::access::User;
use crate::error::Error;
use crate::records::json;
use crate::records::{Kept, body, by_name};
use crate::run::Live;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::sync::Arc;
use stepwell_core::fact::Fact;
use stepwell_core::time::Time;
use stepwell_store::{Change, Notice, OrgId, Record, RecordChange, RecordFilter, Refused, RunId, Stale};

/// Keys of these notices begin so; all others are about child runs.
pub const PREFIX: &str = "notify:";
/// Users of an organisation that are looked through for a role.
const MOST_USERS: u32 = 10_000;

/// Whether a notice is for people.
pub fn belongs(key: &str) -> bool {
    key.starts_with(PREFIX)
}

/// The notices of a transition. Nothing is written where there is no channel that could take it.
pub async fn notices(notifier: &Notifier, live: &Live, facts: &[Fact], now: Time) -> Result<Vec<Notice>, Error> {
    let told = occurrences(live, facts, now);
    if told.is_empty() || channels(notifier, live.org).await?.all.is_empty() {
        return Ok(Vec::new());
    }
    Ok(told.into_iter().map(|told| Notice { key: told.key(), body: json(&told), due: now }).collect())
}

/// Turns notices that are on disk into deliveries, in a task of its own. What does not work is found again.
pub fn deliver(notifier: &Arc<Notifier>, run: RunId, notices: Vec<Notice>) {
    let notifier = notifier.clone();
    tokio::spawn(async move {
        for Notice { key, body, .. } in notices {
            if let Err(error) = spread(&notifier, run, &key, &body).await {
                tracing::warn!(run = run.0, %key, %error, "a notice cannot be seen to for now");
                continue;
            }
            let done = Stale { notices: vec![(run, key)], ..Stale::default() };
            if let Err(error) = notifier.cluster.store.forget(done).await {
                tracing::warn!(run = run.0, %error, "a notice that is done cannot be removed");
            }
        }
        notifier.wake.notify_one();
    });
}

async fn spread(notifier: &Notifier, run: RunId, key: &str, text: &str) -> Result<(), Error> {
    let told: Told = match serde_json::from_str(text) {
        Ok(told) => told,
        Err(error) => {
            tracing::error!(run = run.0, %key, %error, "a notice cannot be read and is left out");
            return Ok(());
        }
    };
    let channels = channels(notifier, told.org).await?;
    let people = people(notifier, told.org, &told.to).await?;
    let topic = told.message.topic;
    let meant = channels.all.iter().filter(|(_, channel)| {
        let to = channel.user.as_ref().is_none_or(|user| people.contains(user));
        to && channel.events.contains(&topic)
    });
    let records: Vec<RecordChange> = meant
        .map(|(channel, is)| {
            let delivery = Delivery {
                channel: channel.clone(),
                name: is.name.clone(),
                user: is.user.clone(),
                message: told.message.clone(),
                progress: Progress::Waiting,
                attempts: 0,
                turn: None,
                done: None,
                error: None,
            };
            RecordChange::Create(record((run, key), told.org, &delivery))
        })
        .collect();
    if records.is_empty() {
        return Ok(());
    }
    match notifier.cluster.store.change(Change { records, ..Change::default() }).await? {
        // Somebody was here before, and was cut off before they could say so.
        Ok(()) | Err(Refused::Taken) => Ok(()),
        Err(refused) => Err(Error::Unavailable(refused.to_string())),
    }
}

/// Its id follows from what it is about, and its key puts the newest first.
fn record((run, notice): (RunId, &str), org: OrgId, delivery: &Delivery) -> Record {
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

/// The users behind names of users and roles. Those who are disabled are told nothing.
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
