//! Where data is stored: a directory with the embedded store, or a PostgreSQL database. Its text form never contains a
//! password.

use crate::postgres::PgStore;
use crate::sqlite::SqliteStore;
use crate::{Error, Store};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Location {
    Directory(PathBuf),
    Postgres(PostgresOptions),
}

impl Location {
    /// Opens the store; creates it or migrates its schema if necessary.
    pub async fn open(&self) -> Result<Arc<dyn Store>, Error> {
        match self {
            Location::Directory(directory) => Ok(Arc::new(SqliteStore::open(directory)?)),
            Location::Postgres(options) => Ok(Arc::new(PgStore::open(options).await?)),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::Directory(directory) => directory.display().fmt(f),
            Location::Postgres(options) => options.fmt(f),
        }
    }
}

/// How to connect to a PostgreSQL database, and how many connections to use.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresOptions {
    /// `postgres://…`, with or without a password.
    pub url: String,
    /// A direct URL for `LISTEN`, which a pooler may not support. Defaults to `url`.
    pub listen_url: Option<String>,
    /// Connections that write.
    pub writers: u32,
    /// Connections that read.
    pub readers: u32,
    /// How long a node keeps its claims without a heartbeat.
    pub lease: Duration,
    /// Prepares statements once per connection. Must be off behind a pooler in transaction mode.
    pub prepared: bool,
    /// Accepts a server that acknowledges commits before they are on disk.
    pub unsafe_settings: bool,
    /// CA certificates to trust instead of the system's.
    pub ca_file: Option<PathBuf>,
}

impl Default for PostgresOptions {
    fn default() -> PostgresOptions {
        PostgresOptions {
            url: String::new(),
            listen_url: None,
            writers: 2,
            readers: 4,
            lease: Duration::from_secs(10),
            prepared: true,
            unsafe_settings: false,
            ca_file: None,
        }
    }
}

impl PostgresOptions {
    pub fn new(url: impl Into<String>) -> PostgresOptions {
        PostgresOptions { url: url.into(), ..PostgresOptions::default() }
    }
}

impl fmt::Display for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&without_password(&self.url))
    }
}

impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PostgresOptions { url, listen_url, writers, readers, lease, prepared, unsafe_settings, ca_file } = self;
        f.debug_struct("PostgresOptions")
            .field("url", &without_password(url))
            .field("listen_url", &listen_url.as_deref().map(without_password))
            .field("writers", writers)
            .field("readers", readers)
            .field("lease", lease)
            .field("prepared", prepared)
            .field("unsafe_settings", unsafe_settings)
            .field("ca_file", ca_file)
            .finish()
    }
}

/// Returns a database URL that is safe to show: user, host and database. Parameters may hold secrets and are left out,
/// as is everything else that is not clearly harmless.
pub fn without_password(url: &str) -> String {
    const HIDDEN: &str = "***";
    let Some((scheme, rest)) = url.split_once("://") else { return HIDDEN.into() };
    // A password may contain any character, even `@`.
    let (login, host) = match rest.rsplit_once('@') {
        Some((login, host)) => (Some(login), host),
        None => (None, rest),
    };
    let host = host.split(['?', '#']).next().unwrap_or_default();
    let plain = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "_-.%".contains(c));
    let login = match login {
        None => String::new(),
        Some(login) => match login.split_once(':') {
            Some((user, _)) if plain(user) => format!("{user}:{HIDDEN}@"),
            None if plain(login) => format!("{login}@"),
            _ => format!("{HIDDEN}@"),
        },
    };
    format!("{scheme}://{login}{host}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        let check = |url: &str, expected: &str| {
            let options = PostgresOptions { listen_url: Some(url.into()), ..PostgresOptions::new(url) };
            assert_eq!(options.to_string(), expected);
            let location = Location::Postgres(options);
            for shown in [format!("{location}"), format!("{location:?}")] {
                assert!(!shown.contains("s3cret") && shown.contains(expected), "{shown}");
            }
        };
        check("postgres://db/flows", "postgres://db/flows");
        check("postgres:///flows?host=/run/postgresql", "postgres:///flows");
        check("postgres://ann@db:5432/flows?sslmode=require", "postgres://ann@db:5432/flows");
        check("postgresql://ann:s3cret@db/flows", "postgresql://ann:***@db/flows");
        check("postgres://ann:s3cret@one,two/flows", "postgres://ann:***@one,two/flows");
        check("postgres://ann:a@s3cret/b?c#d@db/flows", "postgres://ann:***@db/flows");
        check("postgres://db/flows?user=ann&password=s3cret", "postgres://db/flows");
        check("postgres://db/flows?password=s3cret@x", "postgres://***@x");
        check("postgres://db/flows?password=s3cret:x@y", "postgres://***@y");
        check("host=db password=s3cret", "***");
        check("s3cret", "***");
    }
}
