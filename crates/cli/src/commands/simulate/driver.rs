//! Drives one simulated run: picks the next event and injects faults.

use super::rng::Rng;
use super::script::{Fate, Script, outcome};
use super::timeline;
use serde_json::{Value, json};
use std::sync::Arc;
use stepwell_core::definition::Definition;
use stepwell_core::event::{Answer, Event, FailureKind, Outcome, Timer, TimerKind, Verdict};
use stepwell_core::expr::StepIx;
use stepwell_core::graph::{Kind, ScopeIx};
use stepwell_core::run::{At, Phase, StepState};
use stepwell_core::simulate::{Broken, World, someone};
use stepwell_core::time::Millis;

/// More than any useful simulation has; a run with more events counts as stuck.
const MAX_EVENTS: u64 = 100_000_000;
/// Crashes become rarer as the log grows, so that a long run does not spend its time recovering.
const LOG_PER_CRASH: usize = 500;

pub struct Driver<'a> {
    world: World<'a>,
    script: &'a Script,
    rng: Rng,
    calm: bool,
    /// Webhook waits outside any loop.
    webhooks: Vec<StepIx>,
    /// Delivered events, which may be delivered again.
    past: Vec<Event>,
    printed: usize,
    timeline: String,
    events: u64,
}

pub struct Ended {
    pub status: &'static str,
    pub output: Value,
    pub steps: Value,
    pub events: u64,
}

/// A possible next event.
enum Move {
    Report(At, u32),
    Child(At, u32),
    Gate(At, u32),
    Call(At),
    Settle(At, u32),
    Timer(Timer),
}

