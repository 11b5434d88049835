//! Describes a run as a story: events as short sentences, the state as one line of text.
//!
//! Events: `a ok`, `a ok {"v":1}`, `a fails` (worth retrying), `a errs` (worth it only if the author says so),
//! `a breaks` (never), `a times out`, `a lost`, `a unknown`, `a approved`, `a approved by bob`, `a denied`,
//! `a called {"v":1}` (webhook), `a woken`, `a happened`, `a again`,
//! `a given up`, `a held`, `a held 1h`, `a held for 2` (until two approve), `a deferred 1m`, `timer` (the next
//! one), `+30s` (time passes, timers fire), `cancel`, `retry`, `expire`, `crash`, `continue` (after a transition that
//! was cut by its budget).
//! `a#2 ok` reports for attempt 2, whatever the current one is. An event that must change nothing starts with `~`.

use serde_json::{Value, json};
use std::sync::Arc;
use stepwell_core::definition::Definition;
use stepwell_core::event::{Answer, Deferral, Event, Failure, Ignored, Outcome, Reply, Timer, TimerKind, Verdict};
use stepwell_core::limits::MAX_LOSSES;
use stepwell_core::plan::{Budget, Newer, Transition};
use stepwell_core::run::{At, Phase};
use stepwell_core::simulate::{Broken, World, someone};
use stepwell_core::time::Millis;

pub fn compile(text: &str) -> Definition {
    match stepwell_formats::read(text.as_bytes(), None) {
        Ok(definition) => definition,
        Err(faults) => panic!("{}", faults.render("definition", text)),
    }
}

/// A definition as the version to retry under.
pub fn newer(definition: &Definition, version: u32) -> Newer<'_> {
    Newer { graph: &definition.graph, version, max_duration: definition.max_duration }
}

pub struct Story<'g> {
    pub world: World<'g>,
}

