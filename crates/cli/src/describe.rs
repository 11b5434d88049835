//! Facts, waits, instants and durations as text for people.

use serde_json::Value;
use stepwell_core::approval::{ALLOW_CHANGES, call_lines, without_answer};
use stepwell_core::fact::{Fact, Wait};
use stepwell_core::run::{StoredFact, WaitingFor};
use stepwell_core::time::{Millis, Time};
use stepwell_server::view;

/// A fact of the log; `clock` formats instants.
pub fn fact(fact: &StoredFact, clock: &dyn Fn(Time) -> String) -> String {
    let at_most = |until: &Option<Time>| until.map(|until| format!(" until {}", clock(until))).unwrap_or_default();
    match fact {
        Fact::Created { .. } => "run created".to_string(),
        Fact::Scheduled { due } => format!("run begins at {}", clock(*due)),
        Fact::Due => "run is due".to_string(),
        Fact::Started { .. } => "run started".to_string(),
        Fact::Entered { step, attempt, wait, .. } => match wait {
            Wait::Executor => format!("{step} dispatched{}", nth(*attempt)),
            Wait::Sleep { until } => format!("{step} sleeps until {}", clock(*until)),
            Wait::Webhook { until } => format!("{step} waits for a call{}", at_most(until)),
            Wait::Gate { until, .. } => format!("{step} asks for approval{}", at_most(until)),
            Wait::Child { .. } => format!("{step} starts a child run{}", nth(*attempt)),
            Wait::Scope { count: Some(count) } => format!("{step} has {count} items"),
            Wait::Scope { count: None } => format!("{step} begins"),
        },
        Fact::Retrying { step, attempt, due, failure, .. } => {
            format!("{step} failed{}: {}; again at {}", nth(*attempt), failure.message, clock(*due))
        }
        Fact::Again { step, attempt, reason, .. } => format!("{step} dispatched{} ({})", nth(*attempt), word(reason)),
        Fact::Held { step, .. } => format!("{step} is held until the call is approved"),
        Fact::Unsure { step, .. } => format!("{step}: unknown whether the call happened; waiting for a verdict"),
        Fact::Opened { step, index } => format!("{step}[{index}] begins"),
        Fact::Closed { step, index, end, .. } => format!("{step}[{index}] ends: {}", word(end)),
        Fact::Finished { step, status, failure: Some(failure), .. } => {
            format!("{step} {}: {}", status.name(), failure.message)
        }
        Fact::Finished { step, status, failure: None, .. } => format!("{step} {}", status.name()),
        Fact::Skipped { step, reason, .. } => format!("{step} skipped ({})", word(reason)),
        Fact::Kept { step, .. } => format!("{step}: an early call was kept"),
        Fact::Approved { step, by, .. } => format!("{step} approved by {by}"),
        Fact::Changed { step, by, .. } => format!("{step} changed by {by}, to be approved"),
        Fact::Escalated { step, .. } => format!("{step} escalated"),
        Fact::Overridden { step, by, .. } => format!("{step} ended by {by}"),
        Fact::Ended { status, failure: Some(failure), .. } => format!("run {}: {}", status.name(), failure.message),
        Fact::Ended { status, failure: None, .. } => format!("run {}", status.name()),
        Fact::Retried { reset, .. } => format!("run retried: {}", reset.join(", ")),
        Fact::Adopted { version, stands, .. } => {
            format!("run retried on version {version}; stands: {}", stands.join(", "))
        }
    }
}

fn nth(attempt: u32) -> String {
    if attempt > 1 { format!(" (attempt {attempt})") } else { String::new() }
}

/// The name the log uses for a value.
pub fn word(value: &impl serde::Serialize) -> String {
    let text = serde_json::to_string(value).unwrap_or_default();
    text.trim_matches('"').replace('_', " ")
}

/// What an unfinished run waits for: `gate waits for an approval since …, until …`.
pub fn waiting(waiting: &view::Waiting) -> String {
    let what = match waiting.what.as_str() {
        "start" => "waits for its time",
        "queue" => "waits in the queue",
        "executor" => "runs, or is ready to run",
        "retry" => "pauses before the next attempt",
        "sleep" => "sleeps",
        "webhook" => "waits for a call",
        "approval" => "waits for an approval",
        "verdict" => "waits for a verdict on whether its call happened",
        "child" => "waits for a child run",
        "quarantine" => "is quarantined",
        "unreadable" => "cannot be read",
        // A newer server may have more kinds.
        other => other,
    };
    let step = if waiting.step.is_empty() { "the run" } else { &waiting.step };
    let since = waiting.since.map(|since| format!(" since {}", instant(since.0))).unwrap_or_default();
    let until = waiting.until.map(|until| format!(", until {}", instant(until.0))).unwrap_or_default();
    format!("{step} {what}{since}{until}; moved on by {}", waiting.moved_on_by)
}

