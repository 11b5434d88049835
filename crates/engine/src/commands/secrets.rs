//! Secrets of an organisation. Values come in and are sealed; no command gives one back.

use super::Secrets;
use super::change::{auth, change, new_named, remove, settled};
use super::input::bad;
use crate::access::Right;
use crate::error::Error;
use crate::notify::Channel;
use crate::records::{Kept, With, body, find, json as json_text, list, name_key, put, read};
use crate::rooms::Rooms;
use crate::secrets::{
    CHECK, CHECK_OWNER, Check, MOST_HOSTS, Owner, SHORTEST, Sealed, SealedRecord, Secret, check_host, is_name,
};
use crate::workflows::Database;
use serde_json::json;
use stepwell_store::{Change, Record, RecordChange};

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

impl Secrets<'_> {
    pub async fn list(&self) -> Result<Vec<With<Secret>>, Error> {
        self.caller.check(Right::Admin)?;
        list(&*self.rooms.cluster.store, self.caller.org).await
    }

    pub async fn get(&self, name: &str) -> Result<With<Secret>, Error> {
        self.caller.check(Right::Admin)?;
        read(&find::<Secret>(&*self.rooms.cluster.store, self.caller.org, name).await?)
    }

    /// Makes a secret, or gives it another value or other hosts. Counts from the next step on, on every node.
    pub async fn put(&self, name: &str, new: NewSecret) -> Result<With<Secret>, Error> {
        self.caller.check(Right::Admin)?;
        if !is_name(name) {
            let message = "a name of up to 100 letters, digits and _ is needed, which does not begin with a digit";
            return Err(bad("name", message));
        }
        if let Some(value) = &new.value {
            check_value(value)?;
        }
        check_hosts(new.hosts.as_deref().unwrap_or_default())?;
        settled(|| self.put_once(name, new.clone())).await
    }

    async fn put_once(&self, name: &str, new: NewSecret) -> Result<With<Secret>, Error> {
        let decided = auth(self.rooms, self.caller.org).await?;
        let before = self.rooms.cluster.store.record_with_key(Secret::KIND, &name_key(self.caller.org, name)).await?;
        let was: Option<Secret> = before.as_ref().map(body).transpose()?;
        let now = self.rooms.cluster.clock.now();
        let (sealed, short, version) = match (&new.value, &was) {
            (Some(value), was) => {
                let sealed = seal(self.rooms, Owner { org: self.caller.org, kind: Secret::KIND, name }, value).await?;
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
            by: self.caller.name.to_string(),
            version,
            short,
        };
        let detail = json!({"hosts": secret.hosts, "version": version});
        let audit = vec![self.caller.audit(now, "secret.put", name, detail)];
        let (id, record) = put(before, &secret, || new_named(self.rooms, self.caller.org, "sec", name, &secret));
        let done = Change { records: vec![record], audit, grants_of: Some(self.caller.org), decided: Some(decided) };
        change(self.rooms, done, "secret", name).await?;
        Ok(With { id, is: secret })
    }

    pub async fn remove(&self, name: &str) -> Result<(), Error> {
        self.caller.check(Right::Admin)?;
        settled(|| remove::<Secret>(self.rooms, self.caller, "secret.remove", name)).await
    }

    /// Seals everything of all organisations anew that is not sealed with the first of this node's master keys.
    pub async fn rotate(&self) -> Result<Rotated, Error> {
        self.caller.check(Right::Operate)?;
        self.rooms.secrets.check().await?;
        ready(self.rooms).await?;
        let mut done = Rotated {
            key: self.rooms.secrets.sealed.vault.ids().first().cloned().unwrap_or_default(),
            ..Rotated::default()
        };
        for _ in 0..ROUNDS {
            done.locked.clear();
            let kept = self.reseal::<Secret>(&mut done).await? + self.reseal::<Database>(&mut done).await?;
            let sealed = kept + self.reseal::<Channel>(&mut done).await?;
            if sealed == 0 {
                break;
            }
            done.sealed += sealed;
        }
        if let Some(record) = self.rooms.cluster.store.record(Check::KIND, CHECK).await? {
            let sealed = seal(self.rooms, CHECK_OWNER, CHECK).await?;
            let record = RecordChange::Replace(Record { body: json_text(&Check { sealed }), ..record });
            let detail = json!({"key": done.key, "sealed": done.sealed, "locked": done.locked.len()});
            let audit = vec![self.caller.audit(self.rooms.cluster.clock.now(), "secret.rotate", "*", detail)];
            change(self.rooms, Change { records: vec![record], audit, ..Change::default() }, "master key", "").await?;
        }
        Ok(done)
    }

    /// One look over all records of a kind; how many were sealed anew.
    async fn reseal<T: SealedRecord>(&self, done: &mut Rotated) -> Result<u64, Error> {
        let mut sealed = 0;
        for record in self.rooms.secrets.sealed.all::<T>().await? {
            let mut is: T = body(&record)?;
            if is.sealed().key == done.key {
                continue;
            }
            let name = is.name().to_string();
            let value = match self.rooms.secrets.sealed.open::<T>(&record, &name, is.sealed()) {
                Ok(value) => value,
                Err(why) => {
                    done.locked.push(why.to_string());
                    continue;
                }
            };
            let owner = Owner { org: record.org, kind: T::KIND, name: &name };
            *is.sealed() = seal(self.rooms, owner, &value).await?;
            let record = RecordChange::Replace(Record { body: json_text(&is), ..record });
            // One that was changed meanwhile is looked at again in the next round.
            let written =
                self.rooms.cluster.store.change(Change { records: vec![record], ..Change::default() }).await?;
            sealed += u64::from(written.is_ok());
        }
        Ok(sealed)
    }
}

/// Makes sure that there is a master key, and that it is everybody's.
async fn ready(rooms: &Rooms) -> Result<(), Error> {
    if rooms.cluster.store.record(Check::KIND, CHECK).await?.is_none() {
        rooms.secrets.sealed.vault.ready(rooms.cluster.ids.bytes()).map_err(Error::NotNow)?;
        let sealed =
            rooms.secrets.sealed.vault.seal(CHECK_OWNER, rooms.cluster.ids.bytes(), CHECK).map_err(Error::NotNow)?;
        let (kind, id, org) = (Check::KIND.to_string(), CHECK.to_string(), CHECK_OWNER.org);
        let record =
            Record { kind, key: id.clone(), id, org, due: None, body: json_text(&Check { sealed }), version: 0 };
        // If another node was quicker, theirs is the one.
        let _ = rooms
            .cluster
            .store
            .change(Change { records: vec![RecordChange::Create(record)], ..Change::default() })
            .await?;
    }
    rooms.secrets.check().await
}

/// Seals a value under the first master key, which is made if need be.
pub(super) async fn seal(rooms: &Rooms, owner: Owner<'_>, value: &str) -> Result<Sealed, Error> {
    ready(rooms).await?;
    rooms.secrets.sealed.vault.seal(owner, rooms.cluster.ids.bytes(), value).map_err(Error::NotNow)
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
