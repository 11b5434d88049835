//! How far a reader of the log has read.
//!
//! A store has one or more writers; each numbers its commits in order. A commit's number is greater than the number of
//! the run's previous commit, whichever writer made it, so sorting rows by number keeps the order of every run.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// A commit's position in the sequence of one writer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Position {
    pub number: i64,
    pub writer: i32,
}

impl Position {
    pub const fn new(writer: i32, number: i64) -> Position {
        Position { number, writer }
    }
}

/// The last position that a reader has read from each writer. The default is the beginning.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Progress {
    last: BTreeMap<i32, i64>,
}

impl Progress {
    /// Returns the last number read from a writer.
    pub fn of(&self, writer: i32) -> i64 {
        self.last.get(&writer).copied().unwrap_or_default()
    }

    /// Marks a position as read.
    pub fn pass(&mut self, position: Position) {
        let last = self.last.entry(position.writer).or_default();
        *last = position.number.max(*last);
    }

    /// Whether a position has been read.
    pub fn has(&self, position: Position) -> bool {
        position.number <= self.of(position.writer)
    }

    /// Whether everything in `other` has been read here too.
    pub fn covers(&self, other: &Progress) -> bool {
        other.positions().all(|position| self.has(position))
    }

    /// Moves back to just before this position: it and everything its writer wrote after it are unread again.
    pub fn back(&mut self, position: Position) {
        self.last.insert(position.writer, (position.number - 1).max(0));
    }

    pub fn positions(&self) -> impl Iterator<Item = Position> {
        self.last.iter().map(|(writer, number)| Position::new(*writer, *number))
    }
}

impl FromIterator<Position> for Progress {
    fn from_iter<T: IntoIterator<Item = Position>>(positions: T) -> Progress {
        let mut progress = Progress::default();
        positions.into_iter().for_each(|position| progress.pass(position));
        progress
    }
}

/// `12` if there is only writer 0, otherwise `0-12_3-7` (writer and number).
impl fmt::Display for Progress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.last.keys().all(|writer| *writer == 0) {
            return write!(out, "{}", self.of(0));
        }
        for (n, position) in self.positions().enumerate() {
            let gap = if n == 0 { "" } else { "_" };
            write!(out, "{gap}{}-{}", position.writer, position.number)?;
        }
        Ok(())
    }
}

impl FromStr for Progress {
    type Err = ();

    fn from_str(text: &str) -> Result<Progress, ()> {
        let number = |text: &str| text.parse::<i64>().ok().filter(|number| *number >= 0).ok_or(());
        if !text.contains('-') {
            return Ok(Progress::from_iter([Position::new(0, number(text)?)]));
        }
        let each = text.split('_').map(|part| {
            let (writer, at) = part.split_once('-').ok_or(())?;
            Ok(Position::new(i32::try_from(number(writer)?).map_err(|_| ())?, number(at)?))
        });
        each.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_and_parse_round_trip() {
        let check = |positions: &[(i32, i64)], text: &str| {
            let progress: Progress = positions.iter().map(|(writer, number)| Position::new(*writer, *number)).collect();
            assert_eq!(progress.to_string(), text);
            assert_eq!(text.parse(), Ok(progress));
        };
        check(&[(0, 12)], "12");
        check(&[(3, 7), (0, 12)], "0-12_3-7");
        check(&[(2, 9)], "2-9");
        for wrong in ["", "x", "-1", "1-", "-", "0-1_", "0-1__2-3", "0-1_7", "99999999999-1", "0--1"] {
            assert_eq!(wrong.parse::<Progress>(), Err(()), "{wrong}");
        }
    }

    #[test]
    fn progress_covers_what_it_has_read() {
        let progress = |text: &str| text.parse::<Progress>().unwrap_or_default();
        assert!(progress("0-12_3-7").covers(&progress("11")));
        assert!(!progress("12").covers(&progress("0-12_3-7")));
        let mut all = progress("0-12_3-7");
        all.back(Position::new(3, 7));
        assert!(!all.has(Position::new(3, 7)) && all.has(Position::new(3, 6)) && all.has(Position::new(0, 12)));
    }
}