impl<'a> Driver<'a> {
    pub fn new(definition: &'a Definition, script: &'a Script, rng: Rng, calm: bool) -> Driver<'a> {
        let mut rng = rng;
        let world = World::new(&definition.graph, rng.next(), definition.max_duration);
        let graph = &definition.graph;
        let is_wait = |step: &StepIx| matches!(graph.step(*step).def.kind, Kind::Webhook { .. });
        let webhooks = graph.scope(ScopeIx::ROOT).steps.iter().copied().filter(is_wait).collect();
        let (past, timeline) = (Vec::new(), String::new());
        Driver { world, script, rng, calm, webhooks, past, printed: 0, timeline, events: 0 }
    }

    /// Returns how the run ended, or the broken invariant, and the timeline so far.
    pub fn run(mut self, input: Value) -> (Result<Ended, Broken>, String) {
        let result = self.play(input);
        let ended = result.map(|()| self.ended());
        (ended, self.timeline)
    }

    fn play(&mut self, input: Value) -> Result<(), Broken> {
        let body = Arc::new(input);
        self.feed(Event::Triggered { body, headers: None, query: None, by: someone(), queued: false })?;
        while !self.world.run.status.is_terminal() {
            if self.events > MAX_EVENTS {
                return Err(Broken(format!("the run did not end within {MAX_EVENTS} events")));
            }
            self.inject_faults()?;
            if !self.world.run.status.is_terminal() {
                self.step()?;
            }
        }
        self.world.crash_and_replay()
    }

    fn feed(&mut self, event: Event) -> Result<(), Broken> {
        self.past.push(event.clone());
        let result = match event {
            Event::Timer(timer) => self.world.fire(timer),
            Event::Reported { at, attempt, outcome } => self.world.report(at, attempt, outcome),
            Event::ChildEnded { at, attempt, outcome } => self.world.child_ended(at, attempt, outcome),
            Event::Lost { at, attempt, .. } => self.world.lose(at, attempt),
            other => self.world.feed(other),
        };
        self.events += 1;
        for (now, fact) in &self.world.log[self.printed..] {
            self.timeline.push_str(&timeline::line(*now, fact));
        }
        self.printed = self.world.log.len();
        result.map(|_| ())
    }

    /// Injects faults of the network and the machine.
    fn inject_faults(&mut self) -> Result<(), Broken> {
        if self.calm {
            return Ok(());
        }
        match self.rng.below(100) {
            // An event is delivered again, perhaps long after it took effect. Its sender may be gone, so nothing
            // follows it.
            0..15 => {
                if let Some(event) = self.rng.pick(&self.past).cloned() {
                    let triggers = matches!(event, Event::Triggered { .. } | Event::Cancelled { .. });
                    let current = self.is_current(&event);
                    if !triggers && !current {
                        self.feed(event)?;
                    }
                }
            }
            // The process crashes: memory is rebuilt and running attempts are lost. Rarer the longer recovery takes.
            15..19 if self.rng.below(1 + self.world.log.len() / LOG_PER_CRASH) == 0 => {
                if self.rng.percent(50) {
                    self.world.crash_and_replay()?
                } else {
                    self.world.crash_and_restore()?
                }
                // Instance numbers may have changed; a real sender would name steps by path.
                self.past.clear();
                self.timeline.push_str("                — crash and recovery —\n");
                for (at, attempt) in self.world.running.clone() {
                    self.feed(Event::Lost { at, attempt, stopped: false })?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether a repeated event would take effect because its attempt, child or timer is active again.
    fn is_current(&self, event: &Event) -> bool {
        match event {
            Event::Reported { at, attempt, .. } | Event::Lost { at, attempt, .. } => {
                self.world.running.contains(&(*at, *attempt))
            }
            Event::ChildEnded { at, attempt, .. } => self.world.children.contains(&(*at, *attempt)),
            Event::Timer(timer) => self.world.timers.contains_key(timer),
            _ => false,
        }
    }

    fn step(&mut self) -> Result<(), Broken> {
        let mut moves = self.moves();
        while !moves.is_empty() {
            let chosen = moves.swap_remove(self.rng.below(moves.len()));
            if let Some(event) = self.event(chosen) {
                return self.feed(event);
            }
        }
        // The script prevents all other events: time passes, until the run expires at the latest.
        match self.world.next_timer() {
            Some(timer) => self.feed(Event::Timer(timer)),
            None => Err(Broken("the run is stuck: no event is possible and it has not ended".into())),
        }
    }

    fn moves(&self) -> Vec<Move> {
        let world = &self.world;
        let mut moves: Vec<Move> = world.running.iter().map(|&(at, attempt)| Move::Report(at, attempt)).collect();
        moves.extend(world.children.iter().map(|&(at, attempt)| Move::Child(at, attempt)));
        for &at in &world.waiting {
            let Some(state) = world.run.step(world.graph, at) else { continue };
            match state.phase {
                Phase::Gate => moves.push(Move::Gate(at, state.attempt)),
                Phase::Unsure => moves.push(Move::Settle(at, state.attempt)),
                _ => moves.push(Move::Call(at)),
            }
        }
        moves.extend(self.early_call().map(Move::Call));
        // Timers fire only if nothing else can happen, or if delays are simulated.
        if moves.is_empty() || !self.calm {
            let alone = moves.is_empty();
            moves.extend(self.next_timer(alone).map(Move::Timer));
        }
        moves
    }

    /// The next timer, but not one that would pre-empt a scripted answer. The run's expiry fires only when time reaches
    /// it: when another timer is due after it, or nothing else can happen.
    fn next_timer(&self, alone: bool) -> Option<Timer> {
        let scripted = |timer: &Timer| {
            let fate = timer.at.and_then(|at| self.script.fate(self.name(at.step)));
            timer.kind == TimerKind::Timeout && !matches!(fate, None | Some(Fate::Timeout | Fate::Never))
        };
        let timers = || self.world.timers.iter().filter(|(timer, _)| !scripted(timer));
        let next = timers().min_by_key(|&(timer, due)| (*due, *timer)).map(|(timer, _)| *timer)?;
        let others = timers().any(|(timer, _)| timer.kind != TimerKind::Expire);
        (next.kind != TimerKind::Expire || others || alone).then_some(next)
    }

    /// A webhook wait of the root scope that has not been reached: calls may arrive early, except to scripted steps.
    fn early_call(&self) -> Option<At> {
        let world = &self.world;
        let may = |at: &At| world.run.step(world.graph, *at).is_some_and(|state| self.may_come_early(*at, state));
        self.webhooks.iter().map(|&step| At { instance: 0, step }).find(may)
    }

    /// Advances time for an attempt that times out.
    fn advance_time(&mut self, at: At, outcome: &Outcome) {
        if let Outcome::Failure { failure, .. } = outcome
            && failure.kind == FailureKind::Timeout
        {
            let length = self.world.graph.step(at.step).def.timeout.unwrap_or(Millis::from_secs(30));
            self.world.now = self.world.now + length;
        }
    }

    fn may_come_early(&self, at: At, state: &StepState) -> bool {
        let scripted = self.script.fate(self.name(at.step)).is_some();
        state.phase == Phase::Idle && !self.calm && state.mail().is_none() && !scripted
    }

    fn name(&self, step: StepIx) -> &'a str {
        &self.world.graph.step(step).def.name
    }

    /// The event of a move; `None` if the script says that it does not happen.
    fn event(&mut self, chosen: Move) -> Option<Event> {
        match chosen {
            Move::Report(at, attempt) => {
                let outcome = outcome(self.script, self.world.graph, at.step, &mut self.rng, self.calm)?;
                self.advance_time(at, &outcome);
                Some(Event::Reported { at, attempt, outcome })
            }
            Move::Child(at, attempt) => {
                let outcome = outcome(self.script, self.world.graph, at.step, &mut self.rng, self.calm)?;
                Some(Event::ChildEnded { at, attempt, outcome })
            }
            Move::Gate(at, attempt) => {
                let approve = match self.script.fate(self.name(at.step)) {
                    Some(Fate::Approve) => true,
                    Some(Fate::Deny) => false,
                    Some(_) => return None,
                    None => self.calm || self.rng.percent(75),
                };
                let by = format!("person {}", self.rng.below(9)).into();
                let answer = Answer { approve, by, comment: None, data: None, digest: None, input: None };
                Some(Event::Answered { at, attempt, answer })
            }
            Move::Call(at) => {
                let body = match self.script.fate(self.name(at.step)) {
                    Some(Fate::Call(body)) => body.clone(),
                    Some(_) => return None,
                    None => self.script.body(at.step, &mut self.rng),
                };
                Some(Event::Delivered { at, body: Arc::new(body), truncated: false })
            }
            Move::Settle(at, attempt) => {
                let verdict = match self.rng.below(3) {
                    0 => Verdict::Happened { body: self.script.body(at.step, &mut self.rng) },
                    1 => Verdict::RunAgain,
                    _ => Verdict::Fail,
                };
                Some(Event::Settled { at, attempt, verdict, by: someone() })
            }
            Move::Timer(timer) => {
                self.world.now = self.world.now.max(self.world.timers[&timer]);
                Some(Event::Timer(timer))
            }
        }
    }

    fn ended(&self) -> Ended {
        let (run, graph) = (&self.world.run, self.world.graph);
        let step = |(at, state): (At, &StepState)| {
            (run.path(graph, at), json!({"status": state.phase.name(), "attempt": state.attempt}))
        };
        let steps = run.steps(graph).filter(|(_, state)| state.phase != Phase::Idle).map(step).collect();
        let output = run.output.and_then(|id| run.values.get(id)).cloned().unwrap_or_default();
        Ended { status: run.status.name(), output, steps: Value::Object(steps), events: self.events }
    }
}
