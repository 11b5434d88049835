//! Plays a script: a run of the real planner on virtual time, in which calls and people do what the script says.
//!
//! Nothing is random. Of what is due at the same instant, results and answers come before timers, in the order in which
//! their steps were entered.

use super::made_up::made_up;
use super::script::{self, Fake, Given, Reply, Script, Series, Word, keys, without_loops};
use super::{EPOCH, World, someone};
use crate::definition::Definition;
use crate::event::{self, Answer, Event, Failure, Outcome, Verdict};
use crate::fact::Fact;
use crate::run::{At, Phase, StoredFact};
use crate::time::{Millis, Time};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The timeout of a call whose dialect gives none.
const FALLBACK_TIMEOUT: Millis = Millis::from_secs(30);
const SEED: u64 = 1;

/// What happens at steps about which the script says nothing.
#[derive(Clone, Copy)]
pub enum Otherwise<'a> {
    /// Code is evaluated; any other step ends the play.
    Evaluate(&'a dyn Evaluate),
    /// Calls succeed with a result that has the fields which later steps read, gates are approved, and what is waited
    /// for arrives.
    MakeUp,
}

/// Evaluates the code of a step.
pub trait Evaluate {
    fn evaluate(&self, path: &str, input: Value, timeout: Millis) -> Outcome;
}

/// What to play.
pub struct Play<'a> {
    pub definition: &'a Definition,
    pub script: &'a Script,
    pub otherwise: Otherwise<'a>,
    /// A run with more events goes in circles.
    pub max_events: u32,
}

/// How the run of a script went.
pub struct Played {
    pub status: &'static str,
    pub output: Value,
    pub error: Option<Failure>,
    /// The steps that ran, in the order in which they were entered.
    pub path: Vec<String>,
    /// The last state of every step that was reached, by path and by name.
    pub steps: BTreeMap<String, &'static str>,
    /// What each call was given, by path and by name.
    pub calls: BTreeMap<String, Vec<Value>>,
    pub took: Millis,
    pub log: Vec<(Time, StoredFact)>,
    /// The steps whose results or answers were made up, by name.
    pub made_up: BTreeMap<String, Value>,
    /// What the script does not say, if the run could not go on without it.
    pub stuck: Option<String>,
}

/// Something outside of the run that a step waits for: its attempt, or its wait and how many answers it has had.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Open {
    Call(At, u32),
    Child(At, u32),
    Wait(At, u32, usize),
}

/// An event that will happen, unless the step ends before; `None` if nothing will arrive.
struct Planned {
    due: Time,
    order: u32,
    event: Option<Event>,
}

struct Stage<'a> {
    play: &'a Play<'a>,
    world: World<'a>,
    planned: BTreeMap<Open, Planned>,
    /// How many results and answers were taken, by the key they are under.
    taken: HashMap<String, usize>,
    calls: BTreeMap<String, Vec<Value>>,
    made_up: BTreeMap<String, Value>,
    order: u32,
}

impl Play<'_> {
    pub fn play(&self) -> Played {
        let world = World::new(&self.definition.graph, SEED, self.definition.max_duration);
        let mut stage = Stage {
            play: self,
            world,
            planned: BTreeMap::new(),
            taken: HashMap::new(),
            calls: BTreeMap::new(),
            made_up: BTreeMap::new(),
            order: 0,
        };
        let stuck = stage.run().err();
        stage.ended(stuck)
    }
}

