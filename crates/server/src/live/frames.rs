//! Events as stream text (`text/event-stream`), and the cursor of a client.

use crate::error::Problem;
use crate::view::{Event, OfRun};
use axum::http::HeaderMap;
use bytes::Bytes;
use serde::Serialize;
use std::fmt::{Display, Write};
use stepwell_store::{Position, Progress, StoredLog};

/// The events of one log row.
#[derive(Clone)]
pub struct Frames {
    pub text: Bytes,
    /// Whether the row ended or resumed the run.
    pub turn: Option<Turn>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Turn {
    /// The run ended with this status.
    Ended(String),
    /// The run was retried after its end.
    GoesOn,
}

/// Uses the run's version and the number of the event as ids. Events up to `seen` are left out.
pub fn by_version(of: OfRun<'_>, log: &StoredLog, seen: Option<usize>) -> Frames {
    let (mut text, mut turn) = (String::new(), None);
    for (n, event) in Event::of_row(of, log).iter().enumerate() {
        match event.kind.as_str() {
            "ended" => {
                let status = event.fact.get("status").and_then(|status| status.as_str());
                turn = Some(Turn::Ended(status.unwrap_or_default().to_string()));
            }
            "retried" | "adopted" => turn = Some(Turn::GoesOn),
            _ => {}
        }
        if seen.is_none_or(|seen| n > seen) {
            frame(&mut text, format_args!("{}.{n}", log.version.0), &event.kind, event);
        }
    }
    Frames { text: text.into(), turn }
}

/// The events of a row without ids, which differ between clients.
pub fn without_ids(of: OfRun<'_>, log: &StoredLog) -> Vec<String> {
    Event::of_row(of, log).iter().map(|event| named(&event.kind, event)).collect()
}

/// Events of the log of all runs, with the client's progress as ids. Events up to `seen` are left out.
pub fn by_progress(events: &[String], reached: &Reached, seen: Option<usize>) -> Bytes {
    let mut text = String::new();
    for (n, event) in events.iter().enumerate().filter(|(n, _)| seen.is_none_or(|seen| *n > seen)) {
        write!(text, "id: {reached}.{n}\n{event}").expect("writing to a string cannot fail");
    }
    text.into()
}

pub fn frame(text: &mut String, id: impl Display, event: &str, data: &impl Serialize) {
    write!(text, "id: {id}\n{}", named(event, data)).expect("writing to a string cannot fail");
}

pub fn named(event: &str, data: &impl Serialize) -> String {
    // Serialised JSON is a single line.
    let data = serde_json::to_string(data).expect("views have text keys only");
    format!("event: {event}\ndata: {data}\n\n")
}

/// The progress of a client in the log of all runs: the rows it has, and the last row it received.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Reached {
    pub progress: Progress,
    pub row: Option<Position>,
}

/// Like [`Progress`], but the row comes first.
impl Display for Reached {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut positions: Vec<Position> = self.progress.positions().collect();
        if positions.iter().all(|position| position.writer == 0) {
            return self.progress.fmt(out);
        }
        positions.sort_by_key(|position| Some(*position) != self.row);
        for (n, position) in positions.iter().enumerate() {
            let gap = if n == 0 { "" } else { "_" };
            write!(out, "{gap}{}-{}", position.writer, position.number)?;
        }
        Ok(())
    }
}

/// The cursor of a client in the log of all runs, and how many events of the last row it has if it stopped in the
/// middle.
pub fn stopped(headers: &HeaderMap, after: Option<&str>) -> Result<Option<(Reached, Option<usize>)>, Problem> {
    let read = |text: &str| {
        let (at, seen) = match text.split_once('.') {
            None => (text, None),
            Some((at, n)) => (at, Some(n.parse::<usize>().ok()?)),
        };
        let progress: Progress = at.parse().ok()?;
        let first: Progress = at.split('_').next()?.parse().ok()?;
        Some((Reached { row: first.positions().next(), progress }, seen))
    };
    asked(headers, after, read)
}

/// `Last-Event-ID`, or else the query parameter: a browser that reconnects sends both.
fn asked<T>(headers: &HeaderMap, after: Option<&str>, read: impl Fn(&str) -> Option<T>) -> Result<Option<T>, Problem> {
    let (name, text) = match headers.get("last-event-id") {
        Some(id) => ("Last-Event-ID", id.to_str().unwrap_or("?")),
        None => ("after", after.unwrap_or_default()),
    };
    // Browsers may send an empty header.
    if text.is_empty() {
        return Ok(None);
    }
    let wrong = || Problem::input(name, "this is not an event id of this stream, such as 12 or 12.0");
    read(text).map(Some).ok_or_else(wrong)
}

/// The cursor of a client in the events of one run.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Cursor {
    /// The row of the last event.
    pub at: i64,
    pub seen: Seen,
}

/// How much of that row the client has.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Seen {
    #[default]
    All,
    /// Up to this event.
    UpTo(usize),
    /// The whole row and the `end` event after it.
    End,
}

impl Cursor {
    pub fn asked(headers: &HeaderMap, after: Option<&str>) -> Result<Option<Cursor>, Problem> {
        asked(headers, after, Cursor::read)
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

    /// The version after which rows are needed. The first of them may be needed only in part.
    pub fn after(self) -> i64 {
        if matches!(self.seen, Seen::UpTo(_)) { (self.at - 1).max(0) } else { self.at }
    }

    /// How much of a row the client has.
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
    use stepwell_store::{LogRow, Version};

    const OF: OfRun<'static> = OfRun { run: "run_1", workflow: "it" };

    fn log(facts: &str) -> StoredLog {
        let row = LogRow { at: Time(0), facts: facts.into(), payloads: String::new(), hash: [0; 32] };
        StoredLog { version: Version(3), position: Position::new(0, 70), row }
    }

    #[test]
    fn a_reader_that_stopped_within_a_row_gets_the_rest_of_it() {
        let log = log(r#"[{"type":"started","expires":5},{"type":"skipped","step":"a\n"}]"#);
        let all = by_version(OF, &log, None);
        let text = std::str::from_utf8(&all.text).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines[0], lines[1], lines[3]), ("id: 3.0", "event: started", ""));
        assert_eq!((lines[4], lines[5], lines.len()), ("id: 3.1", "event: skipped", 8));
        let reached = Reached { progress: Progress::from_iter([log.position]), row: Some(log.position) };
        let rest = by_progress(&without_ids(OF, &log), &reached, Some(0));
        assert!(rest.starts_with(b"id: 70.1\nevent: skipped\ndata: {"));
        assert!(by_version(OF, &log, Some(1)).text.is_empty());
    }

    #[test]
    fn a_place_in_the_log_of_several_writers_is_read_back_with_its_row_first() {
        let positions = [Position::new(0, 12), Position::new(3, 7), Position::new(4, 9)];
        let reached = Reached { progress: Progress::from_iter(positions), row: Some(positions[1]) };
        assert_eq!(reached.to_string(), "3-7_0-12_4-9");
        let headers = HeaderMap::from_iter([("last-event-id".parse().unwrap(), "3-7_0-12_4-9.1".parse().unwrap())]);
        assert_eq!(stopped(&headers, None).ok().flatten(), Some((reached, Some(1))));
        assert!(stopped(&HeaderMap::new(), Some("3-7_x")).is_err());
    }

    #[test]
    fn the_last_turn_of_a_row_counts() {
        let ended = r#"{"type":"ended","status":"failed"}"#;
        let check = |facts: &str, turn| assert_eq!(by_version(OF, &log(facts), None).turn, turn, "{facts}");
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
