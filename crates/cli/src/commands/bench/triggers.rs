//! Triggers over HTTP: requests per second and latency, compared with the same triggers made directly on an engine in
//! this process. Both count a trigger when its run is on disk.

use super::report::{median, millis, percentile};
use super::workload::start;
use super::{Args, fresh};
use anyhow::{Context, bail};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use stepwell_engine::commands::Trigger;
use stepwell_engine::{Caller, Engine};
use stepwell_server::config::Config;
use stepwell_server::{App, listen, live, router};
use stepwell_store::sqlite::SqliteStore;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

const DEFINITION: &str =
    r#"{"name": "taken", "tasks": {"note": {"tool": "echo", "args": {"order": "{{input.order}}"}}}}"#;

#[derive(Default)]
pub struct Triggers {
    connections: u32,
    /// Per second, by round.
    inside: Vec<f64>,
    over_http: Vec<f64>,
    latencies: Vec<Duration>,
}

impl Triggers {
    fn ratio(&self) -> f64 {
        median(self.over_http.iter().zip(&self.inside).map(|(http, inside)| http / inside).collect())
    }

    pub fn json(&self) -> Value {
        let latency = |part| millis(percentile(self.latencies.clone(), part));
        json!({
            "connections": self.connections, "http_triggers_per_second": median(self.over_http.clone()).round(),
            "p50_ms": latency(0.5), "p99_ms": latency(0.99),
            "in_process_triggers_per_second": median(self.inside.clone()).round(),
            "ratio_to_in_process": (self.ratio() * 100.0).round() / 100.0,
        })
    }

    pub fn print(&self) {
        let latency = |part| millis(percentile(self.latencies.clone(), part));
        println!("triggers: {} connections, one tool call per run", self.connections);
        let rate = median(self.over_http.clone());
        println!("  over HTTP    {rate:>9.0} triggers/s, answered in {} ms (p99 {})", latency(0.5), latency(0.99));
        println!("  in process   {:>9.0} triggers/s", median(self.inside.clone()));
        println!("  ratio        {:>9.0} %", self.ratio() * 100.0);
    }
}

pub async fn measure(args: &Args, base: &Path) -> anyhow::Result<Triggers> {
    let connections = args.concurrency.unwrap_or(64).max(1);
    let mut measured = Triggers { connections, ..Triggers::default() };
    let rounds = args.rounds.max(1);
    let each = Duration::from_secs(args.seconds.max(1)) / (rounds * 2);
    if !args.json {
        eprintln!("triggers: {connections} connections");
    }
    for round in 0..rounds {
        let directory = fresh(&base.join("triggers"))?;
        let engine = start(SqliteStore::open(&directory)?, DEFINITION).await?;
        let (count, _) = load(each, connections, |stop| inside(engine.clone(), stop)).await?;
        measured.inside.push(f64::from(count) / each.as_secs_f64());
        engine.shutdown(Duration::from_secs(5)).await;
        let directory = fresh(&base.join("triggers"))?;
        let engine = start(SqliteStore::open(&directory)?, DEFINITION).await?;
        let (address, key) = serve(&engine).await?;
        let (count, latencies) = load(each, connections, |stop| over_http(address, key.clone(), stop)).await?;
        measured.over_http.push(f64::from(count) / each.as_secs_f64());
        measured.latencies.extend(latencies);
        engine.shutdown(Duration::from_secs(5)).await;
        if !args.json {
            let (http, inside) = (measured.over_http[round as usize], measured.inside[round as usize]);
            eprintln!("  round {}: {http:.0} triggers/s over HTTP, {inside:.0} in process", round + 1);
        }
    }
    Ok(measured)
}

/// Runs clients for a time, each sending the next request as soon as it gets a response.
async fn load<F>(
    length: Duration,
    clients: u32,
    client: impl Fn(Arc<AtomicBool>) -> F,
) -> anyhow::Result<(u32, Vec<Duration>)>
where
    F: Future<Output = anyhow::Result<Vec<Duration>>> + Send + 'static,
{
    let stop = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..clients).map(|_| tokio::spawn(client(stop.clone()))).collect();
    tokio::time::sleep(length).await;
    stop.store(true, Ordering::Relaxed);
    let mut latencies = Vec::new();
    for client in clients {
        latencies.extend(client.await??);
    }
    Ok((latencies.len() as u32, latencies))
}

async fn inside(engine: Engine, stop: Arc<AtomicBool>) -> anyhow::Result<Vec<Duration>> {
    let caller = Caller::local("bench");
    let mut latencies = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let begun = Instant::now();
        engine.runs(&caller).trigger(Trigger::new("taken", json!({"order": 42}))).await?;
        latencies.push(begun.elapsed());
    }
    Ok(latencies)
}

/// Starts the server of `stepwell serve` on loopback; returns its address and a key.
async fn serve(engine: &Engine) -> anyhow::Result<(std::net::SocketAddr, String)> {
    let key = engine.identity().new_secret();
    engine.identity().bootstrap(&key, &engine.identity().new_secret()).await?;
    let config = Config::default();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let limits = listen::Limits {
        connections: config.limits.connections.get(),
        header_timeout: Duration::from_millis(config.limits.header_timeout.0),
        body_timeout: Duration::from_millis(config.limits.body_timeout.0),
        drain: Duration::from_secs(1),
    };
    let hub = live::Hub::start(engine.clone(), &config.limits);
    let app = App::new(engine.clone(), Arc::new(config), &format!("http://{address}"), hub);
    // Ends with the process.
    tokio::spawn(listen::serve(listener, router(app), limits, std::future::pending()));
    Ok((address, key))
}

/// One persistent connection, written by hand: a client library would cost as much as the server.
async fn over_http(address: std::net::SocketAddr, key: String, stop: Arc<AtomicBool>) -> anyhow::Result<Vec<Duration>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    let body = r#"{"order":42}"#;
    let request = format!(
        "POST /api/v1/workflows/taken/trigger HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut latencies = Vec::new();
    let (mut line, mut answer) = (String::new(), Vec::new());
    while !stop.load(Ordering::Relaxed) {
        let begun = Instant::now();
        stream.write_all(request.as_bytes()).await?;
        let mut length = 0;
        let mut first = true;
        loop {
            line.clear();
            stream.read_line(&mut line).await?;
            if first && !line.contains(" 201 ") {
                bail!("the server answered {line:?}");
            }
            first = false;
            if line.trim().is_empty() {
                break;
            }
            let header = line.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
            if let Some((_, value)) = header {
                length = value.trim().parse().context("the server's content-length")?;
            }
        }
        answer.resize(length, 0);
        stream.read_exact(&mut answer).await?;
        latencies.push(begun.elapsed());
    }
    Ok(latencies)
}
