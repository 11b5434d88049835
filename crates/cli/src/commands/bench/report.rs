//! The results, as text and as JSON. Medians over the rounds.

use super::Measured;
use super::history::History;
use super::postgres::Postgres;
use super::sleepers::Sleepers;
use super::triggers::Triggers;
use super::workload::Workload;
use serde_json::{Value, json};
use std::time::Duration;

#[derive(Default)]
pub struct Report {
    pub workloads: Vec<Line>,
    pub sleepers: Option<Sleepers>,
    pub history: Option<History>,
    pub triggers: Option<Triggers>,
    pub postgres: Option<Postgres>,
}

/// One workload.
pub struct Line {
    name: &'static str,
    calls: u32,
    concurrency: u32,
    /// Commits in one pass of the workload.
    commits: usize,
    runs: u32,
    pub engine: Vec<Measured>,
    /// Steps per second of the baseline.
    pub baseline: Vec<f64>,
    /// Commits per second, one by one.
    pub singles: Vec<f64>,
    pub alone: Option<Measured>,
}

impl Line {
    pub fn new(workload: &Workload, commits: usize) -> Line {
        let Workload { name, calls, concurrency, runs, .. } = *workload;
        let (engine, baseline, singles) = (Vec::new(), Vec::new(), Vec::new());
        Line { name, calls, concurrency, commits, runs, engine, baseline, singles, alone: None }
    }

    fn rates(&self) -> Vec<f64> {
        self.engine.iter().map(|round| f64::from(round.runs * self.calls) / round.elapsed.as_secs_f64()).collect()
    }

    fn ratio(&self) -> f64 {
        let ratios = self.rates().iter().zip(&self.baseline).map(|(engine, baseline)| engine / baseline).collect();
        median(ratios)
    }

    fn latency(&self, part: f64) -> Duration {
        percentile(self.engine.iter().flat_map(|round| round.latencies.iter().copied()).collect(), part)
    }

    fn written_per_step(&self) -> Option<f64> {
        let per_step = |round: &Measured| Some(round.written? as f64 / f64::from(round.runs * self.calls));
        let all: Option<Vec<f64>> = self.engine.iter().map(per_step).collect();
        all.map(median)
    }

    fn json(&self) -> Value {
        let rate = median(self.rates());
        json!({
            "workload": self.name, "steps_per_run": self.calls, "in_flight": self.concurrency,
            "steps_per_second": rate.round(), "runs_per_second": (rate / f64::from(self.calls)).round(),
            "steps_per_second_by_round": self.rates().iter().map(|rate| rate.round()).collect::<Vec<_>>(),
            "p50_ms": millis(self.latency(0.5)), "p99_ms": millis(self.latency(0.99)),
            "alone_p50_ms": self.alone.as_ref().map(|alone| millis(percentile(alone.latencies.clone(), 0.5))),
            "alone_p99_ms": self.alone.as_ref().map(|alone| millis(percentile(alone.latencies.clone(), 0.99))),
            "bytes_written_per_step": self.written_per_step().map(f64::round),
            "commits_per_step": self.commits as f64 / f64::from(self.runs * self.calls),
            "bare_loop_steps_per_second": median(self.baseline.clone()).round(),
            "ratio_to_bare_loop": (self.ratio() * 100.0).round() / 100.0,
            "single_commits_per_second": median(self.singles.clone()).round(),
        })
    }

    fn print(&self) {
        let rate = median(self.rates());
        let (p50, p99) = (millis(self.latency(0.5)), millis(self.latency(0.99)));
        println!("{}: {} steps per run, {} in flight", self.name, self.calls, self.concurrency);
        println!(
            "  engine       {rate:>9.0} steps/s  {:>7.0} runs/s  a run takes {p50} ms (p99 {p99})",
            rate / f64::from(self.calls)
        );
        if let Some(alone) = &self.alone {
            let of = |part| millis(percentile(alone.latencies.clone(), part));
            println!("  alone        a run takes {} ms (p99 {})", of(0.5), of(0.99));
        }
        let baseline = median(self.baseline.clone());
        println!("  baseline     {baseline:>9.0} steps/s, the same rows, {} commits per transaction", self.concurrency);
        println!("  ratio        {:>9.0} %", self.ratio() * 100.0);
        println!("  disk         {:>9.0} commits/s, one by one", median(self.singles.clone()));
        if let Some(bytes) = self.written_per_step() {
            let commits = self.commits as f64 / f64::from(self.runs * self.calls);
            println!("  written      {bytes:>9.0} bytes per step, {commits:.2} commits per step");
        }
    }
}

impl Report {
    pub fn print(&self) {
        self.workloads.iter().for_each(Line::print);
        if let Some(sleepers) = &self.sleepers {
            sleepers.print();
        }
        if let Some(triggers) = &self.triggers {
            triggers.print();
        }
        if let Some(history) = &self.history {
            history.print();
        }
        if let Some(postgres) = &self.postgres {
            postgres.print();
        }
    }

    pub fn print_json(&self) -> anyhow::Result<()> {
        let workloads: Vec<Value> = self.workloads.iter().map(Line::json).collect();
        let sleepers = self.sleepers.as_ref().map(Sleepers::json);
        let history = self.history.as_ref().map(History::json);
        let triggers = self.triggers.as_ref().map(Triggers::json);
        if let Some(postgres) = &self.postgres {
            println!("{}", postgres.json());
            return Ok(());
        }
        let all = json!({"workloads": workloads, "sleepers": sleepers, "triggers": triggers, "history": history});
        println!("{all}");
        Ok(())
    }
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

pub fn percentile(mut values: Vec<Duration>, part: f64) -> Duration {
    values.sort_unstable();
    let last = values.len().saturating_sub(1);
    values.get((last as f64 * part).round() as usize).copied().unwrap_or_default()
}

/// Milliseconds, rounded to hundredths.
pub fn millis(length: Duration) -> f64 {
    (length.as_secs_f64() * 100_000.0).round() / 100.0
}
