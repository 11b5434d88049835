//! The real binary, started as a unit, an image or a manifest starts it.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Output;
use stepwell_testing::Api;
pub use stepwell_testing::{Server, command, eventually};

pub const BINARY: &str = env!("CARGO_BIN_EXE_stepwell");

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A file of the repository.
#[track_caller]
pub fn text(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Runs the binary to its end.
pub fn stepwell(arguments: &[&str]) -> Output {
    command(BINARY).args(arguments).output().unwrap()
}

/// What the binary says when all is well.
#[track_caller]
pub fn stdout_of(arguments: &[&str]) -> String {
    let done = stepwell(arguments);
    let error = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{arguments:?}: {}\n{error}", done.status);
    String::from_utf8(done.stdout).unwrap()
}

pub fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Whether a variable means something to the binary, and is written down.
pub fn is_known(variable: &str) -> bool {
    if variable.starts_with("STEPWELL_SECRET_") {
        return true;
    }
    let read =
        ["crates/server/src/config/mod.rs", "crates/server/src/config/read.rs", "crates/cli/src/commands/serve.rs"];
    let is_read = read.iter().any(|file| text(file).contains(&format!("\"{variable}\"")));
    is_read && text("docs/configuration.md").contains(&format!("`{variable}`"))
}

/// How many seconds a server with this configuration may take to stop: the drain, and the last traces.
pub fn stop_seconds(config: &Path) -> u64 {
    let config = json(&stdout_of(&["config", "check", config.to_str().unwrap()]));
    let drain = config["drain"].as_str().unwrap();
    drain.strip_suffix('s').and_then(|seconds| seconds.parse::<u64>().ok()).unwrap() + 2
}

/// Starts a server on a directory.
#[track_caller]
pub fn serve(data: &Path) -> Server {
    // One that was killed left its address behind.
    let _ = std::fs::remove_file(data.join("server.url"));
    Server::start(command(BINARY).args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(data), data)
}

/// The status of a request as a probe makes it: without a key, under any host name.
pub fn status_as(server: &Server, host: &str, path: &str) -> u16 {
    Api::new(&server.api.url, None).send("GET", path, &[("host", host)], None).status
}
