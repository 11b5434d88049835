//! The real binary as a server process that a test starts, asks, stops and kills.

use crate::{Api, eventually};
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A child process. It is killed when this is dropped.
pub struct Process(pub Child);

impl Process {
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }

    /// Waits for its end and returns the exit code; none if a signal ended it.
    pub fn wait(&mut self) -> Option<i32> {
        self.0.wait().unwrap().code()
    }

    pub fn has_ended(&mut self) -> bool {
        self.0.try_wait().unwrap().is_some()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A running server. It is killed when this is dropped.
pub struct Server {
    process: Process,
    /// With the key of the first user, if the server made one.
    pub api: Api,
}

impl Server {
    /// Runs a command that serves from this data directory and waits until the server is ready. The address is read from
    /// `server.url`: a caller that restarts a killed server removes the old file first.
    #[track_caller]
    pub fn start(command: &mut Command, data: &Path) -> Server {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        let mut process = Process(child);
        let read = |name: &str| std::fs::read_to_string(data.join(name)).ok().map(|text| text.trim().to_string());
        let url = eventually("the server's address", || {
            assert!(!process.has_ended(), "the server did not start");
            read("server.url").filter(|url| !url.is_empty())
        });
        let api = Api::new(&url, read("admin.key").as_deref());
        eventually("a server that is ready", || (api.get("/readyz").status == 200).then_some(()));
        Server { process, api }
    }

    pub fn port(&self) -> &str {
        self.api.url.rsplit(':').next().unwrap()
    }

    pub fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    /// Waits for its end and returns the exit code; none if a signal ended it.
    pub fn gone(mut self) -> Option<i32> {
        self.process.wait()
    }
}
