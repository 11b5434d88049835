//! Notification channels of users and of the organisation, notification preferences, and the state of deliveries. The
//! credentials of a channel are never returned.

use super::Channels;
use super::change::{change, retry_on_conflict};
use super::input::{check_label, invalid};
use super::secrets::seal;
use crate::access::{Caller, Right, User};
use crate::error::Error;
use crate::notify::{
    self, Channel, Channels as AllChannels, Courier, Delivery, Medium, Message as Notification, Preferences, Settings,
    To, Topic,
};
use crate::records::{Kept, With, body, json as json_text, name_key};
use crate::secrets::Owner;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use stepwell_store::{Change, Record, RecordChange, RecordFilter};

/// Maximum number of channels of one user, or of the organisation.
const MAX_CHANNELS: usize = 50;
/// Bytes of one setting.
const MAX_SETTING: usize = 2_000;
/// Maximum number of deliveries in a page.
const MAX_PAGE: u32 = 1_000;
/// Maximum number of deliveries that are read to find those of one user.
const MAX_SCANNED: usize = 10_000;

/// A channel to create. The settings it needs depend on its medium.
#[derive(Clone, PartialEq, Default)]
pub struct NewChannel {
    pub name: String,
    pub medium: Option<Medium>,
    /// Whether it is a channel of the organisation instead of the caller's own.
    pub organisation: bool,
    pub url: Option<String>,
    pub token: Option<String>,
    pub user_key: Option<String>,
    pub topic: Option<String>,
    pub to: Option<String>,
    /// All topics by default.
    pub events: Option<Vec<Topic>>,
}

/// The topics a user is notified of, in the browser and by channel.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct NotificationPreferences {
    /// Topics for a connected browser.
    pub browser: Option<Vec<Topic>>,
    /// Topics by channel id.
    pub channels: BTreeMap<String, Vec<Topic>>,
}

