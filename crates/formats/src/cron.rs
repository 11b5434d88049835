//! Computes when a schedule fires. Pure: times are arguments, and the time zones are compiled in.
//!
//! The time of a zone is a sequence of periods with one offset each. Within a period, instants and wall-clock times
//! differ only by the offset, so the expression is searched on the plain calendar. Where two periods meet, the clock
//! skips or repeats times; there, and only there, the rules for skipped and repeated times apply.
//!
//! Not here: which expressions are accepted (`trigger/expression.rs`), overlap and catch-up (the caller that starts the
//! runs).

use crate::trigger::expression;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};
use std::ops::Range;
use stepwell_core::definition::{Cron, Repeated, Skipped};
use stepwell_core::time::Time;

/// The years 1 to 4999. The library's search ends there, and no offset leaves the calendar.
const FIRST: Instant = -62_135_596_800;
const LAST: Instant = 95_617_583_999;

/// A cron expression in its time zone, with the rules for clock changes.
#[derive(Clone, Debug)]
pub struct Schedule {
    cron: croner::Cron,
    zone: TimeZone,
    runs_skipped: bool,
    runs_twice: bool,
}

/// Seconds since the epoch.
type Instant = i64;
/// A wall-clock time, as the instant at which a clock in UTC would show it.
type Wall = i64;

/// A period of time with one offset.
struct Period {
    start: Instant,
    /// The first instant after the period.
    end: Instant,
    offset: i64,
    /// The offset of the previous period.
    before: i64,
}

impl Schedule {
    /// Returns `None` only for an expression or a zone that no definition can have.
    pub fn new(cron: &Cron) -> Option<Schedule> {
        let zone = match &cron.timezone {
            Some(name) => expression::zone(name)?,
            None => TimeZone::UTC,
        };
        let (runs_skipped, repeated) = (cron.skipped == Skipped::Run, cron.repeated);
        let cron = expression::parse(&cron.expression).ok()?;
        let runs_twice = match repeated {
            Repeated::ByHour => cron.pattern.hours.from_wildcard,
            Repeated::Once => false,
            Repeated::Twice => true,
        };
        Some(Schedule { cron, zone, runs_skipped, runs_twice })
    }

    /// The first time it fires strictly after `after`.
    pub fn next(&self, after: Time) -> Option<Time> {
        let mut at = seconds(after).max(FIRST) + 1;
        let mut known = None;
        while at <= LAST {
            let period = self.period(at);
            let gap = period.gap();
            if at == period.start && self.runs_skipped && gap.contains(&self.search(gap.start, &mut known)?) {
                return Some(time(at));
            }
            let from = (at + period.offset).max(self.first_wall(&period));
            let found = self.search(from, &mut known)?;
            if found < period.end + period.offset {
                return Some(time(found - period.offset));
            }
            at = period.end;
        }
        None
    }

    /// The times it fires in (after, until], oldest first, at most the newest `limit`.
    pub fn between(&self, after: Time, until: Time, limit: usize) -> Vec<Time> {
        let after = seconds(after).max(FIRST);
        let mut at = seconds(until).min(LAST);
        let mut found = Vec::new();
        // Backwards from the newest: times beyond the limit are never computed, however long the interval.
        while found.len() < limit
            && let Some(fire) = self.last(after, at)
        {
            found.push(time(fire));
            at = fire - 1;
        }
        found.reverse();
        found
    }

    /// The last time it fires in (after, until].
    fn last(&self, after: Instant, until: Instant) -> Option<Instant> {
        let mut at = until;
        let mut known = None;
        while at > after {
            let period = self.period(at);
            let found = self.search_back(at + period.offset, &mut known)?;
            let fire = if found >= self.first_wall(&period) {
                Some(found - period.offset)
            } else {
                (self.runs_skipped && period.gap().contains(&found)).then_some(period.start)
            };
            if fire.is_some() {
                return fire.filter(|fire| *fire > after);
            }
            at = period.start - 1;
        }
        None
    }

    fn period(&self, at: Instant) -> Period {
        let offset = |at: Instant| i64::from(self.zone.to_offset(timestamp(at)).seconds());
        let transition = |found: Option<jiff::tz::TimeZoneTransition<'_>>| found.map(|t| t.timestamp().as_second());
        // Clock changes happen at whole seconds.
        let start = transition(self.zone.preceding(timestamp(at + 1)).next()).filter(|start| *start > FIRST);
        let end = transition(self.zone.following(timestamp(at)).next());
        let (offset, before) = (offset(at), start.map_or(offset(at), |start| offset(start - 1)));
        Period { start: start.unwrap_or(FIRST), end: end.unwrap_or(LAST + 1), offset, before }
    }

    /// The first wall-clock time of the period that counts: earlier ones repeat times of the previous period.
    fn first_wall(&self, period: &Period) -> Wall {
        let offset = if self.runs_twice { period.offset } else { period.offset.max(period.before) };
        period.start + offset
    }

    /// The first wall-clock time that matches the expression, starting at `from`. `known` caches where the last search
    /// began and what it found, so that a rare time is searched once and not again in each period before it.
    fn search(&self, from: Wall, known: &mut Option<(Wall, Wall)>) -> Option<Wall> {
        match *known {
            Some((began, found)) if began <= from && from <= found => Some(found),
            _ => {
                let found = self.cron.find_next_occurrence(&civil(from), true).ok().and_then(wall)?;
                *known = Some((from, found));
                Some(found)
            }
        }
    }

    /// The last wall-clock time that matches the expression, up to `until`.
    fn search_back(&self, until: Wall, known: &mut Option<(Wall, Wall)>) -> Option<Wall> {
        match *known {
            Some((began, found)) if found <= until && until <= began => Some(found),
            _ => {
                let found = self.cron.find_previous_occurrence(&civil(until), true).ok().and_then(wall)?;
                *known = Some((until, found));
                Some(found)
            }
        }
    }
}

impl Period {
    /// The wall-clock times that the clock skipped when the period began. Empty if it did not go forward.
    fn gap(&self) -> Range<Wall> {
        self.start + self.before..self.start + self.offset
    }
}

fn seconds(time: Time) -> Instant {
    time.0.div_euclid(1_000)
}

fn time(at: Instant) -> Time {
    Time(at * 1_000)
}

fn timestamp(at: Instant) -> Timestamp {
    Timestamp::from_second(at.clamp(FIRST, LAST + 1)).expect("within the calendar")
}

fn civil(wall: Wall) -> DateTime {
    Offset::UTC.to_datetime(timestamp(wall))
}

fn wall(civil: DateTime) -> Option<Wall> {
    Offset::UTC.to_timestamp(civil).ok().map(Timestamp::as_second)
}
