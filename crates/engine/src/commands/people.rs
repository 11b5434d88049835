//! Users, roles, keys and browser sessions of an organisation. Every change is in the audit trail, in one write with it.

use super::change::{auth, change, settled};
use super::{Caller, Right};
use crate::engine::{Engine, Inner};
use crate::error::Error;
use crate::people::{self, BUILT_IN_ROLES, Kept, Key, Role, Session, Used, User, body, name_key, secret_hash};
use crate::record::json;
use crate::rights::check_grant;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use stepwell_core::time::{Millis, Time};
use stepwell_store::{Auth, Change, NewAudit, OrgId, Record, RecordChange, RecordFilter};

const SESSION_LIFE: Millis = Millis(30 * Millis::DAY.0);
const LINK_LIFE: Millis = Millis::DAY;
/// Records of one sort that an organisation may have.
const MOST: u32 = 10_000;
const MAX_NAME: usize = 100;
const MAX_GRANTS: usize = 1_000;
/// A link is a session that only turns into another one.
const LINK: &str = "link";

/// Something kept, with the id that it has outside.
#[derive(Clone, PartialEq, Debug)]
pub struct With<T> {
    pub id: String,
    pub is: T,
}

#[derive(Clone, Default, Debug)]
pub struct NewUser {
    pub name: String,
    pub roles: Vec<String>,
    pub grants: Vec<String>,
}

/// What is given is changed.
#[derive(Clone, Default, Debug)]
pub struct UserChange {
    pub roles: Option<Vec<String>>,
    pub grants: Option<Vec<String>>,
    pub disabled: Option<bool>,
}

#[derive(Clone, Default, Debug)]
pub struct NewKey {
    /// The caller if nobody is named.
    pub user: Option<String>,
    pub name: String,
    pub agent: bool,
    pub grants: Option<Vec<String>>,
    pub expires: Option<Time>,
}

#[derive(Clone, Default, Debug)]
pub struct KeyChange {
    pub name: Option<String>,
    pub paused: Option<bool>,
}

impl Engine {
    /// Whoever shows this API key.
    pub async fn authenticate(&self, key: &str) -> Result<Caller, Error> {
        people::by_key(&self.inner, key).await
    }

    /// Whoever's browser shows this session.
    pub async fn session(&self, secret: &str) -> Result<Caller, Error> {
        people::by_session(&self.inner, secret).await
    }

    /// A link's secret: whoever has it can sign in as the caller, once; or as another user, for administrators.
    pub async fn sign_in_link(&self, caller: &Caller, user: Option<&str>) -> Result<String, Error> {
        let mut name = caller.name.to_string();
        if caller.key.is_some() || user.is_some() {
            caller.check(Right::Admin)?;
            // A session is good for all that its user may, and is no agent's.
            let user: User = body(&find::<User>(&self.inner, caller.org, user.unwrap_or(&name)).await?)?;
            check_grants(caller, &self.all_grants(caller.org, &user).await?)?;
            if caller.grants.is_agent() {
                return Err(Error::Refused("an agent's key does not sign people in".into()));
            }
            name = user.name;
        }
        let now = self.inner.clock.now();
        let whose = Caller::new(caller.org, name.as_str(), crate::rights::Grants::default());
        let (session, secret) = self.new_session(&whose, LINK, now + LINK_LIFE);
        let audit = vec![caller.audit(now, "session.link", &name, Value::Null)];
        change(&self.inner, Change { records: vec![session], audit, grants_of: None, decided: None }, "session", "")
            .await?;
        Ok(secret)
    }

    /// Turns a link into a session; the link is used up.
    pub async fn sign_in(&self, link: &str) -> Result<(String, Time), Error> {
        let over = || Error::Unauthorised("this link was used already, or is too old: ask for another".into());
        let record = self.inner.store.record_with_key(LINK, &secret_hash(link)).await?.ok_or_else(over)?;
        let was: Session = body(&record)?;
        let now = self.inner.clock.now();
        if was.expires <= now {
            return Err(over());
        }
        let caller = Caller::new(record.org, was.user.as_str(), crate::rights::Grants::default());
        let expires = now + SESSION_LIFE;
        let (session, secret) = self.new_session(&caller, Session::KIND, expires);
        // Of two who use it at the same time one comes second: the record it replaces is gone.
        let used = RecordChange::Replace(Record { due: Some(now), key: record.id.clone(), ..record.clone() });
        let gone = RecordChange::Remove { kind: LINK.into(), id: record.id };
        let audit = vec![caller.audit(now, "session.start", &was.user, Value::Null)];
        let records = vec![used, gone, session];
        match self.inner.store.change(Change { records, audit, grants_of: None, decided: None }).await? {
            Ok(()) => Ok((secret, expires)),
            Err(_) => Err(over()),
        }
    }