impl Channels<'_> {
    /// The caller's own channels and the organisation's. Needs the right to approve, run or read, as all methods here
    /// do.
    pub async fn list(&self) -> Result<Vec<With<Channel>>, Error> {
        check_recipient(self.caller)?;
        let all = notify::channels(&self.rooms.notifier, self.caller.org).await?;
        let mine =
            all.all.iter().filter(|(_, channel)| channel.user.as_deref().is_none_or(|user| user == &*self.caller.name));
        Ok(mine.map(|(id, channel)| With { id: id.clone(), is: channel.clone() }).collect())
    }

    /// Creates a channel. Also returns the signing secret of a webhook, which is never shown again.
    pub async fn create(&self, new: NewChannel) -> Result<(With<Channel>, Option<String>), Error> {
        check_recipient(self.caller)?;
        check_label("name", &new.name)?;
        let user = if new.organisation { None } else { Some(self.caller.name.to_string()) };
        self.may_manage(user.as_deref())?;
        if let Some(user) = &user {
            self.check_user(user).await?;
        }
        let (settings, secret) = self.settings(&new)?;
        self.courier()?.check(&settings).map_err(|(path, why)| invalid(path, &why))?;
        let owned = notify::channels(&self.rooms.notifier, self.caller.org).await?;
        if owned.all.iter().filter(|(_, channel)| channel.user == user).count() >= MAX_CHANNELS {
            return Err(Error::NotNow(format!("the limit of {MAX_CHANNELS} channels is reached")));
        }
        let now = self.rooms.cluster.clock.now();
        let medium = medium_of(&settings);
        let sealing = Owner { org: self.caller.org, kind: Channel::KIND, name: &new.name };
        let sealed = seal(self.rooms, sealing, &json_text(&settings)).await?;
        let channel = Channel {
            name: new.name,
            user,
            medium,
            target: target(&settings),
            sealed,
            events: unique(new.events.unwrap_or_else(|| Topic::ALL.to_vec())),
            created: now,
            by: self.caller.name.to_string(),
        };
        let id = self.rooms.cluster.ids.public("chn", now);
        let owner = channel.user.as_deref().unwrap_or_default();
        let key = name_key(self.caller.org, &format!("{owner}/{}", channel.name));
        let record = Record {
            kind: Channel::KIND.into(),
            id: id.clone(),
            org: self.caller.org,
            key,
            due: None,
            body: json_text(&channel),
            version: 0,
        };
        let detail = json!({"name": channel.name, "medium": medium.name(), "user": channel.user});
        let audit = vec![self.caller.audit(now, "channel.create", &id, detail)];
        let records = vec![RecordChange::Create(record)];
        // Channels are cached by epoch.
        let update = Change { records, audit, grants_of: Some(self.caller.org), decided: None };
        change(self.rooms, update, "channel", &channel.name).await?;
        Ok((With { id, is: channel }, secret))
    }

    /// Removes a channel. Its pending notifications are dropped.
    pub async fn remove(&self, channel: &str) -> Result<(), Error> {
        let (record, found) = self.own_channel(channel).await?;
        let detail = json!({"name": found.name});
        let audit = self.caller.audit(self.rooms.cluster.clock.now(), "channel.remove", &record.id, detail);
        let records = vec![RecordChange::Remove { kind: record.kind, id: record.id }];
        let update = Change { records, audit: vec![audit], grants_of: Some(self.caller.org), decided: None };
        change(self.rooms, update, "channel", channel).await
    }

    /// Sends a test message through a channel. The inner `Err` is the reason why it was not delivered.
    pub async fn test(&self, channel: &str) -> Result<Result<(), String>, Error> {
        let (record, found) = self.own_channel(channel).await?;
        let now = self.rooms.cluster.clock.now();
        let message = Notification::test(&self.caller.name, now);
        let id = self.rooms.cluster.ids.public("ntf", now);
        let sent = notify::attempt(
            &self.rooms.notifier,
            &*self.courier()?,
            To { id: &id, org: self.caller.org, channel: &found },
            &message,
        )
        .await?;
        let audit = vec![self.caller.audit(now, "channel.test", &record.id, json!({"arrived": sent.is_ok()}))];
        let _ = self.rooms.cluster.store.change(Change { audit, ..Change::default() }).await?;
        Ok(sent.map_err(|undelivered| undelivered.why))
    }

    /// The caller's notification preferences.
    pub async fn preferences(&self) -> Result<NotificationPreferences, Error> {
        check_recipient(self.caller)?;
        let all = notify::channels(&self.rooms.notifier, self.caller.org).await?;
        Ok(preferences(self.caller, &all))
    }

    /// Changes the preferences that are given.
    pub async fn change_preferences(&self, to: NotificationPreferences) -> Result<NotificationPreferences, Error> {
        check_recipient(self.caller)?;
        retry_on_conflict(|| self.change_preferences_once(to.clone())).await?;
        self.preferences().await
    }

    async fn change_preferences_once(&self, to: NotificationPreferences) -> Result<(), Error> {
        let mut records = Vec::new();
        for (id, events) in &to.channels {
            let (record, channel) = self.own_channel(id).await?;
            let channel = Channel { events: unique(events.clone()), ..channel };
            records.push(RecordChange::Replace(Record { body: json_text(&channel), ..record }));
        }
        if let Some(browser) = &to.browser {
            self.may_manage(Some(&self.caller.name))?;
            self.check_user(&self.caller.name).await?;
            let preferences = Preferences { user: self.caller.name.to_string(), browser: unique(browser.clone()) };
            let key = name_key(self.caller.org, &self.caller.name);
            records.push(match self.rooms.cluster.store.record_with_key(Preferences::KIND, &key).await? {
                Some(record) => RecordChange::Replace(Record { body: json_text(&preferences), ..record }),
                None => {
                    let (kind, id) = (Preferences::KIND.into(), key.clone());
                    let body = json_text(&preferences);
                    RecordChange::Create(Record { kind, id, org: self.caller.org, key, due: None, body, version: 0 })
                }
            });
        }
        if records.is_empty() {
            return Ok(());
        }
        let audit = vec![self.caller.audit(
            self.rooms.cluster.clock.now(),
            "preferences.change",
            &self.caller.name,
            Value::Null,
        )];
        let update = Change { records, audit, grants_of: Some(self.caller.org), decided: None };
        change(self.rooms, update, "preferences", &self.caller.name).await
    }

    /// Notifications and their delivery state, newest first, with the start of the next page. Administrators see all of
    /// the organisation, other users their own.
    pub async fn notifications(
        &self,
        after: Option<String>,
        limit: u32,
    ) -> Result<(Vec<With<Delivery>>, Option<String>), Error> {
        check_recipient(self.caller)?;
        let limit = limit.clamp(1, MAX_PAGE) as usize;
        let prefix = format!("{}/", self.caller.org.0);
        // A page start of another organisation is ignored.
        let mut after = after.filter(|after| after.starts_with(&prefix));
        let (mut found, mut scanned) = (Vec::new(), 0);
        loop {
            let (kind, org) = (Delivery::KIND.into(), Some(self.caller.org));
            let filter = RecordFilter { kind, org, prefix: prefix.clone(), after: after.clone(), limit: MAX_PAGE };
            let page = self.rooms.cluster.store.records(filter).await?;
            let last = page.len() < MAX_PAGE as usize;
            scanned += page.len();
            for record in page {
                let delivery: Delivery = body(&record)?;
                after = Some(record.key);
                if self.caller.may(Right::Admin) || delivery.user.as_deref() == Some(&*self.caller.name) {
                    found.push(With { id: record.id, is: delivery });
                }
                if found.len() == limit {
                    return Ok((found, after));
                }
            }
            if last || scanned >= MAX_SCANNED {
                return Ok((found, None));
            }
        }
    }

    fn courier(&self) -> Result<Arc<dyn Courier>, Error> {
        self.rooms.notifier.courier.clone().ok_or_else(|| Error::NotNow("this process sends no notifications".into()))
    }

    /// Users manage their own channels, administrators the organisation's. Agents manage none.
    fn may_manage(&self, user: Option<&str>) -> Result<(), Error> {
        if user != Some(&*self.caller.name) || self.caller.grants.is_narrowed() || self.caller.grants.is_agent() {
            self.caller.check(Right::Admin)?;
        }
        // Notifications in a user's own channel contain links that act as that user.
        if self.caller.grants.is_agent() || user.is_some() && self.caller.grants.is_narrowed() {
            let why = "an agent's key, or a key with fewer rights than its user, cannot manage notification channels";
            return Err(Error::Refused(why.into()));
        }
        Ok(())
    }

    /// Checks that the user exists: the local operator need not be a user of the organisation.
    async fn check_user(&self, name: &str) -> Result<(), Error> {
        let found = self.rooms.cluster.store.record_with_key(User::KIND, &name_key(self.caller.org, name)).await?;
        let missing =
            || Error::NotNow(format!("there is no user {name:?}: create a channel of the organisation instead"));
        found.map(|_| ()).ok_or_else(missing)
    }

    /// A channel that the caller may change, by its id or its name.
    async fn own_channel(&self, channel: &str) -> Result<(Record, Channel), Error> {
        let none = || Error::NotFound { what: "channel", name: channel.to_string() };
        let all = self.list().await?;
        let by_id = all.iter().find(|with| with.id == channel);
        // If two channels have the same name, the caller's own takes precedence.
        let found = by_id.or_else(|| {
            let mut named: Vec<_> = all.iter().filter(|with| with.is.name == channel).collect();
            named.sort_by_key(|with| with.is.user.is_none());
            named.first().copied()
        });
        let id = &found.ok_or_else(none)?.id;
        let record = self.rooms.cluster.store.record(Channel::KIND, id).await?;
        let record = record.filter(|record| record.org == self.caller.org).ok_or_else(none)?;
        let channel: Channel = body(&record)?;
        self.may_manage(channel.user.as_deref())?;
        Ok((record, channel))
    }

    /// Checks that the settings are those of the medium. Also returns the new signing secret of a webhook.
    fn settings(&self, new: &NewChannel) -> Result<(Settings, Option<String>), Error> {
        let names: Vec<&str> = Medium::ALL.iter().map(|medium| medium.name()).collect();
        let medium = new.medium.ok_or_else(|| invalid("medium", &format!("must be one of {}", names.join(", "))))?;
        let mut given = BTreeMap::new();
        let fields = [
            ("url", &new.url),
            ("token", &new.token),
            ("user_key", &new.user_key),
            ("topic", &new.topic),
            ("to", &new.to),
        ];
        for (name, value) in fields {
            let Some(value) = value else { continue };
            if value.trim().is_empty() || value.len() > MAX_SETTING || value.chars().any(char::is_control) {
                return Err(invalid(name, &format!("must be 1 to {MAX_SETTING} printable characters")));
            }
            given.insert(name, value.trim().to_string());
        }
        let mut secret = None;
        let mut need = |name: &'static str| {
            let missing = || invalid(name, &format!("required for a {} channel", medium.name()));
            given.remove(name).ok_or_else(missing)
        };
        let settings = match medium {
            Medium::Pushover => {
                let user_key = need("user_key")?;
                Settings::Pushover { user_key, token: need("token").ok(), url: need("url").ok() }
            }
            Medium::Webhook => {
                let new = format!("whsec_{}", BASE64.encode(self.rooms.cluster.ids.bytes::<32>()));
                secret = Some(new.clone());
                Settings::Webhook { url: need("url")?, secret: new }
            }
            Medium::Slack => Settings::Slack { url: need("url")? },
            Medium::Ntfy => Settings::Ntfy { topic: need("topic")?, url: need("url").ok(), token: need("token").ok() },
            Medium::Email => Settings::Email { to: need("to")? },
        };
        match given.keys().next() {
            Some(name) => Err(invalid(name, &format!("a {} channel has no such setting", medium.name()))),
            None => Ok((settings, secret)),
        }
    }
}

