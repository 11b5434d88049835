//! Secrets of an organisation. Values are sealed when they are set; no command returns one.

use super::Secrets;
use super::change::{change, current_auth, new_named, remove, retry_on_conflict};
use super::input::invalid;
use crate::access::{Key, Right, secret_hash};
use crate::error::Error;
use crate::notify::Channel;
use crate::records::{Kept, With, body, find, json as json_text, list, name_key, put, read};
use crate::rooms::Rooms;
use crate::secrets::{
    CHECK, CHECK_OWNER, Chain, Check, MOST_HOSTS, Owner, SHORTEST, Sealed, SealedRecord, Secret, check_host, is_name,
};
use crate::workflows::Database;
use serde_json::json;
use stepwell_store::{Change, Record, RecordChange};

/// Maximum size of a secret, in bytes.
const MAX_SECRET: usize = 16 * 1024;
/// Length of the shortest text that is looked up as a key, and how many such texts of one value are.
const SHORTEST_KEY: usize = 20;
const MAX_KEYS: usize = 16;
/// Maximum number of passes over all records: other nodes may still seal with an older key.
const MAX_PASSES: u32 = 5;

/// The settings of a secret.
#[derive(Clone, Default)]
pub struct NewSecret {
    /// `None` keeps the current value.
    pub value: Option<String>,
    /// `None` keeps the current hosts; an empty list allows all hosts.
    pub hosts: Option<Vec<String>>,
}

/// The result of a rotation.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Rotated {
    /// The key with which all values are sealed now.
    pub key: String,
    /// Number of values that were sealed with another key before.
    pub sealed: u64,
    /// The values that no key of this node opens, with the reason.
    pub locked: Vec<String>,
}

impl Secrets<'_> {
    /// The secrets of the organisation, without their values. Needs the right to administer.
    pub async fn list(&self) -> Result<Vec<With<Secret>>, Error> {
        self.caller.check(Right::Admin)?;
        list(&*self.rooms.cluster.store, self.caller.org).await
    }

    /// Returns a secret by name or id, without its value. Needs the right to administer.
    pub async fn get(&self, name: &str) -> Result<With<Secret>, Error> {
        self.caller.check(Right::Admin)?;
        read(&find::<Secret>(&*self.rooms.cluster.store, self.caller.org, name).await?)
    }

    /// Creates a secret, or changes its value or hosts. Takes effect with the next step, on all nodes. Needs the right
    /// to administer.
    pub async fn put(&self, name: &str, new: NewSecret) -> Result<With<Secret>, Error> {
        self.caller.check(Right::Admin)?;
        if !is_name(name) {
            let message = "must be at most 100 letters, digits and _, and must not begin with a digit";
            return Err(invalid("name", message));
        }
        if let Some(value) = &new.value {
            check_value(value)?;
            self.check_no_key(value).await?;
        }
        check_hosts(new.hosts.as_deref().unwrap_or_default())?;
        retry_on_conflict(|| self.put_once(name, new.clone())).await
    }

    /// Refuses a value that contains a key of this server: a step that sends it would act with the rights of that key
    /// instead of those of its run.
    async fn check_no_key(&self, value: &str) -> Result<(), Error> {
        let words = value.split(|c: char| !c.is_ascii_alphanumeric() && !"-_".contains(c));
        let keys = words.filter(|word| word.starts_with("sw_") && word.len() >= SHORTEST_KEY).take(MAX_KEYS);
        // An operator's own key may have any form.
        for word in keys.chain([value.trim()]) {
            if self.rooms.cluster.store.record_with_key(Key::KIND, &secret_hash(word)).await?.is_some() {
                let message = "this is a key of this server; steps act with the rights of their run and need none";
                return Err(invalid("value", message));
            }
        }
        Ok(())
    }

    async fn put_once(&self, name: &str, new: NewSecret) -> Result<With<Secret>, Error> {
        let decided = current_auth(self.rooms, self.caller.org).await?;
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
            (None, None) => return Err(invalid("value", "a new secret needs a value")),
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
        let update = Change { records: vec![record], audit, grants_of: Some(self.caller.org), decided: Some(decided) };
        change(self.rooms, update, "secret", name).await?;
        Ok(With { id, is: secret })
    }

    /// Removes a secret. Needs the right to administer.
    pub async fn remove(&self, name: &str) -> Result<(), Error> {
        self.caller.check(Right::Admin)?;
        retry_on_conflict(|| remove::<Secret>(self.rooms, self.caller, "secret.remove", name)).await
    }

    /// Seals all values of all organisations again that are not sealed with the first of this node's master keys. Needs
    /// the operator's right.
    pub async fn rotate(&self) -> Result<Rotated, Error> {
        self.caller.check(Right::Operate)?;
        self.rooms.secrets.check().await?;
        ready(self.rooms).await?;
        let mut rotated = Rotated {
            key: self.rooms.secrets.sealed.vault.ids().first().cloned().unwrap_or_default(),
            ..Rotated::default()
        };
        for _ in 0..MAX_PASSES {
            rotated.locked.clear();
            let kept = self.reseal::<Secret>(&mut rotated).await? + self.reseal::<Database>(&mut rotated).await?;
            let sealed = kept + self.reseal::<Channel>(&mut rotated).await?;
            // Not a value that somebody stored, so it is not counted.
            self.reseal::<Chain>(&mut rotated).await?;
            if sealed == 0 {
                break;
            }
            rotated.sealed += sealed;
        }
        if let Some(record) = self.rooms.cluster.store.record(Check::KIND, CHECK).await? {
            let sealed = seal(self.rooms, CHECK_OWNER, CHECK).await?;
            let record = RecordChange::Replace(Record { body: json_text(&Check { sealed }), ..record });
            let detail = json!({"key": rotated.key, "sealed": rotated.sealed, "locked": rotated.locked.len()});
            let audit = vec![self.caller.audit(self.rooms.cluster.clock.now(), "secret.rotate", "*", detail)];
            change(self.rooms, Change { records: vec![record], audit, ..Change::default() }, "master key", "").await?;
        }
        Ok(rotated)
    }

    /// One pass over all records of a kind. Returns how many were sealed again.
    async fn reseal<T: SealedRecord>(&self, rotated: &mut Rotated) -> Result<u64, Error> {
        let mut sealed = 0;
        for record in self.rooms.secrets.sealed.all::<T>().await? {
            let mut value: T = body(&record)?;
            if value.sealed().key == rotated.key {
                continue;
            }
            let name = value.name().to_string();
            let plain = match self.rooms.secrets.sealed.open::<T>(&record, &name, value.sealed()) {
                Ok(plain) => plain,
                Err(why) => {
                    rotated.locked.push(why.to_string());
                    continue;
                }
            };
            let owner = Owner { org: record.org, kind: T::KIND, name: &name };
            *value.sealed() = seal(self.rooms, owner, &plain).await?;
            let record = RecordChange::Replace(Record { body: json_text(&value), ..record });
            // A record that was changed in the meantime is handled in the next pass.
            let written =
                self.rooms.cluster.store.change(Change { records: vec![record], ..Change::default() }).await?;
            sealed += u64::from(written.is_ok());
        }
        Ok(sealed)
    }
}

