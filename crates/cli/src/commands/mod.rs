//! One file per command. Each parses nothing itself: arguments come typed, and the result is an exit code.

pub mod bench;
pub mod check;
pub mod graph;
pub mod simulate;

use std::process::ExitCode;

/// What a script can tell from the exit code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    Success,
    /// It ran, and the outcome is bad.
    Failed,
    /// The definition or the command line is wrong.
    BadInput,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(match exit {
            Exit::Success => 0,
            Exit::Failed => 1,
            Exit::BadInput => 2,
        })
    }
}