    pub async fn sign_out(&self, secret: &str) -> Result<(), Error> {
        let Some(record) = self.inner.store.record_with_key(Session::KIND, &secret_hash(secret)).await? else {
            return Ok(());
        };
        let session: Session = body(&record)?;
        let caller = Caller::new(record.org, session.user.as_str(), crate::rights::Grants::default());
        let audit = vec![caller.audit(self.inner.clock.now(), "session.end", &session.user, Value::Null)];
        let records = vec![RecordChange::Remove { kind: Session::KIND.into(), id: record.id }];
        // Who is signed in is remembered by epoch.
        let done = Change { records, audit, grants_of: Some(record.org), decided: None };
        change(&self.inner, done, "session", "").await
    }

    fn new_session(&self, caller: &Caller, kind: &str, expires: Time) -> (RecordChange, String) {
        let now = self.inner.clock.now();
        let secret = BASE64.encode(self.inner.ids.bytes::<32>());
        let session = Session { user: caller.name.to_string(), created: now, expires };
        let record = Record {
            kind: kind.into(),
            id: self.inner.ids.public("ses", now),
            org: caller.org,
            key: secret_hash(&secret),
            due: Some(expires),
            body: json(&session),
            version: 0,
        };
        (RecordChange::Create(record), secret)
    }

    pub async fn users(&self, caller: &Caller) -> Result<Vec<With<User>>, Error> {
        caller.check(Right::Admin)?;
        list(&self.inner, caller.org).await
    }

    pub async fn user(&self, caller: &Caller, user: &str) -> Result<With<User>, Error> {
        caller.check(Right::Admin)?;
        read(&find::<User>(&self.inner, caller.org, user).await?)
    }

    pub async fn create_user(&self, caller: &Caller, new: NewUser) -> Result<With<User>, Error> {
        caller.check(Right::Admin)?;
        check_name("name", &new.name)?;
        check_grants(caller, &new.grants)?;
        settled(|| self.create_user_once(caller, new.clone())).await
    }

    async fn create_user_once(&self, caller: &Caller, new: NewUser) -> Result<With<User>, Error> {
        let decided = auth(&self.inner, caller.org).await?;
        self.check_roles(caller, &new.roles).await?;
        let now = self.inner.clock.now();
        let NewUser { name, roles, grants } = new;
        let user = User { name, roles, grants, disabled: false, created: now, by: caller.name.to_string() };
        let record = named(&self.inner, caller.org, "user", &user.name, &user);
        let detail = json!({"roles": user.roles, "grants": user.grants});
        let audit = vec![caller.audit(now, "user.create", &user.name, detail)];
        let id = record.id.clone();
        let records = vec![RecordChange::Create(record)];
        let done = Change { records, audit, grants_of: Some(caller.org), decided: Some(decided) };
        change(&self.inner, done, "user", &user.name).await?;
        Ok(With { id, is: user })
    }

    pub async fn change_user(&self, caller: &Caller, user: &str, to: UserChange) -> Result<With<User>, Error> {
        caller.check(Right::Admin)?;
        check_grants(caller, to.grants.as_deref().unwrap_or_default())?;
        let name = settled(|| self.change_user_once(caller, user, to.clone())).await?;
        self.user(caller, &name).await
    }

    /// Gives the user's name.
    async fn change_user_once(&self, caller: &Caller, user: &str, to: UserChange) -> Result<String, Error> {
        // Two who take each other's rights away must not both succeed.
        let decided = auth(&self.inner, caller.org).await?;
        self.check_roles(caller, to.roles.as_deref().unwrap_or_default()).await?;
        let record = find::<User>(&self.inner, caller.org, user).await?;
        let mut user: User = body(&record)?;
        user.roles = to.roles.unwrap_or(user.roles);
        user.grants = to.grants.unwrap_or(user.grants);
        user.disabled = to.disabled.unwrap_or(user.disabled);
        self.keep_an_admin(caller, Some(&user), None).await?;
        let detail = json!({"roles": user.roles, "grants": user.grants, "disabled": user.disabled});
        let audit = caller.audit(self.inner.clock.now(), "user.change", &user.name, detail);
        self.replace(record, &user, audit, decided).await?;
        Ok(user.name)
    }

