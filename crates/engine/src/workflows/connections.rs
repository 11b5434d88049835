//! Connections: the databases of query steps, by name. Their URLs are sealed, and opened for each call.

use crate::error::Error;
use crate::records::{Kept, body, by_name};
use crate::secrets::{Bound, Mask, Opened, Sealed, SealedRecord, SealedStore, is_name};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use stepwell_core::time::{Millis, Time};
use stepwell_store::OrgId;

#[async_trait]
pub trait Connections: Send + Sync {
    async fn connection(&self, org: OrgId, name: &str) -> Result<Option<Connection>, Error>;
}

/// An opened connection. Has no `Debug`: the URL holds a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Connection {
    /// `postgres://…`, or `sqlite:` followed by a path.
    pub url: String,
    /// Whether steps may write. They also need the grant for it.
    pub write: bool,
    /// The most rows that a step may request.
    pub rows: Option<u32>,
    /// The longest timeout of a statement.
    pub timeout: Option<Millis>,
    /// Differs between two connections, and after every change of the URL or of a secret in it, so that a session that was
    /// opened for another one is never reused.
    pub identity: [u8; 32],
}

/// A stored connection. Its URL is sealed; only these parts of it are readable.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Database {
    pub name: String,
    pub sealed: Sealed,
    /// `postgres` or `sqlite`.
    pub scheme: String,
    #[serde(default)]
    pub host: Option<String>,
    /// The name of the database, or the path for SQLite.
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

impl SealedRecord for Database {
    fn name(&self) -> &str {
        &self.name
    }

    fn sealed(&mut self) -> &mut Sealed {
        &mut self.sealed
    }
}

/// Fills the secrets into the URL, percent-encoded.
async fn filled(sealed: &SealedStore, org: OrgId, database: &Database, url: &str) -> Result<String, Error> {
    let mut filled = String::new();
    for part in parts(url).map_err(|why| Error::Broken(format!("the connection {}: {why}", database.name)))? {
        let name = match part {
            Part::Text(text) => {
                filled.push_str(text);
                continue;
            }
            Part::Secret(name) => name,
        };
        let connection = format!("the connection {}", database.name);
        let unknown = || Error::NotNow(format!("there is no secret named {name}, which {connection} needs"));
        let Opened { value, hosts, .. } = sealed.secret(org, name).await?.ok_or_else(unknown)?;
        let bound = Bound { secret: name.into(), hosts, left_behind: false };
        // A URL may list several hosts, and the password is sent to the first that answers.
        let mut listed = database.host.as_deref().unwrap_or_default().split(',').map(split_port);
        if !bound.hosts.is_empty() && !listed.all(|(host, port)| bound.allows(host, port.or(Some(5432)))) {
            return Err(Error::NotNow(format!("{bound}, but {connection} leads to another host")));
        }
        filled.push_str(&percent_encoded(&value));
    }
    Ok(filled)
}

fn split_port(host: &str) -> (&str, Option<u16>) {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, port.parse().ok()),
        _ => (host, None),
    }
}

#[async_trait]
impl Connections for SealedStore {
    async fn connection(&self, org: OrgId, name: &str) -> Result<Option<Connection>, Error> {
        let Some(record) = by_name::<Database>(&*self.store, org, name).await? else {
            return Ok(None);
        };
        let database: Database = body(&record)?;
        let url = self.open::<Database>(&record, name, &database.sealed)?;
        let url = filled(self, org, &database, &url).await?;
        let Database { write, rows, timeout, .. } = database;
        let identity = Sha256::new().chain_update(&record.id).chain_update([0]).chain_update(&url).finalize().into();
        Ok(Some(Connection { url, write, rows, timeout, identity }))
    }
}

/// A piece of a connection's URL.
pub enum Part<'a> {
    Text(&'a str),
    Secret(&'a str),
}

/// Splits a URL at each `{{secrets.NAME}}`.
pub fn parts(url: &str) -> Result<Vec<Part<'_>>, String> {
    let mut parts = Vec::new();
    let mut left = url;
    while let Some(at) = left.find("{{") {
        parts.push(Part::Text(&left[..at]));
        let hole = &left[at + 2..];
        let end = hole.find("}}").ok_or("`{{` is not closed; close it with `}}`")?;
        let name = hole[..end].trim().strip_prefix("secrets.").filter(|name| is_name(name));
        parts.push(Part::Secret(name.ok_or("only {{secrets.NAME}} is allowed in braces here")?));
        left = &hole[end + 2..];
    }
    parts.push(Part::Text(left));
    Ok(parts)
}

fn percent_encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { (byte as char).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// Hides the password of a connection's URL, as written there and decoded.
pub fn hide_password(mask: &mut Mask, name: &str, url: &str) {
    for password in passwords(url) {
        mask.replace(password, &format!("(the password of {name})"));
        mask.replace(&decoded(password), &format!("(the password of {name})"));
    }
}

/// The passwords in a URL, not decoded: before the host and in the options.
fn passwords(url: &str) -> Vec<&str> {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let (address, options) = rest.split_once('?').unwrap_or((rest, ""));
    let user = address.split('/').next().unwrap_or_default().rsplit_once('@').map(|(user, _)| user);
    let before = user.and_then(|user| user.split_once(':')).map(|(_, password)| password);
    before.into_iter().chain(options.split('&').filter_map(|option| option.strip_prefix("password="))).collect()
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut left = text.as_bytes();
    while let [first, rest @ ..] = left {
        let digits =
            if *first == b'%' { rest.get(..2).and_then(|digits| std::str::from_utf8(digits).ok()) } else { None };
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                left = &rest[2..];
            }
            None => {
                bytes.push(*first);
                left = rest;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
