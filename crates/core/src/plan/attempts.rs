//! Events of a step that is under way: results, retries, timers, messages.

use super::{Abandon, Effect, Planner};
use crate::event::{Deferral, Failure, FailureKind, Ignored, Outcome, Reply, Timer, TimerKind, Verdict};
use crate::fact::{Fact, Reason};
use crate::graph::{Kind, OnUnknown, Retry, RetryOn};
use crate::limits;
use crate::run::{At, Phase, RunStatus, Status};
use crate::time::Time;
use serde_json::Value;
use std::sync::Arc;

/// Failure codes of a deferred attempt: deferred before the call was made, or after it started work that is still under
/// way.
pub const DEFERRED: &str = "deferred";
pub const UNDER_WAY: &str = "under_way";
/// Deferred because the callee is not there yet.
pub const NOT_THERE: &str = "not_there";

/// An outcome that a user set for a step.
pub(super) struct Override {
    pub outcome: Outcome,
    pub by: Arc<str>,
    pub comment: Option<Arc<str>>,
}

impl Planner<'_> {
    pub(super) fn attempt_ended(&mut self, at: At, outcome: Outcome) {
        match outcome {
            Outcome::Success(reply) => self.succeed(at, reply),
            Outcome::Failure { failure, reply } => self.attempt_failed(at, failure, reply),
        }
    }

    fn attempt_failed(&mut self, at: At, failure: Failure, reply: Option<Reply>) {
        // The callee may still work on it, or wait for an answer.
        if failure.kind == FailureKind::Timeout {
            self.abandon(at, Abandon::Over);
        }
        let def = &self.graph.step(at.step).def;
        let at_most_once = self.at_most_once(at);
        if at_most_once.is_some() && failure.may_have_happened {
            return self.outcome_unknown(at);
        }
        let state = self.state(at);
        let used = state.attempt - state.uncounted;
        let again = at_most_once.is_none() && used < def.retry.attempts && worth_retrying(&def.retry, &failure, &reply);
        if !again {
            let status = if failure.kind == FailureKind::Timeout { Status::Timeout } else { Status::Failed };
            return self.fail(at, status, failure, reply);
        }
        let salt = self.run.seed ^ (u64::from(at.instance) << 32 | u64::from(at.step.0));
        let asked = failure.retry_after.unwrap_or_default().min(limits::MAX_RETRY_AFTER);
        let pause = def.retry.pause(used, salt).max(asked);
        let due = self.env.now + pause;
        let attempt = state.attempt;
        let output = reply.map(|reply| self.add_reply(reply));
        self.fact(Fact::Retrying { step: at, attempt, due, failure, output, note: None });
        self.set_timer(Some(at), TimerKind::Retry, due);
    }

    /// Defers the attempt, which does not count. The next one is at `due` and resumes from the note, if there is one.
    pub(super) fn defer(&mut self, at: At, due: Time, why: Deferral, note: Option<Arc<Value>>) {
        let attempt = self.state(at).attempt;
        let failure = match why {
            Deferral::RateLimit => Failure::retryable(DEFERRED, "the rate limit for such calls is reached"),
            Deferral::UnderWay(None) => {
                Failure::retryable(UNDER_WAY, "the callee accepted the task and is still working on it")
            }
            Deferral::UnderWay(Some(status)) => {
                Failure::retryable(UNDER_WAY, format!("the callee is still working on it: {status}"))
            }
            Deferral::Unavailable(why) => Failure::retryable(NOT_THERE, why),
        };
        let note = note.map(|note| self.add(Arc::unwrap_or_clone(note)));
        self.fact(Fact::Retrying { step: at, attempt, due, failure, output: None, note });
        self.set_timer(Some(at), TimerKind::Retry, due);
    }

    /// Tells the callee that the suspended call of an active step is over, if there is one.
    pub(super) fn abandon(&mut self, at: At, reason: Abandon) {
        let state = self.state(at);
        let note = state.more.as_ref().and_then(|more| more.note).filter(|_| state.phase.is_active());
        if let Some(note) = note {
            let attempt = state.attempt;
            self.out.effects.push(Effect::Abandon { at, attempt, note, reason });
        }
    }

    pub(super) fn lost(&mut self, at: At, stopped: bool) {
        let state = self.state(at);
        if self.at_most_once(at).is_some() {
            self.outcome_unknown(at);
        } else if stopped {
            self.again(at, Reason::WorkerStopped);
        } else if state.losses.saturating_add(1) >= self.env.max_losses {
            // It may be what ends the nodes.
            let attempt = state.attempt;
            self.fact(Fact::Unsure { step: at, attempt });
        } else {
            self.again(at, Reason::WorkerLost);
        }
    }

    /// Set if the call must not be made twice, according to the step's definition or to a policy.
    fn at_most_once(&self, at: At) -> Option<OnUnknown> {
        let def = &self.graph.step(at.step).def;
        let Kind::Call { call, .. } = &def.kind else { return def.at_most_once };
        let input = || self.run.values.get(self.state(at).input?);
        def.at_most_once.or_else(|| (self.env.at_most_once)(call.name(), input()?))
    }

    fn outcome_unknown(&mut self, at: At) {
        match self.at_most_once(at) {
            Some(OnUnknown::Ask) => {
                let attempt = self.state(at).attempt;
                self.fact(Fact::Unsure { step: at, attempt });
            }
            Some(OnUnknown::Fail) | None => {
                let message = "the call may or may not have happened, and must not be made twice";
                self.fail(at, Status::Failed, Failure::new("outcome_unknown", message), None);
            }
        }
    }

    pub(super) fn again(&mut self, at: At, reason: Reason) {
        let attempt = self.state(at).attempt + 1;
        let def = &self.graph.step(at.step).def;
        let child = matches!(def.kind, Kind::Child { .. });
        let until = def.timeout.filter(|_| child).map(|timeout| self.env.now + timeout);
        self.fact(Fact::Again { step: at, attempt, reason, until });
        if child {
            self.out.effects.push(Effect::StartChild { at, attempt });
            until.iter().for_each(|due| self.set_timer(Some(at), TimerKind::Timeout, *due));
        } else {
            self.out.effects.push(Effect::Dispatch { at, attempt });
        }
    }

    pub(super) fn timer(&mut self, timer: Timer) -> Result<(), Ignored> {
        let Some(at) = timer.at else {
            return match timer.kind {
                TimerKind::Continue => self.go_on(timer),
                TimerKind::Begin => self.due(),
                _ => self.expire(timer),
            };
        };
        let phases: &[Phase] = match timer.kind {
            TimerKind::Wake => &[Phase::Sleeping],
            TimerKind::Retry => &[Phase::Backoff],
            TimerKind::Timeout => &[Phase::Webhook, Phase::Gate, Phase::Child],
            TimerKind::Escalate => &[Phase::Gate],
            TimerKind::Expire | TimerKind::Continue | TimerKind::Begin => &[],
        };
        self.expect(at, Some(timer.attempt), phases)?;
        let state = self.state(at);
        let due = match timer.kind {
            TimerKind::Escalate => state.more.as_ref().and_then(|more| more.escalate),
            TimerKind::Wake
            | TimerKind::Retry
            | TimerKind::Timeout
            | TimerKind::Expire
            | TimerKind::Continue
            | TimerKind::Begin => state.due,
        };
        if due.ok_or(Ignored::NotWaiting)? > self.env.now {
            return Err(Ignored::NotDue);
        }
        match timer.kind {
            TimerKind::Wake | TimerKind::Retry => self.wake(at),
            TimerKind::Timeout => self.timed_out(at),
            TimerKind::Escalate => {
                let until = self.state(at).due;
                self.fact(Fact::Escalated { step: at, until });
            }
            TimerKind::Expire | TimerKind::Continue | TimerKind::Begin => {}
        }
        Ok(())
    }

    /// Makes the decisions that are left, if there are any.
    fn go_on(&self, timer: Timer) -> Result<(), Ignored> {
        match self.run.status {
            RunStatus::New | RunStatus::Scheduled | RunStatus::Queued => Err(Ignored::NotStarted),
            RunStatus::Running if timer.attempt != self.run.generation => Err(Ignored::StaleAttempt),
            RunStatus::Running if !self.run.has_decisions_left() => Err(Ignored::NotWaiting),
            RunStatus::Running => Ok(()),
            _ => Err(Ignored::RunFinished),
        }
    }

    fn expire(&mut self, timer: Timer) -> Result<(), Ignored> {
        match self.run.status {
            RunStatus::Running if timer.kind == TimerKind::Expire && timer.attempt == self.run.generation => {}
            RunStatus::New | RunStatus::Scheduled | RunStatus::Queued => return Err(Ignored::NotStarted),
            RunStatus::Running => return Err(Ignored::StaleAttempt),
            _ => return Err(Ignored::RunFinished),
        }
        if self.run.expires.is_some_and(|expires| expires > self.env.now) {
            return Err(Ignored::NotDue);
        }
        let message = format!("the run took longer than {}", self.run.max_duration);
        self.end_run(RunStatus::Timeout, Some(Failure::new("timeout", message)), None);
        Ok(())
    }

    /// Ends a sleep or a retry delay.
    pub(super) fn wake(&mut self, at: At) {
        if self.state(at).phase == Phase::Backoff {
            let deferred = self.state(at).is_deferred();
            self.again(at, if deferred { Reason::Deferred } else { Reason::Retry });
        } else {
            self.succeed(at, Reply::default());
        }
    }

    fn timed_out(&mut self, at: At) {
        let graph = self.graph;
        let (phase, attempt) = (self.state(at).phase, self.state(at).attempt);
        match phase {
            Phase::Gate => self.gate_timed_out(at),
            Phase::Child => {
                self.out.effects.push(Effect::CancelChild { at, attempt });
                let after = graph.step(at.step).def.timeout.unwrap_or_default();
                self.attempt_failed(at, Failure::timeout(after), None);
            }
            _ => {
                let failure = Failure::new("timeout", "no call arrived in time");
                self.fail(at, Status::Timeout, failure, None);
            }
        }
    }

    pub(super) fn deliver(&mut self, at: At, reply: Reply) -> Result<(), Ignored> {
        self.expect(at, None, &[Phase::Webhook, Phase::Idle])?;
        if !matches!(self.graph.step(at.step).def.kind, Kind::Webhook { .. }) {
            return Err(Ignored::NotWaiting);
        }
        if self.state(at).phase == Phase::Webhook {
            self.clear_timers(at);
            self.succeed(at, reply);
            return Ok(());
        }
        if !self.run.is_open(self.graph, at.instance) {
            return Err(Ignored::UnknownStep);
        }
        if self.state(at).mail().is_some() {
            return Err(Ignored::Repeated);
        }
        let message = self.add(reply.body);
        self.fact(Fact::Kept { step: at, message, truncated: reply.truncated });
        Ok(())
    }

    /// Ends the step with the outcome that a user set, whatever it is doing.
    pub(super) fn override_outcome(&mut self, at: At, Override { outcome, by, comment }: Override) {
        let (phase, attempt) = (self.state(at).phase, self.state(at).attempt);
        self.clear_timers(at);
        match phase {
            Phase::Running => self.out.effects.push(Effect::Abort { at, attempt }),
            Phase::Child => self.out.effects.push(Effect::CancelChild { at, attempt }),
            _ => {}
        }
        self.abandon(at, Abandon::Over);
        self.fact(Fact::Overridden { step: at, attempt, by, comment });
        match outcome {
            Outcome::Success(reply) => self.succeed(at, reply),
            Outcome::Failure { failure, reply } => self.fail(at, Status::Failed, failure, reply),
        }
    }

    pub(super) fn verdict(&mut self, at: At, verdict: Verdict, by: &str) {
        match verdict {
            Verdict::Happened { body } => self.succeed(at, Reply::body(body)),
            Verdict::RunAgain => self.again(at, Reason::Asked),
            Verdict::Fail => {
                let code = if self.state(at).is_quarantined() { "worker_lost" } else { "outcome_unknown" };
                let failure = Failure::new(code, format!("declared failed by {by}"));
                self.fail(at, Status::Failed, failure, None);
            }
        }
    }
}

fn worth_retrying(retry: &Retry, failure: &Failure, reply: &Option<Reply>) -> bool {
    if failure.is_refusal() {
        return false;
    }
    if retry.on.is_empty() {
        return failure.retryable;
    }
    let status = reply.as_ref().and_then(|reply| reply.status_code);
    retry.on.iter().any(|on| match on {
        RetryOn::Any => true,
        RetryOn::Timeout => failure.kind == FailureKind::Timeout,
        RetryOn::Network => failure.kind == FailureKind::Network,
        RetryOn::Status(code) => status == Some(*code),
        RetryOn::StatusClass(class) => status.is_some_and(|code| code / 100 == *class),
    })
}
