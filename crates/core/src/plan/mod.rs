//! Decides what a run does next. Pure: no clock, no I/O, no randomness.
//!
//! [`advance`] takes one event and returns the [`Transition`] it causes, already applied to the run. The engine commits
//! it in one store transaction before acting on it; if the commit is refused, it discards the run and loads it again.
//! Events arrive at least once and out of order: a stale or repeated event changes nothing and is returned as
//! [`Ignored`].
//!
//! This folder implements rules R1–R7: starting steps (`start`), ending them (`finish`), loops and for_each (`scopes`),
//! events (here and in `attempts`), gates (`gates`, `covered`), retrying runs (`retry`, `newer`).
//!
//! Not here: bookkeeping (`run`), claims and clocks (`engine`), SQL (`store`).

mod attempts;
mod budget;
mod covered;
mod finish;
mod gates;
mod newer;
mod retry;
mod scopes;
mod start;
mod vars;

use attempts::Override;
pub use attempts::{DEFERRED, NOT_THERE, UNDER_WAY};
pub use budget::{Budget, Spent};
pub use newer::{Newer, Standing, retry_onto, standing};
pub use retry::retry_standing;

use crate::event::{Event, Failure, Ignored, Reply, Timer, TimerKind};
use crate::expr::Val;
use crate::fact::{Fact, Output, Wait};
use crate::graph::{Graph, OnUnknown};
use crate::limits;
use crate::run::{At, Decision, Phase, Run, RunStatus, View};
use crate::time::Time;
use crate::value::{Payload, ValueId, weight};
use serde_json::Value;
use std::cell::Cell;
use std::sync::Arc;

/// The inputs of a decision that come from outside the run.
#[derive(Clone, Copy)]
pub struct Env<'a> {
    pub now: Time,
    /// The URL of a wait step, by its path.
    pub callback: &'a dyn Fn(&str) -> String,
    /// The version of the workflow: an approval is valid for one version.
    pub version: u32,
    /// Whether a policy forbids making a call twice, by its kind and input, though its step does not.
    pub at_most_once: &'a dyn Fn(&str, &Value) -> Option<OnUnknown>,
    /// What the transition may cost.
    pub budget: Budget,
    /// How many times in a row the node of a step may be lost before a person has to decide.
    pub max_losses: u8,
}

impl<'a> Env<'a> {
    /// An environment without policies, versions, budgets and quarantine.
    pub fn plain(now: Time, callback: &'a dyn Fn(&str) -> String) -> Env<'a> {
        let budget = Budget::UNLIMITED;
        Env { now, callback, version: 0, at_most_once: &|_, _| None, budget, max_losses: u8::MAX }
    }
}

/// The consequences of one event: facts for the log, new payloads, and effects to carry out once both are committed.
#[derive(Clone, Default, Debug)]
pub struct Transition {
    pub facts: Vec<Fact>,
    pub values: Vec<(ValueId, Payload)>,
    pub effects: Vec<Effect>,
    /// Steps whose state changed, for callers that keep a row per step. May contain a step twice.
    pub touched: Vec<At>,
    pub spent: Spent,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Hand the step's input to an executor.
    Dispatch {
        at: At,
        attempt: u32,
    },
    /// Stop an attempt that no longer counts.
    Abort {
        at: At,
        attempt: u32,
    },
    SetTimer {
        timer: Timer,
        due: Time,
    },
    ClearTimer {
        timer: Timer,
    },
    StartChild {
        at: At,
        attempt: u32,
    },
    CancelChild {
        at: At,
        attempt: u32,
    },
    /// Tell the callee that what a suspended call left there is no longer awaited.
    Abandon {
        at: At,
        attempt: u32,
        note: ValueId,
        reason: Abandon,
    },
}

/// Why a suspended call is no longer awaited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Abandon {
    /// A user denied the question that the callee asked.
    Denied,
    /// The step ended in another way: its run ended, or its time was up.
    Over,
}

impl Transition {
    /// Appends the transition of a later event, so that several events share one commit. The caller carries out the
    /// effects in order and drops a timer or child that was created and removed in between.
    pub fn absorb(&mut self, later: Transition) {
        self.facts.extend(later.facts);
        self.values.extend(later.values);
        self.effects.extend(later.effects);
        self.touched.extend(later.touched);
        self.spent.add(later.spent);
    }
}

