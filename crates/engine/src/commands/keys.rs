//! API keys. A key is shown once. The store has only its hash.

use super::change::{change, current_auth, replace, retry_on_conflict};
use super::input::{check_grants, check_label, invalid};
use super::{Identity, Keys, Users};
use crate::access::{Key, Right, Used, User, secret_hash};
use crate::error::Error;
use crate::records::{Kept, With, body, find, json as json_text, list};
use crate::rooms::Rooms;
use serde_json::json;
use std::collections::HashMap;
use stepwell_core::time::Time;
use stepwell_store::{Change, OrgId, Record, RecordChange};

/// A key to create.
#[derive(Clone, Default, Debug)]
pub struct NewKey {
    /// The caller by default.
    pub user: Option<String>,
    pub name: String,
    pub agent: bool,
    /// All grants of its user by default.
    pub grants: Option<Vec<String>>,
    pub expires: Option<Time>,
}

/// Changes of a key. `None` keeps the current value.
#[derive(Clone, Default, Debug)]
pub struct KeyChange {
    pub name: Option<String>,
    pub paused: Option<bool>,
}

impl Keys<'_> {
    /// The keys of the organisation for administrators; the caller's own for others.
    pub async fn list(&self) -> Result<Vec<With<Key>>, Error> {
        let mut all: Vec<With<Key>> = list(&*self.rooms.cluster.store, self.caller.org).await?;
        let used: Vec<With<Used>> = list(&*self.rooms.cluster.store, self.caller.org).await?;
        let used: HashMap<String, Time> = used.into_iter().map(|used| (used.id, used.is.at)).collect();
        let admin = self.caller.may(Right::Admin);
        all.retain(|key| admin || *key.is.user == *self.caller.name);
        all.iter_mut().for_each(|key| key.is.used = used.get(&key.id).copied());
        Ok(all)
    }

    /// Creates a key. Also returns the secret, which is never shown again. Needs the right to administer if the key is
    /// for another user, or if the caller uses a key.
    pub async fn create(&self, new: NewKey) -> Result<(With<Key>, String), Error> {
        let user = new.user.clone().unwrap_or_else(|| self.caller.name.to_string());
        // A caller with a restricted key must not create a key with more rights.
        if *user != *self.caller.name || self.caller.key.is_some() {
            self.caller.check(Right::Admin)?;
        }
        check_label("name", &new.name)?;
        check_grants(self.caller, new.grants.as_deref().unwrap_or_default())?;
        let now = self.rooms.cluster.clock.now();
        if new.expires.is_some_and(|expires| expires <= now) {
            return Err(invalid("expires_at", "must be in the future"));
        }
        let user: User = body(&find::<User>(&*self.rooms.cluster.store, self.caller.org, &user).await?)?;
        if new.grants.is_none() {
            // The key gets all rights of its user.
            check_grants(self.caller, &Users::new(self.rooms, self.caller).all_grants(self.caller.org, &user).await?)?;
        }
        let secret = Identity::new(self.rooms).new_secret();
        let key = Key {
            name: new.name,
            user: user.name,
            agent: new.agent,
            grants: new.grants,
            start: secret.chars().take(9).collect(),
            created: now,
            by: self.caller.name.to_string(),
            expires: new.expires,
            revoked: None,
            paused: false,
            used: None,
        };
        let record = key_record(self.rooms, self.caller.org, &key, &secret);
        let detail = json!({"name": key.name, "user": key.user, "agent": key.agent, "grants": key.grants});
        let audit = vec![self.caller.audit(now, "key.create", &record.id, detail)];
        let id = record.id.clone();
        let update = Change {
            records: vec![RecordChange::Create(record)],
            audit,
            grants_of: Some(self.caller.org),
            decided: None,
        };
        change(self.rooms, update, "key", &id).await?;
        Ok((With { id, is: key }, secret))
    }

    /// Renames, pauses or resumes a key. Needs the same rights as [`Keys::create`].
    pub async fn change(&self, id: &str, to: KeyChange) -> Result<With<Key>, Error> {
        to.name.iter().try_for_each(|name| check_label("name", name))?;
        retry_on_conflict(|| self.change_once(id, to.clone())).await
    }

    async fn change_once(&self, id: &str, to: KeyChange) -> Result<With<Key>, Error> {
        let decided = current_auth(self.rooms, self.caller.org).await?;
        let (record, mut key) = self.own_key(id).await?;
        key.name = to.name.unwrap_or(key.name);
        key.paused = to.paused.unwrap_or(key.paused);
        let detail = json!({"name": key.name, "paused": key.paused});
        let audit = self.caller.audit(self.rooms.cluster.clock.now(), "key.change", id, detail);
        replace(self.rooms, record, &key, audit, decided).await?;
        Ok(With { id: id.to_string(), is: key })
    }

    /// Revokes a key permanently. Runs it has started continue. Needs the same rights as [`Keys::create`].
    pub async fn revoke(&self, id: &str) -> Result<(), Error> {
        retry_on_conflict(|| self.revoke_once(id)).await
    }

    async fn revoke_once(&self, id: &str) -> Result<(), Error> {
        let decided = current_auth(self.rooms, self.caller.org).await?;
        let (record, mut key) = self.own_key(id).await?;
        let now = self.rooms.cluster.clock.now();
        key.revoked = key.revoked.or(Some(now));
        let audit = self.caller.audit(now, "key.revoke", id, json!({"name": key.name}));
        replace(self.rooms, record, &key, audit, decided).await
    }

    /// A key that the caller may manage.
    async fn own_key(&self, id: &str) -> Result<(Record, Key), Error> {
        let none = || Error::NotFound { what: "key", name: id.to_string() };
        let record = self.rooms.cluster.store.record(Key::KIND, id).await?;
        let record = record.filter(|record| record.org == self.caller.org).ok_or_else(none)?;
        let key: Key = body(&record)?;
        if *key.user != *self.caller.name || self.caller.key.is_some() {
            self.caller.check(Right::Admin)?;
        }
        Ok((record, key))
    }
}

pub(super) fn key_record(rooms: &Rooms, org: OrgId, key: &Key, secret: &str) -> Record {
    let id = rooms.cluster.ids.public("key", key.created);
    let (kind, body) = (Key::KIND.to_string(), json_text(key));
    Record { kind, id, org, key: secret_hash(secret), due: None, body, version: 0 }
}
