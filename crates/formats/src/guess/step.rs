//! One step: its conditions, retries and timeouts under the names that other systems give them.

use super::words::{Names, duration};
use super::{Object, kind, number, take, take_object, take_text};
use crate::kinds::STEP_FIELDS;
use serde_json::{Value as Json, json};
use stepwell_core::nearest::nearest;

/// Fields that describe a step to people or to a canvas, or that say what happens by itself here.
const NEEDLESS: [&str; 45] = [
    "id",
    "task_id",
    "name",
    "taskReferenceName",
    "return",
    "expected_status",
    "key",
    "label",
    "title",
    "displayName",
    "display_name",
    "comment",
    "Comment",
    "notes",
    "position",
    "typeVersion",
    "register",
    "outputs",
    "save_as",
    "saveAs",
    "result_key",
    "outputKey",
    "ResultPath",
    "OutputPath",
    "InputPath",
    "ResultSelector",
    "continue-on-error",
    "continue_on_error",
    "allow_failure",
    "ignore_errors",
    "continueOnFail",
    "runs-on",
    "runs_on",
    "image",
    "permissions",
    "strategy",
    "stage",
    "tags",
    "metadata",
    "queue",
    "priority",
    "async",
    "version",
    "enabled",
    "trigger_rule",
];

/// A step as Stepwell would have it. `flow` keeps the transitions of that dialect.
pub fn convert(body: &Json, names: &Names, flow: bool) -> Json {
    let Some(fields) = body.as_object() else { return bare(body, names) };
    let mut fields = fields.clone();
    let mut out = Object::new();
    if let Some(text) = take_text(&mut fields, &["description", "comment", "notes", "Comment"]) {
        out.insert("description".into(), text.into());
    }
    condition(&mut fields, &mut out, names);
    let mut around = Object::new();
    retries(&mut fields, &mut around);
    timeouts(&mut fields, &mut around);
    max_parallel(&mut fields, &mut around);
    for name in STEP_FIELDS.iter().filter(|name| kept(name, flow)) {
        if let Some(value) = fields.shift_remove(*name) {
            around.insert((*name).into(), value);
        }
    }
    kind::convert(fields, &mut out, names);
    if out.contains_key("approval") {
        // A gate has neither attempts nor a timeout of its own step.
        let timeout = around.shift_remove("timeout");
        if let (Some(timeout), Some(approval)) = (timeout, out.get_mut("approval").and_then(Json::as_object_mut)) {
            approval.entry("timeout").or_insert(timeout);
        }
    }
    if out.contains_key("wait_for_webhook") {
        let timeout = around.shift_remove("timeout");
        timeout
            .into_iter()
            .for_each(|timeout| drop(out.insert("wait_for_webhook".into(), json!({"timeout": timeout}))));
    }
    let call = ["url", "tool", "javascript", "query", "workflow"].iter().any(|name| out.contains_key(*name));
    around.retain(|name, value| {
        call || !value.is_number() && name == "retries" || !matches!(name.as_str(), "retries" | "retry" | "timeout")
    });
    out.extend(around);
    Json::Object(out)
}

/// Fields that stay as they are whatever the kind of the step.
fn kept(name: &str, flow: bool) -> bool {
    let transition = matches!(name, "next" | "branch" | "parallel" | "join" | "on_error" | "done" | "name");
    matches!(name, "at_most_once" | "on_unknown" | "max_parallel" | "on_item_error")
        || if flow { transition } else { name == "needs" }
}

/// A step that is only a word, or a command.
fn bare(body: &Json, names: &Names) -> Json {
    match body {
        Json::String(text) if text.starts_with("http") => json!({"url": names.text(text), "method": "GET"}),
        Json::String(text) if text.contains(' ') => {
            json!({"tool": "run_command", "args": {"command": names.text(text)}})
        }
        Json::String(text) => json!({"tool": text}),
        other => other.clone(),
    }
}

fn condition(fields: &mut Object, out: &mut Object, names: &Names) {
    let condition = take_text(fields, &["if", "when", "only_if", "run_if", "runIf", "onlyIf", "where"]);
    let plain = fields.get("condition").is_some_and(Json::is_string);
    let chooses = kind::is_condition(fields);
    let condition = condition.or_else(|| if plain && !chooses { take_text(fields, &["condition"]) } else { None });
    if let Some(condition) = condition.and_then(|text| names.condition(&text)) {
        out.insert("if".into(), condition.into());
    }
}

