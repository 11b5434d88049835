//! For tests of your own code: definitions on virtual time, and a server that is thrown away afterwards.
//!
//! Both use the real binary: the one you name, else `STEPWELL_BINARY`, else `stepwell` on the path.
//!
//! ```no_run
//! use serde_json::json;
//! use stepwell_client::testing::{Case, ThrowAwayServer};
//!
//! # async fn example() -> Result<(), stepwell_client::Error> {
//! let late = Case { answers: json!({"ask": "timeout"}), ..Case::default() }.simulate("name: pay\ntasks: {…}")?;
//! assert_eq!((late.status.as_str(), late.took.as_secs()), ("cancelled", 3600));
//!
//! let server = ThrowAwayServer::start()?;
//! server.client()?.define("name: hello\ntasks: {greet: {tool: echo}}").await?;
//! # Ok(())
//! # }
//! ```

use crate::{Client, Error, StepError};
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// A case on virtual time. Nothing is called, and there is no server.
#[derive(Clone, PartialEq, Debug)]
pub struct Case {
    /// The input of the run.
    pub input: Value,
    /// What calls return, by step: `{"send": [{"status": 503}, {"body": {"id": 1}}]}`.
    pub calls: Value,
    /// What arrives at gates and waits, by step: `{"ask": "approve"}`.
    pub answers: Value,
    /// The binary that plays it.
    pub binary: Option<PathBuf>,
}

impl Default for Case {
    fn default() -> Case {
        Case { input: json!({}), calls: json!({}), answers: json!({}), binary: None }
    }
}

/// How a simulated run ended.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Simulated {
    /// Its status.
    pub status: String,
    /// Its result.
    pub output: Value,
    /// Why it failed.
    pub error: Option<StepError>,
    /// The steps that ran, in the order in which they started.
    pub path: Vec<String>,
    /// How long it took, in virtual time.
    pub took: Duration,
}

#[derive(Deserialize)]
struct Played {
    run: PlayedRun,
    problems: Vec<String>,
}

#[derive(Deserialize)]
struct PlayedRun {
    status: String,
    output: Value,
    error: Option<StepError>,
    path: Vec<String>,
    took_ms: u64,
}

impl Case {
    /// Plays a definition in YAML or JSON. A step whose result or answer is not given, and a definition with faults, is an
    /// error.
    pub fn simulate(&self, definition: &str) -> Result<Simulated, Error> {
        let home = directory()?;
        // JSON is read as such, so that its faults are those of JSON.
        let name = if definition.trim_start().starts_with('{') { "definition.json" } else { "definition.yaml" };
        std::fs::write(home.path().join(name), definition).map_err(|error| failed(&error))?;
        let mut case = json!({"name": "simulation", "input": self.input, "calls": self.calls, "answers": self.answers});
        let binary = binary(self.binary.as_ref());
        let mut played = play(&binary, home.path(), &case)?;
        if matches!(played.run.status.as_str(), "completed" | "failed" | "cancelled" | "timeout") {
            // A case demands a status; this one demands what it found, so that all other problems show.
            case["expect"] = json!({"status": played.run.status});
            played = play(&binary, home.path(), &case)?;
        }
        if !played.problems.is_empty() {
            return Err(Error::Testing(played.problems.join("\n")));
        }
        let PlayedRun { status, output, error, path, took_ms } = played.run;
        Ok(Simulated { status, output, error, path, took: Duration::from_millis(took_ms) })
    }
}

fn play(binary: &Path, home: &Path, case: &Value) -> Result<Played, Error> {
    let file = "definition.test.json";
    std::fs::write(home.join(file), json!({"cases": [case]}).to_string()).map_err(|error| failed(&error))?;
    let done = Command::new(binary).args(["test", "--json", file]).current_dir(home).output();
    let done = done.map_err(|error| failed(&format!("{}: {error}", binary.display())))?;
    if done.stdout.trim_ascii().is_empty() {
        return Err(Error::Testing(String::from_utf8_lossy(&done.stderr).trim().to_string()));
    }
    serde_json::from_slice(&done.stdout).map_err(|error| failed(&error))
}

