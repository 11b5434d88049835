//! The data directory: which one is meant, and opening it. Commands that only look never make one.

use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use stepwell_store::Store;
use stepwell_store::sqlite::SqliteStore;

/// The file that makes a directory a data directory.
const DATABASE: &str = "stepwell.db";

#[derive(clap::Args, Clone)]
pub struct Data {
    /// The data directory; without it $STEPWELL_DATA, else $XDG_DATA_HOME/stepwell, else ~/.local/share/stepwell
    #[arg(long = "data", value_name = "DIR")]
    directory: Option<PathBuf>,
}

impl Data {
    pub fn directory(&self) -> anyhow::Result<PathBuf> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let given = self.directory.clone().or_else(|| variable("STEPWELL_DATA"));
        let found = given.or_else(|| variable("XDG_DATA_HOME").map(|base| base.join("stepwell")));
        let found = found.or_else(|| variable("HOME").map(|home| home.join(".local/share/stepwell")));
        found.context("there is no home directory to keep runs in: say where with --data DIR")
    }

    /// What the configuration says, if the command line says nothing.
    pub fn or(self, configured: Option<PathBuf>) -> Data {
        Data { directory: self.directory.or(configured) }
    }

    /// Opens the directory, making it if need be.
    pub fn open(&self) -> anyhow::Result<Arc<dyn Store>> {
        let directory = self.directory()?;
        if directory.exists() && !directory.is_dir() {
            bail!("{} is a file, not a data directory: give another with --data DIR", directory.display());
        }
        open(&directory)
    }

    /// Opens a directory that is there already.
    pub fn open_existing(&self) -> anyhow::Result<Arc<dyn Store>> {
        let directory = self.directory()?;
        if !directory.exists() {
            bail!("there is no data directory {}: give the right one with --data DIR", directory.display());
        }
        if directory.is_dir() && !directory.join(DATABASE).exists() {
            let directory = directory.display();
            bail!("{directory} is not a data directory (no {DATABASE} in it): give the right one with --data DIR");
        }
        self.open()
    }

    /// How the directory is to be named in a command that is suggested, if it has to be.
    pub fn option(&self) -> String {
        self.directory.as_ref().map(|path| format!(" --data {}", quoted(&path.to_string_lossy()))).unwrap_or_default()
    }
}

fn open(directory: &Path) -> anyhow::Result<Arc<dyn Store>> {
    match SqliteStore::open(directory) {
        Ok(store) => Ok(Arc::new(store)),
        Err(error) => bail!("{error}. Nothing was changed; another directory can be given with --data DIR"),
    }
}

/// For a shell.
pub fn quoted(text: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || "-_./=@:".contains(c);
    if !text.is_empty() && text.chars().all(safe) {
        text.to_string()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}
