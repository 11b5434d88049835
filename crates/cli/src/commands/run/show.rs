//! How progress is shown: drawn on a terminal, as plain lines, as JSON, or not at all. The result goes to standard
//! output, everything else to standard error.

use super::screen::Screen;
use super::steps::{Done, Step, shown};
use crate::draw::plain;
use crate::words;
use serde_json::{Value, json};
use std::io::{IsTerminal, Write};
use stepwell_core::run::StoredFact;
use stepwell_core::time::Time;

pub enum Show {
    Terminal(Screen),
    /// Times are counted from the first that is shown.
    Plain(Option<Time>),
    Json,
    Quiet,
}

/// One fact of one of the runs that are followed.
pub struct Told<'a> {
    pub run: &'a str,
    /// Before the names of steps, if it is a child.
    pub prefix: &'a str,
    pub version: i64,
    pub at: Time,
    pub raw: &'a Value,
    pub fact: &'a StoredFact,
}

impl Show {
    pub fn new(json: bool, quiet: bool) -> Show {
        match (json, quiet) {
            (true, _) => Show::Json,
            (false, true) => Show::Quiet,
            (false, false) if std::io::stderr().is_terminal() => Show::Terminal(Screen::open()),
            (false, false) => Show::Plain(None),
        }
    }

    /// For the person, not for programs.
    pub fn note(&mut self, text: &str) {
        match self {
            Show::Terminal(screen) => screen.line(text),
            Show::Plain(_) => eprintln!("{}", plain(text)),
            Show::Json | Show::Quiet => {}
        }
    }

    /// For programs, not for the person.
    pub fn json(&mut self, line: &Value) -> std::io::Result<()> {
        if matches!(self, Show::Json) {
            let mut out = std::io::stdout().lock();
            writeln!(out, "{line}")?;
            out.flush()?;
        }
        Ok(())
    }

    pub fn fact(&mut self, told: &Told, done: &[Done]) -> std::io::Result<()> {
        match self {
            Show::Terminal(screen) => done.iter().for_each(|done| screen.done(told.prefix, done)),
            Show::Plain(first) => {
                let first = *first.get_or_insert(told.at);
                let clock = |time: Time| format!("+{}", words::length(time.since(first)));
                let text = shown(&words::fact(told.fact, &clock));
                eprintln!("{:>8}  {}", clock(told.at), plain(&format!("{}{text}", told.prefix)));
            }
            Show::Json => {
                let mut line = json!({"run": told.run, "version": told.version, "at": told.at});
                if let (Value::Object(line), Value::Object(fact)) = (&mut line, told.raw) {
                    line.extend(fact.clone());
                }
                self.json(&line)?;
            }
            Show::Quiet => {}
        }
        Ok(())
    }

    pub fn draw(&mut self, steps: &[Step], prefixes: &[String], now: Time) {
        if let Show::Terminal(screen) = self {
            screen.draw(steps, prefixes, now);
        }
    }

    /// True if it changes with time, and not only when something happens.
    pub fn moves(&self) -> bool {
        matches!(self, Show::Terminal(_))
    }

    pub fn ask(&mut self, intro: Option<&str>, prompt: &str) {
        match self {
            Show::Terminal(screen) => screen.ask(intro, prompt),
            Show::Plain(_) | Show::Json | Show::Quiet => {
                intro.iter().for_each(|intro| eprintln!("{}", plain(intro)));
                eprint!("{}", plain(prompt));
            }
        }
    }

    pub fn answered(&mut self, typed: bool) {
        match self {
            Show::Terminal(screen) => screen.answered(typed),
            Show::Plain(_) | Show::Json | Show::Quiet if !typed => eprintln!(),
            Show::Plain(_) | Show::Json | Show::Quiet => {}
        }
    }

    pub fn close(&mut self) {
        if let Show::Terminal(screen) = self {
            screen.close();
        }
    }
}
