//! What letters mean to a run: each becomes an event, and the planner's answers become one transition to commit. Nothing
//! here waits or writes.

use crate::definitions::Compiled;
use crate::engine::Inner;
use crate::keys::{child_named, timer_named};
use crate::policies::Policies;
use crate::record::retired;
use crate::runs::{Letter, Live, What};
use crate::{callback, children};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use stepwell_core::event::{Event, Ignored, Retrier};
use stepwell_core::fact::Fact;
use stepwell_core::graph::{Graph, OnUnknown};
use stepwell_core::plan::{Env, Newer, Transition, advance, retry_onto};
use stepwell_core::time::Time;
use stepwell_store::{GroupChange, NewAudit, Stale, StepRow, StoredMail};

/// What the letters of one turn come to.
#[derive(Default)]
pub struct Plan {
    /// What it was decided on.
    pub policies: Arc<Policies>,
    pub transition: Transition,
    pub fired: Vec<String>,
    pub read: Vec<i64>,
    pub sent: Vec<String>,
    pub groups: Vec<GroupChange>,
    /// Rows of a version that the run has left.
    pub retired: Vec<StepRow>,
    pub stale: Stale,
    pub audit: Vec<NewAudit>,
    /// What each letter is told, in their order.
    pub answers: Vec<Result<(), Ignored>>,
}

/// Plans every letter on the run in memory, which changes with it.
pub fn plan(
    inner: &Inner,
    live: &mut Live,
    (letters, mail): (&[Letter], Vec<StoredMail>),
    now: Time,
    policies: Arc<Policies>,
) -> Plan {
    let mut plan = Plan { policies, ..Plan::default() };
    for letter in letters {
        let answer = match &letter.what {
            What::Start { .. } | What::Notices(_) | What::Born { .. } | What::Reconcile => Ok(()),
            What::Mail => {
                mail.iter().for_each(|mail| plan.mail(inner, live, mail, now));
                Ok(())
            }
            What::Timer { key } => plan.timer(inner, live, key, now),
            What::Retry { by, onto } => plan.retry(inner, live, (by, onto.as_ref()), now),
            What::Admit => plan.event(inner, live, Event::Admitted, now).inspect(|()| {
                let limit = live.compiled.definition.concurrency.as_ref().map(|concurrency| concurrency.limit);
                plan.groups.extend(live.group.clone().map(|key| GroupChange::Enter { key, limit }));
            }),
            What::Childless { notice, .. } => {
                plan.sent.push(notice.clone());
                event(live, &letter.what).and_then(|event| plan.event(inner, live, event, now))
            }
            other => event(live, other).and_then(|event| plan.event(inner, live, event, now)),
        };
        if answer.is_ok() {
            plan.audit.extend(letter.audit.clone());
        }
        plan.answers.push(answer);
    }
    // A notice that led to nothing is done all the same.
    if plan.transition.facts.is_empty() {
        plan.stale.notices.extend(plan.sent.drain(..).map(|key| (live.id, key)));
    }
    plan
}

/// The letter as the planner knows it.
fn event(live: &Live, what: &What) -> Result<Event, Ignored> {
    let at = |path: &str| live.run.find(&live.compiled.definition.graph, path).ok_or(Ignored::UnknownStep);
    Ok(match what {
        What::Report { key, outcome } => {
            Event::Reported { at: at(&key.path)?, attempt: key.attempt, outcome: outcome.clone() }
        }
        What::Held { key, ask, timeout, note } => {
            let (at, attempt) = (at(&key.path)?, key.attempt);
            Event::Held { at, attempt, ask: ask.clone(), timeout: *timeout, note: note.clone() }
        }
        What::Deferred { key, due, note } => {
            Event::Deferred { at: at(&key.path)?, attempt: key.attempt, due: *due, note: note.clone() }
        }
        What::Lost { key } => Event::Lost { at: at(&key.path)?, attempt: key.attempt },
        What::Deliver { path, body } => Event::Delivered { at: at(path)?, body: body.clone() },
        What::Answer { path, attempt, answer } => {
            Event::Answered { at: at(path)?, attempt: *attempt, answer: answer.clone() }
        }
        What::Wake { path, attempt, by } => Event::Woken { at: at(path)?, attempt: *attempt, by: by.clone() },
        What::Settle { path, attempt, verdict, by } => {
            Event::Settled { at: at(path)?, attempt: *attempt, verdict: verdict.clone(), by: by.clone() }
        }
        What::Override { path, attempt, outcome, by, comment } => Event::Overridden {
            at: at(path)?,
            attempt: *attempt,
            outcome: outcome.clone(),
            by: by.clone(),
            comment: comment.clone(),
        },
        What::Cancel { by, reason } => Event::Cancelled { by: by.clone(), reason: reason.clone() },
        What::Childless { notice, outcome } => {
            let (_, path, attempt) = child_named(notice).ok_or(Ignored::UnknownStep)?;
            Event::ChildEnded { at: at(path)?, attempt, outcome: outcome.clone() }
        }
        What::Admit
        | What::Start { .. }
        | What::Timer { .. }
        | What::Retry { .. }
        | What::Mail
        | What::Notices(_)
        | What::Born { .. }
        | What::Reconcile => return Err(Ignored::NotWaiting),
    })
}

