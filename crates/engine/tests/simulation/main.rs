//! The real engine and planner on a store that can crash at every commit, on virtual time: the same seed gives the same
//! history. What must always hold is checked at every commit (`past.rs`, `timing.rs`), at every execution of a step
//! (`ledger.rs`, `rules.rs`), whenever a client is told something (`client.rs`) and in the end (`verify.rs`). Schedules
//! and notifications are in `automatic.rs`.
//!
//! `STEPWELL_SIM_SEEDS` says how many seeds are tried, `STEPWELL_SEED` which one is the first.

// In a test a panic is the report.
#![allow(clippy::unwrap_used)]

mod automatic;
mod chance;
mod client;
mod faulty;
mod ledger;
mod life;
mod past;
mod rows;
mod rules;
mod sim;
mod timing;
mod verify;
mod workflows;

use sim::Sim;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, Once};

const SEEDS: u64 = 4_000;
const THREADS: usize = 2;
/// Failures that are shown.
const SHOWN: usize = 3;

/// In at least this many of 1,000 seeds: a simulation in which these hardly ever happen proves nothing about them. About
/// a third of what was measured.
const MUST_HAPPEN: &[(&str, u64)] = &[
    ("store: refused", 250),
    ("store: lost", 235),
    ("store: late", 206),
    ("store: contested", 232),
    ("store: dies before", 150),
    ("store: dies after", 148),
    ("store: full", 63),
    ("two processes", 73),
    ("completed", 330),
    ("failed", 94),
    ("cancelled", 160),
    ("timeout", 27),
    ("trigger", 333),
    ("wait", 317),
    ("cancel", 66),
    ("retry", 32),
    ("answer", 46),
    ("deliver", 51),
    ("webhook", 21),
    ("ready", 47),
    ("settle", 10),
    ("status", 132),
    ("a worker was lost", 116),
    ("a person had it run again", 5),
    ("a step was tried again", 164),
    ("an outcome was unknown", 10),
    ("a message came early", 4),
    ("one of two approved", 15),
    ("a gate was escalated", 15),
    ("a run was retried", 32),
    ("a run went on under a newer version", 1),
    ("a run left the queue", 72),
    ("a scheduled run was due", 10),
    ("a gate expired", 13),
    ("a child failed", 22),
    ("a child could not be started", 25),
    ("a tree was too large", 13),
    ("an outcome stayed unknown", 17),
    ("a step timed out", 105),
    ("a step broke down", 5),
    ("a transition was cut", 177),
    ("a run was too large", 45),
    ("kill", 210),
    ("gentle restart", 67),
    ("disk is full for a while", 80),
    ("a used key was refused", 129),
    ("a run was purged", 22),
    ("erase", 65),
    ("override", 33),
    ("pause", 169),
    ("resume", 333),
    ("an erased run cannot be retried", 64),
    ("a step was overridden", 34),
    ("a schedule fired", 65),
    ("a tick was caught up", 1),
    ("a failure was told", 30),
    ("a message was sent again", 5),
    ("a worker was stopped", 40),
    ("a call was held", 60),
    ("a held call was approved", 55),
    ("a policy denied a call", 50),
    ("a call or a gate was denied", 50),
    ("a run lacked a right", 6),
    ("a run of the agent made a call", 70),
    ("the agent was refused", 100),
    ("the agent's user is disabled", 40),
    ("release", 4),
];

thread_local! {
    /// Tasks that panic are only missing: no one waits for them.
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
    seen: BTreeMap<&'static str, u64>,
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
    let seen = Mutex::new(BTreeMap::<&str, (u64, u64)>::new());
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
                    for (what, times) in outcome.seen {
                        let mut seen = seen.lock().unwrap();
                        let (seeds, total) = seen.entry(what).or_default();
                        (*seeds, *total) = (*seeds + 1, *total + times);
                    }
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
    happened_often_enough(seeds, &seen.into_inner().unwrap());
}

/// By event: the number of seeds with it, and how often it occurred in total.
fn happened_often_enough(seeds: u64, seen: &BTreeMap<&str, (u64, u64)>) {
    for (what, (of_seeds, times)) in seen {
        println!("{:>5} of 1,000 seeds, {times:>8} times: {what}", of_seeds * 1_000 / seeds);
    }
    let share = |what: &str| seen.get(what).map_or(0, |(of_seeds, _)| *of_seeds);
    let rare: Vec<_> = MUST_HAPPEN.iter().filter(|(what, least)| share(what) < least * seeds / 1_000).collect();
    assert!(rare.is_empty(), "in {seeds} seeds this happened too rarely (least share of 1,000 seeds): {rare:?}");
}

#[test]
fn the_same_seed_gives_the_same_history() {
    for seed in 1..=40 {
        let (one, two) = (simulate(seed), simulate(seed));
        assert_eq!((one.trace, one.commits), (two.trace, two.commits), "seed {seed} is not repeated");
    }
}
