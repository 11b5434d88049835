//! `stepwell backup`: a copy of the embedded store in one file, made while a server runs on it or not.

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
    /// The file to make; one that is there is not overwritten
    to: PathBuf,
    /// Copies the key files too, as `TO.admin.key`, `TO.agent.key` and `TO.master.key`
    #[arg(long)]
    with_keys: bool,
    /// One JSON document
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
    Done { from: &directory, to: &args.to, stats, keys, begun }.tell(args.json)
}

/// The directory of a server on a database has nothing but keys, or what was there before.
pub fn embedded_only(data: &Data, instead: &str) -> anyhow::Result<()> {
    match data.database().or_else(|| variable("STEPWELL_DATABASE")) {
        Some(_) => bail!("this is for a data directory, and a database was named: use {instead} for that"),
        None => Ok(()),
    }
}

/// Where the copy of a key file is.
pub fn beside(copy: &Path, name: &str) -> PathBuf {
    let mut path = copy.as_os_str().to_owned();
    path.push(format!(".{name}"));
    path.into()
}

/// Key files that were copied. They are taken back if what they belong to is not copied.
#[derive(Default)]
pub struct Keys(Vec<PathBuf>);

const NAMES: [&str; 3] = ["admin.key", "agent.key", "master.key"];

impl Keys {
    /// Refuses if a key file that is there would have to be overwritten.
    pub fn check(from: impl Fn(&str) -> PathBuf, to: impl Fn(&str) -> PathBuf) -> anyhow::Result<()> {
        match NAMES.iter().find(|name| from(name).exists() && to(name).exists()) {
            Some(name) => bail!("{} already exists and was not changed", to(name).display()),
            None => Ok(()),
        }
    }

    /// Copies those that are there.
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
            file.write_all(&text).and_then(|()| file.sync_all()).context("a key file cannot be written")?;
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

/// What was copied.
pub struct Done<'a> {
    pub from: &'a Path,
    pub to: &'a Path,
    pub stats: Stats,
    pub keys: usize,
    pub begun: Instant,
}

impl Done<'_> {
    pub fn tell(&self, as_json: bool) -> anyhow::Result<Exit> {
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
