//! Turns messages into planner events, and the planner's results into one transition to commit. Nothing here waits or
//! writes.

use super::Runner;
use super::callbacks;
use super::children;
use super::keys::{child_named, is_begin, is_continuation, timer_named};
use super::live::Live;
use super::messages::{Begin, Envelope, Message};
use super::record::retired;
use super::sink::CallRules;
use crate::workflows::Compiled;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use stepwell_core::event::{Event, Ignored, Retrier};
use stepwell_core::fact::Fact;
use stepwell_core::graph::Graph;
use stepwell_core::plan::{Budget, Env, Newer, Transition, advance, retry_onto};
use stepwell_core::time::Time;
use stepwell_store::{GroupChange, NewAudit, NewRun, Stale, StepRow, StoredMail, UniqueKey};

/// The result of planning the messages of one turn.
pub struct Plan<'a> {
    pub now: Time,
    pub budget: Budget,
    /// The call rules that were in force.
    pub rules: &'a dyn CallRules,
    pub transition: Transition,
    /// The epoch under which the plan was decided. `None`: the current one.
    pub epoch: Option<i64>,
    /// Set with the first transition of a run.
    pub create: Option<NewRun>,
    pub unique: Option<UniqueKey>,
    pub fired: Vec<String>,
    pub read: Vec<i64>,
    pub sent: Vec<String>,
    pub groups: Vec<GroupChange>,
    /// Rows of a version that the run has left.
    pub retired: Vec<StepRow>,
    pub stale: Stale,
    /// Mail was left for the next transition.
    pub mail_left: bool,
    pub audit: Vec<NewAudit>,
    /// The result for each message that was planned, in order. Messages after those do not fit the budget.
    pub answers: Vec<Result<(), Ignored>>,
}

/// Counts the run against its concurrency group, within the workflow's limit.
fn enter(live: &Live) -> Option<GroupChange> {
    let limit = live.compiled.definition.concurrency.as_ref().map(|concurrency| concurrency.limit);
    live.group.clone().map(|key| GroupChange::Enter { key, limit })
}

fn queue(live: &Live) -> Option<GroupChange> {
    live.group.clone().map(|key| GroupChange::Queue { key })
}

/// The planner event for a message.
fn event(live: &Live, message: &Message) -> Result<Event, Ignored> {
    let at = |path: &str| live.run.find(&live.compiled.definition.graph, path).ok_or(Ignored::UnknownStep);
    Ok(match message {
        Message::Report { key, outcome } => {
            Event::Reported { at: at(&key.path)?, attempt: key.attempt, outcome: outcome.clone() }
        }
        Message::Held { key, ask, timeout, note } => {
            let (at, attempt) = (at(&key.path)?, key.attempt);
            Event::Held { at, attempt, ask: ask.clone(), timeout: *timeout, note: note.clone() }
        }
        Message::Deferred { key, due, why, note } => {
            let (at, attempt, why) = (at(&key.path)?, key.attempt, why.clone());
            Event::Deferred { at, attempt, due: *due, why, note: note.clone() }
        }
        Message::Lost { key, stopped } => Event::Lost { at: at(&key.path)?, attempt: key.attempt, stopped: *stopped },
        Message::Deliver { path, body, truncated } => {
            Event::Delivered { at: at(path)?, body: body.clone(), truncated: *truncated }
        }
        Message::Answer { path, attempt, answer } => {
            Event::Answered { at: at(path)?, attempt: *attempt, answer: answer.clone() }
        }
        Message::Wake { path, attempt, by } => Event::Woken { at: at(path)?, attempt: *attempt, by: by.clone() },
        Message::Settle { path, attempt, verdict, by } => {
            Event::Settled { at: at(path)?, attempt: *attempt, verdict: verdict.clone(), by: by.clone() }
        }
        Message::Override { path, attempt, outcome, by, comment } => Event::Overridden {
            at: at(path)?,
            attempt: *attempt,
            outcome: outcome.clone(),
            by: by.clone(),
            comment: comment.clone(),
        },
        Message::Cancel { by, reason } => Event::Cancelled { by: by.clone(), reason: reason.clone() },
        Message::ChildNotStarted { notice, outcome } => {
            let (_, path, attempt) = child_named(notice).ok_or(Ignored::UnknownStep)?;
            Event::ChildEnded { at: at(path)?, attempt, outcome: outcome.clone() }
        }
        Message::Admit
        | Message::Begin(_)
        | Message::Start { .. }
        | Message::Timer { .. }
        | Message::Retry { .. }
        | Message::Mail
        | Message::Notices(_)
        | Message::ChildStarted { .. }
        | Message::PlaceFreed
        | Message::Reconcile => return Err(Ignored::NotWaiting),
    })
}

