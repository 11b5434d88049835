//! `stepwell backup`: copies the embedded store to one file, even while a server uses it.

use super::{Exit, doctor, document};
use crate::home::{Data, variable};
use anyhow::{Context, bail};
use serde_json::json;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;
use stepwell_store::Stats;
use stepwell_store::sqlite::backup;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    data: Data,
    /// File to create; an existing file is not overwritten
    to: PathBuf,
    /// Also copy the key files, to `TO.admin.key`, `TO.agent.key` and `TO.master.key`
    #[arg(long)]
    with_keys: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    let begun = Instant::now();
    embedded_only(&args.data, "pg_dump")?;
    let directory = args.data.directory()?;
    let mut keys = Keys::default();
    if args.with_keys {
        Keys::check(|name| directory.join(name), |name| beside(&args.to, name))?;
        keys = Keys::copy(|name| directory.join(name), |name| beside(&args.to, name))?;
    }
    let stats = backup::backup(&directory, &args.to)?;
    let keys = keys.keep();
    Done { from: &directory, to: &args.to, stats, keys, begun }.print(args.json)
}

/// Refuses a database: the directory of a server on a database contains only keys, or an older store.
pub fn embedded_only(data: &Data, instead: &str) -> anyhow::Result<()> {
    match data.database().or_else(|| variable("STEPWELL_DATABASE")) {
        Some(_) => bail!("this command works on data directories: use {instead} for a database"),
        None => Ok(()),
    }
}

/// The path of a copied key file beside the backup.
pub fn beside(copy: &Path, name: &str) -> PathBuf {
    let mut path = copy.as_os_str().to_owned();
    path.push(format!(".{name}"));
    path.into()
}

/// Copied key files. Removed again on drop, unless [`Keys::keep`] was called because the store was copied too.
#[derive(Default)]
pub struct Keys(Vec<PathBuf>);

const NAMES: [&str; 3] = ["admin.key", "agent.key", "master.key"];

impl Keys {
    /// Refuses if a key file would be overwritten.
    pub fn check(from: impl Fn(&str) -> PathBuf, to: impl Fn(&str) -> PathBuf) -> anyhow::Result<()> {
        match NAMES.iter().find(|name| from(name).exists() && to(name).exists()) {
            Some(name) => bail!("{} already exists and was not changed", to(name).display()),
            None => Ok(()),
        }
    }

    /// Copies the key files that exist.
    pub fn copy(from: impl Fn(&str) -> PathBuf, to: impl Fn(&str) -> PathBuf) -> anyhow::Result<Keys> {
        let mut copied = Keys::default();
        for name in NAMES.iter().filter(|name| from(name).exists()) {
            let (from, to) = (from(name), to(name));
            let text = std::fs::read(&from).with_context(|| from.display().to_string())?;
            let mut options = OpenOptions::new();
            options.write(true).create_new(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            let mut file = options.open(&to).with_context(|| to.display().to_string())?;
            copied.0.push(to);
            file.write_all(&text).and_then(|()| file.sync_all()).context("cannot write a key file")?;
        }
        Ok(copied)
    }

    pub fn keep(mut self) -> usize {
        std::mem::take(&mut self.0).len()
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        for path in &self.0 {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// The result of a backup or restore.
pub struct Done<'a> {
    pub from: &'a Path,
    pub to: &'a Path,
    pub stats: Stats,
    pub keys: usize,
    pub begun: Instant,
}

impl Done<'_> {
    pub fn print(&self, as_json: bool) -> anyhow::Result<Exit> {
        let Done { from, to, stats, keys, begun } = self;
        let rows: u64 = stats.rows.iter().map(|(_, rows)| rows).sum();
        let runs = stats.rows.iter().find(|(table, _)| table == "workflow_runs").map_or(0, |(_, rows)| *rows);
        let took = begun.elapsed();
        if as_json {
            document(&json!({
                "from": from.to_string_lossy(),
                "to": to.to_string_lossy(),
                "bytes": stats.bytes,
                "rows": rows,
                "runs": runs,
                "key_files": keys,
                "milliseconds": took.as_millis() as u64,
            }))?;
            return Ok(Exit::Success);
        }
        let size = doctor::bytes(stats.bytes);
        let keys = if *keys > 0 { "with key files" } else { "without key files" };
        println!("{}: {runs} runs, {rows} rows, {size}, {keys}, in {:.1} s", to.display(), took.as_secs_f64());
        Ok(Exit::Success)
    }
}
