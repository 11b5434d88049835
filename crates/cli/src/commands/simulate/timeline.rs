//! Prints facts of the log as lines a person can follow.

use stepwell_core::fact::{Fact, Wait};
use stepwell_core::run::StoredFact;
use stepwell_core::simulate::EPOCH;
use stepwell_core::time::{Millis, Time};

pub fn line(now: Time, fact: &StoredFact) -> String {
    let text = match fact {
        Fact::Created { .. } => "run created".to_string(),
        Fact::Started { .. } => "run started".to_string(),
        Fact::Entered { step, attempt, wait, .. } => match wait {
            Wait::Executor => format!("{step} dispatched{}", nth(*attempt)),
            Wait::Sleep { until } => format!("{step} sleeps until {}", clock(*until)),
            Wait::Webhook { until } => format!("{step} waits for a call{}", at_most(*until)),
            Wait::Gate { until, .. } => format!("{step} asks for approval{}", at_most(*until)),
            Wait::Child { .. } => format!("{step} starts a child run{}", nth(*attempt)),
            Wait::Scope { count: Some(count) } => format!("{step} has {count} items"),
            Wait::Scope { count: None } => format!("{step} begins"),
        },
        Fact::Retrying { step, attempt, due, failure, .. } => {
            format!("{step} failed{}: {}; again at {}", nth(*attempt), failure.message, clock(*due))
        }
        Fact::Again { step, attempt, reason, .. } => format!("{step} dispatched{} ({})", nth(*attempt), word(reason)),
        Fact::Unsure { step, .. } => format!("{step}: nobody knows whether the call happened; a person is asked"),
        Fact::Opened { step, index } => format!("{step}[{index}] begins"),
        Fact::Closed { step, index, end, .. } => format!("{step}[{index}] ends: {}", word(end)),
        Fact::Finished { step, status, failure: Some(failure), .. } => {
            format!("{step} {}: {}", status.name(), failure.message)
        }
        Fact::Finished { step, status, failure: None, .. } => format!("{step} {}", status.name()),
        Fact::Skipped { step, reason, .. } => format!("{step} skipped ({})", word(reason)),
        Fact::Kept { step, .. } => format!("{step}: a call came early and is kept"),
        Fact::Approved { step, by, .. } => format!("{step} approved by {by}, others are still asked"),
        Fact::Escalated { step, .. } => format!("{step} escalated"),
        Fact::Ended { status, failure: Some(failure), .. } => format!("run {}: {}", status.name(), failure.message),
        Fact::Ended { status, failure: None, .. } => format!("run {}", status.name()),
        Fact::Retried { reset, .. } => format!("run retried: {}", reset.join(", ")),
        Fact::Adopted { version, stands, .. } => {
            format!("run retried on version {version}; stands: {}", stands.join(", "))
        }
    };
    format!("{:>14}  {text}\n", clock(now))
}

fn clock(time: Time) -> String {
    format!("+{}", time.since(EPOCH).max(Millis(0)))
}

fn at_most(until: Option<Time>) -> String {
    until.map(|until| format!(" until {}", clock(until))).unwrap_or_default()
}

fn nth(attempt: u32) -> String {
    if attempt > 1 { format!(" (attempt {attempt})") } else { String::new() }
}

/// The word the log uses for it.
fn word(value: &impl serde::Serialize) -> String {
    let text = serde_json::to_string(value).unwrap_or_default();
    text.trim_matches('"').replace('_', " ")
}
