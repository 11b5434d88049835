//! `stepwell apply`: creates or updates workflows from files, and deletes those that its set no longer has. Applying
//! again changes nothing.
//!
//! A set is a name that workflows are given when they are applied. Only what was applied as a part of a set is ever
//! deleted with it.

use super::{Exit, document};
use crate::backend::{Backend, Current, Missing, with};
use crate::client::Target;
use crate::draw::plain;
use crate::source::{Source, gather, is_definition};
use anyhow::{Context, bail};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use stepwell_core::diff::unified;
use stepwell_server::view::{EarlierWorkflow, WorkflowSummary};

#[derive(clap::Args)]
pub struct Args {
    /// Definition files, or directories of them (*.yaml, *.yml, *.json); `-` reads standard input
    #[arg(short = 'f', long = "file", value_name = "DIR|FILE", required = true, num_args = 1..)]
    files: Vec<String>,
    /// Only show what would change
    #[arg(long)]
    dry_run: bool,
    /// Make the workflows a part of this set
    #[arg(long, value_name = "NAME")]
    set: Option<String>,
    /// Delete workflows of the set that are in none of the directories any more
    #[arg(long, requires = "set")]
    prune: bool,
    /// Take over workflows that belong to another set
    #[arg(long, requires = "set")]
    adopt: bool,
    #[command(flatten)]
    at: Target,
    /// Print one JSON object per workflow
    #[arg(long)]
    json: bool,
}

/// A definition to apply.
struct Wanted {
    file: String,
    name: String,
    text: String,
}

/// What was done, or would be done, about one workflow.
#[derive(Serialize)]
struct Done<'a> {
    /// `None` if it is deleted because no file has it.
    file: Option<&'a str>,
    workflow: &'a str,
    result: &'static str,
    version: u32,
    previous_version: Option<u32>,
    dry_run: bool,
    /// Of a new workflow: the one of the same name that was deleted last.
    #[serde(skip_serializing_if = "Option::is_none")]
    earlier: Option<EarlierWorkflow>,
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
    if let Some(file) = args.files.iter().find(|file| args.prune && !Path::new(file).is_dir()) {
        bail!("--prune needs directories: {file} is not the whole set, and the rest would be deleted");
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
    let existing = if args.set.is_some() { backend.workflows().await? } else { Vec::new() };
    let surplus = check_set(args, wanted, &existing)?;
    let mut all: Vec<(&Wanted, Option<Current>)> = Vec::new();
    for one in wanted {
        // The server may be another version than this program.
        backend.check(&one.text).await.with_context(|| one.file.clone())?;
        all.push((one, backend.current(&one.name).await?));
    }
    for (one, before) in &all {
        let done = define(backend, args, one, before.as_ref()).await?;
        assign(backend, args, one, &existing).await?;
        print(args, &done, one, before.as_ref())?;
    }
    for WorkflowSummary { id, name, version, .. } in surplus {
        if !args.dry_run {
            backend.delete_workflow(id).await.with_context(|| name.clone())?;
        }
        let (version, previous_version, dry_run) = (*version, Some(*version), args.dry_run);
        let done =
            Done { file: None, workflow: name, result: "deleted", version, previous_version, dry_run, earlier: None };
        match args.json {
            true => document(&done)?,
            false => writeln!(std::io::stdout(), "{}", plain(&format!("{name}: deleted")))?,
        }
    }
    if args.dry_run && !args.json {
        eprintln!("nothing was changed");
    }
    Ok(Exit::Success)
}

/// Refuses workflows of another set; returns those of this set that no file has.
fn check_set<'a>(
    args: &Args,
    wanted: &[Wanted],
    existing: &'a [WorkflowSummary],
) -> anyhow::Result<Vec<&'a WorkflowSummary>> {
    let file_of = |workflow: &WorkflowSummary| wanted.iter().find(|one| one.name == workflow.name);
    let mut surplus = Vec::new();
    for workflow in existing {
        let same = workflow.set == args.set;
        match (file_of(workflow), &workflow.set) {
            (Some(Wanted { file, name, .. }), Some(set)) if !same && !args.adopt => {
                bail!("{file}: the workflow {name:?} belongs to the set {set:?}; --adopt takes it over");
            }
            (None, Some(_)) if same && args.prune => surplus.push(workflow),
            _ => {}
        }
    }
    Ok(surplus)
}

async fn define<'a>(
    backend: &Backend,
    args: &Args,
    one: &'a Wanted,
    before: Option<&Current>,
) -> anyhow::Result<Done<'a>> {
    let same = before.is_some_and(|before| before.source == one.text);
    let mut earlier = None;
    let version = match before {
        Some(before) if same => before.version,
        _ if !args.dry_run => {
            let made = backend.define(&one.name, &one.text, before).await;
            let made = made.with_context(|| one.file.clone())?;
            earlier = made.earlier;
            made.version
        }
        Some(before) => before.version + 1,
        None => 1,
    };
    let result = match before {
        None => "created",
        Some(_) if same => "unchanged",
        Some(_) => "changed",
    };
    let previous_version = before.map(|before| before.version);
    let (file, dry_run) = (Some(one.file.as_str()), args.dry_run);
    Ok(Done { file, workflow: &one.name, result, version, previous_version, dry_run, earlier })
}

async fn assign(backend: &Backend, args: &Args, one: &Wanted, existing: &[WorkflowSummary]) -> anyhow::Result<()> {
    let Some(set) = args.set.as_deref().filter(|_| !args.dry_run) else { return Ok(()) };
    let known = existing.iter().find(|workflow| workflow.name == one.name);
    if known.is_none_or(|known| known.set.as_deref() != Some(set)) {
        backend.assign(&one.name, set).await.with_context(|| one.file.clone())?;
    }
    Ok(())
}

fn print(args: &Args, done: &Done<'_>, one: &Wanted, before: Option<&Current>) -> anyhow::Result<()> {
    if args.json {
        return document(done);
    }
    let text = match before {
        Some(before) if done.result == "changed" => {
            let (was, version) = (before.version, done.version);
            let changes = unified(&before.source, &one.text);
            format!("{}: version {was} → {version}\n--- version {was}\n+++ {}\n{changes}", one.name, one.file)
        }
        _ => match &done.earlier {
            Some(EarlierWorkflow { id, .. }) => {
                format!("{}: {}; an earlier workflow of this name is deleted: {id}\n", one.name, done.result)
            }
            None => format!("{}: {}\n", one.name, done.result),
        },
    };
    Ok(write!(std::io::stdout(), "{}", plain(&text))?)
}