/// How to start a [`ThrowAwayServer`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Settings {
    /// The binary that serves.
    pub binary: Option<PathBuf>,
    /// Its configuration, in YAML or JSON.
    pub config: Option<String>,
    /// Variables for its environment, such as `STEPWELL_DATABASE`.
    pub environment: Vec<(String, String)>,
}

/// A server on a directory of its own. Both go away when this is dropped.
pub struct ThrowAwayServer {
    home: TempDir,
    settings: Settings,
    process: Option<Child>,
    listen: String,
}

impl ThrowAwayServer {
    /// Starts a server on the embedded store and returns once it serves.
    pub fn start() -> Result<ThrowAwayServer, Error> {
        ThrowAwayServer::with(Settings::default())
    }

    /// Like [`ThrowAwayServer::start`], with settings.
    pub fn with(settings: Settings) -> Result<ThrowAwayServer, Error> {
        let listen = "127.0.0.1:0".to_string();
        let mut server = ThrowAwayServer { home: directory()?, settings, process: None, listen };
        server.restart()?;
        Ok(server)
    }

    /// Starts it again after [`ThrowAwayServer::kill`], on the same address and directory.
    pub fn restart(&mut self) -> Result<(), Error> {
        self.kill();
        let log = self.home.path().join("log");
        let errors = std::fs::File::options().create(true).append(true).open(&log).map_err(|error| failed(&error))?;
        let binary = binary(self.settings.binary.as_ref());
        let mut command = Command::new(&binary);
        command.args(["serve", "--listen", &self.listen]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors);
        command.env_remove("STEPWELL_URL").env_remove("STEPWELL_KEY").env("STEPWELL_DATA", self.data());
        if let Some(config) = &self.settings.config {
            let file = self.home.path().join("stepwell.yaml");
            std::fs::write(&file, config).map_err(|error| failed(&error))?;
            command.arg("--config").arg(file);
        }
        command.envs(self.settings.environment.iter().map(|(name, value)| (name, value)));
        let mut process = command.spawn().map_err(|error| failed(&format!("{}: {error}", binary.display())))?;
        let mut line = String::new();
        // It says where it is as soon as it serves.
        let said = process.stdout.as_mut().map(|stdout| BufReader::new(stdout).read_line(&mut line));
        self.process = Some(process);
        if !matches!(said, Some(Ok(1..))) {
            let log = std::fs::read_to_string(&log).unwrap_or_default();
            return Err(failed(&format!("the server did not start: {}", log.trim())));
        }
        self.listen = self.url()?.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_string();
        Ok(())
    }

    /// Its data directory.
    pub fn data(&self) -> PathBuf {
        self.home.path().join("data")
    }

    /// Its address.
    pub fn url(&self) -> Result<String, Error> {
        let text = std::fs::read_to_string(self.data().join("server.url")).map_err(|error| failed(&error))?;
        Ok(text.trim().to_string())
    }

    /// A client with the key of an administrator.
    pub fn client(&self) -> Result<Client, Error> {
        let key = std::fs::read_to_string(self.data().join("admin.key")).map_err(|error| failed(&error))?;
        Client::new(&self.url()?, Some(key.trim()))
    }

    /// Ends the server at once, as a crash does.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            // It may have ended by itself.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

impl Drop for ThrowAwayServer {
    fn drop(&mut self) {
        self.kill();
    }
}

fn binary(given: Option<&PathBuf>) -> PathBuf {
    let named = || std::env::var_os("STEPWELL_BINARY").filter(|path| !path.is_empty()).map(PathBuf::from);
    given.cloned().or_else(named).unwrap_or_else(|| "stepwell".into())
}

fn directory() -> Result<TempDir, Error> {
    tempfile::Builder::new().prefix("stepwell-").tempdir().map_err(|error| failed(&error))
}

fn failed(error: &dyn std::fmt::Display) -> Error {
    Error::Testing(error.to_string())
}
