//! An HTTP server on loopback that workflows call. Each test defines its answers, except one that several suites
//! share.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

/// A request, as far as tests look at it.
#[derive(Clone, Debug)]
pub struct Request {
    pub path: String,
    /// `Idempotency-Key`, or nothing.
    pub key: String,
    pub body: Vec<u8>,
}

/// Serves for as long as the process lives, each connection in a thread of its own. The answer is a status and JSON.
pub fn listen(answer: impl Fn(Request) -> (&'static str, String) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = answer.clone();
            // A connection that breaks is the caller's concern.
            std::thread::spawn(move || drop(serve(stream, &*answer)));
        }
    });
    url
}

fn serve(stream: TcpStream, answer: &impl Fn(Request) -> (&'static str, String)) -> std::io::Result<()> {
    let mut answers = stream.try_clone()?;
    let mut lines = BufReader::new(stream);
    loop {
        let (mut first, mut length, mut key) = (String::new(), 0, String::new());
        if lines.read_line(&mut first)? == 0 {
            return Ok(());
        }
        loop {
            let mut line = String::new();
            if lines.read_line(&mut line)? == 0 {
                // The caller was killed before the request was complete.
                return Ok(());
            }
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse().unwrap(),
                "idempotency-key" => key = value.trim().to_string(),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        lines.read_exact(&mut body)?;
        let path = first.split(' ').nth(1).unwrap_or_default().to_string();
        let (status, json) = answer(Request { path, key, body });
        let head = format!("content-type: application/json\r\ncontent-length: {}", json.len());
        answers.write_all(format!("HTTP/1.1 {status}\r\n{head}\r\n\r\n{json}").as_bytes())?;
    }
}

/// What is sent to `/tell` is written down, `/missing` is not found, and calls of `/held` get no answer until they
/// are released.
pub struct Outside {
    pub url: String,
    shared: Arc<(Mutex<Called>, Condvar)>,
}

#[derive(Default)]
struct Called {
    let_go: bool,
    /// Idempotency keys of the calls of `/held`.
    held: Vec<String>,
    told: Vec<Vec<u8>>,
}

impl Outside {
    pub fn start() -> Outside {
        let shared: Arc<(Mutex<Called>, Condvar)> = Arc::default();
        let of_all = shared.clone();
        let url = listen(move |request| {
            let mut called = of_all.0.lock().unwrap();
            match request.path.as_str() {
                "/tell" => called.told.push(request.body),
                "/held" => {
                    called.held.push(request.key);
                    drop(of_all.1.wait_while(called, |called| !called.let_go).unwrap());
                }
                _ => {}
            }
            (if request.path == "/missing" { "404 Not Found" } else { "200 OK" }, "{}".into())
        });
        Outside { url, shared }
    }

    pub fn held(&self) -> Vec<String> {
        self.shared.0.lock().unwrap().held.clone()
    }

    /// The last that was sent to `/tell`.
    pub fn told(&self) -> Option<Vec<u8>> {
        self.shared.0.lock().unwrap().told.last().cloned()
    }

    /// Answers those who wait, and all who come later.
    pub fn let_go(&self) {
        self.shared.0.lock().unwrap().let_go = true;
        self.shared.1.notify_all();
    }
}
