//! A real HTTP server on loopback that notes every request: which run, which step, which idempotency key.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

pub struct Server {
    pub url: String,
    seen: Arc<Mutex<Vec<Request>>>,
}

#[derive(Clone, Debug)]
pub struct Request {
    pub run: String,
    pub step: String,
    pub key: String,
}

impl Server {
    pub fn start() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let notes = seen.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let notes = notes.clone();
                std::thread::spawn(move || serve(stream, &notes));
            }
        });
        Server { url, seen }
    }

    pub fn requests(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }

    /// How often a step of a run was sent.
    pub fn count(&self, run: &str, path: &str) -> usize {
        // The key holds the path: steps inside a scope have the same name in every item.
        let wanted = format!("{run}:{path}");
        self.seen.lock().unwrap().iter().filter(|request| request.key == wanted).count()
    }

    /// Steps outside of scopes that were sent with more than one idempotency key.
    pub fn with_several_keys(&self) -> Vec<String> {
        let mut keys: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
        for request in self.requests().into_iter().filter(|request| !request.key.contains('[')) {
            keys.entry((request.run, request.step)).or_default().insert(request.key);
        }
        keys.into_iter().filter(|(_, keys)| keys.len() > 1).map(|((run, step), _)| format!("{run} {step}")).collect()
    }
}

/// Answers requests of one connection until it closes.
fn serve(stream: TcpStream, seen: &Mutex<Vec<Request>>) {
    let Ok(mut answers) = stream.try_clone() else { return };
    let mut lines = BufReader::new(stream);
    loop {
        let (mut length, mut key) = (0, String::new());
        loop {
            let mut line = String::new();
            if lines.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':') {
                match name.to_ascii_lowercase().as_str() {
                    "content-length" => length = value.trim().parse().unwrap_or(0),
                    "idempotency-key" => key = value.trim().to_string(),
                    _ => {}
                }
            }
        }
        let mut body = vec![0; length];
        if lines.read_exact(&mut body).is_err() {
            return;
        }
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let text = |name: &str| body[name].as_str().unwrap_or_default().to_string();
        seen.lock().unwrap().push(Request { run: text("run"), step: text("step"), key });
        let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 11\r\n\r\n{\"ok\":true}";
        if answers.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}
