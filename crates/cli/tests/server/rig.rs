//! A server of its own for each test: the real binary on a directory that goes away, and a client of its API.

use reqwest::blocking::Client;
use reqwest::header::HeaderMap;
use reqwest::redirect::Policy;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
pub use stepwell_testing::{PATIENCE, eventually};

/// Where data is, and what servers on it are started with.
pub struct Place {
    at: stepwell_testing::Place,
    config: Option<PathBuf>,
    environment: Vec<(String, String)>,
}

impl Place {
    pub fn new() -> Place {
        Place { at: stepwell_testing::Place::new(), config: None, environment: Vec::new() }
    }

    pub fn config(mut self, text: &str) -> Place {
        let path = self.at.directory().join("stepwell.yaml");
        std::fs::write(&path, text).unwrap();
        self.config = Some(path);
        self
    }

    pub fn variable(mut self, name: &str, value: &str) -> Place {
        self.environment.push((name.into(), value.into()));
        self
    }

    pub fn data(&self) -> PathBuf {
        self.at.data()
    }

    pub fn command(&self) -> Command {
        let mut command = stepwell_testing::command(env!("CARGO_BIN_EXE_stepwell"));
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
        let mut server = Server { child, log: Some(log), telling, url: String::new(), api: Api::none() };
        if server.telling.recv_timeout(PATIENCE).is_err() {
            panic!("the server did not start: {}", server.gone().1);
        }
        // What it says is the public address; the file has the one that it listens on.
        server.url = read(&self.data().join("server.url"));
        server.api = Api::new(&server.url, self.admin_key().as_deref());
        server
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

    /// Everything that is stored, as bytes: what somebody who copies it has.
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

    /// What an administrator of the database has who dumps it, if there is one.
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

/// A server that runs; it is killed when nobody has it any more.
pub struct Server {
    child: Child,
    log: Option<thread::JoinHandle<String>>,
    /// What it says on its standard output.
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

    pub fn with_key(&self, key: &str) -> Api {
        Api::new(&self.url, Some(key))
    }

    pub fn without_key(&self) -> Api {
        Api::new(&self.url, None)
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let id = i32::try_from(self.child.id()).unwrap();
        rustix::process::kill_process(rustix::process::Pid::from_raw(id).unwrap(), signal).unwrap();
    }

    /// As a power cut would, for the process.
    pub fn kill(mut self) {
        self.signal(rustix::process::Signal::KILL);
        self.gone();
    }

    pub fn ask_to_stop(&self) {
        self.signal(rustix::process::Signal::TERM);
    }

    /// Its exit code and its log, once it is gone.
    pub fn gone(&mut self) -> (Option<i32>, String) {
        let code = self.child.wait().unwrap().code();
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

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client of the API.
#[derive(Clone)]
pub struct Api {
    pub url: String,
    pub key: Option<String>,
    client: Option<Client>,
}

impl Api {
    fn none() -> Api {
        Api { url: String::new(), key: None, client: None }
    }

    pub fn new(url: &str, key: Option<&str>) -> Api {
        stepwell_store::tls::install();
        let client = Client::builder().timeout(PATIENCE).redirect(Policy::none()).no_proxy().build().unwrap();
        Api { url: url.into(), key: key.map(str::to_string), client: Some(client) }
    }

    /// The same client for somebody else.
    pub fn but(&self, key: &str) -> Api {
        Api { key: Some(key.into()), ..self.clone() }
    }

    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Option<Vec<u8>>) -> Answer {
        self.try_send(method, path, headers, body).unwrap_or_else(|error| panic!("{method} {path}: {error:?}"))
    }

    /// An error if there was no answer.
    pub fn try_send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<Vec<u8>>,
    ) -> reqwest::Result<Answer> {
        let url = format!("{}{path}", self.url);
        let client = self.client.as_ref().expect("the server has started");
        let mut request = client.request(method.parse().unwrap(), url);
        if let Some(key) = &self.key {
            request = request.bearer_auth(key);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(body) = body {
            request = request.body(body);
        }
        let response = request.send()?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Ok(Answer { what: format!("{method} {path}"), status, headers, bytes: response.bytes()?.to_vec() })
    }

    pub fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], None)
    }

    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.call("POST", path, body)
    }

    pub fn call(&self, method: &str, path: &str, body: &Value) -> Answer {
        self.send(method, path, &[("content-type", "application/json")], Some(body.to_string().into()))
    }

    pub fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, &[], None)
    }

    /// A workflow that is new, by its id.
    #[track_caller]
    pub fn define(&self, definition: &Value) -> String {
        self.post("/api/v1/workflows", definition).is(201).data()["id"].as_str().unwrap().to_string()
    }

    /// A run that is new, by its id.
    #[track_caller]
    pub fn trigger(&self, workflow: &str, input: &Value) -> String {
        let answer = self.post(&format!("/api/v1/workflows/{workflow}/trigger"), input).is(201);
        answer.data()["run_id"].as_str().unwrap().to_string()
    }

    /// A run as it is now.
    #[track_caller]
    pub fn run(&self, run: &str) -> Value {
        self.get(&format!("/api/v1/runs/{run}")).is(200).data()
    }

    /// A run once it has ended.
    #[track_caller]
    pub fn end(&self, run: &str) -> Value {
        eventually("the end of a run", || Some(self.run(run)).filter(|run| !run["finished_at"].is_null()))
    }

    /// A run once a step of it has this status.
    #[track_caller]
    pub fn step(&self, run: &str, step: &str, status: &str) -> Value {
        let what = format!("{step} {status}");
        eventually(&what, || Some(self.run(run)).filter(|run| run["tasks"][step]["status"] == status))
    }

    /// Starts a run and awaits its end.
    #[track_caller]
    pub fn finished(&self, workflow: &str, input: &Value) -> Value {
        self.post(&format!("/api/v1/workflows/{workflow}/trigger?wait=60s"), input).is(200).data()
    }

    /// Ends whatever the step waits for.
    #[track_caller]
    pub fn ready(&self, run: &str, step: &str) -> Value {
        let id = self.run(run)["tasks"][step]["id"].as_str().unwrap().to_string();
        self.send("POST", &format!("/api/v1/steps/{id}/ready"), &[], None).is(200).data()
    }

    /// A key of the caller's organisation.
    #[track_caller]
    pub fn new_key(&self, request: Value) -> String {
        self.post("/api/v1/keys", &request).is(201).data()["key"].as_str().unwrap().to_string()
    }

    /// A user with these grants and a key of theirs.
    #[track_caller]
    pub fn new_user(&self, name: &str, grants: &[&str]) -> Api {
        self.post("/api/v1/users", &json!({"name": name, "grants": grants})).is(201);
        self.but(&self.new_key(json!({"user": name, "name": "test"})))
    }

    /// The first user of another organisation.
    #[track_caller]
    pub fn new_organisation(&self, name: &str) -> Api {
        let made = self.post("/api/v1/organisations", &json!({"name": name})).is(201).data();
        self.but(made["admin_key"].as_str().unwrap())
    }
}

