//! One file per command or group of commands. Arguments arrive parsed and typed; the result is an exit code.

pub mod apply;
pub mod approvals;
pub mod audit;
pub mod backup;
pub mod bench;
pub mod channels;
pub mod check;
pub mod completion;
pub mod control;
pub mod doctor;
pub mod graph;
pub mod keys;
pub mod login;
pub mod man;
pub mod mcp;
pub mod mcp_servers;
pub mod migrate;
pub mod nodes;
pub mod pipe;
pub mod policy;
pub mod queries;
pub mod restore;
pub mod reviews;
pub mod run;
pub mod runs;
pub mod schema;
pub mod secrets;
pub mod serve;
pub mod simulate;
pub mod test;
pub mod tools;
pub mod trigger;
pub mod users;
pub mod watch;
pub mod workflow;
pub mod workflows;

use crate::client::Target;
use serde::Serialize;
use serde_json::json;
use std::io::Write;
use std::process::ExitCode;

/// The exit code, for scripts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    Success,
    /// The command ran and the outcome is bad.
    Failed,
    /// The definition, the input, the data directory or the command line is wrong.
    BadInput,
    /// The run was cancelled or took too long.
    Stopped,
    /// A signal arrived before the end.
    Interrupted,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(match exit {
            Exit::Success => 0,
            Exit::Failed => 1,
            Exit::BadInput => 2,
            Exit::Stopped => 3,
            Exit::Interrupted => 130,
        })
    }
}

/// Arguments shared by the commands that talk to an installation.
#[derive(clap::Args)]
pub struct Common {
    #[command(flatten)]
    pub at: Target,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
}

/// Prints one value as JSON, on one line like every value of a list.
fn document(value: &impl Serialize) -> anyhow::Result<()> {
    Ok(writeln!(std::io::stdout().lock(), "{}", json!(value))?)
}

/// Reports what was done: the result as JSON, or one line of text on standard error.
fn confirm(result: &impl Serialize, as_json: bool, text: &str) -> anyhow::Result<Exit> {
    if as_json {
        document(result)?;
    } else {
        eprintln!("{}", crate::draw::plain(text));
    }
    Ok(Exit::Success)
}

/// Prints a list, one line per item.
fn lines<T: Serialize>(items: &[T], as_json: bool, describe: impl Fn(&T) -> String) -> anyhow::Result<Exit> {
    let mut out = std::io::stdout().lock();
    for item in items {
        writeln!(out, "{}", if as_json { json!(item).to_string() } else { crate::draw::plain(&describe(item)) })?;
    }
    Ok(Exit::Success)
}
