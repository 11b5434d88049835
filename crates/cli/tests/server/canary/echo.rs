//! A service that returns what it receives, in many encodings.

use super::{DIGITS, KEY, PASS};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// A service that sends back all that it was sent, in all ways, also that of calls before.
pub struct Echo {
    pub url: String,
    pub heard: Arc<Mutex<String>>,
}

impl Echo {
    pub fn start() -> Echo {
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

pub fn percent(text: &str, upper: bool) -> String {
    let one = |byte: u8| match (byte.is_ascii_alphanumeric() || b"-._~".contains(&byte), upper) {
        (true, _) => (byte as char).to_string(),
        (false, true) => format!("%{byte:02X}"),
        (false, false) => format!("%{byte:02x}"),
    };
    text.bytes().map(one).collect()
}

/// What a service may make of a secret, and what must be found nowhere.
pub fn written(secret: &str) -> Vec<String> {
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