/// What the server said.
pub struct Answer {
    what: String,
    pub status: u16,
    pub headers: HeaderMap,
    pub bytes: Vec<u8>,
}

impl Answer {
    #[track_caller]
    pub fn is(self, status: u16) -> Answer {
        assert_eq!(self.status, status, "{}: {}", self.what, self.text());
        self
    }

    /// A problem with this code.
    #[track_caller]
    pub fn refused(self, status: u16, code: &str) -> Value {
        let answer = self.is(status);
        assert_eq!(answer.header("content-type"), "application/problem+json", "{}", answer.text());
        let problem = answer.json();
        assert_eq!(problem["code"], code, "{problem:#}");
        assert_eq!(problem["status"], status, "{problem:#}");
        problem
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_else(|error| panic!("{}: {error}: {}", self.what, self.text()))
    }

    #[track_caller]
    pub fn data(&self) -> Value {
        self.json()["data"].take()
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }
}

/// What each step of a run came to: `charge=success ship=skipped`.
pub fn statuses(run: &Value) -> String {
    let tasks = run["tasks"].as_object().unwrap();
    let one = |(name, task): (&String, &Value)| format!("{name}={}", task["status"].as_str().unwrap());
    tasks.iter().map(one).collect::<Vec<_>>().join(" ")
}
