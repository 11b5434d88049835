//! `stepwell mcp-server`: lists MCP servers whose tools steps can call, and accepts their tools.

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
    /// List the configured servers and the state of their tools
    List {
        /// Only this server, with the descriptions of its tools
        server: Option<String>,
        #[command(flatten)]
        common: Common,
    },
    /// Accept new or changed tools of a server, so that steps can call them
    Accept {
        /// Name of the server in the configuration
        server: String,
        /// Tools to accept (default: all)
        tools: Vec<String>,
        /// Refuse if the tool no longer has this digest (needs exactly one tool)
        #[arg(long)]
        digest: Option<String>,
        #[command(flatten)]
        common: Common,
    },
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    match args.command {
        Command::List { server, common } => with(&common.at, Missing::Refuse, async |backend| {
            let mut servers = backend.mcp_servers().await?;
            if let Some(name) = &server {
                servers.retain(|known| known.name == *name);
                anyhow::ensure!(!servers.is_empty(), "there is no MCP server {name:?}");
            }
            lines(&servers, common.json, |known| listed(known, server.is_some()))
        }),
        Command::Accept { server, tools, digest, common } => {
            anyhow::ensure!(digest.is_none() || tools.len() == 1, "--digest needs exactly one tool");
            let tools = tools.into_iter().map(|tool| AcceptedTool { tool, digest: digest.clone() }).collect();
            with(&common.at, Missing::Refuse, async |backend| {
                let known = backend.accept_tools(&server, AcceptRequest { tools }).await?;
                if common.json {
                    document(&known)?;
                } else {
                    eprintln!("{}", plain(&listed(&known, false)));
                }
                Ok(Exit::Success)
            })
        }
    }
}

fn listed(server: &McpServerView, full: bool) -> String {
    let mut text = format!("{}  {}", server.name, server.state);
    for part in [&server.transport, &server.about, &server.why].into_iter().flatten() {
        text += &format!("  {part}");
    }
    for tool in &server.tools {
        let digest: String = tool.digest.as_ref().or(tool.accepted_digest.as_ref()).into_iter().cloned().collect();
        let digest: String = if full { digest } else { digest.chars().take(12).collect() };
        text += &format!("\n  {}  {}  {digest}", tool.name.as_ref().unwrap_or(&tool.tool), tool.standing);
        if let Some(why) = &tool.why {
            text += &format!("  {why}");
        }
        if full && let Some(description) = &tool.description {
            text += &format!("\n    {}", description.replace('\n', "\n    "));
        }
        if full && tool.standing == "changed" {
            let before = tool.accepted_description.as_deref().unwrap_or_default();
            text += &format!("\n    accepted was: {}", before.replace('\n', "\n    "));
        }
    }
    text
}
