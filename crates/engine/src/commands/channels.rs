//! Where people want to be told of things: channels of their own and of the organisation, what goes where, and what became
//! of it. What opens a channel goes in and never comes out.

use super::Channels;
use super::change::{change, settled};
use super::input::{bad, check_label};
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

/// Channels that one person, or the organisation, may have.
const MOST: usize = 50;
const MAX_SETTING: usize = 2_000;
/// Deliveries of a page, and those that are looked through for one person's.
const MAX_PAGE: u32 = 1_000;
const MOST_LOOKED_AT: usize = 10_000;

/// A channel to be made. Which settings it needs depends on its medium.
#[derive(Clone, PartialEq, Default)]
pub struct NewChannel {
    pub name: String,
    pub medium: Option<Medium>,
    /// Not the caller's own.
    pub organisation: bool,
    pub url: Option<String>,
    pub token: Option<String>,
    pub user_key: Option<String>,
    pub topic: Option<String>,
    pub to: Option<String>,
    /// Everything if it is not said.
    pub events: Option<Vec<Topic>>,
}

/// What somebody wants to be told of, and where.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Wishes {
    /// In a browser that is connected.
    pub browser: Option<Vec<Topic>>,
    /// By the id of the channel.
    pub channels: BTreeMap<String, Vec<Topic>>,
}

