//! The phases of a simulation: faults while processes come and go, then calm until every run has ended.

use crate::automatic;
use crate::client;
use crate::faulty::Faulty;
use crate::ledger::Steps;
use crate::sim::{Process, Sim};
use crate::workflows::{PROBE, Workflow};
use crate::{past::Waits, rules, verify};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use stepwell_core::plan::Budget;
use stepwell_core::time::Millis;
use stepwell_engine::{Config, Engine, Ids, Kinds, Limits, Plans};
use stepwell_store::{Record, RecordFilter, Registry as _, RunId};
use tokio_util::sync::CancellationToken;

/// Every workflow here is over long before this, if nothing is stuck.
const PATIENCE: Duration = Duration::from_secs(1_800);
/// Whether a process may continue for a while after another took over, which is possible where nothing locks the store.
const TWO_PROCESSES: bool = true;
/// How often someone looks whether anything waits for them.
const ROUND: Duration = Duration::from_secs(2);

/// Runs the simulation. What broke is in the simulation.
pub async fn live(sim: &Arc<Sim>) {
    let chosen = client::choose(sim);
    begin(sim).await;
    for workflow in &chosen {
        client::define(sim.clone(), workflow.text).await;
    }
    client::define(sim.clone(), PROBE).await;
    automatic::begin(sim).await;
    rules::begin(sim).await;
    sim.set_noisy(true);
    noise(sim, &chosen).await;
    sim.set_noisy(false);
    sim.past().calm = sim.now();
    for workflow in &chosen {
        client::resume(sim.clone(), workflow.name).await;
    }
    automatic::end(sim).await;
    if !calm(sim).await {
        return;
    }
    automatic::verify(sim).await;
    probe(sim).await;
    // Rows that the next polls remove may exist until then, and runs that are due for a purge until that purge.
    let polls = if sim.mood.storm == 0 { Duration::from_secs(20) } else { sim.mood.poll * (verify::PURGE_POLLS + 1) };
    tokio::time::sleep(polls + Duration::from_secs(20)).await;
    verify::all(sim).await;
}

fn plans(sim: &Sim) -> Plans {
    let plan = Limits { concurrent_runs: sim.mood.open, ..Limits::default() };
    let by_name = [("only".to_string(), plan)].into();
    Plans { by_name, default: "only".into(), descendants_per_run: sim.mood.descendants }
}

