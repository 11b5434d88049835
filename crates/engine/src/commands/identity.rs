//! Authentication: API keys, sessions, signing in, and the first users.

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

/// The record kind of a sign-in link: a session that can only be exchanged for another.
pub(super) const LINK: &str = "link";

impl Identity<'_> {
    /// The caller with this API key.
    pub async fn authenticate(&self, key: &str) -> Result<Caller, Error> {
        self.rooms.access.by_key(key).await
    }

    /// The caller with this browser session.
    pub async fn session(&self, secret: &str) -> Result<Caller, Error> {
        self.rooms.access.by_session(secret).await
    }

    /// Exchanges a link for a session. A link can be used once.
    pub async fn sign_in(&self, link: &str) -> Result<(String, Time), Error> {
        let expired = || Error::Unauthorised("this link has been used or has expired: request a new one".into());
        let record = self.rooms.cluster.store.record_with_key(LINK, &secret_hash(link)).await?.ok_or_else(expired)?;
        let was: Session = body(&record)?;
        let now = self.rooms.cluster.clock.now();
        if was.expires <= now {
            return Err(expired());
        }
        let caller = Caller::new(record.org, was.user.as_str(), Grants::default());
        let expires = now + SESSION_LIFE;
        let (session, secret) = self.new_session(record.org, &was.user, Session::KIND, expires);
        // If two requests use the link at the same time, the second fails: the record it replaces has been removed.
        let used = RecordChange::Replace(Record { due: Some(now), key: record.id.clone(), ..record.clone() });
        let removed = RecordChange::Remove { kind: LINK.into(), id: record.id };
        let audit = vec![caller.audit(now, "session.start", &was.user, Value::Null)];
        let records = vec![used, removed, session];
        match self.rooms.cluster.store.change(Change { records, audit, grants_of: None, decided: None }).await? {
            Ok(()) => Ok((secret, expires)),
            Err(_) => Err(expired()),
        }
    }

    /// Ends a session. An unknown session is ignored.
    pub async fn sign_out(&self, secret: &str) -> Result<(), Error> {
        let Some(record) = self.rooms.cluster.store.record_with_key(Session::KIND, &secret_hash(secret)).await? else {
            return Ok(());
        };
        let session: Session = body(&record)?;
        let caller = Caller::new(record.org, session.user.as_str(), Grants::default());
        let audit = vec![caller.audit(self.rooms.cluster.clock.now(), "session.end", &session.user, Value::Null)];
        let records = vec![RecordChange::Remove { kind: Session::KIND.into(), id: record.id }];
        // Sessions are cached by epoch.
        let update = Change { records, audit, grants_of: Some(record.org), decided: None };
        change(self.rooms, update, "session", "").await
    }

    /// The record of a new session or link, and its secret.
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

    /// A new API key: `sw_` and 256 random bits.
    pub fn new_secret(&self) -> String {
        format!("sw_{}", BASE64.encode(self.rooms.cluster.ids.bytes::<32>()))
    }

    /// Whether the default organisation has users.
    pub async fn has_users(&self) -> Result<bool, Error> {
        let users: Vec<With<User>> = list(&*self.rooms.cluster.store, OrgId(1)).await?;
        Ok(!users.is_empty())
    }

    /// Creates the first user of the default organisation, with these two keys. False if there are users already.
    pub async fn bootstrap(&self, admin_key: &str, agent_key: &str) -> Result<bool, Error> {
        let org = OrgId(1);
        if self.has_users().await? {
            return Ok(false);
        }
        let records = first_users(self.rooms, org, &["admin", "operator"], admin_key, Some(agent_key));
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
            // Another node was faster.
            Err(_) => Ok(false),
        }
    }

    /// Registers an external secret as a key of the first user, who is created if there are no users. A known key is
    /// left as it is, even if it was revoked.
    pub async fn admit_key(&self, secret: &str) -> Result<(), Error> {
        let org = OrgId(1);
        // Refused if another node was faster: then the user exists at the next attempt, and the key after that.
        for _ in 0..3 {
            if self.rooms.cluster.store.record_with_key(Key::KIND, &secret_hash(secret)).await?.is_some() {
                return Ok(());
            }
            let mut records = first_users(self.rooms, org, &["admin", "operator"], secret, None);
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

/// The first user of an organisation: an administrator with a key, and a key for agents.
pub(super) fn first_users(
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
            // Less of a key that was not generated here is shown.
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
