//! Shared state of a simulation: the disk, the clock, randomness, observations, and the current process.

use crate::automatic::Post;
use crate::chance::Chance;
use crate::ledger::Ledger;
use crate::past::Past;
use crate::rules::{Agent, Rule};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use stepwell_core::limits::MAX_LOSSES;
use stepwell_core::simulate::EPOCH;
use stepwell_core::time::Time;
use stepwell_engine::{Clock, Engine, TokioClock};
use stepwell_store::memory::MemoryStore;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// How this seed's world is.
#[derive(Clone, Copy, Debug)]
pub struct Mood {
    /// How much goes wrong: 0 is nothing.
    pub storm: u64,
    /// How slow the store is: 0 answers at once.
    pub slow: u64,
    pub slots: u32,
    pub slots_per_org: Option<u32>,
    pub live_runs: usize,
    pub poll: Duration,
    /// Out of this many calls one fails.
    pub failures: u64,
    /// Unfinished runs at a time, children included.
    pub open: Option<u32>,
    /// Descendants of one run.
    pub descendants: u32,
    /// Decisions of one transition, and what the payloads of a run may weigh.
    pub decisions: u32,
    pub run_bytes: u64,
    /// After so many losses in a row a step or a run waits for a person.
    pub max_losses: u8,
    pub rule: Rule,
}

/// A safety net that is never needed: without faults every run must end without it.
const NO_POLL: Duration = Duration::from_secs(30 * 24 * 3_600);

/// Round trips to the store: more than any seed needs that ends.
const MOST_ASKED: u64 = 2_000_000;

impl Mood {
    fn of(chance: &mut Chance) -> Mood {
        let storm = [0, 1, 1, 2, 4][chance.below(5) as usize];
        let slots = [1, 2, 4, 1_000, 1_000, 1_000][chance.below(6) as usize];
        let poll = Duration::from_millis(chance.between(500, 8_000));
        Mood {
            storm,
            slow: [0, 1, 1, 3][chance.below(4) as usize],
            slots,
            slots_per_org: [None, None, None, Some(1), Some(3)][chance.below(5) as usize],
            live_runs: [0, 1, 10_000, 10_000][chance.below(4) as usize],
            poll: if storm == 0 { NO_POLL } else { poll },
            failures: chance.between(3, 30),
            open: [None, None, None, Some(1), Some(3)][chance.below(5) as usize],
            descendants: [10_000, 10_000, 5, 1][chance.below(4) as usize],
            decisions: [1_000, 1_000, 1, 2, 5][chance.below(5) as usize],
            run_bytes: [u64::MAX, u64::MAX, u64::MAX, 1_500][chance.below(4) as usize],
            max_losses: [u8::MAX, u8::MAX, MAX_LOSSES][chance.below(3) as usize],
            rule: [Rule::None, Rule::None, Rule::Hold, Rule::Deny, Rule::Pace][chance.below(5) as usize],
        }
    }

    /// Steps that run at a time.
    pub fn room(&self) -> u32 {
        self.slots.min(self.slots_per_org.unwrap_or(u32::MAX))
    }
}

/// A process that runs. It is over when `life` is.
#[derive(Clone)]
pub struct Process {
    pub engine: Engine,
    pub life: CancellationToken,
}

pub struct Sim {
    pub seed: u64,
    pub mood: Mood,
    pub clock: TokioClock,
    pub disk: MemoryStore,
    process: Mutex<Option<Process>>,
    /// A process is up. (A `watch` channel would wake its receivers in an order that no seed repeats.)
    up: Notify,
    chance: Mutex<Chance>,
    past: Mutex<Past>,
    ledger: Mutex<Ledger>,
    post: Mutex<Post>,
    noisy: AtomicBool,
    /// The noise is over.
    calm: Notify,
    /// The disk has no room until then.
    pub full_until: Mutex<Time>,
    broken: Mutex<Vec<String>>,
    /// Commands that clients wait for, and since when.
    open: Mutex<BTreeMap<u64, (Time, String)>>,
    numbers: AtomicU64,
    asked: AtomicU64,
    /// What happened how often, so that a simulation in which nothing does is noticed.
    seen: Mutex<BTreeMap<&'static str, u64>>,
    /// Steps that a client ended before their time.
    woken: Mutex<BTreeSet<(String, String)>>,
    /// Steps that a person gave a result.
    overridden: Mutex<BTreeSet<(String, String)>>,
    agent: Mutex<Agent>,
}

