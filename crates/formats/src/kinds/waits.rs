//! Steps that only wait: for time, or for a webhook.

use super::{ParsedKind, Rules};
use crate::code;
use crate::draft::Draft;
use crate::fault::Fault;
use crate::fields::{Field, Fields};
use crate::source::Value;
use crate::values::{Lasts, Unit};
use stepwell_core::graph::{Kind, Sleep};
use stepwell_core::template::Template;
use stepwell_core::time::{Millis, Time};

/// `sleep: "3d"`, a number of seconds or a template; or `until:` a time.
pub fn sleep<'d>(draft: &mut Draft<'d>, fields: &mut Fields<'d>, rules: &Rules) -> ParsedKind<'d> {
    let sleep = match (fields.take("sleep"), fields.take("until")) {
        (Some(field), _) => match &field.node.value {
            Value::String(text) if text.contains("{{") => draft.template(&field, rules.grammar).map(Sleep::ForValue),
            _ => draft.lasting(&field).map(Sleep::For),
        },
        (None, Some(field)) => until(draft, &field, rules).map(Sleep::Until),
        (None, None) => None,
    };
    ParsedKind::of(Kind::Sleep(sleep.unwrap_or(Sleep::For(Millis(0)))))
}

/// A time, or a template that results in one.
pub fn until<'d>(draft: &mut Draft<'d>, field: &Field<'d>, rules: &Rules) -> Option<Template> {
    let text = draft.text(field)?;
    if !text.contains("{{") && Time::parse(text).is_none() {
        let fault = Fault::new(code::BAD_TIME, "this is not a time");
        draft.fault(&field.place, fault.hint("write it as 2026-02-22T10:00:00Z, or as a {{template}}"));
        return None;
    }
    draft.template(field, rules.grammar)
}

/// `wait_for_webhook: {timeout}`; `true` waits until the run times out.
pub fn webhook<'d>(draft: &mut Draft<'d>, fields: &mut Fields<'d>) -> ParsedKind<'d> {
    let timeout = match fields.take("wait_for_webhook") {
        Some(Field { node, .. }) if matches!(node.value, Value::Bool(true)) => None,
        Some(field) => Fields::of(&field, draft).and_then(|mut inner| {
            let timeout = webhook_timeout(draft, &mut inner);
            inner.finish(draft, "a webhook wait", &[]);
            timeout
        }),
        None => None,
    };
    ParsedKind::of(Kind::Webhook { timeout })
}

pub fn webhook_timeout<'d>(draft: &mut Draft<'d>, fields: &mut Fields<'d>) -> Option<Millis> {
    let field = fields.take("timeout")?;
    draft.timeout(&field, Unit::Millis, Lasts::Answer)
}
