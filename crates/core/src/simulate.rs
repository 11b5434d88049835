//! A simulated world for one run: carries out the planner's effects on virtual time and checks the invariants.
//!
//! Tests and `stepwell simulate` drive it; it decides nothing itself. It keeps the log and the payloads as a store
//! would, so that a crash can be simulated at any instant: the state in memory is discarded and rebuilt from what was
//! written.

pub mod made_up;
pub mod play;
pub mod script;

use crate::event::{Event, Ignored, Outcome, Timer};
use crate::fact::Fact;
use crate::graph::Graph;
use crate::plan::{Budget, Effect, Env, Newer, Transition, advance, retry_onto};
use crate::run::{At, Phase, Run, RunStatus, StoredFact};
use crate::time::{Millis, Time};
use crate::value::{Payload, ValueId, Values};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Virtual time begins here, so that times in output are recognisably not real.
pub const EPOCH: Time = Time(1_767_225_600_000);

pub struct World<'g> {
    pub graph: &'g Graph,
    pub run: Run,
    pub now: Time,
    /// What one transition may cost.
    pub budget: Budget,
    /// How many times in a row the node of a step may be lost before a person has to decide.
    pub max_losses: u8,
    /// Attempts that an executor is running.
    pub running: BTreeSet<(At, u32)>,
    pub children: BTreeSet<(At, u32)>,
    pub timers: BTreeMap<Timer, Time>,
    /// Steps that wait for someone outside: gates, webhook waits and unknown outcomes.
    pub waiting: BTreeSet<At>,
    pub log: Vec<(Time, StoredFact)>,
    payloads: Vec<(ValueId, Payload)>,
    /// The graph the log begins with, and the newer ones it continues with.
    first: &'g Graph,
    newer: BTreeMap<u32, &'g Graph>,
    dispatched: BTreeSet<(String, u32)>,
}

/// The result of an event: its transition, or why it was ignored, if no invariant broke.
pub type Fed = Result<Result<Transition, Ignored>, Broken>;

/// An invariant that did not hold.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Broken(pub String);

