//! `stepwell audit`: exports the audit trail to a file that can be verified, verifies such a file, and prints an anchor.

use super::Exit;
use crate::draw::plain;
use crate::home::Data;
use crate::{embedded, logging};
use anyhow::{Context, bail};
use async_trait::async_trait;
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use stepwell_core::time::Time;
use stepwell_engine::doctor::{self, Export, FileCheck, Lines};
use stepwell_engine::{Clock, SystemClock};

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Write the audit trail of all organisations to a file, with its hashes and a signature
    Export(ExportArgs),
    /// Verify an exported file with the chain key of the installation
    Verify(VerifyArgs),
    /// Print an anchor: the heads of the audit trail, to be kept elsewhere
    Anchor(AnchorArgs),
}

#[derive(clap::Args)]
struct ExportArgs {
    #[command(flatten)]
    data: Data,
    /// File to create; an existing file is not overwritten (default: standard output)
    to: Option<PathBuf>,
    /// Only rows since this time, such as 2026-11-18T00:00:00Z
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
}

#[derive(clap::Args)]
struct VerifyArgs {
    #[command(flatten)]
    data: Data,
    /// Exported file
    file: PathBuf,
}

#[derive(clap::Args)]
struct AnchorArgs {
    #[command(flatten)]
    data: Data,
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    logging::start();
    embedded::runtime()?.block_on(async {
        match args.command {
            Command::Export(args) => export(args).await,
            Command::Verify(args) => verify(args).await,
            Command::Anchor(args) => {
                let home = args.data.open_to_look().await?;
                let anchor = doctor::anchor(&*home.store, SystemClock.now()).await?;
                writeln!(std::io::stdout().lock(), "{}", serde_json::to_string(&anchor)?)?;
                Ok(Exit::Success)
            }
        }
    })
}

async fn export(args: ExportArgs) -> anyhow::Result<Exit> {
    let since = match args.since.as_deref() {
        Some(text) => Some(
            Time::parse(text)
                .with_context(|| format!("--since: {text:?} is not a time; write one such as 2026-11-18T00:00:00Z"))?,
        ),
        None => None,
    };
    let home = args.data.open_to_look().await?;
    let mut out = Out(match &args.to {
        Some(path) => Box::new(BufWriter::new(create(path)?)),
        None => Box::new(BufWriter::new(std::io::stdout())),
    });
    let rows = Export::new(&*home.store, &mut out).run(SystemClock.now(), since).await?;
    out.0.flush()?;
    eprintln!("{rows} rows");
    Ok(Exit::Success)
}

struct Out(Box<dyn Write + Send>);

#[async_trait]
impl Lines for Out {
    async fn line(&mut self, text: &str) -> std::io::Result<()> {
        writeln!(self.0, "{text}")
    }
}

fn create(path: &Path) -> anyhow::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    // The trail names people and what they did.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).with_context(|| path.display().to_string())
}

async fn verify(args: VerifyArgs) -> anyhow::Result<Exit> {
    let home = args.data.open_to_look().await?;
    let key = home.store.chain_key();
    let file = File::open(&args.file).with_context(|| args.file.display().to_string())?;
    let mut check = FileCheck::new(key);
    for line in BufReader::new(file).lines() {
        check.line(&line?);
    }
    let verdict = check.end();
    for fault in &verdict.faults {
        println!("fault     {}", plain(fault));
    }
    if !verdict.faults.is_empty() {
        return Ok(Exit::Failed);
    }
    let note = if key.is_secret() { "" } else { "; without a master key anyone can write such a file" };
    println!("{} rows, nothing is wrong{note}", verdict.rows);
    Ok(Exit::Success)
}

/// The newest anchors of a file, one per line.
pub fn anchors(path: &Path) -> anyhow::Result<Vec<String>> {
    let file = File::open(path).with_context(|| path.display().to_string())?;
    let mut lines = VecDeque::new();
    for line in BufReader::new(file).lines() {
        let line = line.with_context(|| path.display().to_string())?;
        if line.trim().is_empty() {
            continue;
        }
        if lines.len() == doctor::MOST_ANCHORS {
            lines.pop_front();
        }
        lines.push_back(line);
    }
    if lines.is_empty() {
        bail!("{} contains no anchor", path.display());
    }
    Ok(lines.into())
}
