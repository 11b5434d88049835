//! `stepwell completion`: scripts that complete commands and options in a shell.

use super::Exit;
use crate::help;
use clap_complete::Shell;
use std::io::Write;

#[derive(clap::Args)]
pub struct Args {
    /// Shell to complete in
    shell: Shell,
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut shown(), "stepwell", &mut script);
    std::io::stdout().lock().write_all(&script)?;
    Ok(Exit::Success)
}

/// The command line without hidden commands, which some shells would complete.
fn shown() -> clap::Command {
    let whole = help::command();
    let commands = whole.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    clap::Command::new("stepwell").version(env!("CARGO_PKG_VERSION")).subcommands(commands.collect::<Vec<_>>())
}
