//! One walk through a definition: compares the planner and the reference, event by event.

use super::generate::{self, Rng, Verdict};
use super::reference::{Input, Phase as Expected, Reference};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use stepwell_core::definition::Definition;
use stepwell_core::event::{Answer, Deferral, Event, Failure, Outcome, Reply, Timer, TimerKind};
use stepwell_core::graph::Kind;
use stepwell_core::plan::{Budget, Newer, standing};
use stepwell_core::run::{At, Phase, Run};
use stepwell_core::simulate::{World, someone};
use stepwell_core::time::Millis;

/// The outcomes of steps depend on `seed` alone, the order of events on `shuffle`. A calm walk has no losses, cancels
/// or retries, and crashes only where the budget cut a transition.
#[derive(Clone, Copy)]
pub struct Order {
    pub seed: u64,
    pub shuffle: u64,
    pub calm: bool,
    /// Decisions of one transition.
    pub budget: u32,
}

const MAX_EVENTS: u64 = 20_000;
const MAX_RETRIES: u32 = 2;

pub struct Walk<'a> {
    world: World<'a>,
    /// `None` once the run is on another version, which the reference does not support.
    reference: Option<Reference>,
    definition: &'a Value,
    order: Order,
    rng: Rng,
    /// Reports per path that were not losses: determines an attempt's outcome, whatever its number.
    reports: HashMap<String, u32>,
    /// Calls for which it was decided whether they are held or deferred.
    stopped: BTreeSet<String>,
    /// Events that counted, with the path of their step: repeating them must change nothing.
    past: Vec<(Option<String>, Event)>,
    story: Vec<String>,
    events: u64,
    retries: u32,
}

/// Something that can happen, by path.
enum Move {
    Report(At, u32),
    Child(At, u32),
    Answer(At, u32),
    Call(At),
    Fire(Timer),
}