/// Handles an event and makes the decisions that follow, as far as the budget goes. If some are left, the transition
/// sets a [`TimerKind::Continue`] timer; firing it at any time, early or again, makes the run go on.
pub fn advance(graph: &Graph, run: &mut Run, event: Event, env: Env) -> Result<Transition, Ignored> {
    let timer = continuation(run);
    let fires = matches!(event, Event::Timer(Timer { kind: TimerKind::Continue, .. }));
    let armed = run.has_decisions_left() && !fires;
    let mut planner = Planner::new(graph, run, env);
    planner.handle(event)?;
    Ok(planner.decide(armed.then_some(timer)))
}

/// The timer that continues a run with decisions left.
fn continuation(run: &Run) -> Timer {
    Timer { kind: TimerKind::Continue, at: None, attempt: run.generation }
}

pub(crate) struct Planner<'a> {
    graph: &'a Graph,
    run: &'a mut Run,
    env: Env<'a>,
    out: Transition,
    /// Bytes that expressions and templates have read or copied.
    work: Cell<u64>,
}

impl<'a> Planner<'a> {
    fn new(graph: &'a Graph, run: &'a mut Run, env: Env<'a>) -> Planner<'a> {
        Planner { graph, run, env, out: Transition::default(), work: Cell::new(0) }
    }

    fn handle(&mut self, event: Event) -> Result<(), Ignored> {
        match event {
            Event::Triggered { body, headers, query, by, queued } => {
                self.trigger(body, [headers, query], by)?;
                if queued { Ok(()) } else { self.admit() }
            }
            Event::Admitted => self.admit(),
            Event::Scheduled { at } => self.schedule(at),
            Event::Reported { at, attempt, outcome } => {
                self.expect(at, Some(attempt), &[Phase::Running])?;
                self.attempt_ended(at, outcome);
                Ok(())
            }
            Event::Held { at, attempt, ask, timeout, note } => {
                self.expect(at, Some(attempt), &[Phase::Running])?;
                self.hold(at, ask, timeout, note);
                Ok(())
            }
            Event::Deferred { at, attempt, due, why, note } => {
                self.expect(at, Some(attempt), &[Phase::Running])?;
                self.defer(at, due, why, note);
                Ok(())
            }
            Event::Lost { at, attempt, stopped } => {
                self.expect(at, Some(attempt), &[Phase::Running])?;
                self.lost(at, stopped);
                Ok(())
            }
            Event::Timer(timer) => self.timer(timer),
            Event::Delivered { at, body, truncated } => self.deliver(at, Reply { body, truncated, ..Reply::default() }),
            Event::Answered { at, attempt, answer } => {
                self.expect(at, Some(attempt), &[Phase::Gate])?;
                self.answer(at, answer)
            }
            Event::ChildEnded { at, attempt, outcome } => {
                self.expect(at, Some(attempt), &[Phase::Child])?;
                self.clear_timers(at);
                self.attempt_ended(at, outcome);
                Ok(())
            }
            Event::Woken { at, attempt, .. } => {
                self.expect(at, Some(attempt), &[Phase::Sleeping, Phase::Backoff])?;
                self.clear_timers(at);
                self.wake(at);
                Ok(())
            }
            Event::Settled { at, attempt, verdict, by } => {
                self.expect(at, Some(attempt), &[Phase::Unsure])?;
                self.verdict(at, verdict, &by);
                Ok(())
            }
            Event::Overridden { at, attempt, outcome, by, comment } => {
                let stuck =
                    [Phase::Running, Phase::Backoff, Phase::Sleeping, Phase::Webhook, Phase::Child, Phase::Unsure];
                self.expect(at, Some(attempt), &stuck)?;
                self.override_outcome(at, Override { outcome, by, comment });
                Ok(())
            }
            Event::Cancelled { by, reason } => {
                match self.run.status {
                    RunStatus::New => return Err(Ignored::NotStarted),
                    RunStatus::Scheduled | RunStatus::Queued | RunStatus::Running => {}
                    _ => return Err(Ignored::RunFinished),
                }
                let message = reason.unwrap_or_else(|| "cancelled".into());
                self.end_run(RunStatus::Cancelled, Some(Failure::new("cancelled", message)), Some(by));
                Ok(())
            }
            Event::Retried { by } => self.retry(by),
        }
    }

    /// Checks that the step is part of the run, is in one of these phases and, if given, at this attempt.
    fn expect(&self, at: At, attempt: Option<u32>, phases: &[Phase]) -> Result<(), Ignored> {
        match self.run.status {
            RunStatus::New | RunStatus::Scheduled | RunStatus::Queued => return Err(Ignored::NotStarted),
            RunStatus::Running => {}
            _ => return Err(Ignored::RunFinished),
        }
        let state = self.run.step(self.graph, at).ok_or(Ignored::UnknownStep)?;
        if attempt.is_some_and(|attempt| attempt != state.attempt) {
            return Err(Ignored::StaleAttempt);
        }
        if phases.contains(&state.phase) {
            return Ok(());
        }
        Err(if state.status().is_some() { Ignored::StepFinished } else { Ignored::NotWaiting })
    }

    /// Makes the decisions on the run's agenda. Skips and closes are made at once, so that whatever can be decided
    /// without starting a step is decided; steps and items wait for the next transition once the budget is spent.
    /// `armed` is the timer that is set for decisions left by an earlier transition.
    fn decide(mut self, armed: Option<Timer>) -> Transition {
        while self.run.status == RunStatus::Running {
            let next = self.run.next_decision(self.graph);
            let begins = !matches!(next, Some(Decision::Skip(_) | Decision::Close(_)));
            self.out.spent.work = self.work.get();
            if begins && self.run.values.weight() > self.env.budget.run_bytes {
                self.too_large();
                break;
            }
            if begins && self.env.budget.is_spent(&self.out.spent) {
                break;
            }
            match next {
                Some(Decision::Skip(at)) => self.skip_by_edges(at),
                Some(Decision::Close(instance)) => self.close(instance),
                Some(Decision::Start(at)) => self.start(at),
                Some(Decision::OpenItem(at)) => self.open_item(at),
                None => break,
            }
            self.out.spent.decisions += 1;
        }
        self.out.spent.work = self.work.get();
        match (armed, self.run.has_decisions_left()) {
            (None, true) => {
                let (timer, due) = (continuation(self.run), self.env.now + limits::CONTINUE_AFTER);
                self.out.effects.push(Effect::SetTimer { timer, due });
            }
            (Some(timer), false) => self.out.effects.push(Effect::ClearTimer { timer }),
            (None, false) | (Some(_), true) => {}
        }
        self.out
    }

    fn too_large(&mut self) {
        let (has, most) = (bytes(self.run.values.weight()), bytes(self.env.budget.run_bytes));
        let message = format!(
            "the inputs and results of the run come to {has}, and at most {most} are allowed; pass references instead \
             of copies, or split the work into child runs"
        );
        self.end_run(RunStatus::Failed, Some(Failure::new("run_too_large", message)), None);
    }

    fn trigger(
        &mut self,
        body: Arc<Value>,
        [headers, query]: [Option<Arc<Value>>; 2],
        by: Arc<str>,
    ) -> Result<(), Ignored> {
        if self.run.status != RunStatus::New {
            return Err(Ignored::AlreadyStarted);
        }
        let input = self.add(body);
        let headers = headers.map(|headers| self.add(headers));
        let query = query.map(|query| self.add(query));
        let (seed, max_duration) = (self.run.seed, self.run.max_duration);
        let client = self.run.client.clone();
        self.fact(Fact::Created { input, headers, query, by, client, seed, max_duration });
        Ok(())
    }

    fn schedule(&mut self, at: Time) -> Result<(), Ignored> {
        match self.run.status {
            RunStatus::New => return Err(Ignored::NotStarted),
            RunStatus::Queued if self.run.scheduled.is_none() => {}
            RunStatus::Scheduled | RunStatus::Queued | RunStatus::Running => return Err(Ignored::AlreadyStarted),
            _ => return Err(Ignored::RunFinished),
        }
        self.fact(Fact::Scheduled { due: at });
        self.set_timer(None, TimerKind::Begin, at);
        Ok(())
    }

    /// The timer of a scheduled run fired.
    fn due(&mut self) -> Result<(), Ignored> {
        match self.run.status {
            RunStatus::New => return Err(Ignored::NotStarted),
            RunStatus::Scheduled => {}
            RunStatus::Queued | RunStatus::Running => return Err(Ignored::AlreadyStarted),
            _ => return Err(Ignored::RunFinished),
        }
        if self.run.scheduled.is_some_and(|at| at > self.env.now) {
            return Err(Ignored::NotDue);
        }
        self.fact(Fact::Due);
        Ok(())
    }

    fn admit(&mut self) -> Result<(), Ignored> {
        match self.run.status {
            RunStatus::New | RunStatus::Scheduled => return Err(Ignored::NotStarted),
            RunStatus::Queued => {}
            RunStatus::Running => return Err(Ignored::AlreadyStarted),
            _ => return Err(Ignored::RunFinished),
        }
        let expires = self.env.now + self.run.max_duration;
        let vars = self.vars();
        self.begin(vars, |vars| Fact::Started { expires, vars });
        Ok(())
    }

    /// The only way the state changes while planning.
    fn fact(&mut self, fact: Fact) {
        match &fact {
            Fact::Ended { .. } => {
                let cancelled = self.unfinished();
                self.out.touched.extend(cancelled);
            }
            Fact::Retried { reset, reopened, .. } => self.out.touched.extend(reset.iter().chain(reopened)),
            Fact::Adopted { stands, .. } => self.out.touched.extend(stands),
            other => self.out.touched.extend(other.step()),
        }
        self.run.apply(self.graph, &fact, self.env.now);
        self.out.facts.push(fact);
    }

    fn unfinished(&self) -> Vec<At> {
        if self.run.instances.first().is_none_or(|root| root.remaining == 0) {
            return Vec::new();
        }
        let open = self.run.steps(self.graph).filter(|(_, state)| state.status().is_none());
        open.map(|(at, _)| at).collect()
    }

    fn add(&mut self, payload: impl Into<Payload>) -> ValueId {
        let payload = payload.into();
        self.out.spent.bytes += weight(&payload.value) as u64;
        let id = self.run.values.add(payload.clone());
        self.out.values.push((id, payload));
        id
    }

    fn add_reply(&mut self, reply: Reply) -> Output {
        let body = self.add(reply.body);
        let headers = reply.headers.map(|headers| self.add(headers));
        let log = reply.log.map(|log| self.add(log));
        Output { body, headers, status_code: reply.status_code, truncated: reply.truncated, log }
    }

    fn state(&self, at: At) -> &crate::run::StepState {
        self.run.state(self.graph, at)
    }

    fn view(&self, instance: u32) -> View<'_> {
        View {
            graph: self.graph,
            run: self.run,
            instance,
            result: None,
            callback: self.env.callback,
            now: self.env.now,
            work: &self.work,
        }
    }

