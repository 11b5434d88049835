//! `stepwell graph`: draws a definition.

use super::{Exit, document};
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
    /// Print the drawing as JSON, on one line
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    let Some(definition) = source::load(&args.file)? else { return Ok(Exit::BadInput) };
    if args.json {
        let picture: serde_json::Value = serde_json::from_str(&draw::render(&outline(&definition), Format::Json))?;
        document(&picture)?;
        return Ok(Exit::Success);
    }
    std::io::stdout().lock().write_all(draw::render(&outline(&definition), args.format).as_bytes())?;
    Ok(Exit::Success)
}
