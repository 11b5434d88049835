//! The workloads: their definitions, and starting and awaiting runs.

use super::{Args, Kind, Measured, Meter, javascript, query};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use stepwell_engine::commands::{Source, Trigger};
use stepwell_engine::{Caller, Config, Engine};
use stepwell_store::postgres::PgStore;
use stepwell_store::sqlite::SqliteStore;
use stepwell_store::{Commit, PostgresOptions, Store};

/// Runs made one after the other, to measure the latency of a single run.
const ALONE: u32 = 200;

/// The services that the steps of a workload call.
#[derive(Clone, Copy, Default)]
pub struct Backends<'a> {
    pub url: &'a str,
    /// A SQLite file.
    pub goods: Option<&'a Path>,
}

pub struct Workload {
    pub name: &'static str,
    pub definition: String,
    /// Calls in one run.
    pub calls: u32,
    pub runs: u32,
    pub concurrency: u32,
    /// The input of every run.
    input: Value,
}

impl Workload {
    pub fn new(kind: Kind, args: &Args, Backends { url, goods }: Backends<'_>) -> Workload {
        let (name, calls, runs, concurrency) = match kind {
            Kind::Chain => ("chain", 5, 1_000, 64),
            Kind::Fan => ("fan", 50, 50, 4),
            Kind::Javascript => ("javascript", 5, 500, 64),
            Kind::Query => ("query", 10, 1_000, 64),
            Kind::Noop | Kind::Sleepers | Kind::Triggers | Kind::History | Kind::All => ("noop", 10, 1_000, 64),
        };
        let calls = args.steps.unwrap_or(calls).max(1);
        let definition = match kind {
            Kind::Chain => chain(name, calls, |before| http(url, before)),
            Kind::Fan => fan(name, calls, url),
            Kind::Javascript => chain(name, calls, |_| javascript::step()),
            Kind::Query => chain(name, calls, |_| query::step(goods.unwrap_or(Path::new("")))),
            Kind::Noop | Kind::Sleepers | Kind::Triggers | Kind::History | Kind::All => chain(name, calls, echo),
        };
        Workload {
            name,
            definition: definition.to_string(),
            // The fan also has a first step and a join.
            calls: calls + if kind == Kind::Fan { 2 } else { 0 },
            runs: args.runs.unwrap_or(runs).max(1),
            concurrency: args.concurrency.unwrap_or(concurrency).max(1),
            input: if kind == Kind::Javascript { javascript::input() } else { json!({"order": 42}) },
        }
    }

    pub fn title(&self) -> String {
        let Workload { name, calls, runs, concurrency, .. } = self;
        format!("{name}: {calls} steps per run, {runs} runs per pass, {concurrency} in flight")
    }

    /// One pass whose commits are kept, for the baseline.
    pub async fn record(&self, directory: &Path) -> anyhow::Result<Vec<Commit>> {
        let (store, recording) = SqliteStore::open(directory)?.recording();
        let engine = start(store, &self.definition).await?;
        self.drive(&engine, self.concurrency, self.runs).await?;
        engine.shutdown(Duration::from_secs(5)).await;
        let mut recording = recording.lock().map_err(|_| anyhow::anyhow!("the recording failed"))?;
        Ok(std::mem::take(&mut *recording))
    }

    pub async fn pass(&self, directory: &Path, concurrency: u32) -> anyhow::Result<Measured> {
        let engine = start(SqliteStore::open(directory)?, &self.definition).await?;
        // Warm up connections and caches before the clock starts.
        self.drive(&engine, concurrency, concurrency.min(self.runs)).await?;
        let meter = Meter::start();
        let latencies = self.drive(&engine, concurrency, self.runs).await?;
        let measured = meter.stop(self.runs, latencies);
        engine.shutdown(Duration::from_secs(5)).await;
        Ok(measured)
    }

