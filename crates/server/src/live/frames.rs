//! Events as the text of a stream (`text/event-stream`), and the place in it where a reader stopped.

use crate::error::Problem;
use crate::view::Event;
use axum::http::HeaderMap;
use bytes::Bytes;
use serde::Serialize;
use std::fmt::{Display, Write};
use stepwell_store::StoredLog;

/// The events of one log row.
#[derive(Clone)]
pub struct Frames {
    pub text: Bytes,
    /// What the row did to the run's life, if anything.
    pub turn: Option<Turn>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Turn {
    /// With the status.
    Ended(String),
    /// It was retried after its end.
    GoesOn,
}

/// With the run's version and the number of the event as ids; those up to `seen` are left out.
pub fn by_version(run: &str, log: &StoredLog, seen: Option<usize>) -> Frames {
    frames(run, log, log.version.0, seen)
}

/// The same with the position in the log of all runs.
pub fn by_position(run: &str, log: &StoredLog, seen: Option<usize>) -> Frames {
    frames(run, log, log.position.0, seen)
}

fn frames(run: &str, log: &StoredLog, number: i64, seen: Option<usize>) -> Frames {
    let (mut text, mut turn) = (String::new(), None);
    for (n, event) in Event::of_row(run, log).iter().enumerate() {
        match event.kind.as_str() {
            "ended" => {
                let status = event.fact.get("status").and_then(|status| status.as_str());
                turn = Some(Turn::Ended(status.unwrap_or_default().to_string()));
            }
            "retried" | "adopted" => turn = Some(Turn::GoesOn),
            _ => {}
        }
        if seen.is_none_or(|seen| n > seen) {
            frame(&mut text, format_args!("{number}.{n}"), &event.kind, event);
        }
    }
    Frames { text: text.into(), turn }
}

pub fn frame(text: &mut String, id: impl Display, event: &str, data: &impl Serialize) {
    // JSON in one line: it has no line breaks outside of strings, nor inside.
    let data = serde_json::to_string(data).expect("what is shown has text keys only");
    write!(text, "id: {id}\nevent: {event}\ndata: {data}\n\n").expect("text can always grow");
}

/// Where a reader stopped.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Cursor {
    /// The row of the last event.
    pub at: i64,
    pub seen: Seen,
}

/// How much of that row.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Seen {
    #[default]
    All,
    /// Up to this event.
    UpTo(usize),
    /// And the end of the stream after it.
    End,
}

impl Cursor {
    /// `Last-Event-ID`, or else what the address says: a browser that comes back sends both.
    pub fn asked(headers: &HeaderMap, after: Option<&str>) -> Result<Option<Cursor>, Problem> {
        let (name, text) = match headers.get("last-event-id") {
            Some(id) => ("Last-Event-ID", id.to_str().unwrap_or("?")),
            None => ("after", after.unwrap_or_default()),
        };
        // Browsers may send an empty one.
        if text.is_empty() {
            return Ok(None);
        }
        let wrong = || Problem::input(name, "this is not an id of this stream, such as 12 or 12.0");
        Cursor::read(text).map(Some).ok_or_else(wrong)
    }

    fn read(text: &str) -> Option<Cursor> {
        let (at, seen) = match text.split_once('.') {
            None => (text, Seen::All),
            Some((at, "end")) => (at, Seen::End),
            Some((at, n)) => (at, Seen::UpTo(n.parse().ok()?)),
        };
        let at = at.parse().ok().filter(|at| *at >= 0)?;
        Some(Cursor { at, seen })
    }

    /// Rows after this one are wanted, the first of them perhaps in part.
    pub fn after(self) -> i64 {
        if matches!(self.seen, Seen::UpTo(_)) { (self.at - 1).max(0) } else { self.at }
    }

    /// How much of a row was seen.
    pub fn seen_of(self, row: i64) -> Option<usize> {
        match self.seen {
            Seen::UpTo(n) if row == self.at => Some(n),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepwell_core::time::Time;
    use stepwell_store::{LogRow, Position, Version};

    fn log(facts: &str) -> StoredLog {
        let row = LogRow { at: Time(0), facts: facts.into(), payloads: String::new(), hash: [0; 32] };
        StoredLog { version: Version(3), position: Position(70), row }
    }

    #[test]
    fn a_reader_that_stopped_within_a_row_gets_the_rest_of_it() {
        let log = log(r#"[{"type":"started","expires":5},{"type":"skipped","step":"a\n"}]"#);
        let all = by_version("run_1", &log, None);
        let text = std::str::from_utf8(&all.text).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines[0], lines[1], lines[3]), ("id: 3.0", "event: started", ""));
        assert_eq!((lines[4], lines[5], lines.len()), ("id: 3.1", "event: skipped", 8));
        let rest = by_position("run_1", &log, Some(0));
        assert!(rest.text.starts_with(b"id: 70.1\nevent: skipped\ndata: {"));
        assert!(by_version("run_1", &log, Some(1)).text.is_empty());
    }

    #[test]
    fn the_last_turn_of_a_row_counts() {
        let ended = r#"{"type":"ended","status":"failed"}"#;
        let check = |facts: &str, turn| assert_eq!(by_version("run_1", &log(facts), None).turn, turn, "{facts}");
        check(&format!("[{ended}]"), Some(Turn::Ended("failed".into())));
        check(&format!(r#"[{ended},{{"type":"retried"}}]"#), Some(Turn::GoesOn));
        check(r#"[{"type":"started"}]"#, None);
    }

    #[test]
    fn ids_are_read_back_as_they_are_written_and_nothing_else_is() {
        let check = |text: &str, is: Option<(i64, Seen)>| {
            assert_eq!(Cursor::read(text), is.map(|(at, seen)| Cursor { at, seen }), "{text}");
        };
        check("12", Some((12, Seen::All)));
        check("12.0", Some((12, Seen::UpTo(0))));
        check("12.end", Some((12, Seen::End)));
        for text in ["x", "-1", "1.", ".1", "1.-1", "1.2.3", "99999999999999999999", "1.END"] {
            check(text, None);
        }
    }
}