    /// The user can no longer do anything; what they did stays theirs, so their name is not free.
    pub async fn disable_user(&self, caller: &Caller, user: &str) -> Result<(), Error> {
        self.change_user(caller, user, UserChange { disabled: Some(true), ..UserChange::default() }).await.map(|_| ())
    }

    pub async fn roles(&self, caller: &Caller) -> Result<Vec<Role>, Error> {
        caller.check(Right::Admin)?;
        let of_product = |(name, grants): &(&str, &[&str])| Role {
            name: name.to_string(),
            grants: grants.iter().map(|grant| grant.to_string()).collect(),
            created: Time(0),
            by: "stepwell".into(),
        };
        let own: Vec<With<Role>> = list(&self.inner, caller.org).await?;
        Ok(BUILT_IN_ROLES.iter().map(of_product).chain(own.into_iter().map(|role| role.is)).collect())
    }

    /// Makes a role, or gives it other grants.
    pub async fn put_role(&self, caller: &Caller, name: &str, grants: Vec<String>) -> Result<Role, Error> {
        caller.check(Right::Admin)?;
        check_name("name", name)?;
        check_grants(caller, &grants)?;
        if BUILT_IN_ROLES.iter().any(|(built_in, _)| *built_in == name) {
            return Err(Error::NotNow(format!("the role {name:?} comes with the product and cannot be changed")));
        }
        settled(|| self.put_role_once(caller, name, grants.clone())).await
    }

    async fn put_role_once(&self, caller: &Caller, name: &str, grants: Vec<String>) -> Result<Role, Error> {
        let now = self.inner.clock.now();
        let audit = caller.audit(now, "role.put", name, json!({"grants": grants}));
        let role = Role { name: name.to_string(), grants, created: now, by: caller.name.to_string() };
        let decided = auth(&self.inner, caller.org).await?;
        self.keep_an_admin(caller, None, Some(&role)).await?;
        match self.inner.store.record_with_key(Role::KIND, &name_key(caller.org, name)).await? {
            Some(record) => {
                let before: Role = body(&record)?;
                let role = Role { created: before.created, by: before.by, ..role };
                self.replace(record, &role, audit, decided).await?;
                Ok(role)
            }
            None => {
                let record = RecordChange::Create(named(&self.inner, caller.org, "role", name, &role));
                let (records, audit, grants_of) = (vec![record], vec![audit], Some(caller.org));
                let done = Change { records, audit, grants_of, decided: Some(decided) };
                change(&self.inner, done, "role", name).await?;
                Ok(role)
            }
        }
    }

    pub async fn remove_role(&self, caller: &Caller, name: &str) -> Result<(), Error> {
        caller.check(Right::Admin)?;
        settled(|| self.remove_role_once(caller, name)).await
    }

    async fn remove_role_once(&self, caller: &Caller, name: &str) -> Result<(), Error> {
        let decided = auth(&self.inner, caller.org).await?;
        let record = find::<Role>(&self.inner, caller.org, name).await?;
        let users: Vec<With<User>> = list(&self.inner, caller.org).await?;
        if let Some(user) = users.iter().find(|user| user.is.roles.iter().any(|role| role == name)) {
            return Err(Error::NotNow(format!("{} still has the role {name:?}: take it away first", user.is.name)));
        }
        let audit = vec![caller.audit(self.inner.clock.now(), "role.remove", name, Value::Null)];
        let records = vec![RecordChange::Remove { kind: Role::KIND.into(), id: record.id }];
        let done = Change { records, audit, grants_of: Some(caller.org), decided: Some(decided) };
        change(&self.inner, done, "role", name).await
    }

    /// All of the organisation for those who administer it; their own for others.
    pub async fn keys(&self, caller: &Caller) -> Result<Vec<With<Key>>, Error> {
        let mut all: Vec<With<Key>> = list(&self.inner, caller.org).await?;
        let used: Vec<With<Used>> = list(&self.inner, caller.org).await?;
        let used: HashMap<String, Time> = used.into_iter().map(|used| (used.id, used.is.at)).collect();
        let admin = caller.may(Right::Admin);
        all.retain(|key| admin || *key.is.user == *caller.name);
        all.iter_mut().for_each(|key| key.is.used = used.get(&key.id).copied());
        Ok(all)
    }