    pub async fn alone(&self, directory: &Path) -> anyhow::Result<Measured> {
        let (definition, input) = (self.definition.clone(), self.input.clone());
        let alone = Workload { runs: ALONE.min(self.runs), definition, input, ..*self };
        alone.pass(directory, 1).await
    }

    async fn drive(&self, engine: &Engine, concurrency: u32, runs: u32) -> anyhow::Result<Vec<Duration>> {
        self.drive_all(std::slice::from_ref(engine), concurrency, runs).await
    }

    /// Starts runs on the engines in turn, `concurrency` at a time, and waits for each to end.
    pub async fn drive_all(&self, engines: &[Engine], concurrency: u32, runs: u32) -> anyhow::Result<Vec<Duration>> {
        let left = Arc::new(AtomicU32::new(runs));
        let client = |n: u32| {
            let (engine, left, name) = (engines[n as usize % engines.len()].clone(), left.clone(), self.name);
            let input = self.input.clone();
            tokio::spawn(async move {
                let caller = Caller::local("bench");
                let mut latencies = Vec::new();
                while left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok() {
                    let start = Instant::now();
                    let input = input.clone();
                    let trigger = Trigger::new(name, input);
                    let (_, end) = engine.runs(&caller).trigger_and_watch(trigger).await?;
                    end.reached().await?;
                    latencies.push(start.elapsed());
                }
                Ok::<_, anyhow::Error>(latencies)
            })
        };
        let mut latencies = Vec::new();
        for client in (0..concurrency).map(client).collect::<Vec<_>>() {
            latencies.extend(client.await??);
        }
        Ok(latencies)
    }
}

/// Starts nodes of one database in this process, each with its own connections.
pub async fn nodes(options: &PostgresOptions, count: u32, definition: &str) -> anyhow::Result<Vec<Engine>> {
    let mut engines = Vec::new();
    for _ in 0..count.max(1) {
        engines.push(start(PgStore::open(options).await?, definition).await?);
    }
    Ok(engines)
}

pub async fn start(store: impl Store + 'static, definition: &str) -> anyhow::Result<Engine> {
    // The echo server is on loopback.
    let egress = stepwell_steps::Egress { allow_private: true };
    let connections = Arc::new(query::Files);
    let config = stepwell_steps::Config { egress, connections, ..stepwell_steps::Config::default() };
    let kinds = stepwell_steps::kinds(config);
    let engine = Engine::start(Arc::new(store), Config::new(kinds)).await?;
    engine.workflows(&Caller::local("bench")).define(Source { text: definition, file: None }).await?;
    Ok(engine)
}

fn chain(name: &str, calls: u32, step: impl Fn(&str) -> Value) -> Value {
    let mut tasks = Map::new();
    for n in 1..=calls {
        let before = format!("s{}", n - 1);
        let mut task = step(if n == 1 { "input.order" } else { "run.id" });
        if n > 1 {
            task["needs"] = json!([before]);
        }
        tasks.insert(format!("s{n}"), task);
    }
    json!({"name": name, "tasks": tasks})
}

fn echo(value: &str) -> Value {
    json!({"tool": "echo", "args": {"value": format!("{{{{{value}}}}}")}})
}

fn http(url: &str, value: &str) -> Value {
    json!({"url": url, "method": "POST", "body": {"value": format!("{{{{{value}}}}}")}})
}

fn fan(name: &str, calls: u32, url: &str) -> Value {
    let mut tasks = Map::new();
    tasks.insert("first".into(), echo("input.order"));
    let mut needs = Vec::new();
    for n in 1..=calls {
        let mut task = http(url, "run.id");
        task["needs"] = json!(["first"]);
        needs.push(format!("s{n}"));
        tasks.insert(format!("s{n}"), task);
    }
    let mut join = echo("run.id");
    join["needs"] = json!(needs);
    tasks.insert("join".into(), join);
    json!({"name": name, "tasks": tasks})
}
