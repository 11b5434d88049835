//! Databases for query steps: named, with a URL that is sealed and never shown.

use super::Connections;
use super::change::{change, current_auth, new_named, remove, retry_on_conflict};
use super::input::{check_name, invalid};
use super::secrets::seal;
use crate::access::Right;
use crate::error::Error;
use crate::records::{Kept, With, body, find, list, name_key, put, read};
use crate::secrets::Owner;
use crate::workflows::{Database, Part, parts};
use serde_json::json;
use stepwell_core::time::Millis;
use stepwell_store::Change;

/// Maximum size of a URL, in bytes.
const MAX_URL: usize = 4 * 1024;

/// The settings of a connection.
#[derive(Clone, Default)]
pub struct NewConnection {
    /// `None` keeps the current URL.
    pub url: Option<String>,
    /// Whether statements may write.
    pub write: bool,
    pub rows: Option<u32>,
    pub timeout: Option<Millis>,
}

impl Connections<'_> {
    /// The connections of the organisation. Needs the right to administer, as all methods here do.
    pub async fn list(&self) -> Result<Vec<With<Database>>, Error> {
        self.caller.check(Right::Admin)?;
        list(&*self.rooms.cluster.store, self.caller.org).await
    }

    /// Returns a connection by name or id.
    pub async fn get(&self, name: &str) -> Result<With<Database>, Error> {
        self.caller.check(Right::Admin)?;
        read(&find::<Database>(&*self.rooms.cluster.store, self.caller.org, name).await?)
    }

    /// Creates or replaces a connection. Takes effect with the next step, on all nodes. SQLite needs the operator's
    /// right.
    pub async fn put(&self, name: &str, new: NewConnection) -> Result<With<Database>, Error> {
        self.caller.check(Right::Admin)?;
        check_name("name", name)?;
        if new.rows == Some(0) {
            return Err(invalid("rows", "must be at least 1"));
        }
        if new.timeout == Some(Millis(0)) {
            return Err(invalid("timeout", "must be longer than zero"));
        }
        let public = new.url.as_deref().map(public_parts).transpose().map_err(|why| invalid("url", &why))?;
        retry_on_conflict(|| self.put_once(name, new.clone(), public.clone())).await
    }

    async fn put_once(
        &self,
        name: &str,
        new: NewConnection,
        public: Option<PublicParts>,
    ) -> Result<With<Database>, Error> {
        let decided = current_auth(self.rooms, self.caller.org).await?;
        let before = self.rooms.cluster.store.record_with_key(Database::KIND, &name_key(self.caller.org, name)).await?;
        let was: Option<Database> = before.as_ref().map(body).transpose()?;
        let (public, sealed) = match (&new.url, public, &was) {
            (Some(url), Some(public), _) => {
                let sealed = seal(self.rooms, Owner { org: self.caller.org, kind: Database::KIND, name }, url).await?;
                (public, sealed)
            }
            (_, _, Some(was)) => {
                let Database { scheme, host, database, sealed, .. } = was.clone();
                (PublicParts { scheme, host, database }, sealed)
            }
            _ => return Err(invalid("url", "a new connection needs a URL")),
        };
        // Files of the server's machine do not belong to an organisation.
        if public.scheme == SQLITE {
            self.caller.check(Right::Operate)?;
        }
        let now = self.rooms.cluster.clock.now();
        let PublicParts { scheme, host, database } = public;
        let value = Database {
            name: name.to_string(),
            sealed,
            scheme,
            host,
            database,
            write: new.write,
            rows: new.rows,
            timeout: new.timeout,
            created: was.map_or(now, |was| was.created),
            changed: now,
            by: self.caller.name.to_string(),
        };
        let detail =
            json!({"scheme": value.scheme, "host": value.host, "database": value.database, "write": value.write});
        let audit = vec![self.caller.audit(now, "connection.put", name, detail)];
        let (id, record) = put(before, &value, || new_named(self.rooms, self.caller.org, "con", name, &value));
        let update = Change { records: vec![record], audit, grants_of: Some(self.caller.org), decided: Some(decided) };
        change(self.rooms, update, "connection", name).await?;
        Ok(With { id, is: value })
    }

    /// Removes a connection.
    pub async fn remove(&self, name: &str) -> Result<(), Error> {
        self.caller.check(Right::Admin)?;
        retry_on_conflict(|| remove::<Database>(self.rooms, self.caller, "connection.remove", name)).await
    }
}

