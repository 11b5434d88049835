//! A server with an attacker and a victim, and measurements of the victim's requests.

use serde_json::{Value, json};
use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use stepwell_testing::{Api, Process, TestStore, eventually};

/// Runs of the victim before the attack, and while it lasts.
const QUIET: usize = 25;
const ATTACKED: usize = 60;
/// The most memory that any attack may cost, in megabytes: about what the limits of one run, one transition and a few
/// requests add up to.
const MAX_MEMORY: u64 = 1_200;
/// No run of the victim takes longer.
const BLOCKED: Duration = Duration::from_secs(1);
/// Half of the victim's runs take at most this many times what they took before.
const SLOWER: u32 = 10;
/// On few processors, the attacker's own requests and an unoptimised server make the victim this slow.
const SHARED: Duration = Duration::from_millis(150);

/// Attacks are measured, so they run one at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

pub struct World {
    process: Process,
    pub attacker: Api,
    victim: Api,
    _place: TestStore,
}

impl World {
    fn start() -> World {
        let place = TestStore::new();
        let mut command = stepwell_testing::command(env!("CARGO_BIN_EXE_stepwell"));
        command.args(["serve", "--listen", "127.0.0.1:0"]).env("STEPWELL_DATA", place.data()).envs(place.environment());
        command.env("STEPWELL_LOG", "error").current_dir(place.directory());
        let child = command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null()).spawn().unwrap();
        let mut process = Process(child);
        let read = |name: &str| std::fs::read_to_string(place.data().join(name)).ok().filter(|text| !text.is_empty());
        let url = eventually("the server's address", || {
            assert!(!process.has_ended(), "the server did not start");
            read("server.url")
        });
        let admin = Api::new(url.trim(), read("admin.key").as_deref().map(str::trim));
        eventually("a server that is ready", || (admin.get("/readyz").status == 200).then_some(()));
        let (attacker, victim) = (admin.new_organisation("attacker"), admin.new_organisation("victim"));
        let tasks = json!({
            "first": {"tool": "echo", "args": {"message": "{{input.n}}"}},
            "code": {"needs": "first", "javascript": "return ctx.input.n + 1"},
            "last": {"needs": "code", "tool": "echo", "args": {"message": "{{tasks.code.body}}"}},
        });
        victim.define(&json!({"name": "work", "tasks": tasks}));
        World { process, attacker, victim, _place: place }
    }

    /// How long runs of the victim take, from the request to the answer that they have completed.
    fn measure(&self, runs: usize) -> Vec<Duration> {
        let mut taken: Vec<Duration> = (0..runs)
            .map(|n| {
                let begun = Instant::now();
                let run = self.victim.finished("work", &json!({"n": n}));
                assert_eq!(run["status"], "completed", "{run:#}");
                begun.elapsed()
            })
            .collect();
        taken.sort();
        taken
    }

    /// The most memory that the server has used since the last call, in megabytes.
    fn peak(&self) -> u64 {
        let pid = self.process.0.id();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
        // Starts the next measurement.
        let _ = std::fs::write(format!("/proc/{pid}/clear_refs"), "5");
        kilobytes / 1024
    }

    /// Creates a workflow of the attacker, and fails if that is refused.
    pub fn define(&self, definition: &Value) {
        self.attacker.define(definition);
    }
}

/// Runs one attack. It lasts until the returned value is dropped.
pub fn withstand<A: Any>(name: &str, attack: impl FnOnce(&World) -> A) {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let mut world = World::start();
    world.measure(3);
    let quiet = world.measure(QUIET);
    world.peak();
    let under_way = attack(&world);
    let attacked = world.measure(ATTACKED);
    drop(under_way);
    let peak = world.peak();
    let before = percentile(&quiet, 50);
    let [p50, p99] = [50, 99].map(|part| percentile(&attacked, part));
    if HEAD.swap(false, Ordering::Relaxed) {
        println!(
            "| attack | victim p50 before | victim p50 | victim p99 | peak memory |\n| --- | --- | --- | --- | --- |"
        );
    }
    println!("| {name} | {} | {} | {} | {peak} MB |", shown(before), shown(p50), shown(p99));
    assert!(!world.process.has_ended(), "{name}: the server died");
    assert!(p50 <= SHARED.max(before * SLOWER), "{name}: the victim became {SLOWER} times slower: {attacked:?}");
    assert!(p99 < BLOCKED, "{name}: the victim was blocked: {attacked:?}");
    assert!(peak < MAX_MEMORY, "{name}: the server used {peak} MB");
}

/// The head of the table is still to be printed.
static HEAD: AtomicBool = AtomicBool::new(true);

/// The time within which this percentage of the sorted times is.
fn percentile(taken: &[Duration], part: usize) -> Duration {
    taken[(taken.len() * part).div_ceil(100) - 1]
}

fn shown(taken: Duration) -> String {
    format!("{} ms", taken.as_millis())
}

/// Threads that repeat something until this is dropped.
pub struct Flood {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Flood {
    pub fn of(threads: usize, again: impl Fn() + Send + Sync + 'static) -> Flood {
        let (stop, again) = (Arc::new(AtomicBool::new(false)), Arc::new(again));
        let threads = (0..threads).map(|_| {
            let (stop, again) = (stop.clone(), again.clone());
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    again();
                }
            })
        });
        Flood { threads: threads.collect(), stop }
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // Its panic, if it had one, is printed.
            let _ = thread.join();
        }
    }
}
