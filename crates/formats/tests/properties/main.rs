//! Random definitions in every dialect, with random orders of events including repeats, losses, crashes, cancels and
//! retries. After every event the planner must agree with the reference interpreter about every step, and the same
//! definition must end the same way whatever the order of events, and whatever the budget of a transition.
//!
//! `STEPWELL_CASES` sets the cases per dialect, `STEPWELL_SEED` the first seed. A failure prints its seed, the
//! definition and the events so far.

// In a test a panic is the report.
#![allow(clippy::unwrap_used)]

mod expressions;
mod generate;
mod reference;
mod walk;

use generate::{Dialect, Features, Rng};
use serde_json::Value;
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use stepwell_core::definition::Definition;
use walk::{Order, Walk};

const DEFAULT_CASES: u64 = 8_000;
/// From so many cases on, shares of them mean something.
const ENOUGH_CASES: u64 = 1_000;
/// How many other orders of the same case are compared.
const OTHER_ORDERS: u64 = 2;
/// From this many cases on, each feature must have its share of them.
const ENOUGH: u64 = 500;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect("a number"))
}

#[test]
fn the_planner_agrees_with_the_reference_on_random_tasks() {
    agree(Dialect::Tasks);
}

#[test]
fn the_planner_agrees_with_the_reference_on_random_flows() {
    agree(Dialect::Flow);
}

#[test]
fn the_planner_agrees_with_the_reference_on_random_graphs() {
    agree(Dialect::Graph);
}

fn agree(dialect: Dialect) {
    let (first, cases) = (setting("STEPWELL_SEED", 1), setting("STEPWELL_CASES", DEFAULT_CASES));
    let next = AtomicU64::new(first);
    let totals = Mutex::new(Totals::default());
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + cases {
                        return;
                    }
                    let case = case(seed, dialect);
                    totals.lock().unwrap().add(case);
                }
            });
        }
    });
    let totals = totals.into_inner().unwrap();
    println!("{dialect:?}: {}", totals.text());
    if cases >= ENOUGH {
        totals.check_shares(&[("arithmetic", 40), ("functions", 15), ("now", 4), ("vars", 20), ("defaults", 30)]);
    }
    // Few cases say nothing about shares.
    let rare = if cases < ENOUGH_CASES { Vec::new() } else { totals.rare(dialect) };
    assert!(rare.is_empty(), "{dialect:?}: too few cases had these (least percentage): {rare:?}");
}

/// What at least this many of 100 cases have: about a third of what was measured.
fn least(dialect: Dialect) -> &'static [(&'static str, u64)] {
    match dialect {
        Dialect::Tasks => &[
            ("joins", 20),
            ("ifs", 30),
            ("retries", 33),
            ("gates", 18),
            ("for_each", 22),
            ("waits", 16),
            ("children", 14),
            ("retried", 8),
            ("order tried", 33),
            ("completed", 20),
            ("failed", 7),
            ("cancelled", 4),
        ],
        Dialect::Flow => &[
            ("loops", 17),
            ("joins", 24),
            ("branches", 28),
            ("retries", 33),
            ("gates", 21),
            ("for_each", 13),
            ("error routes", 30),
            ("waits", 13),
            ("children", 7),
            ("retried", 8),
            ("order tried", 17),
            ("completed", 19),
            ("failed", 8),
            ("cancelled", 4),
        ],
        Dialect::Graph => &[
            ("loops", 16),
            ("joins", 29),
            ("any-joins", 7),
            ("branches", 27),
            ("retries", 32),
            ("gates", 16),
            ("for_each", 14),
            ("error routes", 29),
            ("waits", 13),
            ("children", 11),
            ("retried", 6),
            ("order tried", 32),
            ("completed", 22),
            ("failed", 7),
            ("cancelled", 2),
        ],
    }
}

/// Random runs that did not complete are retried under a version with one changed call.
#[test]
fn a_run_retried_under_a_changed_version_ends() {
    let (first, cases) = (setting("STEPWELL_SEED", 1), setting("STEPWELL_CASES", DEFAULT_CASES) / 4);
    let mut went_on = 0u64;
    for seed in first..first + cases {
        for dialect in [Dialect::Tasks, Dialect::Flow, Dialect::Graph] {
            let mut rng = Rng::new(seed);
            let size = 2 + rng.below(14);
            let text = generate::definition(&mut rng, dialect, size);
            let input = generate::input(&mut rng);
            let changed = change(&text, &mut rng);
            let (old, new) = match (stepwell_formats::read_value(&text), stepwell_formats::read_value(&changed)) {
                (Ok(old), Ok(new)) => (old, new),
                other => panic!("seed {seed}: {other:?}\n{changed}"),
            };
            let order = Order { seed, shuffle: seed, calm: true, budget: small_budget(seed) };
            let mut walk = Walk::new(&old, &text, &input, order);
            walk.run();
            went_on += u64::from(walk.go_on_under(&new));
        }
    }
    println!("{went_on} of {} runs were retried under a newer version", 3 * cases);
    assert!(went_on * 8 > cases, "{went_on} of {}", 3 * cases);
}