    /// A new key, and the key itself, which is never shown again.
    pub async fn create_key(&self, caller: &Caller, new: NewKey) -> Result<(With<Key>, String), Error> {
        let user = new.user.clone().unwrap_or_else(|| caller.name.to_string());
        // Who may act only through a narrow key must not make a wider one.
        if *user != *caller.name || caller.key.is_some() {
            caller.check(Right::Admin)?;
        }
        check_label("name", &new.name)?;
        check_grants(caller, new.grants.as_deref().unwrap_or_default())?;
        let now = self.inner.clock.now();
        if new.expires.is_some_and(|expires| expires <= now) {
            return Err(bad("expires_at", "this time is over already"));
        }
        let user: User = body(&find::<User>(&self.inner, caller.org, &user).await?)?;
        if new.grants.is_none() {
            // It will be good for all that its user may.
            check_grants(caller, &self.all_grants(caller.org, &user).await?)?;
        }
        if caller.grants.is_agent() && !new.agent {
            return Err(Error::Refused("an agent's key makes keys of agents only".into()));
        }
        let secret = self.new_secret();
        let key = Key {
            name: new.name,
            user: user.name,
            agent: new.agent,
            grants: new.grants,
            start: secret.chars().take(9).collect(),
            created: now,
            by: caller.name.to_string(),
            expires: new.expires,
            revoked: None,
            paused: false,
            used: None,
        };
        let record = key_record(&self.inner, caller.org, &key, &secret);
        let detail = json!({"name": key.name, "user": key.user, "agent": key.agent, "grants": key.grants});
        let audit = vec![caller.audit(now, "key.create", &record.id, detail)];
        let id = record.id.clone();
        let done =
            Change { records: vec![RecordChange::Create(record)], audit, grants_of: Some(caller.org), decided: None };
        change(&self.inner, done, "key", &id).await?;
        Ok((With { id, is: key }, secret))
    }

    pub async fn change_key(&self, caller: &Caller, id: &str, to: KeyChange) -> Result<With<Key>, Error> {
        to.name.iter().try_for_each(|name| check_label("name", name))?;
        settled(|| self.change_key_once(caller, id, to.clone())).await
    }

    async fn change_key_once(&self, caller: &Caller, id: &str, to: KeyChange) -> Result<With<Key>, Error> {
        let decided = auth(&self.inner, caller.org).await?;
        let (record, mut key) = self.own_key(caller, id).await?;
        key.name = to.name.unwrap_or(key.name);
        key.paused = to.paused.unwrap_or(key.paused);
        let detail = json!({"name": key.name, "paused": key.paused});
        let audit = caller.audit(self.inner.clock.now(), "key.change", id, detail);
        self.replace(record, &key, audit, decided).await?;
        Ok(With { id: id.to_string(), is: key })
    }

    /// The key opens nothing any more, for ever. Runs it started go on.
    pub async fn revoke_key(&self, caller: &Caller, id: &str) -> Result<(), Error> {
        settled(|| self.revoke_key_once(caller, id)).await
    }

    async fn revoke_key_once(&self, caller: &Caller, id: &str) -> Result<(), Error> {
        let decided = auth(&self.inner, caller.org).await?;
        let (record, mut key) = self.own_key(caller, id).await?;
        let now = self.inner.clock.now();
        key.revoked = key.revoked.or(Some(now));
        let audit = caller.audit(now, "key.revoke", id, json!({"name": key.name}));
        self.replace(record, &key, audit, decided).await
    }

    async fn own_key(&self, caller: &Caller, id: &str) -> Result<(Record, Key), Error> {
        let none = || Error::NotFound { what: "key", name: id.to_string() };
        let record = self.inner.store.record(Key::KIND, id).await?;
        let record = record.filter(|record| record.org == caller.org).ok_or_else(none)?;
        let key: Key = body(&record)?;
        if *key.user != *caller.name || caller.key.is_some() {
            caller.check(Right::Admin)?;
        }
        Ok((record, key))
    }

