//! What workflows call: a server on this machine. What is sent to `/tell` is written down, `/missing` is not found, and
//! calls of `/held` get no answer until they are let go.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

pub struct Outside {
    pub url: String,
    shared: Arc<(Mutex<State>, Condvar)>,
}

#[derive(Default)]
struct State {
    let_go: bool,
    held: usize,
    told: Vec<Value>,
}

impl Outside {
    pub fn start() -> Outside {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared: Arc<(Mutex<State>, Condvar)> = Arc::default();
        let of_all = shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = of_all.clone();
                // A connection that breaks is no concern of the test.
                std::thread::spawn(move || drop(serve(stream, &shared)));
            }
        });
        Outside { url, shared }
    }

    /// How many calls of `/held` there were.
    pub fn held(&self) -> usize {
        self.shared.0.lock().unwrap().held
    }

    pub fn told(&self) -> Option<Value> {
        self.shared.0.lock().unwrap().told.last().cloned()
    }

    /// Answers those who wait, and all who come later.
    pub fn let_go(&self) {
        self.shared.0.lock().unwrap().let_go = true;
        self.shared.1.notify_all();
    }
}

/// One request for each connection.
fn serve(mut stream: TcpStream, shared: &(Mutex<State>, Condvar)) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?);
    let (mut first, mut length) = (String::new(), 0);
    lines.read_line(&mut first)?;
    loop {
        let mut line = String::new();
        lines.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    lines.read_exact(&mut body)?;
    let mut state = shared.0.lock().unwrap();
    if first.contains(" /tell ") {
        state.told.push(serde_json::from_slice(&body).unwrap());
    }
    if first.contains(" /held ") {
        state.held += 1;
        state = shared.1.wait_while(state, |state| !state.let_go).unwrap();
    }
    drop(state);
    let status = if first.contains(" /missing ") { "404 Not Found" } else { "200 OK" };
    let head = "content-type: application/json\r\nconnection: close\r\ncontent-length: 2";
    write!(stream, "HTTP/1.1 {status}\r\n{head}\r\n\r\n{{}}")
}