impl Stage<'_> {
    fn run(&mut self) -> Result<(), String> {
        let body = Arc::new(self.play.script.input.clone());
        self.feed(Event::Triggered { body, headers: None, query: None, by: someone(), queued: false })?;
        for _ in 0..self.play.max_events {
            if self.world.run.status.is_terminal() {
                return Ok(());
            }
            self.plan()?;
            self.next()?;
        }
        Err(format!("the run did not end within {} events", self.play.max_events))
    }

    fn feed(&mut self, event: Event) -> Result<(), String> {
        let fed = match event {
            Event::Timer(timer) => self.world.fire(timer),
            Event::Reported { at, attempt, outcome } => self.world.report(at, attempt, outcome),
            Event::ChildEnded { at, attempt, outcome } => self.world.child_ended(at, attempt, outcome),
            other => self.world.feed(other),
        };
        match fed {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(ignored)) => Err(format!("an event of the script changes nothing: {ignored}")),
            Err(broken) => Err(broken.to_string()),
        }
    }

    /// Lets the earliest of what is planned and of the timers happen.
    fn next(&mut self) -> Result<(), String> {
        let planned = self.planned.iter().filter(|(_, planned)| planned.event.is_some());
        let first = planned.min_by_key(|(_, planned)| (planned.due, planned.order)).map(|(open, p)| (*open, p.due));
        let timer = self.world.timers.values().min().copied();
        match first {
            Some((open, due)) if timer.is_none_or(|timer| due <= timer) => {
                self.world.now = self.world.now.max(due);
                let planned = self.planned.get_mut(&open).and_then(|planned| planned.event.take());
                planned.map_or(Ok(()), |event| self.feed(event))
            }
            _ => match self.world.next_timer() {
                Some(timer) => self.feed(Event::Timer(timer)),
                None => Err("nothing can happen any more, and the run has not ended".into()),
            },
        }
    }

    /// Plans what the script says about every step that waits and for which nothing is planned yet.
    fn plan(&mut self) -> Result<(), String> {
        let open = self.open();
        self.planned.retain(|known, _| open.contains(known));
        for open in open {
            if self.planned.contains_key(&open) {
                continue;
            }
            let (after, event) = match open {
                Open::Call(at, attempt) => {
                    let (after, outcome) = self.result(at)?;
                    (after, Some(Event::Reported { at, attempt, outcome }))
                }
                Open::Child(at, attempt) => match self.child(at)? {
                    Some((after, outcome)) => (after, Some(Event::ChildEnded { at, attempt, outcome })),
                    None => (Millis(0), None),
                },
                Open::Wait(at, attempt, _) => self.answer(at, attempt)?,
            };
            self.order += 1;
            let planned = Planned { due: self.world.now + after, order: self.order, event };
            self.planned.insert(open, planned);
        }
        Ok(())
    }

    fn open(&self) -> Vec<Open> {
        let world = &self.world;
        let mut open: Vec<Open> = world.running.iter().map(|&(at, attempt)| Open::Call(at, attempt)).collect();
        open.extend(world.children.iter().map(|&(at, attempt)| Open::Child(at, attempt)));
        for &at in &world.waiting {
            if let Some(state) = world.run.step(world.graph, at) {
                let answers = state.more.as_ref().map_or(0, |more| more.approvals.len());
                open.push(Open::Wait(at, state.attempt, answers));
            }
        }
        open
    }

    fn path(&self, at: At) -> String {
        self.world.run.path(self.world.graph, at)
    }

    /// The next value of the first key that speaks of the step.
    fn take<T: Clone>(&mut self, at: At, from: &BTreeMap<String, Series<T>>, what: &str) -> Result<Option<T>, String> {
        let Some(key) = keys(&self.path(at)).into_iter().find(|key| from.contains_key(key)) else { return Ok(None) };
        let nth = self.taken.entry(format!("{what} {key}")).or_default();
        let value = from[&key].nth(*nth).cloned();
        *nth += 1;
        let times = *nth;
        value.map(Some).ok_or_else(|| format!("step {key:?} needs {what} {times}, but {} are listed", times - 1))
    }

    /// The outcome of a call: what the script says or, for code, what the code does.
    fn result(&mut self, at: At) -> Result<(Millis, Outcome), String> {
        let script = self.play.script;
        self.note_call(at);
        let def = &self.world.graph.step(at.step).def;
        let timeout = def.timeout.unwrap_or(FALLBACK_TIMEOUT);
        match self.take(at, &script.calls, "result")? {
            Some(Fake::Result(outcome)) if outcome.after.0 < timeout => Ok((outcome.after.0, (*outcome).into())),
            Some(_) => Ok((timeout, Outcome::Failure { failure: Failure::timeout(timeout), reply: None })),
            None => match self.play.otherwise {
                Otherwise::Evaluate(code) if def.kind.name() == "javascript" => {
                    Ok((Millis(0), code.evaluate(&self.path(at), self.input(at), timeout)))
                }
                Otherwise::Evaluate(_) => Err(self.missing(at, "makes a call", "calls", "{body: …}")),
                Otherwise::MakeUp => Ok((Millis(0), self.make_up(at))),
            },
        }
    }

    fn child(&mut self, at: At) -> Result<Option<(Millis, Outcome)>, String> {
        let script = self.play.script;
        self.note_call(at);
        match (self.take(at, &script.calls, "result")?, self.play.otherwise) {
            (Some(Fake::Result(outcome)), _) => Ok(Some((outcome.after.0, (*outcome).into()))),
            (Some(Fake::Timeout), _) => Ok(None),
            (None, Otherwise::MakeUp) => Ok(Some((Millis(0), self.make_up(at)))),
            (None, Otherwise::Evaluate(_)) => Err(self.missing(at, "starts a child workflow", "calls", "{output: …}")),
        }
    }

    /// A successful call whose result has what later steps read of it.
    fn make_up(&mut self, at: At) -> Outcome {
        let body = self.note_made_up(at);
        let reply = event::Reply { status_code: Some(200), ..event::Reply::body(body) };
        Outcome::Success(reply)
    }

    fn note_made_up(&mut self, at: At) -> Value {
        let body = made_up(self.world.graph, at.step);
        let [_, name] = keys(&self.path(at));
        self.made_up.insert(name, body.clone());
        body
    }

    fn answer(&mut self, at: At, attempt: u32) -> Result<(Millis, Option<Event>), String> {
        let script = self.play.script;
        let phase = self.world.run.step(self.world.graph, at).map(|state| state.phase);
        let (waits, example) = match phase {
            Some(Phase::Webhook) => ("waits for a call", "{body: …}"),
            Some(Phase::Unsure) => ("does not know whether its call happened", "happened"),
            _ => ("asks for approval", "approve"),
        };
        let given = match self.take(at, &script.answers, "answer")? {
            None if matches!(self.play.otherwise, Otherwise::MakeUp) => self.made_up_answer(at, phase),
            None => return Err(self.missing(at, waits, "answers", example)),
            Some(Reply::Timeout) => return Ok((Millis(0), None)),
            Some(Reply::Given(given)) => *given,
        };
        let after = given.after.0;
        let wrong = || format!("step {:?} {waits}, so its answer must be such as {example}", self.path(at));
        let event = match (phase, given.answer) {
            (Some(Phase::Webhook), None) => Event::Delivered { at, body: Arc::new(given.body), truncated: false },
            (Some(Phase::Gate), Some(Word::Approve)) => self.decide(at, attempt, given, true),
            (Some(Phase::Gate), Some(Word::Deny)) => self.decide(at, attempt, given, false),
            (Some(Phase::Unsure), Some(word)) => {
                let verdict = match word {
                    Word::Happened => Verdict::Happened { body: given.body },
                    Word::RunAgain => Verdict::RunAgain,
                    Word::Fail => Verdict::Fail,
                    Word::Approve | Word::Deny => return Err(wrong()),
                };
                Event::Settled { at, attempt, verdict, by: someone() }
            }
            _ => return Err(wrong()),
        };
        Ok((after, Some(event)))
    }

    fn made_up_answer(&mut self, at: At, phase: Option<Phase>) -> Given {
        let answer = match phase {
            Some(Phase::Webhook) => return Given { body: self.note_made_up(at), ..Given::default() },
            Some(Phase::Unsure) => Word::Happened,
            _ => Word::Approve,
        };
        let form = made_up(self.world.graph, at.step).get("data").cloned();
        Given { answer: Some(answer), form, ..Given::default() }
    }

    /// People whom the script does not name are all different, so that several of them can approve.
    fn decide(&self, at: At, attempt: u32, given: Given, approve: bool) -> Event {
        let by = given.by.unwrap_or_else(|| format!("person {}", self.order + 1)).into();
        let comment = given.comment.map(Into::into);
        Event::Answered {
            at,
            attempt,
            answer: Answer { approve, by, comment, data: given.form, digest: None, input: None },
        }
    }

    fn missing(&self, at: At, does: &str, field: &str, example: &str) -> String {
        let step = without_loops(&self.path(at));
        format!("step {step:?} {does}, but nothing is given for it; add {field}: {{{step}: {example}}}")
    }

    fn input(&self, at: At) -> Value {
        let run = &self.world.run;
        let input = run.step(self.world.graph, at).and_then(|state| state.input);
        input.and_then(|id| run.values.get(id)).cloned().unwrap_or_default()
    }

    fn note_call(&mut self, at: At) {
        let input = self.input(at);
        let [path, name] = keys(&self.path(at));
        if path != name {
            self.calls.entry(path).or_default().push(input.clone());
        }
        self.calls.entry(name).or_default().push(input);
    }

    fn ended(self, stuck: Option<String>) -> Played {
        let (run, graph) = (&self.world.run, self.world.graph);
        let (mut path, mut steps) = (Vec::new(), BTreeMap::new());
        for (_, fact) in &self.world.log {
            if let Some(step) = entered(fact) {
                path.push(without_loops(step));
            }
        }
        // In the order of the log, so that a name in a loop means its last pass.
        for step in self.world.log.iter().filter_map(|(_, fact)| fact.step()) {
            let state = run.find(graph, step).and_then(|at| run.step(graph, at));
            if let Some(state) = state.filter(|_| !is_loop(step)) {
                for key in keys(step) {
                    steps.insert(key, state.phase.name());
                }
            }
        }
        Played {
            status: run.status.name(),
            output: run.output.and_then(|id| run.values.get(id)).cloned().unwrap_or_default(),
            error: run.failure.clone(),
            path,
            steps,
            calls: self.calls,
            took: self.world.now.since(EPOCH),
            made_up: self.made_up,
            stuck,
            log: self.world.log,
        }
    }
}

