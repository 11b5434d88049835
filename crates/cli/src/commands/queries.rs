//! `stepwell query`: statements that query steps use by name.

use super::{Common, Exit, confirm, lines};
use crate::backend::{Missing, with};
use crate::describe::instant;
use anyhow::Context;
use serde_json::Value;
use std::path::PathBuf;
use stepwell_server::view::*;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Save or replace a query; reads the statement from standard input
    Set {
        /// Name by which steps use it
        name: String,
        /// Connection to run it on
        #[arg(long, value_name = "NAME")]
        connection: String,
        /// Read the statement from a file
        #[arg(long, value_name = "FILE")]
        from_file: Option<PathBuf>,
        /// Default for the parameter :NAME, as JSON or plain text (repeatable)
        #[arg(long = "param", value_name = "NAME=VALUE", value_parser = param)]
        params: Vec<(String, Value)>,
        /// Allow the statement to write
        #[arg(long)]
        write: bool,
        /// Maximum number of rows returned
        #[arg(long, value_name = "N")]
        rows: Option<u32>,
        #[command(flatten)]
        common: Common,
    },
    /// List saved queries
    List {
        #[command(flatten)]
        common: Common,
    },
    /// Delete a saved query
    #[command(visible_alias = "rm")]
    Delete {
        /// Name of the query
        name: String,
        #[command(flatten)]
        common: Common,
    },
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    match args.command {
        Command::Set { name, connection, from_file, params, write, rows, common } => {
            let sql = match from_file {
                Some(path) => std::fs::read_to_string(&path).with_context(|| path.display().to_string())?,
                None => std::io::read_to_string(std::io::stdin()).context("cannot read standard input as text")?,
            };
            let to =
                QueryRequest { connection, sql: sql.trim().into(), params: params.into_iter().collect(), write, rows };
            with(&common.at, Missing::Create, async |backend| {
                let query = backend.put_query(&name, to).await?;
                confirm(&query, common.json, &format!("{name} is saved, on {}", query.connection))
            })
        }
        Command::List { common } => {
            with(&common.at, Missing::Refuse, async |backend| lines(&backend.queries().await?, common.json, listed))
        }
        Command::Delete { name, common } => with(&common.at, Missing::Refuse, async |backend| {
            backend.remove_query(&name).await?;
            confirm(&serde_json::json!({"name": name, "deleted": true}), common.json, &format!("{name} is deleted"))
        }),
    }
}

fn param(text: &str) -> Result<(String, Value), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.to_string(), serde_json::from_str(value).unwrap_or_else(|_| value.into())))
}

fn listed(query: &QueryView) -> String {
    let QueryView { name, connection, sql, write, changed_at, changed_by, .. } = query;
    let write = if *write { "writes" } else { "reads only" };
    let sql = sql.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{name}  {connection}  {write}  {} by {changed_by}  {sql}", instant(changed_at.0))
}