impl<'g> World<'g> {
    pub fn new(graph: &'g Graph, seed: u64, max_duration: Millis) -> World<'g> {
        World {
            graph,
            run: Run::new("run_simulated", seed, max_duration),
            now: EPOCH,
            budget: Budget::UNLIMITED,
            max_losses: u8::MAX,
            running: BTreeSet::new(),
            children: BTreeSet::new(),
            timers: BTreeMap::new(),
            waiting: BTreeSet::new(),
            log: Vec::new(),
            payloads: Vec::new(),
            first: graph,
            newer: BTreeMap::new(),
            dispatched: BTreeSet::new(),
        }
    }

    /// Gives the planner one event and carries out what it decides.
    pub fn feed(&mut self, event: Event) -> Fed {
        let before = self.run.status.is_terminal();
        let retry = matches!(event, Event::Retried { .. });
        let env = Env { budget: self.budget, max_losses: self.max_losses, ..Env::plain(self.now, &callback) };
        let transition = match advance(self.graph, &mut self.run, event, env) {
            Ok(transition) => transition,
            Err(ignored) => return Ok(Err(ignored)),
        };
        if before && !retry {
            return Err(Broken("a finished run was moved by something other than a retry".into()));
        }
        self.carry_out(&transition)?;
        Ok(Ok(transition))
    }

    /// Retries a finished run under a newer version.
    pub fn retry_onto(&mut self, newer: Newer<'g>) -> Fed {
        let env = Env { budget: self.budget, max_losses: self.max_losses, ..Env::plain(self.now, &callback) };
        let transition = match retry_onto(self.graph, newer, &mut self.run, someone().into(), env) {
            Ok(transition) => transition,
            Err(ignored) => return Ok(Err(ignored)),
        };
        self.graph = newer.graph;
        self.newer.insert(newer.version, newer.graph);
        self.carry_out(&transition)?;
        Ok(Ok(transition))
    }

    fn carry_out(&mut self, transition: &Transition) -> Result<(), Broken> {
        let stored = transition.facts.iter().map(|fact| (self.now, self.run.store(self.graph, fact)));
        self.log.extend(stored);
        self.payloads.extend(transition.values.iter().cloned());
        self.check_facts(transition)?;
        self.note_waiting(transition);
        for effect in &transition.effects {
            self.act(effect)?;
        }
        if self.run.status.is_terminal() {
            let left = self.running.len() + self.children.len() + self.timers.len();
            if left > 0 {
                let what = format!("{:?} {:?} {:?}", self.running, self.children, self.timers);
                return Err(Broken(format!("the run is finished but these are still running: {what}")));
            }
        } else if self.run.status == RunStatus::Running {
            // The run's own time limit does not count: something must be able to move it on before that.
            let own = self.timers.len() > 1;
            if !own && self.running.is_empty() && self.children.is_empty() && self.waiting.is_empty() {
                return Err(Broken("the run is not finished and waits for nothing".into()));
            }
        }
        Ok(())
    }

    fn note_waiting(&mut self, transition: &Transition) {
        if self.run.status.is_terminal() {
            self.waiting.clear();
            return;
        }
        for &at in transition.facts.iter().filter_map(Fact::step) {
            let phase = self.run.step(self.graph, at).map(|state| state.phase);
            if matches!(phase, Some(Phase::Gate | Phase::Webhook | Phase::Unsure)) {
                self.waiting.insert(at);
            } else {
                self.waiting.remove(&at);
            }
        }
    }

    fn check_facts(&self, transition: &Transition) -> Result<(), Broken> {
        let mut ended = false;
        for fact in &transition.facts {
            if ended {
                return Err(Broken(format!("something happened after the end of the run: {fact:?}")));
            }
            ended = matches!(fact, Fact::Ended { .. });
        }
        Ok(())
    }

    fn act(&mut self, effect: &Effect) -> Result<(), Broken> {
        let path = |at: At| self.run.path(self.graph, at);
        let fresh = match *effect {
            Effect::Dispatch { at, attempt } | Effect::StartChild { at, attempt } => {
                if !self.dispatched.insert((path(at), attempt)) {
                    return Err(Broken(format!("attempt {attempt} of {} was dispatched twice", path(at))));
                }
                let state = self.run.step(self.graph, at);
                if !state.is_some_and(|state| state.phase.is_active() || self.run.status.is_terminal()) {
                    return Err(Broken(format!("{} was dispatched but is not active", path(at))));
                }
                match effect {
                    Effect::StartChild { .. } => self.children.insert((at, attempt)),
                    _ => self.running.insert((at, attempt)),
                }
            }
            Effect::Abort { at, attempt } => self.running.remove(&(at, attempt)),
            Effect::CancelChild { at, attempt } => self.children.remove(&(at, attempt)),
            // Nothing in this world waits at a callee.
            Effect::Abandon { .. } => true,
            Effect::SetTimer { timer, due } => self.timers.insert(timer, due).is_none(),
            Effect::ClearTimer { timer } => self.timers.remove(&timer).is_some(),
        };
        if fresh {
            Ok(())
        } else {
            Err(Broken(format!("{effect:?} repeats an effect or undoes one that never happened")))
        }
    }

    /// Moves virtual time to the next timer and returns it; the caller feeds it.
    pub fn next_timer(&mut self) -> Option<Timer> {
        let (&timer, &due) = self.timers.iter().min_by_key(|&(timer, due)| (*due, *timer))?;
        self.now = self.now.max(due);
        Some(timer)
    }

    /// Feeds a due timer and removes it, whether or not it still counted, as a store removes a timer row that has
    /// fired.
    pub fn fire(&mut self, timer: Timer) -> Fed {
        self.timers.remove(&timer);
        self.feed(Event::Timer(timer))
    }

    /// Feeds an executor's report.
    pub fn report(&mut self, at: At, attempt: u32, outcome: Outcome) -> Fed {
        self.running.remove(&(at, attempt));
        self.feed(Event::Reported { at, attempt, outcome })
    }

    /// Feeds the end of a child run.
    pub fn child_ended(&mut self, at: At, attempt: u32, outcome: Outcome) -> Fed {
        self.children.remove(&(at, attempt));
        self.feed(Event::ChildEnded { at, attempt, outcome })
    }

    /// Feeds the event of an executor that did not make its attempt: the attempt is held or deferred.
    pub fn stop(&mut self, at: At, attempt: u32, event: Event) -> Fed {
        self.running.remove(&(at, attempt));
        self.feed(event)
    }

    /// Feeds the loss of an executor's node.
    pub fn lose(&mut self, at: At, attempt: u32) -> Fed {
        self.running.remove(&(at, attempt));
        self.feed(Event::Lost { at, attempt, stopped: false })
    }

    /// Discards the state and rebuilds it from the log alone; it must be the same.
    pub fn crash_and_replay(&mut self) -> Result<(), Broken> {
        let mut run = Run::new(self.run.id.clone(), self.run.seed, self.run.max_duration);
        let newer = &self.newer;
        let versions = |version: u32| newer.get(&version).copied();
        run.replay(self.first, self.log.iter().cloned(), &versions).map_err(|error| Broken(error.to_string()))?;
        run.values = self.values();
        self.adopt(run, "folding the log")
    }

    /// Discards the state and rebuilds it from a snapshot; it must be the same.
    pub fn crash_and_restore(&mut self) -> Result<(), Broken> {
        let text = serde_json::to_string(&self.run.snapshot(self.graph)).map_err(|error| Broken(error.to_string()))?;
        let snapshot = serde_json::from_str(&text).map_err(|error| Broken(error.to_string()))?;
        let run = Run::restore(self.graph, snapshot, self.values()).map_err(|error| Broken(error.to_string()))?;
        self.adopt(run, "restoring a snapshot")
    }

    fn values(&self) -> Values {
        let mut values = Values::default();
        self.payloads.iter().for_each(|(id, payload)| values.put(*id, payload.clone()));
        values.set_weight(None);
        values
    }

    /// Continues with a rebuilt run. Its instances may be numbered differently, so all stored step numbers are looked
    /// up again.
    fn adopt(&mut self, run: Run, how: &str) -> Result<(), Broken> {
        let key = |snapshot: crate::run::Snapshot| {
            let rows: BTreeMap<String, _> = snapshot.steps.iter().map(|row| (row.path.clone(), row.clone())).collect();
            let ended: BTreeMap<(String, u32), _> =
                snapshot.instances.iter().map(|row| ((row.path.clone(), row.index), row.clone())).collect();
            (rows, ended, crate::run::Snapshot { steps: Vec::new(), instances: Vec::new(), ..snapshot })
        };
        let (expected, found) = (key(self.run.snapshot(self.graph)), key(run.snapshot(self.graph)));
        if expected != found {
            let (mut had, mut has) = (expected.0, found.0);
            had.retain(|path, row| has.get(path) != Some(row) || has.remove(path).is_none());
            return Err(Broken(format!(
                "{how} gives a different state\nhad {:?} {had:?}\nhas {:?} {has:?}",
                expected.2, found.2
            )));
        }
        if derived(&self.run, self.graph) != derived(&run, self.graph) {
            let (had, has) = (derived(&self.run, self.graph), derived(&run, self.graph));
            return Err(Broken(format!("{how} gives different derived state\nhad {had:?}\nhas {has:?}")));
        }
        let explained = self.run.status.is_terminal() == self.run.waiting_for(self.graph).is_empty();
        if !explained {
            return Err(Broken("waiting_for is empty for an unfinished run, or not empty for a finished one".into()));
        }
        let (old, graph) = (std::mem::replace(&mut self.run, run), self.graph);
        let moved = |at: At| {
            let found = self.run.find(graph, &old.path(graph, at));
            found.ok_or_else(|| Broken(format!("{how} loses a step")))
        };
        self.running = self.running.iter().map(|&(at, n)| Ok((moved(at)?, n))).collect::<Result<_, Broken>>()?;
        self.waiting = self.waiting.iter().map(|&at| moved(at)).collect::<Result<_, Broken>>()?;
        self.children = self.children.iter().map(|&(at, n)| Ok((moved(at)?, n))).collect::<Result<_, Broken>>()?;
        let timers = self.timers.iter().map(|(&timer, &due)| {
            let at = timer.at.map(moved).transpose()?;
            Ok((Timer { at, ..timer }, due))
        });
        self.timers = timers.collect::<Result<_, Broken>>()?;
        Ok(())
    }
}

/// State derived from the steps, by path: edge counts per step; open, failed and named steps per instance.
fn derived(run: &Run, graph: &Graph) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for (at, state) in run.steps(graph) {
        all.insert(run.path(graph, at), format!("{} {} {}", state.open, state.live, state.failed));
    }
    all.extend(run.derived(graph));
    all
}

/// The callback URL of a wait in a simulated run.
pub fn callback(path: &str) -> String {
    format!("https://stepwell.invalid/wh/{path}")
}

/// The user name in a simulation.
pub fn someone() -> Arc<str> {
    "someone".into()
}
