//! The data directory or database of a command. Commands that only read never create a directory.

use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use stepwell_engine::{EnvironmentSecrets, SealedStore, Vault};
use stepwell_server::config::Config;
use stepwell_store::{Location, Store, sqlite, without_password};

/// The file that makes a directory a data directory.
const DATABASE: &str = "stepwell.db";

#[derive(clap::Args, Clone)]
pub struct Data {
    /// Data directory (default: $STEPWELL_DATA, else $XDG_DATA_HOME/stepwell, else ~/.local/share/stepwell)
    #[arg(long = "data", value_name = "DIR")]
    directory: Option<PathBuf>,
    /// PostgreSQL database to use instead, `postgres://…` (default: $STEPWELL_DATABASE)
    #[arg(long, value_name = "URL")]
    database: Option<String>,
}

/// An open store and its configuration.
pub struct Home {
    pub store: Arc<dyn Store>,
    pub location: Location,
    pub config: Config,
    /// The copy that the store is, if another process uses the directory.
    pub copy: Option<Copied>,
}

/// A copy of a store that goes away with this. It lies inside the data directory, since it holds the same data.
pub struct Copied(PathBuf);

impl Copied {
    fn of(directory: &Path) -> anyhow::Result<Copied> {
        let to = directory.join(format!("examined-{}", std::process::id()));
        let mut maker = std::fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut maker, 0o700);
        maker.create(&to).with_context(|| to.display().to_string())?;
        let copied = Copied(to);
        sqlite::backup::backup(directory, &copied.0.join(DATABASE))?;
        Ok(copied)
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Home {
    /// The master keys.
    pub fn vault(&self) -> anyhow::Result<Arc<Vault>> {
        let directory = match &self.location {
            Location::Directory(directory) => Some(directory.as_path()),
            Location::Postgres(_) => None,
        };
        Ok(Arc::new(self.config.vault(directory).map_err(anyhow::Error::msg)?))
    }

    /// The store of secrets and connections.
    pub fn sealed_store(&self) -> anyhow::Result<SealedStore> {
        Ok(SealedStore::new(self.store.clone(), self.vault()?, Arc::new(EnvironmentSecrets)))
    }
}

impl Data {
    pub fn directory(&self) -> anyhow::Result<PathBuf> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let given = self.directory.clone().or_else(|| variable("STEPWELL_DATA"));
        let found = given.or_else(|| variable("XDG_DATA_HOME").map(|base| base.join("stepwell")));
        let found = found.or_else(|| variable("HOME").map(|home| home.join(".local/share/stepwell")));
        found.context("there is no home directory to store runs in: choose a directory with --data DIR")
    }

    /// Falls back to the configured directory if the command line names none.
    pub fn or(self, configured: Option<PathBuf>) -> Data {
        Data { directory: self.directory.or(configured), ..self }
    }

    /// The database named on the command line: commands use it directly, not through a server.
    pub fn database(&self) -> Option<String> {
        self.database.clone()
    }

    /// Opens the directory or database and creates it if necessary.
    pub async fn open(&self) -> anyhow::Result<Home> {
        let config = self.config()?;
        self.open_with(config).await
    }

    pub async fn open_with(&self, config: Config) -> anyhow::Result<Home> {
        // A database needs no directory.
        let directory = if config.database.is_some() { PathBuf::new() } else { self.directory()? };
        if directory.exists() && !directory.is_dir() {
            bail!("{} is a file, not a data directory: choose another with --data DIR", directory.display());
        }
        let location = config.location(directory);
        match (location.open().await, &location) {
            (Ok(store), _) => {
                let home = Home { store, location, config, copy: None };
                // Reading needs no key: a store that cannot be unlocked refuses only to write.
                if let Err(error) = home.sealed_store()?.unlock().await {
                    tracing::debug!(%error, "the store stays locked");
                }
                Ok(home)
            }
            (Err(error), Location::Directory(_)) => {
                bail!("{error}. Nothing was changed; choose another directory with --data DIR")
            }
            (Err(error), Location::Postgres(_)) => bail!("{error}"),
        }
    }

