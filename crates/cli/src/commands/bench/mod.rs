//! `stepwell bench`: how fast this build is on this disk, compared with the disk and SQLite alone. Every workload runs
//! on a fresh directory, interleaved with a baseline that writes the same rows; medians are printed.

mod echo;
mod history;
mod javascript;
mod postgres;
mod process;
mod query;
mod report;
mod sleepers;
mod triggers;
mod workload;

use super::Exit;
use anyhow::Context;
use clap::ValueEnum;
use report::Report;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use stepwell_store::sqlite::baseline::Baseline;
use workload::{Backends, Workload};

#[derive(clap::Args, Clone, Default)]
pub struct Args {
    /// Workload to measure
    #[arg(value_enum, default_value = "all", value_name = "WORKLOAD")]
    kind: Kind,
    /// Runs per pass
    #[arg(long)]
    runs: Option<u32>,
    /// Calls per run
    #[arg(long)]
    steps: Option<u32>,
    /// Runs in flight
    #[arg(long)]
    concurrency: Option<u32>,
    /// Rounds, each with its own baseline; prints medians
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Minimum total duration of a workload's rounds
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Parent of the temporary directory to write to [default: the system's temporary directory]
    #[arg(long)]
    directory: Option<PathBuf>,
    /// Measure on this PostgreSQL server, beside `pgbench`; creates and drops a schema
    #[arg(long)]
    database: Option<String>,
    /// With `--database`: numbers of nodes that share the work, measured in turn
    #[arg(long, requires = "database", value_delimiter = ',', default_value = "1",
          value_parser = clap::value_parser!(u32).range(1..=16))]
    nodes: Vec<u32>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Kind {
    /// 5 HTTP steps in sequence
    Chain,
    /// 10 no-op tool calls
    Noop,
    /// 1 step, then 50 parallel HTTP steps, then a join
    Fan,
    /// 5 JavaScript steps: a small function over 2 KB of context
    Javascript,
    /// 10 queries of one row each, on a SQLite file
    Query,
    /// Many runs that sleep
    Sleepers,
    /// Triggers over HTTP, compared with triggers in this process
    Triggers,
    /// The no-op workload on a file with a million finished runs; not part of `all`
    History,
    /// Chain, noop, fan, javascript, query, sleepers and triggers
    #[default]
    All,
}

/// One measured pass or round.
#[derive(Clone, Default)]
pub struct Measured {
    pub runs: u32,
    pub elapsed: Duration,
    pub latencies: Vec<Duration>,
    pub written: Option<u64>,
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    let base = args.directory.clone().unwrap_or_else(std::env::temp_dir);
    let base = base.join(format!("stepwell-bench-{}", std::process::id()));
    std::fs::create_dir_all(&base).with_context(|| format!("cannot create {}", base.display()))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(bench(&args, &base));
    // The measured data is not kept; a directory that cannot be removed is only clutter.
    let _ = std::fs::remove_dir_all(&base);
    let report = result?;
    if args.json {
        report.print_json()?
    } else {
        report.print()
    }
    Ok(Exit::Success)
}

async fn bench(args: &Args, base: &std::path::Path) -> anyhow::Result<Report> {
    let mut report = Report::default();
    if !args.json {
        eprintln!("on {} with {} cores", base.display(), std::thread::available_parallelism().map_or(0, usize::from));
    }
    let echo = echo::Echo::start().await?;
    if let Some(url) = &args.database {
        report.postgres = Some(postgres::measure(args, url, &echo.url).await?);
        return Ok(report);
    }
    let goods = base.join("goods.db");
    query::create(&goods)?;
    for kind in [Kind::Chain, Kind::Noop, Kind::Fan, Kind::Javascript, Kind::Query] {
        if args.kind == kind || args.kind == Kind::All {
            let workload = Workload::new(kind, args, Backends { url: &echo.url, goods: Some(&goods) });
            report.workloads.push(measure(args, base, &workload).await?);
        }
    }
    if matches!(args.kind, Kind::Sleepers | Kind::All) {
        report.sleepers = Some(sleepers::measure(args, base).await?);
    }
    if matches!(args.kind, Kind::Triggers | Kind::All) {
        report.triggers = Some(triggers::measure(args, base).await?);
    }
    if args.kind == Kind::History {
        report.history = Some(history::measure(args, base).await?);
    }
    Ok(report)
}

/// Measures rounds of single commits, the baseline and the engine.
async fn measure(args: &Args, base: &std::path::Path, workload: &Workload) -> anyhow::Result<report::Line> {
    if !args.json {
        eprintln!("{}", workload.title());
    }
    let directory = base.join(workload.name);
    let commits = workload.record(&fresh(&directory)?).await?;
    let each = Duration::from_secs(args.seconds) / (args.rounds.max(1) * 2);
    let mut line = report::Line::new(workload, commits.len());
    for round in 0..args.rounds.max(1) {
        let mut baseline = Baseline::open(&fresh(&directory)?)?;
        line.singles.push(f64::from(SINGLES) / baseline.single_commits(SINGLES)?.as_secs_f64());
        let (mut passes, mut spent) = (0, Duration::ZERO);
        while passes == 0 || spent < each {
            let mut baseline = Baseline::open(&fresh(&directory)?)?;
            spent += baseline.write(&commits, workload.concurrency as usize)?;
            passes += 1;
        }
        line.baseline.push(f64::from(passes * workload.runs * workload.calls) / spent.as_secs_f64());
        let mut round_total = Measured::default();
        while round_total.runs == 0 || round_total.elapsed < each {
            round_total.add(workload.pass(&fresh(&directory)?, workload.concurrency).await?);
        }
        if !args.json {
            let rate = f64::from(round_total.runs * workload.calls) / round_total.elapsed.as_secs_f64();
            eprintln!("  round {}: {:.0} steps/s, baseline {:.0}", round + 1, rate, line.baseline[round as usize]);
        }
        line.engine.push(round_total);
    }
    line.alone = Some(workload.alone(&fresh(&directory)?).await?);
    Ok(line)
}

/// Commits measured one by one, per round.
const SINGLES: u32 = 2_000;

/// Creates a new directory, since a stopped engine may still be closing its files, and removes the one before the last.
fn fresh(directory: &std::path::Path) -> anyhow::Result<PathBuf> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let named = |number: u32| directory.with_extension(number.to_string());
    if let Some(old) = number.checked_sub(2).map(named).filter(|old| old.exists()) {
        std::fs::remove_dir_all(old)?;
    }
    let fresh = named(number);
    std::fs::create_dir_all(&fresh)?;
    Ok(fresh)
}

impl Measured {
    fn add(&mut self, other: Measured) {
        self.runs += other.runs;
        self.elapsed += other.elapsed;
        self.latencies.extend(other.latencies);
        self.written = match (self.written, other.written) {
            (Some(a), Some(b)) => Some(a + b),
            (a, b) => a.or(b),
        };
    }
}

/// Measures elapsed time and the bytes that the process writes meanwhile.
pub struct Meter {
    start: Instant,
    written: Option<u64>,
}

impl Meter {
    pub fn start() -> Meter {
        Meter { written: process::written(), start: Instant::now() }
    }

    pub fn stop(self, runs: u32, latencies: Vec<Duration>) -> Measured {
        let elapsed = self.start.elapsed();
        let written = process::written().zip(self.written).map(|(after, before)| after - before);
        Measured { runs, elapsed, latencies, written }
    }
}