impl Sim {
    pub fn new(seed: u64) -> Arc<Sim> {
        let mut chance = Chance::new(seed);
        Arc::new(Sim {
            seed,
            mood: Mood::of(&mut chance),
            clock: TokioClock::starting_at(EPOCH),
            disk: MemoryStore::default(),
            process: Mutex::default(),
            up: Notify::new(),
            chance: Mutex::new(chance),
            past: Mutex::default(),
            ledger: Mutex::default(),
            post: Mutex::default(),
            noisy: AtomicBool::new(false),
            calm: Notify::new(),
            full_until: Mutex::new(EPOCH),
            broken: Mutex::default(),
            open: Mutex::default(),
            numbers: AtomicU64::new(0),
            asked: AtomicU64::new(0),
            woken: Mutex::default(),
            overridden: Mutex::default(),
            agent: Mutex::default(),
            seen: Mutex::default(),
        })
    }

    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// Somebody asks the store again and again, and virtual time never gets to move.
    pub fn is_asked_too_often(&self) -> bool {
        let asked = self.asked.fetch_add(1, Ordering::SeqCst);
        if asked == MOST_ASKED {
            self.breaks(format!("the store was asked {asked} times"));
        }
        asked >= MOST_ASKED
    }

    pub fn process(&self) -> Option<Process> {
        self.process.lock().unwrap().clone()
    }

    pub fn set_process(&self, process: Option<Process>) {
        *self.process.lock().unwrap() = process;
        self.up.notify_waiters();
    }

    /// The process that is up, or will be.
    pub async fn some_process(&self) -> Process {
        loop {
            let up = self.up.notified();
            if let Some(process) = self.process() {
                return process;
            }
            up.await;
        }
    }

    /// Never held across an await: nothing else can run meanwhile.
    pub fn chance(&self) -> MutexGuard<'_, Chance> {
        self.chance.lock().unwrap()
    }

    pub fn past(&self) -> MutexGuard<'_, Past> {
        self.past.lock().unwrap()
    }

    pub fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap()
    }

    pub fn post(&self) -> MutexGuard<'_, Post> {
        self.post.lock().unwrap()
    }

    pub fn agent(&self) -> MutexGuard<'_, Agent> {
        self.agent.lock().unwrap()
    }

    pub fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::SeqCst)
    }

    pub fn is_noisy(&self) -> bool {
        self.noisy.load(Ordering::SeqCst)
    }

    pub fn set_noisy(&self, noisy: bool) {
        self.noisy.store(noisy, Ordering::SeqCst);
        if !noisy {
            self.calm.notify_waiters();
        }
    }

    pub async fn calm_begins(&self) {
        let calm = self.calm.notified();
        if self.is_noisy() {
            calm.await;
        }
    }

    /// Something that must always hold did not.
    pub fn breaks(&self, what: impl Into<String>) {
        let at = self.now().0 - EPOCH.0;
        self.broken.lock().unwrap().push(format!("after {at} ms: {}", what.into()));
    }

    pub fn broken(&self) -> Vec<String> {
        self.broken.lock().unwrap().clone()
    }

    pub fn saw(&self, what: &'static str) {
        *self.seen.lock().unwrap().entry(what).or_default() += 1;
    }

    pub fn seen(&self) -> BTreeMap<&'static str, u64> {
        self.seen.lock().unwrap().clone()
    }

    pub fn wake(&self, run: &str, path: &str) {
        self.woken.lock().unwrap().insert((run.into(), path.into()));
    }

    pub fn was_woken(&self, run: &str, path: &str) -> bool {
        self.woken.lock().unwrap().contains(&(run.into(), path.into()))
    }

    /// A person is about to give the step a result.
    pub fn overrides(&self, run: &str, path: &str) {
        self.overridden.lock().unwrap().insert((run.into(), path.into()));
    }

    pub fn was_overridden(&self, run: &str, path: &str) -> bool {
        self.overridden.lock().unwrap().contains(&(run.into(), path.into()))
    }

    /// Notes a command under way until the guard is gone.
    pub fn open(self: &Arc<Sim>, what: String) -> Open {
        let number = self.number();
        self.open.lock().unwrap().insert(number, (self.now(), what));
        Open { sim: self.clone(), number }
    }

    pub fn opened(&self) -> Vec<String> {
        let open = self.open.lock().unwrap();
        open.values().map(|(since, what)| format!("{what} (for {} ms)", self.now().0 - since.0)).collect()
    }
}

pub struct Open {
    sim: Arc<Sim>,
    number: u64,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.sim.open.lock().unwrap().remove(&self.number);
    }
}
