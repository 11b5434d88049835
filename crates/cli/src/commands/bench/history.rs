//! Measures whether a long history slows anything down: the same workload on an empty directory and on one full of
//! finished runs, and how long each takes to start.

use super::report::median;
use super::workload::{Backends, Workload, start};
use super::{Args, Kind, fresh};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};
use stepwell_engine::Engine;
use stepwell_store::sqlite::SqliteStore;
use stepwell_store::sqlite::baseline::Baseline;
use stepwell_store::{Commit, RunId};

/// Commits per transaction while the directory is filled.
const GROUP: usize = 2_000;
/// Runs that are recorded once and written repeatedly under other ids.
const PATTERN: u32 = 100;

pub struct History {
    finished: u32,
    /// Steps per second on the empty directory and on the full one.
    empty: f64,
    full: f64,
    start_empty: Duration,
    start_full: Duration,
}

impl History {
    pub fn json(&self) -> Value {
        json!({
            "finished_runs": self.finished,
            "steps_per_second_empty": self.empty.round(), "steps_per_second_full": self.full.round(),
            "start_empty_ms": super::report::millis(self.start_empty),
            "start_full_ms": super::report::millis(self.start_full),
        })
    }

    pub fn print(&self) {
        println!("history: {} finished runs in the file", self.finished);
        println!("  noop         {:>9.0} steps/s, {:.0} on an empty directory", self.full, self.empty);
        println!("  ratio        {:>9.0} %", self.full / self.empty * 100.0);
        let [full, empty] = [self.start_full, self.start_empty].map(super::report::millis);
        println!("  ready after  {full:>9} ms, {empty} on an empty directory");
    }
}

pub async fn measure(args: &Args, base: &Path) -> anyhow::Result<History> {
    let finished = args.runs.unwrap_or(1_000_000).max(1);
    let plain = Args { runs: None, steps: None, concurrency: None, ..args.clone() };
    let workload = Workload::new(Kind::Noop, &plain, Backends::default());
    let (full, empty) = (base.join("full"), base.join("empty"));
    if !args.json {
        eprintln!("history: writing {finished} finished runs");
    }
    std::fs::create_dir_all(&full)?;
    fill(&full, &fresh(&empty)?, finished).await?;
    let mut rates = [Vec::new(), Vec::new()];
    let mut starts = [Vec::new(), Vec::new()];
    for _ in 0..args.rounds.max(1) {
        let empty = fresh(&empty)?;
        for (n, directory) in [&empty, &full].into_iter().enumerate() {
            let begun = Instant::now();
            let engine = start(SqliteStore::open(directory)?, &workload.definition).await?;
            starts[n].push(begun.elapsed().as_secs_f64());
            stop(engine).await;
            let pass = workload.pass(directory, workload.concurrency).await?;
            rates[n].push(f64::from(pass.runs * workload.calls) / pass.elapsed.as_secs_f64());
        }
    }
    let [empty, full] = rates.map(median);
    let [start_empty, start_full] = starts.map(|starts| Duration::from_secs_f64(median(starts)));
    Ok(History { finished, empty, full, start_empty, start_full })
}

async fn stop(engine: Engine) {
    engine.shutdown(Duration::from_secs(5)).await;
}

/// Writes finished runs of one step each, as the engine would have.
async fn fill(directory: &Path, scratch: &Path, runs: u32) -> anyhow::Result<()> {
    let one = Args { runs: Some(PATTERN), steps: Some(1), ..Args::default() };
    let pattern = Workload::new(Kind::Noop, &one, Backends::default()).record(scratch).await?;
    // The store itself creates the schema, the definition and the lock.
    stop(start(SqliteStore::open(directory)?, &Workload::new(Kind::Noop, &one, Backends::default()).definition).await?)
        .await;
    let mut baseline = Baseline::open_file(&directory.join("stepwell.db"))?;
    let mut done = 0;
    let mut batch: Vec<Commit> = Vec::new();
    while done < runs {
        batch.extend(pattern.iter().map(|commit| renamed(commit, done)));
        done += PATTERN;
        if batch.len() >= GROUP || done >= runs {
            baseline.write(&std::mem::take(&mut batch), GROUP)?;
        }
    }
    Ok(())
}

/// The same commit for another run, long ago.
fn renamed(commit: &Commit, offset: u32) -> Commit {
    // Below every id assigned now, and distinct from the ids of other passes over the pattern.
    const LONG_AGO: i64 = 1 << 60;
    let mut renamed = commit.clone();
    renamed.run = RunId(commit.run.0 - LONG_AGO + (i64::from(offset) << 30));
    if let Some(new) = &mut renamed.create {
        new.public = format!("{}_{offset}", new.public);
    }
    // No node exists to hold this work.
    renamed.work.put.clear();
    renamed
}
