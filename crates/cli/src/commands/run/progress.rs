//! Shows progress: drawn on a terminal, as plain lines, as JSON, or not at all. The result goes to standard output,
//! everything else to standard error.

use super::screen::Screen;
use super::steps::{Done, Step, shown};
use crate::describe;
use crate::draw::plain;
use serde_json::{Value, json};
use std::io::{IsTerminal, Write};
use stepwell_core::run::StoredFact;
use stepwell_core::time::Time;

pub enum Progress {
    Terminal(Screen),
    /// Times are relative to the first fact shown.
    Plain(Option<Time>),
    Json,
    Quiet,
}

/// A fact of one of the followed runs.
pub struct ShownFact<'a> {
    pub run: &'a str,
    /// Prefix of step names, for a child run.
    pub prefix: &'a str,
    pub version: i64,
    pub at: Time,
    pub raw: &'a Value,
    pub fact: &'a StoredFact,
}

impl Progress {
    pub fn new(json: bool, quiet: bool) -> Progress {
        match (json, quiet) {
            (true, _) => Progress::Json,
            (false, true) => Progress::Quiet,
            (false, false) if std::io::stderr().is_terminal() => Progress::Terminal(Screen::open()),
            (false, false) => Progress::Plain(None),
        }
    }

    /// Prints a note for people, not for programs.
    pub fn note(&mut self, text: &str) {
        match self {
            Progress::Terminal(screen) => screen.line(text),
            Progress::Plain(_) => eprintln!("{}", plain(text)),
            Progress::Json | Progress::Quiet => {}
        }
    }

    /// Prints a line for programs, not for people.
    pub fn json(&mut self, line: &Value) -> std::io::Result<()> {
        if matches!(self, Progress::Json) {
            let mut out = std::io::stdout().lock();
            writeln!(out, "{line}")?;
            out.flush()?;
        }
        Ok(())
    }

    pub fn fact(&mut self, entry: &ShownFact, done: &[Done]) -> std::io::Result<()> {
        match self {
            Progress::Terminal(screen) => done.iter().for_each(|done| screen.done(entry.prefix, done)),
            Progress::Plain(first) => {
                let first = *first.get_or_insert(entry.at);
                let clock = |time: Time| format!("+{}", describe::length(time.since(first)));
                let text = shown(&describe::fact(entry.fact, &clock));
                eprintln!("{:>8}  {}", clock(entry.at), plain(&format!("{}{text}", entry.prefix)));
            }
            Progress::Json => {
                let mut line = json!({"run": entry.run, "version": entry.version, "at": entry.at});
                if let (Value::Object(line), Value::Object(fact)) = (&mut line, entry.raw) {
                    line.extend(fact.clone());
                }
                self.json(&line)?;
            }
            Progress::Quiet => {}
        }
        Ok(())
    }

    pub fn draw(&mut self, steps: &[Step], prefixes: &[String], now: Time) {
        if let Progress::Terminal(screen) = self {
            screen.draw(steps, prefixes, now);
        }
    }

    /// Whether the display changes with time, not only with events.
    pub fn moves(&self) -> bool {
        matches!(self, Progress::Terminal(_))
    }

    pub fn ask(&mut self, intro: Option<&str>, prompt: &str) {
        match self {
            Progress::Terminal(screen) => screen.ask(intro, prompt),
            Progress::Plain(_) | Progress::Json | Progress::Quiet => {
                intro.iter().for_each(|intro| eprintln!("{}", plain(intro)));
                eprint!("{}", plain(prompt));
            }
        }
    }

    pub fn answered(&mut self, typed: bool) {
        match self {
            Progress::Terminal(screen) => screen.answered(typed),
            Progress::Plain(_) | Progress::Json | Progress::Quiet if !typed => eprintln!(),
            Progress::Plain(_) | Progress::Json | Progress::Quiet => {}
        }
    }

    pub fn close(&mut self) {
        if let Progress::Terminal(screen) = self {
            screen.close();
        }
    }
}
