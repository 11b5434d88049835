//! Retries: the number of attempts, the delays between them, and the timeout of each.

use super::Rules;
use crate::code;
use crate::draft::Draft;
use crate::fault::Fault;
use crate::fields::{Field, Fields, quoted};
use crate::source::Value;
use crate::values::{Lasts, Unit};
use stepwell_core::graph::{Backoff, Call, Kind, OnUnknown, Retry, RetryOn};
use stepwell_core::limits;
use stepwell_core::time::Millis;

const MAX_RETRY_RULES: usize = 50;

/// The result of `retries`, `timeout` and `at_most_once`.
pub struct Attempts {
    pub retry: Retry,
    pub timeout: Option<Millis>,
    /// The timeout, if the author set it.
    pub bound: Option<Millis>,
    pub at_most_once: Option<OnUnknown>,
}

/// Reads the fields about attempts that this kind may have. The others stay untaken, so they are reported.
pub fn attempts<'d>(draft: &mut Draft<'d>, fields: &mut Fields<'d>, kind: &Kind, rules: &Rules) -> Attempts {
    let (default, timeout) = match kind {
        Kind::Call { call, .. } => {
            (by_default(*call, rules), Some(rules.defaults.timeout.unwrap_or((rules.timeout)(*call))))
        }
        Kind::Child { .. } => (Retry::NEVER, None),
        _ => return Attempts { retry: Retry::NEVER, timeout: None, bound: None, at_most_once: None },
    };
    let lasts = if matches!(kind, Kind::Child { .. }) { Lasts::Child } else { Lasts::Call };
    let given = read_timeout(draft, fields, lasts);
    let (retry, written) = read_retry(draft, fields, default, rules);
    let at_most_once = read_at_most_once(draft, fields, written);
    let retry = if at_most_once.is_some() { Retry::NEVER } else { retry };
    Attempts { retry, timeout: given.or(timeout), bound: given.or(rules.defaults.timeout), at_most_once }
}

/// The policy of a call that sets none.
fn by_default(call: Call, rules: &Rules) -> Retry {
    if rules.defaults.retries {
        return rules.retry.clone();
    }
    let on = if call == Call::Tool && rules.tool_errors { vec![RetryOn::Any] } else { Vec::new() };
    Retry { on, ..rules.retry.clone() }
}

pub fn read_timeout<'d>(draft: &mut Draft<'d>, fields: &mut Fields<'d>, lasts: Lasts) -> Option<Millis> {
    let (name, field) = fields.take_one(&["timeout", "timeout_s", "timeoutSeconds"], draft)?;
    let unit = if name == "timeout" { Unit::Millis } else { Unit::Seconds };
    draft.timeout(&field, unit, lasts)
}

/// The retry policy, and the field that set it.
pub fn read_retry<'d>(
    draft: &mut Draft<'d>,
    fields: &mut Fields<'d>,
    default: Retry,
    rules: &Rules,
) -> (Retry, Option<Field<'d>>) {
    let number = fields.take_one(&["retries", "retry_attempts", "maxAttempts", "max_attempts"], draft);
    let object = fields.take("retry");
    // What a step leaves open is as in the author's defaults, else as usual in the dialect.
    let on = if rules.defaults.retries { rules.retry.on.clone() } else { vec![RetryOn::Any] };
    let usual = Retry { on, ..rules.retry.clone() };
    let mut retry = default;
    if let Some((name, field)) = &number {
        // A step that retries only on request uses the default delays of the dialect.
        retry = usual.clone();
        let counts_retries = matches!(*name, "retries" | "retry_attempts");
        let range = if counts_retries { 0..=limits::MAX_ATTEMPTS - 1 } else { 1..=limits::MAX_ATTEMPTS };
        if let Some(n) = draft.integer(field, range) {
            retry.attempts = if counts_retries { n + 1 } else { n };
        }
    }
    if let Some(field) = &object
        && let Some(mut inner) = Fields::of(field, draft)
    {
        if number.is_none() {
            retry = usual.clone();
        }
        if inner.has("attempts")
            && let Some((name, _)) = &number
        {
            let message = format!("`retry.attempts` has the same meaning as `{name}`");
            draft.fault(&inner.key_place("attempts"), Fault::new(code::NOT_ALLOWED, message).hint("keep one of them"));
        }
        read_policy(draft, &mut inner, &mut retry);
        inner.finish(draft, "`retry`", &[]);
    }
    (retry, number.map(|(_, field)| field).or(object))
}