impl<'a> Walk<'a> {
    pub fn new(compiled: &'a Definition, definition: &'a Value, input: &Value, order: Order) -> Walk<'a> {
        let mut world = World::new(&compiled.graph, order.seed, compiled.max_duration);
        world.budget = Budget { decisions: order.budget, ..Budget::UNLIMITED };
        let body = Arc::new(input.clone());
        let event = Event::Triggered { body, headers: None, query: None, by: someone(), queued: false };
        let now = world.now.to_string();
        let reference = Reference::start(definition, input, order.budget, &now);
        let started = world.feed(event).map(|result| result.map(|_| ()));
        let walk = Walk {
            world,
            reference: Some(reference),
            definition,
            order,
            rng: Rng::new(order.seed ^ order.shuffle.rotate_left(32)),
            reports: HashMap::new(),
            stopped: BTreeSet::new(),
            past: Vec::new(),
            story: vec!["start".into()],
            events: 1,
            retries: 0,
        };
        match started {
            Ok(Ok(())) => walk.compare(),
            other => walk.fail(&format!("the run does not start: {other:?}")),
        }
        walk
    }

    pub fn run(&mut self) {
        loop {
            while !self.world.run.status.is_terminal() {
                if self.events > MAX_EVENTS {
                    self.fail("the run does not end");
                }
                if !self.order.calm {
                    self.trouble();
                }
                if !self.world.run.status.is_terminal() {
                    self.step();
                }
            }
            self.repeat();
            if self.order.calm || self.retries >= MAX_RETRIES || !self.rng.chance(50) || !self.retry() {
                break;
            }
        }
        self.recover();
    }

    /// Retries the run under a newer version, if possible, and continues to its end. Kept results must not change.
    pub fn go_on_under(&mut self, newer: &'a Definition) -> bool {
        let (old, new) = (self.world.graph, &newer.graph);
        let Ok(standing) = standing(old, new, &self.world.run) else { return false };
        let kept = |run: &Run, graph| -> Vec<(Phase, u32)> {
            let find =
                |name: &String| run.step(graph, run.find(graph, name)?).map(|state| (state.phase, state.attempt));
            standing.stands.iter().filter_map(find).collect()
        };
        let before = kept(&self.world.run, old);
        self.reference = None;
        self.past.clear();
        self.story.push(format!("a newer version; stands: {:?}", standing.stands));
        let version = Newer { graph: new, version: 2, max_duration: newer.max_duration };
        match self.world.retry_onto(version) {
            Ok(Ok(_)) => {}
            other => self.fail(&format!("it does not go on: {other:?}")),
        }
        self.run();
        let after = kept(&self.world.run, new);
        if self.retries == 0 && before != after {
            self.fail(&format!("what stands was touched: {before:?} became {after:?}"));
        }
        true
    }

    pub fn outcome(&self) -> (&'static str, BTreeMap<String, String>) {
        let reference = self.reference.as_ref().expect("a walk on one version");
        (reference.status(), reference.settled())
    }

    pub fn order_mattered(&self) -> bool {
        self.reference.as_ref().is_none_or(Reference::order_mattered)
    }

    pub fn status(&self) -> &'static str {
        self.world.run.status.name()
    }

    pub fn events(&self) -> u64 {
        self.events
    }

    pub fn retried(&self) -> bool {
        self.retries > 0
    }

    pub fn story(&self) -> String {
        self.story.join("\n")
    }

    fn fail(&self, what: &str) -> ! {
        let Order { seed, shuffle, calm, budget } = self.order;
        let (story, definition) = (self.story(), self.definition);
        panic!("seed {seed} (shuffle {shuffle}, calm {calm}, budget {budget}): {what}\n{definition}\n{story}");
    }

    fn path(&self, at: At) -> String {
        self.world.run.path(self.world.graph, at)
    }

    /// Faults of a network or a machine, at any moment.
    fn trouble(&mut self) {
        match self.rng.below(100) {
            0..10 => self.repeat(),
            10..13 => self.recover(),
            13..18 => {
                let running: Vec<(At, u32)> = self.world.running.iter().copied().collect();
                if !running.is_empty() {
                    let (at, attempt) = *self.rng.pick(&running);
                    let path = self.path(at);
                    // Whether the node crashed or stopped is the same to the run.
                    let stopped = attempt.is_multiple_of(2);
                    self.feed(Event::Lost { at, attempt, stopped }, Input::Lost { path });
                }
            }
            18 if self.rng.chance(60) => self.feed(Event::Cancelled { by: someone(), reason: None }, Input::Cancel),
            19 if self.rng.chance(60) => {
                let expiry = self.world.timers.keys().find(|timer| timer.kind == TimerKind::Expire).copied();
                if let Some(timer) = expiry {
                    self.world.now = self.world.now.max(self.world.timers[&timer]);
                    self.feed(Event::Timer(timer), Input::Expire);
                }
            }
            _ => {}
        }
    }

    /// Delivers an event that counted again.
    fn repeat(&mut self) {
        if self.past.is_empty() {
            return;
        }
        let (path, event) = self.past[self.rng.below(self.past.len())].clone();
        let at = match &path {
            Some(path) => match self.world.run.find(self.world.graph, path) {
                Some(at) => Some(at),
                None => self.fail(&format!("{path} is gone")),
            },
            None => None,
        };
        let event = readdressed(event, at);
        let before = self.world.run.snapshot(self.world.graph);
        match self.world.feed(event.clone()) {
            Ok(Err(_)) => {}
            other => self.fail(&format!("{event:?} was delivered again and gave {other:?}")),
        }
        if before != self.world.run.snapshot(self.world.graph) {
            self.fail(&format!("{event:?} was delivered again and changed the state"));
        }
    }

    fn recover(&mut self) {
        let result = if self.rng.chance(50) { self.world.crash_and_replay() } else { self.world.crash_and_restore() };
        if let Err(broken) = result {
            self.fail(&broken.to_string());
        }
    }

    fn retry(&mut self) -> bool {
        let retryable = !matches!(self.status(), "completed");
        if retryable {
            self.feed(Event::Retried { by: someone().into() }, Input::Retry);
            self.retries += 1;
            // These name no attempt: after a retry they would correctly count again.
            self.past.retain(|(_, event)| !matches!(event, Event::Delivered { .. } | Event::Cancelled { .. }));
        }
        retryable
    }

    fn step(&mut self) {
        let mut moves = self.moves();
        if moves.is_empty() {
            self.fail("nothing can happen and the run has not ended");
        }
        let chosen = moves.swap_remove(self.rng.below(moves.len()));
        self.take(chosen);
    }

    /// What can happen now. A wait can end in only one way, determined by its path.
    fn moves(&mut self) -> Vec<Move> {
        let world = &self.world;
        let mut moves: Vec<Move> = world.running.iter().map(|&(at, attempt)| Move::Report(at, attempt)).collect();
        moves.extend(world.children.iter().map(|&(at, attempt)| Move::Child(at, attempt)));
        for (at, state) in world.run.steps(world.graph) {
            let webhook = matches!(world.graph.step(at.step).def.kind, Kind::Webhook { .. });
            match state.phase {
                Phase::Gate if !self.expires(at) => moves.push(Move::Answer(at, state.attempt)),
                Phase::Webhook if !self.expires(at) => moves.push(Move::Call(at)),
                // An early call must have the same outcome as a call in time.
                Phase::Idle if webhook && state.mail().is_none() && !self.would_expire(at) => {
                    moves.push(Move::Call(at))
                }
                _ => {}
            }
        }
        for &timer in world.timers.keys() {
            let Some(at) = timer.at else {
                moves.extend((timer.kind == TimerKind::Continue).then_some(Move::Fire(timer)));
                continue;
            };
            if timer.kind != TimerKind::Timeout || self.expires(at) {
                moves.push(Move::Fire(timer));
            }
        }
        moves
    }

    /// Whether this wait or gate is meant to time out.
    fn expires(&self, at: At) -> bool {
        let state = self.world.run.step(self.world.graph, at);
        state.is_some_and(|state| state.due.is_some()) && self.would_expire(at)
    }

    fn would_expire(&self, at: At) -> bool {
        let timeout = match &self.world.graph.step(at.step).def.kind {
            Kind::Webhook { timeout } => *timeout,
            Kind::Gate(gate) => gate.timeout,
            _ => None,
        };
        timeout.is_some() && generate::choice(self.order.seed, &self.path(at), 0, 3) == 0
    }

    fn take(&mut self, chosen: Move) {
        let seed = self.order.seed;
        match chosen {
            Move::Report(at, attempt) => {
                let path = self.path(at);
                if self.stopped.insert(path.clone()) {
                    // Before its first attempt a call may be held for an approval, or deferred.
                    match generate::choice(seed, &format!("{path}?"), 0, 10) {
                        0 => {
                            let event = Event::Held { at, attempt, ask: Arc::default(), timeout: None, note: None };
                            return self.feed(event, Input::Held { path });
                        }
                        1 => {
                            let event = Event::Deferred {
                                at,
                                attempt,
                                due: self.world.now + Millis(1_000),
                                why: Deferral::RateLimit,
                                note: None,
                            };
                            return self.feed(event, Input::Deferred { path });
                        }
                        _ => {}
                    }
                }
                let turn = self.turn(&path);
                let (outcome, input) = outcome(seed, &path, turn);
                self.feed(Event::Reported { at, attempt, outcome }, input);
            }
            Move::Child(at, attempt) => {
                let path = self.path(at);
                let turn = self.turn(&path);
                let ok = generate::choice(seed, &path, turn, 3) > 0;
                let outcome = match ok {
                    true => Outcome::Success(Reply::body(generate::output(seed, &path, turn))),
                    false => Outcome::Failure { failure: Failure::retryable("child", "the child failed"), reply: None },
                };
                self.feed(Event::ChildEnded { at, attempt, outcome }, Input::Child { path, ok });
            }
            Move::Answer(at, attempt) => {
                let path = self.path(at);
                let turn = self.turn(&path);
                let approve = generate::choice(seed, &path, turn, 3) > 0;
                let answer = Answer { approve, by: someone(), comment: None, data: None, digest: None, input: None };
                self.feed(Event::Answered { at, attempt, answer }, Input::Answer { path, approve });
            }
            Move::Call(at) => {
                let path = self.path(at);
                let body = generate::output(seed, &path, 0);
                let event = Event::Delivered { at, body: Arc::new(body.clone()), truncated: false };
                self.feed(event, Input::Webhook { path, body });
            }
            // It may fire early: nothing waits for its time.
            Move::Fire(timer) if timer.kind == TimerKind::Continue => self.feed(Event::Timer(timer), Input::Continue),
            Move::Fire(timer) => {
                self.world.now = self.world.now.max(self.world.timers[&timer]);
                let path = timer.at.map(|at| self.path(at)).unwrap_or_default();
                self.feed(Event::Timer(timer), Input::Fire { path });
            }
        }
    }

    fn turn(&mut self, path: &str) -> u32 {
        let turn = self.reports.entry(path.to_string()).or_default();
        *turn += 1;
        *turn
    }

    /// Feeds both the same event; they must agree about everything afterwards.
    fn feed(&mut self, event: Event, input: Input) {
        self.events += 1;
        self.story.push(format!("{input:?}"));
        let path = address(&event).map(|at| self.path(at));
        let result = match event.clone() {
            Event::Timer(timer) => self.world.fire(timer),
            Event::Reported { at, attempt, outcome } => self.world.report(at, attempt, outcome),
            Event::ChildEnded { at, attempt, outcome } => self.world.child_ended(at, attempt, outcome),
            Event::Lost { at, attempt, .. } | Event::Held { at, attempt, .. } | Event::Deferred { at, attempt, .. } => {
                self.world.stop(at, attempt, event.clone())
            }
            other => self.world.feed(other),
        };
        let planned = match result {
            Ok(Ok(_)) => true,
            Ok(Err(_)) => false,
            Err(broken) => self.fail(&broken.to_string()),
        };
        let now = self.world.now.to_string();
        if self.reference.as_mut().is_some_and(|reference| reference.apply(&input, &now) != planned) {
            self.fail(&format!("{input:?} counted for one and not for the other (planner: {planned})"));
        }
        // While decisions are left, a continuation counts each time.
        if planned && !matches!(input, Input::Retry | Input::Continue) {
            self.past.push((path, event));
        }
        self.compare();
        if self.world.run.has_decisions_left() && self.rng.chance(30) {
            self.recover();
            self.compare();
        }
    }

    fn compare(&self) {
        let Some(reference) = &self.reference else { return };
        let (run, graph) = (&self.world.run, self.world.graph);
        let mut active = BTreeMap::new();
        let mut settled = BTreeMap::new();
        for (at, state) in run.steps(graph) {
            let phase = match state.phase {
                Phase::Idle => continue,
                Phase::Done(status) => {
                    settled.insert(run.path(graph, at), status.name().to_string());
                    continue;
                }
                Phase::Running => Expected::Running,
                Phase::Backoff => Expected::Backoff,
                Phase::Sleeping => Expected::Sleeping,
                Phase::Webhook => Expected::Waiting,
                Phase::Gate => Expected::Gate,
                Phase::Child => Expected::Child,
                Phase::Open => Expected::Open,
                Phase::Unsure => self.fail("nothing generated here can be unsure"),
            };
            active.insert(run.path(graph, at), phase);
        }
        let rendered = reference.rendered();
        for (at, state) in run.steps(graph).filter(|(_, state)| state.phase != Phase::Idle) {
            let input = state.input.and_then(|id| run.values.get(id));
            let sent = input.and_then(|input| input.pointer("/args/x").or(input.pointer("/body/x")));
            let path = run.path(graph, at);
            if sent.is_some_and(|sent| rendered.get(path.as_str()) != Some(&sent)) {
                self.fail(&format!("{path} got {sent:?}, but the reference has {:?}", rendered.get(path.as_str())));
            }
        }
        let planner = (run.status.name(), active, settled);
        let reference = (reference.status(), reference.active(), reference.settled());
        if planner != reference {
            self.fail(&format!("they differ\nplanner   {planner:?}\nreference {reference:?}"));
        }
    }
}

