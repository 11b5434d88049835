//! The real engine and planner on a store that can crash at every commit, on virtual time: the same seed gives the same
//! history. What must always hold is checked at every commit (`past.rs`, `timing.rs`), at every execution of a step
//! (`ledger.rs`), whenever a client is told something (`client.rs`) and in the end (`verify.rs`).
//!
//! `STEPWELL_SIM_SEEDS` says how many seeds are tried, `STEPWELL_SEED` which one is the first.

// In a test a panic is the report.
#![allow(clippy::unwrap_used)]

mod books;
mod chance;
mod client;
mod faulty;
mod ledger;
mod life;
mod past;
mod sim;
mod timing;
mod verify;
mod workflows;

use sim::Sim;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, Once};

const SEEDS: u64 = 4_000;
const THREADS: usize = 2;
/// Failures that are shown.
const SHOWN: usize = 3;

/// A simulation in which these never happen proves nothing about them.
const MUST_HAPPEN: &[&str] = &[
    "store: refused",
    "store: lost",
    "store: late",
    "store: contested",
    "store: dies before",
    "store: dies after",
    "store: full",
    "two processes",
    "completed",
    "failed",
    "cancelled",
    "timeout",
    "trigger",
    "wait",
    "cancel",
    "retry",
    "answer",
    "deliver",
    "webhook",
    "ready",
    "settle",
    "status",
    "a worker was lost",
    "a person had it run again",
    "a step was tried again",
    "an outcome was unknown",
    "a message came early",
    "one of two approved",
    "a gate was escalated",
    "a run was retried",
    "a run went on under a newer version",
    "a run left the queue",
    "a gate expired",
    "a child failed",
    "a child could not be started",
    "a tree was too large",
    "an outcome stayed unknown",
    "a step timed out",
    "a step broke down",
    "a transition was cut",
    "a run was too large",
];

thread_local! {
    /// Tasks that panic are only missing: nobody waits for them.
    static PANICS: RefCell<Vec<String>> = RefCell::default();
}

/// What a seed came to.
#[derive(Debug)]
struct Outcome {
    trace: u64,
    broken: Vec<String>,
    commits: u64,
    executions: usize,
    runs: usize,
    seen: BTreeSet<&'static str>,
}

fn simulate(seed: u64) -> Outcome {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            PANICS.with_borrow_mut(|panics| panics.push(info.to_string()));
            before(info);
        }));
    });
    PANICS.take();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let sim = Sim::new(seed);
        life::live(&sim).await;
        let mut broken = sim.broken();
        if !broken.is_empty() {
            broken.insert(0, format!("{:?}", sim.mood));
        }
        broken.extend(PANICS.take().into_iter().map(|panic| format!("a task panicked: {panic}")));
        let (past, ledger) = (sim.past(), sim.ledger());
        let mut trace = DefaultHasher::new();
        past.trace().hash(&mut trace);
        for attempt in &ledger.order {
            let execution = &ledger.executions[attempt];
            (attempt, &execution.key, execution.began.0, execution.ended.map(|ended| ended.0)).hash(&mut trace);
        }
        Outcome {
            trace: trace.finish(),
            broken,
            commits: past.commits,
            executions: ledger.order.len(),
            runs: past.runs.len(),
            seen: sim.seen(),
        }
    })
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn whatever_goes_wrong_every_run_comes_to_its_end_once() {
    let (first, seeds) = (number("STEPWELL_SEED", 1), number("STEPWELL_SIM_SEEDS", SEEDS));
    let next = AtomicU64::new(first);
    let failed = Mutex::new(Vec::new());
    let totals = Mutex::new((0, 0, 0));
    let seen = Mutex::new(BTreeSet::new());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::SeqCst);
                    if seed >= first + seeds || failed.lock().unwrap().len() >= SHOWN {
                        return;
                    }
                    let outcome = simulate(seed);
                    let mut totals = totals.lock().unwrap();
                    *totals = (totals.0 + outcome.runs, totals.1 + outcome.commits, totals.2 + outcome.executions);
                    seen.lock().unwrap().extend(outcome.seen);
                    if !outcome.broken.is_empty() {
                        failed.lock().unwrap().push((seed, outcome.broken));
                    }
                }
            });
        }
    });
    let (runs, commits, executions) = totals.into_inner().unwrap();
    println!("{seeds} seeds from {first}: {runs} runs, {commits} commits, {executions} executions");
    let mut failed = failed.into_inner().unwrap();
    failed.sort();
    for (seed, broken) in &failed {
        println!("seed {seed} (STEPWELL_SEED={seed} STEPWELL_SIM_SEEDS=1):");
        broken.iter().for_each(|broken| println!("  {broken}"));
    }
    assert!(failed.is_empty(), "{} seeds failed, the first is seed {}", failed.len(), failed[0].0);
    if seeds >= SEEDS {
        let seen = seen.into_inner().unwrap();
        let missing: Vec<_> = MUST_HAPPEN.iter().filter(|what| !seen.contains(*what)).collect();
        assert!(missing.is_empty(), "in {seeds} seeds none of this happened: {missing:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_history() {
    for seed in 1..=40 {
        let (one, two) = (simulate(seed), simulate(seed));
        assert_eq!((one.trace, one.commits), (two.trace, two.commits), "seed {seed} is not repeated");
    }
}