    /// `sw_` and 256 random bits.
    pub fn new_secret(&self) -> String {
        format!("sw_{}", BASE64.encode(self.inner.ids.bytes::<32>()))
    }

    pub async fn has_users(&self) -> Result<bool, Error> {
        let users: Vec<With<User>> = list(&self.inner, OrgId(1)).await?;
        Ok(!users.is_empty())
    }

    /// Makes the first user of the default organisation, with these two keys. False if there are users already.
    pub async fn bootstrap(&self, admin_key: &str, agent_key: &str) -> Result<bool, Error> {
        let org = OrgId(1);
        if self.has_users().await? {
            return Ok(false);
        }
        let records = first_people(&self.inner, org, &["admin", "operator"], admin_key, Some(agent_key));
        let audit = vec![NewAudit {
            org,
            ..Caller::local("stepwell").audit(self.inner.clock.now(), "organisation.create", "default", Value::Null)
        }];
        match self.inner.store.change(Change { records, audit, grants_of: Some(org), decided: None }).await? {
            Ok(()) => {
                self.inner.epoch_moved(org);
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
            if self.inner.store.record_with_key(Key::KIND, &secret_hash(secret)).await?.is_some() {
                return Ok(());
            }
            let mut records = first_people(&self.inner, org, &["admin", "operator"], secret, None);
            if self.has_users().await? {
                records.remove(0);
            }
            let audit =
                vec![Caller::local("stepwell").audit(self.inner.clock.now(), "key.admit", "admin", Value::Null)];
            if self.inner.store.change(Change { records, audit, grants_of: Some(org), decided: None }).await?.is_ok() {
                self.inner.epoch_moved(org);
            }
        }
        Err(Error::Changed("key"))
    }

    async fn check_roles(&self, caller: &Caller, roles: &[String]) -> Result<(), Error> {
        for (n, role) in roles.iter().enumerate() {
            let Some(grants) = people::role_grants(&self.inner, caller.org, role).await? else {
                let known = self.roles(caller).await?.into_iter().map(|role| role.name).collect::<Vec<_>>().join(", ");
                return Err(bad(&format!("roles[{n}]"), &format!("there is no role {role:?}; known: {known}")));
            };
            check_grants(caller, &grants)?;
        }
        Ok(())
    }

    /// In person and by roles.
    async fn all_grants(&self, org: OrgId, user: &User) -> Result<Vec<String>, Error> {
        let mut grants = user.grants.clone();
        for role in &user.roles {
            grants.extend(people::role_grants(&self.inner, org, role).await?.unwrap_or_default());
        }
        Ok(grants)
    }

    /// An organisation that nobody can administer is lost, and so is a server that nobody operates.
    async fn keep_an_admin(&self, caller: &Caller, user: Option<&User>, role: Option<&Role>) -> Result<(), Error> {
        let users: Vec<With<User>> = list(&self.inner, caller.org).await?;
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for With { is, .. } in users {
            let changed = user.filter(|user| user.name == is.name).unwrap_or(&is);
            before.extend(if is.disabled { Vec::new() } else { self.all_grants(caller.org, &is).await? });
            if changed.disabled {
                continue;
            }
            after.extend(changed.grants.clone());
            for name in &changed.roles {
                match role.filter(|role| role.name == *name) {
                    Some(role) => after.extend(role.grants.clone()),
                    None => after.extend(people::role_grants(&self.inner, caller.org, name).await?.unwrap_or_default()),
                }
            }
        }
        for right in [Right::Admin, Right::Operate] {
            let has = |grants: &[String]| grants.iter().any(|grant| grant == right.name());
            if has(&before) && !has(&after) {
                return Err(Error::NotNow(format!("nobody would be left who has the right {right}")));
            }
        }
        Ok(())
    }

    /// Writes a record anew, and that rights may have changed.
    async fn replace<T: Kept>(&self, record: Record, is: &T, audit: NewAudit, decided: Auth) -> Result<(), Error> {
        let (org, id) = (record.org, record.id.clone());
        let records = vec![RecordChange::Replace(Record { body: json(is), ..record })];
        let done = Change { records, audit: vec![audit], grants_of: Some(org), decided: Some(decided) };
        change(&self.inner, done, T::KIND, &id).await
    }
}

/// The first people of an organisation: an administrator with a key, and a key for agents.
pub(super) fn first_people(
    inner: &Inner,
    org: OrgId,
    grants: &[&str],
    admin_key: &str,
    agent_key: Option<&str>,
) -> Vec<RecordChange> {
    let now = inner.clock.now();
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
        RecordChange::Create(key_record(inner, org, &key, secret))
    };
    let mut records = vec![RecordChange::Create(named(inner, org, "user", &user.name, &user))];
    records.push(key("admin", admin_key, None));
    const AGENT: &[&str] = &["workflow.define", "workflow.run", "workflow.read", "tool:*", "connection:*", "secret:*"];
    records.extend(agent_key.map(|secret| key("agent", secret, Some(AGENT))));
    records
}

