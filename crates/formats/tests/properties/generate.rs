//! Random valid definitions of all three dialects, and random but repeatable outcomes of their steps.
//!
//! Nothing generated reads a value that depends on the order of events: an expression names only steps that are
//! terminal whenever it is evaluated. The reference reports afterwards (`Reference::order_mattered`) if the outcome
//! depended on the order anyway: an abort cancels whatever is running, and a for_each that stops leaves items unopened.

mod drawn;
pub mod expressions;
mod features;
mod flow;
mod graph;
mod tasks;

pub use features::Features;
use serde_json::{Value, json};

/// A small seeded generator (splitmix64).
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Rng(seed)
    }

    fn step(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 to `n - 1`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.step() % n.max(1) as u64) as usize
    }

    pub fn chance(&mut self, percent: u32) -> bool {
        self.below(100) < percent as usize
    }

    pub fn pick<'a, T>(&mut self, xs: &'a [T]) -> &'a T {
        &xs[self.below(xs.len())]
    }

    /// One of the values, with probability proportional to its weight.
    pub fn weighted<T: Copy>(&mut self, choices: &[(usize, T)]) -> T {
        let mut left = self.below(choices.iter().map(|(weight, _)| weight).sum());
        for (weight, value) in choices {
            if left < *weight {
                return *value;
            }
            left -= weight;
        }
        choices[0].1
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Tasks,
    Flow,
    Graph,
}

/// A random valid definition of about `size` steps.
pub fn definition(rng: &mut Rng, dialect: Dialect, size: usize) -> Value {
    let mut definition = json!({"name": "case"});
    let size = size.max(1);
    // Always drawn, so that steps may read them.
    definition["vars"] = expressions::vars(rng);
    if rng.chance(40) {
        definition["defaults"] = expressions::defaults(rng);
    }
    match dialect {
        Dialect::Tasks => definition["tasks"] = tasks::tasks(rng, size),
        Dialect::Flow => {
            definition["max_iterations"] = json!(2 + rng.below(3));
            definition["flow"] = flow::flow(rng, size);
        }
        Dialect::Graph => {
            definition["max_iterations"] = json!(2 + rng.below(3));
            (definition["nodes"], definition["edges"]) = graph::graph(rng, size);
        }
    }
    definition
}

/// The features that the definition uses.
pub fn features(definition: &Value) -> Features {
    features::find(definition)
}

/// The input of a run, with everything that the generated definitions read from it.
pub fn input(rng: &mut Rng) -> Value {
    let items: Vec<usize> = (1..=1 + rng.below(3)).collect();
    json!({"items": items, "empty": [], "n": 1 + rng.below(3), "flag": rng.chance(50)})
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Success,
    Fail {
        retryable: bool,
    },
    /// Rights or a policy forbid the call.
    Refused,
    Timeout,
}

/// How this attempt of this step ends, regardless of everything else.
pub fn verdict(seed: u64, path: &str, attempt: u32) -> Verdict {
    Rng::new(mix(seed, path, attempt, 1)).weighted(&[
        (80, Verdict::Success),
        (10, Verdict::Fail { retryable: true }),
        (5, Verdict::Fail { retryable: false }),
        (2, Verdict::Refused),
        (5, Verdict::Timeout),
    ])
}

/// The result of this attempt if it succeeds: values that make conditions true or false.
pub fn output(seed: u64, path: &str, attempt: u32) -> Value {
    let mut rng = Rng::new(mix(seed, path, attempt, 2));
    match rng.below(10) {
        0 => json!(true),
        1 => json!(false),
        2 => json!("a"),
        _ => json!({"v": rng.below(4)}),
    }
}

/// One of `n` outcomes of this step: an answer at a gate, a timer or a webhook first, a child's end.
pub fn choice(seed: u64, path: &str, attempt: u32, n: usize) -> usize {
    Rng::new(mix(seed, path, attempt, 3)).below(n)
}

fn mix(seed: u64, path: &str, attempt: u32, salt: u64) -> u64 {
    let start = Rng::new(seed ^ (salt << 56) ^ (u64::from(attempt) << 32)).step();
    path.bytes().fold(start, |hash, byte| Rng::new(hash ^ u64::from(byte)).step())
}
