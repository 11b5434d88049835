//! The real binary, as something else starts it: a unit, an image, a manifest.

use reqwest::blocking::Client;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use stepwell_testing::PATIENCE;
pub use stepwell_testing::{command, eventually};

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
pub fn said(arguments: &[&str]) -> String {
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
    let config = json(&said(&["config", "check", config.to_str().unwrap()]));
    let drain = config["drain"].as_str().unwrap();
    drain.strip_suffix('s').and_then(|seconds| seconds.parse::<u64>().ok()).unwrap() + 2
}

/// A server that runs; it is killed when nobody has it any more.
pub struct Server {
    child: Child,
    client: Client,
    pub url: String,
    pub key: String,
}

impl Server {
    /// Starts what the command says, which keeps its data there, and waits until it is ready.
    #[track_caller]
    pub fn start(command: &mut Command, data: &Path) -> Server {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        stepwell_store::tls::install();
        let client = Client::builder().timeout(PATIENCE).no_proxy().build().unwrap();
        let mut server = Server { child, client, url: String::new(), key: String::new() };
        let read = |name: &str| std::fs::read_to_string(data.join(name)).ok().map(|text| text.trim().to_string());
        server.url = eventually("the server's address", || {
            assert!(server.child.try_wait().unwrap().is_none(), "the server did not start");
            read("server.url").filter(|url| !url.is_empty())
        });
        server.key = read("admin.key").unwrap_or_default();
        eventually("a server that is ready", || (server.get("/readyz").0 == 200).then_some(()));
        server
    }

    /// A server on a directory.
    #[track_caller]
    pub fn on(data: &Path) -> Server {
        // One that was killed left its address behind.
        let _ = std::fs::remove_file(data.join("server.url"));
        Server::start(command(BINARY).args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(data), data)
    }

    /// An error if nobody answers.
    pub fn try_post(&self, path: &str, body: &Value) -> reqwest::Result<(u16, Value)> {
        let url = format!("{}/api/v1{path}", self.url);
        let answer = self.client.post(url).bearer_auth(&self.key).body(body.to_string()).send()?;
        Ok((answer.status().as_u16(), serde_json::from_slice(&answer.bytes()?).unwrap_or_default()))
    }

    #[track_caller]
    pub fn post(&self, path: &str, body: &Value) -> Value {
        let (status, answer) = self.try_post(path, body).unwrap();
        assert!((200..300).contains(&status), "{path}: {status} {answer:#}");
        answer["data"].clone()
    }

    /// As a probe asks: without a key, under whatever name.
    pub fn get_as(&self, host: &str, path: &str) -> u16 {
        self.client.get(format!("{}{path}", self.url)).header("host", host).send().unwrap().status().as_u16()
    }

    pub fn get(&self, path: &str) -> (u16, Value) {
        let answer = self.client.get(format!("{}{path}", self.url)).bearer_auth(&self.key).send().unwrap();
        (answer.status().as_u16(), serde_json::from_slice(&answer.bytes().unwrap()).unwrap_or_default())
    }

    /// The port alone.
    pub fn port(&self) -> &str {
        self.url.rsplit(':').next().unwrap()
    }

    #[track_caller]
    pub fn run(&self, run: &str) -> Value {
        let (status, answer) = self.get(&format!("/api/v1/runs/{run}"));
        assert_eq!(status, 200, "{run}: {answer:#}");
        answer["data"].clone()
    }

    /// A run once it has ended.
    #[track_caller]
    pub fn end(&self, run: &str) -> Value {
        eventually("the end of a run", || Some(self.run(run)).filter(|run| !run["finished_at"].is_null()))
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let id = i32::try_from(self.child.id()).unwrap();
        rustix::process::kill_process(rustix::process::Pid::from_raw(id).unwrap(), signal).unwrap();
    }

    /// Its exit code, once it is gone; none if a signal ended it.
    pub fn gone(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
