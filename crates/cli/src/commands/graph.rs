//! `stepwell graph`: draws a definition.

use super::Exit;
use crate::draw::{self, Format};
use crate::outline;
use crate::source;
use std::io::Write;

#[derive(clap::Args)]
pub struct Args {
    /// The definition; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: String,
    /// text, mermaid, dot, svg or json
    #[arg(long, default_value = "text", conflicts_with = "json")]
    format: Format,
    /// Short for --format json
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    let Some(definition) = source::load(&args.file)? else { return Ok(Exit::BadInput) };
    let format = if args.json { Format::Json } else { args.format };
    let drawing = outline::drawing(&definition);
    std::io::stdout().lock().write_all(draw::render(&drawing, format).as_bytes())?;
    Ok(Exit::Success)
}