impl Plan {
    /// Whether something that happened, or a row about it, counts for nothing.
    pub fn turns_down(&self) -> bool {
        self.stale != Stale::default() || self.answers.iter().any(Result::is_err)
    }

    fn event(&mut self, inner: &Inner, live: &mut Live, event: Event, now: Time) -> Result<(), Ignored> {
        let url = callbacks(inner, live);
        let once = |kind: &str, input: &Value| at_most_once(inner, &self.policies, kind, input);
        let env = Env { now, callback: &url, version: live.compiled.row.version, at_most_once: &once };
        let transition = advance(&live.compiled.definition.graph, &mut live.run, event, env)?;
        self.transition.absorb(transition);
        Ok(())
    }

    fn timer(&mut self, inner: &Inner, live: &mut Live, key: &str, now: Time) -> Result<(), Ignored> {
        let timer = timer_named(&live.compiled.definition.graph, &live.run, key).ok_or(Ignored::UnknownStep);
        match timer.and_then(|timer| self.event(inner, live, Event::Timer(timer), now)) {
            Ok(()) => {
                self.fired.push(key.to_string());
                Ok(())
            }
            Err(Ignored::NotDue) => {
                inner.timers.put_back(live.id, key);
                Err(Ignored::NotDue)
            }
            Err(ignored) => {
                inner.timers.clear(live.id, key);
                self.stale.timers.push((live.id, key.to_string()));
                Err(ignored)
            }
        }
    }

    fn mail(&mut self, inner: &Inner, live: &mut Live, mail: &StoredMail, now: Time) {
        let event = children::ended(live, mail);
        match event.map(|event| self.event(inner, live, event, now)) {
            Some(Ok(())) => self.read.push(mail.id),
            Some(Err(_)) | None => self.stale.mail.push(mail.id),
        }
    }

    fn retry(
        &mut self,
        inner: &Inner,
        live: &mut Live,
        (by, onto): (&Retrier, Option<&Arc<Compiled>>),
        now: Time,
    ) -> Result<(), Ignored> {
        if live.erased {
            return Err(Ignored::NothingToRetry);
        }
        match onto.filter(|onto| onto.row.id != live.compiled.row.id) {
            None => self.event(inner, live, Event::Retried { by: by.clone() }, now)?,
            Some(onto) => {
                let url = callbacks(inner, live);
                let once = |kind: &str, input: &Value| at_most_once(inner, &self.policies, kind, input);
                let env = Env { now, callback: &url, version: onto.row.version, at_most_once: &once };
                let newer = Newer {
                    graph: &onto.definition.graph,
                    version: onto.row.version,
                    max_duration: onto.definition.max_duration,
                };
                let old = &live.compiled.definition.graph;
                let retired = retired(old, &live.run, now);
                let transition = retry_onto(old, newer, &mut live.run, by.clone(), env)?;
                let stands = stands(newer.graph, &transition);
                let top = |path: &str| path.split(['[', '.']).next().is_some_and(|top| stands.contains(top));
                self.retired.extend(retired.into_iter().filter(|row| !top(&row.path)));
                self.transition.absorb(transition);
                live.compiled = onto.clone();
            }
        }
        // A run that is taken up again counts, and is not sent to the back of a queue.
        self.groups.extend(live.group.clone().map(|key| GroupChange::Enter { key, limit: None }));
        Ok(())
    }
}

/// The names of steps that stand in a newer version, with everything inside them.
fn stands<'a>(graph: &'a Graph, transition: &Transition) -> BTreeSet<&'a str> {
    let stands = transition.facts.iter().filter_map(|fact| match fact {
        Fact::Adopted { stands, .. } => Some(stands),
        _ => None,
    });
    stands.flatten().map(|at| &*graph.step(at.step).def.name).collect()
}

/// What policies say of a call, unless it can be made again without harm.
fn at_most_once(inner: &Inner, policies: &Policies, kind: &str, input: &Value) -> Option<OnUnknown> {
    let demanded = policies.at_most_once(kind, input)?;
    let idempotent = inner.kinds.get(kind).is_some_and(|kind| kind.is_idempotent(input));
    (!idempotent).then_some(demanded)
}

/// Makes callback URLs of a run's waits.
pub fn callbacks(inner: &Inner, live: &Live) -> impl Fn(&str) -> String + use<> {
    let (base, run, secret) = (inner.base_url.clone(), live.run.id.clone(), live.secret);
    move |path| format!("{base}/wh/{}", callback::token(&run, &secret, path))
}
