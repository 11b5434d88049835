//! The service that workflows call: a server on loopback that records requests and answers as it was told.

use crate::harness::eventually;
use serde_json::Value;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

pub struct Outside {
    pub url: String,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    calls: Vec<Call>,
    answers: HashMap<String, (u16, String)>,
    held: HashMap<String, bool>,
}

/// A request that came in.
#[derive(Clone, Debug)]
pub struct Call {
    pub method: String,
    pub path: String,
    /// Names in lower case, as they came.
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Call {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(is, _)| is == name).map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

impl Outside {
    /// Answers everything with 200 and an empty object until it is told otherwise.
    pub fn start() -> Outside {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared::default());
        let of_all = shared.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = of_all.clone();
                thread::spawn(move || serve(stream, &shared));
            }
        });
        Outside { url, shared }
    }

    /// What a path is answered from now on.
    pub fn answer(&self, path: &str, status: u16, body: impl ToString) {
        self.shared.state.lock().unwrap().answers.insert(path.into(), (status, body.to_string()));
    }

    /// Calls of this path are recorded and get no answer until they are released.
    pub fn hold(&self, path: &str) {
        self.shared.state.lock().unwrap().held.insert(path.into(), true);
    }

    pub fn let_go(&self, path: &str) {
        self.shared.state.lock().unwrap().held.insert(path.into(), false);
        self.shared.changed.notify_all();
    }

    pub fn calls(&self, path: &str) -> Vec<Call> {
        let state = self.shared.state.lock().unwrap();
        state.calls.iter().filter(|call| call.path == path).cloned().collect()
    }

    pub fn all(&self) -> Vec<Call> {
        self.shared.state.lock().unwrap().calls.clone()
    }

    pub fn count(&self) -> usize {
        self.shared.state.lock().unwrap().calls.len()
    }

    /// The calls of a path once there are so many.
    #[track_caller]
    pub fn called(&self, path: &str, times: usize) -> Vec<Call> {
        eventually(&format!("{times} calls of {path}"), || Some(self.calls(path)).filter(|all| all.len() >= times))
    }
}

/// One request for each connection.
fn serve(stream: TcpStream, shared: &Shared) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split(' ');
    let (method, path) = (words.next()?.to_string(), words.next()?.to_string());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_string()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let mut body = vec![0; length.map_or(0, |(_, length)| length.parse().unwrap())];
    reader.read_exact(&mut body).ok()?;
    let body = String::from_utf8_lossy(&body).into_owned();
    let mut state = shared.state.lock().unwrap();
    state.calls.push(Call { method, path: path.clone(), headers, body });
    while state.held.get(&path).copied().unwrap_or(false) {
        state = shared.changed.wait(state).unwrap();
    }
    let (status, body) = state.answers.get(&path).cloned().unwrap_or_else(|| (200, "{}".into()));
    drop(state);
    let head = "content-type: application/json\r\nconnection: close\r\n";
    let mut stream = stream;
    write!(stream, "HTTP/1.1 {status} Told\r\n{head}content-length: {}\r\n\r\n{body}", body.len()).ok()
}
