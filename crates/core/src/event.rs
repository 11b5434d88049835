//! The events that can happen to a run. They arrive at least once and in any order; each identifies its subject
//! precisely enough that a stale or repeated event is recognised.

use crate::run::At;
use crate::time::{Millis, Time};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub enum Event {
    /// The run begins. `queued` leaves it waiting for [`Event::Admitted`].
    Triggered {
        body: Arc<Value>,
        headers: Option<Arc<Value>>,
        query: Option<Arc<Value>>,
        by: Arc<str>,
        queued: bool,
    },
    Admitted,
    /// The run, which has just been triggered and queued, begins at this time and not before.
    Scheduled {
        at: Time,
    },
    /// An executor's report on a dispatched attempt.
    Reported {
        at: At,
        attempt: u32,
        outcome: Outcome,
    },
    /// The attempt was not made: someone has to approve the call first.
    Held {
        at: At,
        attempt: u32,
        /// The approval request: `message`, `approvers`, `allow_self`, `approvals`, …
        ask: Arc<Value>,
        timeout: Option<Millis>,
        /// Progress that the next attempt resumes from, if this one has begun.
        note: Option<Arc<Value>>,
    },
    /// The attempt is deferred until this time.
    Deferred {
        at: At,
        attempt: u32,
        due: Time,
        why: Deferral,
        /// Progress that the next attempt resumes from, if this one has begun.
        note: Option<Arc<Value>>,
    },
    /// The node that ran the attempt is gone. `stopped`: in an orderly way, so the attempt cannot be why.
    Lost {
        at: At,
        attempt: u32,
        stopped: bool,
    },
    Timer(Timer),
    /// A call to a wait's URL.
    Delivered {
        at: At,
        body: Arc<Value>,
        /// The body was longer than the readable limit.
        truncated: bool,
    },
    Answered {
        at: At,
        attempt: u32,
        answer: Answer,
    },
    ChildEnded {
        at: At,
        attempt: u32,
        outcome: Outcome,
    },
    /// Ends a sleep or a retry delay early.
    Woken {
        at: At,
        attempt: u32,
        by: Arc<str>,
    },
    /// A person decides the outcome of an `at_most_once` call.
    Settled {
        at: At,
        attempt: u32,
        verdict: Verdict,
        by: Arc<str>,
    },
    /// An authorised user sets the outcome of a stuck step. Does not apply to gates: only their approvers can answer
    /// those.
    Overridden {
        at: At,
        attempt: u32,
        outcome: Outcome,
        by: Arc<str>,
        comment: Option<Arc<str>>,
    },
    Cancelled {
        by: Arc<str>,
        reason: Option<Arc<str>>,
    },
    Retried {
        by: Retrier,
    },
}

/// Why an attempt is deferred.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Deferral {
    /// A rate limit is reached.
    RateLimit,
    /// The callee works on what the call started. The text is what it says about that.
    UnderWay(Option<Arc<str>>),
    /// Nothing was sent yet, because the callee is not there. The text says why.
    Unavailable(Arc<str>),
}

/// The user who retries a run.
#[derive(Clone, Debug)]
pub struct Retrier {
    pub name: Arc<str>,
    /// The user whose permissions limit the run's calls from then on, in addition to earlier limits, in the engine's
    /// notation.
    pub acts: Option<Arc<str>>,
}

impl From<Arc<str>> for Retrier {
    fn from(name: Arc<str>) -> Retrier {
        Retrier { name, acts: None }
    }
}

#[derive(Clone, Debug)]
pub enum Outcome {
    Success(Reply),
    Failure { failure: Failure, reply: Option<Reply> },
}

/// The response of a call. HTTP fills in every field; other calls only the body.
#[derive(Clone, Default, Debug)]
pub struct Reply {
    pub body: Arc<Value>,
    pub headers: Option<Arc<Value>>,
    pub status_code: Option<u16>,
    /// The body was longer than the readable limit and is stored truncated.
    pub truncated: bool,
    /// Log lines of the step, for people. No step reads them.
    pub log: Option<Arc<Value>>,
}

