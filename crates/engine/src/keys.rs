//! Timers in words: their key in the store names step, attempt and kind, never a number that only this process knows.

use stepwell_core::event::{Timer, TimerKind};
use stepwell_core::graph::Graph;
use stepwell_core::run::Run;

const KINDS: [(&str, TimerKind); 5] = [
    ("wake", TimerKind::Wake),
    ("retry", TimerKind::Retry),
    ("timeout", TimerKind::Timeout),
    ("escalate", TimerKind::Escalate),
    ("expire", TimerKind::Expire),
];

/// `wake:2:each[3].nap`; without a path it is the run's own.
pub fn timer_key(graph: &Graph, run: &Run, timer: &Timer) -> String {
    let kind = KINDS.iter().find(|(_, kind)| *kind == timer.kind).map_or("", |(name, _)| name);
    let path = timer.at.map(|at| run.path(graph, at)).unwrap_or_default();
    format!("{kind}:{}:{path}", timer.attempt)
}

/// The timer a key speaks of. `None` if the run has no such step (any more).
pub fn timer_named(graph: &Graph, run: &Run, key: &str) -> Option<Timer> {
    let (kind, rest) = key.split_once(':')?;
    let (attempt, path) = rest.split_once(':')?;
    let kind = KINDS.iter().find(|(name, _)| *name == kind)?.1;
    let at = if path.is_empty() { None } else { Some(run.find(graph, path)?) };
    Some(Timer { kind, at, attempt: attempt.parse().ok()? })
}
