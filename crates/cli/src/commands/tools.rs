//! `stepwell tool`: lists workflows that are exposed as tools, or the tools that steps may call.

use super::{Common, Exit, lines};
use crate::backend::{Missing, with};
use stepwell_server::view::*;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// List the workflows that are exposed as tools
    List {
        /// List the tools that steps may call instead
        #[arg(long)]
        steps: bool,
        #[command(flatten)]
        common: Common,
    },
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    match args.command {
        Command::List { steps: true, common } => {
            with(&common.at, Missing::Refuse, async |backend| lines(&backend.catalogue().await?, common.json, callable))
        }
        Command::List { steps: false, common } => {
            with(&common.at, Missing::Refuse, async |backend| lines(&backend.tools().await?, common.json, listed))
        }
    }
}

fn callable(tool: &CatalogueTool) -> String {
    let CatalogueTool { name, description, .. } = tool;
    let reads = if tool.read_only { "  [reads]" } else { "" };
    let may = if tool.allowed { "" } else { "  (not allowed)" };
    format!("{name}{reads}{may}  {description}")
}

fn listed(tool: &WorkflowToolView) -> String {
    let WorkflowToolView { name, standing, workflow, version, defined_by, .. } = tool;
    let why = tool.why.as_ref().map(|why| format!("  {why}")).unwrap_or_default();
    format!("{name}  {standing}  {workflow} ({version}) by {defined_by}{why}")
}
