//! One node: the real binary as a process, with its own data directory and its own connection to the database.

use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, mpsc};
use std::time::{Duration, Instant};
use stepwell_testing::{Cluster, Proxy, command};

/// Most things take milliseconds; a loaded machine gets its time.
pub const PATIENCE: Duration = Duration::from_secs(90);
/// The lease of a silent node.
pub const LEASE: Duration = Duration::from_secs(2);
/// The configured time for a stop.
const DRAIN: Duration = Duration::from_secs(5);
pub const KEY: &str = "0123456789abcdef0123456789abcdef0123";

pub struct Node {
    pub name: String,
    pub proxy: Proxy,
    directory: tempfile::TempDir,
    database: String,
    process: Mutex<Process>,
}

#[derive(Default)]
struct Process {
    child: Option<Child>,
    url: Option<String>,
}

impl Node {
    pub fn new(name: String, cluster: &Cluster) -> Node {
        let proxy = Proxy::to(cluster.address());
        let database = proxy.url(cluster.url());
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(
            directory.path().join("stepwell.yaml"),
            format!("drain: {}s\nquarantine_after: 255\n", DRAIN.as_secs()),
        )
        .unwrap();
        Node { name, proxy, directory, database, process: Mutex::default() }
    }

    fn process(&self) -> MutexGuard<'_, Process> {
        self.process.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn log(&self) -> PathBuf {
        self.directory.path().join("log")
    }

    /// Where it answers, if it runs.
    pub fn url(&self) -> Option<String> {
        self.process().url.clone()
    }

    /// Starts it, again and again if need be, as whatever looks after processes does: the database may be away.
    pub fn start(&self) {
        let begun = Instant::now();
        while !self.try_start() {
            assert!(begun.elapsed() < PATIENCE, "{} does not start:\n{}", self.name, self.last_words());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// False if it ended before it answered.
    fn try_start(&self) -> bool {
        let log = File::options().create(true).append(true).open(self.log()).unwrap();
        let mut command = if self.name == "node-0" { older() } else { stepwell() };
        command.args(["serve", "--listen", "127.0.0.1:0", "--config", "stepwell.yaml", "--data", "data"]);
        command.args(["--database", &self.database]).current_dir(self.directory.path());
        command.env("STEPWELL_ADMIN_KEY", KEY).env("STEPWELL_NODE_NAME", &self.name);
        command.env("STEPWELL_NODE_LEASE", format!("{}ms", LEASE.as_millis()));
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let out = child.stdout.take().unwrap();
        let (told, telling) = mpsc::channel();
        std::thread::spawn(move || {
            BufReader::new(out).lines().map_while(Result::ok).for_each(|line| drop(told.send(line)))
        });
        if telling.recv_timeout(PATIENCE).is_err() {
            let _ = child.kill();
            child.wait().unwrap();
            return false;
        }
        let url = std::fs::read_to_string(self.directory.path().join("data/server.url")).unwrap();
        *self.process() = Process { child: Some(child), url: Some(url.trim().to_string()) };
        true
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(self.process().child.as_ref().expect("it runs")), signal).unwrap();
    }

    pub fn kill(&self) {
        let mut child = self.take();
        child.kill().unwrap();
        child.wait().unwrap();
        self.process().url = None;
    }

    /// Clients still ask it: they do not know.
    fn take(&self) -> Child {
        self.process().child.take().expect("it runs")
    }

    /// Stops it; returns what was wrong with how it ended.
    pub fn stop(&self) -> Result<(), String> {
        let mut child = self.take();
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        let begun = Instant::now();
        let ended: Option<ExitStatus> = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break Some(status);
            }
            // Its drain, whatever it waits for from the database, and a slow machine.
            if begun.elapsed() > DRAIN + Duration::from_secs(30) {
                break None;
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        self.process().url = None;
        match ended {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(format!("{} stopped with {status}", self.name)),
            None => {
                child.kill().unwrap();
                child.wait().unwrap();
                Err(format!("{} did not stop within {:?}", self.name, begun.elapsed()))
            }
        }
    }

    /// That the process which was started last still runs: only the villain ends one.
    pub fn has_died(&self) -> bool {
        self.process().child.as_mut().is_some_and(|child| child.try_wait().unwrap().is_some())
    }

    pub fn last_words(&self) -> String {
        let text = std::fs::read(self.log()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        format!("--- log of {}\n{}\n", self.name, lines[lines.len().saturating_sub(60)..].join("\n"))
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(mut child) = self.process().child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

pub fn stepwell() -> Command {
    command(env!("CARGO_BIN_EXE_stepwell"))
}

/// The binary of an earlier version, if one is named: nodes of two versions must work together.
fn older() -> Command {
    std::env::var_os("STEPWELL_CHAOS_OLDER").map_or_else(stepwell, command)
}
