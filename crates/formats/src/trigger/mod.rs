//! Reads triggers: `trigger: api`, `trigger: cron` with its expression in another field, or a list of objects.
//!
//! Not here: when a schedule fires (`cron.rs`); receiving and authenticating calls (the server).

pub mod expression;
mod webhook;

use crate::code;
use crate::draft::Draft;
use crate::fault::Fault;
use crate::fields::{Field, Fields, quoted};
use crate::source::Value;
use crate::vocabulary::SCHEDULE_FIELDS;
use serde_json::Value as Json;
use stepwell_core::definition::{CatchUp, Cron, Overlap, Repeated, Skipped, Trigger, Webhook};
use stepwell_core::time::Time;

const MAX_TRIGGERS: usize = 100;
const CRON_HINT: &str = "write minute, hour, day, month and weekday, such as `0 8 * * 1-5`; \
                         a field is *, 5, 1-5, */15 or several with commas";
const CRON_FIELDS: [&str; 3] = ["cron", "cron_expression", "schedule"];
const NAMES: [&str; 4] = ["api", "webhook", "cron", "at"];

pub fn read<'d>(draft: &mut Draft<'d>, fields: &mut Fields<'d>) -> Vec<Trigger> {
    let given = fields.take_one(&["trigger", "triggers"], draft).map(|(_, field)| field);
    let mut siblings =
        Siblings { cron: fields.take_one(&CRON_FIELDS, draft), zone: fields.take("timezone"), at: fields.take("at") };
    let mut triggers = Vec::new();
    match &given {
        None => {
            if siblings.cron.is_some() {
                triggers.extend(siblings.cron(draft));
            } else if let Some(field) = siblings.at.take() {
                triggers.extend(at(draft, &field, Json::Null));
            } else {
                triggers.push(Trigger::Api);
            }
        }
        Some(field) if matches!(field.node.value, Value::List(_)) => {
            let items = draft.items(field);
            if items.is_empty() {
                let fault = Fault::new(code::BAD_VALUE, "the list of triggers is empty");
                draft.fault(&field.place, fault.hint("write `trigger: api`"));
            }
            for item in draft.at_most(items, MAX_TRIGGERS) {
                triggers.extend(one(draft, &item, &mut siblings));
            }
        }
        Some(field) => triggers.extend(one(draft, field, &mut siblings)),
    }
    for (name, left) in
        [("cron expression", siblings.cron.map(|(_, f)| f)), ("time zone", siblings.zone), ("time", siblings.at)]
    {
        if let Some(field) = left {
            let fault = Fault::new(code::NOT_ALLOWED, format!("this {name} belongs to no trigger"));
            draft.fault(
                &field.place,
                fault.hint("write `trigger: cron` with a cron expression, `trigger: at` with a time"),
            );
        }
    }
    triggers
}

/// Fields of the definition itself that belong to `trigger: cron` or `trigger: at`.
struct Siblings<'d> {
    cron: Option<(&'static str, Field<'d>)>,
    zone: Option<Field<'d>>,
    at: Option<Field<'d>>,
}

impl<'d> Siblings<'d> {
    fn cron(&mut self, draft: &mut Draft<'d>) -> Option<Trigger> {
        let (_, field) = self.cron.take()?;
        let zone = self.zone.take();
        cron(draft, &field, zone.as_ref()).map(Trigger::Cron)
    }
}