/// Starts a process on the disk, however often that takes.
async fn begin(sim: &Arc<Sim>) {
    loop {
        let life = CancellationToken::new();
        stepwell_store::memory::MemoryStore::restarted(&sim.disk);
        let number = sim.number();
        let steps = || Steps { sim: sim.clone(), life: life.clone() };
        let store = Arc::new(Faulty { sim: sim.clone(), life: life.clone() });
        let config = Config {
            slots: sim.mood.slots,
            slots_per_org: sim.mood.slots_per_org,
            live_runs: sim.mood.live_runs,
            poll: sim.mood.poll,
            // No real node dies this often: with three, runs are quarantined only because they are there.
            max_losses: sim.mood.max_losses,
            budget: Budget { decisions: sim.mood.decisions, run_bytes: sim.mood.run_bytes, ..Budget::default() },
            clock: Arc::new(sim.clock),
            plans: plans(sim),
            ids: Ids::seeded(sim.seed.wrapping_mul(1_000_003).wrapping_add(number)),
            ..Config::new(Kinds::default().with("tool", steps()).with("http", steps()))
        };
        let config = automatic::with_courier(sim, &life, config);
        let started = tokio::select! {
            biased;
            () = life.cancelled() => None,
            started = Engine::start(store, config) => started.ok(),
        };
        if let Some(engine) = started {
            sim.set_process(Some(Process { engine, life }));
            return;
        }
        life.cancel();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// The process is over, and after a while there is another.
async fn restart(sim: &Arc<Sim>) {
    let Some(process) = sim.process() else { return };
    sim.set_process(None);
    process.life.cancel();
    process.engine.kill();
    sim.saw("kill");
    let down = {
        let mut chance = sim.chance();
        if chance.one_in(3) { chance.below(8_000) } else { 0 }
    };
    tokio::time::sleep(Duration::from_millis(down)).await;
    begin(sim).await;
}

/// A new process takes over while the old one, cut off but alive, continues for a while and then notices.
async fn take_over(sim: &Arc<Sim>) {
    let Some(old) = sim.process() else { return };
    sim.set_process(None);
    begin(sim).await;
    sim.saw("two processes");
    let (sim, length) = (sim.clone(), Duration::from_millis(sim.chance().below(10_000)));
    tokio::spawn(async move {
        tokio::select! {
            biased;
            () = old.life.cancelled() => {}
            () = sim.calm_begins() => {}
            () = tokio::time::sleep(length) => {}
        }
        old.life.cancel();
        old.engine.kill();
        // A live node beats before it looks for dead ones.
        sim.disk.restarted();
    });
}

/// As an operator restarts a process: it may finish its work in progress.
async fn restart_gently(sim: &Arc<Sim>) {
    let Some(process) = sim.process() else { return };
    let patience = Duration::from_millis(sim.chance().below(3_000));
    tokio::select! {
        biased;
        () = process.life.cancelled() => {}
        () = process.engine.shutdown(patience) => {}
    }
    sim.saw("gentle restart");
    restart(sim).await;
}

async fn noise(sim: &Arc<Sim>, chosen: &[&'static Workflow]) {
    let (events, pace) = {
        let mut chance = sim.chance();
        (chance.between(8, 30), chance.between(50, 3_000))
    };
    for _ in 0..events {
        let gap = Duration::from_millis(sim.chance().below(pace));
        sleep_or_restart(sim, gap).await;
        client::disturb(sim, chosen);
        if sim.mood.storm == 0 {
            continue;
        }
        let die = sim.chance().below(100 / sim.mood.storm);
        match die {
            0 => restart(sim).await,
            1 => restart_gently(sim).await,
            2 if TWO_PROCESSES => take_over(sim).await,
            3 => {
                sim.saw("disk is full for a while");
                let room = sim.now() + Millis(sim.chance().below(6_000));
                *sim.full_until.lock().unwrap() = room;
            }
            _ => {}
        }
        if !sim.broken().is_empty() {
            return;
        }
    }
    let rest = Duration::from_millis(sim.chance().below(8_000));
    sleep_or_restart(sim, rest).await;
}

/// Waits; a process that ends meanwhile is started again.
pub async fn sleep_or_restart(sim: &Arc<Sim>, length: Duration) {
    let end = tokio::time::Instant::now() + length;
    loop {
        let life = sim.process().map(|process| process.life).unwrap_or_default();
        tokio::select! {
            biased;
            () = life.cancelled() => restart(sim).await,
            () = tokio::time::sleep_until(end) => return,
        }
    }
}

/// No more faults, and every awaited answer is given. True once every run has ended.
async fn calm(sim: &Arc<Sim>) -> bool {
    let end = sim.now() + Millis(PATIENCE.as_millis() as u64);
    loop {
        sleep_or_restart(sim, ROUND).await;
        if !sim.broken().is_empty() {
            return false;
        }
        let waiting: Vec<(String, String, Waits)> = {
            let past = sim.past();
            let open = past.runs.values().filter(|story| !story.is_over());
            let steps = open.flat_map(|story| story.waiting.iter().map(|(path, waits)| (&story.public, path, *waits)));
            steps.map(|(run, path, waits)| (run.clone(), path.clone(), waits)).collect()
        };
        let over = sim.past().runs.values().all(|story| story.is_over());
        let quarantined = quarantined(sim).await;
        if over && quarantined.is_empty() && sim.opened().is_empty() {
            return true;
        }
        if sim.now() > end {
            verify::stuck(sim).await;
            return false;
        }
        quarantined.into_iter().for_each(|run| drop(tokio::spawn(rules::release(sim.clone(), run))));
        for (run, path, waits) in waiting {
            // Some are left to their timeouts.
            if sim.chance().one_in(3) {
                client::give(sim, &run, &path, waits);
            }
        }
    }
}

/// The runs that wait for a person to release them. A run that is over may be among them: what it asked of its children
/// has to be done.
async fn quarantined(sim: &Sim) -> Vec<String> {
    let filter =
        RecordFilter { kind: "quarantine".into(), org: None, prefix: String::new(), after: None, limit: u32::MAX };
    let records = sim.disk.records(filter).await.unwrap();
    let past = sim.past();
    let of = |record: Record| past.runs.get(&RunId(record.id.parse().unwrap())).map(|story| story.public.clone());
    records.into_iter().filter_map(of).collect()
}

/// All slots are free again, and their number is unchanged.
async fn probe(sim: &Arc<Sim>) {
    let room = sim.mood.room() as usize;
    if room > 8 {
        return;
    }
    let items: Vec<Value> = (0..room + 2).map(|n| json!(n)).collect();
    let input = json!({"tag": "probe", "items": items});
    let wish = client::Wish { workflow: "probe", input, key: None, delay: None };
    client::start(sim.clone(), wish).await;
    for _ in 0..60 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if sim.past().runs.values().all(|story| story.is_over()) {
            break;
        }
    }
    let most = sim.ledger().most_holding;
    if most != room {
        sim.breaks(format!("{room} steps may run at a time, and in the end {most} can"));
    }
}
