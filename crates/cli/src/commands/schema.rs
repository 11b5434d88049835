//! `stepwell schema`: prints the JSON Schema of definitions, with which editors complete and check them, or the OpenAPI
//! description of the API, from which clients are generated.

use super::Exit;
use std::io::Write;
use stepwell_formats::schema::{Which, schema};

/// The name under which the description of the API is printed.
const API: &str = "api";

#[derive(clap::Args)]
pub struct Args {
    /// Dialect: all, tasks, flow or graph; or api for the OpenAPI description of the API
    #[arg(value_name = "DIALECT", default_value = "all", value_parser = printed)]
    printed: Printed,
}

#[derive(Clone, Copy)]
enum Printed {
    Definitions(Which),
    Api,
}

fn printed(name: &str) -> Result<Printed, String> {
    if name == API {
        return Ok(Printed::Api);
    }
    let names = Which::NAMES.map(|(name, _)| name).join(", ");
    Which::named(name).map(Printed::Definitions).ok_or_else(|| format!("known: {names}, {API}"))
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    let mut out = std::io::stdout().lock();
    match args.printed {
        Printed::Definitions(which) => writeln!(out, "{:#}", schema(which))?,
        Printed::Api => writeln!(out, "{:#}", stepwell_server::description())?,
    }
    Ok(Exit::Success)
}