/// The definition with one of its calls changed.
fn change(definition: &Value, rng: &mut Rng) -> Value {
    let text = definition.to_string();
    let calls: Vec<usize> = text.match_indices("\"echo\"").map(|(at, _)| at).collect();
    if calls.is_empty() {
        return definition.clone();
    }
    let at = *rng.pick(&calls);
    let text = format!("{}\"log\"{}", &text[..at], &text[at + "\"echo\"".len()..]);
    serde_json::from_str(&text).expect("only a word was changed")
}

struct Case {
    features: Features,
    events: u64,
    retried: bool,
    reordered: bool,
    status: &'static str,
}

fn case(seed: u64, dialect: Dialect) -> Case {
    let mut rng = Rng::new(seed);
    let size = 2 + rng.below(14);
    let text = generate::definition(&mut rng, dialect, size);
    let input = generate::input(&mut rng);
    let definition = stepwell_formats::read_value(&text)
        .unwrap_or_else(|faults| panic!("seed {seed}: the definition is rejected: {:#?}\n{text:#}", faults.list));

    let budget = if rng.chance(50) { small_budget(seed) } else { u32::MAX };
    let mut rough = Walk::new(
        &definition,
        &text,
        &input,
        Order { seed, shuffle: rng.below(usize::MAX) as u64, calm: false, budget },
    );
    rough.run();
    let (events, retried, status) = (rough.events(), rough.retried(), rough.status());
    let reordered = same_in_any_order(seed, &definition, &text, &input);
    Case { features: generate::features(&text), events, retried, reordered, status }
}

/// From 1 to 7 decisions per transition.
fn small_budget(seed: u64) -> u32 {
    1 + (seed % 7) as u32
}

/// Without cancels and aborts, neither the order of events nor the budget matters.
fn same_in_any_order(seed: u64, definition: &Definition, text: &Value, input: &Value) -> bool {
    let walk = |shuffle: u64| {
        let budget = if shuffle % 2 == 1 { small_budget(seed) } else { u32::MAX };
        let mut walk = Walk::new(definition, text, input, Order { seed, shuffle, calm: true, budget });
        walk.run();
        walk
    };
    let first = walk(0);
    if first.order_mattered() {
        return false;
    }
    for shuffle in 1..=OTHER_ORDERS {
        let other = walk(shuffle);
        if !other.order_mattered() && first.outcome() != other.outcome() {
            panic!("seed {seed}: the outcome depends on the order\n{text:#}\n{}\n{}", first.story(), other.story());
        }
    }
    true
}

#[derive(Default)]
struct Totals {
    cases: u64,
    events: u64,
    retried: u64,
    reordered: u64,
    features: Vec<(&'static str, u64)>,
    ends: Vec<(&'static str, u64)>,
}

impl Totals {
    fn add(&mut self, case: Case) {
        self.cases += 1;
        self.events += case.events;
        self.retried += u64::from(case.retried);
        self.reordered += u64::from(case.reordered);
        let f = case.features;
        let present = [
            ("loops", f.loops),
            ("joins", f.joins),
            ("any-joins", f.any),
            ("branches", f.branches),
            ("ifs", f.ifs),
            ("retries", f.retries),
            ("gates", f.gates),
            ("for_each", f.for_each),
            ("error routes", f.error_routes),
            ("waits", f.waits),
            ("children", f.children),
            ("arithmetic", f.arithmetic),
            ("functions", f.functions),
            ("now", f.now),
            ("vars", f.vars),
            ("defaults", f.defaults),
        ];
        for (name, present) in present {
            count(&mut self.features, name, u64::from(present));
        }
        count(&mut self.ends, case.status, 1);
    }

    /// Each of these features must be in at least so many percent of the cases.
    fn check_shares(&self, least: &[(&str, u64)]) {
        for (name, percent) in least {
            let found = self.features.iter().find(|(known, _)| known == name).map_or(0, |(_, found)| *found);
            assert!(found * 100 >= self.cases * percent, "{name} is in {found} of {} cases", self.cases);
        }
    }

    /// What too few cases had.
    fn rare(&self, dialect: Dialect) -> Vec<(&'static str, u64)> {
        let found = |name: &str| {
            let counted = [("retried", self.retried), ("order tried", self.reordered)];
            let all = self.features.iter().chain(&self.ends).chain(&counted);
            all.copied().find(|(known, _)| *known == name).map_or(0, |(_, n)| n)
        };
        let rare = |(name, percent): &&(&str, u64)| found(name) * 100 < percent * self.cases;
        least(dialect).iter().filter(rare).copied().collect()
    }

    fn text(&self) -> String {
        let percent = |n: u64| n * 100 / self.cases.max(1);
        let mut text = format!("{} cases, {} events;", self.cases, self.events);
        for (name, n) in &self.features {
            let _ = write!(text, " {name} {}%", percent(*n));
        }
        let _ = write!(text, "; retried {}%, order tried {}%; ended", percent(self.retried), percent(self.reordered));
        for (name, n) in &self.ends {
            let _ = write!(text, " {name} {}%", percent(*n));
        }
        text
    }
}

fn count(list: &mut Vec<(&'static str, u64)>, name: &'static str, n: u64) {
    match list.iter_mut().find(|(known, _)| *known == name) {
        Some((_, total)) => *total += n,
        None => list.push((name, n)),
    }
}
