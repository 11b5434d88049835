//! Sealed records: secrets and other records whose values are encrypted at rest and opened for each call.

use super::resolve::SecretSource;
use super::vault::{Owner, Sealed, Vault};
use crate::error::Error;
use crate::records::{Kept, body, by_name};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use stepwell_core::time::Time;
use stepwell_store::{OrgId, Record, RecordFilter, Store};

/// Records read per page.
const PAGE: u32 = 500;

/// A secret. Its value leaves the process only in the calls that use it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Secret {
    pub name: String,
    /// Patterns of the hosts that it may be sent to. If empty, any host.
    #[serde(default)]
    pub hosts: Vec<String>,
    pub sealed: Sealed,
    pub created: Time,
    pub changed: Time,
    /// The user who changed it last.
    pub by: String,
    /// The number of values it has had.
    pub version: u32,
    /// Too short to be distinguished from other text, so it cannot be masked.
    #[serde(default)]
    pub short: bool,
}

impl Kept for Secret {
    const KIND: &'static str = "secret";
}

/// A record that holds a sealed value.
pub trait SealedRecord: Kept {
    fn name(&self) -> &str;
    fn sealed(&mut self) -> &mut Sealed;
}

impl SealedRecord for Secret {
    fn name(&self) -> &str {
        &self.name
    }

    fn sealed(&mut self) -> &mut Sealed {
        &mut self.sealed
    }
}

/// A value sealed with the current master key, so that a node without this key fails at start.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Check {
    pub sealed: Sealed,
}

impl Kept for Check {
    const KIND: &'static str = "vault";
}

/// The id of the only [`Check`] record, for all organisations.
pub const CHECK: &str = "vault";
pub const CHECK_OWNER: Owner<'static> = Owner { org: OrgId(1), kind: Check::KIND, name: CHECK };

/// A secret that was opened. Has no `Debug`.
#[derive(Clone)]
pub struct Opened {
    pub value: Arc<str>,
    pub hosts: Arc<[String]>,
    /// The version of its record.
    pub version: i64,
    /// When its value or its hosts were last changed. `None` for a secret that the store does not have.
    pub changed: Option<Time>,
}

/// Opens sealed records of the store. Secrets that the store does not have come from an external source.
#[derive(Clone)]
pub struct SealedStore {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) vault: Arc<Vault>,
    external: Arc<dyn SecretSource>,
}

impl SealedStore {
    pub fn new(store: Arc<dyn Store>, vault: Arc<Vault>, external: Arc<dyn SecretSource>) -> SealedStore {
        SealedStore { store, vault, external }
    }

    pub async fn secret(&self, org: OrgId, name: &str) -> Result<Option<Opened>, Error> {
        let Some(record) = by_name::<Secret>(&*self.store, org, name).await? else {
            let value = self.external.secret(org, name).await;
            let opened =
                |value: String| Opened { value: value.into(), hosts: Arc::default(), version: 0, changed: None };
            return Ok(value.map(opened));
        };
        let secret: Secret = body(&record)?;
        let value = self.open::<Secret>(&record, name, &secret.sealed)?;
        let (hosts, changed) = (secret.hosts.into(), Some(secret.changed));
        Ok(Some(Opened { value: value.into(), hosts, version: record.version, changed }))
    }

    /// Refuses a value sealed under another name: the name in the record itself is not trusted.
    pub(crate) fn open<T: Kept>(&self, record: &Record, name: &str, sealed: &Sealed) -> Result<String, Error> {
        let owner = Owner { org: record.org, kind: T::KIND, name };
        let opened = self.vault.open(owner, sealed);
        opened.map_err(|why| Error::Broken(format!("the {} {name} cannot be opened: {why}", T::KIND)))
    }

    /// All records of a kind, in all organisations.
    pub(crate) async fn all<T: SealedRecord>(&self) -> Result<Vec<Record>, Error> {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let filter = RecordFilter { kind: T::KIND.into(), org: None, prefix: String::new(), after, limit: PAGE };
            let page = self.store.records(filter).await?;
            after = page.last().map(|record| record.key.clone());
            let whole = page.len() < PAGE as usize;
            all.extend(page);
            if whole {
                return Ok(all);
            }
        }
    }

    /// Describes the records of this kind that cannot be opened.
    pub async fn locked<T: SealedRecord>(&self) -> Result<Vec<String>, Error> {
        let mut locked = Vec::new();
        for record in self.all::<T>().await? {
            let opened = body::<T>(&record).and_then(|mut is| {
                let name = is.name().to_string();
                self.open::<T>(&record, &name, is.sealed()).map(|_| ())
            });
            if let Err(why) = opened {
                locked.push(format!("organisation {}: {why}", record.org.0));
            }
        }
        Ok(locked)
    }
}

/// Whether a name can be written as `secrets.NAME`.
pub fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && name.len() <= 100 && name.chars().all(plain) && !name.starts_with(|c: char| c.is_ascii_digit())
}