const SQLITE: &str = "sqlite";

/// The parts of a URL that may be shown.
#[derive(Clone, PartialEq, Debug)]
struct PublicParts {
    scheme: String,
    host: Option<String>,
    database: String,
}

/// Parses a URL as far as necessary. Errors do not quote the URL, because it may contain a password.
fn public_parts(url: &str) -> Result<PublicParts, String> {
    const HINT: &str = "write postgres://user:password@host/name, or sqlite:/path/to/file";
    if url.len() > MAX_URL || url.contains(|c: char| c.is_control()) {
        return Err(format!("must be a URL of at most {MAX_URL} bytes without control characters; {HINT}"));
    }
    let has_secrets = parts(url)?.iter().any(|part| matches!(part, Part::Secret(_)));
    if let Some(path) = url.strip_prefix("sqlite:") {
        let path = path.strip_prefix("//").unwrap_or(path);
        if has_secrets || !path.starts_with('/') {
            return Err("a SQLite path must be absolute and contain no secrets; write sqlite:/path/to/file".into());
        }
        let database = path.split('?').next().unwrap_or_default().to_string();
        return Ok(PublicParts { scheme: SQLITE.into(), host: None, database });
    }
    let rest = url.strip_prefix("postgres://").or_else(|| url.strip_prefix("postgresql://"));
    let rest = rest.ok_or_else(|| format!("this is not a database URL; {HINT}"))?;
    let (address, path) = rest.split_once('/').unwrap_or((rest, ""));
    // A password that is not encoded may contain characters that would end the host.
    let host = address.rsplit_once('@').map_or(address, |(_, host)| host);
    let database = path.split('?').next().unwrap_or_default();
    let (_, options) = rest.split_once('?').unwrap_or_default();
    // Percent-encoded option names are decoded by the driver, so they are refused as well.
    let mut names = options.split('&').map(|option| option.split('=').next().unwrap_or_default());
    if names.any(|name| name.starts_with("host") || name.contains('%')) {
        return Err("the host must come before the database name, not as an option after it".into());
    }
    let plain = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "-._:[],%".contains(c));
    if host.is_empty() || !plain(host) || !plain(database) || rest.contains(char::is_whitespace) {
        return Err(format!(
            "the host and the database name must be plain text without secrets, and a password percent-encoded; {HINT}"
        ));
    }
    let database = if database.is_empty() { "(the user's)" } else { database };
    Ok(PublicParts { scheme: "postgres".into(), host: Some(host.to_string()), database: database.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_scheme_host_and_database_of_a_url_are_public() {
        let check = |url: &str, host: Option<&str>, database: &str| {
            let public = public_parts(url).unwrap();
            assert_eq!((public.host.as_deref(), &*public.database), (host, database), "{url}");
        };
        check("postgres://u:p%40ss@db.example:5433/shop?sslmode=require", Some("db.example:5433"), "shop");
        check("postgresql://db/shop", Some("db"), "shop");
        check("postgres://u:{{secrets.DB}}@[::1]:5432/shop", Some("[::1]:5432"), "shop");
        check("postgres://u@db", Some("db"), "(the user's)");
        check("sqlite:/var/lib/x.db", None, "/var/lib/x.db");
        check("sqlite:///var/lib/x.db?mode=ro", None, "/var/lib/x.db");
    }

    #[test]
    fn an_invalid_url_is_refused_and_not_quoted() {
        for url in [
            "",
            "mysql://u:hunter22@db/x",
            "postgres://",
            "postgres://u:hunter22@/x",
            "postgres://u:hunter22@db /x",
            "postgres://u:p/hunter22@db/x",
            "postgres://u:hunter22@{{secrets.HOST}}/x",
            "postgres://u:{{secrets.hunter22 @db/x",
            "postgres://u:{{input.hunter22}}@db/x",
            "{{secrets.hunter22}}",
            "postgres://u:hunter22@db/x?a=b&host=other",
            "postgres://u:hunter22@db/x?h%6fstaddr=1.2.3.4",
            "sqlite:hunter22.db",
            "sqlite:/tmp/{{secrets.hunter22}}",
        ] {
            let why = public_parts(url).unwrap_err();
            assert!(!why.contains("hunter22"), "{url}: {why}");
        }
    }
}
