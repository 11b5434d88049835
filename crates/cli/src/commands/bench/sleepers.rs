//! Many runs that sleep: how fast they start, what one costs while it sleeps, and how late they wake.

use super::report::{millis, percentile};
use super::workload::start;
use super::{Args, fresh, process};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use stepwell_engine::commands::Trigger;
use stepwell_engine::{Activity, Caller, Engine};
use stepwell_store::RunId;
use stepwell_store::sqlite::SqliteStore;
use tokio::sync::broadcast::error::RecvError;

const DEFINITION: &str = r#"{"name": "sleeper", "tasks": {"nap": {"until": "{{input.at}}"}}}"#;

pub struct Sleepers {
    runs: u32,
    starts_per_second: f64,
    bytes_each: Option<f64>,
    resident: Option<u64>,
    p50: Duration,
    p99: Duration,
    wakes_per_second: f64,
    drained_per_second: f64,
}

impl Sleepers {
    pub fn json(&self) -> Value {
        json!({
            "runs": self.runs, "starts_per_second": self.starts_per_second.round(),
            "bytes_of_memory_each": self.bytes_each.map(f64::round), "resident_bytes": self.resident,
            "late_p50_ms": millis(self.p50), "late_p99_ms": millis(self.p99),
            "wakes_per_second": self.wakes_per_second.round(),
            "drained_per_second": self.drained_per_second.round(),
        })
    }

    pub fn print(&self) {
        println!("sleepers: {} runs asleep", self.runs);
        println!("  started      {:>9.0} runs/s", self.starts_per_second);
        if let (Some(each), Some(resident)) = (self.bytes_each, self.resident) {
            println!("  memory       {each:>9.0} bytes each, {} MB in all", resident / 1_000_000);
        }
        let (p50, p99) = (millis(self.p50), millis(self.p99));
        println!("  late by      {p50:>9} ms (p99 {p99}) when {:.0} wake per second", self.wakes_per_second);
        println!("  drained      {:>9.0} runs/s when all wake at once", self.drained_per_second);
    }
}

pub async fn measure(args: &Args, base: &Path) -> anyhow::Result<Sleepers> {
    let runs = args.runs.unwrap_or(100_000).max(1);
    let concurrency = args.concurrency.unwrap_or(64).max(1);
    let directory = base.join("sleepers");
    if !args.json {
        eprintln!("sleepers: {runs} runs");
    }
    // The rate at which runs start determines the rate at which they are woken.
    let rate = {
        let engine = start(SqliteStore::open(&fresh(&directory)?)?, DEFINITION).await?;
        let far = now() + 3_600_000;
        let sample = runs.min(10_000);
        let begun = Instant::now();
        put_to_sleep(&engine, sample, concurrency, move |_| far).await?;
        let rate = f64::from(sample) / begun.elapsed().as_secs_f64();
        engine.shutdown(Duration::from_secs(5)).await;
        rate
    };
    let asleep_after = (f64::from(runs) / rate * 1_000.0 * 1.3) as i64 + 3_000;
    let per_ms = rate / 2.0 / 1_000.0;
    let engine = start(SqliteStore::open(&fresh(&directory)?)?, DEFINITION).await?;
    let empty = process::resident();
    let (first, begun) = (now() + asleep_after, Instant::now());
    let due = put_to_sleep(&engine, runs, concurrency, move |n| first + (f64::from(n) / per_ms) as i64).await?;
    let starts_per_second = f64::from(runs) / begun.elapsed().as_secs_f64();
    let resident = process::resident();
    let bytes_each = resident.zip(empty).map(|(after, before)| after.saturating_sub(before) as f64 / f64::from(runs));
    if !args.json {
        eprintln!("  asleep; waking {:.0} per second", per_ms * 1_000.0);
    }
    let late = wake(&engine, due).await?;
    engine.shutdown(Duration::from_secs(5)).await;

    let engine = start(SqliteStore::open(&fresh(&directory)?)?, DEFINITION).await?;
    let at = now() + asleep_after;
    let due = put_to_sleep(&engine, runs, concurrency, move |_| at).await?;
    let all = wake(&engine, due).await?;
    engine.shutdown(Duration::from_secs(5)).await;
    let drained = all.iter().max().copied().unwrap_or_default();
    Ok(Sleepers {
        runs,
        starts_per_second,
        bytes_each,
        resident,
        p50: percentile(late.clone(), 0.5),
        p99: percentile(late, 0.99),
        wakes_per_second: per_ms * 1_000.0,
        drained_per_second: f64::from(runs) / drained.as_secs_f64().max(0.001),
    })
}

/// Starts runs that sleep until the given times and returns when each is due.
async fn put_to_sleep(
    engine: &Engine,
    runs: u32,
    concurrency: u32,
    at: impl Fn(u32) -> i64 + Copy + Send + 'static,
) -> anyhow::Result<HashMap<RunId, i64>> {
    let next = Arc::new(AtomicU32::new(0));
    let client = |_| {
        let (engine, next) = (engine.clone(), next.clone());
        tokio::spawn(async move {
            let caller = Caller::local("bench");
            let mut started = Vec::new();
            loop {
                let n = next.fetch_add(1, Ordering::SeqCst);
                if n >= runs {
                    return Ok::<_, anyhow::Error>(started);
                }
                let input = json!({"at": at(n)});
                let trigger = Trigger::new("sleeper", input);
                started.push((engine.runs(&caller).trigger(trigger).await?.id, at(n)));
            }
        })
    };
    let mut due = HashMap::new();
    for client in (0..concurrency).map(client).collect::<Vec<_>>() {
        due.extend(client.await??);
    }
    Ok(due)
}

/// Waits for all runs to end and returns how late each was on disk.
async fn wake(engine: &Engine, mut due: HashMap<RunId, i64>) -> anyhow::Result<Vec<Duration>> {
    let mut commits = engine.activity();
    let mut late = Vec::with_capacity(due.len());
    while !due.is_empty() {
        match commits.recv().await {
            Ok(Activity::Committed(commit)) if commit.ended => {
                if let Some(at) = due.remove(&commit.run) {
                    late.push(Duration::from_millis((now() - at).max(0).unsigned_abs()));
                }
            }
            Ok(_) => {}
            Err(RecvError::Lagged(missed)) => anyhow::bail!("{missed} commits went by unseen"),
            Err(RecvError::Closed) => anyhow::bail!("the engine has stopped"),
        }
    }
    Ok(late)
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as i64)
}
