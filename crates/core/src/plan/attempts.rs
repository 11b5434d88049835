//! What happens to a step while it waits: results, retries, timers, messages, answers.

use super::{Effect, Planner};
use crate::event::{Answer, Failure, FailureKind, Ignored, Outcome, Reply, Timer, TimerKind, Verdict};
use crate::fact::{Fact, Reason};
use crate::graph::{Gate, Kind, OnTimeout, OnUnknown, Retry, RetryOn};
use crate::limits;
use crate::run::{At, Phase, RunStatus, Status};
use serde_json::{Value, json};
use std::sync::Arc;

impl Planner<'_> {
    pub(super) fn attempt_ended(&mut self, at: At, outcome: Outcome) {
        match outcome {
            Outcome::Success(reply) => self.succeed(at, reply),
            Outcome::Failure { failure, reply } => self.attempt_failed(at, failure, reply),
        }
    }

    fn attempt_failed(&mut self, at: At, failure: Failure, reply: Option<Reply>) {
        let def = &self.graph.step(at.step).def;
        if def.at_most_once.is_some() && failure.may_have_happened {
            return self.outcome_unknown(at);
        }
        let state = self.state(at);
        let used = state.attempt - state.uncounted;
        let again =
            def.at_most_once.is_none() && used < def.retry.attempts && worth_retrying(&def.retry, &failure, &reply);
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
        self.fact(Fact::Retrying { step: at, attempt, due, failure, output });
        self.set_timer(Some(at), TimerKind::Retry, due);
    }

    pub(super) fn lost(&mut self, at: At) {
        let state = self.state(at);
        if self.graph.step(at.step).def.at_most_once.is_some() {
            self.outcome_unknown(at);
        } else if state.losses >= limits::MAX_LOSSES {
            let message = format!("its node was lost {} times in a row", limits::MAX_LOSSES + 1);
            self.fail(at, Status::Failed, Failure::new("worker_lost", message), None);
        } else {
            self.again(at, Reason::WorkerLost);
        }
    }

    fn outcome_unknown(&mut self, at: At) {
        match self.graph.step(at.step).def.at_most_once {
            Some(OnUnknown::Ask) => {
                let attempt = self.state(at).attempt;
                self.fact(Fact::Unsure { step: at, attempt });
            }
            Some(OnUnknown::Fail) | None => {
                let message = "the call may or may not have happened, and may not be made twice";
                self.fail(at, Status::Failed, Failure::new("outcome_unknown", message), None);
            }
        }
    }

    fn again(&mut self, at: At, reason: Reason) {
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
        let Some(at) = timer.at else { return self.expire(timer) };
        let phases: &[Phase] = match timer.kind {
            TimerKind::Wake => &[Phase::Sleeping],
            TimerKind::Retry => &[Phase::Backoff],
            TimerKind::Timeout => &[Phase::Webhook, Phase::Gate, Phase::Child],
            TimerKind::Escalate => &[Phase::Gate],
            TimerKind::Expire => &[],
        };
        self.expect(at, Some(timer.attempt), phases)?;
        let state = self.state(at);
        let due = match timer.kind {
            TimerKind::Escalate => state.more.as_ref().and_then(|more| more.escalate),
            TimerKind::Wake | TimerKind::Retry | TimerKind::Timeout | TimerKind::Expire => state.due,
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
            TimerKind::Expire => {}
        }
        Ok(())
    }

    fn expire(&mut self, timer: Timer) -> Result<(), Ignored> {
        match self.run.status {
            RunStatus::Running if timer.kind == TimerKind::Expire && timer.attempt == self.run.generation => {}
            RunStatus::New | RunStatus::Queued => return Err(Ignored::NotStarted),
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

    /// Ends a sleep, or a pause between attempts.
    pub(super) fn wake(&mut self, at: At) {
        if self.state(at).phase == Phase::Backoff {
            self.again(at, Reason::Retry);
        } else {
            self.succeed(at, Reply::default());
        }
    }

    fn timed_out(&mut self, at: At) {
        let graph = self.graph;
        let (phase, attempt) = (self.state(at).phase, self.state(at).attempt);
        match (phase, &graph.step(at.step).def.kind) {
            (Phase::Gate, Kind::Gate(gate)) => self.gate_timed_out(at, gate),
            (Phase::Child, _) => {
                self.out.effects.push(Effect::CancelChild { at, attempt });
                let after = graph.step(at.step).def.timeout.unwrap_or_default();
                self.attempt_failed(at, Failure::timeout(after), None);
            }
            _ => {
                let failure = Failure::new("timeout", "no call came in time");
                self.fail(at, Status::Timeout, failure, None);
            }
        }
    }

    fn gate_timed_out(&mut self, at: At, gate: &Gate) {
        self.clear_escalation(at);
        match gate.on_timeout {
            OnTimeout::Approve => self.approved(at, json!({"decision": "approved", "reason": "expired"})),
            OnTimeout::Deny => {
                let failure = Failure::new("expired", "nobody answered in time");
                let reply = Reply::body(json!({"decision": "denied", "reason": "expired"}));
                self.fail(at, Status::Denied, failure, Some(reply));
            }
        }
    }

    /// The timeout has fired; only the escalation can still be set.
    fn clear_escalation(&mut self, at: At) {
        let state = self.state(at);
        if state.more.as_ref().is_some_and(|more| more.escalate.is_some()) {
            let timer = Timer { kind: TimerKind::Escalate, at: Some(at), attempt: state.attempt };
            self.out.effects.push(Effect::ClearTimer { timer });
        }
    }

    pub(super) fn deliver(&mut self, at: At, body: Arc<Value>) -> Result<(), Ignored> {
        self.expect(at, None, &[Phase::Webhook, Phase::Idle])?;
        if !matches!(self.graph.step(at.step).def.kind, Kind::Webhook { .. }) {
            return Err(Ignored::NotWaiting);
        }
        if self.state(at).phase == Phase::Webhook {
            self.clear_timers(at);
            self.succeed(at, Reply { body, ..Reply::default() });
            return Ok(());
        }
        if !self.run.is_open(self.graph, at.instance) {
            return Err(Ignored::UnknownStep);
        }
        if self.state(at).mail().is_some() {
            return Err(Ignored::Repeated);
        }
        let message = self.add(body);
        self.fact(Fact::Kept { step: at, message });
        Ok(())
    }

    pub(super) fn answer(&mut self, at: At, answer: Answer) -> Result<(), Ignored> {
        let graph = self.graph;
        let Kind::Gate(gate) = &graph.step(at.step).def.kind else { return Err(Ignored::NotWaiting) };
        let earlier = self.state(at).more.as_ref().map(|more| more.approvals.clone()).unwrap_or_default();
        if answer.approve && earlier.iter().any(|(by, _)| *by == answer.by) {
            return Err(Ignored::Repeated);
        }
        let said = json!({"by": answer.by, "comment": answer.comment, "data": answer.data});
        if !answer.approve {
            self.clear_timers(at);
            let message = match &answer.comment {
                Some(comment) => format!("denied by {}: {comment}", answer.by),
                None => format!("denied by {}", answer.by),
            };
            let reply = Reply::body(decided("denied", said, Vec::new()));
            self.fail(at, Status::Denied, Failure::new("denied", message), Some(reply));
        } else if (earlier.len() as u32 + 1) < gate.approvals {
            let said = self.add(said);
            self.fact(Fact::Approved { step: at, by: answer.by, answer: said });
        } else {
            let value = |(_, id): &(Arc<str>, _)| self.run.values.get(*id).cloned().unwrap_or_default();
            let others = earlier.iter().map(value).collect();
            self.clear_timers(at);
            self.approved(at, decided("approved", said, others));
        }
        Ok(())
    }

    pub(super) fn approved(&mut self, at: At, body: Value) {
        let def = &self.graph.step(at.step).def;
        if def.branches.is_empty() {
            return self.succeed(at, Reply::body(body));
        }
        // A branch compares the bare word; the details stay in the body.
        match self.branch(at, &Value::String("approved".into()), false) {
            Ok(Some(handle)) => self.finish_success(at, Reply::body(body), crate::run::Exit::Took(handle)),
            Ok(None) => {
                let failure = Failure::new("no_branch", "no branch matches the result approved");
                self.fail(at, Status::Failed, failure, Some(Reply::body(body)));
            }
            Err(failure) => self.fail(at, Status::TemplateError, failure, Some(Reply::body(body))),
        }
    }

    /// Ends the step as someone says, whatever it is doing.
    pub(super) fn overrule(&mut self, at: At, outcome: Outcome, (by, comment): (Arc<str>, Option<Arc<str>>)) {
        let (phase, attempt) = (self.state(at).phase, self.state(at).attempt);
        self.clear_timers(at);
        match phase {
            Phase::Running => self.out.effects.push(Effect::Abort { at, attempt }),
            Phase::Child => self.out.effects.push(Effect::CancelChild { at, attempt }),
            _ => {}
        }
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
                let failure = Failure::new("outcome_unknown", format!("declared failed by {by}"));
                self.fail(at, Status::Failed, failure, None);
            }
        }
    }
}

/// A gate's body: the answer that decided it, and those of the others who approved before.
fn decided(decision: &str, said: Value, others: Vec<Value>) -> Value {
    let mut body = said;
    body["decision"] = decision.into();
    if !others.is_empty() {
        body["others"] = Value::Array(others);
    }
    body
}

fn worth_retrying(retry: &Retry, failure: &Failure, reply: &Option<Reply>) -> bool {
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
