//! Secrets of an organisation. Values come in and are sealed; no command gives one back.

use super::change::{auth, change, settled};
use super::people::{bad, find, list, named, read};
use super::{Caller, Right, With};
use crate::engine::{Engine, Inner};
use crate::error::Error;
use crate::hosts::{MOST_HOSTS, check_host};
use crate::mask::SHORTEST;
use crate::notify::Channel;
use crate::people::{Kept, body, name_key};
use crate::record::json;
use crate::safe::{CHECK, CHECK_OWNER, Check, Database, Keeps, Secret, is_name};
use crate::secrets;
use crate::vault::{Owner, Sealed};
use serde_json::{Value, json};
use stepwell_store::{Change, OrgId, Record, RecordChange};

/// Bytes of a secret.
const MAX_SECRET: usize = 16 * 1024;
/// Looks over everything at the most: others may go on sealing with an older key.
const ROUNDS: u32 = 5;

/// What a secret is set to.
#[derive(Clone, Default)]
pub struct NewSecret {
    /// The one it has, if none is given.
    pub value: Option<String>,
    /// Those it has, if none are given; an empty list is anywhere.
    pub hosts: Option<Vec<String>>,
}

/// What came of sealing everything anew.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Rotated {
    /// The key that everything is sealed with now.
    pub key: String,
    /// Values that were sealed with another one before.
    pub sealed: u64,
    /// What no key here opens, with the reason.
    pub locked: Vec<String>,
}

impl Engine {
    pub async fn secrets(&self, caller: &Caller) -> Result<Vec<With<Secret>>, Error> {
        caller.check(Right::Admin)?;
        list(&self.inner, caller.org).await
    }

    pub async fn secret(&self, caller: &Caller, name: &str) -> Result<With<Secret>, Error> {
        caller.check(Right::Admin)?;
        read(&find::<Secret>(&self.inner, caller.org, name).await?)
    }

    /// Makes a secret, or gives it another value or other hosts. Counts from the next step on, on every node.
    pub async fn put_secret(&self, caller: &Caller, name: &str, new: NewSecret) -> Result<With<Secret>, Error> {
        caller.check(Right::Admin)?;
        if !is_name(name) {
            let message = "a name of up to 100 letters, digits and _ is needed, which does not begin with a digit";
            return Err(bad("name", message));
        }
        if let Some(value) = &new.value {
            check_value(value)?;
        }
        check_hosts(new.hosts.as_deref().unwrap_or_default())?;
        settled(|| self.put_secret_once(caller, name, new.clone())).await
    }

    async fn put_secret_once(&self, caller: &Caller, name: &str, new: NewSecret) -> Result<With<Secret>, Error> {
        let inner = &self.inner;
        let decided = auth(inner, caller.org).await?;
        let before = inner.store.record_with_key(Secret::KIND, &name_key(caller.org, name)).await?;
        let was: Option<Secret> = before.as_ref().map(body).transpose()?;
        let now = inner.clock.now();
        let (sealed, short, version) = match (&new.value, &was) {
            (Some(value), was) => {
                let sealed = seal(inner, Owner { org: caller.org, kind: Secret::KIND, name }, value).await?;
                let short = value.trim().chars().count() < SHORTEST;
                (sealed, short, was.as_ref().map_or(1, |was| was.version + 1))
            }
            (None, Some(was)) => (was.sealed.clone(), was.short, was.version),
            (None, None) => return Err(bad("value", "a new secret needs a value")),
        };
        let secret = Secret {
            name: name.to_string(),
            hosts: new.hosts.or_else(|| was.as_ref().map(|was| was.hosts.clone())).unwrap_or_default(),
            sealed,
            created: was.as_ref().map_or(now, |was| was.created),
            changed: now,
            by: caller.name.to_string(),
            version,
            short,
        };
        let detail = json!({"hosts": secret.hosts, "version": version});
        let audit = vec![caller.audit(now, "secret.put", name, detail)];
        let record = put(inner, caller.org, before, ("sec", name), &secret);
        let id = record.0;
        let done = Change { records: vec![record.1], audit, grants_of: Some(caller.org), decided: Some(decided) };
        change(inner, done, "secret", name).await?;
        Ok(With { id, is: secret })
    }

    pub async fn remove_secret(&self, caller: &Caller, name: &str) -> Result<(), Error> {
        caller.check(Right::Admin)?;
        settled(|| remove::<Secret>(self, caller, "secret.remove", name)).await
    }

