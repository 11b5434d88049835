//! Channels: where a person or an organisation wants to be told, and of what. What opens them is sealed.

use super::Notifier;
use super::message::Topic;
use crate::error::Error;
use crate::records::{Kept, body};
use crate::secrets::{Owner, Sealed, SealedRecord};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use stepwell_core::time::Time;
use stepwell_store::{OrgId, RecordFilter};

/// Channels and preferences of an organisation that are read.
const MOST: u32 = 10_000;

/// The sorts of channels.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Medium {
    Pushover,
    Webhook,
    Slack,
    Ntfy,
    Email,
}

impl Medium {
    pub const ALL: [Medium; 5] = [Medium::Pushover, Medium::Webhook, Medium::Slack, Medium::Ntfy, Medium::Email];

    pub fn name(self) -> &'static str {
        match self {
            Medium::Pushover => "pushover",
            Medium::Webhook => "webhook",
            Medium::Slack => "slack",
            Medium::Ntfy => "ntfy",
            Medium::Email => "email",
        }
    }
}

/// A channel as it is kept.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Channel {
    pub name: String,
    /// Whose it is; the organisation's if nobody's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    pub medium: Medium,
    /// Enough to tell it from others, and no secret.
    pub target: String,
    /// [`Settings`].
    pub sealed: Sealed,
    pub events: Vec<Topic>,
    pub created: Time,
    pub by: String,
}

impl Kept for Channel {
    const KIND: &'static str = "channel";
}

impl SealedRecord for Channel {
    fn name(&self) -> &str {
        &self.name
    }

    fn sealed(&mut self) -> &mut Sealed {
        &mut self.sealed
    }
}

impl Channel {
    pub(crate) fn settings(&self, notifier: &Notifier, org: OrgId) -> Result<Settings, Error> {
        let owner = Owner { org, kind: Channel::KIND, name: &self.name };
        let locked = |why| Error::Broken(format!("the channel {} cannot be opened: {why}", self.name));
        let text = notifier.secrets.sealed.vault.open(owner, &self.sealed).map_err(locked)?;
        serde_json::from_str(&text)
            .map_err(|_| Error::Broken(format!("the settings of the channel {:?} cannot be read", self.name)))
    }
}

/// How to get there. Has no `Debug`: most of it opens something.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "medium", rename_all = "snake_case")]
pub enum Settings {
    Pushover {
        user_key: String,
        /// Of an application; the server's own if none is given.
        token: Option<String>,
        url: Option<String>,
    },
    Webhook {
        url: String,
        /// `whsec_…`, to sign with.
        secret: String,
    },
    Slack {
        url: String,
    },
    Ntfy {
        url: Option<String>,
        topic: String,
        token: Option<String>,
    },
    Email {
        to: String,
    },
}

/// What a user wants to see in a browser that is connected. Without a record: everything.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Preferences {
    pub user: String,
    pub browser: Vec<Topic>,
}

impl Kept for Preferences {
    const KIND: &'static str = "preferences";
}

/// Those of an organisation.
#[derive(Default)]
pub struct Channels {
    pub all: Vec<(String, Channel)>,
    browser: HashMap<String, Vec<Topic>>,
}

impl Channels {
    /// What a user wants to see in a browser.
    pub fn browser(&self, user: &str) -> &[Topic] {
        self.browser.get(user).map_or(&Topic::ALL, Vec::as_slice)
    }

    /// Who does not want to see this in a browser.
    pub fn not_in_browser(&self, topic: Topic) -> BTreeSet<String> {
        let spared = self.browser.iter().filter(|(_, topics)| !topics.contains(&topic));
        spared.map(|(user, _)| user.clone()).collect()
    }
}

/// Remembered for as long as the epoch stands: a change of channels moves it on.
pub async fn channels(notifier: &Notifier, org: OrgId) -> Result<Arc<Channels>, Error> {
    let epoch = notifier.access.epoch(org).await?;
    if let Some(known) = notifier.channels.get(&org, epoch) {
        return Ok(known);
    }
    let filter = |kind: &str| RecordFilter {
        kind: kind.into(),
        org: Some(org),
        prefix: String::new(),
        after: None,
        limit: MOST,
    };
    let mut found = Channels::default();
    for record in notifier.cluster.store.records(filter(Channel::KIND)).await? {
        found.all.push((record.id.clone(), body(&record)?));
    }
    for record in notifier.cluster.store.records(filter(Preferences::KIND)).await? {
        let Preferences { user, browser } = body(&record)?;
        found.browser.insert(user, browser);
    }
    let found = Arc::new(found);
    notifier.channels.put(org, epoch, found.clone());
    Ok(found)
}