    /// Opens an existing directory, or a database.
    pub async fn open_existing(&self) -> anyhow::Result<Home> {
        let config = self.config()?;
        if config.database.is_none() {
            exists(&self.directory()?)?;
        }
        self.open_with(config).await
    }

    /// Like [`Data::open_existing`], for reading: if another process uses the directory, opens a copy of its store.
    pub async fn open_to_look(&self) -> anyhow::Result<Home> {
        let config = self.config()?;
        if config.database.is_some() {
            return self.open_with(config).await;
        }
        let directory = self.directory()?;
        exists(&directory)?;
        if !sqlite::is_in_use(&directory) {
            return self.open_with(config).await;
        }
        let copy = Copied::of(&directory)?;
        let store = Location::Directory(copy.0.clone()).open().await?;
        // The keys are those of the directory.
        let home = Home { store, location: Location::Directory(directory), config, copy: Some(copy) };
        if let Err(error) = home.sealed_store()?.unlock().await {
            tracing::debug!(%error, "the store stays locked");
        }
        Ok(home)
    }

    /// The configuration of the store. Commands ignore the rest of the configuration.
    fn config(&self) -> anyhow::Result<Config> {
        of_store(self.database().or_else(|| variable("STEPWELL_DATABASE")))
    }

    /// The options that name the directory or database in a suggested command, if needed.
    pub fn option(&self) -> String {
        let directory = self.directory.as_ref().map(|path| format!(" --data {}", quoted(&path.to_string_lossy())));
        let database = self.database.as_ref().map(|url| format!(" --database {}", quoted(&without_password(url))));
        [directory, database].into_iter().flatten().collect()
    }
}

/// The configuration of a store in this database, or in a directory.
fn of_store(database: Option<String>) -> anyhow::Result<Config> {
    let lookup = |name: &str| match name {
        "STEPWELL_DATABASE" => database.clone(),
        "STEPWELL_CONFIG"
        | "STEPWELL_NODE_NAME"
        | "STEPWELL_NODE_LEASE"
        | "STEPWELL_PRIVATE_ADDRESSES"
        | "STEPWELL_MASTER_KEY"
        | "STEPWELL_MASTER_KEY_FILE"
        | "STEPWELL_SMTP_PASSWORD" => variable(name),
        _ => None,
    };
    configured(None, &lookup)
}

/// Parses a directory, or a database URL together with the configured database settings.
pub fn location(text: &str) -> anyhow::Result<Location> {
    if !text.contains("://") {
        return Ok(Location::Directory(text.into()));
    }
    Ok(of_store(Some(text.to_string()))?.location(PathBuf::new()))
}

fn exists(directory: &Path) -> anyhow::Result<()> {
    if !directory.exists() {
        bail!("there is no data directory {}: choose one with --data DIR", directory.display());
    }
    if directory.is_dir() && !directory.join(DATABASE).exists() {
        let directory = directory.display();
        bail!("{directory} is not a data directory (no {DATABASE} in it): choose one with --data DIR");
    }
    Ok(())
}

/// An environment variable; an empty one counts as unset.
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Loads the configuration from the file and the environment; the inner error lists every fault.
pub fn configuration(
    file: Option<&Path>,
    lookup: &impl Fn(&str) -> Option<String>,
) -> anyhow::Result<Result<Config, Vec<String>>> {
    let path = file.map(Path::to_path_buf).or_else(|| Config::file(lookup));
    let text = match &path {
        Some(path) => Some(std::fs::read(path).with_context(|| path.display().to_string())?),
        None => None,
    };
    let name = path.as_ref().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(Config::load(text.as_deref().map(|text| (text, name.as_str())), lookup))
}

/// Like [`configuration`], but any fault is an error.
pub fn configured(file: Option<&Path>, lookup: &impl Fn(&str) -> Option<String>) -> anyhow::Result<Config> {
    match configuration(file, lookup)? {
        Ok(config) => Ok(config),
        Err(faults) => bail!("the configuration is invalid:\n  {}", faults.join("\n  ")),
    }
}

/// Quotes text for a shell.
pub fn quoted(text: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || "-_./=@:".contains(c);
    if !text.is_empty() && text.chars().all(safe) {
        text.to_string()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}
