//! A record of every commit that no crash reaches, and the invariants that each commit must keep.

use crate::sim::Sim;
use crate::timing::Timing;
use serde_json::Value;
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use stepwell_core::fact::{Fact, Reason, Wait};
use stepwell_core::run::{Status, StoredFact};
use stepwell_core::time::{Millis, Time};
use stepwell_core::value::{Payload, ValueId};
use stepwell_store::*;

/// What a step waits for that someone outside can give.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waits {
    Gate,
    Webhook,
    Verdict,
    /// A sleep or a pause between attempts: it can be ended early.
    Time,
}

/// One run, as its commits told it.
pub struct Story {
    pub id: RunId,
    pub public: String,
    pub parent: Option<Parent>,
    pub place: Option<String>,
    /// Definitions: the first, and the one it is on.
    pub first: i64,
    pub definition: i64,
    pub status: String,
    pub generation: u32,
    pub input: Value,
    /// The tick of a schedule that it was started for.
    pub tick: Option<Time>,
    pub log: Vec<(Time, StoredFact)>,
    pub version: i64,
    pub waiting: BTreeMap<String, Waits>,
    pub work: BTreeSet<WorkKey>,
    pub timers: BTreeMap<String, Time>,
    /// Attempts, and when their commits were planned.
    dispatched: BTreeMap<(String, u32), Time>,
    pub ended: Option<Time>,
    calls: BTreeSet<String>,
    entered: BTreeSet<String>,
    finished: BTreeSet<String>,
    timing: Timing,
    /// Gates, as opposed to calls that are held.
    gates: BTreeSet<String>,
    /// Held calls that were approved, and whether a gate was: it may have shown any call.
    approved: (BTreeSet<String>, bool),
}

#[derive(Default)]
pub struct Past {
    pub runs: BTreeMap<RunId, Story>,
    pub public: BTreeMap<String, RunId>,
    pub commits: u64,
    /// When the noise ended.
    pub calm: Time,
    trace: DefaultHasher,
}

impl Story {
    pub fn is_over(&self) -> bool {
        self.ended.is_some()
    }

    /// When the commit that dispatched the attempt was planned.
    pub fn dispatched(&self, path: &str, attempt: u32) -> Option<Time> {
        self.dispatched.get(&(path.to_string(), attempt)).copied()
    }

    /// Whether somebody approved the call of a step, since the run was last retried.
    pub fn was_approved(&self, path: &str) -> bool {
        self.approved.1 || self.approved.0.contains(path)
    }

    pub fn facts(&self) -> impl Iterator<Item = &StoredFact> {
        self.log.iter().map(|(_, fact)| fact)
    }
}

impl Past {
    pub fn named(&self, public: &str) -> Option<&Story> {
        self.runs.get(self.public.get(public)?)
    }

    pub fn was_dispatched(&self, (run, path, attempt): &(String, String, u32)) -> bool {
        self.named(run).is_some_and(|story| story.dispatched(path, *attempt).is_some())
    }

    /// The same for the same history.
    pub fn trace(&self) -> u64 {
        self.trace.finish()
    }

    fn begin(&mut self, commit: &Commit) {
        let (Some(new), Some(head)) = (&commit.create, &commit.head) else { return };
        self.public.insert(new.public.clone(), commit.run);
        let story = Story {
            id: commit.run,
            public: new.public.clone(),
            parent: new.parent.clone(),
            place: new.group.clone(),
            first: head.definition,
            definition: head.definition,
            status: head.status.clone(),
            generation: 0,
            input: Value::Null,
            tick: None,
            log: Vec::new(),
            version: 0,
            waiting: BTreeMap::new(),
            work: BTreeSet::new(),
            timers: BTreeMap::new(),
            dispatched: BTreeMap::new(),
            ended: None,
            calls: BTreeSet::new(),
            entered: BTreeSet::new(),
            finished: BTreeSet::new(),
            timing: Timing::default(),
            gates: BTreeSet::new(),
            approved: Default::default(),
        };
        self.runs.insert(commit.run, story);
    }
}

/// The tick that a run was started for, by its headers.
fn tick(headers: &Value) -> Option<Time> {
    headers.get("x-stepwell-scheduled-at")?.as_str().and_then(Time::parse)
}