impl<'g> Story<'g> {
    pub fn start(definition: &'g Definition, input: Value) -> Story<'g> {
        Story::start_within(definition, input, Budget::UNLIMITED)
    }

    pub fn start_within(definition: &'g Definition, input: Value, budget: Budget) -> Story<'g> {
        let mut world = World::new(&definition.graph, 1, definition.max_duration);
        (world.budget, world.max_losses) = (budget, MAX_LOSSES);
        let event =
            Event::Triggered { body: Arc::new(input), headers: None, query: None, by: someone(), queued: false };
        world.feed(event).unwrap().unwrap();
        Story { world }
    }

    pub fn tell(&mut self, sentence: &str) {
        let (sentence, refused) = match sentence.strip_prefix('~') {
            Some(rest) => (rest, true),
            None => (sentence, false),
        };
        let before = self.world.run.snapshot(self.world.graph);
        match self.event(sentence).unwrap_or_else(|broken| panic!("{sentence}: {broken}")) {
            Ok(_) => assert!(!refused, "{sentence}: should have changed nothing; now {}", self.line()),
            Err(ignored) => {
                assert!(refused, "{sentence}: ignored because {ignored}; state {}", self.line());
                assert_eq!(before, self.world.run.snapshot(self.world.graph), "{sentence}: changed the state");
            }
        }
        self.world.crash_and_replay().unwrap_or_else(|broken| panic!("after {sentence}: {broken}"));
        self.world.crash_and_restore().unwrap_or_else(|broken| panic!("after {sentence}: {broken}"));
    }

    fn event(&mut self, sentence: &str) -> Result<Result<Transition, Ignored>, Broken> {
        if let Some(length) = sentence.strip_prefix('+') {
            return self.pass(Millis::parse(length).unwrap());
        }
        match sentence {
            "cancel" => return self.world.feed(Event::Cancelled { by: someone(), reason: None }),
            "retry" => return self.world.feed(Event::Retried { by: someone().into() }),
            "timer" => {
                let timer = self.world.next_timer().expect("a timer is set");
                return self.world.fire(timer);
            }
            "expire" => {
                let (&timer, &due) = self.world.timers.iter().find(|(t, _)| t.kind == TimerKind::Expire).unwrap();
                self.world.now = due;
                return self.world.fire(timer);
            }
            "continue" => {
                let timer = Timer { kind: TimerKind::Continue, at: None, attempt: self.world.run.generation };
                return self.world.fire(timer);
            }
            "crash" => {
                for (at, attempt) in self.world.running.clone() {
                    self.world.lose(at, attempt)?.expect("a running attempt can be lost");
                }
                return Ok(Ok(Transition::default()));
            }
            _ => {}
        }
        let (subject, predicate) = sentence.split_once(' ').expect("a step and what happens to it");
        let (path, attempt) = match subject.split_once('#') {
            Some((path, attempt)) => (path, attempt.parse().unwrap()),
            None => (subject, self.attempt(subject)),
        };
        let Some(at) = self.world.run.find(self.world.graph, path) else { return Ok(Err(Ignored::UnknownStep)) };
        self.happens(at, attempt, predicate)
    }

    fn happens(&mut self, at: At, attempt: u32, predicate: &str) -> Result<Result<Transition, Ignored>, Broken> {
        let (verb, rest) = predicate.split_once(' ').unwrap_or((predicate, ""));
        let body = || if rest.starts_with(['{', '[', '"']) { serde_json::from_str(rest).unwrap() } else { Value::Null };
        let child = self.world.children.contains(&(at, attempt));
        let failure = |failure: Failure, reply| Outcome::Failure { failure, reply };
        let outcome = match verb {
            "ok" => Outcome::Success(Reply { status_code: Some(200), ..Reply::body(body()) }),
            "fails" => failure(Failure::retryable("test", "it failed"), None),
            "errs" => failure(Failure::new("tool_error", "it reported an error"), None),
            "breaks" => failure(Failure::new("forbidden", "it was refused"), None),
            "answers" => {
                let reply = Reply { status_code: Some(rest.parse().unwrap()), ..Reply::body(json!({"amount": 5})) };
                failure(Failure::new("http_status", format!("answered {rest}")), Some(reply))
            }
            "times" => failure(Failure::timeout(Millis(30_000)), None),
            "unknown" => failure(Failure { may_have_happened: true, ..Failure::retryable("cut", "cut off") }, None),
            "lost" => return self.world.lose(at, attempt),
            "approved" | "denied" => {
                let by = rest.strip_prefix("by ").unwrap_or("someone").into();
                let answer =
                    Answer { approve: verb == "approved", by, comment: None, data: None, digest: None, input: None };
                return self.world.feed(Event::Answered { at, attempt, answer });
            }
            "held" => {
                let needed: u64 = rest.strip_prefix("for ").map_or(1, |needed| needed.parse().unwrap());
                let ask = Arc::new(json!({"message": "may it?", "approvals": needed}));
                let timeout = Millis::parse(rest);
                return self.world.stop(at, attempt, Event::Held { at, attempt, ask, timeout, note: None });
            }
            "deferred" => {
                let due = self.world.now + Millis::parse(rest).unwrap();
                return self.world.stop(
                    at,
                    attempt,
                    Event::Deferred { at, attempt, due, why: Deferral::RateLimit, note: None },
                );
            }
            "called" => return self.world.feed(Event::Delivered { at, body: Arc::new(body()), truncated: false }),
            "woken" => return self.world.feed(Event::Woken { at, attempt, by: someone() }),
            "overridden" => {
                let outcome = match rest.split_once(' ') {
                    Some(("ok", body)) => Outcome::Success(Reply::body(serde_json::from_str(body).unwrap())),
                    _ => failure(Failure::new("overridden", "it will not end"), None),
                };
                return self.world.feed(Event::Overridden { at, attempt, outcome, by: someone(), comment: None });
            }
            "happened" | "again" | "given" => {
                let verdict = match verb {
                    "happened" => Verdict::Happened { body: body() },
                    "again" => Verdict::RunAgain,
                    _ => Verdict::Fail,
                };
                return self.world.feed(Event::Settled { at, attempt, verdict, by: someone() });
            }
            other => panic!("no event is called {other:?}"),
        };
        if child { self.world.child_ended(at, attempt, outcome) } else { self.world.report(at, attempt, outcome) }
    }

    fn attempt(&self, path: &str) -> u32 {
        let at = self.world.run.find(self.world.graph, path);
        at.and_then(|at| self.world.run.step(self.world.graph, at)).map_or(0, |state| state.attempt)
    }

    /// Lets time pass and fires every timer that comes due.
    fn pass(&mut self, length: Millis) -> Result<Result<Transition, Ignored>, Broken> {
        let end = self.world.now + length;
        while let Some((&timer, &due)) = self.world.timers.iter().min_by_key(|&(timer, due)| (*due, *timer)) {
            if due > end {
                break;
            }
            self.world.now = self.world.now.max(due);
            self.world.fire(timer)?.expect("a timer that is set counts");
        }
        self.world.now = end;
        Ok(Ok(Transition::default()))
    }

    /// `a=success b=running#2 | running`: the steps that started, in order, and the run.
    pub fn line(&self) -> String {
        let (graph, run) = (self.world.graph, &self.world.run);
        let mut words = Vec::new();
        for (at, state) in run.steps(graph) {
            let status = match state.phase {
                Phase::Idle => continue,
                Phase::Backoff => "backoff",
                Phase::Gate => "gate",
                Phase::Child => "child",
                Phase::Open => "open",
                Phase::Unsure => "unsure",
                phase => phase.name(),
            };
            let attempt = if state.attempt > 1 { format!("#{}", state.attempt) } else { String::new() };
            words.push(format!("{}={status}{attempt}", run.path(graph, at)));
        }
        let status = if run.is_paused() { "paused" } else { run.status.name() };
        format!("{} | {status}", words.join(" "))
    }

    pub fn output(&self) -> Value {
        let output = self.world.run.output.and_then(|id| self.world.run.values.get(id));
        output.cloned().unwrap_or_default()
    }

    pub fn input_of(&self, path: &str) -> Value {
        let at = self.world.run.find(self.world.graph, path).unwrap();
        let state = self.world.run.step(self.world.graph, at).unwrap();
        state.input.and_then(|id| self.world.run.values.get(id)).cloned().unwrap_or_default()
    }

    /// The request of a gate or a held step.
    pub fn asked(&self, path: &str) -> Value {
        let at = self.world.run.find(self.world.graph, path).unwrap();
        let state = self.world.run.step(self.world.graph, at).unwrap();
        self.world.run.ask(state).cloned().unwrap_or_default()
    }

    /// An answer that names a digest.
    pub fn answer(&mut self, path: &str, digest: &str) -> Result<(), Ignored> {
        let at = self.world.run.find(self.world.graph, path).unwrap();
        let by = "someone".into();
        let answer = Answer { approve: true, by, comment: None, data: None, digest: Some(digest.into()), input: None };
        let attempt = self.attempt(path);
        self.world.feed(Event::Answered { at, attempt, answer }).unwrap().map(|_| ())
    }

    pub fn error_of(&self, path: &str) -> String {
        let at = self.world.run.find(self.world.graph, path).unwrap();
        let state = self.world.run.step(self.world.graph, at).unwrap();
        state.failure().map(|failure| failure.message.to_string()).unwrap_or_default()
    }
}

/// Runs a definition through events and compares the line at the end.
pub fn check(definition: &str, events: &[&str], expected: &str) {
    check_input(definition, json!({}), events, expected);
}

pub fn check_input(definition: &str, input: Value, events: &[&str], expected: &str) {
    let definition = compile(definition);
    let mut story = Story::start(&definition, input);
    events.iter().for_each(|event| story.tell(event));
    assert_eq!(story.line(), expected, "after {events:?}");
}

/// A small graph: nodes as `id` or `id:type config`, edges as `a>b` or `a.handle>b`.
pub fn graph(nodes: &str, edges: &str) -> String {
    let node = |entry: &str| {
        let (id, rest) = entry.split_once(':').unwrap_or((entry, "tool"));
        let (kind, config) = rest.split_once(' ').unwrap_or((rest, ""));
        let base = if kind == "tool" { "tool: echo, maxAttempts: 1, " } else { "" };
        format!("  - {{nodeID: {id}, nodeType: {kind}, nodeConfig: {{{base}{config}}}}}\n")
    };
    let edge = |entry: &str| {
        let (from, to) = entry.split_once('>').unwrap();
        let (from, handle) = from.split_once('.').unwrap_or((from, "output"));
        format!("  - {{upstreamNodeID: {from}, downstreamNodeID: {to}, sourceHandle: {handle}}}\n")
    };
    let nodes: String = nodes.split("; ").map(node).collect();
    let edges: String = edges.split_whitespace().map(edge).collect();
    format!("name: g\nmax_iterations: 3\nnodes:\n{nodes}edges:\n{edges}")
}

pub const DIAMOND: &str = "
name: diamond
tasks:
  a: {tool: echo}
  b: {needs: a, tool: echo}
  c: {needs: a, tool: echo}
  d: {needs: [b, c], tool: echo}
";

pub const RETRY: &str = "
name: retry
tasks:
  a: {tool: echo, retries: 2}
  b: {needs: a, tool: echo}
";

pub const EACH: &str = "
name: each
tasks:
  all:
    for_each: '{{input.items}}'
    max_parallel: 2
    tasks:
      work: {tool: echo, args: {x: '{{item}}', i: '{{index}}'}, retries: 0}
    output: '{{tasks.work.body}}'
  after: {needs: all, tool: echo, args: {list: '{{tasks.all.body}}'}}
";

pub const GATE: &str = "
name: gate
tasks:
  ask: {approval: {message: ok?, timeout: 1h}}
  do: {needs: ask, tool: echo}
";
