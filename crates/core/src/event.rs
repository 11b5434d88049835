//! What can happen to a run. Events come from outside, at least once and in any order; each names what it is about
//! precisely enough that a stale or repeated one is recognised.

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
        by: Arc<str>,
        queued: bool,
    },
    Admitted,
    /// An executor's word on a dispatched attempt.
    Reported {
        at: At,
        attempt: u32,
        outcome: Outcome,
    },
    /// The attempt was not made: somebody must approve the call first.
    Held {
        at: At,
        attempt: u32,
        /// What is asked: `message`, `approvers`, `allow_self`, `approvals`, …
        ask: Arc<Value>,
        timeout: Option<Millis>,
        /// What the next attempt goes on with, if this one has begun.
        note: Option<Arc<Value>>,
    },
    /// The attempt is put off: there are too many such calls now, or what it began takes its time.
    Deferred {
        at: At,
        attempt: u32,
        due: Time,
        /// What the next attempt goes on with, if this one has begun.
        note: Option<Arc<Value>>,
    },
    /// The node that ran the attempt is gone.
    Lost {
        at: At,
        attempt: u32,
    },
    Timer(Timer),
    /// A call to a wait's URL.
    Delivered {
        at: At,
        body: Arc<Value>,
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
    /// Ends a sleep or a pause between attempts early.
    Woken {
        at: At,
        attempt: u32,
        by: Arc<str>,
    },
    /// A person says what became of an `at_most_once` call.
    Settled {
        at: At,
        attempt: u32,
        verdict: Verdict,
        by: Arc<str>,
    },
    /// Someone with the right to it says how a stuck step ended. Gates are for those who may answer them.
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

/// Who takes a run up again.
#[derive(Clone, Debug)]
pub struct Retrier {
    pub name: Arc<str>,
    /// Whose rights its calls are limited to from then on, beside those before: as the engine writes it.
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

/// What came back from a call. HTTP fills all of it; others only the body.
#[derive(Clone, Default, Debug)]
pub struct Reply {
    pub body: Arc<Value>,
    pub headers: Option<Arc<Value>>,
    pub status_code: Option<u16>,
    /// The body was longer than can be read and is kept cut off.
    pub truncated: bool,
    /// What the step wrote down for people, line by line. No step reads it.
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
    /// Worth another attempt, as far as the executor can tell.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub retryable: bool,
    /// The request may have left and its effect be there, though no answer came.
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

impl Failure {
    pub fn new(code: &str, message: impl Into<Arc<str>>) -> Failure {
        let (kind, code) = (FailureKind::Error, code.into());
        Failure { kind, code, message: message.into(), retryable: false, may_have_happened: false, retry_after: None }
    }

    pub fn retryable(code: &str, message: impl Into<Arc<str>>) -> Failure {
        Failure { retryable: true, ..Failure::new(code, message) }
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

/// A timer row that came due. It counts only while its step still waits in that attempt.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Timer {
    pub kind: TimerKind,
    /// The step it belongs to; `None` for the run itself.
    pub at: Option<At>,
    pub attempt: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimerKind {
    /// A sleep is over.
    Wake,
    /// A pause between attempts is over.
    Retry,
    /// A wait, gate or child run took too long.
    Timeout,
    /// A gate goes to the next people.
    Escalate,
    /// The run took longer than `max_duration`.
    Expire,
}

#[derive(Clone, Debug)]
pub struct Answer {
    pub approve: bool,
    pub by: Arc<str>,
    pub comment: Option<Arc<str>>,
    /// What was filled into the gate's form.
    pub data: Option<Value>,
    /// Of what was shown; none answers whatever is.
    pub digest: Option<Arc<str>>,
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

/// Why an event changed nothing. The caller of a command is told; a repeated delivery is simply done.
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
    #[error("the answer is for something else than what is asked now: look again and answer that")]
    OtherDigest,
    #[error("the timer is not due yet")]
    NotDue,
    #[error("a message for this step was already received")]
    Repeated,
}