fn outcome(seed: u64, path: &str, turn: u32) -> (Outcome, Input) {
    let path = path.to_string();
    let failed = |failure: Failure| Outcome::Failure { failure, reply: None };
    match generate::verdict(seed, &path, turn) {
        Verdict::Success => {
            let output = generate::output(seed, &path, turn);
            (Outcome::Success(Reply::body(output.clone())), Input::Done { path, output })
        }
        Verdict::Fail { retryable } => {
            let failure = Failure { retryable, ..Failure::new("test", "it failed") };
            (failed(failure), Input::Failed { path, retryable })
        }
        Verdict::Refused => (failed(Failure::new("forbidden", "it is forbidden")), Input::Refused { path }),
        Verdict::Timeout => (failed(Failure::timeout(Millis(1_000))), Input::TimedOut { path }),
    }
}

fn address(event: &Event) -> Option<At> {
    match event {
        Event::Reported { at, .. }
        | Event::Held { at, .. }
        | Event::Deferred { at, .. }
        | Event::Lost { at, .. }
        | Event::Delivered { at, .. }
        | Event::Answered { at, .. }
        | Event::ChildEnded { at, .. }
        | Event::Woken { at, .. }
        | Event::Settled { at, .. }
        | Event::Overridden { at, .. } => Some(*at),
        Event::Timer(timer) => timer.at,
        Event::Triggered { .. }
        | Event::Admitted
        | Event::Scheduled { .. }
        | Event::Cancelled { .. }
        | Event::Retried { .. } => None,
    }
}

/// The same event with the step's current number.
fn readdressed(event: Event, to: Option<At>) -> Event {
    let Some(to) = to else { return event };
    let mut event = event;
    match &mut event {
        Event::Reported { at, .. }
        | Event::Held { at, .. }
        | Event::Deferred { at, .. }
        | Event::Lost { at, .. }
        | Event::Delivered { at, .. }
        | Event::Answered { at, .. }
        | Event::ChildEnded { at, .. }
        | Event::Woken { at, .. }
        | Event::Settled { at, .. }
        | Event::Overridden { at, .. } => *at = to,
        Event::Timer(timer) => timer.at = Some(to),
        Event::Triggered { .. }
        | Event::Admitted
        | Event::Scheduled { .. }
        | Event::Cancelled { .. }
        | Event::Retried { .. } => {}
    }
    event
}
