//! Terminal output: finished steps scroll up, active steps are redrawn below them, and questions appear at the bottom.
//! Independent of the engine.

use super::steps::{Doing, Done, Step, shown};
use crate::describe::length;
use crate::draw::fit;
use crate::logging;
use std::io::Write;
use stepwell_core::time::Time;

/// Used if the size of the terminal is unknown.
const SIZE: (usize, usize) = (80, 24);
/// Columns for a name before its status.
const NAME: usize = 28;
const SPIN: [char; 8] = ['⠋', '⠙', '⠸', '⠴', '⠦', '⠇', '⠏', '⠙'];

pub struct Screen {
    colour: bool,
    /// Lines to erase before the next redraw.
    drawn: usize,
    /// Finished lines not yet on the screen.
    above: Vec<String>,
    /// A question is open, so nothing is redrawn.
    asking: bool,
    frame: usize,
}

#[derive(Clone, Copy)]
enum Colour {
    Green,
    Red,
    Yellow,
    Dim,
}

impl Screen {
    pub fn open() -> Screen {
        logging::hold();
        let colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Screen { colour, drawn: 0, above: Vec::new(), asking: false, frame: 0 }
    }

    /// Adds a permanent line.
    pub fn line(&mut self, text: &str) {
        let (columns, _) = size();
        self.above.push(fit(text, columns));
    }

    /// Items of a for_each share its line: of their steps, only failures are shown.
    pub fn done(&mut self, prefix: &str, done: &Done) {
        if done.in_item && matches!(done.status, "success" | "skipped" | "cancelled") {
            return;
        }
        let (icon, colour) = match done.status {
            "success" => ('✓', Colour::Green),
            "skipped" | "cancelled" => ('–', Colour::Dim),
            _ => ('✗', Colour::Red),
        };
        let mut text = format!("{}  {}", name(prefix, &done.path), done.status);
        if done.attempt > 1 {
            text.push_str(&format!("  attempt {}", done.attempt));
        }
        if let Some(took) = done.took {
            text.push_str(&format!("  {}", length(took)));
        }
        if !done.note.is_empty() {
            text.push_str(&format!("  {}", done.note));
        }
        let line = self.with_icon(icon, colour, &text);
        self.above.push(line);
    }

    /// Redraws the current state, except while a question is open; later lines then appear after it.
    pub fn draw(&mut self, steps: &[Step], prefixes: &[String], now: Time) {
        if self.asking {
            return;
        }
        self.frame += 1;
        let (_, rows) = size();
        let room = rows.saturating_sub(2).max(1);
        let rows: Vec<&Step> = steps.iter().filter(|step| step.item_of.is_none()).collect();
        let mut live: Vec<String> =
            rows.iter().take(room).map(|step| self.active(step, &items(step, steps), prefixes, now)).collect();
        if rows.len() > room {
            live.pop();
            live.push(format!("  … and {} more active", rows.len() + 1 - room));
        }
        self.show(&live);
    }

    fn active(&self, step: &Step, items: &str, prefixes: &[String], now: Time) -> String {
        let left =
            |until: Time| if until > now { format!(", {} left", length(until.since(now))) } else { String::new() };
        let doing = match &step.doing {
            Doing::Running => "running".to_string(),
            Doing::Sleeping { until } => format!("sleeping{}", left(*until)),
            Doing::Pausing { until, why } => format!("failed{}: {why}", left(*until)),
            Doing::Call => "waiting for a call".to_string(),
            Doing::Approval => "waiting for approval".to_string(),
            Doing::Verdict => "waiting for a verdict".to_string(),
            Doing::Child => "running a child".to_string(),
            Doing::Scope { ended, count: Some(count), .. } => format!("{ended} of {count} done{items}"),
            Doing::Scope { begun, count: None, .. } => format!("pass {begun}"),
        };
        let attempt = if step.attempt > 1 { format!("  attempt {}", step.attempt) } else { String::new() };
        let prefix = prefixes.get(step.run).map_or("", String::as_str);
        let text = format!("{}  {doing}{attempt}  {}", name(prefix, &step.path), length(now.since(step.since)));
        self.with_icon(SPIN[self.frame % SPIN.len()], Colour::Yellow, &text)
    }

    fn with_icon(&self, icon: char, colour: Colour, text: &str) -> String {
        let (columns, _) = size();
        let text = fit(text, columns.saturating_sub(3).max(10));
        if !self.colour {
            return format!("{icon} {text}");
        }
        let code = match colour {
            Colour::Green => 32,
            Colour::Red => 31,
            Colour::Yellow => 33,
            Colour::Dim => 2,
        };
        format!("\x1b[{code}m{icon}\x1b[0m {text}")
    }

    /// Writes everything at once, to avoid flicker.
    fn show(&mut self, live: &[String]) {
        let mut text = String::new();
        if self.drawn > 0 {
            text.push_str(&format!("\x1b[{}A\r\x1b[J", self.drawn));
        }
        let held = logging::take();
        for line in held.lines() {
            text.push_str(&fit(line, size().0));
            text.push('\n');
        }
        for line in self.above.drain(..).chain(live.iter().cloned()) {
            text.push_str(&line);
            text.push('\n');
        }
        self.drawn = live.len();
        if !text.is_empty() {
            write(&text);
        }
    }

    /// Asks a question. Everything else waits until [`Screen::answered`].
    pub fn ask(&mut self, intro: Option<&str>, prompt: &str) {
        self.show(&[]);
        self.asking = true;
        let intro = intro.map(|intro| format!("{}\n", crate::draw::plain(intro))).unwrap_or_default();
        write(&format!("{intro}{}", crate::draw::plain(prompt)));
    }

    /// `typed` is true if the user ended the line.
    pub fn answered(&mut self, typed: bool) {
        self.asking = false;
        if !typed {
            write("\n");
        }
    }

    /// Stops drawing and releases the terminal.
    pub fn close(&mut self) {
        if self.asking {
            self.answered(false);
        }
        self.show(&[]);
        logging::release();
    }
}

/// What the items of a for_each are doing: `, active: send ×3, check`.
fn items(each: &Step, steps: &[Step]) -> String {
    let mut active: Vec<(&str, usize)> = Vec::new();
    let inside = |step: &&Step| step.item_of.as_ref().is_some_and(|of| (of.run, &of.path) == (each.run, &each.path));
    // Scopes inside an item say nothing that their steps do not say.
    for step in steps.iter().filter(inside).filter(|step| !matches!(step.doing, Doing::Scope { .. })) {
        let name = step.path.rsplit('.').next().unwrap_or_default();
        match active.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => active.push((name, 1)),
        }
    }
    if active.is_empty() {
        return String::new();
    }
    let named = |(name, count): &(&str, usize)| match count {
        1 => shown(name),
        _ => format!("{} ×{count}", shown(name)),
    };
    format!(", active: {}", active.iter().map(named).collect::<Vec<_>>().join(", "))
}

fn name(prefix: &str, path: &str) -> String {
    let name = format!("{prefix}{}", shown(path));
    format!("{name:<NAME$}")
}

fn write(text: &str) {
    let mut out = std::io::stderr().lock();
    // A closed terminal does not stop the run.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// The current columns and rows of the terminal.
fn size() -> (usize, usize) {
    match rustix::termios::tcgetwinsize(std::io::stderr()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (usize::from(size.ws_col), usize::from(size.ws_row)),
        _ => SIZE,
    }
}
