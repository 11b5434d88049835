//! Plays one run: picks what happens next, and lets things go wrong on the way.

use super::chance::Chance;
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

/// More than any run worth simulating has; one that is still going is taken to be stuck.
const MAX_EVENTS: u64 = 100_000_000;
/// Crashes become rarer as the log grows, so that a long run is not spent recovering.
const LOG_PER_CRASH: usize = 500;

pub struct Driver<'a> {
    world: World<'a>,
    script: &'a Script,
    chance: Chance,
    calm: bool,
    /// Waits for a webhook outside any loop.
    webhooks: Vec<StepIx>,
    /// Events that were delivered, to be delivered again.
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

/// Something that can happen now.
enum Move {
    Report(At, u32),
    Child(At, u32),
    Gate(At, u32),
    Call(At),
    Settle(At, u32),
    Timer(Timer),
}

impl<'a> Driver<'a> {
    pub fn new(definition: &'a Definition, script: &'a Script, chance: Chance, calm: bool) -> Driver<'a> {
        let mut chance = chance;
        let world = World::new(&definition.graph, chance.next(), definition.max_duration);
        let graph = &definition.graph;
        let is_wait = |step: &StepIx| matches!(graph.step(*step).def.kind, Kind::Webhook { .. });
        let webhooks = graph.scope(ScopeIx::ROOT).steps.iter().copied().filter(is_wait).collect();
        let (past, timeline) = (Vec::new(), String::new());
        Driver { world, script, chance, calm, webhooks, past, printed: 0, timeline, events: 0 }
    }

    /// How the run ended, or what broke; and the timeline up to then.
    pub fn run(mut self, input: Value) -> (Result<Ended, Broken>, String) {
        let result = self.play(input);
        let ended = result.map(|()| self.ended());
        (ended, self.timeline)
    }

    fn play(&mut self, input: Value) -> Result<(), Broken> {
        let body = Arc::new(input);
        self.feed(Event::Triggered { body, headers: None, by: someone(), queued: false })?;
        while !self.world.run.status.is_terminal() {
            if self.events > MAX_EVENTS {
                return Err(Broken(format!("the run did not end within {MAX_EVENTS} events")));
            }
            self.trouble()?;
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
            Event::Lost { at, attempt } => self.world.lose(at, attempt),
            other => self.world.feed(other),
        };
        self.events += 1;
        for (now, fact) in &self.world.log[self.printed..] {
            self.timeline.push_str(&timeline::line(*now, fact));
        }
        self.printed = self.world.log.len();
        result.map(|_| ())
    }

    /// What a network and a machine can do to a run at any moment.
    fn trouble(&mut self) -> Result<(), Broken> {
        if self.calm {
            return Ok(());
        }
        match self.chance.below(100) {
            // Something is delivered again, perhaps long after it counted. Its sender may be gone: nothing else follows.
            0..15 => {
                if let Some(event) = self.chance.pick(&self.past).cloned() {
                    let triggers = matches!(event, Event::Triggered { .. } | Event::Cancelled { .. });
                    let current = self.is_current(&event);
                    if !triggers && !current {
                        self.feed(event)?;
                    }
                }
            }
            // The process dies: memory is rebuilt, and what was running is lost. Rarer the longer recovery takes.
            15..19 if self.chance.below(1 + self.world.log.len() / LOG_PER_CRASH) == 0 => {
                if self.chance.percent(50) {
                    self.world.crash_and_replay()?
                } else {
                    self.world.crash_and_restore()?
                }
                // Numbers of instances may have changed; a real sender would name steps by path.
                self.past.clear();
                self.timeline.push_str("                — crash and recovery —\n");
                for (at, attempt) in self.world.running.clone() {
                    self.feed(Event::Lost { at, attempt })?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A repeated event would count again only if what it speaks of is under way again.
    fn is_current(&self, event: &Event) -> bool {
        match event {
            Event::Reported { at, attempt, .. } | Event::Lost { at, attempt } => {
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
            let chosen = moves.swap_remove(self.chance.below(moves.len()));
            if let Some(event) = self.event(chosen) {
                return self.feed(event);
            }
        }
        // Whatever is left does not happen by script: time passes, in the end until the run expires.
        match self.world.next_timer() {
            Some(timer) => self.feed(Event::Timer(timer)),
            None => Err(Broken("nothing can happen any more, and the run has not ended".into())),
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
        // Time passes quickly only when nothing else is under way, or when things may take long.
        if moves.is_empty() || !self.calm {
            let alone = moves.is_empty();
            moves.extend(self.next_timer(alone).map(Move::Timer));
        }
        moves
    }

    /// The next timer, but not one that would take the place of a scripted answer. The end of the run's time comes when
    /// time reaches it, not before: that is when something else waits for time beyond it, or nothing else can happen.
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

    /// A wait of the root scope that has not been reached: calls may come early, but not to steps that are scripted.
    fn early_call(&self) -> Option<At> {
        let world = &self.world;
        let may = |at: &At| world.run.step(world.graph, *at).is_some_and(|state| self.may_come_early(*at, state));
        self.webhooks.iter().map(|&step| At { instance: 0, step }).find(may)
    }

    /// An attempt that times out takes its time.
    fn take_time(&mut self, at: At, outcome: &Outcome) {
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

    /// The event of a move; `None` if its script says that it does not happen.
    fn event(&mut self, chosen: Move) -> Option<Event> {
        match chosen {
            Move::Report(at, attempt) => {
                let outcome = outcome(self.script, self.world.graph, at.step, &mut self.chance, self.calm)?;
                self.take_time(at, &outcome);
                Some(Event::Reported { at, attempt, outcome })
            }
            Move::Child(at, attempt) => {
                let outcome = outcome(self.script, self.world.graph, at.step, &mut self.chance, self.calm)?;
                Some(Event::ChildEnded { at, attempt, outcome })
            }
            Move::Gate(at, attempt) => {
                let approve = match self.script.fate(self.name(at.step)) {
                    Some(Fate::Approve) => true,
                    Some(Fate::Deny) => false,
                    Some(_) => return None,
                    None => self.calm || self.chance.percent(75),
                };
                let by = format!("person {}", self.chance.below(9)).into();
                let answer = Answer { approve, by, comment: None, data: None, digest: None };
                Some(Event::Answered { at, attempt, answer })
            }
            Move::Call(at) => {
                let body = match self.script.fate(self.name(at.step)) {
                    Some(Fate::Call(body)) => body.clone(),
                    Some(_) => return None,
                    None => self.script.body(at.step, &mut self.chance),
                };
                Some(Event::Delivered { at, body: Arc::new(body) })
            }
            Move::Settle(at, attempt) => {
                let verdict = match self.chance.below(3) {
                    0 => Verdict::Happened { body: self.script.body(at.step, &mut self.chance) },
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
