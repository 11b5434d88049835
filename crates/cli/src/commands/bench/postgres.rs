//! The workloads on PostgreSQL, compared with `pgbench` with the same rows on the same server: the speed of one or
//! several nodes, the cost of a step for the database, and whether a long history slows anything down.

use super::report::{median, millis, percentile};
use super::workload::{Backends, Workload, nodes};
use super::{Args, Kind};
use anyhow::{Context, bail};
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use stepwell_core::time::Time;
use stepwell_store::postgres::PgStore;
use stepwell_store::postgres::baseline::{Costs, Size, Trial};
use stepwell_store::{Claim, NodeId, Nodes, OrgId, PostgresOptions, RunFilter, Share, Store};

/// Repetitions of each measured query.
const QUERIES: u32 = 200;
/// Runs in the tables of `pgbench`.
const PGBENCH_RUNS: u32 = 10_000;

pub struct Postgres {
    lines: Vec<Line>,
    history: Option<History>,
}

/// One workload with a number of nodes.
struct Line {
    name: &'static str,
    nodes: u32,
    concurrency: u32,
    rates: Vec<f64>,
    /// Transactions per second of `pgbench`, if it is installed.
    pgbench: Vec<f64>,
    latencies: Vec<Duration>,
    /// Cost per step: round trips, rows and bytes of WAL.
    costs: [f64; 3],
}

struct History {
    steps: u64,
    /// Steps per second before and after.
    rates: [f64; 2],
    /// Queries, with their p50 and p99 before and after.
    queries: Vec<(&'static str, [Duration; 2], [Duration; 2])>,
    sizes: Vec<Size>,
}

pub async fn measure(args: &Args, url: &str, echo: &str) -> anyhow::Result<Postgres> {
    if matches!(args.kind, Kind::Javascript | Kind::Query | Kind::Sleepers | Kind::Triggers) {
        bail!("only chain, noop, fan and history can run on a database");
    }
    let options = PostgresOptions::new(url);
    let (mut lines, mut history) = (Vec::new(), None);
    for kind in [Kind::Chain, Kind::Noop, Kind::Fan] {
        if args.kind == kind || args.kind == Kind::All {
            for count in &args.nodes {
                lines.push(
                    workload(
                        args,
                        &options,
                        &Workload::new(kind, args, Backends { url: echo, ..Backends::default() }),
                        *count,
                    )
                    .await?,
                );
            }
        }
    }
    if args.kind == Kind::History {
        history = Some(self::history(args, &options).await?);
    }
    Ok(Postgres { lines, history })
}

async fn trial(options: &PostgresOptions) -> anyhow::Result<Trial> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    Ok(Trial::begin(options, format!("bench_{}_{number}", std::process::id())).await?)
}

/// Rounds of `pgbench` and of the engine, each on fresh tables.
async fn workload(args: &Args, options: &PostgresOptions, workload: &Workload, count: u32) -> anyhow::Result<Line> {
    if !args.json {
        eprintln!("{}, {count} nodes", workload.title());
    }
    let each = Duration::from_secs(args.seconds) / (args.rounds.max(1) * 2);
    let mut line = Line {
        name: workload.name,
        nodes: count,
        concurrency: workload.concurrency,
        rates: Vec::new(),
        pgbench: Vec::new(),
        latencies: Vec::new(),
        costs: [0.0; 3],
    };
    let mut costs: Vec<[f64; 3]> = Vec::new();
    for round in 0..args.rounds.max(1) {
        let trial = trial(options).await?;
        let engines = nodes(trial.options(), count, &workload.definition).await?;
        line.pgbench.extend(pgbench(&trial, workload.concurrency, each).await?);
        // Warm up connections and plans before the clock starts.
        workload.drive_all(&engines, workload.concurrency, workload.concurrency * 4).await?;
        let before = trial.costs().await?;
        let (mut runs, mut spent) = (0, Duration::ZERO);
        while runs == 0 || spent < each {
            let begun = Instant::now();
            line.latencies.extend(workload.drive_all(&engines, workload.concurrency, workload.runs).await?);
            spent += begun.elapsed();
            runs += workload.runs;
        }
        let steps = f64::from(runs * workload.calls);
        let Costs { round_trips, rows, wal_bytes } = trial.costs().await?.since(before);
        costs.push([round_trips, rows, wal_bytes].map(|cost| cost as f64 / steps));
        line.rates.push(steps / spent.as_secs_f64());
        if !args.json {
            eprintln!("  round {}: {:.0} steps/s", round + 1, line.rates[round as usize]);
        }
        for engine in engines {
            engine.shutdown(Duration::from_secs(5)).await;
        }
        trial.end().await?;
    }
    line.costs = [0, 1, 2].map(|n| median(costs.iter().map(|cost| cost[n]).collect()));
    Ok(line)
}

