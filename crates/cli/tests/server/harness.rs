//! A server per test: the real binary on a temporary directory, and a client of its API.

use rustix::process::Signal;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
pub use stepwell_testing::{Answer, Api, PATIENCE, eventually};
use stepwell_testing::{DESCRIBED, Process, TestStore};

/// Where data is, and what servers on it are started with.
pub struct Installation {
    at: TestStore,
    config: Option<PathBuf>,
    environment: Vec<(String, String)>,
}

impl Installation {
    pub fn new() -> Installation {
        Installation { at: TestStore::new(), config: None, environment: Vec::new() }
    }

    pub fn config(mut self, text: &str) -> Installation {
        let path = self.at.directory().join("stepwell.yaml");
        std::fs::write(&path, text).unwrap();
        self.config = Some(path);
        self
    }

    pub fn variable(mut self, name: &str, value: &str) -> Installation {
        self.environment.push((name.into(), value.into()));
        self
    }

    pub fn data(&self) -> PathBuf {
        self.at.data()
    }

    pub fn command(&self) -> Command {
        self.program(env!("CARGO_BIN_EXE_stepwell"))
    }

    /// Another program where the servers of this place are.
    pub fn program(&self, name: &str) -> Command {
        let mut command = stepwell_testing::command(name);
        command.current_dir(self.at.directory()).env("STEPWELL_DATA", self.data()).envs(self.at.environment());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// What a command says, on both channels.
    pub fn stepwell(&self, args: &[&str]) -> String {
        self.stepwell_with(args, &[], "")
    }

    /// The same with more in its environment, and with something to read.
    pub fn stepwell_with(&self, args: &[&str], environment: &[(&str, &str)], input: &str) -> String {
        let mut command = self.command();
        command.args(args).envs(environment.iter().copied());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // One that does not read has gone.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let done = child.wait_with_output().unwrap();
        String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr)
    }

    /// A server that answers.
    #[track_caller]
    pub fn serve(&self) -> Server {
        DESCRIBED.get_or_init(|| stepwell_server::is_listed);
        let mut command = self.command();
        command.args(["serve", "--listen", "127.0.0.1:0"]);
        if let Some(config) = &self.config {
            command.arg("--config").arg(config);
        }
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (told, telling) = mpsc::channel();
        let out = child.stdout.take().unwrap();
        thread::spawn(move || BufReader::new(out).lines().map_while(Result::ok).try_for_each(|line| told.send(line)));
        let mut err = child.stderr.take().unwrap();
        let log = thread::spawn(move || {
            let mut text = String::new();
            let _ = err.read_to_string(&mut text);
            text
        });
        let mut process = Process(child);
        if telling.recv_timeout(PATIENCE).is_err() {
            process.wait();
            panic!("the server did not start: {}", log.join().unwrap());
        }
        // What it says is the public address; the file has the one that it listens on.
        let url = read(&self.data().join("server.url"));
        let api = Api::new(&url, self.admin_key().as_deref());
        Server { process, log: Some(log), telling, url, api }
    }

    /// The key of the first user: from outside, or from the file, if this is the place that has it.
    fn admin_key(&self) -> Option<String> {
        let given = self.environment.iter().find(|(name, _)| name == "STEPWELL_ADMIN_KEY");
        let file = self.data().join("admin.key");
        given.map(|(_, key)| key.clone()).or_else(|| file.exists().then(|| read(&file)))
    }

    /// Where the database is, if there is one.
    pub fn database(&self) -> Option<&str> {
        self.at.schema().map(|schema| schema.url())
    }

    pub fn agent_key(&self) -> String {
        read(&self.data().join("agent.key"))
    }

    /// Everything that is stored, as bytes, as a copy would have it.
    pub fn bytes(&self) -> Vec<u8> {
        if stepwell_testing::on_postgres() {
            return self.at.rows().into_iter().flat_map(|(_, row)| row).collect();
        }
        let files = std::fs::read_dir(self.data()).unwrap().map(|entry| entry.unwrap().path());
        let of_store = files.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("stepwell.db"));
        of_store.flat_map(|path| std::fs::read(path).unwrap()).collect()
    }

    /// The tables by their rows.
    pub fn rows(&self) -> Vec<(String, Vec<u8>)> {
        self.at.rows()
    }

    /// A dump of the database, if there is one.
    pub fn dump(&self) -> Option<String> {
        let schema = self.at.schema()?;
        let mut command = Command::new("pg_dump");
        let done = command.args(["--schema", schema.name(), "-d", schema.url()]).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        Some(String::from_utf8(done.stdout).unwrap())
    }

    /// Changes something behind the store's back; how many rows were.
    pub fn sql(&self, sql: &str) -> u64 {
        self.at.sql(sql)
    }

    /// What the examination of the stopped store says.
    #[track_caller]
    pub fn sound(&self) {
        let done = self.command().arg("doctor").output().unwrap();
        let said = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success() && said.contains("nothing is wrong"), "{said}");
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap().trim().to_string()
}

/// A server that runs; it is killed when no one has it any more.
pub struct Server {
    process: Process,
    log: Option<thread::JoinHandle<String>>,
    /// Its standard output.
    telling: mpsc::Receiver<String>,
    pub url: String,
    /// With the key of the first user.
    pub api: Api,
}

impl Server {
    pub fn address(&self) -> &str {
        self.url.trim_start_matches("http://")
    }

    /// The link that it said signs a browser in: at the first start, once.
    #[track_caller]
    pub fn link(&self) -> String {
        loop {
            let line = self.telling.recv_timeout(PATIENCE).expect("a link");
            if let Some(url) = line.split(' ').find(|word| word.contains("/sign-in/")) {
                return url.to_string();
            }
        }
    }

    /// The most memory that the process has had, in bytes.
    pub fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.0.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }

    pub fn with_key(&self, key: &str) -> Api {
        Api::new(&self.url, Some(key))
    }

    pub fn without_key(&self) -> Api {
        Api::new(&self.url, None)
    }

    /// As a power cut would, for the process.
    pub fn kill(mut self) {
        self.process.signal(Signal::KILL);
        self.gone();
    }

    pub fn ask_to_stop(&self) {
        self.process.signal(Signal::TERM);
    }

    /// Its exit code and its log, once it is gone.
    pub fn gone(&mut self) -> (Option<i32>, String) {
        let code = self.process.wait();
        (code, self.log.take().map(|log| log.join().unwrap()).unwrap_or_default())
    }

    #[track_caller]
    pub fn stop(mut self) -> String {
        self.ask_to_stop();
        let (code, log) = self.gone();
        assert_eq!(code, Some(0), "{log}");
        log
    }
}

/// What each step of a run came to: `charge=success ship=skipped`.
pub fn statuses(run: &Value) -> String {
    let tasks = run["tasks"].as_object().unwrap();
    let one = |(name, task): (&String, &Value)| format!("{name}={}", task["status"].as_str().unwrap());
    tasks.iter().map(one).collect::<Vec<_>>().join(" ")
}
