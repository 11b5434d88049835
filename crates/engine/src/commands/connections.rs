//! Databases for query steps: named, with a URL that is sealed and never shown.

use super::Connections;
use super::change::{auth, change, new_named, remove, settled};
use super::input::{bad, check_name};
use super::secrets::seal;
use crate::access::Right;
use crate::error::Error;
use crate::records::{Kept, With, body, find, list, name_key, put, read};
use crate::secrets::Owner;
use crate::workflows::{Database, Part, parts};
use serde_json::json;
use stepwell_core::time::Millis;
use stepwell_store::Change;

/// Bytes of a URL.
const MAX_URL: usize = 4 * 1024;

/// What a connection is set to.
#[derive(Clone, Default)]
pub struct NewConnection {
    /// The one it has, if none is given.
    pub url: Option<String>,
    /// Whether statements may write.
    pub write: bool,
    pub rows: Option<u32>,
    pub timeout: Option<Millis>,
}

impl Connections<'_> {
    pub async fn list(&self) -> Result<Vec<With<Database>>, Error> {
        self.caller.check(Right::Admin)?;
        list(&*self.rooms.cluster.store, self.caller.org).await
    }

    pub async fn get(&self, name: &str) -> Result<With<Database>, Error> {
        self.caller.check(Right::Admin)?;
        read(&find::<Database>(&*self.rooms.cluster.store, self.caller.org, name).await?)
    }

    /// Makes a connection, or makes it another one. Counts from the next step on, on every node.
    pub async fn put(&self, name: &str, new: NewConnection) -> Result<With<Database>, Error> {
        self.caller.check(Right::Admin)?;
        check_name("name", name)?;
        if new.rows == Some(0) {
            return Err(bad("rows", "at least one row is needed"));
        }
        if new.timeout == Some(Millis(0)) {
            return Err(bad("timeout", "this must be longer than nothing"));
        }
        let shown = new.url.as_deref().map(shown).transpose().map_err(|why| bad("url", &why))?;
        settled(|| self.put_once(name, new.clone(), shown.clone())).await
    }

    async fn put_once(&self, name: &str, new: NewConnection, shown: Option<Shown>) -> Result<With<Database>, Error> {
        let decided = auth(self.rooms, self.caller.org).await?;
        let before = self.rooms.cluster.store.record_with_key(Database::KIND, &name_key(self.caller.org, name)).await?;
        let was: Option<Database> = before.as_ref().map(body).transpose()?;
        let (shown, sealed) = match (&new.url, shown, &was) {
            (Some(url), Some(shown), _) => {
                let sealed = seal(self.rooms, Owner { org: self.caller.org, kind: Database::KIND, name }, url).await?;
                (shown, sealed)
            }
            (_, _, Some(was)) => {
                let Database { scheme, host, database, sealed, .. } = was.clone();
                (Shown { scheme, host, database }, sealed)
            }
            _ => return Err(bad("url", "a new connection needs a URL")),
        };
        // A file of the server's own machine is not an organisation's to give.
        if shown.scheme == SQLITE {
            self.caller.check(Right::Operate)?;
        }
        let now = self.rooms.cluster.clock.now();
        let Shown { scheme, host, database } = shown;
        let is = Database {
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
        let detail = json!({"scheme": is.scheme, "host": is.host, "database": is.database, "write": is.write});
        let audit = vec![self.caller.audit(now, "connection.put", name, detail)];
        let (id, record) = put(before, &is, || new_named(self.rooms, self.caller.org, "con", name, &is));
        let done = Change { records: vec![record], audit, grants_of: Some(self.caller.org), decided: Some(decided) };
        change(self.rooms, done, "connection", name).await?;
        Ok(With { id, is })
    }

    pub async fn remove(&self, name: &str) -> Result<(), Error> {
        self.caller.check(Right::Admin)?;
        settled(|| remove::<Database>(self.rooms, self.caller, "connection.remove", name)).await
    }
}

const SQLITE: &str = "sqlite";

/// What may be seen of a URL.
#[derive(Clone, PartialEq, Debug)]
struct Shown {
    scheme: String,
    host: Option<String>,
    database: String,
}

/// Reads a URL as far as need be. What is wrong is said without the URL: there may be a password in it.
fn shown(url: &str) -> Result<Shown, String> {
    const HINT: &str = "write postgres://user:password@host/name, or sqlite:/path/to/file";
    if url.len() > MAX_URL || url.contains(|c: char| c.is_control()) {
        return Err(format!("this is not a URL of up to {MAX_URL} bytes without line breaks; {HINT}"));
    }
    let has_secrets = parts(url)?.iter().any(|part| matches!(part, Part::Secret(_)));
    if let Some(path) = url.strip_prefix("sqlite:") {
        let path = path.strip_prefix("//").unwrap_or(path);
        if has_secrets || !path.starts_with('/') {
            return Err(
                "the path of a SQLite database is absolute and holds no secrets; write sqlite:/path/to/file".into()
            );
        }
        let database = path.split('?').next().unwrap_or_default().to_string();
        return Ok(Shown { scheme: SQLITE.into(), host: None, database });
    }
    let rest = url.strip_prefix("postgres://").or_else(|| url.strip_prefix("postgresql://"));
    let rest = rest.ok_or_else(|| format!("this is not the URL of a database; {HINT}"))?;
    let (address, path) = rest.split_once('/').unwrap_or((rest, ""));
    // A password that was not encoded may hold what else would end the host.
    let host = address.rsplit_once('@').map_or(address, |(_, host)| host);
    let database = path.split('?').next().unwrap_or_default();
    let (_, options) = rest.split_once('?').unwrap_or_default();
    // A name that is encoded is read all the same.
    let mut names = options.split('&').map(|option| option.split('=').next().unwrap_or_default());
    if names.any(|name| name.starts_with("host") || name.contains('%')) {
        return Err("the host stands before the name of the database, not behind it as an option".into());
    }
    let plain = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "-._:[],%".contains(c));
    if host.is_empty() || !plain(host) || !plain(database) || rest.contains(char::is_whitespace) {
        return Err(format!(
            "the host and the name of the database must be readable, and a password be encoded as in URLs; {HINT}"
        ));
    }
    let database = if database.is_empty() { "(the user's)" } else { database };
    Ok(Shown { scheme: "postgres".into(), host: Some(host.to_string()), database: database.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_url_only_scheme_host_and_database_are_shown() {
        let check = |url: &str, host: Option<&str>, database: &str| {
            let shown = shown(url).unwrap();
            assert_eq!((shown.host.as_deref(), &*shown.database), (host, database), "{url}");
        };
        check("postgres://u:p%40ss@db.example:5433/shop?sslmode=require", Some("db.example:5433"), "shop");
        check("postgresql://db/shop", Some("db"), "shop");
        check("postgres://u:{{secrets.DB}}@[::1]:5432/shop", Some("[::1]:5432"), "shop");
        check("postgres://u@db", Some("db"), "(the user's)");
        check("sqlite:/var/lib/x.db", None, "/var/lib/x.db");
        check("sqlite:///var/lib/x.db?mode=ro", None, "/var/lib/x.db");
    }

    #[test]
    fn what_is_no_url_is_refused_without_being_repeated() {
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
            let why = shown(url).unwrap_err();
            assert!(!why.contains("hunter22"), "{url}: {why}");
        }
    }
}
