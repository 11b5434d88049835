//! `stepwell man`: the manual pages, made from the same descriptions as the help.

use super::Exit;
use crate::help;
use anyhow::Context;
use std::io::Write;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
pub struct Args {
    /// Directory to write a page for every command to (default: print the page of stepwell itself)
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    // Pages are named after the command with its parents: stepwell-key-create.1.
    let mut command = help::command().disable_help_subcommand(true);
    command.build();
    match &args.directory {
        None => std::io::stdout().lock().write_all(&page(&command)?)?,
        Some(directory) => {
            std::fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
            let pages = write(&command, directory)?;
            eprintln!("{pages} pages in {}", directory.display());
        }
    }
    Ok(Exit::Success)
}

fn page(command: &clap::Command) -> anyhow::Result<Vec<u8>> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    Ok(page)
}

/// Writes the page of a command and those of its subcommands; returns how many.
fn write(command: &clap::Command, directory: &Path) -> anyhow::Result<usize> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let file = directory.join(format!("{name}.1"));
    std::fs::write(&file, page(command)?).with_context(|| file.display().to_string())?;
    let mut pages = 1;
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        pages += write(inner, directory)?;
    }
    Ok(pages)
}
