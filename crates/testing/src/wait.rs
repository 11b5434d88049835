//! Waiting for conditions that cannot be awaited, and processes without the environment of this machine.

use crate::{LOOK, PATIENCE};
use std::ffi::OsStr;
use std::process::Command;
use std::time::Instant;

/// Asks until there is an answer.
#[track_caller]
pub fn eventually<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = ask() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "waited in vain: {what}");
        std::thread::sleep(LOOK);
    }
}

/// A program, without any of the settings that this process may have been given for Stepwell.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("STEPWELL_")) {
        command.env_remove(name);
    }
    command
}
