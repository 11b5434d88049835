//! What starts a run: `trigger: api`, `trigger: cron` with its expression beside it, or a list of objects.

use crate::code;
use crate::draft::Draft;
use crate::fault::Fault;
use crate::fields::{Field, Fields, quoted};
use crate::source::Value;
use croner::parser::{CronParser, Seconds, Year};
use serde_json::json;
use stepwell_core::definition::Trigger;
use stepwell_core::time::Time;

const MAX_TRIGGERS: usize = 100;
const MAX_CRON_BYTES: usize = 256;
/// Parts of one field between commas: there are no more minutes.
const MAX_CRON_PARTS: usize = 60;
const CRON_HINT: &str = "write minute, hour, day, month and weekday, such as `0 8 * * 1-5`; \
                         a field is *, 5, 1-5, */15 or several with commas";
const NICKNAMES: [&str; 6] = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@hourly"];
const CRON_FIELDS: [&str; 3] = ["cron", "cron_expression", "schedule"];
const NAMES: [&str; 4] = ["api", "webhook", "cron", "at"];

pub fn read<'d>(draft: &mut Draft<'d>, fields: &mut Fields<'d>) -> Vec<Trigger> {
    let given = fields.take_one(&["trigger", "triggers"], draft).map(|(_, field)| field);
    let mut beside =
        Beside { cron: fields.take_one(&CRON_FIELDS, draft), zone: fields.take("timezone"), at: fields.take("at") };
    let mut triggers = Vec::new();
    match &given {
        None => {
            if beside.cron.is_some() {
                triggers.extend(beside.cron(draft));
            } else if let Some(field) = beside.at.take() {
                triggers.extend(at(draft, &field));
            } else {
                triggers.push(Trigger::Api);
            }
        }
        Some(field) if matches!(field.node.value, Value::List(_)) => {
            let items = draft.items(field);
            if items.is_empty() {
                let fault = Fault::new(code::BAD_VALUE, "nothing would start this workflow");
                draft.fault(&field.place, fault.hint("write `trigger: api`"));
            }
            for item in draft.at_most(items, MAX_TRIGGERS) {
                triggers.extend(one(draft, &item, &mut beside));
            }
        }
        Some(field) => triggers.extend(one(draft, field, &mut beside)),
    }
    for (name, left) in
        [("cron expression", beside.cron.map(|(_, f)| f)), ("time zone", beside.zone), ("time", beside.at)]
    {
        if let Some(field) = left {
            let fault = Fault::new(code::NOT_ALLOWED, format!("this {name} belongs to no trigger"));
            draft.fault(
                &field.place,
                fault.hint("write `trigger: cron` beside a cron expression, `trigger: at` beside a time"),
            );
        }
    }
    triggers
}

/// Fields that stand beside `trigger: cron` or `trigger: at` in the definition itself.
struct Beside<'d> {
    cron: Option<(&'static str, Field<'d>)>,
    zone: Option<Field<'d>>,
    at: Option<Field<'d>>,
}

impl<'d> Beside<'d> {
    fn cron(&mut self, draft: &mut Draft<'d>) -> Option<Trigger> {
        let (_, field) = self.cron.take()?;
        let zone = self.zone.take();
        cron(draft, &field, zone.as_ref(), json!({}))
    }
}

fn one<'d>(draft: &mut Draft<'d>, field: &Field<'d>, beside: &mut Beside<'d>) -> Option<Trigger> {
    let Some(name) = field.node.as_str() else { return object(draft, field) };
    let missing =
        |what: &str, hint: &str| Fault::new(code::MISSING_FIELD, format!("{what} is missing")).hint(hint.to_owned());
    match name {
        "api" | "manual" => Some(Trigger::Api),
        "webhook" => Some(Trigger::Webhook { options: json!({}) }),
        "cron" | "schedule" => {
            if beside.cron.is_none() {
                let hint = "write it beside as `cron: \"0 8 * * 1-5\"`";
                draft.fault(&field.place, missing("the cron expression", hint));
            }
            beside.cron(draft)
        }
        "at" => match beside.at.take() {
            Some(time) => at(draft, &time),
            None => {
                draft.fault(&field.place, missing("the time", "write it beside as `at: 2026-02-22T10:00:00Z`"));
                None
            }
        },
        other => {
            let fault = Fault::new(code::BAD_VALUE, format!("{} is not a trigger", quoted(other)));
            let hint = draft.near(other, NAMES);
            let hint = hint.unwrap_or_else(|| format!("known: {}", NAMES.join(", ")));
            draft.fault(&field.place, fault.hint(hint));
            None
        }
    }
}

