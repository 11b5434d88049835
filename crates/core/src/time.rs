//! Instants and durations, both in milliseconds. Time is always an argument in this crate: nothing here reads a clock.

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// Milliseconds since the Unix epoch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize)]
#[serde(transparent)]
pub struct Time(pub i64);

/// A length of time in milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub u64);

impl Millis {
    pub const SECOND: Millis = Millis(1_000);
    pub const DAY: Millis = Millis(86_400_000);
    /// Longer than any sensible wait, and still far from overflow when added to a time.
    pub const MAX: Millis = Millis(100 * 366 * 86_400_000);

    pub const fn from_secs(secs: u64) -> Millis {
        Millis(secs * 1_000)
    }

    /// Parses `"30s"`, `"5m"`, `"2h"`, `"1d"`, `"250ms"`, `"1w"`, or a sum such as `"1h30m"`. A bare number is seconds.
    pub fn parse(text: &str) -> Option<Millis> {
        let text = text.trim();
        if let Ok(secs) = text.parse::<f64>() {
            return Millis::from_secs_f64(secs);
        }
        if text.is_empty() {
            return None;
        }
        let mut rest = text;
        let mut total = 0f64;
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
            let amount: f64 = rest[..digits].parse().ok()?;
            let after = &rest[digits..];
            let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
            let unit = match &after[..letters] {
                "ms" => 1.0,
                "s" | "sec" | "secs" | "second" | "seconds" => 1_000.0,
                "m" | "min" | "mins" | "minute" | "minutes" => 60_000.0,
                "h" | "hr" | "hour" | "hours" => 3_600_000.0,
                "d" | "day" | "days" => 86_400_000.0,
                "w" | "week" | "weeks" => 7.0 * 86_400_000.0,
                _ => return None,
            };
            total += amount * unit;
            rest = after[letters..].trim_start();
        }
        Millis::checked(total)
    }

    pub fn from_secs_f64(secs: f64) -> Option<Millis> {
        Millis::checked(secs * 1_000.0)
    }

    fn checked(millis: f64) -> Option<Millis> {
        let sensible = millis.is_finite() && millis >= 0.0 && millis <= Millis::MAX.0 as f64;
        sensible.then_some(Millis(millis.round() as u64))
    }
}

impl std::ops::Add<Millis> for Time {
    type Output = Time;
    fn add(self, length: Millis) -> Time {
        Time(self.0.saturating_add(length.0.min(i64::MAX as u64) as i64))
    }
}

impl Time {
    /// Parses an RFC 3339 instant such as `2026-02-22T10:00:00Z`, or milliseconds since the epoch.
    pub fn parse(text: &str) -> Option<Time> {
        if let Ok(millis) = text.trim().parse::<i64>() {
            return Some(Time(millis));
        }
        text.trim().parse::<jiff::Timestamp>().ok().map(|t| Time(t.as_millisecond()))
    }

    pub fn since(self, earlier: Time) -> Millis {
        Millis(self.0.saturating_sub(earlier.0).max(0) as u64)
    }
}

/// Milliseconds, as the log has them, or text, as the API shows them.
impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
        struct Instant;

        impl Visitor<'_> for Instant {
            type Value = Time;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an instant")
            }

            fn visit_i64<E: Error>(self, millis: i64) -> Result<Time, E> {
                Ok(Time(millis))
            }

            fn visit_u64<E: Error>(self, millis: u64) -> Result<Time, E> {
                i64::try_from(millis).map(Time).map_err(|_| E::invalid_value(Unexpected::Unsigned(millis), &self))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Time, E> {
                Time::parse(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
            }
        }

        deserializer.deserialize_any(Instant)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(t) => write!(f, "{t:.3}"),
            Err(_) => write!(f, "{} ms", self.0),
        }
    }
}

/// The shortest exact form with one or two units: `1h30m`, `250ms`, `13d`.
impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 5] = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s"), (1, "ms")];
        if self.0 == 0 {
            return f.write_str("0s");
        }
        let mut rest = self.0;
        for (size, unit) in UNITS {
            if rest >= size {
                write!(f, "{}{unit}", rest / size)?;
                rest %= size;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_parse_in_every_spelling_and_invalid_ones_are_rejected() {
        let check =
            |text: &str, expected: Option<u64>| assert_eq!(Millis::parse(text).map(|m| m.0), expected, "{text}");
        check("30s", Some(30_000));
        check("5m", Some(300_000));
        check("2h", Some(7_200_000));
        check("1d", Some(86_400_000));
        check("1h30m", Some(5_400_000));
        check("250ms", Some(250));
        check("1.5s", Some(1_500));
        check("3600", Some(3_600_000));
        for bad in ["", "s", "5x", "-1s", "1e400", "NaN", "inf", "10 potatoes", "999999d"] {
            check(bad, None);
        }
    }

    #[test]
    fn a_printed_duration_parses_back_to_itself() {
        for millis in [0, 1, 999, 1_000, 61_000, 5_400_000, 86_400_000 * 13 + 1] {
            assert_eq!(Millis::parse(&Millis(millis).to_string()), Some(Millis(millis)));
        }
    }
}