/// Ensures that there is a master key, and that it is the one all nodes use.
async fn ready(rooms: &Rooms) -> Result<(), Error> {
    if rooms.cluster.store.record(Check::KIND, CHECK).await?.is_none() {
        rooms.secrets.sealed.vault.ready(rooms.cluster.ids.bytes()).map_err(Error::NotNow)?;
        let sealed =
            rooms.secrets.sealed.vault.seal(CHECK_OWNER, rooms.cluster.ids.bytes(), CHECK).map_err(Error::NotNow)?;
        let (kind, id, org) = (Check::KIND.to_string(), CHECK.to_string(), CHECK_OWNER.org);
        let record =
            Record { kind, key: id.clone(), id, org, due: None, body: json_text(&Check { sealed }), version: 0 };
        // If another node was faster, its record is used.
        let _ = rooms
            .cluster
            .store
            .change(Change { records: vec![RecordChange::Create(record)], ..Change::default() })
            .await?;
    }
    rooms.secrets.check().await
}

/// Seals a value with the first master key, which is created if necessary.
pub(super) async fn seal(rooms: &Rooms, owner: Owner<'_>, value: &str) -> Result<Sealed, Error> {
    ready(rooms).await?;
    rooms.secrets.sealed.vault.seal(owner, rooms.cluster.ids.bytes(), value).map_err(Error::NotNow)
}

fn check_value(value: &str) -> Result<(), Error> {
    if value.is_empty() || value.len() > MAX_SECRET {
        return Err(invalid("value", &format!("must be 1 to {MAX_SECRET} bytes")));
    }
    Ok(())
}

fn check_hosts(hosts: &[String]) -> Result<(), Error> {
    if hosts.len() > MOST_HOSTS {
        return Err(invalid("hosts", &format!("at most {MOST_HOSTS} hosts are allowed")));
    }
    let faults =
        hosts.iter().enumerate().filter_map(|(n, host)| Some((format!("hosts[{n}]"), check_host(host).err()?)));
    let faults: Vec<(String, String)> = faults.collect();
    if faults.is_empty() { Ok(()) } else { Err(Error::Inputs(faults)) }
}