impl<'a> Plan<'a> {
    pub fn new(rules: &'a dyn CallRules, now: Time, budget: Budget) -> Plan<'a> {
        Plan {
            now,
            budget,
            rules,
            transition: Transition::default(),
            epoch: None,
            create: None,
            unique: None,
            fired: Vec::new(),
            read: Vec::new(),
            sent: Vec::new(),
            groups: Vec::new(),
            retired: Vec::new(),
            stale: Stale::default(),
            mail_left: false,
            audit: Vec::new(),
            answers: Vec::new(),
        }
    }

    /// Plans messages and applies them to the run in memory, at least one and as many as the budget allows.
    pub fn add(&mut self, runner: &Runner, live: &mut Live, messages: &[Envelope], mail: &[StoredMail]) {
        for envelope in messages {
            let answer = self.add_one(runner, live, &envelope.message, mail);
            if answer.is_ok() {
                self.audit.extend(envelope.audit.clone());
            }
            self.answers.push(answer);
            if self.is_full() {
                break;
            }
        }
        // A notice without an effect is handled all the same.
        if self.transition.facts.is_empty() {
            self.stale.notices.extend(self.sent.drain(..).map(|key| (live.id, key)));
        }
    }

    fn add_one(
        &mut self,
        runner: &Runner,
        live: &mut Live,
        message: &Message,
        mail: &[StoredMail],
    ) -> Result<(), Ignored> {
        match message {
            Message::Start { .. }
            | Message::Notices(_)
            | Message::ChildStarted { .. }
            | Message::PlaceFreed
            | Message::Reconcile => Ok(()),
            Message::Begin(begin) => self.begin(runner, live, begin),
            Message::Mail => {
                for mail in mail {
                    self.mail_left = self.is_full();
                    if self.mail_left {
                        break;
                    }
                    self.mail(runner, live, mail);
                }
                Ok(())
            }
            Message::Timer { key } => self.timer(runner, live, key),
            Message::Retry { by, onto } => self.retry(runner, live, by, onto.as_ref()),
            Message::Admit => self.event(runner, live, Event::Admitted).inspect(|()| self.groups.extend(enter(live))),
            Message::ChildNotStarted { notice, .. } => {
                self.sent.push(notice.clone());
                event(live, message).and_then(|event| self.event(runner, live, event))
            }
            other => event(live, other).and_then(|event| self.event(runner, live, event)),
        }
    }

    /// Whether the budget is spent, or as many facts are to be written as it allows decisions.
    fn is_full(&self) -> bool {
        let Transition { facts, spent, .. } = &self.transition;
        self.budget.is_spent(spent) || facts.len() >= self.budget.decisions as usize
    }

    /// What is left of the budget.
    fn budget_left(&self) -> Budget {
        self.budget.less(&self.transition.spent)
    }

    /// Whether a message or a row is ignored.
    pub fn ignores_something(&self) -> bool {
        self.stale != Stale::default() || self.answers.iter().any(Result::is_err)
    }

    /// Begins the run, which is created with this transition.
    fn begin(&mut self, runner: &Runner, live: &mut Live, begin: &Begin) -> Result<(), Ignored> {
        let Begin { body, headers, query, by, queued, at, .. } = begin;
        let (body, headers, query, by) = (body.clone(), headers.clone(), query.clone(), by.clone());
        let queued = *queued || at.is_some();
        self.event(runner, live, Event::Triggered { body, headers, query, by, queued })?;
        if let Some(at) = *at {
            self.event(runner, live, Event::Scheduled { at })?;
        }
        self.epoch = Some(begin.epoch);
        self.create = Some(begin.new.clone());
        self.unique = begin.unique.clone();
        self.groups.extend(match (at, queued) {
            // It joins the queue when it is due.
            (Some(_), _) => None,
            (None, true) => queue(live),
            (None, false) => enter(live),
        });
        Ok(())
    }

    fn event(&mut self, runner: &Runner, live: &mut Live, event: Event) -> Result<(), Ignored> {
        let url = callbacks::urls(&runner.base_url, live);
        let once = |kind: &str, input: &Value| self.rules.at_most_once(kind, input);
        let (version, budget) = (live.compiled.row.version, self.budget_left());
        let max_losses = runner.max_losses;
        let env = Env { now: self.now, callback: &url, version, at_most_once: &once, budget, max_losses };
        let transition = advance(&live.compiled.definition.graph, &mut live.run, event, env)?;
        self.transition.absorb(transition);
        Ok(())
    }

    fn timer(&mut self, runner: &Runner, live: &mut Live, key: &str) -> Result<(), Ignored> {
        let timer = timer_named(&live.compiled.definition.graph, &live.run, key).ok_or(Ignored::UnknownStep);
        match timer.and_then(|timer| self.event(runner, live, Event::Timer(timer))) {
            Ok(()) => {
                self.fired.push(key.to_string());
                if is_begin(key) { self.due(runner, live) } else { Ok(()) }
            }
            // The row of a continuation is removed with the last decision: another process may just have written it.
            Err(ignored) if ignored == Ignored::NotDue || is_continuation(key) => {
                runner.timers.forget(live.id, key);
                Err(ignored)
            }
            Err(ignored) => {
                runner.timers.clear(live.id, key);
                self.stale.timers.push((live.id, key.to_string()));
                Err(ignored)
            }
        }
    }

    /// Queues a scheduled run that is due. Without a limit on concurrent runs it begins at once.
    fn due(&mut self, runner: &Runner, live: &mut Live) -> Result<(), Ignored> {
        match queue(live) {
            Some(change) => self.groups.push(change),
            None => self.event(runner, live, Event::Admitted)?,
        }
        Ok(())
    }

    fn mail(&mut self, runner: &Runner, live: &mut Live, mail: &StoredMail) {
        let event = children::ended(live, mail);
        match event.map(|event| self.event(runner, live, event)) {
            Some(Ok(())) => self.read.push(mail.id),
            Some(Err(_)) | None => self.stale.mail.push(mail.id),
        }
    }

    fn retry(
        &mut self,
        runner: &Runner,
        live: &mut Live,
        by: &Retrier,
        onto: Option<&Arc<Compiled>>,
    ) -> Result<(), Ignored> {
        if live.erased {
            return Err(Ignored::NothingToRetry);
        }
        match onto.filter(|onto| onto.row.id != live.compiled.row.id) {
            None => self.event(runner, live, Event::Retried { by: by.clone() })?,
            Some(onto) => {
                let url = callbacks::urls(&runner.base_url, live);
                let once = |kind: &str, input: &Value| self.rules.at_most_once(kind, input);
                let (version, budget) = (onto.row.version, self.budget_left());
                let max_losses = runner.max_losses;
                let env = Env { now: self.now, callback: &url, version, at_most_once: &once, budget, max_losses };
                let newer = Newer {
                    graph: &onto.definition.graph,
                    version: onto.row.version,
                    max_duration: onto.definition.max_duration,
                };
                let old = &live.compiled.definition.graph;
                let retired = retired(old, &live.run, self.now);
                let transition = retry_onto(old, newer, &mut live.run, by.clone(), env)?;
                let kept = kept_steps(newer.graph, &transition);
                let is_kept = |path: &str| path.split(['[', '.']).next().is_some_and(|top| kept.contains(top));
                self.retired.extend(retired.into_iter().filter(|row| !is_kept(&row.path)));
                self.transition.absorb(transition);
                live.compiled = onto.clone();
            }
        }
        // A retried run counts against its group, but does not queue again.
        self.groups.extend(live.group.clone().map(|key| GroupChange::Enter { key, limit: None }));
        Ok(())
    }
}

/// The names of the steps whose state a newer version keeps, with everything inside these steps.
fn kept_steps<'a>(graph: &'a Graph, transition: &Transition) -> BTreeSet<&'a str> {
    let kept = transition.facts.iter().filter_map(|fact| match fact {
        Fact::Adopted { stands, .. } => Some(stands),
        _ => None,
    });
    kept.flatten().map(|at| &*graph.step(at.step).def.name).collect()
}