/// A commit is on disk.
pub fn saw(sim: &Arc<Sim>, commit: Commit) {
    let facts: Vec<StoredFact> = serde_json::from_str(&commit.log.facts).unwrap();
    let mut faults = Vec::new();
    let mut past = sim.past();
    past.commits += 1;
    (commit.run.0, commit.log.at.0, &commit.log.facts).hash(&mut past.trace);
    past.begin(&commit);
    let starts = facts.iter().any(|fact| matches!(fact, Fact::Started { .. }));
    // A run that is taken up again counts, but needs no room: not even one that was cancelled in the queue.
    let taken_up = facts.iter().any(|fact| matches!(fact, Fact::Retried { .. } | Fact::Adopted { .. }));
    if starts && !taken_up {
        faults.extend(crate::verify::place_taken(sim, &past, &commit));
    }
    match past.runs.get_mut(&commit.run) {
        Some(story) => story.tell(sim, commit, facts, &mut faults),
        None => faults.push(format!("a commit to run {}, which no process made", commit.run.0)),
    }
    drop(past);
    faults.into_iter().for_each(|fault| sim.breaks(fault));
}

impl Story {
    fn tell(&mut self, sim: &Sim, commit: Commit, facts: Vec<StoredFact>, faults: &mut Vec<String>) {
        if commit.expect.0 != self.version {
            faults.push(format!("{}: version {} follows {}", self.public, commit.expect.0 + 1, self.version));
        }
        self.version += 1;
        if let Some(head) = &commit.head {
            self.status = head.status.clone();
            self.definition = head.definition;
        }
        if commit.log.at > sim.now() {
            faults.push(format!("{}: a commit from the future", self.public));
        }
        let value = |id: ValueId| {
            let row = commit.values.iter().find(|row| row.id == id)?;
            serde_json::from_str::<Payload>(&row.payload).ok().map(|payload| payload.value)
        };
        for fact in &facts {
            if let Fact::Created { input, headers, .. } = fact {
                self.input = value(*input).map(|input| (*input).clone()).unwrap_or_default();
                self.tick = headers.and_then(value).and_then(|headers| tick(&headers));
                if let Some(tick) = self.tick {
                    let late = commit.log.at.since(tick) > Millis::from_secs(10);
                    sim.saw(if late { "a tick was caught up" } else { "a schedule fired" });
                }
            }
            let body = match fact {
                Fact::Finished { output: Some(output), .. } => value(output.body),
                _ => None,
            };
            self.hear(sim, (commit.log.at, fact), body.as_deref(), faults);
        }
        self.log.extend(facts.into_iter().map(|fact| (commit.log.at, fact)));
        commit.work.remove.iter().for_each(|key| {
            self.work.remove(key);
        });
        for work in commit.work.put {
            if self.dispatched.insert((work.key.path.clone(), work.key.attempt), commit.log.at).is_some() {
                faults.push(format!("{}: {:?} is dispatched twice", self.public, work.key));
            }
            self.work.insert(work.key);
        }
        commit.timers.remove.iter().for_each(|key| {
            self.timers.remove(key);
        });
        if commit.timers.put.iter().any(|timer| timer.key.starts_with("continue:")) {
            sim.saw("a transition was cut");
        }
        self.timers.extend(commit.timers.put.into_iter().map(|timer| (timer.key, timer.due)));
        if self.is_over() && !(self.work.is_empty() && self.timers.is_empty()) {
            faults.push(format!("{} is over and leaves {:?} {:?}", self.public, self.work, self.timers));
        }
    }

    /// Records that a rare event occurred.
    fn note(&self, sim: &Sim, fact: &StoredFact) {
        let noted = match fact {
            Fact::Again { reason: Reason::WorkerLost, .. } => "a worker was lost",
            Fact::Again { reason: Reason::WorkerStopped, .. } => "a worker was stopped",
            Fact::Again { reason: Reason::Approved, .. } => "a held call was approved",
            Fact::Held { .. } => "a call was held",
            Fact::Again { reason: Reason::Asked, .. } => "a person had it run again",
            Fact::Again { reason: Reason::Retry, .. } => "a step was tried again",
            Fact::Unsure { .. } => "an outcome was unknown",
            Fact::Kept { .. } => "a message came early",
            Fact::Due => "a scheduled run was due",
            Fact::Approved { .. } => "one of two approved",
            Fact::Changed { .. } => "a held call was changed",
            Fact::Escalated { .. } => "a gate was escalated",
            Fact::Overridden { .. } => "a step was overridden",
            Fact::Retried { .. } => "a run was retried",
            Fact::Adopted { .. } => "a run went on under a newer version",
            Fact::Started { .. } if !self.log.is_empty() => "a run left the queue",
            Fact::Finished { failure: Some(failure), .. } => match &*failure.code {
                "expired" => "a gate expired",
                "child_failed" => "a child failed",
                "child_not_started" => "a child could not be started",
                "too_many_descendants" => "a tree was too large",
                "outcome_unknown" => "an outcome stayed unknown",
                "timeout" => "a step timed out",
                "internal" => "a step broke down",
                "denied_by_policy" => "a policy denied a call",
                "denied" => "a call or a gate was denied",
                "forbidden" => "a run lacked a right",
                _ => return,
            },
            Fact::Ended { failure: Some(failure), .. } if &*failure.code == "run_too_large" => "a run was too large",
            Fact::Ended { status, .. } => status.name(),
            _ => return,
        };
        sim.saw(noted);
    }

