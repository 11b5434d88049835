//! The real binary on a directory or a database, and a client of its API.

use reqwest::blocking::Client;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
pub use stepwell_testing::eventually;
use stepwell_testing::{Cluster, PATIENCE, Schema};

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
pub enum Place {
    Directory(tempfile::TempDir),
    /// With a directory for what a server writes beside its database.
    Database(Schema, tempfile::TempDir),
}

impl Place {
    pub fn directory() -> Place {
        Place::Directory(tempfile::tempdir().unwrap())
    }

    pub fn database() -> Place {
        Place::Database(Cluster::shared().schema(), tempfile::tempdir().unwrap())
    }

    fn data(&self) -> PathBuf {
        match self {
            Place::Directory(directory) | Place::Database(_, directory) => directory.path().join("data"),
        }
    }

    /// As a command takes it.
    pub fn name(&self) -> String {
        match self {
            Place::Directory(_) => self.data().to_str().unwrap().to_string(),
            Place::Database(schema, _) => schema.url().to_string(),
        }
    }

    /// A command on the place itself.
    pub fn command(&self, name: &str) -> Command {
        let mut command = stepwell();
        command.args([name, "--data"]).arg(self.data());
        if let Place::Database(schema, _) = self {
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

    pub fn admin_key(&self) -> Option<String> {
        read(&self.data().join("admin.key"))
    }

    /// A server on it, which is asked with this key, or with the one that it made.
    #[track_caller]
    pub fn serve(&self, key: Option<&str>) -> Server {
        let address = self.data().join("server.url");
        // One that was killed left its address behind.
        let _ = std::fs::remove_file(&address);
        let mut command = self.command("serve");
        command.args(["--listen", "127.0.0.1:0"]).stdin(Stdio::null()).stdout(Stdio::null());
        // What steps call is on this machine.
        command.env("STEPWELL_PUBLIC_URL", PUBLIC_URL).env("STEPWELL_PRIVATE_ADDRESSES", "true");
        let child = command.spawn().unwrap();
        stepwell_store::tls::install();
        let client = Client::builder().timeout(PATIENCE).no_proxy().build().unwrap();
        let mut server = Server { child, client, url: String::new(), key: String::new() };
        server.url = eventually("the server's address", || {
            assert!(server.child.try_wait().unwrap().is_none(), "the server did not start");
            read(&address).filter(|url| !url.is_empty())
        });
        server.key = key.map(str::to_string).or_else(|| self.admin_key()).unwrap();
        eventually("a server that is ready", || (server.ask("GET", "/readyz", None).0 == 200).then_some(()));
        server
    }
}

fn read(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|text| text.trim().to_string())
}

pub fn migrate(from: &Place, to: &Place) -> Output {
    stepwell().args(["migrate", "--from", &from.name(), "--to", &to.name(), "--json"]).output().unwrap()
}

/// Refused, and for this reason.
#[track_caller]
pub fn refused(done: &Output, because: &str) {
    let error = text(&done.stderr);
    assert!(done.status.code() == Some(2) && error.contains(because), "{}: {error}", done.status);
}

/// A server that runs; it is killed when nobody has it any more.
pub struct Server {
    child: Child,
    client: Client,
    pub url: String,
    pub key: String,
}

impl Server {
    pub fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        let mut request = self.client.request(method.parse().unwrap(), format!("{}{path}", self.url));
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let answer = request.bearer_auth(&self.key).send().unwrap();
        (answer.status().as_u16(), serde_json::from_slice(&answer.bytes().unwrap()).unwrap_or_default())
    }

    #[track_caller]
    pub fn get(&self, path: &str) -> Value {
        let (status, answer) = self.ask("GET", &format!("/api/v1{path}"), None);
        assert_eq!(status, 200, "{path}: {answer:#}");
        answer["data"].clone()
    }

    #[track_caller]
    pub fn post(&self, path: &str, body: &Value) -> Value {
        let (status, answer) = self.ask("POST", &format!("/api/v1{path}"), Some(body));
        assert!((200..300).contains(&status), "{path}: {status} {answer:#}");
        answer["data"].clone()
    }

    /// A new run, by its id.
    #[track_caller]
    pub fn trigger(&self, workflow: &str, input: &Value) -> String {
        self.post(&format!("/workflows/{workflow}/trigger"), input)["run_id"].as_str().unwrap().to_string()
    }

    #[track_caller]
    pub fn run(&self, run: &str) -> Value {
        self.get(&format!("/runs/{run}"))
    }

    /// A run once a step of it has this status.
    #[track_caller]
    pub fn step(&self, run: &str, step: &str, status: &str) -> Value {
        let what = format!("{step} {status}");
        eventually(&what, || Some(self.run(run)).filter(|run| run["tasks"][step]["status"] == status))
    }

    /// What became of a run.
    #[track_caller]
    pub fn end(&self, run: &str) -> String {
        let end = eventually("the end of a run", || Some(self.run(run)).filter(|run| !run["finished_at"].is_null()));
        end["status"].as_str().unwrap().to_string()
    }

    /// Ends whatever the step waits for.
    #[track_caller]
    pub fn ready(&self, run: &str, step: &str) {
        let id = self.run(run)["tasks"][step]["id"].as_str().unwrap().to_string();
        let (status, answer) = self.ask("POST", &format!("/api/v1/steps/{id}/ready"), None);
        assert_eq!(status, 200, "{answer:#}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
