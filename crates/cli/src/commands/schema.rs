//! `stepwell schema`: prints the JSON Schema of definitions, with which editors complete and check them.

use super::Exit;
use std::io::Write;
use stepwell_formats::schema::{Which, schema};

#[derive(clap::Args)]
pub struct Args {
    /// Dialect: all, tasks, flow or graph
    #[arg(value_name = "DIALECT", default_value = "all", value_parser = dialect)]
    dialect: Which,
}

fn dialect(name: &str) -> Result<Which, String> {
    let names = Which::NAMES.map(|(name, _)| name).join(", ");
    Which::named(name).ok_or_else(|| format!("known: {names}"))
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    writeln!(std::io::stdout().lock(), "{:#}", schema(args.dialect))?;
    Ok(Exit::Success)
}
