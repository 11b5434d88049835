//! What workflows call: a server on this machine. Calls to `/held` get no answer until it is told to let them go.

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
    /// Idempotency keys of the calls to `/held`.
    held: Vec<String>,
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

    pub fn held(&self) -> Vec<String> {
        self.shared.0.lock().unwrap().held.clone()
    }

    /// Answers those who wait, and all who come later.
    pub fn let_go(&self) {
        self.shared.0.lock().unwrap().let_go = true;
        self.shared.1.notify_all();
    }
}

fn serve(stream: TcpStream, shared: &(Mutex<State>, Condvar)) -> std::io::Result<()> {
    let mut answers = stream.try_clone()?;
    let mut lines = BufReader::new(stream);
    loop {
        let (mut first, mut length, mut key) = (String::new(), 0, String::new());
        if lines.read_line(&mut first)? == 0 {
            return Ok(());
        }
        loop {
            let mut line = String::new();
            lines.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse().unwrap(),
                "idempotency-key" => key = value.trim().to_string(),
                _ => {}
            }
        }
        lines.read_exact(&mut vec![0; length])?;
        if first.contains(" /held ") {
            let mut state = shared.0.lock().unwrap();
            state.held.push(key);
            drop(shared.1.wait_while(state, |state| !state.let_go).unwrap());
        }
        answers.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}")?;
    }
}
