//! Stored users, roles, keys and sessions, and the grants that result from them.
//!
//! Lookups are cached until the organisation's epoch changes. Every change to these records increments the epoch, and
//! the store refuses a decision that was made on an older one.

use super::Access;
use super::cache::ByEpoch;
use super::caller::Caller;
use super::rights::{Actor, Grants};
use crate::error::Error;
use crate::records::{Kept, body, by_name, json};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use stepwell_core::time::{Millis, Time};
use stepwell_store::{Change, OrgId, Record, RecordChange};

/// The most callers in the cache.
const MOST: usize = 20_000;
/// Time between two writes of a key's last use.
const USED_EVERY: Millis = Millis::from_secs(60);

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct User {
    pub name: String,
    #[serde(default)]
    pub roles: Vec<String>,
    /// In addition to the grants of the roles.
    #[serde(default)]
    pub grants: Vec<String>,
    #[serde(default)]
    pub disabled: bool,
    pub created: Time,
    pub by: String,
}

impl Kept for User {
    const KIND: &'static str = "user";
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Role {
    pub name: String,
    pub grants: Vec<String>,
    pub created: Time,
    pub by: String,
}

impl Kept for Role {
    const KIND: &'static str = "role";
}

/// An API key. The key itself is not stored: its record is found by its hash.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Key {
    pub name: String,
    pub user: String,
    pub agent: bool,
    /// Limits the user's grants. `None` leaves all.
    pub grants: Option<Vec<String>>,
    /// The first characters of the key, so that users can recognise it.
    pub start: String,
    pub created: Time,
    pub by: String,
    pub expires: Option<Time>,
    pub revoked: Option<Time>,
    #[serde(default)]
    pub paused: bool,
    /// Stored separately, see [`Used`].
    #[serde(skip)]
    pub used: Option<Time>,
}

impl Kept for Key {
    const KIND: &'static str = "key";
}

/// When a key was last used. A separate record, so that it does not conflict with changes to the key.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Used {
    pub at: Time,
}

impl Kept for Used {
    const KIND: &'static str = "key_use";
}

/// A signed-in browser, or a sign-in link.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Session {
    pub user: String,
    pub created: Time,
    pub expires: Time,
}

impl Kept for Session {
    const KIND: &'static str = "session";
}

/// Built-in roles and their grants.
pub const BUILT_IN_ROLES: [(&str, &[&str]); 5] = [
    ("admin", &["admin"]),
    ("editor", &["workflow.define", "workflow.run", "workflow.read", "tool:*", "connection:*", "secret:*"]),
    ("runner", &["workflow.run", "workflow.read", "tool:*", "connection:*", "secret:*"]),
    ("approver", &["workflow.read", "workflow.approve"]),
    ("viewer", &["workflow.read"]),
];