    fn hear(&mut self, sim: &Sim, (at, fact): (Time, &StoredFact), body: Option<&Value>, faults: &mut Vec<String>) {
        self.note(sim, fact);
        let mut fault = |what: String| faults.push(format!("{}: {what}: {fact:?}", self.public));
        if self.ended.is_some() && !matches!(fact, Fact::Retried { .. } | Fact::Adopted { .. }) {
            fault("something happens to a run that is over".into());
        }
        let woken = |path: &str| sim.was_woken(&self.public, path);
        if let Some(early) = self.timing.hear(at, fact, &woken) {
            fault(early);
        }
        match fact {
            Fact::Entered { step, wait, .. } => {
                if !self.entered.insert(step.clone()) {
                    fault("a step begins twice".into());
                }
                let waits = match wait {
                    Wait::Gate { .. } => Some(Waits::Gate),
                    Wait::Webhook { .. } => Some(Waits::Webhook),
                    Wait::Sleep { .. } => Some(Waits::Time),
                    Wait::Executor | Wait::Child { .. } | Wait::Scope { .. } => None,
                };
                // On a newer version a step of the same name may be of another kind.
                match wait {
                    Wait::Executor => self.calls.insert(step.clone()),
                    _ => self.calls.remove(step),
                };
                if waits == Some(Waits::Gate) {
                    self.gates.insert(step.clone());
                }
                self.waiting.extend(waits.map(|waits| (step.clone(), waits)));
            }
            Fact::Unsure { step, .. } => {
                self.waiting.insert(step.clone(), Waits::Verdict);
            }
            Fact::Held { step, .. } => {
                self.waiting.insert(step.clone(), Waits::Gate);
            }
            Fact::Retrying { step, .. } => {
                self.waiting.insert(step.clone(), Waits::Time);
            }
            Fact::Again { step, reason, .. } => {
                self.waiting.remove(step);
                if *reason == Reason::Approved {
                    self.approved.0.insert(step.clone());
                }
            }
            Fact::Finished { step, attempt, status, .. } => {
                self.approved.1 |= *status == Status::Success && self.gates.contains(step);
                if !self.finished.insert(step.clone()) {
                    fault("a step ends twice".into());
                }
                let verdict = self.waiting.remove(step) == Some(Waits::Verdict);
                if *status == Status::Success
                    && self.calls.contains(step)
                    && !verdict
                    && !sim.was_overridden(&self.public, step)
                {
                    let attempt = (self.public.clone(), step.clone(), *attempt);
                    let said = sim.ledger().executions.get(&attempt).and_then(|execution| execution.said.clone());
                    let holds = step.ends_with(".one") && body == Some(&Value::Null);
                    if !holds && said.as_ref().and_then(|said| said.as_ref().ok()) != body {
                        fault(format!("its result is not what its execution said: {said:?}"));
                    }
                }
            }
            Fact::Ended { .. } => {
                self.ended = Some(at);
                self.waiting.clear();
            }
            Fact::Retried { .. } | Fact::Adopted { .. } => {
                if self.ended.take().is_none() {
                    fault("a run that is not over is retried".into());
                }
                self.generation += 1;
                (self.entered, self.finished) = Default::default();
                self.approved = Default::default();
            }
            Fact::Created { .. }
            | Fact::Scheduled { .. }
            | Fact::Due
            | Fact::Started { .. }
            | Fact::Opened { .. }
            | Fact::Closed { .. }
            | Fact::Skipped { .. }
            | Fact::Kept { .. }
            | Fact::Approved { .. }
            | Fact::Changed { .. }
            | Fact::Overridden { .. }
            | Fact::Escalated { .. } => {}
        }
    }
}