fn retries(fields: &mut Object, out: &mut Object) {
    const COUNTS: [&str; 10] = [
        "max_retries",
        "maxRetries",
        "retry_count",
        "retryCount",
        "num_retries",
        "retries",
        "count",
        "limit",
        "times",
        "max",
    ];
    const TRIES: [&str; 7] =
        ["attempts", "max_attempts", "maxAttempts", "maximumAttempts", "MaxAttempts", "max_tries", "maxTries"];
    let delay = take(fields, &["retry_delay", "retryDelay", "retry_interval", "backoff_seconds", "waitBetweenTries"]);
    let plain = COUNTS[..6].iter().find(|name| fields.get(**name).is_some_and(|value| number(value).is_some()));
    let plain = plain.and_then(|name| fields.shift_remove(*name)).and_then(|value| number(&value));
    let tries = take(fields, &["attempts", "maxAttempts", "max_attempts", "maxTries"]).and_then(|value| number(&value));
    const POLICIES: [&str; 7] =
        ["retry", "retries", "retryPolicy", "retry_policy", "retryStrategy", "retry_strategy", "Retry"];
    let policy = take(fields, &POLICIES);
    let policy = match policy {
        Some(Json::Array(items)) => items.into_iter().next(),
        other => other,
    };
    fields.shift_remove("retryOnFail");
    let mut retry = Object::new();
    match policy {
        Some(Json::Object(mut policy)) => {
            if let Some(tries) = TRIES.iter().find_map(|name| policy.shift_remove(*name)).and_then(|v| number(&v)) {
                retry.insert("attempts".into(), tries.clamp(1, 100).into());
            } else if let Some(count) =
                COUNTS.iter().find_map(|name| policy.shift_remove(*name)).and_then(|v| number(&v))
            {
                retry.insert("attempts".into(), (count + 1).min(100).into());
            }
            pauses(&mut policy, &mut retry);
        }
        Some(Json::Bool(false)) => return drop(out.insert("retries".into(), 0.into())),
        Some(other) => {
            out.insert("retries".into(), number(&other).map_or(other, Json::from));
        }
        None => {}
    }
    if let Some(count) = plain {
        out.insert("retries".into(), count.into());
    } else if let Some(tries) = tries {
        out.insert("retries".into(), tries.saturating_sub(1).into());
    }
    if let Some(first) = delay.as_ref().and_then(|delay| duration(delay, "s")) {
        retry.entry("first").or_insert(first.into());
    }
    if !retry.is_empty() {
        if out.contains_key("retries") {
            retry.shift_remove("attempts");
        }
        out.insert("retry".into(), Json::Object(retry));
    }
}

/// The pauses of a retry policy.
fn pauses(policy: &mut Object, retry: &mut Object) {
    let backoff = policy.shift_remove("backoff").or_else(|| take(policy, &["strategy", "type", "backoff_type"]));
    let backoff = match backoff {
        Some(Json::Object(mut inner)) => {
            let kind = take(&mut inner, &["type", "strategy"]);
            policy.extend(inner);
            kind
        }
        other => other,
    };
    match backoff {
        Some(Json::String(kind)) if ["fixed", "constant", "linear"].contains(&kind.as_str()) => {
            retry.insert("backoff".into(), "fixed".into());
        }
        Some(Json::String(kind)) if kind.starts_with("exp") => {
            drop(retry.insert("backoff".into(), "exponential".into()))
        }
        Some(Json::Array(list)) => return drop(retry.insert("backoff".into(), Json::Array(list))),
        Some(other) => {
            if let Some(first) = duration(&other, "s") {
                retry.insert("first".into(), first.into());
            }
        }
        None => {}
    }
    const FIRST: [&str; 12] = [
        "first",
        "delay",
        "interval",
        "initial_delay",
        "initialDelay",
        "initialInterval",
        "IntervalSeconds",
        "wait",
        "delay_seconds",
        "initial_interval",
        "duration",
        "backoff_seconds",
    ];
    if let Some(first) = FIRST.iter().find_map(|name| policy.shift_remove(*name)).and_then(|v| duration(&v, "s")) {
        retry.insert("first".into(), first.into());
    }
    let milliseconds = take(policy, &["delay_ms", "delayMs", "initialDelayMs", "interval_ms"]);
    if let Some(first) = milliseconds.and_then(|value| duration(&value, "ms")) {
        retry.insert("first".into(), first.into());
    }
    let cap = take(policy, &["cap", "max_delay", "maxDelay", "max_interval", "maximumInterval", "MaxDelaySeconds"]);
    if let Some(cap) =
        cap.and_then(|value| duration(&value, "s")).filter(|_| retry.get("backoff") != Some(&json!("fixed")))
    {
        retry.insert("cap".into(), cap.into());
    }
    for (name, kept) in [("jitter", Json::is_boolean as fn(&Json) -> bool), ("on", |_| true)] {
        if let Some(value) = policy.shift_remove(name).filter(kept) {
            retry.insert(name.into(), value);
        }
    }
}

