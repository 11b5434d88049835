//! The closed sets of the API: every value that a field may have. Fields keep the engine's text, and refer to these in
//! the description, so that generated clients have enums. A test compares them with the names that the engine uses.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

macro_rules! set {
    ($(#[$doc:meta])* $name:ident { $($(#[$why:meta])* $variant:ident),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$why])* $variant),+ }
    };
}

set! {
    /// Status of a run. `completed`, `failed`, `cancelled` and `timeout` are final.
    RunStatus { Scheduled, Queued, Running, Paused, Completed, Failed, Cancelled, Timeout }
}

set! {
    /// Status of a step.
    StepStatus {
        Pending, Running, Sleeping, Waiting, Success, Failed, Timeout, Denied, TemplateError, Skipped, Cancelled,
    }
}

set! {
    /// Status of an attempt: that of the step at the time, or `lost` if its process ended before it reported.
    AttemptStatus {
        Pending, Running, Sleeping, Waiting, Success, Failed, Timeout, Denied, TemplateError, Skipped, Cancelled, Lost,
    }
}

set! {
    /// How a run was started. `run` is a step of another run.
    StartedHow { Request, Schedule, Webhook, Run, Test }
}

set! {
    /// Why an attempt did not succeed: its process ended, it took too long, rights or a policy refused it, or it failed.
    AttemptReason { Lost, Timeout, Refused, Failed }
}

set! {
    /// Kind of a step. `start` is only in graphs.
    StepKind {
        Start, Http, Tool, Javascript, Query, Pass, Condition, End, Sleep, WaitForWebhook, Approval, Workflow, ForEach,
        Loop,
    }
}

set! {
    /// What a run or a step waits for. `start` is the time of a scheduled run, `turn` is the next transition of the run;
    /// `quarantine` ends when a person releases or cancels the run; `unreadable` when one cancels it.
    WaitingReason { Start, Queue, Executor, Retry, Sleep, Webhook, Approval, Verdict, Child, Turn, Quarantine, Unreadable }
}

set! { LogLevel { Debug, Info, Warn, Error } }
set! {
    /// How a workflow is started.
    TriggerKind { Api, Webhook, Cron, At }
}
set! {
    /// How a definition is written.
    Dialect { Tasks, Flow, Graph }
}
set! { EdgeStyle { Normal, Error, Back } }
set! {
    /// An approval, or a verdict on a call that may have happened.
    ApprovalKind { Approval, Verdict }
}
set! { OnTimeout { Approve, Deny } }
set! { DeliveryStatus { Waiting, Sent, Failed, Dropped } }
set! {
    /// What a notification is about. `test` is a test message.
    MessageTopic { GateOpened, GateEscalated, GateAnswered, GateExpired, RunFailed, RunQuarantined, Test }
}
set! {
    /// State of the connection; `absent` if this node is not configured to connect.
    McpServerState { Ready, Connecting, Down, Absent }
}
set! { McpTransport { Stdio, Http } }
set! {
    /// `changed` and `new` are held until a person accepts them; `held` cannot be called at all; `missing` is not
    /// offered now.
    ToolStanding { Accepted, Changed, New, Held, Missing }
}
set! {
    /// `unreviewed` or `refused` if an agent defined the version and no person has accepted it; `held` if the name belongs
    /// to another tool.
    WorkflowToolStanding { Accepted, Unreviewed, Refused, Held }
}
set! {
    /// `unreviewed` and `proposed` await a person: a version that is current, and one that is not.
    ReviewState { Unreviewed, Proposed, Accepted, Refused }
}
set! {
    /// How a run on virtual time ended; `unfinished` if it took too many events.
    RehearsalStatus { Completed, Failed, Cancelled, Timeout, Unfinished }
}
set! {
    /// What happens at a time of a schedule while the run of an earlier time is unfinished.
    Overlap { Allow, Skip, Cancel }
}
set! {
    /// What happens to times that were missed.
    CatchUp { None, Last, All }
}
set! {
    /// What happens to a time that a clock change skips.
    SkippedTime { Run, Skip }
}
set! {
    /// What happens to a time that a clock change repeats.
    RepeatedTime { Once, Twice }
}
set! { DatabaseScheme { Postgres, Sqlite } }
set! { FinishStatus { Success, Failed } }
#[cfg(test)]
mod tests {
    use super::*;
    use stepwell_core::run::{Phase, RunStatus as CoreRun, Status};

    fn names<T: utoipa::PartialSchema>() -> Vec<String> {
        let schema = serde_json::to_value(T::schema()).unwrap();
        schema["enum"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_string()).collect()
    }

    #[test]
    fn the_sets_have_the_names_that_the_engine_uses() {
        let runs = names::<RunStatus>();
        let core = [CoreRun::Queued, CoreRun::Running, CoreRun::Completed, CoreRun::Failed, CoreRun::Cancelled];
        for status in core.into_iter().chain([CoreRun::Timeout]) {
            assert!(runs.iter().any(|name| name == status.name()), "{status:?}");
        }
        let steps = names::<StepStatus>();
        let ends = [Status::Success, Status::Failed, Status::Timeout, Status::Denied, Status::TemplateError];
        let ends = ends.into_iter().chain([Status::Skipped, Status::Cancelled]).map(Phase::Done);
        let phases = [Phase::Idle, Phase::Running, Phase::Backoff, Phase::Sleeping, Phase::Webhook, Phase::Gate];
        let phases = phases.into_iter().chain([Phase::Unsure, Phase::Child, Phase::Open]).chain(ends);
        let used: std::collections::BTreeSet<&str> = phases.map(Phase::name).collect();
        assert_eq!(used, steps.iter().map(String::as_str).collect(), "no more and no fewer");
        let mut attempts = steps.clone();
        attempts.push("lost".into());
        assert_eq!(names::<AttemptStatus>(), attempts);
    }
}
