//! Closed sets of the API as enums. Each has a variant for a value that this version does not know, so that a client
//! also understands a newer server.

use serde::Deserialize;
use std::fmt;

/// Declares an enum whose variants are written in the API as given.
macro_rules! sets {
    ($($(#[$doc:meta])* $name:ident { $($(#[$about:meta])* $variant:ident = $text:literal,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Deserialize)]
            #[non_exhaustive]
            pub enum $name {
                $($(#[$about])* #[serde(rename = $text)] $variant,)*
                /// One that this version does not know.
                #[default]
                #[serde(other)]
                Unknown,
            }

            impl $name {
                /// As the API writes it.
                pub fn as_str(self) -> &'static str {
                    match self {
                        $($name::$variant => $text,)*
                        $name::Unknown => "unknown",
                    }
                }
            }

            impl fmt::Display for $name {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.pad(self.as_str())
                }
            }
        )*
    };
}

sets! {
    /// The status of a run.
    RunStatus {
        /// It begins at a later time.
        Scheduled = "scheduled",
        /// It waits for its turn.
        Queued = "queued",
        /// It runs.
        Running = "running",
        /// It waits for people, a webhook or a time.
        Paused = "paused",
        /// It has ended as it should.
        Completed = "completed",
        /// It has ended with an error.
        Failed = "failed",
        /// It was cancelled.
        Cancelled = "cancelled",
        /// It took too long.
        Timeout = "timeout",
    }

    /// The status of a step.
    StepStatus {
        /// It has not begun.
        Pending = "pending",
        /// An attempt is under way.
        Running = "running",
        /// It waits for a time, its own or that of the next attempt.
        Sleeping = "sleeping",
        /// It waits for people, a webhook or another run.
        Waiting = "waiting",
        /// It has succeeded.
        Success = "success",
        /// It has failed.
        Failed = "failed",
        /// It took too long.
        Timeout = "timeout",
        /// A person or a policy denied it.
        Denied = "denied",
        /// A template or condition could not be evaluated.
        TemplateError = "template_error",
        /// It was not needed.
        Skipped = "skipped",
        /// The run was cancelled before it ended.
        Cancelled = "cancelled",
    }

    /// The kind of a step.
    StepKind {
        /// The start of a graph.
        Start = "start",
        /// An HTTP request.
        Http = "http",
        /// A call of a tool.
        Tool = "tool",
        /// Code.
        Javascript = "javascript",
        /// A statement on a database.
        Query = "query",
        /// A step that only passes values on.
        Pass = "pass",
        /// A choice between paths.
        Condition = "condition",
        /// The end of a path.
        End = "end",
        /// A pause.
        Sleep = "sleep",
        /// It waits for a call.
        WaitForWebhook = "wait_for_webhook",
        /// It waits for people.
        Approval = "approval",
        /// Another workflow.
        Workflow = "workflow",
        /// Steps for each item of a list.
        ForEach = "for_each",
        /// Steps that are repeated.
        Loop = "loop",
    }

    /// The status of an attempt: that of the step at the time, or `lost`.
    AttemptStatus {
        /// It has not begun.
        Pending = "pending",
        /// It is under way.
        Running = "running",
        /// It waits for a time.
        Sleeping = "sleeping",
        /// It waits for people, a webhook or another run.
        Waiting = "waiting",
        /// It has succeeded.
        Success = "success",
        /// It has failed.
        Failed = "failed",
        /// It took too long.
        Timeout = "timeout",
        /// A person or a policy denied it.
        Denied = "denied",
        /// A template or condition could not be evaluated.
        TemplateError = "template_error",
        /// It was not needed.
        Skipped = "skipped",
        /// The run was cancelled before it ended.
        Cancelled = "cancelled",
        /// Its process ended before it reported.
        Lost = "lost",
    }

    /// Why an attempt did not succeed.
    AttemptReason {
        /// Its process ended.
        Lost = "lost",
        /// It took too long.
        Timeout = "timeout",
        /// Rights or a policy refused it.
        Refused = "refused",
        /// It failed.
        Failed = "failed",
    }

    /// What an unfinished run waits for.
    WaitingReason {
        /// The time of a scheduled run.
        Start = "start",
        /// A place under a concurrency limit.
        Queue = "queue",
        /// A step that is executed.
        Executor = "executor",
        /// The next attempt of a step.
        Retry = "retry",
        /// The end of a pause.
        Sleep = "sleep",
        /// A call from outside.
        Webhook = "webhook",
        /// People who approve.
        Approval = "approval",
        /// A person who says whether a call happened.
        Verdict = "verdict",
        /// Another run.
        Child = "child",
        /// The next transition of the run.
        Turn = "turn",
        /// A person who releases or cancels the run, which was in progress at several crashes in a row.
        Quarantine = "quarantine",
        /// A person who cancels the run, which cannot be read.
        Unreadable = "unreadable",
    }

    /// How a run was started.
    StartedHow {
        /// By a request.
        Request = "request",
        /// By a schedule.
        Schedule = "schedule",
        /// By a webhook.
        Webhook = "webhook",
        /// By a step of another run.
        Run = "run",
        /// As a test.
        Test = "test",
    }

    /// How a workflow is started.
    TriggerKind {
        /// By requests.
        Api = "api",
        /// By webhooks.
        Webhook = "webhook",
        /// Again and again.
        Cron = "cron",
        /// Once, at a time.
        At = "at",
    }

    /// How a definition is written.
    Dialect {
        /// Tasks that need each other.
        Tasks = "tasks",
        /// Steps with transitions.
        Flow = "flow",
        /// Nodes and edges.
        Graph = "graph",
    }

    /// What a person is asked for.
    ApprovalKind {
        /// An approval.
        Approval = "approval",
        /// Whether a call happened.
        Verdict = "verdict",
    }

    /// What happens without an answer in time.
    OnTimeout {
        /// It counts as approved.
        Approve = "approve",
        /// It counts as denied.
        Deny = "deny",
    }

    /// The level of a line that code wrote.
    LogLevel {
        /// `console.debug`
        Debug = "debug",
        /// `console.log` and `console.info`
        Info = "info",
        /// `console.warn`
        Warn = "warn",
        /// `console.error`
        Error = "error",
    }
}

impl RunStatus {
    /// Whether the run has ended. It can still be retried.
    pub fn is_ended(self) -> bool {
        matches!(self, RunStatus::Completed | RunStatus::Failed | RunStatus::Cancelled | RunStatus::Timeout)
    }
}