/// Transactions per second, or `None` if `pgbench` is not installed.
async fn pgbench(trial: &Trial, clients: u32, length: Duration) -> anyhow::Result<Option<f64>> {
    let script = trial.pgbench_script(PGBENCH_RUNS).await?;
    let file = std::env::temp_dir().join(format!("stepwell-pgbench-{}.sql", std::process::id()));
    std::fs::write(&file, script)?;
    let seconds = length.as_secs().max(1).to_string();
    let mut command = Command::new("pgbench");
    command.args(["-n", "-M", "prepared", "-j", "2", "-T", &seconds, "-c", &clients.to_string(), "-f"]).arg(&file);
    command.arg(&trial.options().url).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let done = match tokio::task::spawn_blocking(move || command.output()).await? {
        Ok(done) => done,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).context("cannot run pgbench"),
    };
    let output = String::from_utf8_lossy(&done.stdout);
    let rate = output.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse().ok());
    let _ = std::fs::remove_file(&file);
    rate.map(Some).with_context(|| format!("pgbench: {output}{}", String::from_utf8_lossy(&done.stderr)))
}

async fn history(args: &Args, options: &PostgresOptions) -> anyhow::Result<History> {
    let plain = Args { runs: None, steps: None, concurrency: None, ..args.clone() };
    let workload = Workload::new(Kind::Noop, &plain, Backends::default());
    let trial = trial(options).await?;
    let engines = nodes(trial.options(), 1, &workload.definition).await?;
    let store = PgStore::open(trial.options()).await?;
    let rate = async || {
        let mut rates = Vec::new();
        for _ in 0..args.rounds.max(1) {
            let begun = Instant::now();
            workload.drive_all(&engines, workload.concurrency, workload.runs).await?;
            rates.push(f64::from(workload.runs * workload.calls) / begun.elapsed().as_secs_f64());
        }
        anyhow::Ok(median(rates))
    };
    workload.drive_all(&engines, workload.concurrency, workload.runs).await?;
    let (before, queries_before) = (rate().await?, queries(&store).await?);
    let there = workload.runs * (args.rounds.max(1) + 1);
    let times = i64::from(args.runs.unwrap_or(1_000_000).div_ceil(there).max(1));
    if !args.json {
        eprintln!("history: writing {} finished runs", times * i64::from(there));
    }
    trial.multiply(times).await?;
    let (after, queries_after) = (rate().await?, queries(&store).await?);
    let sizes = trial.sizes().await?;
    for engine in engines {
        engine.shutdown(Duration::from_secs(5)).await;
    }
    drop(store);
    trial.end().await?;
    let queries = queries_before.into_iter().zip(queries_after);
    Ok(History {
        steps: times.unsigned_abs() * u64::from(there) * u64::from(workload.calls),
        rates: [before, after],
        queries: queries.map(|((name, before), (_, after))| (name, before, after)).collect(),
        sizes,
    })
}

/// The p50 and p99 of the queries that nodes make all the time.
async fn queries(store: &PgStore) -> anyhow::Result<Vec<(&'static str, [Duration; 2])>> {
    let (mut claims, mut timers, mut lists) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..QUERIES {
        let begun = Instant::now();
        store.claim(Claim::new(NodeId(1), 50)).await?;
        claims.push(begun.elapsed());
        let begun = Instant::now();
        store.due(Time(0), Share::ALL, 1_000).await?;
        timers.push(begun.elapsed());
        let begun = Instant::now();
        store.runs(RunFilter::all(OrgId(1), 50)).await?;
        lists.push(begun.elapsed());
    }
    let both = |list: Vec<Duration>| [percentile(list.clone(), 0.5), percentile(list, 0.99)];
    Ok(vec![("claim", both(claims)), ("due timers", both(timers)), ("50 runs", both(lists))])
}

