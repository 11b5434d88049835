//! Parses and validates cron expressions and time zones. `cron.rs` computes when they fire.

use crate::fields::quoted;
use croner::parser::{CronParser, Seconds, Year};
use jiff::tz::{TimeZone, TimeZoneDatabase};

const MAX_CRON_BYTES: usize = 256;
/// Comma-separated parts of one field: an hour has no more minutes.
const MAX_CRON_PARTS: usize = 60;
const NICKNAMES: [&str; 6] = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@hourly"];

/// A zone of the bundled database, so that every machine has the same zones.
pub fn zone(name: &str) -> Option<TimeZone> {
    TimeZoneDatabase::bundled().get(name).ok()
}

/// Parses an expression that fires at some time. Checks the fields before they reach the library, because a field
/// without a match makes it search through all the hours of three thousand years.
pub fn parse(expression: &str) -> Result<croner::Cron, String> {
    let expression = expression.trim();
    if expression.len() > MAX_CRON_BYTES {
        return Err(format!("a cron expression has at most {MAX_CRON_BYTES} bytes"));
    }
    check_fields(expression)?;
    let parser = CronParser::builder().seconds(Seconds::Optional).year(Year::Disallowed).build();
    let cron = parser.parse(expression).map_err(|_| "this is not a cron expression".to_owned())?;
    if fires(&cron) { Ok(cron) } else { Err("no time ever matches this cron expression".into()) }
}

fn check_fields(expression: &str) -> Result<(), String> {
    if expression.starts_with('@') {
        let known = NICKNAMES.iter().any(|name| name.eq_ignore_ascii_case(expression));
        return if known {
            Ok(())
        } else {
            Err(format!("{} is not one of {}", quoted(expression), NICKNAMES.join(", ")))
        };
    }
    let fields: Vec<&str> = expression.split_whitespace().collect();
    if !(5..=6).contains(&fields.len()) {
        return Err(format!("a cron expression has 5 or 6 fields, but this one has {}", fields.len()));
    }
    for (field, name) in fields.iter().rev().zip(["weekday", "month", "day", "hour", "minute", "second"]) {
        let plain = |c: char| c.is_ascii_alphanumeric() || "*/,-#?+".contains(c);
        if let Some(odd) = field.chars().find(|&c| !plain(c)) {
            return Err(format!("a cron expression cannot contain {}", quoted(&odd.to_string())));
        }
        if field.split(',').any(str::is_empty) {
            return Err(format!("the {name} {} has an empty part beside a comma", quoted(field)));
        }
        if field.split(',').count() > MAX_CRON_PARTS {
            return Err(format!("the {name} has more than {MAX_CRON_PARTS} parts"));
        }
    }
    Ok(())
}

/// Whether the expression ever fires. Searches forty years of days: weekdays and leap days repeat after twenty-eight.
/// The day does not depend on the time of day, so one matching time is enough.
fn fires(cron: &croner::Cron) -> bool {
    const DAYS: usize = 40 * 366;
    let pattern = &cron.pattern;
    let time = [&pattern.hours, &pattern.minutes, &pattern.seconds].map(|part| part.values().first().copied());
    let [Some(hour), Some(minute), Some(second)] = time.map(|value| value.and_then(|v| i8::try_from(v).ok())) else {
        return false;
    };
    // Any fixed start date works.
    let mut days = std::iter::successors(Some(jiff::civil::date(2026, 1, 1)), |day| day.tomorrow().ok()).take(DAYS);
    days.any(|day| cron.is_time_matching(&day.at(hour, minute, second, 0)).unwrap_or(false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn a_cron_expression_must_be_valid_and_fire_at_some_time() {
        for good in [
            "0 8 * * 1-5",
            "*/5 * * * *",
            "0 0 29 2 *",
            "0 0 29 2 +MON",
            "0 0 * 2 FRI#5",
            "@daily",
            "@Yearly",
            "0 0 1 JAN MON",
            "30 0 8 * * *",
            "0 0 L * *",
            "0 0 ? * MON,WED-FRI",
            " 0 0 15W * * ",
        ] {
            assert_eq!(parse(good).err(), None, "{good}");
        }
        for bad in ["", "* * *", "61 * * * *", "0 0 31 2 *", "nonsense", "0 8 * * 1-5 2026 9", "é * * * *", "@never"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn every_cron_expression_is_validated_quickly() {
        let many = format!("{} * * * *", "1,".repeat(126).trim_end_matches(','));
        for text in [
            ",,, * * * *",
            "* , * * *",
            "1, * * * *",
            "0 0 31 2,4,6,9,11 *",
            "0 0 * * L",
            "0 0 L * L",
            "0 0 31 2,4,6,9,11 +MON#5",
            "* * * * * +",
            "0 0 30W 2 *",
            "*/0 * * * *",
            "0-99999/1 * * * *",
            "59-0 * * * *",
            "0 0 * * #",
            "0 0 LW 2 +7#5",
            "/ / / / /",
            "- - - - -",
            &many,
        ] {
            let started = Instant::now();
            let found = parse(text);
            // Far more than needed, for a busy machine.
            assert!(started.elapsed() < Duration::from_secs(1), "{text}: {:?}", started.elapsed());
            let why = found.err().unwrap_or_default();
            assert!(!why.contains("Pattern") && !why.contains("omponent"), "{why}");
        }
    }
}
