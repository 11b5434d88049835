//! Secrets and connections as the store keeps them, sealed, and what is in them at the moment of a call.

use crate::connections::{Connection, Connections};
use crate::error::Error;
use crate::hosts::Bound;
use crate::notify::Channel;
use crate::people::{Kept, body, name_key};
use crate::secrets::Secrets;
use crate::vault::{Owner, Sealed, Vault};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use stepwell_core::time::{Millis, Time};
use stepwell_store::{OrgId, Record, RecordFilter, Store};

/// Records read in one go.
const PAGE: u32 = 500;

/// A secret. Its value never leaves the process but in the calls that use it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Secret {
    pub name: String,
    /// Where it may be sent; anywhere if there is none.
    #[serde(default)]
    pub hosts: Vec<String>,
    pub sealed: Sealed,
    pub created: Time,
    pub changed: Time,
    /// Whoever changed it last.
    pub by: String,
    /// Counts the values it has had.
    pub version: u32,
    /// Too short to be told from other text.
    #[serde(default)]
    pub short: bool,
}

impl Kept for Secret {
    const KIND: &'static str = "secret";
}

/// A database for query steps. Its URL is sealed; of it only these parts are shown.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Database {
    pub name: String,
    pub sealed: Sealed,
    /// `postgres` or `sqlite`.
    pub scheme: String,
    #[serde(default)]
    pub host: Option<String>,
    /// Its name, or for SQLite its path.
    pub database: String,
    pub write: bool,
    #[serde(default)]
    pub rows: Option<u32>,
    #[serde(default)]
    pub timeout: Option<Millis>,
    pub created: Time,
    pub changed: Time,
    pub by: String,
}

impl Kept for Database {
    const KIND: &'static str = "connection";
}

/// Something that holds a sealed value.
pub trait Keeps: Kept {
    fn name(&self) -> &str;
    fn sealed(&mut self) -> &mut Sealed;
}

impl Keeps for Secret {
    fn name(&self) -> &str {
        &self.name
    }

    fn sealed(&mut self) -> &mut Sealed {
        &mut self.sealed
    }
}

impl Keeps for Database {
    fn name(&self) -> &str {
        &self.name
    }

    fn sealed(&mut self) -> &mut Sealed {
        &mut self.sealed
    }
}

/// Which key everything is sealed with since the last rotation, so that a node with another one is told at its start.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Check {
    pub sealed: Sealed,
}

impl Kept for Check {
    const KIND: &'static str = "vault";
}

/// There is one for all organisations.
pub const CHECK: &str = "vault";
pub const CHECK_OWNER: Owner<'static> = Owner { org: OrgId(1), kind: Check::KIND, name: CHECK };

/// A secret that was opened. Has no `Debug`.
#[derive(Clone)]
pub struct Opened {
    pub value: Arc<str>,
    pub hosts: Arc<[String]>,
    /// Of its record.
    pub version: i64,
}

/// Where secrets and connections are kept: in the store, sealed, and for secrets that are not there outside of it.
#[derive(Clone)]
pub struct Safe {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) vault: Arc<Vault>,
    outside: Arc<dyn Secrets>,
}

impl Safe {
    pub fn new(store: Arc<dyn Store>, vault: Arc<Vault>, outside: Arc<dyn Secrets>) -> Safe {
        Safe { store, vault, outside }
    }

    pub async fn secret(&self, org: OrgId, name: &str) -> Result<Option<Opened>, Error> {
        let Some(record) = self.store.record_with_key(Secret::KIND, &name_key(org, name)).await? else {
            let value = self.outside.secret(org, name).await;
            return Ok(value.map(|value| Opened { value: value.into(), hosts: Arc::default(), version: 0 }));
        };
        let secret: Secret = body(&record)?;
        let value = self.open::<Secret>(&record, name, &secret.sealed)?;
        Ok(Some(Opened { value: value.into(), hosts: secret.hosts.into(), version: record.version }))
    }