fn timeouts(fields: &mut Object, out: &mut Object) {
    const NAMED: [(&str, &str); 13] = [
        ("timeout-minutes", "m"),
        ("timeout_minutes", "m"),
        ("timeoutMinutes", "m"),
        ("timeout_ms", "ms"),
        ("timeoutMs", "ms"),
        ("timeout_seconds", "s"),
        ("timeoutSeconds", "s"),
        ("TimeoutSeconds", "s"),
        ("execution_timeout", "s"),
        ("startToCloseTimeout", "s"),
        ("deadline", "s"),
        ("max_duration", "s"),
        ("timeout_hours", "h"),
    ];
    for (name, unit) in NAMED {
        if let Some(length) = fields.get(name).and_then(|value| duration(value, unit)) {
            fields.shift_remove(name);
            out.insert("timeout".into(), length.into());
        }
    }
    let Some(timeout) = fields.shift_remove("timeout") else { return };
    let length = match &timeout {
        // A number is in milliseconds here; a small one was meant in seconds.
        Json::Number(number) if number.as_f64().is_some_and(|number| number < 1_000.0) => duration(&timeout, "s"),
        Json::Number(_) => None,
        _ => duration(&timeout, "ms"),
    };
    out.insert("timeout".into(), length.map_or(timeout, Json::String));
}

fn max_parallel(fields: &mut Object, out: &mut Object) {
    const NAMES: [&str; 8] = [
        "max_concurrency",
        "maxConcurrency",
        "MaxConcurrency",
        "parallelism",
        "max-parallel",
        "maxParallel",
        "concurrency",
        "batch_size",
    ];
    if let Some(value) = take(fields, &NAMES).filter(|value| number(value).is_some_and(|number| number > 0)) {
        out.insert("max_parallel".into(), value);
    }
}

/// Renames fields that are misspelt, and drops those that have no meaning here.
pub fn leftovers(fields: &mut Object, out: &mut Object) {
    for (name, value) in std::mem::take(fields) {
        if NEEDLESS.contains(&name.as_str()) {
            continue;
        }
        match nearest(&name, STEP_FIELDS) {
            Some(near) if !out.contains_key(near) => drop(out.insert(near.into(), value)),
            _ => {}
        }
    }
}

/// The fields that are left over, as arguments of a tool.
pub fn as_arguments(fields: &mut Object) -> Object {
    let taken = std::mem::take(fields).into_iter();
    taken.filter(|(name, _)| !NEEDLESS.contains(&name.as_str()) && name != "type").collect()
}

/// The object of a call's arguments, under one of their usual names. Text that holds an object is read.
pub fn arguments(fields: &mut Object, names: &Names) -> Option<Json> {
    const NAMES: [&str; 14] = [
        "args",
        "with",
        "arguments",
        "parameters",
        "params",
        "inputs",
        "input",
        "config",
        "properties",
        "payload",
        "data",
        "Parameters",
        "options",
        "settings",
    ];
    let is_json = |text: &str| serde_json::from_str::<Object>(text).is_ok();
    let alone = fields.keys().filter(|name| !NEEDLESS.contains(&name.as_str())).count() == 1;
    let fits = |value: &Json| match value {
        Json::String(text) => is_json(text) || alone && text.trim_start().starts_with("{{"),
        value => value.is_object() || is_named(value),
    };
    let found = NAMES.iter().find(|name| fields.get(**name).is_some_and(fits))?;
    let value = fields.shift_remove(*found)?;
    if is_named(&value) {
        let entry = |item: &Json| Some((item.get("name")?.as_str()?.to_owned(), names.value(item.get("value")?)));
        return Some(value.as_array()?.iter().filter_map(entry).collect::<Object>().into());
    }
    let read = value.as_str().and_then(|text| serde_json::from_str::<Object>(text).ok()).map(Json::Object);
    Some(names.value(&read.unwrap_or(value)))
}

/// Whether this is a list of names and values.
fn is_named(value: &Json) -> bool {
    let items = value.as_array().filter(|items| !items.is_empty());
    items.is_some_and(|items| items.iter().all(|item| item.get("name").is_some() && item.get("value").is_some()))
}

/// Merges an object of settings into the fields around it.
pub fn flatten(fields: &mut Object, names: &[&str]) {
    while let Some(inner) = take_object(fields, names) {
        for (name, value) in inner {
            fields.entry(name).or_insert(value);
        }
    }
}
