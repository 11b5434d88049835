//! `stepwell graph`: draws a definition.

use super::Exit;
use crate::draw::{self, Format};
use crate::source;
use std::io::Write;
use stepwell_core::outline::outline;

#[derive(clap::Args)]
pub struct Args {
    /// Definition file; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: String,
    /// Output format: text, mermaid, dot, svg or json
    #[arg(long, default_value = "text", conflicts_with = "json")]
    format: Format,
    /// Short for --format json
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    let Some(definition) = source::load(&args.file)? else { return Ok(Exit::BadInput) };
    let format = if args.json { Format::Json } else { args.format };
    std::io::stdout().lock().write_all(draw::render(&outline(&definition), format).as_bytes())?;
    Ok(Exit::Success)
}
