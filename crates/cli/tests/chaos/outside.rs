//! The outside world: a real HTTP server on loopback that notes every request and lets some fail.

use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Requests that a path beginning with `/flaky` refuses before it takes one.
pub const REFUSALS: usize = 2;
/// How long an answer takes at the least and at the most: long enough that there is something to interrupt.
const WORK: [u64; 2] = [20, 900];

#[derive(Clone, Debug)]
pub struct Request {
    /// `run_…:path`, the same for every attempt of a step.
    pub key: String,
    pub body: Value,
    pub begun: Instant,
    /// Just before it was answered.
    pub ended: Option<Instant>,
}

pub struct Outside {
    pub url: String,
    seen: Arc<Mutex<Vec<Request>>>,
}

impl Outside {
    pub fn start() -> Outside {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen: Arc<Mutex<Vec<Request>>> = Arc::default();
        let of_all = seen.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let seen = of_all.clone();
                // A connection that breaks is what this is about.
                std::thread::spawn(move || drop(serve(stream, &seen)));
            }
        });
        Outside { url, seen }
    }

    fn seen(&self) -> MutexGuard<'_, Vec<Request>> {
        self.seen.lock().unwrap()
    }

    /// Those after the first so many.
    pub fn since(&self, known: usize) -> Vec<Request> {
        self.seen()[known..].to_vec()
    }

    /// All that came, by key.
    pub fn by_key(&self) -> BTreeMap<String, Vec<Request>> {
        let mut all: BTreeMap<String, Vec<Request>> = BTreeMap::new();
        for request in self.seen().iter() {
            all.entry(request.key.clone()).or_default().push(request.clone());
        }
        all
    }
}

/// Answers requests of one connection until it closes.
fn serve(stream: TcpStream, seen: &Mutex<Vec<Request>>) -> std::io::Result<()> {
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
        let mut body = vec![0; length];
        lines.read_exact(&mut body)?;
        let body = serde_json::from_slice(&body).unwrap_or_default();
        let request = Request { key: key.clone(), body, begun: Instant::now(), ended: None };
        let (number, times) = {
            let mut seen = seen.lock().unwrap();
            seen.push(request);
            (seen.len() - 1, seen.iter().filter(|request| request.key == key).count())
        };
        let [least, most] = WORK;
        std::thread::sleep(Duration::from_millis(least + number as u64 * 139 % (most - least)));
        seen.lock().unwrap()[number].ended = Some(Instant::now());
        let refused = first.contains(" /flaky") && times <= REFUSALS;
        let status = if refused { "503 Not Now" } else { "200 OK" };
        let body = "{\"ok\":true}";
        let head =
            format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
        answers.write_all((head + body).as_bytes())?;
    }
}
