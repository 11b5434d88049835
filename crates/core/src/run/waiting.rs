//! What an unfinished run waits for, since when, and what can move it on.

use super::{Phase, Run, RunStatus};
use crate::graph::Graph;
use crate::time::Time;
use serde::Serialize;

/// What moves on a step whose node was lost too often.
const QUARANTINED: &str =
    "a person who runs it again or ends it: the server ended several times in a row while the step ran";

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct WaitingFor {
    /// The path of the step; empty for the run itself.
    pub step: String,
    #[serde(rename = "for")]
    pub what: Waiting,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// When it moves on by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    pub moved_on_by: &'static str,
    /// Why it waits, in the words of the service that is called, or why the last attempt failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<std::sync::Arc<str>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Waiting {
    /// The time at which it is to begin.
    Start,
    Queue,
    Executor,
    Retry,
    Sleep,
    Webhook,
    Approval,
    /// A person has to decide whether a call happened.
    Verdict,
    Child,
    /// The next transition of the run.
    Turn,
    /// No node drives the run until a person releases or cancels it.
    Quarantine,
    /// The stored state of the run, or its definition, cannot be read.
    Unreadable,
}

impl Run {
    /// What the run waits for. Empty only for a finished run.
    pub fn waiting_for(&self, graph: &Graph) -> Vec<WaitingFor> {
        if self.status == RunStatus::Scheduled {
            return vec![WaitingFor {
                step: String::new(),
                what: Waiting::Start,
                since: None,
                until: self.scheduled,
                moved_on_by: "time",
                message: None,
            }];
        }
        if matches!(self.status, RunStatus::New | RunStatus::Queued) {
            let moved_on_by = "a free concurrency slot of the workflow";
            return vec![WaitingFor {
                step: String::new(),
                what: Waiting::Queue,
                since: None,
                until: None,
                moved_on_by,
                message: None,
            }];
        }
        let mut list = Vec::new();
        if self.has_decisions_left() {
            let moved_on_by = "the next transition of the run, behind other runs";
            let (what, message) = (Waiting::Turn, None);
            list.push(WaitingFor { step: String::new(), what, since: None, until: None, moved_on_by, message });
        }
        for (at, state) in self.steps(graph) {
            let (what, moved_on_by) = match state.phase {
                // An open scope waits for the steps inside it, which are listed themselves.
                Phase::Idle | Phase::Done(_) | Phase::Open => continue,
                Phase::Running => (Waiting::Executor, "the result of the call"),
                Phase::Backoff => (Waiting::Retry, "the next attempt, or a signal that it is ready now"),
                Phase::Sleeping => (Waiting::Sleep, "time, or a signal that it is ready now"),
                Phase::Webhook => (Waiting::Webhook, "a call to its callback URL"),
                Phase::Gate => (Waiting::Approval, "an approval or denial by someone who may answer"),
                Phase::Unsure if state.is_quarantined() => (Waiting::Verdict, QUARANTINED),
                Phase::Unsure => (Waiting::Verdict, "a person who knows whether the call happened"),
                Phase::Child => (Waiting::Child, "the end of the child run"),
            };
            let step = self.path(graph, at);
            let message = state.failure().filter(|_| state.phase == Phase::Backoff).map(|f| f.message.clone());
            list.push(WaitingFor { step, what, since: Some(state.since), until: state.due, moved_on_by, message });
        }
        list
    }
}