impl Postgres {
    pub fn print(&self) {
        self.lines.iter().for_each(Line::print);
        self.history.iter().for_each(History::print);
    }

    pub fn json(&self) -> Value {
        let lines: Vec<Value> = self.lines.iter().map(Line::json).collect();
        json!({"workloads": lines, "history": self.history.as_ref().map(History::json)})
    }
}

impl Line {
    fn ratio(&self) -> Option<f64> {
        (!self.pgbench.is_empty()).then(|| median(self.rates.clone()) / median(self.pgbench.clone()))
    }

    fn print(&self) {
        let rate = median(self.rates.clone());
        let [half, most] = [0.5, 0.99].map(|part| millis(percentile(self.latencies.clone(), part)));
        println!("{}: {} nodes in this process, {} runs in flight", self.name, self.nodes, self.concurrency);
        println!("  engine       {rate:>9.0} steps/s, a run takes {half} ms (p99 {most})");
        match self.ratio() {
            Some(ratio) => {
                let pgbench = median(self.pgbench.clone());
                println!(
                    "  pgbench      {pgbench:>9.0} transactions/s with a step's rows, {} clients",
                    self.concurrency
                );
                println!("  ratio        {:>9.0} %", ratio * 100.0);
            }
            None => println!("  pgbench      is not on the PATH"),
        }
        let [trips, rows, wal] = self.costs;
        println!("  a step costs {trips:>9.2} round trips, {rows:.1} rows, {wal:.0} bytes of WAL");
    }

    fn json(&self) -> Value {
        let [round_trips, rows, wal_bytes] = self.costs.map(|cost| (cost * 100.0).round() / 100.0);
        json!({
            "workload": self.name, "nodes": self.nodes, "in_flight": self.concurrency,
            "steps_per_second": median(self.rates.clone()).round(),
            "steps_per_second_by_round": self.rates.iter().map(|rate| rate.round()).collect::<Vec<_>>(),
            "p50_ms": millis(percentile(self.latencies.clone(), 0.5)),
            "p99_ms": millis(percentile(self.latencies.clone(), 0.99)),
            "pgbench_transactions_per_second": (!self.pgbench.is_empty()).then(|| median(self.pgbench.clone()).round()),
            "ratio_to_pgbench": self.ratio().map(|ratio| (ratio * 100.0).round() / 100.0),
            "per_step": {"round_trips": round_trips, "rows": rows, "wal_bytes": wal_bytes},
        })
    }
}

impl History {
    fn print(&self) {
        let [before, after] = self.rates;
        println!("history: {} finished steps in the tables", self.steps);
        println!("  noop         {after:>9.0} steps/s, {before:.0} before");
        for (name, [half, most], [full_half, full_most]) in &self.queries {
            let [half, most, full_half, full_most] = [half, most, full_half, full_most].map(|length| millis(*length));
            println!("  {name:<12} {full_half:>9} ms (p99 {full_most}), {half} ms (p99 {most}) before");
        }
        for (table, bytes, indexes) in &self.sizes {
            println!("  {table:<20} {:>6} MB, indexes {} MB", bytes >> 20, indexes >> 20);
        }
    }

    fn json(&self) -> Value {
        let [before, after] = self.rates.map(f64::round);
        let queries: Vec<Value> = self
            .queries
            .iter()
            .map(|(name, before, after)| {
                json!({"name": name, "before_ms": before.map(millis), "after_ms": after.map(millis)})
            })
            .collect();
        let sizes: Vec<Value> = self
            .sizes
            .iter()
            .map(|(table, bytes, indexes)| json!({"table": table, "bytes": bytes, "index_bytes": indexes}))
            .collect();
        json!({
            "finished_steps": self.steps, "steps_per_second_before": before, "steps_per_second": after,
            "questions": queries, "sizes": sizes,
        })
    }
}
