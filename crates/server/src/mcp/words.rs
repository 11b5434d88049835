//! Events in words: what happened, how it ended, who did it and why.

use crate::view::{Event, Run};
use serde_json::{Value, json};
use stepwell_core::time::Time;

/// Adds to the ends of gates who answered, and why: the log has that in their results.
pub fn with_answers(events: &mut [Event], run: &Run) {
    for event in events.iter_mut().filter(|event| event.kind == "finished") {
        let Some(step) = event.step.as_ref() else { continue };
        let answer = run.tasks.0.iter().find(|(path, shown)| path == step && shown.kind == "approval");
        for name in ["by", "comment"] {
            let said = answer.and_then(|(_, step)| step.output.as_ref()?.get(name)?.as_str());
            if let Some(said) = said.filter(|said| !said.is_empty()) {
                event.fact.insert(name.into(), said.into());
            }
        }
    }
}

/// One event for an agent: its place in the log, and a sentence.
pub fn event(event: &Event) -> Value {
    let mut shown = json!({"version": event.version, "at": event.at, "type": event.kind, "what": sentence(event)});
    if let Some(step) = &event.step {
        shown["step"] = json!(step);
    }
    for name in ["by", "status", "comment"] {
        if let Some(value) = event.fact.get(name) {
            shown[name] = value.clone();
        }
    }
    shown
}

/// What happened, in one sentence.
pub fn sentence(event: &Event) -> String {
    let text = |name: &str| event.fact.get(name).and_then(Value::as_str).unwrap_or_default().to_string();
    let by = |text: &str| match event.fact.get("by").and_then(Value::as_str) {
        Some(by) => format!("{text} by {by}"),
        None => text.to_string(),
    };
    let until = |name: &str| match event.fact.get(name).filter(|time| !time.is_null()) {
        Some(time) => match time.as_i64() {
            Some(at) => format!(" until {}", Time(at)),
            None => format!(" until {}", plain(time)),
        },
        None => String::new(),
    };
    let why = failure(event).map(|why| format!(": {why}")).unwrap_or_default();
    let attempt = event.fact.get("attempt").and_then(Value::as_u64).unwrap_or(1);
    match event.kind.as_str() {
        "created" => by("the run was created"),
        "started" => "the run left the queue".into(),
        "entered" => match text("wait").as_str() {
            "executor" => "began".into(),
            "sleep" => format!("sleeps{}", until("until")),
            "webhook" => format!("waits for a call to its URL{}", until("until")),
            "gate" => format!("waits for an approval{}", until("until")),
            "child" => "started a child run".into(),
            "scope" => "began its items".into(),
            _ => "was entered".into(),
        },
        "retrying" => format!("attempt {attempt} failed{why}; the next one is{}", until("due").replace("until", "at")),
        "again" => format!("attempt {attempt} begins ({})", text("reason").replace('_', " ")),
        "held" => format!("the call is held for an approval{}", until("until")),
        "unsure" => "it is unknown whether the call happened; a person has to decide".into(),
        "opened" => format!("item {} began", event.fact.get("index").map(plain).unwrap_or_default()),
        "closed" => format!("item {} ended: {}", event.fact.get("index").map(plain).unwrap_or_default(), text("end")),
        "finished" => {
            let comment = if text("comment").is_empty() { String::new() } else { format!(": {}", text("comment")) };
            format!("{}{comment}{why}", by(&format!("ended as {}", text("status"))))
        }
        "skipped" => match text("reason").as_str() {
            "condition" => "was skipped: its condition did not hold".into(),
            "not_taken" => "was skipped: no path led to it".into(),
            "upstream_failed" => "was skipped: a step before it failed".into(),
            other => format!("was skipped: {}", other.replace('_', " ")),
        },
        "kept" => "a call arrived early and is kept".into(),
        "approved" => by("was approved"),
        "changed" => by("the held call was changed"),
        "escalated" => "there was no answer in time: other approvers are asked".into(),
        "overridden" => by("its outcome was set"),
        "ended" => by(&format!("the run ended as {}{why}", text("status"))),
        "retried" => by("the run was retried"),
        other => other.replace('_', " "),
    }
}

fn failure(event: &Event) -> Option<String> {
    let failure = event.fact.get("failure")?;
    let message: String = failure.get("message")?.as_str()?.chars().take(500).collect();
    Some(format!("{message} [{}]", failure.get("code").map(plain).unwrap_or_default()))
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
