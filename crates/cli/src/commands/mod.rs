//! One file per command. Each parses nothing itself: arguments come typed, and the result is an exit code.

pub mod apply;
pub mod backup;
pub mod bench;
pub mod channels;
pub mod check;
pub mod control;
pub mod doctor;
pub mod gates;
pub mod graph;
pub mod look;
pub mod mcp;
pub mod migrate;
pub mod nodes;
pub mod people;
pub mod pipe;
pub mod policy;
pub mod queries;
pub mod restore;
pub mod run;
pub mod secrets;
pub mod serve;
pub mod servers;
pub mod simulate;
pub mod start;
pub mod watch;
pub mod workflows;

use crate::client::At;
use serde::Serialize;
use serde_json::json;
use std::io::Write;
use std::process::ExitCode;

/// What a script can tell from the exit code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    Success,
    /// It ran, and the outcome is bad.
    Failed,
    /// The definition, the input, the data directory or the command line is wrong.
    BadInput,
    /// The run was cancelled or took too long.
    Stopped,
    /// A signal came before the end.
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

/// What commands take that ask or tell an installation something.
#[derive(clap::Args)]
pub struct Common {
    #[command(flatten)]
    pub at: At,
    /// For programs: a JSON document, or in lists one object per line
    #[arg(long)]
    pub json: bool,
}

/// One thing, for programs.
fn document(what: &impl Serialize) -> anyhow::Result<()> {
    Ok(writeln!(std::io::stdout().lock(), "{:#}", json!(what))?)
}

/// A list, a line for each.
fn lines<T: Serialize>(all: &[T], as_json: bool, words: impl Fn(&T) -> String) -> anyhow::Result<Exit> {
    let mut out = std::io::stdout().lock();
    for one in all {
        writeln!(out, "{}", if as_json { json!(one).to_string() } else { crate::draw::plain(&words(one)) })?;
    }
    Ok(Exit::Success)
}