impl Channels<'_> {
    /// The caller's own, and those of the organisation.
    pub async fn list(&self) -> Result<Vec<With<Channel>>, Error> {
        may_be_told(self.caller)?;
        let all = notify::channels(&self.rooms.notifier, self.caller.org).await?;
        let mine = all.all.iter().filter(|(_, is)| is.user.as_deref().is_none_or(|user| user == &*self.caller.name));
        Ok(mine.map(|(id, is)| With { id: id.clone(), is: is.clone() }).collect())
    }

    /// A new channel and, of a webhook, the secret that its calls are signed with, which is never shown again.
    pub async fn create(&self, new: NewChannel) -> Result<(With<Channel>, Option<String>), Error> {
        may_be_told(self.caller)?;
        check_label("name", &new.name)?;
        let user = if new.organisation { None } else { Some(self.caller.name.to_string()) };
        self.may_manage(user.as_deref())?;
        if let Some(user) = &user {
            self.is_user(user).await?;
        }
        let (settings, secret) = self.settings(&new)?;
        self.courier()?.check(&settings).map_err(|(path, why)| bad(path, &why))?;
        let owned = notify::channels(&self.rooms.notifier, self.caller.org).await?;
        if owned.all.iter().filter(|(_, is)| is.user == user).count() >= MOST {
            return Err(Error::NotNow(format!("there are {MOST} channels already, and no more are allowed")));
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
        // What is known of channels is remembered by epoch.
        let done = Change { records, audit, grants_of: Some(self.caller.org), decided: None };
        change(self.rooms, done, "channel", &channel.name).await?;
        Ok((With { id, is: channel }, secret))
    }

    /// What waits for it is told to nobody.
    pub async fn remove(&self, channel: &str) -> Result<(), Error> {
        let (record, is) = self.own_channel(channel).await?;
        let audit =
            self.caller.audit(self.rooms.cluster.clock.now(), "channel.remove", &record.id, json!({"name": is.name}));
        let records = vec![RecordChange::Remove { kind: record.kind, id: record.id }];
        let done = Change { records, audit: vec![audit], grants_of: Some(self.caller.org), decided: None };
        change(self.rooms, done, "channel", channel).await
    }

    /// Sends a message through a channel now. `Err` in the answer says why it did not arrive.
    pub async fn test(&self, channel: &str) -> Result<Result<(), String>, Error> {
        let (record, is) = self.own_channel(channel).await?;
        let now = self.rooms.cluster.clock.now();
        let message = Notification::test(&self.caller.name, now);
        let id = self.rooms.cluster.ids.public("ntf", now);
        let sent = notify::attempt(
            &self.rooms.notifier,
            &*self.courier()?,
            To { id: &id, org: self.caller.org, channel: &is },
            &message,
        )
        .await?;
        let audit = vec![self.caller.audit(now, "channel.test", &record.id, json!({"arrived": sent.is_ok()}))];
        let _ = self.rooms.cluster.store.change(Change { audit, ..Change::default() }).await?;
        Ok(sent.map_err(|undelivered| undelivered.why))
    }

    /// What the caller is told of, and where.
    pub async fn preferences(&self) -> Result<Wishes, Error> {
        may_be_told(self.caller)?;
        let all = notify::channels(&self.rooms.notifier, self.caller.org).await?;
        Ok(wishes(self.caller, &all))
    }

    /// What is given is changed.
    pub async fn change_preferences(&self, to: Wishes) -> Result<Wishes, Error> {
        may_be_told(self.caller)?;
        settled(|| self.change_preferences_once(to.clone())).await?;
        self.preferences().await
    }

    async fn change_preferences_once(&self, to: Wishes) -> Result<(), Error> {
        let mut records = Vec::new();
        for (id, events) in &to.channels {
            let (record, is) = self.own_channel(id).await?;
            let is = Channel { events: unique(events.clone()), ..is };
            records.push(RecordChange::Replace(Record { body: json_text(&is), ..record }));
        }
        if let Some(browser) = &to.browser {
            self.is_user(&self.caller.name).await?;
            let is = Preferences { user: self.caller.name.to_string(), browser: unique(browser.clone()) };
            let key = name_key(self.caller.org, &self.caller.name);
            records.push(match self.rooms.cluster.store.record_with_key(Preferences::KIND, &key).await? {
                Some(record) => RecordChange::Replace(Record { body: json_text(&is), ..record }),
                None => {
                    let (kind, id) = (Preferences::KIND.into(), key.clone());
                    let body = json_text(&is);
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
        let done = Change { records, audit, grants_of: Some(self.caller.org), decided: None };
        change(self.rooms, done, "preferences", &self.caller.name).await
    }

    /// What became of messages, newest first: all of the organisation for those who administer it, their own for others.
    /// With where the next page begins.
    pub async fn notifications(
        &self,
        after: Option<String>,
        limit: u32,
    ) -> Result<(Vec<With<Delivery>>, Option<String>), Error> {
        may_be_told(self.caller)?;
        let limit = limit.clamp(1, MAX_PAGE) as usize;
        let prefix = format!("{}/", self.caller.org.0);
        // A place in another organisation's list is none here.
        let mut after = after.filter(|after| after.starts_with(&prefix));
        let (mut found, mut looked_at) = (Vec::new(), 0);
        loop {
            let (kind, org) = (Delivery::KIND.into(), Some(self.caller.org));
            let filter = RecordFilter { kind, org, prefix: prefix.clone(), after: after.clone(), limit: MAX_PAGE };
            let page = self.rooms.cluster.store.records(filter).await?;
            let last = page.len() < MAX_PAGE as usize;
            looked_at += page.len();
            for record in page {
                let is: Delivery = body(&record)?;
                after = Some(record.key);
                if self.caller.may(Right::Admin) || is.user.as_deref() == Some(&*self.caller.name) {
                    found.push(With { id: record.id, is });
                }
                if found.len() == limit {
                    return Ok((found, after));
                }
            }
            if last || looked_at >= MOST_LOOKED_AT {
                return Ok((found, None));
            }
        }
    }

    fn courier(&self) -> Result<Arc<dyn Courier>, Error> {
        self.rooms.notifier.courier.clone().ok_or_else(|| Error::NotNow("this process sends no messages".into()))
    }

    /// One's own, or the organisation's for those who administer it. An agent manages nobody's.
    fn may_manage(&self, user: Option<&str>) -> Result<(), Error> {
        if user != Some(&*self.caller.name) || self.caller.grants.is_narrowed() || self.caller.grants.is_agent() {
            self.caller.check(Right::Admin)?;
        }
        // What is told through somebody's own channel has links that speak for them.
        if self.caller.grants.is_agent() || user.is_some() && self.caller.grants.is_narrowed() {
            let why = "a key of an agent, or one that may not do all its user may, does not say where people are told";
            return Err(Error::Refused(why.into()));
        }
        Ok(())
    }

    /// The person at the machine may be nobody whom the organisation knows.
    async fn is_user(&self, name: &str) -> Result<(), Error> {
        let found = self.rooms.cluster.store.record_with_key(User::KIND, &name_key(self.caller.org, name)).await?;
        let nobody = || Error::NotNow(format!("there is no user {name:?}: make a channel of the organisation instead"));
        found.map(|_| ()).ok_or_else(nobody)
    }

    /// A channel that the caller may change, by its id or its name.
    async fn own_channel(&self, channel: &str) -> Result<(Record, Channel), Error> {
        let none = || Error::NotFound { what: "channel", name: channel.to_string() };
        let all = self.list().await?;
        let by_id = all.iter().find(|is| is.id == channel);
        // Of two of the same name one's own is meant.
        let found = by_id.or_else(|| {
            let mut named: Vec<_> = all.iter().filter(|is| is.is.name == channel).collect();
            named.sort_by_key(|is| is.is.user.is_none());
            named.first().copied()
        });
        let id = &found.ok_or_else(none)?.id;
        let record = self.rooms.cluster.store.record(Channel::KIND, id).await?;
        let record = record.filter(|record| record.org == self.caller.org).ok_or_else(none)?;
        let is: Channel = body(&record)?;
        self.may_manage(is.user.as_deref())?;
        Ok((record, is))
    }

    /// What is needed must be there, and nothing else; with the secret that is made for a webhook.
    fn settings(&self, new: &NewChannel) -> Result<(Settings, Option<String>), Error> {
        let names: Vec<&str> = Medium::ALL.iter().map(|medium| medium.name()).collect();
        let medium = new.medium.ok_or_else(|| bad("medium", &format!("one of {} is needed", names.join(", "))))?;
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
                return Err(bad(name, &format!("1 to {MAX_SETTING} characters that can be printed are needed")));
            }
            given.insert(name, value.trim().to_string());
        }
        let mut secret = None;
        let mut need = |name: &'static str| {
            let missing = || bad(name, &format!("a channel of {} needs this", medium.name()));
            given.remove(name).ok_or_else(missing)
        };
        let settings = match medium {
            Medium::Pushover => {
                let user_key = need("user_key")?;
                Settings::Pushover { user_key, token: need("token").ok(), url: need("url").ok() }
            }
            Medium::Webhook => {
                let made = format!("whsec_{}", BASE64.encode(self.rooms.cluster.ids.bytes::<32>()));
                secret = Some(made.clone());
                Settings::Webhook { url: need("url")?, secret: made }
            }
            Medium::Slack => Settings::Slack { url: need("url")? },
            Medium::Ntfy => Settings::Ntfy { topic: need("topic")?, url: need("url").ok(), token: need("token").ok() },
            Medium::Email => Settings::Email { to: need("to")? },
        };
        match given.keys().next() {
            Some(name) => Err(bad(name, &format!("a channel of {} has no such setting", medium.name()))),
            None => Ok((settings, secret)),
        }
    }
}

/// Whoever has something to do with runs.
fn may_be_told(caller: &Caller) -> Result<(), Error> {
    let has = [Right::Approve, Right::Run].into_iter().any(|right| caller.may(right));
    if has { Ok(()) } else { caller.check(Right::Read) }
}

fn wishes(caller: &Caller, all: &AllChannels) -> Wishes {
    let mine = all.all.iter().filter(|(_, is)| is.user.as_deref() == Some(&*caller.name));
    Wishes {
        browser: Some(all.browser(&caller.name).to_vec()),
        channels: mine.map(|(id, is)| (id.clone(), is.events.clone())).collect(),
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

/// Enough to tell it from others: paths and topics open something.
fn target(settings: &Settings) -> String {
    let host = |url: &str| url.split('/').take(3).collect::<Vec<_>>().join("/");
    match settings {
        Settings::Pushover { url, .. } => url.as_deref().map(host).unwrap_or_else(|| "Pushover".into()),
        Settings::Webhook { url, .. } | Settings::Slack { url } => host(url),
        Settings::Ntfy { url, .. } => url.as_deref().map(host).unwrap_or_else(|| "ntfy.sh".into()),
        Settings::Email { to } => to.clone(),
    }
}
