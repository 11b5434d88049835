//! Secrets go through everything there is, and come back in every way a service may write them. Then every byte that was
//! shown, sent or stored is searched for them.

use crate::raw::Raw;
use crate::rig::{Place, Server};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

pub const MASTER: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
/// Holds what each encoding changes.
const KEY: &str = r#"c4n@ry/k+y"q\s&t e%n=d<x>'"#;
/// Can stand in a URL as it is.
const PASS: &str = "Canary-P4ssw0rd-of-0ld";
const DIGITS: &str = "9081726354";

/// A service that sends back all that it was sent, in all ways, also that of calls before.
struct Echo {
    url: String,
    heard: Arc<Mutex<String>>,
}

impl Echo {
    fn start() -> Echo {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let heard: Arc<Mutex<String>> = Arc::default();
        let all = heard.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let heard = all.clone();
                thread::spawn(move || answer(stream, &heard));
            }
        });
        Echo { url, heard }
    }
}

fn answer(mut stream: TcpStream, heard: &Mutex<String>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line.trim().is_empty() {
            break;
        }
        head += &line;
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let sent = format!("{head}\n{}", String::from_utf8_lossy(&body));
    let path = head.split(' ').nth(1).unwrap_or_default().to_string();
    let before = {
        let mut heard = heard.lock().unwrap();
        *heard += &sent;
        heard.clone()
    };
    let said: Vec<String> = [KEY, PASS, DIGITS].iter().flat_map(|secret| written(secret)).collect();
    let header = |name: &str| {
        let found = head.lines().find_map(|line| line.strip_prefix(name));
        found.unwrap_or_default().trim_start_matches(':').trim().to_string()
    };
    let (status, kind, body) = match path.as_str() {
        path if path.starts_with("/bad") => {
            ("400 Bad", "text/plain", format!("I do not like {sent} {}", said.join("\n")))
        }
        path if path.starts_with("/html") => {
            ("500 Broken", "text/html", format!("<p>{before}</p>{}", said.join("<br>")))
        }
        path if path.starts_with("/long") => {
            let cut = format!("{}{KEY}", "x".repeat(256 * 1024 - 14));
            ("200 Fine", "text/plain", cut)
        }
        _ => {
            let number: Value = serde_json::from_str(DIGITS).unwrap();
            let body = json!({"sent": sent, "said": said, "n": number, KEY: "as a key", "before": before});
            ("200 Fine", "application/json", body.to_string())
        }
    };
    let (echo, basic) = (header("x-key"), header("authorization"));
    let head = format!("content-type: {kind}\r\nx-echo: {echo}\r\nx-basic: {basic}\r\nconnection: close\r\n");
    write!(stream, "HTTP/1.1 {status}\r\n{head}content-length: {}\r\n\r\n{body}", body.len()).ok()
}

fn percent(text: &str, upper: bool) -> String {
    let one = |byte: u8| match (byte.is_ascii_alphanumeric() || b"-._~".contains(&byte), upper) {
        (true, _) => (byte as char).to_string(),
        (false, true) => format!("%{byte:02X}"),
        (false, false) => format!("%{byte:02x}"),
    };
    text.bytes().map(one).collect()
}

/// What a service may make of a secret, and what must be found nowhere.
fn written(secret: &str) -> Vec<String> {
    let json = json!(secret).to_string();
    let json = json[1..json.len() - 1].to_string();
    let twice = json!(json).to_string();
    let mut all = vec![
        secret.to_string(),
        twice[1..twice.len() - 1].to_string(),
        json,
        percent(secret, true),
        percent(secret, false),
        percent(secret, true).replace("%20", "+"),
        secret.bytes().map(|byte| format!("{byte:02x}")).collect(),
        secret.bytes().map(|byte| format!("{byte:02X}")).collect(),
    ];
    for before in ["", "a", "ab", "user:"] {
        let around = format!("{before}{secret}");
        all.extend([STANDARD.encode(&around), URL_SAFE.encode(&around)]);
    }
    all
}

/// What is searched for: of base64 the part that is the secret's own.
fn traces(secret: &str) -> Vec<String> {
    let base64 = |before: usize| {
        let padded = [vec![b' '; before], secret.into()].concat();
        let (from, to) = ((before * 8).div_ceil(6), padded.len() * 8 / 6);
        [STANDARD.encode(&padded)[from..to].to_string(), URL_SAFE.encode(&padded)[from..to].to_string()]
    };
    let mut all: Vec<String> = written(secret).into_iter().take(8).collect();
    all.extend((0..3).flat_map(base64));
    all
}

/// Everything that was said somewhere, to be searched.
#[derive(Default)]
struct Said(Vec<(String, Vec<u8>)>);

impl Said {
    fn add(&mut self, place: &str, bytes: impl Into<Vec<u8>>) {
        self.0.push((place.to_string(), bytes.into()));
    }

    #[track_caller]
    fn holds_no(&self, secret: &str) {
        for (place, bytes) in &self.0 {
            for trace in traces(secret) {
                let Some(at) = bytes.windows(trace.len()).position(|part| part == trace.as_bytes()) else { continue };
                let around = String::from_utf8_lossy(&bytes[at.saturating_sub(80)..(at + 80).min(bytes.len())]);
                panic!("{place} holds {trace:?}: …{around}…");
            }
        }
    }
}

fn set(server: &Server, name: &str, value: &str) {
    let told = server.api.call("PUT", &format!("/api/v1/secrets/{name}"), &json!({"value": value})).is(200);
    assert!(!told.text().contains(value));
}