    /// Refuses what was sealed under another name: the record's own word for it does not count.
    pub(crate) fn open<T: Kept>(&self, record: &Record, name: &str, sealed: &Sealed) -> Result<String, Error> {
        let owner = Owner { org: record.org, kind: T::KIND, name };
        let opened = self.vault.open(owner, sealed);
        opened.map_err(|why| Error::Broken(format!("the {} {name} cannot be opened: {why}", T::KIND)))
    }

    /// Every record of a kind, of all organisations.
    pub(crate) async fn all<T: Keeps>(&self) -> Result<Vec<Record>, Error> {
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

    /// What does not open, and why.
    pub async fn locked(&self) -> Result<Vec<String>, Error> {
        let mut locked = self.locked_among::<Secret>().await?;
        locked.extend(self.locked_among::<Database>().await?);
        locked.extend(self.locked_among::<Channel>().await?);
        Ok(locked)
    }

    async fn locked_among<T: Keeps>(&self) -> Result<Vec<String>, Error> {
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

    /// The URL with the secrets that it names, as a URL has them; and the sum of their versions.
    async fn filled(&self, org: OrgId, database: &Database, url: &str) -> Result<(String, i64), Error> {
        let (mut filled, mut versions) = (String::new(), 0);
        for part in parts(url).map_err(|why| Error::Broken(format!("the connection {}: {why}", database.name)))? {
            let name = match part {
                Part::Text(text) => {
                    filled.push_str(text);
                    continue;
                }
                Part::Secret(name) => name,
            };
            let of = format!("the connection {}", database.name);
            let unknown = || Error::NotNow(format!("there is no secret named {name}, which {of} needs"));
            let Opened { value, hosts, version } = self.secret(org, name).await?.ok_or_else(unknown)?;
            let bound = Bound { secret: name.into(), hosts, left_behind: false };
            let (host, port) = split_port(database.host.as_deref().unwrap_or_default());
            if !bound.hosts.is_empty() && !bound.allows(host, port.or(Some(5432))) {
                return Err(Error::NotNow(format!("{bound}, which is not where {of} leads")));
            }
            filled.push_str(&percent_encoded(&value));
            versions += version;
        }
        Ok((filled, versions))
    }
}

fn split_port(host: &str) -> (&str, Option<u16>) {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, port.parse().ok()),
        _ => (host, None),
    }
}

#[async_trait]
impl Connections for Safe {
    async fn connection(&self, org: OrgId, name: &str) -> Result<Option<Connection>, Error> {
        let Some(record) = self.store.record_with_key(Database::KIND, &name_key(org, name)).await? else {
            return Ok(None);
        };
        let database: Database = body(&record)?;
        let url = self.open::<Database>(&record, name, &database.sealed)?;
        let (url, versions) = self.filled(org, &database, &url).await?;
        let Database { write, rows, timeout, .. } = database;
        Ok(Some(Connection { url, write, rows, timeout, version: record.version + versions }))
    }
}

/// A piece of a connection's URL.
pub enum Part<'a> {
    Text(&'a str),
    Secret(&'a str),
}

/// A URL and the `{{secrets.NAME}}` in it.
pub fn parts(url: &str) -> Result<Vec<Part<'_>>, String> {
    let mut parts = Vec::new();
    let mut left = url;
    while let Some(at) = left.find("{{") {
        parts.push(Part::Text(&left[..at]));
        let hole = &left[at + 2..];
        let end = hole.find("}}").ok_or("`{{` is not closed; close it with `}}`")?;
        let name = hole[..end].trim().strip_prefix("secrets.").filter(|name| is_name(name));
        parts.push(Part::Secret(name.ok_or("only {{secrets.NAME}} can stand in braces here")?));
        left = &hole[end + 2..];
    }
    parts.push(Part::Text(left));
    Ok(parts)
}

/// What can be written as `secrets.NAME`.
pub fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && name.len() <= 100 && name.chars().all(plain) && !name.starts_with(|c: char| c.is_ascii_digit())
}

fn percent_encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { (byte as char).to_string() } else { format!("%{byte:02X}") }).collect()
}