fn read_policy<'d>(draft: &mut Draft<'d>, fields: &mut Fields<'d>, retry: &mut Retry) {
    if let Some(field) = fields.take("attempts")
        && let Some(n) = draft.integer(&field, 1..=limits::MAX_ATTEMPTS)
    {
        retry.attempts = n;
    }
    let first_field = fields.take_one(&["first", "delay"], draft);
    let first = first_field.as_ref().and_then(|(_, field)| draft.pause(field));
    let cap_field = fields.take_one(&["cap", "max"], draft);
    let cap = cap_field.as_ref().and_then(|(_, field)| draft.pause(field));
    let backoff = fields.take("backoff");
    match backoff.as_ref().map(|field| &field.node.value) {
        Some(Value::String(text)) if text == "fixed" => no_effect(draft, cap_field, "`backoff: fixed`"),
        Some(Value::List(_)) => {
            no_effect(draft, first_field, "a list of delays");
            no_effect(draft, cap_field, "a list of delays");
        }
        _ => {}
    }
    let start = first.unwrap_or(Millis::SECOND);
    let exponential = Backoff::Exponential { first: start, cap: cap.unwrap_or(limits::DEFAULT_BACKOFF_CAP) };
    match backoff.as_ref().map(|field| (field, &field.node.value)) {
        None if first.is_some() || cap.is_some() => retry.backoff = exponential,
        None => {}
        Some((_, Value::String(text))) if text == "exponential" => retry.backoff = exponential,
        Some((_, Value::String(text))) if text == "fixed" => retry.backoff = Backoff::Fixed(start),
        Some((field, Value::List(items))) if !items.is_empty() && items.len() <= limits::MAX_ATTEMPTS as usize => {
            let pauses = draft.items(field).iter().filter_map(|item| draft.pause(item)).collect();
            retry.backoff = Backoff::List(pauses);
        }
        Some((field, _)) => {
            let fault = Fault::new(code::BAD_BACKOFF, "this is not a valid backoff");
            draft.fault(&field.place, fault.hint("write exponential, fixed, or a list of delays such as [30s, 2m]"));
        }
    }
    if let Some(field) = fields.take("jitter") {
        retry.jitter = draft.boolean(&field).unwrap_or(false);
    }
    if let Some(field) = fields.take("on") {
        let items = match field.node.value {
            Value::Number(_) => vec![field],
            _ => draft.one_or_more(&field),
        };
        retry.on = draft.at_most(items, MAX_RETRY_RULES).iter().filter_map(|item| retry_on(draft, item)).collect();
    }
}

fn no_effect<'d>(draft: &mut Draft<'d>, given: Option<(&str, Field<'d>)>, beside: &str) {
    if let Some((name, field)) = given {
        let message = format!("`{name}` has no effect with {beside}");
        draft.fault(&field.place, Fault::new(code::NOT_ALLOWED, message).hint("remove one of the two"));
    }
}

fn retry_on<'d>(draft: &mut Draft<'d>, field: &Field<'d>) -> Option<RetryOn> {
    let text = match &field.node.value {
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.trim().to_ascii_lowercase(),
        _ => {
            draft.wrong_type(field, "text or a status code");
            return None;
        }
    };
    let found = match text.as_str() {
        "timeout" => Some(RetryOn::Timeout),
        "network" => Some(RetryOn::Network),
        "any" => Some(RetryOn::Any),
        "4xx" => Some(RetryOn::StatusClass(4)),
        "5xx" => Some(RetryOn::StatusClass(5)),
        other => other.parse().ok().filter(|status| (100..600).contains(status)).map(RetryOn::Status),
    };
    if found.is_none() {
        let fault = Fault::new(code::BAD_VALUE, format!("{} is not a failure to retry on", quoted(&text)));
        draft.fault(&field.place, fault.hint("known: timeout, network, any, 4xx, 5xx, or a status code such as 429"));
    }
    found
}

fn read_at_most_once<'d>(
    draft: &mut Draft<'d>,
    fields: &mut Fields<'d>,
    retries: Option<Field<'d>>,
) -> Option<OnUnknown> {
    let once = draft.flag(fields, "at_most_once", false);
    let on_unknown = fields.take("on_unknown");
    let choices = [("fail", OnUnknown::Fail), ("ask", OnUnknown::Ask)];
    let choice = on_unknown.as_ref().and_then(|field| draft.choice(field, &choices));
    if once {
        if let Some(retries) = retries {
            let fault = Fault::new(code::NOT_ALLOWED, "a step with `at_most_once` is never retried");
            draft.fault(&retries.place, fault.hint("remove this, or `at_most_once`"));
        }
        return Some(choice.unwrap_or(OnUnknown::Fail));
    }
    if let Some(field) = on_unknown {
        let fault = Fault::new(code::NOT_ALLOWED, "`on_unknown` has an effect only with `at_most_once: true`");
        draft.fault(&field.place, fault);
    }
    None
}
