//! Per test: a data directory, definition files, the real binary, and a server on loopback.

use serde_json::Value;
use std::cell::RefCell;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};
pub use stepwell_testing::PATIENCE;
use stepwell_testing::{TestStore, listen};

pub struct Installation {
    at: TestStore,
    master_key: RefCell<Option<String>>,
}

pub struct Output {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Output {
    #[track_caller]
    pub fn expect(self, code: i32) -> Output {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }

    #[track_caller]
    pub fn says(self, text: &str) -> Output {
        assert!(self.err.contains(text) || self.out.contains(text), "no {text:?} in\n{}\n{}", self.out, self.err);
        self
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}{}", self.out, self.err))
    }

    #[track_caller]
    pub fn lines(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl Installation {
    pub fn new() -> Installation {
        Installation { at: TestStore::new(), master_key: RefCell::default() }
    }

    /// Commands have these master keys from now on.
    pub fn master_key(&self, keys: Option<&str>) {
        *self.master_key.borrow_mut() = keys.map(str::to_string);
    }

    pub fn data(&self) -> PathBuf {
        self.at.data()
    }

    pub fn file(&self, name: &str, text: &str) -> String {
        let path = self.at.directory().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_string()
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stepwell"));
        command.args(args).current_dir(self.at.directory()).env("STEPWELL_DATA", self.data()).env("USER", "ann");
        // The servers that tests call are on this machine.
        command.envs(self.at.environment()).env("STEPWELL_PRIVATE_ADDRESSES", "true");
        command.env_remove("STEPWELL_URL").env_remove("STEPWELL_KEY").env_remove("STEPWELL_MASTER_KEY");
        command.envs(self.master_key.borrow().iter().map(|keys| ("STEPWELL_MASTER_KEY", keys)));
        command
    }

    pub fn start(&self, args: &[&str]) -> Running {
        let mut command = self.command(args);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (out, err) = (lines(child.stdout.take().unwrap()), lines(child.stderr.take().unwrap()));
        Running { child, out, err, seen_out: String::new(), seen_err: String::new() }
    }

    /// Runs to the end.
    pub fn stepwell(&self, args: &[&str]) -> Output {
        self.fed(args, "")
    }

    pub fn fed(&self, args: &[&str], input: &str) -> Output {
        let mut running = self.start(args);
        // One that reads nothing closes the pipe.
        let _ = running.child.stdin.take().unwrap().write_all(input.as_bytes());
        running.end()
    }

    /// The newest run.
    pub fn newest(&self) -> String {
        let listed = self.stepwell(&["runs", "--limit", "1", "--json"]).expect(0);
        listed.lines()[0]["id"].as_str().unwrap().to_string()
    }

    /// Changes something behind the store's back; how many rows were.
    pub fn sql(&self, sql: &str) -> u64 {
        self.at.sql(sql)
    }

    /// All that is kept.
    pub fn rows(&self) -> Vec<(String, Vec<u8>)> {
        self.at.rows()
    }

    pub fn sound(&self) {
        self.stepwell(&["doctor"]).expect(0).says("nothing is wrong");
    }
}

/// A process that is under way.
pub struct Running {
    pub child: Child,
    out: Receiver<String>,
    err: Receiver<String>,
    seen_out: String,
    seen_err: String,
}

fn lines(from: impl Read + Send + 'static) -> Receiver<String> {
    let (to, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(from).lines() {
            let Ok(line) = line else { return };
            if to.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

impl Running {
    /// Waits for a line with this text, on either of its outputs.
    #[track_caller]
    pub fn until(&mut self, text: &str) -> String {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            for (from, seen) in [(&self.out, &mut self.seen_out), (&self.err, &mut self.seen_err)] {
                while let Ok(line) = from.try_recv() {
                    seen.push_str(&line);
                    seen.push('\n');
                    if line.contains(text) {
                        return line;
                    }
                }
            }
            thread::sleep(Duration::from_millis(5));
        }
        panic!("no {text:?} in\n{}\n{}", self.seen_out, self.seen_err);
    }

    pub fn write(&mut self, text: &str) {
        self.child.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal).unwrap();
    }

    /// As a power cut would, for this process.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    #[track_caller]
    pub fn end(mut self) -> Output {
        drop(self.child.stdin.take());
        let end = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > end {
                self.child.kill().unwrap();
                panic!("it does not end\n{}\n{}", self.seen_out, self.seen_err);
            }
            thread::sleep(Duration::from_millis(5));
        };
        let collect = |from: &Receiver<String>, mut seen: String| {
            from.iter().for_each(|line| seen.push_str(&(line + "\n")));
            seen
        };
        let (seen_out, seen_err) = (std::mem::take(&mut self.seen_out), std::mem::take(&mut self.seen_err));
        let (out, err) = (collect(&self.out, seen_out), collect(&self.err, seen_err));
        Output { code: status.code().expect("it did not die of a signal"), out, err }
    }
}

impl Drop for Running {
    /// Nothing is left running when its test is over, however that ended.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server that answers every request with `{"n": …}`, the number of requests so far, once it is released.
pub struct Server {
    pub url: String,
    state: Arc<(Mutex<State>, Condvar)>,
}

#[derive(Default)]
struct State {
    /// Idempotency keys, in the order of the requests.
    keys: Vec<String>,
    held: bool,
}

impl Server {
    pub fn start() -> Server {
        let state: Arc<(Mutex<State>, Condvar)> = Arc::default();
        let shared = state.clone();
        let url = listen(move |request| {
            let (state, changed) = &*shared;
            let mut now = state.lock().unwrap();
            now.keys.push(request.key);
            let body = format!("{{\"n\":{}}}", now.keys.len());
            changed.notify_all();
            drop(changed.wait_while(now, |state| state.held).unwrap());
            ("200 OK", body)
        });
        Server { url: format!("{url}/"), state }
    }

    /// From now on requests are taken and not answered.
    pub fn hold(&self) {
        self.state.0.lock().unwrap().held = true;
    }

    pub fn release(&self) {
        self.state.0.lock().unwrap().held = false;
        self.state.1.notify_all();
    }

    pub fn keys(&self) -> Vec<String> {
        self.state.0.lock().unwrap().keys.clone()
    }

    pub fn await_requests(&self, count: usize) {
        let (state, changed) = &*self.state;
        let waited = changed.wait_timeout_while(state.lock().unwrap(), PATIENCE, |state| state.keys.len() < count);
        assert!(!waited.unwrap().1.timed_out(), "no {count} requests came");
    }
}
