//! `date(time, add, format, zone)`: moves a time and formats it.
//!
//! Time zones come from the database that is built into the program, never from the machine, so that a workflow means
//! the same everywhere.

use super::{CallError, Outcome, text};
use crate::expr::Val;
use crate::expr::value::View;
use crate::nearest::nearest;
use jiff::civil::DateTime;
use jiff::fmt::strtime;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{Span, Timestamp, Zoned};
use std::sync::OnceLock;

/// Bytes of a format. Each directive produces at most a few hundred.
const MAX_FORMAT: usize = 256;
/// With the offset of the zone, as RFC 3339 wants it.
const WITH_OFFSET: &str = "%Y-%m-%dT%H:%M:%S%.3f%:z";

const TIME: CallError =
    CallError::Type { needs: "a time such as 2026-02-22T10:00:00Z, or milliseconds since 1970", got: "something else" };
const LENGTH: CallError = CallError::Type { needs: "a duration such as '3d' or '-2h30m'", got: "another string" };
const FORMAT: CallError = CallError::Type { needs: "a format such as '%Y-%m-%d'", got: "another string" };
const ZONE: CallError = CallError::Type { needs: "a time zone such as 'Europe/Berlin'", got: "another string" };
const RANGE: CallError = CallError::Type { needs: "a time in the years -9999 to 9999", got: "one outside" };

fn zones() -> &'static TimeZoneDatabase {
    static ZONES: OnceLock<TimeZoneDatabase> = OnceLock::new();
    ZONES.get_or_init(TimeZoneDatabase::bundled)
}

pub fn date<'a>(arguments: &[Val<'_>]) -> Outcome<'a> {
    let optional = |at: usize| match arguments.get(at) {
        Some(value) if !value.is_null() => text(value).map(Some),
        _ => Ok(None),
    };
    let (add, format, zone) = (optional(1)?, optional(2)?, optional(3)?);
    let zone = match zone {
        Some(name) => zones().get(name).map_err(|_| ZONE)?,
        None => TimeZone::UTC,
    };
    let is_utc = optional(3)?.is_none();
    let time = instant(arguments.first().unwrap_or(&Val::Null), &zone)?;
    let moved = match add {
        Some(length) => time.checked_add(span(length)?).map_err(|_| RANGE)?,
        None => time,
    };
    match format {
        Some(format) => Ok(formatted(format, &moved)?.into()),
        None if is_utc => Ok(crate::time::Time(moved.timestamp().as_millisecond()).to_string().into()),
        None => Ok(formatted(WITH_OFFSET, &moved)?.into()),
    }
}

/// Text without an offset is a time in the zone.
fn instant(value: &Val<'_>, zone: &TimeZone) -> Result<Zoned, CallError> {
    let instant = match value.view() {
        View::Number(millis) => millis.whole().and_then(|millis| Timestamp::from_millisecond(millis).ok()),
        View::Text(text) => match text.trim().parse::<Timestamp>() {
            Ok(instant) => Some(instant),
            Err(_) => {
                let local = text.trim().parse::<DateTime>().map_err(|_| TIME)?;
                return local.to_zoned(zone.clone()).map_err(|_| RANGE);
            }
        },
        _ => None,
    };
    Ok(instant.ok_or(TIME)?.to_zoned(zone.clone()))
}

fn span(text: &str) -> Result<Span, CallError> {
    text.trim().parse().map_err(|_| LENGTH)
}

fn formatted(format: &str, time: &Zoned) -> Result<String, CallError> {
    if format.len() > MAX_FORMAT {
        return Err(FORMAT);
    }
    strtime::format(format, time).map_err(|_| FORMAT)
}

/// What is wrong with a literal argument, and what to write instead.
pub fn literal_fault(position: usize, literal: &str) -> Option<(String, Option<String>)> {
    let error = match position {
        0 => instant(&Val::Str(literal), &TimeZone::UTC).err(),
        1 => span(literal).err(),
        2 => formatted(literal, &Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC)).err(),
        _ => zones().get(literal).err().map(|_| ZONE),
    };
    let CallError::Type { needs, .. } = error? else { return None };
    let names = || zones().available().map(|name| name.to_string());
    let near = (position == 3).then(|| {
        let all: Vec<String> = names().collect();
        nearest(literal, all.iter().map(String::as_str)).map(|near| format!("did you mean `{near}`?"))
    });
    Some((format!("`date` needs {needs}"), near.flatten()))
}