impl Reply {
    pub fn body(body: Value) -> Reply {
        Reply { body: Arc::new(body), ..Reply::default() }
    }
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Failure {
    pub kind: FailureKind,
    pub code: Arc<str>,
    pub message: Arc<str>,
    /// Whether the executor considers another attempt worthwhile.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub retryable: bool,
    /// The request may have been sent and taken effect even though no response arrived.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_have_happened: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Millis>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    Error,
    Network,
    Timeout,
}

/// The codes of failures that are refusals; docs/definitions.md lists them.
const REFUSALS: [&str; 12] = [
    "forbidden",
    "denied_by_policy",
    "approval_required",
    "host_refused",
    "egress_refused",
    "secret_bound",
    "read_only",
    "unauthorized",
    "tool_held",
    "tool_new",
    "tool_changed",
    "too_many_descendants",
];

impl Failure {
    pub fn new(code: &str, message: impl Into<Arc<str>>) -> Failure {
        let (kind, code) = (FailureKind::Error, code.into());
        Failure { kind, code, message: message.into(), retryable: false, may_have_happened: false, retry_after: None }
    }

    pub fn retryable(code: &str, message: impl Into<Arc<str>>) -> Failure {
        Failure { retryable: true, ..Failure::new(code, message) }
    }

    /// Whether rights, a policy or a review forbid the call. Another attempt would be refused too, so none is made,
    /// whatever the step's retry policy says.
    pub fn is_refusal(&self) -> bool {
        REFUSALS.contains(&&*self.code)
    }

    pub fn timeout(after: Millis) -> Failure {
        let message = format!("no answer within {after}");
        Failure {
            kind: FailureKind::Timeout,
            retryable: true,
            may_have_happened: true,
            ..Failure::new("timeout", message)
        }
    }
}

/// A timer that came due. It counts only while its step still waits in that attempt.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Timer {
    pub kind: TimerKind,
    /// The step the timer belongs to; `None` for the run itself.
    pub at: Option<At>,
    pub attempt: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimerKind {
    /// A sleep is over.
    Wake,
    /// A retry delay is over.
    Retry,
    /// A wait, gate or child run took too long.
    Timeout,
    /// A gate escalates to the next approvers.
    Escalate,
    /// The run took longer than `max_duration`.
    Expire,
    /// The last transition left decisions for the next one.
    Continue,
    /// A scheduled run is due.
    Begin,
}

#[derive(Clone, Debug)]
pub struct Answer {
    pub approve: bool,
    pub by: Arc<str>,
    pub comment: Option<Arc<str>>,
    /// The data entered into the gate's form.
    pub data: Option<Value>,
    /// The digest of the request that was shown; `None` answers the current request, whatever it is.
    pub digest: Option<Arc<str>>,
    /// The input of a held call as the approver changed it. Only an approval can have it, and only if the request
    /// allows changes.
    pub input: Option<Arc<Value>>,
}

#[derive(Clone, Debug)]
pub enum Verdict {
    Happened { body: Value },
    RunAgain,
    Fail,
}

impl Verdict {
    pub fn name(&self) -> &'static str {
        match self {
            Verdict::Happened { .. } => "happened",
            Verdict::RunAgain => "run_again",
            Verdict::Fail => "fail",
        }
    }
}

/// Why an event changed nothing. The caller of a command gets this as an error; a repeated delivery counts as done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Ignored {
    #[error("the run has not started")]
    NotStarted,
    #[error("the run has already started")]
    AlreadyStarted,
    #[error("the run is already finished")]
    RunFinished,
    #[error("the run is not finished, or there is nothing in it to retry")]
    NothingToRetry,
    #[error("the newer version is written in another dialect")]
    OtherDialect,
    #[error("the run has no such step")]
    UnknownStep,
    #[error("that attempt is no longer the current one")]
    StaleAttempt,
    #[error("the step is not waiting for this")]
    NotWaiting,
    #[error("the step is already finished")]
    StepFinished,
    #[error("the answer does not match the current request: read the request again and answer that")]
    OtherDigest,
    #[error("the timer is not due yet")]
    NotDue,
    #[error("a message for this step was already received")]
    Repeated,
    #[error("the request does not allow this change of the call")]
    ChangeNotAllowed,
}