fn key_record(inner: &Inner, org: OrgId, key: &Key, secret: &str) -> Record {
    let id = inner.ids.public("key", key.created);
    let (kind, body) = (Key::KIND.to_string(), json(key));
    Record { kind, id, org, key: secret_hash(secret), due: None, body, version: 0 }
}

pub(super) fn named<T: Kept>(inner: &Inner, org: OrgId, prefix: &str, name: &str, is: &T) -> Record {
    let id = inner.ids.public(prefix, inner.clock.now());
    Record { kind: T::KIND.into(), id, org, key: name_key(org, name), due: None, body: json(is), version: 0 }
}

/// Something of the organisation, by its id or its name.
pub(super) async fn find<T: Kept>(inner: &Inner, org: OrgId, name: &str) -> Result<Record, Error> {
    let by_id = inner.store.record(T::KIND, name).await?.filter(|record| record.org == org);
    let found = match by_id {
        None => inner.store.record_with_key(T::KIND, &name_key(org, name)).await?,
        found => found,
    };
    found.ok_or_else(|| Error::NotFound { what: T::KIND, name: name.to_string() })
}

pub(super) async fn list<T: Kept>(inner: &Inner, org: OrgId) -> Result<Vec<With<T>>, Error> {
    let filter = RecordFilter { kind: T::KIND.into(), org: Some(org), prefix: String::new(), after: None, limit: MOST };
    inner.store.records(filter).await?.iter().map(read).collect()
}

pub(super) fn read<T: Kept>(record: &Record) -> Result<With<T>, Error> {
    Ok(With { id: record.id.clone(), is: body(record)? })
}

/// Says when a key was used.
pub(crate) async fn note_use(inner: &Arc<Inner>, org: OrgId, id: &str, now: Time) -> Result<(), Error> {
    let body = json(&Used { at: now });
    let record = match inner.store.record(Used::KIND, id).await? {
        Some(record) => RecordChange::Replace(Record { body, ..record }),
        None => {
            let (kind, key) = (Used::KIND.to_string(), id.to_string());
            RecordChange::Create(Record { kind, id: id.to_string(), org, key, due: None, body, version: 0 })
        }
    };
    // If somebody else says so at the same time, theirs will do.
    let _ = inner.store.change(Change { records: vec![record], ..Change::default() }).await?;
    Ok(())
}

pub(super) fn bad(path: &str, message: &str) -> Error {
    Error::Input { path: path.into(), message: message.into() }
}

/// Names that stand in rights and addresses.
pub(super) fn check_name(path: &str, name: &str) -> Result<(), Error> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._@+-".contains(c);
    if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(plain) {
        return Err(bad(path, &format!("1 to {MAX_NAME} letters, digits and any of . _ @ + - are allowed")));
    }
    Ok(())
}

/// Names for people to read.
pub(super) fn check_label(path: &str, name: &str) -> Result<(), Error> {
    if name.trim().is_empty() || name.chars().count() > MAX_NAME || name.chars().any(char::is_control) {
        return Err(bad(path, &format!("1 to {MAX_NAME} characters that can be printed are needed")));
    }
    Ok(())
}

fn check_grants(caller: &Caller, grants: &[String]) -> Result<(), Error> {
    if grants.len() > MAX_GRANTS {
        return Err(bad("grants", &format!("there are more than {MAX_GRANTS}")));
    }
    for (n, grant) in grants.iter().enumerate() {
        check_grant(grant).map_err(|why| bad(&format!("grants[{n}]"), &why))?;
        if !caller.grants.cover(grant) {
            return Err(Error::Refused(format!("{} does not have {grant} and so cannot give it", caller.name)));
        }
    }
    Ok(())
}