/// Converts the engine's wait to the API's.
pub fn waiting_view(waiting: &WaitingFor) -> view::Waiting {
    view::Waiting {
        step: waiting.step.clone(),
        what: word(&waiting.what),
        since: waiting.since.map(view::Instant),
        until: waiting.until.map(view::Instant),
        moved_on_by: waiting.moved_on_by.into(),
        message: waiting.message.as_deref().map(Into::into),
    }
}

/// An API event as the log stores it; `None` if this version does not know the fact.
pub fn stored(event: &view::Event) -> (Value, Option<StoredFact>) {
    let raw = event.stored();
    let fact = serde_json::from_value(raw.clone()).ok();
    (raw, fact)
}

/// An event of the API, as text.
pub fn event(event: &view::Event, clock: &dyn Fn(Time) -> String) -> String {
    match stored(event).1 {
        Some(known) => fact(&known, clock),
        None => format!("{} {}", event.step.as_deref().unwrap_or("run"), event.kind),
    }
}

/// The question of an approval, line by line: the message, the calls that follow an answer, and what happens without one.
/// Arguments are cut after `most` characters.
pub fn asked(approval: &view::ApprovalView, most: usize) -> Vec<String> {
    let asks = &approval.asks;
    if approval.kind == "verdict" {
        return vec![format!("did this call happen? {}", brief(asks, most))];
    }
    let message = asks.get("message").and_then(Value::as_str).unwrap_or("it asks for approval");
    let mut lines = vec![message.to_string()];
    lines.extend(call_lines(asks, most));
    lines.extend((!approval.asked_by.is_empty()).then(|| format!("asked by {}", approval.asked_by)));
    if asks.get(ALLOW_CHANGES).is_some() {
        lines.push("you may change the arguments: --input".into());
    }
    lines.push(without_answer(approval.until.map(|until| until.0), approval.on_timeout.as_deref()));
    lines.extend(approval.warnings.iter().map(|warning| format!("warning: {warning}")));
    lines
}

/// A run in a list.
pub fn listed_run(run: &view::RunSummary) -> String {
    let took = run.finished_at.map(|end| format!("  {}", length(end.0.since(run.created_at.0)))).unwrap_or_default();
    let created = instant(run.created_at.0);
    let view::RunSummary { id, status, workflow, workflow_version, .. } = run;
    crate::draw::plain(&format!("{id}  {status:<9}  {created}  {workflow} ({workflow_version}){took}"))
}

/// An instant in UTC, to the second.
pub fn instant(time: Time) -> String {
    let text = time.to_string();
    match text.split_once('.') {
        Some((seconds, _)) => format!("{seconds}Z"),
        None => text,
    }
}

/// A duration in short form: `240ms`, `3.2s`, `4m10s`, `2d3h`.
pub fn length(length: Millis) -> String {
    match length.0 {
        0..1_000 => format!("{}ms", length.0),
        1_000..60_000 => format!("{}.{}s", length.0 / 1_000, length.0 % 1_000 / 100),
        60_000..3_600_000 => Millis(length.0 / 1_000 * 1_000).to_string(),
        3_600_000..86_400_000 => Millis(length.0 / 60_000 * 60_000).to_string(),
        _ => Millis(length.0 / 3_600_000 * 3_600_000).to_string(),
    }
}

/// A value as JSON, cut after `most` characters.
pub fn brief(value: &Value, most: usize) -> String {
    let text = value.to_string();
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_instants_are_short() {
        let check = |millis, expected: &str| assert_eq!(length(Millis(millis)), expected);
        check(0, "0ms");
        check(999, "999ms");
        check(3_260, "3.2s");
        check(250_400, "4m10s");
        check(2 * 86_400_000 + 3 * 3_600_000 + 5, "2d3h");
        assert_eq!(instant(Time(1_767_225_600_123)), "2026-01-01T00:00:00Z");
    }

    #[test]
    fn a_long_value_is_cut_between_characters() {
        assert_eq!(brief(&"ää".into(), 10), "\"ää\"");
        assert_eq!(brief(&"ääää".into(), 3), "\"ää… (10 bytes)");
    }
}
