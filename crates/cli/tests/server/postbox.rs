//! An SMTP server on a socket that keeps the messages it receives.

use crate::harness::eventually;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

#[derive(Clone, Debug, Default)]
pub struct Letter {
    pub from: String,
    pub to: Vec<String>,
    /// Head and body, as they came.
    pub text: String,
}

pub struct Postbox {
    pub port: u16,
    letters: Arc<Mutex<Vec<Letter>>>,
    /// What the next recipients are answered with, if not that it is fine.
    refusals: Arc<Mutex<Vec<&'static str>>>,
}

impl Postbox {
    pub fn start() -> Postbox {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let postbox =
            Postbox { port: listener.local_addr().unwrap().port(), letters: Arc::default(), refusals: Arc::default() };
        let (letters, refusals) = (postbox.letters.clone(), postbox.refusals.clone());
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (letters, refusals) = (letters.clone(), refusals.clone());
                thread::spawn(move || converse(stream, &letters, &refusals));
            }
        });
        postbox
    }

    pub fn refuse_next(&self, with: &'static str) {
        self.refusals.lock().unwrap().push(with);
    }

    #[track_caller]
    pub fn got(&self, many: usize) -> Vec<Letter> {
        let letters = || Some(self.letters.lock().unwrap().clone()).filter(|letters| letters.len() >= many);
        eventually(&format!("{many} letters"), letters)
    }
}

fn converse(stream: TcpStream, letters: &Mutex<Vec<Letter>>, refusals: &Mutex<Vec<&'static str>>) -> Option<()> {
    let mut lines = BufReader::new(stream.try_clone().ok()?).lines();
    let mut out = stream;
    let mut say = move |text: &str| write!(out, "{text}\r\n").ok();
    let mut letter = Letter::default();
    say("220 postbox")?;
    while let Some(Ok(line)) = lines.next() {
        let word = line.split([' ', ':']).next()?.to_ascii_uppercase();
        match word.as_str() {
            "EHLO" | "HELO" => say("250 postbox")?,
            "MAIL" => {
                letter.from = line;
                say("250 fine")?
            }
            "RCPT" => match refusals.lock().unwrap().pop() {
                Some(refusal) => say(refusal)?,
                None => {
                    letter.to.push(line);
                    say("250 fine")?
                }
            },
            "DATA" => {
                say("354 go on")?;
                for line in lines.by_ref().map_while(Result::ok).take_while(|line| line != ".") {
                    letter.text.push_str(line.strip_prefix('.').unwrap_or(&line));
                    letter.text.push('\n');
                }
                letters.lock().unwrap().push(std::mem::take(&mut letter));
                say("250 kept")?
            }
            "QUIT" => {
                say("221 bye")?;
                return None;
            }
            _ => say("250 fine")?,
        }
    }
    Some(())
}
