//! `stepwell bench`: how fast this build is on this disk, beside what the disk and SQLite alone can do. Every workload runs
//! on a fresh directory, interleaved with a bare loop that writes the same rows; medians are printed.

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
use workload::{Outside, Workload};

#[derive(clap::Args, Clone, Default)]
pub struct Args {
    /// What to measure
    #[arg(value_enum, default_value = "all")]
    what: What,
    /// Runs per pass
    #[arg(long)]
    runs: Option<u32>,
    /// Calls per run
    #[arg(long)]
    steps: Option<u32>,
    /// Runs in flight
    #[arg(long)]
    concurrency: Option<u32>,
    /// Rounds, each with its own bare loop; the medians are printed
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// How long the rounds of a workload take together, at least
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Where to write; a fresh directory is made inside and removed [default: the system's temporary directory]
    #[arg(long)]
    directory: Option<PathBuf>,
    /// A PostgreSQL server to measure on instead, beside `pgbench`; a schema is made there and dropped
    #[arg(long)]
    database: Option<String>,
    /// With `--database`: nodes that share the work, each number in turn
    #[arg(long, requires = "database", value_delimiter = ',', default_value = "1",
          value_parser = clap::value_parser!(u32).range(1..=16))]
    nodes: Vec<u32>,
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum What {
    /// 5 HTTP steps one after the other
    Chain,
    /// 10 tool calls that do nothing
    Noop,
    /// 1 step, then 50 HTTP steps at once, then a join
    Fan,
    /// 5 javascript steps: a small function over 2 KB of context
    Javascript,
    /// 10 queries of one row each, on a SQLite file
    Query,
    /// Many runs that sleep
    Sleepers,
    /// Triggers over HTTP, beside the same in this process
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
    std::fs::create_dir_all(&base).with_context(|| format!("{} cannot be made", base.display()))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(bench(&args, &base));
    // What was measured is not kept; a directory that cannot be removed is only clutter.
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
    query::make(&goods)?;
    for what in [What::Chain, What::Noop, What::Fan, What::Javascript, What::Query] {
        if args.what == what || args.what == What::All {
            let workload = Workload::new(what, args, Outside { url: &echo.url, goods: Some(&goods) });
            report.workloads.push(measure(args, base, &workload).await?);
        }
    }
    if matches!(args.what, What::Sleepers | What::All) {
        report.sleepers = Some(sleepers::measure(args, base).await?);
    }
    if matches!(args.what, What::Triggers | What::All) {
        report.triggers = Some(triggers::measure(args, base).await?);
    }
    if args.what == What::History {
        report.history = Some(history::measure(args, base).await?);
    }
    Ok(report)
}

/// Rounds of: the disk's single commits, the bare loop, the engine.
async fn measure(args: &Args, base: &std::path::Path, workload: &Workload) -> anyhow::Result<report::Line> {
    if !args.json {
        eprintln!("{}", workload.title());
    }
    let directory = base.join(workload.name);
    let commits = workload.record(&fresh(&directory)?).await?;
    let each = Duration::from_secs(args.seconds) / (args.rounds.max(1) * 2);
    let mut line = report::Line::new(workload, commits.len());
    for round in 0..args.rounds.max(1) {
        let mut bare = Baseline::open(&fresh(&directory)?)?;
        line.singles.push(f64::from(SINGLES) / bare.single_commits(SINGLES)?.as_secs_f64());
        let (mut passes, mut spent) = (0, Duration::ZERO);
        while passes == 0 || spent < each {
            let mut bare = Baseline::open(&fresh(&directory)?)?;
            spent += bare.write(&commits, workload.concurrency as usize)?;
            passes += 1;
        }
        line.bare.push(f64::from(passes * workload.runs * workload.calls) / spent.as_secs_f64());
        let mut round_total = Measured::default();
        while round_total.runs == 0 || round_total.elapsed < each {
            round_total.add(workload.pass(&fresh(&directory)?, workload.concurrency).await?);
        }
        if !args.json {
            let rate = f64::from(round_total.runs * workload.calls) / round_total.elapsed.as_secs_f64();
            eprintln!("  round {}: {:.0} steps/s, bare loop {:.0}", round + 1, rate, line.bare[round as usize]);
        }
        line.engine.push(round_total);
    }
    line.alone = Some(workload.alone(&fresh(&directory)?).await?);
    Ok(line)
}

/// Commits measured one by one, per round.
const SINGLES: u32 = 2_000;

/// A new directory each time: an engine that has stopped may still be closing its files. The one before the last goes.
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

/// How long something takes and how much the process writes meanwhile.
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
