//! The real binary on a directory or a database, and a client of its API.

use std::path::PathBuf;
use std::process::{Command, Output};
use stepwell_testing::{Cluster, Schema};
pub use stepwell_testing::{Server, eventually};

/// What the installation is called, wherever it is.
pub const PUBLIC_URL: &str = "https://flows.example.com";

pub fn stepwell() -> Command {
    let mut command = stepwell_testing::command(env!("CARGO_BIN_EXE_stepwell"));
    // A node that was killed is not waited for long.
    command.env("STEPWELL_NODE_LEASE", "1s");
    command
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Where an installation is.
pub enum Installation {
    Directory(tempfile::TempDir),
    /// With a directory for what a server writes beside its database.
    Database(Schema, tempfile::TempDir),
}

impl Installation {
    pub fn directory() -> Installation {
        Installation::Directory(tempfile::tempdir().unwrap())
    }

    pub fn database() -> Installation {
        Installation::Database(Cluster::shared().schema(), tempfile::tempdir().unwrap())
    }

    fn data(&self) -> PathBuf {
        match self {
            Installation::Directory(directory) | Installation::Database(_, directory) => directory.path().join("data"),
        }
    }

    /// As a command takes it.
    pub fn name(&self) -> String {
        match self {
            Installation::Directory(_) => self.data().to_str().unwrap().to_string(),
            Installation::Database(schema, _) => schema.url().to_string(),
        }
    }

    /// A command on the place itself.
    pub fn command(&self, name: &str) -> Command {
        let mut command = stepwell();
        command.args([name, "--data"]).arg(self.data());
        if let Installation::Database(schema, _) = self {
            command.env("STEPWELL_DATABASE", schema.url());
        }
        command
    }

    #[track_caller]
    pub fn sound(&self) {
        let done = self.command("doctor").output().unwrap();
        let said = text(&done.stdout) + &text(&done.stderr);
        assert!(done.status.success() && said.contains("nothing is wrong"), "{said}");
    }

    /// Starts a server on it. The client uses this key, or the one that the server made.
    #[track_caller]
    pub fn serve(&self, key: Option<&str>) -> Server {
        // One that was killed left its address behind.
        let _ = std::fs::remove_file(self.data().join("server.url"));
        let mut command = self.command("serve");
        command.args(["--listen", "127.0.0.1:0"]);
        // What steps call is on this machine.
        command.env("STEPWELL_PUBLIC_URL", PUBLIC_URL).env("STEPWELL_PRIVATE_ADDRESSES", "true");
        let mut server = Server::start(&mut command, &self.data());
        if let Some(key) = key {
            server.api = server.api.but(key);
        }
        assert!(server.api.key.is_some(), "there is no key");
        server
    }
}

pub fn migrate(from: &Installation, to: &Installation) -> Output {
    stepwell().args(["migrate", "--from", &from.name(), "--to", &to.name(), "--json"]).output().unwrap()
}

/// Refused, and for this reason.
#[track_caller]
pub fn refused(done: &Output, because: &str) {
    let error = text(&done.stderr);
    assert!(done.status.code() == Some(2) && error.contains(because), "{}: {error}", done.status);
}
