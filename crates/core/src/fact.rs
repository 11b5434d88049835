//! The planner's decisions as the log stores them. A run's state is the fold of its facts; nothing else changes it.
//!
//! In memory a fact refers to steps by number and to handles by [`Exit`]. In the log it refers to both by name, which
//! stays valid when the program changes. [`Fact::map`] converts between the two.

use crate::event::Failure;
use crate::run::{At, Exit, RunStatus, Status};
use crate::time::{Millis, Time};
use crate::value::ValueId;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Fact<S = At, E = Exit> {
    Created {
        input: ValueId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        headers: Option<ValueId>,
        /// The query string of the call that started the run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        query: Option<ValueId>,
        by: Arc<str>,
        /// What the client called itself that asked for the run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client: Option<Arc<str>>,
        seed: u64,
        max_duration: Millis,
    },
    /// The run begins at this time and not before.
    Scheduled {
        due: Time,
    },
    /// The time of a scheduled run has come: it is queued.
    Due,
    /// The run left the queue.
    Started {
        expires: Time,
        /// What the definition's `vars` came to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        vars: Option<ValueId>,
    },
    /// The step was entered and now waits for something.
    Entered {
        step: S,
        attempt: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<ValueId>,
        #[serde(flatten)]
        wait: Wait,
    },
    /// An attempt ended without success and another will follow at `due`.
    Retrying {
        step: S,
        attempt: u32,
        due: Time,
        failure: Failure,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<Output>,
        /// Progress that the next attempt resumes from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<ValueId>,
    },
    /// Another attempt begins.
    Again {
        step: S,
        attempt: u32,
        reason: Reason,
        /// The deadline of the child run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Time>,
    },
    /// The call is not made, or does not continue, until someone approves it.
    Held {
        step: S,
        attempt: u32,
        ask: ValueId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Time>,
        /// Progress that the next attempt resumes from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<ValueId>,
    },
    /// Whether the call happened is unknown; a person has to decide.
    Unsure {
        step: S,
        attempt: u32,
    },
    /// A loop started a pass, or a for_each an item.
    Opened {
        step: S,
        index: u32,
    },
    Closed {
        step: S,
        index: u32,
        end: End,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<ValueId>,
    },
    Finished {
        step: S,
        attempt: u32,
        status: Status,
        exit: E,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<Output>,
        /// The value of the step's `ctx` variable.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        variable: Option<ValueId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<Failure>,
    },
    Skipped {
        step: S,
        exit: E,
        reason: SkipReason,
    },
    /// A message arrived before its step was entered and is kept for it.
    Kept {
        step: S,
        message: ValueId,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        truncated: bool,
    },
    /// One of several people approved.
    Approved {
        step: S,
        by: Arc<str>,
        answer: ValueId,
    },
    /// An approver changed a held call. The request is a new one, and approvals of the earlier one do not count.
    Changed {
        step: S,
        by: Arc<str>,
        ask: ValueId,
        input: ValueId,
    },
    Escalated {
        step: S,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Time>,
    },
    /// A user set the step's outcome, instead of what the step was waiting for.
    Overridden {
        step: S,
        attempt: u32,
        by: Arc<str>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        comment: Option<Arc<str>>,
    },
    /// The run ended. Steps that had not ended are cancelled.
    Ended {
        status: RunStatus,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<ValueId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<Failure>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Arc<str>>,
    },
    /// A finished run resumes: the steps in `reset` are idle again, the scopes in `reopened` are open again.
    Retried {
        by: Arc<str>,
        /// The user whose permissions limit the run from now on, in addition to earlier limits.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        acts: Option<Arc<str>>,
        expires: Time,
        reset: Vec<S>,
        reopened: Vec<S>,
        /// Set if they had not been computed before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        vars: Option<ValueId>,
    },
    /// A finished run resumes under a newer definition. Only the steps in `stands` keep their results.
    Adopted {
        by: Arc<str>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        acts: Option<Arc<str>>,
        expires: Time,
        version: u32,
        max_duration: Millis,
        stands: Vec<S>,
        /// Set if the newer definition has other `vars`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        vars: Option<ValueId>,
    },
}

/// A call's result, as value numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Output {
    pub body: ValueId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<ValueId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_code: Option<u16>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<ValueId>,
}

/// What an entered step waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "wait", rename_all = "snake_case")]
pub enum Wait {
    Executor,
    Sleep {
        until: Time,
    },
    Webhook {
        until: Option<Time>,
    },
    Gate {
        until: Option<Time>,
        escalate: Option<Time>,
    },
    Child {
        until: Option<Time>,
    },
    /// A loop or for_each; `count` is the number of items.
    Scope {
        count: Option<u32>,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    Retry,
    WorkerLost,
    /// The node stopped in an orderly way before the attempt had ended.
    WorkerStopped,
    /// A person decided that the call did not happen.
    Asked,
    /// The call was held until someone approved it.
    Approved,
    /// The attempt was deferred.
    Deferred,
}

/// How an instance of a scope ended (rule R4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    Success,
    Denied,
    Failed,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// Its `if` was false.
    Condition,
    /// No edge to it was taken.
    NotTaken,
    /// An upstream step failed and nothing handled the failure.
    UpstreamFailed,
}