/// The step that a fact enters. A step that ends at once, such as a condition, has only its end in the log.
fn entered(fact: &StoredFact) -> Option<&str> {
    let step = match fact {
        Fact::Entered { step, attempt, .. } if *attempt <= 1 => step,
        Fact::Finished { step, attempt: 0, .. } => step,
        _ => return None,
    };
    (!is_loop(step)).then_some(step)
}

/// Loops are made by the engine of cycles; authors do not know their names.
fn is_loop(path: &str) -> bool {
    path.rsplit("].").next().is_some_and(|name| name.starts_with("loop:"))
}

impl From<script::Outcome> for Outcome {
    fn from(given: script::Outcome) -> Outcome {
        let headers = given.headers.map(Arc::new);
        let reply = || event::Reply { status_code: given.status, headers, ..event::Reply::body(given.body) };
        let failure = match (&given.error, given.status) {
            (Some(fails), _) => {
                let message = if fails.message.is_empty() { fails.code.clone() } else { fails.message.clone() };
                Failure { retryable: fails.retryable, ..Failure::new(&fails.code, message) }
            }
            // As HTTP steps judge a response.
            (None, Some(status)) if !(200..300).contains(&status) => Failure {
                retryable: status >= 500 || matches!(status, 408 | 425 | 429),
                may_have_happened: status >= 500,
                ..Failure::new(&format!("http_{status}"), format!("the call returned {status}"))
            },
            (None, _) => return Outcome::Success(reply()),
        };
        Outcome::Failure { failure, reply: given.status.is_some().then(reply) }
    }
}
