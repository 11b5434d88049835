//! `stepwell tool`: lists workflows that are exposed as tools, and accepts versions that agents defined.

use super::{Common, Exit, document, lines};
use crate::backend::{Missing, with};
use crate::draw::plain;
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
        #[command(flatten)]
        common: Common,
    },
    /// Accept the newest version of a workflow as a tool that agents are offered
    Accept {
        /// Workflow, by name or `wf_…`
        #[arg(value_name = "WORKFLOW")]
        workflow: String,
        /// Refuse if this is no longer the newest version
        #[arg(long)]
        version: Option<u32>,
        #[command(flatten)]
        common: Common,
    },
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    match args.command {
        Command::List { common } => {
            with(&common.at, Missing::Refuse, async |backend| lines(&backend.tools().await?, common.json, listed))
        }
        Command::Accept { workflow, version, common } => with(&common.at, Missing::Refuse, async |backend| {
            let tool = backend.accept_tool(&workflow, AcceptToolRequest { version }).await?;
            if common.json {
                document(&tool)?;
            } else {
                eprintln!("{}", plain(&listed(&tool)));
            }
            Ok(Exit::Success)
        }),
    }
}

fn listed(tool: &WorkflowToolView) -> String {
    let WorkflowToolView { name, standing, workflow, version, defined_by, .. } = tool;
    let why = tool.why.as_ref().map(|why| format!("  {why}")).unwrap_or_default();
    format!("{name}  {standing}  {workflow} ({version}) by {defined_by}{why}")
}