/// The hash under which a secret is stored. One round is enough, because these secrets are random and long.
pub fn secret_hash(secret: &str) -> String {
    Sha256::digest(secret.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A caller, the epoch in which it was looked up, and when its credential expires.
type CachedCaller = (Caller, i64, Option<Time>);

/// Caches of callers and of the grants of actors.
#[derive(Default)]
pub struct People {
    /// By the kind and the hash of the credential.
    callers: Mutex<HashMap<String, CachedCaller>>,
    actors: ByEpoch<(OrgId, String), Option<Arc<Grants>>>,
    keys: ByEpoch<(OrgId, String), Option<Arc<Key>>>,
    /// When the last use of each key was last written.
    used: Mutex<HashMap<String, Time>>,
}

impl People {
    fn callers(&self) -> MutexGuard<'_, HashMap<String, CachedCaller>> {
        let mut callers = self.callers.lock().expect("no thread panics while it holds the lock on callers");
        if callers.len() > MOST {
            callers.clear();
        }
        callers
    }
}

impl Access {
    /// The cached caller with this credential, if it is still valid.
    async fn cached_caller(&self, credential: &str, now: Time) -> Result<Option<Caller>, Error> {
        let found = self.people.callers().get(credential).cloned();
        let Some((caller, epoch, expires)) = found else { return Ok(None) };
        let current = epoch == self.epoch(caller.org).await? && expires.is_none_or(|expires| now < expires);
        Ok(current.then_some(caller))
    }

    /// Authenticates an API key.
    pub async fn by_key(self: &Arc<Access>, secret: &str) -> Result<Caller, Error> {
        let (hash, now) = (secret_hash(secret), self.cluster.clock.now());
        let credential = format!("{} {hash}", Key::KIND);
        if let Some(caller) = self.cached_caller(&credential, now).await? {
            self.note_use(caller.org, caller.key.as_deref(), now);
            return Ok(caller);
        }
        let unknown = || Error::Unauthorised("the API key is unknown".into());
        let found = self.cluster.store.record_with_key(Key::KIND, &hash).await?.ok_or_else(unknown)?;
        // Read again after the epoch: a change after that increments the epoch, and the cached caller becomes invalid.
        let epoch = self.epoch(found.org).await?;
        let record = self.cluster.store.record(Key::KIND, &found.id).await?.ok_or_else(unknown)?;
        let key: Key = body(&record)?;
        if let Some(at) = key.revoked {
            return Err(Error::Unauthorised(format!("this key was revoked at {at}")));
        }
        if let Some(at) = key.expires.filter(|at| *at <= now) {
            return Err(Error::Unauthorised(format!("this key expired at {at}")));
        }
        if key.paused {
            return Err(Error::Refused(format!("the key {:?} is paused", key.name)));
        }
        let none = || Error::Unauthorised(format!("the key's user {:?} was removed or disabled", key.user));
        let user = self.user_grants(record.org, &key.user).await?.ok_or_else(none)?;
        let grants = Grants::new(user).through_key(key.grants.clone(), key.agent);
        let caller = Caller::new(record.org, key.user.as_str(), grants).with_key(record.id.clone());
        self.people.callers().insert(credential, (caller.clone(), epoch, key.expires));
        self.note_use(record.org, Some(&record.id), now);
        Ok(caller)
    }

    /// Authenticates a browser session.
    pub async fn by_session(&self, secret: &str) -> Result<Caller, Error> {
        let (hash, now) = (secret_hash(secret), self.cluster.clock.now());
        let credential = format!("{} {hash}", Session::KIND);
        if let Some(caller) = self.cached_caller(&credential, now).await? {
            return Ok(caller);
        }
        let expired = || Error::Unauthorised("the session has expired: sign in again".into());
        let found = self.cluster.store.record_with_key(Session::KIND, &hash).await?.ok_or_else(expired)?;
        let epoch = self.epoch(found.org).await?;
        let record = self.cluster.store.record(Session::KIND, &found.id).await?.ok_or_else(expired)?;
        let session: Session = body(&record)?;
        if session.expires <= now {
            return Err(expired());
        }
        let user = self.user_grants(record.org, &session.user).await?.ok_or_else(expired)?;
        let caller = Caller::new(record.org, session.user.as_str(), Grants::new(user));
        self.people.callers().insert(credential, (caller.clone(), epoch, Some(session.expires)));
        Ok(caller)
    }

    /// The current grants of an actor. `None` if the user does not exist or is disabled.
    pub async fn grants(&self, org: OrgId, actor: &Actor) -> Result<Option<Arc<Grants>>, Error> {
        let name = (org, actor.to_string());
        let epoch = self.epoch(org).await?;
        if let Some(known) = self.people.actors.get(&name, epoch) {
            return Ok(known);
        }
        let grants = self.read_grants(org, actor).await?.map(Arc::new);
        self.people.actors.put(name, epoch, grants.clone());
        Ok(grants)
    }

    /// A revoked or expired key still counts here: it cannot start runs any more, but the runs it started go on with
    /// its grants.
    async fn read_grants(&self, org: OrgId, actor: &Actor) -> Result<Option<Grants>, Error> {
        let Some(user) = self.user_grants(org, &actor.user).await? else { return Ok(None) };
        let Some(id) = &actor.key else { return Ok(Some(Grants::new(user))) };
        let Some(record) = self.cluster.store.record(Key::KIND, id).await?.filter(|record| record.org == org) else {
            return Ok(None);
        };
        let key: Key = body(&record)?;
        Ok(Some(Grants::new(user).through_key(key.grants, key.agent)))
    }

    /// The key of an actor, whatever its state. `None` if it is gone. Cached until the organisation's epoch changes.
    pub async fn key(&self, org: OrgId, id: &str) -> Result<Option<Arc<Key>>, Error> {
        let name = (org, id.to_string());
        let epoch = self.epoch(org).await?;
        if let Some(known) = self.people.keys.get(&name, epoch) {
            return Ok(known);
        }
        let record = self.cluster.store.record(Key::KIND, id).await?.filter(|record| record.org == org);
        let key = record.as_ref().map(body::<Key>).transpose()?.map(Arc::new);
        self.people.keys.put(name, epoch, key.clone());
        Ok(key)
    }

    /// Whether the actor's key is an agent's. A key that is gone counts as one.
    pub async fn is_agent(&self, org: OrgId, actor: &Actor) -> Result<bool, Error> {
        let Some(id) = &actor.key else { return Ok(false) };
        let record = self.cluster.store.record(Key::KIND, id).await?.filter(|record| record.org == org);
        Ok(record.as_ref().map(body::<Key>).transpose()?.is_none_or(|key| key.agent))
    }

    /// All grants of a user, direct and by roles. `None` if the user does not exist or is disabled.
    async fn user_grants(&self, org: OrgId, name: &str) -> Result<Option<Vec<String>>, Error> {
        let Some(record) = by_name::<User>(&*self.cluster.store, org, name).await? else { return Ok(None) };
        let user: User = body(&record)?;
        if user.disabled {
            return Ok(None);
        }
        let mut grants = user.grants;
        for role in &user.roles {
            grants.extend(self.role_grants(org, role).await?.unwrap_or_default());
        }
        Ok(Some(grants))
    }

    /// Whether an enabled user is in a list of users and roles. An empty list includes everyone.
    pub async fn is_among(&self, org: OrgId, name: &str, named: &[String]) -> Result<bool, Error> {
        let has = |word: &str| named.iter().any(|named| named == word || named.strip_prefix("role:") == Some(word));
        if named.is_empty() {
            return Ok(true);
        }
        let Some(record) = by_name::<User>(&*self.cluster.store, org, name).await? else { return Ok(false) };
        let user: User = body(&record)?;
        let by_name = named.iter().any(|named| named == name);
        Ok(!user.disabled && (by_name || user.roles.iter().any(|role| has(role))))
    }

    pub async fn role_grants(&self, org: OrgId, name: &str) -> Result<Option<Vec<String>>, Error> {
        if let Some((_, grants)) = BUILT_IN_ROLES.iter().find(|(built_in, _)| *built_in == name) {
            return Ok(Some(grants.iter().map(|grant| grant.to_string()).collect()));
        }
        let record = by_name::<Role>(&*self.cluster.store, org, name).await?;
        record.map(|record| body::<Role>(&record).map(|role| role.grants)).transpose()
    }

    /// Writes the last use of a key, at most once a minute and in the background.
    fn note_use(self: &Arc<Access>, org: OrgId, key: Option<&str>, now: Time) {
        let Some(key) = key else { return };
        {
            let mut used = self.people.used.lock().expect("no thread panics while it holds the lock on key uses");
            if used.get(key).is_some_and(|last| now < *last + USED_EVERY) {
                return;
            }
            if used.len() > MOST {
                used.clear();
            }
            used.insert(key.to_string(), now);
        }
        let (access, key) = (self.clone(), key.to_string());
        tokio::spawn(async move {
            if let Err(error) = access.write_use(org, &key, now).await {
                tracing::warn!(%error, "cannot write the last use of a key");
            }
        });
    }

    async fn write_use(&self, org: OrgId, id: &str, now: Time) -> Result<(), Error> {
        let body = json(&Used { at: now });
        let record = match self.cluster.store.record(Used::KIND, id).await? {
            Some(record) => RecordChange::Replace(Record { body, ..record }),
            None => {
                let (kind, key) = (Used::KIND.to_string(), id.to_string());
                RecordChange::Create(Record { kind, id: id.to_string(), org, key, due: None, body, version: 0 })
            }
        };
        // If a concurrent write wins, its time is as good.
        let _ = self.cluster.store.change(Change { records: vec![record], ..Change::default() }).await?;
        Ok(())
    }
}
