//! Who a request comes from, before there is a caller: keys and sessions, signing in, and the first users.

use super::Identity;
use super::change::{change, new_named};
use super::keys::key_record;
use crate::access::{Caller, Grants, Key, Session, User, secret_hash};
use crate::error::Error;
use crate::records::{Kept, With, body, json as json_text, list};
use crate::rooms::Rooms;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use serde_json::Value;
use stepwell_core::time::{Millis, Time};
use stepwell_store::{Change, NewAudit, OrgId, Record, RecordChange};

const SESSION_LIFE: Millis = Millis(30 * Millis::DAY.0);

/// A link is a session that only turns into another one.
pub(super) const LINK: &str = "link";

impl Identity<'_> {
    /// Whoever shows this API key.
    pub async fn authenticate(&self, key: &str) -> Result<Caller, Error> {
        self.rooms.access.by_key(key).await
    }

    /// Whoever's browser shows this session.
    pub async fn session(&self, secret: &str) -> Result<Caller, Error> {
        self.rooms.access.by_session(secret).await
    }

    /// Turns a link into a session; the link is used up.
    pub async fn sign_in(&self, link: &str) -> Result<(String, Time), Error> {
        let over = || Error::Unauthorised("this link was used already, or is too old: ask for another".into());
        let record = self.rooms.cluster.store.record_with_key(LINK, &secret_hash(link)).await?.ok_or_else(over)?;
        let was: Session = body(&record)?;
        let now = self.rooms.cluster.clock.now();
        if was.expires <= now {
            return Err(over());
        }
        let caller = Caller::new(record.org, was.user.as_str(), Grants::default());
        let expires = now + SESSION_LIFE;
        let (session, secret) = self.new_session(record.org, &was.user, Session::KIND, expires);
        // Of two who use it at the same time one comes second: the record it replaces is gone.
        let used = RecordChange::Replace(Record { due: Some(now), key: record.id.clone(), ..record.clone() });
        let gone = RecordChange::Remove { kind: LINK.into(), id: record.id };
        let audit = vec![caller.audit(now, "session.start", &was.user, Value::Null)];
        let records = vec![used, gone, session];
        match self.rooms.cluster.store.change(Change { records, audit, grants_of: None, decided: None }).await? {
            Ok(()) => Ok((secret, expires)),
            Err(_) => Err(over()),
        }
    }

    pub async fn sign_out(&self, secret: &str) -> Result<(), Error> {
        let Some(record) = self.rooms.cluster.store.record_with_key(Session::KIND, &secret_hash(secret)).await? else {
            return Ok(());
        };
        let session: Session = body(&record)?;
        let caller = Caller::new(record.org, session.user.as_str(), Grants::default());
        let audit = vec![caller.audit(self.rooms.cluster.clock.now(), "session.end", &session.user, Value::Null)];
        let records = vec![RecordChange::Remove { kind: Session::KIND.into(), id: record.id }];
        // Who is signed in is remembered by epoch.
        let done = Change { records, audit, grants_of: Some(record.org), decided: None };
        change(self.rooms, done, "session", "").await
    }

    pub(super) fn new_session(&self, org: OrgId, user: &str, kind: &str, expires: Time) -> (RecordChange, String) {
        let now = self.rooms.cluster.clock.now();
        let secret = BASE64.encode(self.rooms.cluster.ids.bytes::<32>());
        let session = Session { user: user.to_string(), created: now, expires };
        let record = Record {
            kind: kind.into(),
            id: self.rooms.cluster.ids.public("ses", now),
            org,
            key: secret_hash(&secret),
            due: Some(expires),
            body: json_text(&session),
            version: 0,
        };
        (RecordChange::Create(record), secret)
    }

    /// `sw_` and 256 random bits.
    pub fn new_secret(&self) -> String {
        format!("sw_{}", BASE64.encode(self.rooms.cluster.ids.bytes::<32>()))
    }

    pub async fn has_users(&self) -> Result<bool, Error> {
        let users: Vec<With<User>> = list(&*self.rooms.cluster.store, OrgId(1)).await?;
        Ok(!users.is_empty())
    }

    /// Makes the first user of the default organisation, with these two keys. False if there are users already.
    pub async fn bootstrap(&self, admin_key: &str, agent_key: &str) -> Result<bool, Error> {
        let org = OrgId(1);
        if self.has_users().await? {
            return Ok(false);
        }
        let records = first_people(self.rooms, org, &["admin", "operator"], admin_key, Some(agent_key));
        let audit = vec![NewAudit {
            org,
            ..Caller::local("stepwell").audit(
                self.rooms.cluster.clock.now(),
                "organisation.create",
                "default",
                Value::Null,
            )
        }];
        match self.rooms.cluster.store.change(Change { records, audit, grants_of: Some(org), decided: None }).await? {
            Ok(()) => {
                self.rooms.access.epoch_moved(org);
                Ok(true)
            }
            // Another node was quicker.
            Err(_) => Ok(false),
        }
    }

    /// Makes a secret from outside a key of the first user, who is made too if there is nobody yet. One that is known is
    /// left as it is, also if it was revoked.
    pub async fn admit_key(&self, secret: &str) -> Result<(), Error> {
        let org = OrgId(1);
        // Refused if another node was quicker: then at least the user is there, and after that the key.
        for _ in 0..3 {
            if self.rooms.cluster.store.record_with_key(Key::KIND, &secret_hash(secret)).await?.is_some() {
                return Ok(());
            }
            let mut records = first_people(self.rooms, org, &["admin", "operator"], secret, None);
            if self.has_users().await? {
                records.remove(0);
            }
            let audit = vec![Caller::local("stepwell").audit(
                self.rooms.cluster.clock.now(),
                "key.admit",
                "admin",
                Value::Null,
            )];
            if self
                .rooms
                .cluster
                .store
                .change(Change { records, audit, grants_of: Some(org), decided: None })
                .await?
                .is_ok()
            {
                self.rooms.access.epoch_moved(org);
            }
        }
        Err(Error::Changed("key"))
    }
}

/// The first people of an organisation: an administrator with a key, and a key for agents.
pub(super) fn first_people(
    rooms: &Rooms,
    org: OrgId,
    grants: &[&str],
    admin_key: &str,
    agent_key: Option<&str>,
) -> Vec<RecordChange> {
    let now = rooms.cluster.clock.now();
    let name = "admin".to_string();
    let grants = grants.iter().map(|grant| grant.to_string()).collect();
    let user =
        User { name: name.clone(), roles: Vec::new(), grants, disabled: false, created: now, by: "stepwell".into() };
    let key = |label: &str, secret: &str, agent: Option<&[&str]>| {
        let key = Key {
            name: label.into(),
            user: name.clone(),
            agent: agent.is_some(),
            grants: agent.map(|grants| grants.iter().map(|grant| grant.to_string()).collect()),
            // Of one that did not come from here less may be known.
            start: secret.chars().take(if secret.starts_with("sw_") { 9 } else { 4 }).collect(),
            created: now,
            by: "stepwell".into(),
            expires: None,
            revoked: None,
            paused: false,
            used: None,
        };
        RecordChange::Create(key_record(rooms, org, &key, secret))
    };
    let mut records = vec![RecordChange::Create(new_named(rooms, org, "user", &user.name, &user))];
    records.push(key("admin", admin_key, None));
    const AGENT: &[&str] = &["workflow.define", "workflow.run", "workflow.read", "tool:*", "connection:*", "secret:*"];
    records.extend(agent_key.map(|secret| key("agent", secret, Some(AGENT))));
    records
}
