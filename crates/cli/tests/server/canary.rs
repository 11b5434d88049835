//! Secrets go through every part of the server, and services return them in every encoding. Then everything that
//! was shown, sent or stored is searched for them.

mod calls;
mod echo;
mod gates;
mod transcript;

use crate::harness::{Installation, Server, eventually};
use crate::outside::Outside;
use crate::raw::Raw;
use echo::Echo;
use serde_json::{Value, json};
use std::thread;
use transcript::Transcript;

pub const MASTER: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
/// Holds what each encoding changes.
const KEY: &str = r#"c4n@ry/k+y"q\s&t e%n=d<x>'"#;
/// Can stand in a URL as it is.
const PASS: &str = "Canary-P4ssw0rd-of-0ld";
const DIGITS: &str = "9081726354";
/// Of a database. No secret of its own: it is only in the URL of a connection.
const DOOR: &str = r#"d00r/to:the "w@ll" of 0ld"#;

/// A server that has the secrets, the services that it calls and notifies, and everything that it showed, sent or stored.
struct Canary {
    echo: Echo,
    collector: Echo,
    outside: Outside,
    place: Installation,
    server: Server,
    transcript: Transcript,
    sockets: Vec<thread::JoinHandle<String>>,
}

impl Canary {
    fn start() -> Canary {
        let (echo, collector, outside) = (Echo::start(), Echo::start(), Outside::start());
        let place = Installation::new()
            .config(&format!("log: {{level: trace}}\notlp: {{endpoint: \"{}\"}}\n", collector.url))
            .variable("STEPWELL_MASTER_KEY", MASTER);
        let server = place.serve();
        let api = &server.api;
        for (name, value) in [("KEY", KEY), ("PASS", PASS), ("DIGITS", DIGITS)] {
            let told = api.call("PUT", &format!("/api/v1/secrets/{name}"), &json!({"value": value})).is(200);
            assert!(!told.text().contains(value));
        }
        let hook = json!({"name": "hook", "medium": "webhook", "url": format!("{}/hook", outside.url)});
        let ntfy = json!({"name": "ntfy", "medium": "ntfy", "url": format!("{}/ntfy", outside.url), "topic": "wells"});
        for mut channel in [hook, ntfy] {
            channel["organisation"] = json!(true);
            api.post("/api/v1/channels", &channel).is(201);
        }
        Canary { echo, collector, outside, place, server, transcript: Transcript::default(), sockets: Vec::new() }
    }

    /// Starts a run of this workflow and watches it.
    fn trigger(&mut self, workflow: &Value) -> String {
        let api = &self.server.api;
        api.define(workflow);
        let run = api.trigger(workflow["name"].as_str().unwrap(), &json!({"url": self.echo.url}));
        let mut socket = joined(&self.server, &run);
        self.sockets.push(thread::spawn(move || socket.rest()));
        run
    }

    /// A run that has ended, and all that is shown of it.
    fn ended(&mut self, run: &str) -> Value {
        let ended = self.server.api.end(run);
        self.transcript.add("the run", ended.to_string());
        for path in ["", "/events", "/stream"] {
            self.read(&format!("/api/v1/runs/{run}{path}"));
        }
        for args in [&["show", run][..], &["show", run, "--json"], &["events", run], &["events", run, "--json"]] {
            self.transcript.add(&args.join(" "), self.place.stepwell(args));
        }
        ended
    }

    fn read(&mut self, path: &str) -> String {
        let answer = self.server.api.get(path).is(200);
        let text = answer.text();
        self.transcript.add(path, answer.bytes);
        text
    }

    /// Stops the server, and searches everything.
    fn keeps_silent(mut self) {
        let api = &self.server.api;
        eventually("notifications that are done", || {
            let all = api.get("/api/v1/notifications?limit=1000").is(200).data();
            all.as_array().unwrap().iter().all(|one| one["status"] != "waiting").then_some(())
        });
        let workflows = api.get("/api/v1/workflows").is(200).data();
        for workflow in workflows.as_array().unwrap() {
            self.read(&format!("/api/v1/workflows/{}", workflow["id"].as_str().unwrap()));
        }
        for path in [
            "/api/v1/runs",
            "/api/v1/audit?limit=1000",
            "/api/v1/secrets",
            "/api/v1/secrets/KEY",
            "/api/v1/connections",
            "/api/v1/channels",
            "/api/v1/notifications?limit=1000",
            "/metrics",
        ] {
            self.read(path);
        }
        let Canary { echo, collector, outside, place, server, mut transcript, sockets } = self;
        transcript.add("secret list", place.stepwell(&["secret", "list", "--json"]));
        transcript.add("the store while it is used", place.bytes());
        transcript.add("the log", server.stop());
        for socket in sockets {
            let socket = socket.join().unwrap();
            assert!(socket.contains("workflow_status_update"), "{socket}");
            transcript.add("the socket", socket);
        }
        let traces = collector.heard.lock().unwrap().clone();
        assert!(traces.contains("canary"));
        transcript.add("traces", traces);
        outside.all().iter().for_each(|call| transcript.add("a notification", format!("{call:?} {}", call.body)));
        transcript.add("the store", place.bytes());
        transcript.add("the rows", place.rows().into_iter().flat_map(|(_, row)| row).collect::<Vec<u8>>());
        place.dump().iter().for_each(|dump| transcript.add_dump(dump));
        // It was all there to be found.
        let heard = echo.heard.lock().unwrap().clone();
        assert!(heard.contains(KEY) && heard.contains(PASS) && heard.contains(DIGITS), "{heard}");
        for secret in [KEY, PASS, DIGITS, DOOR] {
            transcript.holds_no(secret);
        }
    }
}

/// A socket that has joined a run.
fn joined(server: &Server, run: &str) -> Raw {
    let mut raw = Raw::open(server.address());
    let key = server.api.key.as_deref().unwrap();
    raw.send(format!(
        "GET /api/v1/ws HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\nConnection: Upgrade\r\n\
         Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    ))
    .unwrap();
    assert!(raw.head().starts_with("HTTP/1.1 101"));
    raw.frame(&json!({"event": "workflow_run_join", "data": {"runId": run}}).to_string());
    raw
}

/// Every one of these ended so, and where a secret was there is its name.
#[track_caller]
fn masked(run: &Value, steps: &[&str], status: &str) {
    for step in steps {
        let task = &run["tasks"][step];
        assert_eq!(task["status"], status, "{step}: {task}");
        assert!(task.to_string().contains("{{secrets."), "{step}: {task}");
    }
}