/// Notifications are for users who may approve, run or read.
fn check_recipient(caller: &Caller) -> Result<(), Error> {
    let has = [Right::Approve, Right::Run].into_iter().any(|right| caller.may(right));
    if has { Ok(()) } else { caller.check(Right::Read) }
}

fn preferences(caller: &Caller, all: &AllChannels) -> NotificationPreferences {
    let mine = all.all.iter().filter(|(_, channel)| channel.user.as_deref() == Some(&*caller.name));
    NotificationPreferences {
        browser: Some(all.browser(&caller.name).to_vec()),
        channels: mine.map(|(id, channel)| (id.clone(), channel.events.clone())).collect(),
    }
}

fn unique(mut events: Vec<Topic>) -> Vec<Topic> {
    events.retain(|topic| Topic::ALL.contains(topic));
    events.sort();
    events.dedup();
    events
}

fn medium_of(settings: &Settings) -> Medium {
    match settings {
        Settings::Pushover { .. } => Medium::Pushover,
        Settings::Webhook { .. } => Medium::Webhook,
        Settings::Slack { .. } => Medium::Slack,
        Settings::Ntfy { .. } => Medium::Ntfy,
        Settings::Email { .. } => Medium::Email,
    }
}

/// A description that tells channels apart. Paths and topics are left out, because they grant access.
fn target(settings: &Settings) -> String {
    let host = |url: &str| url.split('/').take(3).collect::<Vec<_>>().join("/");
    match settings {
        Settings::Pushover { url, .. } => url.as_deref().map(host).unwrap_or_else(|| "Pushover".into()),
        Settings::Webhook { url, .. } | Settings::Slack { url } => host(url),
        Settings::Ntfy { url, .. } => url.as_deref().map(host).unwrap_or_else(|| "ntfy.sh".into()),
        Settings::Email { to } => to.clone(),
    }
}