fn workflow(url: &str) -> Value {
    let header = json!({"X-Key": "{{secrets.KEY}}", "Authorization": "Bearer {{secrets.PASS}}"});
    let with_user = url.replacen("http://", "http://user:{{secrets.PASS}}@", 1);
    json!({"name": "canary", "tasks": {
        "header": {"url": format!("{url}/ok?q={{{{secrets.KEY}}}}"), "headers": header, "body": {"deep": [{"k": "{{secrets.KEY}}"}]}},
        "basic": {"url": format!("{with_user}/ok")},
        "text": {"url": format!("{url}/ok"), "body": "pin {{secrets.DIGITS}} and {{secrets.KEY}}"},
        "path": {"url": format!("{url}/bad/{{{{secrets.PASS}}}}"), "retries": 0},
        "html": {"url": format!("{url}/html"), "body": "{{secrets.KEY}}", "retries": 0},
        "long": {"url": format!("{url}/long"), "body": "{{secrets.KEY}}"},
        "nobody": {"url": "http://127.0.0.1:1/{{secrets.PASS}}", "retries": 0},
        "wrong": {"url": "{{secrets.PASS}}", "retries": 0},
        "echo": {"tool": "echo", "args": {"message": "{{secrets.KEY}}"}},
        "log": {"tool": "log", "args": {"message": "it is {{secrets.KEY}} or {{secrets.PASS}}", "level": "error"}},
        "fail": {"tool": "fail", "args": {"message": "no {{secrets.KEY}}", "code": "{{secrets.PASS}}"}, "retries": 0},
        "encode": {"tool": "base64_encode", "args": {"text": "user:{{secrets.KEY}}"}},
        "request": {"tool": "http_request", "args": {"url": format!("{url}/ok"), "headers": header}},
        "later": {"url": format!("{url}/ok"), "needs": ["header", "basic", "text"]},
        "called": {"wait_for_webhook": {"timeout": "1h"}, "needs": ["later"]},
    }})
}

#[test]
fn no_secret_leaves_or_is_stored_in_any_form() {
    let echo = Echo::start();
    let collector = Echo::start();
    let place = Place::new()
        .config(&format!("log: {{level: trace}}\notlp: {{endpoint: \"{}\"}}\n", collector.url))
        .variable("STEPWELL_MASTER_KEY", MASTER);
    let server = place.serve();
    let api = &server.api;
    [("KEY", KEY), ("PASS", PASS), ("DIGITS", DIGITS)].iter().for_each(|(name, value)| set(&server, name, value));
    let url = json!({"url": format!("postgres://u:{PASS}@127.0.0.1:1/x")});
    let mut said = Said::default();
    said.add("a connection", api.call("PUT", "/api/v1/connections/shop", &url).is(200).bytes);
    api.define(&workflow(&echo.url));
    let run = api.trigger("canary", &json!({}));
    let mut socket = joined(&server, &run);
    let socket = thread::spawn(move || socket.rest());
    api.step(&run, "called", "waiting");
    let back = json!({"all": written(KEY), "pass": PASS});
    api.post(&format!("/api/v1/runs/{run}/steps/called/deliver"), &back).is(200);
    let ended = api.end(&run);
    said.add("the run", ended.to_string());
    for path in ["", "/events", "/stream"] {
        said.add(path, api.get(&format!("/api/v1/runs/{run}{path}")).is(200).bytes);
    }
    for path in [
        "/api/v1/runs",
        "/api/v1/audit?limit=1000",
        "/api/v1/secrets",
        "/api/v1/secrets/KEY",
        "/api/v1/connections",
        "/api/v1/workflows/canary",
        "/metrics",
    ] {
        said.add(path, api.get(path).is(200).bytes);
    }
    for args in [&["show", &run][..], &["show", &run, "--json"], &["events", &run], &["events", &run, "--json"]] {
        said.add(&args.join(" "), place.stepwell(args));
    }
    said.add("secret list", place.stepwell(&["secret", "list", "--json"]));
    let log = server.stop();
    assert!(log.contains("it is {{secrets.KEY}} or {{secrets.PASS}}"), "{log}");
    said.add("the log", log);
    let socket = socket.join().unwrap();
    assert!(socket.contains("workflow_status_update") && socket.contains("{{secrets.KEY}}"), "{socket}");
    said.add("the socket", socket);
    said.add("traces", collector.heard.lock().unwrap().clone());
    said.add("the store", place.bytes());
    said.add("the rows", place.rows().into_iter().flat_map(|(_, row)| row).collect::<Vec<u8>>());

    // It was all there to be found, and the rest of it is.
    let heard = echo.heard.lock().unwrap().clone();
    assert!(heard.contains(KEY) && heard.contains(PASS) && heard.contains(DIGITS), "{heard}");
    assert!(heard.contains(&STANDARD.encode(format!("user:{PASS}"))), "{heard}");
    assert!(collector.heard.lock().unwrap().contains("canary"));
    let tasks = &ended["tasks"];
    for step in ["header", "basic", "text", "long", "echo", "log", "encode", "request", "later", "called"] {
        assert_eq!(tasks[step]["status"], "success", "{step}: {}", tasks[step]);
        assert!(tasks[step].to_string().contains("{{secrets."), "{step}: {}", tasks[step]);
    }
    for step in ["path", "html", "nobody", "wrong", "fail"] {
        assert_eq!(tasks[step]["status"], "failed", "{step}: {}", tasks[step]);
    }
    for secret in [KEY, PASS, DIGITS] {
        said.holds_no(secret);
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