    /// Seals everything of all organisations anew that is not sealed with the first of this node's master keys.
    pub async fn rotate_secrets(&self, caller: &Caller) -> Result<Rotated, Error> {
        caller.check(Right::Operate)?;
        let inner = &self.inner;
        secrets::check(inner).await?;
        ready(inner).await?;
        let mut done =
            Rotated { key: inner.safe.vault.ids().first().cloned().unwrap_or_default(), ..Rotated::default() };
        for _ in 0..ROUNDS {
            done.locked.clear();
            let kept = self.reseal::<Secret>(&mut done).await? + self.reseal::<Database>(&mut done).await?;
            let sealed = kept + self.reseal::<Channel>(&mut done).await?;
            if sealed == 0 {
                break;
            }
            done.sealed += sealed;
        }
        if let Some(record) = inner.store.record(Check::KIND, CHECK).await? {
            let sealed = seal(inner, CHECK_OWNER, CHECK).await?;
            let record = RecordChange::Replace(Record { body: json(&Check { sealed }), ..record });
            let detail = json!({"key": done.key, "sealed": done.sealed, "locked": done.locked.len()});
            let audit = vec![caller.audit(inner.clock.now(), "secret.rotate", "*", detail)];
            change(inner, Change { records: vec![record], audit, ..Change::default() }, "master key", "").await?;
        }
        Ok(done)
    }

    /// One look over all records of a kind; how many were sealed anew.
    async fn reseal<T: Keeps>(&self, done: &mut Rotated) -> Result<u64, Error> {
        let inner = &self.inner;
        let mut sealed = 0;
        for record in inner.safe.all::<T>().await? {
            let mut is: T = body(&record)?;
            if is.sealed().key == done.key {
                continue;
            }
            let name = is.name().to_string();
            let value = match inner.safe.open::<T>(&record, &name, is.sealed()) {
                Ok(value) => value,
                Err(why) => {
                    done.locked.push(why.to_string());
                    continue;
                }
            };
            let owner = Owner { org: record.org, kind: T::KIND, name: &name };
            *is.sealed() = seal(inner, owner, &value).await?;
            let record = RecordChange::Replace(Record { body: json(&is), ..record });
            // One that was changed meanwhile is looked at again in the next round.
            let written = inner.store.change(Change { records: vec![record], ..Change::default() }).await?;
            sealed += u64::from(written.is_ok());
        }
        Ok(sealed)
    }
}

/// Makes sure that there is a master key, and that it is everybody's.
async fn ready(inner: &Inner) -> Result<(), Error> {
    if inner.store.record(Check::KIND, CHECK).await?.is_none() {
        inner.safe.vault.ready(inner.ids.bytes()).map_err(Error::NotNow)?;
        let sealed = inner.safe.vault.seal(CHECK_OWNER, inner.ids.bytes(), CHECK).map_err(Error::NotNow)?;
        let (kind, id, org) = (Check::KIND.to_string(), CHECK.to_string(), CHECK_OWNER.org);
        let record = Record { kind, key: id.clone(), id, org, due: None, body: json(&Check { sealed }), version: 0 };
        // If another node was quicker, theirs is the one.
        let _ = inner.store.change(Change { records: vec![RecordChange::Create(record)], ..Change::default() }).await?;
    }
    secrets::check(inner).await
}

/// Seals a value under the first master key, which is made if need be.
pub(super) async fn seal(inner: &Inner, owner: Owner<'_>, value: &str) -> Result<Sealed, Error> {
    ready(inner).await?;
    inner.safe.vault.seal(owner, inner.ids.bytes(), value).map_err(Error::NotNow)
}

/// The change that puts this in place of what is there, or there; and its id.
pub(super) fn put<T: Kept>(
    inner: &Inner,
    org: OrgId,
    before: Option<Record>,
    (prefix, name): (&str, &str),
    is: &T,
) -> (String, RecordChange) {
    match before {
        Some(before) => (before.id.clone(), RecordChange::Replace(Record { body: json(is), ..before })),
        None => {
            let record = named(inner, org, prefix, name, is);
            (record.id.clone(), RecordChange::Create(record))
        }
    }
}

pub(super) async fn remove<T: Kept>(engine: &Engine, caller: &Caller, action: &str, name: &str) -> Result<(), Error> {
    let inner = &engine.inner;
    let decided = auth(inner, caller.org).await?;
    let record = find::<T>(inner, caller.org, name).await?;
    let audit = vec![caller.audit(inner.clock.now(), action, name, Value::Null)];
    let records = vec![RecordChange::Remove { kind: T::KIND.into(), id: record.id }];
    let done = Change { records, audit, grants_of: Some(caller.org), decided: Some(decided) };
    change(inner, done, T::KIND, name).await
}

fn check_value(value: &str) -> Result<(), Error> {
    if value.is_empty() || value.len() > MAX_SECRET {
        return Err(bad("value", &format!("1 to {MAX_SECRET} bytes are needed")));
    }
    Ok(())
}

fn check_hosts(hosts: &[String]) -> Result<(), Error> {
    if hosts.len() > MOST_HOSTS {
        return Err(bad("hosts", &format!("there are more than {MOST_HOSTS}")));
    }
    let faults =
        hosts.iter().enumerate().filter_map(|(n, host)| Some((format!("hosts[{n}]"), check_host(host).err()?)));
    let faults: Vec<(String, String)> = faults.collect();
    if faults.is_empty() { Ok(()) } else { Err(Error::Inputs(faults)) }
}