    fn enter(&mut self, at: At, input: Option<ValueId>, wait: Wait) -> u32 {
        let attempt = self.state(at).attempt + 1;
        self.fact(Fact::Entered { step: at, attempt, input, wait });
        attempt
    }

    fn set_timer(&mut self, at: Option<At>, kind: TimerKind, due: Time) {
        let attempt = at.map_or(self.run.generation, |at| self.state(at).attempt);
        self.out.effects.push(Effect::SetTimer { timer: Timer { kind, at, attempt }, due });
    }

    /// Clears the timers that the step's phase has set.
    fn clear_timers(&mut self, at: At) {
        let state = self.state(at);
        let attempt = state.attempt;
        let main = match state.phase {
            Phase::Sleeping => Some(TimerKind::Wake),
            Phase::Backoff => Some(TimerKind::Retry),
            Phase::Webhook | Phase::Gate | Phase::Child => Some(TimerKind::Timeout),
            Phase::Idle | Phase::Running | Phase::Unsure | Phase::Open | Phase::Done(_) => None,
        };
        let escalate = state.more.as_ref().is_some_and(|more| more.escalate.is_some()) && state.phase == Phase::Gate;
        let kinds = [main.filter(|_| state.due.is_some()), escalate.then_some(TimerKind::Escalate)];
        for kind in kinds.into_iter().flatten() {
            self.out.effects.push(Effect::ClearTimer { timer: Timer { kind, at: Some(at), attempt } });
        }
    }
}

fn bytes(count: u64) -> String {
    const MB: u64 = 1024 * 1024;
    if count < MB { format!("{count} bytes") } else { format!("{:.1} MB", count as f64 / MB as f64) }
}

/// A value as text for messages, bounded in length.
fn shown(value: &Value) -> String {
    const MOST: usize = 80;
    if value.is_null() {
        return "null".into();
    }
    let mut text = String::new();
    // Writing into a string does not fail.
    let _ = Val::Json(value).write_text(&mut text);
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