fn object<'d>(draft: &mut Draft<'d>, field: &Field<'d>) -> Option<Trigger> {
    let mut fields = Fields::of(field, draft)?;
    let expression = fields.take_one(&CRON_FIELDS, draft);
    let (time, webhook, api) = (fields.take("at"), fields.take("webhook"), fields.take("api"));
    let given = [expression.is_some(), time.is_some(), webhook.is_some(), api.is_some()];
    if given.iter().filter(|given| **given).count() != 1 {
        let fault = Fault::new(code::BAD_VALUE, "a trigger is exactly one of cron, at, webhook and api");
        draft.fault(&field.place, fault);
        fields.ignore_rest();
        return None;
    }
    let trigger = if let Some((_, expression)) = expression {
        let zone = fields.take_one(&["timezone", "tz"], draft).map(|(_, field)| field);
        let input = fields.take("input").map(|input| input.node.to_json());
        let options = input.map_or_else(|| json!({}), |input| json!({ "input": input }));
        cron(draft, &expression, zone.as_ref(), options)
    } else if let Some(time) = time {
        at(draft, &time)
    } else if let Some(webhook) = webhook {
        match webhook.node.value {
            Value::Bool(true) => Some(Trigger::Webhook { options: json!({}) }),
            Value::Map(_) => Some(Trigger::Webhook { options: webhook.node.to_json() }),
            _ => {
                draft.wrong_type(&webhook, "an object or true");
                None
            }
        }
    } else {
        Some(Trigger::Api)
    };
    fields.finish(draft, "a trigger", &[]);
    trigger
}

fn at<'d>(draft: &mut Draft<'d>, field: &Field<'d>) -> Option<Trigger> {
    let text = draft.text(field)?;
    let time = Time::parse(text);
    if time.is_none() {
        let fault = Fault::new(code::BAD_TIME, "this is not an instant");
        draft.fault(&field.place, fault.hint("write it as 2026-02-22T10:00:00Z"));
    }
    time.map(Trigger::At)
}

fn cron<'d>(
    draft: &mut Draft<'d>,
    field: &Field<'d>,
    zone: Option<&Field<'d>>,
    options: serde_json::Value,
) -> Option<Trigger> {
    let timezone = zone.and_then(|zone| {
        let name = draft.text(zone)?;
        if jiff::tz::TimeZoneDatabase::bundled().get(name).is_err() {
            let fault = Fault::new(code::BAD_TIMEZONE, format!("{} is not a time zone", quoted(name)));
            draft.fault(&zone.place, fault.hint("write a name such as Europe/Amsterdam or UTC"));
        }
        Some(name.to_owned())
    });
    let expression = draft.text(field)?;
    if let Err(why) = check_cron(expression) {
        draft.fault(&field.place, Fault::new(code::BAD_CRON, why).hint(CRON_HINT));
    }
    Some(Trigger::Cron { expression: expression.to_owned(), timezone, options })
}

/// Whether the expression can be read and will ever fire. The library is given only what it judges quickly: a field
/// in which nothing matches sends it through all the hours of three thousand years.
fn check_cron(expression: &str) -> Result<(), String> {
    let expression = expression.trim();
    if expression.len() > MAX_CRON_BYTES {
        return Err(format!("a cron expression has at most {MAX_CRON_BYTES} bytes"));
    }
    check_fields(expression)?;
    let parser = CronParser::builder().seconds(Seconds::Optional).year(Year::Disallowed).build();
    let cron = parser.parse(expression).map_err(|_| "this is not a cron expression".to_owned())?;
    if fires(&cron) { Ok(()) } else { Err("no time ever matches this cron expression".into()) }
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
            return Err(format!("{odd:?} cannot stand in a cron expression"));
        }
        if field.split(',').any(str::is_empty) {
            return Err(format!("the {name} {} has a comma with nothing beside it", quoted(field)));
        }
        if field.split(',').count() > MAX_CRON_PARTS {
            return Err(format!("the {name} has more than {MAX_CRON_PARTS} parts"));
        }
    }
    Ok(())
}

/// Looks through forty years of days: weekdays and leap days repeat after twenty-eight. Which day does not depend on the
/// time of day, so one time that matches will do.
fn fires(cron: &croner::Cron) -> bool {
    const DAYS: usize = 40 * 366;
    let pattern = &cron.pattern;
    let time = [&pattern.hours, &pattern.minutes, &pattern.seconds].map(|part| part.values().first().copied());
    let [Some(hour), Some(minute), Some(second)] = time.map(|value| value.and_then(|v| i8::try_from(v).ok())) else {
        return false;
    };
    // Any fixed day will do to begin with.
    let mut days = std::iter::successors(Some(jiff::civil::date(2026, 1, 1)), |day| day.tomorrow().ok()).take(DAYS);
    days.any(|day| cron.is_time_matching(&day.at(hour, minute, second, 0)).unwrap_or(false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn a_cron_expression_is_read_and_must_fire_some_day() {
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
            assert_eq!(check_cron(good), Ok(()), "{good}");
        }
        for bad in ["", "* * *", "61 * * * *", "0 0 31 2 *", "nonsense", "0 8 * * 1-5 2026 9", "é * * * *", "@never"] {
            assert!(check_cron(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn every_cron_expression_is_judged_at_once() {
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
            let found = check_cron(text);
            // Far above what is needed, for a busy machine.
            assert!(started.elapsed() < Duration::from_secs(1), "{text}: {:?}", started.elapsed());
            let why = found.err().unwrap_or_default();
            assert!(!why.contains("Pattern") && !why.contains("omponent"), "{why}");
        }
    }
}
