//! Channels: where and about which topics a user or an organisation is notified. Their credentials are sealed.

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

/// The most channels and preferences of an organisation that are read.
const MOST: u32 = 10_000;

/// The kind of a channel.
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

/// A stored channel.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Channel {
    pub name: String,
    /// The owner. `None` if the organisation owns it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    pub medium: Medium,
    /// Distinguishes the channel from others, without a secret.
    pub target: String,
    /// The sealed [`Settings`].
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
            .map_err(|_| Error::Broken(format!("the settings of the channel {} cannot be read", self.name)))
    }
}

/// How to reach the recipient. Has no `Debug`: most settings are credentials.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "medium", rename_all = "snake_case")]
pub enum Settings {
    Pushover {
        user_key: String,
        /// The token of an application. `None` for the server's own.
        token: Option<String>,
        url: Option<String>,
    },
    Webhook {
        url: String,
        /// The signing secret, `whsec_…`.
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

/// The topics that a user wants to see in connected browsers. Without a record: all topics.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Preferences {
    pub user: String,
    pub browser: Vec<Topic>,
}

impl Kept for Preferences {
    const KIND: &'static str = "preferences";
}

/// The channels and browser preferences of an organisation.
#[derive(Default)]
pub struct Channels {
    pub all: Vec<(String, Channel)>,
    browser: HashMap<String, Vec<Topic>>,
}

impl Channels {
    /// The topics that a user wants to see in browsers.
    pub fn browser(&self, user: &str) -> &[Topic] {
        self.browser.get(user).map_or(&Topic::ALL, Vec::as_slice)
    }

    /// The users who turned off this topic in browsers.
    pub fn not_in_browser(&self, topic: Topic) -> BTreeSet<String> {
        let muted = self.browser.iter().filter(|(_, topics)| !topics.contains(&topic));
        muted.map(|(user, _)| user.clone()).collect()
    }
}

/// Returns the channels of an organisation, cached until its epoch changes. Every change to a channel changes the
/// epoch.
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