fn one<'d>(draft: &mut Draft<'d>, field: &Field<'d>, siblings: &mut Siblings<'d>) -> Option<Trigger> {
    let Some(name) = field.node.as_str() else { return object(draft, field) };
    let missing =
        |what: &str, hint: &str| Fault::new(code::MISSING_FIELD, format!("{what} is missing")).hint(hint.to_owned());
    match name {
        "api" | "manual" => Some(Trigger::Api),
        "webhook" => Some(Trigger::Webhook(Webhook::default())),
        "cron" | "schedule" => {
            if siblings.cron.is_none() {
                let hint = "add `cron: \"0 8 * * 1-5\"`";
                draft.fault(&field.place, missing("the cron expression", hint));
            }
            siblings.cron(draft)
        }
        "at" => match siblings.at.take() {
            Some(time) => at(draft, &time, Json::Null),
            None => {
                draft.fault(&field.place, missing("the time", "add `at: 2026-02-22T10:00:00Z`"));
                None
            }
        },
        other => {
            let fault = Fault::new(code::BAD_VALUE, format!("{} is not a trigger", quoted(other)));
            let hint = draft.near(other, NAMES.into_iter().chain(["manual", "schedule"]));
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
    let (what, trigger) = if let Some((_, expression)) = expression {
        ("a trigger", schedule(draft, &expression, &mut fields).map(Trigger::Cron))
    } else if let Some(time) = time {
        let input = input(&mut fields);
        ("a trigger at one time", at(draft, &time, input))
    } else if let Some(field) = webhook {
        ("a webhook trigger", webhook::read(draft, &field).map(Trigger::Webhook))
    } else {
        ("an api trigger", Some(Trigger::Api))
    };
    fields.finish(draft, what, SCHEDULE_FIELDS);
    trigger
}

/// A trigger's own input, taken literally.
fn input(fields: &mut Fields<'_>) -> Json {
    fields.take("input").map(|field| field.node.to_json()).unwrap_or_default()
}

fn at<'d>(draft: &mut Draft<'d>, field: &Field<'d>, input: Json) -> Option<Trigger> {
    let text = draft.text(field)?;
    let time = Time::parse(text);
    if time.is_none() {
        let fault = Fault::new(code::BAD_TIME, "this is not a time");
        draft.fault(&field.place, fault.hint("write it as 2026-02-22T10:00:00Z"));
    }
    time.map(|at| Trigger::At { at, input })
}

/// A schedule written as an object, with all its settings.
fn schedule<'d>(draft: &mut Draft<'d>, expression: &Field<'d>, fields: &mut Fields<'d>) -> Option<Cron> {
    let zone = fields.take_one(&["timezone", "tz"], draft).map(|(_, field)| field);
    let input = input(fields);
    let mut choices = Choices { draft, fields };
    let skipped = choices.read("when_skipped", &[("run", Skipped::Run), ("skip", Skipped::Skip)]);
    let repeated = choices.read("when_repeated", &[("once", Repeated::Once), ("twice", Repeated::Twice)]);
    let overlap =
        choices.read("overlap", &[("allow", Overlap::Allow), ("skip", Overlap::Skip), ("cancel", Overlap::Cancel)]);
    let catch_up = choices.read("catch_up", &[("none", CatchUp::None), ("last", CatchUp::Last), ("all", CatchUp::All)]);
    let cron = cron(draft, expression, zone.as_ref())?;
    Some(Cron { input, skipped, repeated, overlap, catch_up, ..cron })
}

/// Reads fields with a fixed set of values.
struct Choices<'a, 'd> {
    draft: &'a mut Draft<'d>,
    fields: &'a mut Fields<'d>,
}

impl Choices<'_, '_> {
    fn read<T: Copy + Default>(&mut self, name: &'static str, choices: &[(&'static str, T)]) -> T {
        let field = self.fields.take(name);
        field.and_then(|field| self.draft.choice(&field, choices)).unwrap_or_default()
    }
}

fn cron<'d>(draft: &mut Draft<'d>, field: &Field<'d>, zone: Option<&Field<'d>>) -> Option<Cron> {
    let timezone = zone.and_then(|zone| {
        let name = draft.text(zone)?;
        if expression::zone(name).is_none() {
            let fault = Fault::new(code::BAD_TIMEZONE, format!("{} is not a time zone", quoted(name)));
            draft.fault(&zone.place, fault.hint("write a name such as Europe/Amsterdam or UTC"));
        }
        Some(name.to_owned())
    });
    let expression = draft.text(field)?;
    if let Err(why) = expression::parse(expression) {
        draft.fault(&field.place, Fault::new(code::BAD_CRON, why).hint(CRON_HINT));
    }
    Some(Cron { expression: expression.to_owned(), timezone, ..Cron::default() })
}