impl<S, E> Fact<S, E> {
    /// Converts the step and exit names of the fact.
    pub fn map<S2, E2>(self, names: &mut impl Names<S, E, S2, E2>) -> Result<Fact<S2, E2>, S> {
        Ok(match self {
            Fact::Created { input, headers, query, by, client, seed, max_duration } => {
                Fact::Created { input, headers, query, by, client, seed, max_duration }
            }
            Fact::Scheduled { due } => Fact::Scheduled { due },
            Fact::Due => Fact::Due,
            Fact::Started { expires, vars } => Fact::Started { expires, vars },
            Fact::Entered { step, attempt, input, wait } => {
                Fact::Entered { step: names.step(step)?, attempt, input, wait }
            }
            Fact::Retrying { step, attempt, due, failure, output, note } => {
                Fact::Retrying { step: names.step(step)?, attempt, due, failure, output, note }
            }
            Fact::Again { step, attempt, reason, until } => {
                Fact::Again { step: names.step(step)?, attempt, reason, until }
            }
            Fact::Held { step, attempt, ask, until, note } => {
                Fact::Held { step: names.step(step)?, attempt, ask, until, note }
            }
            Fact::Unsure { step, attempt } => Fact::Unsure { step: names.step(step)?, attempt },
            Fact::Opened { step, index } => Fact::Opened { step: names.step(step)?, index },
            Fact::Closed { step, index, end, result } => Fact::Closed { step: names.step(step)?, index, end, result },
            Fact::Finished { step, attempt, status, exit, output, variable, failure } => {
                let (step, exit) = names.exit(step, exit)?;
                Fact::Finished { step, attempt, status, exit, output, variable, failure }
            }
            Fact::Skipped { step, exit, reason } => {
                let (step, exit) = names.exit(step, exit)?;
                Fact::Skipped { step, exit, reason }
            }
            Fact::Kept { step, message, truncated } => Fact::Kept { step: names.step(step)?, message, truncated },
            Fact::Approved { step, by, answer } => Fact::Approved { step: names.step(step)?, by, answer },
            Fact::Changed { step, by, ask, input } => Fact::Changed { step: names.step(step)?, by, ask, input },
            Fact::Escalated { step, until } => Fact::Escalated { step: names.step(step)?, until },
            Fact::Overridden { step, attempt, by, comment } => {
                Fact::Overridden { step: names.step(step)?, attempt, by, comment }
            }
            Fact::Ended { status, output, failure, by } => Fact::Ended { status, output, failure, by },
            Fact::Retried { by, acts, expires, reset, reopened, vars } => {
                Fact::Retried { by, acts, expires, reset: all(reset, names)?, reopened: all(reopened, names)?, vars }
            }
            Fact::Adopted { by, acts, expires, version, max_duration, stands, vars } => {
                Fact::Adopted { by, acts, expires, version, max_duration, stands: all(stands, names)?, vars }
            }
        })
    }

    /// The step the fact is about, if any.
    pub fn step(&self) -> Option<&S> {
        match self {
            Fact::Entered { step, .. }
            | Fact::Retrying { step, .. }
            | Fact::Again { step, .. }
            | Fact::Held { step, .. }
            | Fact::Unsure { step, .. }
            | Fact::Opened { step, .. }
            | Fact::Closed { step, .. }
            | Fact::Finished { step, .. }
            | Fact::Skipped { step, .. }
            | Fact::Kept { step, .. }
            | Fact::Approved { step, .. }
            | Fact::Changed { step, .. }
            | Fact::Escalated { step, .. }
            | Fact::Overridden { step, .. } => Some(step),
            Fact::Created { .. }
            | Fact::Scheduled { .. }
            | Fact::Due
            | Fact::Started { .. }
            | Fact::Ended { .. }
            | Fact::Retried { .. }
            | Fact::Adopted { .. } => None,
        }
    }
}

/// Translates names for [`Fact::map`]. A step without a counterpart is returned as the error.
pub trait Names<S, E, S2, E2> {
    fn step(&mut self, step: S) -> Result<S2, S>;
    fn exit(&mut self, step: S, exit: E) -> Result<(S2, E2), S>;
}

fn all<S, E, S2, E2>(steps: Vec<S>, names: &mut impl Names<S, E, S2, E2>) -> Result<Vec<S2>, S> {
    steps.into_iter().map(|step| names.step(step)).collect()
}
