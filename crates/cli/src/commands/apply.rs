//! `stepwell apply`: creates or updates workflows from files. Applying again changes nothing.

use super::Exit;
use crate::backend::{Backend, Current, Missing, with};
use crate::client::Target;
use crate::diff::unified;
use crate::draw::plain;
use crate::source::{Source, gather, is_definition};
use anyhow::{Context, bail};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Write;

#[derive(clap::Args)]
pub struct Args {
    /// Definition files, or directories of them (*.yaml, *.yml, *.json); `-` reads standard input
    #[arg(short = 'f', long = "file", value_name = "DIR|FILE", required = true, num_args = 1..)]
    files: Vec<String>,
    /// Only show what would change
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    at: Target,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

/// A definition to apply.
struct Wanted {
    file: String,
    name: String,
    text: String,
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    let mut paths = Vec::new();
    for file in &args.files {
        let before = paths.len();
        gather(file, &is_definition, &mut paths)?;
        if paths.len() == before {
            bail!("there is no definition in {file} (*.yaml, *.yml, *.json)");
        }
    }
    let Some(sources) = Source::read_all(&paths)? else { return Ok(Exit::BadInput) };
    let wanted = sources.into_iter().map(wanted).collect::<anyhow::Result<Vec<Wanted>>>()?;
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    for Wanted { file, name, .. } in &wanted {
        if let Some(other) = names.insert(name, file) {
            bail!("{other} and {file} both define the workflow {name:?}");
        }
    }
    let missing = if args.dry_run { Missing::Refuse } else { Missing::Create };
    with(&args.at, missing, async |backend| apply(backend, &args, &wanted).await)
}

fn wanted(source: Source) -> anyhow::Result<Wanted> {
    let name = source.compile().map_err(|faults| anyhow::anyhow!("{faults}"))?.name;
    let text = String::from_utf8(source.bytes).with_context(|| format!("{} is not text", source.name))?;
    Ok(Wanted { file: source.name, name, text })
}

async fn apply(backend: &Backend, args: &Args, wanted: &[Wanted]) -> anyhow::Result<Exit> {
    let mut all: Vec<(&Wanted, Option<Current>)> = Vec::new();
    for one in wanted {
        // The server may be another version than this program.
        backend.check(&one.text).await.with_context(|| one.file.clone())?;
        all.push((one, backend.current(&one.name).await?));
    }
    let mut out = std::io::stdout().lock();
    for (one, before) in all {
        let same = before.as_ref().is_some_and(|before| before.source == one.text);
        let version = match &before {
            Some(before) if same => before.version,
            _ if !args.dry_run => {
                let made = backend.define(&one.name, &one.text, before.as_ref()).await;
                made.with_context(|| one.file.clone())?.version
            }
            Some(before) => before.version + 1,
            None => 1,
        };
        let text = match (args.json, &before) {
            (true, _) => line(one, before.as_ref(), version, args.dry_run),
            (false, None) => format!("{}: created\n", one.name),
            (false, Some(_)) if same => format!("{}: unchanged\n", one.name),
            (false, Some(before)) => {
                let was = before.version;
                let changes = unified(&before.source, &one.text);
                format!("{}: version {was} → {version}\n--- version {was}\n+++ {}\n{changes}", one.name, one.file)
            }
        };
        write!(out, "{}", plain(&text))?;
    }
    if args.dry_run && !args.json {
        eprintln!("nothing was changed");
    }
    Ok(Exit::Success)
}

fn line(one: &Wanted, before: Option<&Current>, version: u32, dry_run: bool) -> String {
    let result = match before {
        None => "created",
        Some(before) if before.source == one.text => "unchanged",
        Some(_) => "changed",
    };
    let previous = before.map(|before| before.version);
    let line = json!({"file": one.file, "workflow": one.name, "result": result, "version": version,
                      "previous_version": previous, "dry_run": dry_run});
    format!("{line}\n")
}
