//! The cost of one transition. Run with `make bench`.
//!
//! Compare `items/s` (transitions per second) within each list: it must stay constant, because the cost of a transition
//! must not grow with the finished steps, the size of the graph or the size of results.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Arc;
use stepwell_core::event::{Event, Outcome, Reply};
use stepwell_core::graph::{Call, Dialect, Graph, Handle, Kind, Origin, Retry, Spec, SpecEdge, SpecStep, StepDef};
use stepwell_core::plan::{Effect, Env, advance};
use stepwell_core::run::{At, Run};
use stepwell_core::simulate::callback;
use stepwell_core::template::{Mode, Template};
use stepwell_core::time::{Millis, Time};

fn main() {
    divan::main();
}

fn step(n: usize, args: &Value) -> SpecStep {
    let input = Template::parse(args, Mode::Standard).expect("a good template");
    let kind = Kind::Call { call: Call::Tool, input };
    let def = StepDef { retry: Retry::exponential(3, Millis(1_000)), ..StepDef::new(format!("step{n}"), kind) };
    SpecStep { def, origin: Origin(0), parent: None, entry: n == 0, aliases: Vec::new() }
}

fn build(steps: Vec<SpecStep>, edges: Vec<(usize, usize)>) -> Graph {
    let edge = |(from, to)| SpecEdge { from, handle: Handle::SUCCESS, to, origin: Origin(0) };
    let edges = edges.into_iter().map(edge).collect();
    let (dialect, origin) = (Dialect::Tasks, Origin(0));
    let spec = Spec { dialect, origin, vars: Vec::new(), steps, edges, output: None, max_iterations: 1_000 };
    Graph::build(spec).expect("a good graph")
}

/// Each step reads a field of the one before it.
fn chain(length: usize) -> Graph {
    let args = |n: usize| match n {
        0 => json!({"tool": "echo", "args": {"id": "{{input.id}}"}}),
        _ => json!({"tool": "echo", "args": {"id": format!("{{{{tasks.step{}.body.id}}}}", n - 1)}}),
    };
    let steps = (0..length).map(|n| step(n, &args(n))).collect();
    build(steps, (1..length).map(|n| (n - 1, n)).collect())
}

/// One step, then `width` parallel steps, then one that joins them.
fn fan(width: usize) -> Graph {
    let plain = json!({"tool": "echo", "args": {}});
    let last = width + 1;
    let steps = (0..=last).map(|n| step(n, &plain)).collect();
    build(steps, (1..last).flat_map(|n| [(0, n), (n, last)]).collect())
}

/// Runs to the end, one event per transition.
fn play(graph: &Graph, reply: &Reply) -> Run {
    let env = Env::plain(Time(0), &callback);
    let mut run = Run::new("run_bench", 1, Millis::DAY);
    let body = Arc::new(json!({"id": 1}));
    let mut event = Event::Triggered { body, headers: None, query: None, by: "bench".into(), queued: false };
    let mut todo: VecDeque<(At, u32)> = VecDeque::new();
    loop {
        let transition = advance(graph, &mut run, event, env).expect("every event counts");
        todo.extend(transition.effects.iter().filter_map(|effect| match effect {
            Effect::Dispatch { at, attempt } => Some((*at, *attempt)),
            _ => None,
        }));
        black_box(&transition);
        let Some((at, attempt)) = todo.pop_front() else { return run };
        event = Event::Reported { at, attempt, outcome: Outcome::Success(reply.clone()) };
    }
}

fn reply() -> Reply {
    Reply::body(json!({"id": 7}))
}

#[divan::bench(args = [10, 100, 1_000, 10_000])]
fn chain_of_steps(bencher: Bencher, length: usize) {
    let graph = chain(length);
    bencher.counter(ItemsCount::new(length + 1)).bench(|| play(&graph, &reply()));
}

#[divan::bench(args = [10, 100, 1_000, 9_998])]
fn fan_in(bencher: Bencher, width: usize) {
    let graph = fan(width);
    bencher.counter(ItemsCount::new(width + 3)).bench(|| play(&graph, &reply()));
}

#[divan::bench(args = [100, 10_000, 1_000_000])]
fn bytes_of_a_result(bencher: Bencher, bytes: usize) {
    let graph = chain(10);
    let reply = Reply::body(json!({"id": 7, "filler": "x".repeat(bytes)}));
    bencher.counter(ItemsCount::new(11usize)).bench(|| play(&graph, &reply));
}

#[divan::bench(args = [10, 1_000, 10_000])]
fn snapshot_bytes_per_step(bencher: Bencher, length: usize) {
    let graph = chain(length);
    let run = play(&graph, &reply());
    let bytes = serde_json::to_string(&run.snapshot(&graph)).expect("snapshots serialise").len();
    eprintln!("        a finished chain of {length}: {} bytes of snapshot per step", bytes / length);
    bencher.counter(ItemsCount::new(length)).bench(|| run.snapshot(&graph));
}
