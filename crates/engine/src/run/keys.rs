//! Keys of timers and notices in the store. A key names the step by path, with attempt and kind, never by a number that
//! only this process knows.

use stepwell_core::event::{Timer, TimerKind};
use stepwell_core::graph::Graph;
use stepwell_core::run::Run;

const CONTINUE: &str = "continue";

const BEGIN: &str = "begin";

const KINDS: [(&str, TimerKind); 7] = [
    ("wake", TimerKind::Wake),
    ("retry", TimerKind::Retry),
    ("timeout", TimerKind::Timeout),
    ("escalate", TimerKind::Escalate),
    ("expire", TimerKind::Expire),
    (CONTINUE, TimerKind::Continue),
    (BEGIN, TimerKind::Begin),
];

/// `wake:2:each[3].nap`; an empty path stands for the run itself.
pub fn timer_key(graph: &Graph, run: &Run, timer: &Timer) -> String {
    let kind = KINDS.iter().find(|(_, kind)| *kind == timer.kind).map_or("", |(name, _)| name);
    let path = timer.at.map(|at| run.path(graph, at)).unwrap_or_default();
    format!("{kind}:{}:{path}", timer.attempt)
}

/// Whether the key is of the timer of a run whose last transition left decisions for the next one.
pub fn is_continuation(key: &str) -> bool {
    key.split(':').next() == Some(CONTINUE)
}

/// Whether the key is of the timer of a scheduled run.
pub fn is_begin(key: &str) -> bool {
    key.split(':').next() == Some(BEGIN)
}

/// The timer for a key. `None` if the run has no such step, or no longer has it.
pub fn timer_named(graph: &Graph, run: &Run, key: &str) -> Option<Timer> {
    let (kind, rest) = key.split_once(':')?;
    let (attempt, path) = rest.split_once(':')?;
    let kind = KINDS.iter().find(|(name, _)| *name == kind)?.1;
    let at = if path.is_empty() { None } else { Some(run.find(graph, path)?) };
    Some(Timer { kind, at, attempt: attempt.parse().ok()? })
}

/// What a notice requests for a child run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChildTask {
    Start,
    Cancel,
}

/// What the keys of notices that start a child begin with.
pub const START_PREFIX: &str = "start:";

/// `start:1:each[3].build`.
pub fn child_key(task: ChildTask, path: &str, attempt: u32) -> String {
    let task = match task {
        ChildTask::Start => "start",
        ChildTask::Cancel => "cancel",
    };
    format!("{task}:{attempt}:{path}")
}

/// Parses a key of [`child_key`] into task, path and attempt.
pub fn child_named(key: &str) -> Option<(ChildTask, &str, u32)> {
    let (task, rest) = key.split_once(':')?;
    let (attempt, path) = rest.split_once(':')?;
    let task = match task {
        "start" => ChildTask::Start,
        "cancel" => ChildTask::Cancel,
        _ => return None,
    };
    Some((task, path, attempt.parse().ok()?))
}
