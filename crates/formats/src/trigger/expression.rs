//! Parses and validates cron expressions and time zones. `cron.rs` computes when they fire.

use crate::fields::quoted;
use croner::parser::{CronParser, Seconds, Year};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use std::ops::RangeInclusive;

const MAX_CRON_BYTES: usize = 256;
/// Comma-separated parts of one field: an hour has no more minutes.
const MAX_CRON_PARTS: usize = 60;
const NICKNAMES: [&str; 6] = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@hourly"];

/// The fields from the last to the first, with the numbers they take.
const FIELDS: [(&str, RangeInclusive<u32>); 6] =
    [("weekday", 0..=7), ("month", 1..=12), ("day", 1..=31), ("hour", 0..=23), ("minute", 0..=59), ("second", 0..=59)];

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
    for (field, (name, range)) in fields.iter().rev().zip(FIELDS) {
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
        if let Some(number) = outside(field, &range) {
            return Err(format!("the {name} {} is not from {} to {}", quoted(number), range.start(), range.end()));
        }
    }
    Ok(())
}

/// The first number of a field that is out of range. Steps (`*/90`) and what is not a plain number are the library's.
fn outside<'f>(field: &'f str, range: &RangeInclusive<u32>) -> Option<&'f str> {
    let numbers = field.split(',').filter_map(|part| part.split(['/', '#']).next()).flat_map(|part| part.split('-'));
    let mut digits = numbers.filter(|text| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()));
    digits.find(|text| !text.parse().is_ok_and(|number| range.contains(&number)))
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
    fn a_number_out_of_range_names_its_field() {
        let check = |text: &str, expected: &str| assert_eq!(parse(text).err().as_deref(), Some(expected), "{text}");
        check("99 * * * *", r#"the minute "99" is not from 0 to 59"#);
        check("0 5-24 * * *", r#"the hour "24" is not from 0 to 23"#);
        check("0 0 0,32/2 * *", r#"the day "0" is not from 1 to 31"#);
        check("0 0 1 13 *", r#"the month "13" is not from 1 to 12"#);
        check("0 0 * * 8#2", r#"the weekday "8" is not from 0 to 7"#);
        check("60 0 0 * * *", r#"the second "60" is not from 0 to 59"#);
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
