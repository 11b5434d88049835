//! `stepwell workflow`: shows a workflow and its versions, compares two of them; deletes and restores workflows.

mod diff;

use super::{Common, Exit, confirm, document, lines};
use crate::backend::{Backend, Missing, with};
use crate::describe::instant;
use crate::draw::{self, Format, plain};
use std::fmt::Write as _;
use std::io::Write as _;
use stepwell_core::outline::outline;
use stepwell_server::view::{VersionView, Workflow, WorkflowSummary};

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// List workflows, as `stepwell workflows` does
    List(ListArgs),
    /// Show a workflow: its state, its steps and its versions
    Show(ShowArgs),
    /// Show what changed between two versions, in the text and in the graph
    Diff(diff::Args),
    /// Delete a workflow; runs under way finish
    Delete(WorkflowArgs),
    /// Restore a deleted workflow, by its id or by the name of the one that was deleted last
    Restore(WorkflowArgs),
}

#[derive(clap::Args)]
struct ListArgs {
    /// List deleted workflows, the last one deleted first
    #[arg(long)]
    deleted: bool,
    #[command(flatten)]
    common: Common,
}

fn list(args: ListArgs) -> anyhow::Result<Exit> {
    with(&args.common.at, Missing::Refuse, async |backend| match args.deleted {
        true => lines(&backend.deleted_workflows().await?, args.common.json, deleted),
        false => lines(&backend.workflows().await?, args.common.json, super::workflows::listed),
    })
}

fn deleted(workflow: &WorkflowSummary) -> String {
    let WorkflowSummary { id, name, version, deleted_at, .. } = workflow;
    let at = deleted_at.map(|at| instant(at.0)).unwrap_or_default();
    format!("{id}  {name} ({version})  deleted {at}")
}

#[derive(clap::Args)]
struct ShowArgs {
    /// Workflow, by name or `wf_…`
    #[arg(value_name = "WORKFLOW")]
    workflow: String,
    /// Show this version instead of the newest
    #[arg(long, value_name = "N")]
    version: Option<u32>,
    /// Print only the definition as its author wrote it
    #[arg(long, conflicts_with = "json")]
    source: bool,
    #[command(flatten)]
    common: Common,
}

#[derive(clap::Args)]
struct WorkflowArgs {
    /// Workflow, by name or `wf_…`
    #[arg(value_name = "WORKFLOW")]
    workflow: String,
    #[command(flatten)]
    common: Common,
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    match args.command {
        Command::List(args) => list(args),
        Command::Show(args) => show(args),
        Command::Diff(args) => diff::run(args),
        Command::Delete(WorkflowArgs { workflow, common }) => with(&common.at, Missing::Refuse, async |backend| {
            let WorkflowSummary { id, name, .. } = backend.workflow(&workflow).await?.summary;
            backend.delete_workflow(&id).await?;
            let gone = serde_json::json!({"id": id, "name": name, "deleted": true});
            confirm(&gone, common.json, &format!("{name} ({id}) is deleted; its runs under way finish"))
        }),
        Command::Restore(WorkflowArgs { workflow, common }) => with(&common.at, Missing::Refuse, async |backend| {
            let restored = backend.restore_workflow(&workflow).await?;
            confirm(&restored, common.json, &format!("{} (version {}) is restored", restored.name, restored.version))
        }),
    }
}

fn show(args: ShowArgs) -> anyhow::Result<Exit> {
    let ShowArgs { workflow, version, source, common } = args;
    with(&common.at, Missing::Refuse, async |backend| {
        let text = match version {
            Some(version) => {
                let version = backend.version(&workflow, version).await?;
                if common.json {
                    document(&version)?;
                    return Ok(Exit::Success);
                }
                if source { version.source } else { one_version(&version) }
            }
            None => {
                let found = backend.workflow(&workflow).await?;
                if common.json {
                    document(&found)?;
                    return Ok(Exit::Success);
                }
                if source { found.source } else { page(backend, &found).await? }
            }
        };
        // The source is a file, so it stays as it is.
        let text = if source { text } else { plain(&text) };
        std::io::stdout().lock().write_all(text.as_bytes())?;
        Ok(Exit::Success)
    })
}

async fn page(backend: &Backend, workflow: &Workflow) -> anyhow::Result<String> {
    let WorkflowSummary { id, name, version, description, triggers, labels, .. } = &workflow.summary;
    let state = match workflow.summary.deleted_at {
        Some(at) => format!("deleted {}", instant(at.0)),
        None => super::workflows::state(&workflow.summary).to_string(),
    };
    let mut text = format!("{name} ({id}): version {version}, {state}\n");
    let mut line = |what: &str, content: String| {
        let _ = writeln!(text, "{what:<10}{content}");
    };
    description.iter().for_each(|description| line("about", description.clone()));
    line("dialect", workflow.dialect.clone());
    line("starts by", triggers.join(", "));
    workflow.webhooks.iter().for_each(|url| line("webhook", url.clone()));
    workflow.summary.set.iter().for_each(|set| line("set", set.clone()));
    if !labels.is_empty() {
        let labels: Vec<String> = labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        line("labels", labels.join(", "));
    }
    for paused in &workflow.paused_keys {
        line("paused", format!("runs with the key {} since {}", paused.key, instant(paused.since.0)));
    }
    for version in backend.versions(id).await? {
        line("version", format!("{} of {} by {}", version.version, instant(version.created_at.0), version.created_by));
    }
    let _ = write!(text, "\n{}", drawing(&workflow.source));
    Ok(text)
}

fn one_version(version: &VersionView) -> String {
    let VersionView { version, created_by, created_at, source } = version;
    format!("version {version} of {} by {created_by}\n\n{}", instant(created_at.0), drawing(source))
}

/// The steps as a drawing. A version that this program cannot read is shown as its author wrote it.
fn drawing(source: &str) -> String {
    match stepwell_formats::read(source.as_bytes(), None) {
        Ok(definition) => draw::render(&outline(&definition), Format::Text),
        Err(_) => source.to_string(),
    }
}
