//! PostgreSQL's programs: where they are, and which user may run them.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const PACKAGES: &str = "/usr/lib/postgresql";

/// A program of PostgreSQL: on the path, else the newest that is installed.
pub fn find(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let installed = std::fs::read_dir(PACKAGES).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut installed: Vec<PathBuf> = installed.collect();
    let version = |path: &PathBuf| path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok());
    installed.sort_by_key(version);
    places.extend(installed.iter().rev().map(|version| version.join("bin")));
    let found = places.into_iter().map(|place| place.join(name)).find(|program| program.is_file());
    found.unwrap_or_else(|| panic!("no {name}: install PostgreSQL (scripts/setup.sh does) to run these tests"))
}

/// Somebody who is not root: PostgreSQL refuses to run as root.
#[derive(Clone, Copy)]
pub struct User {
    id: u32,
    group: u32,
}

impl User {
    /// No one else, unless this is root.
    pub fn needed() -> Option<User> {
        if !rustix::process::getuid().is_root() {
            return None;
        }
        let known = std::fs::read_to_string("/etc/passwd").unwrap();
        let find = |name: &str| {
            let fields = known.lines().map(|line| line.split(':').collect::<Vec<_>>());
            let found = fields.into_iter().find(|fields| fields.first() == Some(&name))?;
            Some(User { id: found.get(2)?.parse().ok()?, group: found.get(3)?.parse().ok()? })
        };
        Some(find("postgres").or_else(|| find("nobody")).expect("a user who is not root"))
    }

    pub fn own(self, path: &Path) {
        std::os::unix::fs::chown(path, Some(self.id), Some(self.group)).unwrap();
    }
}

/// A program to be run in a directory of the user's, whatever the machine of the tests is set to.
pub fn command(program: &Path, user: Option<User>, directory: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(directory).env("LC_ALL", "C").env_remove("PGOPTIONS").env_remove("PGDATA");
    // Not in the group that ^C at the terminal reaches.
    command.process_group(0);
    if let Some(user) = user {
        command.uid(user.id).gid(user.group);
    }
    command
}
