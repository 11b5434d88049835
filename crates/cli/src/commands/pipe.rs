//! `stepwell pipe`: starts a run for every input line and reports on standard output when each is on disk and when it
//! ends. For backfills, and for programs that want durable runs without a server.

use super::Exit;
use crate::embedded::{self, ended, unfinished};
use crate::home::Data;
use crate::logging;
use crate::signals::Signals;
use crate::source::Source;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::io::{BufRead, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use stepwell_core::limits;
use stepwell_core::run::RunStatus;
use stepwell_engine::commands::{End, Trigger};
use stepwell_engine::{Activity, Caller, Engine};
use stepwell_store::{RunId, Store};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

/// A line may contain the largest possible input, however it is escaped.
const MAX_LINE: usize = 6 * limits::MAX_PAYLOAD_BYTES;

#[derive(clap::Args)]
pub struct Args {
    /// Definitions to store first; not `-`, since standard input has the runs
    #[arg(value_name = "FILE")]
    files: Vec<String>,
    #[command(flatten)]
    data: Data,
    /// Maximum runs in flight
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    concurrency: u32,
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    logging::start();
    let Some(sources) = Source::read_all(&args.files)? else { return Ok(Exit::BadInput) };
    embedded::runtime()?.block_on(pipe(args.concurrency, &sources, &args.data))
}

async fn pipe(concurrency: u32, sources: &[Source], data: &Data) -> anyhow::Result<Exit> {
    let home = data.open().await?;
    let mut signals = Signals::listen()?;
    let earlier = unfinished(&*home.store).await?.into_iter().collect();
    let engine = embedded::start(&home).await?;
    let store = home.store;
    let commits = engine.activity();
    let caller = embedded::caller();
    let names = embedded::define(&engine, &caller, sources).await?;
    let (output, lines) = mpsc::channel(1_024);
    let writer = std::thread::spawn(move || write(lines));
    let only = if let [name] = names.as_slice() { Some(name.clone()) } else { None };
    let earlier = Mutex::new(earlier);
    let pipe = Arc::new(Pipe { engine, store, caller, only, output, earlier, bad: AtomicBool::new(false) });
    tokio::select! {
        () = pipe.work(concurrency as usize, commits) => {}
        () = pipe.output.closed() => {}
        () = signals.next() => {
            signals.stop(&pipe.engine).await;
            return Ok(Exit::Interrupted);
        }
    }
    signals.stop(&pipe.engine).await;
    let bad = pipe.bad.load(Ordering::SeqCst);
    drop(pipe);
    match writer.join() {
        Ok(written) => written?,
        Err(_) => anyhow::bail!("cannot write to standard output"),
    }
    Ok(if bad { Exit::Failed } else { Exit::Success })
}

/// A request to start a run: one input line.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    /// Required unless exactly one definition was given.
    workflow: Option<String>,
    #[serde(default = "nothing")]
    input: Value,
    key: Option<String>,
}

fn nothing() -> Value {
    json!({})
}

struct Pipe {
    engine: Engine,
    store: Arc<dyn Store>,
    caller: Caller,
    only: Option<String>,
    output: mpsc::Sender<String>,
    /// Unfinished runs of earlier processes, not yet reported.
    earlier: Mutex<HashSet<RunId>>,
    bad: AtomicBool,
}

impl Pipe {
    /// Works until the input and every run have ended.
    async fn work(self: &Arc<Pipe>, concurrency: usize, commits: broadcast::Receiver<Activity>) {
        let mut tasks = JoinSet::new();
        let pipe = self.clone();
        tasks.spawn(async move { pipe.finish_earlier(commits).await });
        let (send, mut lines) = mpsc::channel(concurrency);
        std::thread::spawn(move || read(send));
        let slots = Arc::new(Semaphore::new(concurrency));
        while let Some((number, line)) = lines.recv().await {
            // Never closed.
            let Ok(slot) = slots.clone().acquire_owned().await else { break };
            let pipe = self.clone();
            tasks.spawn(async move {
                pipe.line(number, line).await;
                drop(slot);
            });
            // Reap finished tasks so that they do not pile up.
            while tasks.try_join_next().is_some() {}
        }
        while tasks.join_next().await.is_some() {}
    }

    async fn line(&self, number: u64, line: Result<Vec<u8>, String>) {
        let request = line.and_then(|line| serde_json::from_slice::<Request>(&line).map_err(|error| error.to_string()));
        let request = match request {
            Ok(request) => request,
            Err(error) => return self.error(number, None, &error).await,
        };
        let key = request.key.as_deref();
        let Some(workflow) = request.workflow.as_deref().or(self.only.as_deref()) else {
            return self
                .error(number, key, "`workflow` is missing: name one, since there is not exactly one definition")
                .await;
        };
        let trigger = Trigger { key, ..Trigger::new(workflow, request.input) };
        match self.engine.runs(&self.caller).trigger_and_watch(trigger).await {
            Ok((started, end)) => {
                if started.repeated {
                    self.earlier().remove(&started.id);
                }
                self.print(json!({"started": started.run, "line": number, "key": key, "repeated": started.repeated}))
                    .await;
                match self.reached(started.id, end).await {
                    Ok(()) => self.ended(started.id, Some(number), key).await,
                    Err(error) => self.error(number, key, &format!("{}: {error}", started.run)).await,
                }
            }
            Err(error) => self.error(number, key, &error.to_string()).await,
        }
    }

    /// Waits for the end of a run. The notification is only a hint; the store decides.
    async fn reached(&self, run: RunId, mut end: End) -> Result<(), stepwell_engine::Error> {
        loop {
            end.reached().await?;
            if self.store.run(run).await?.is_none_or(|row| row.finished.is_some()) {
                return Ok(());
            }
            end = self.engine.log().end_of(run).await?;
        }
    }

    async fn ended(&self, run: RunId, line: Option<u64>, key: Option<&str>) {
        match ended(&*self.store, run).await {
            Ok(Some(end)) => {
                if end.status != RunStatus::Completed {
                    self.bad.store(true, Ordering::SeqCst);
                }
                let mut told =
                    json!({"ended": end.run, "line": line, "key": key, "status": end.status, "output": end.output});
                if let Some(error) = end.error {
                    told["error"] = error;
                }
                self.print(told).await;
            }
            Ok(None) => self.fail(json!({"error": "the run no longer exists", "key": key, "line": line})).await,
            Err(error) => self.fail(json!({"error": format!("{error:#}"), "key": key, "line": line})).await,
        }
    }

    async fn error(&self, line: u64, key: Option<&str>, error: &str) {
        self.fail(json!({"error": error, "key": key, "line": line})).await;
    }

    async fn fail(&self, line: Value) {
        self.bad.store(true, Ordering::SeqCst);
        self.print(line).await;
    }

    async fn print(&self, line: Value) {
        // A closed channel ends `pipe`.
        let _ = self.output.send(format!("{line}\n")).await;
    }

    fn earlier(&self) -> MutexGuard<'_, HashSet<RunId>> {
        self.earlier.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Reports the ends of runs that earlier processes left unfinished.
    async fn finish_earlier(&self, mut commits: broadcast::Receiver<Activity>) {
        self.sweep().await;
        while !self.earlier().is_empty() {
            match commits.recv().await {
                Ok(Activity::Committed(commit)) if commit.ended => {
                    let awaited = self.earlier().remove(&commit.run);
                    if awaited {
                        self.ended(commit.run, None, None).await;
                    }
                }
                Ok(Activity::Committed(_)) => {}
                Ok(Activity::Elsewhere) | Err(RecvError::Lagged(_)) => self.sweep().await,
                Err(RecvError::Closed) => return,
            }
        }
    }

    /// Checks all earlier runs, since some may have ended without a notification.
    async fn sweep(&self) {
        let all: Vec<RunId> = self.earlier().iter().copied().collect();
        for run in all {
            let over = self.store.run(run).await.is_ok_and(|row| row.is_none_or(|row| row.finished.is_some()));
            if over && self.earlier().remove(&run) {
                self.ended(run, None, None).await;
            }
        }
    }
}

/// Reads numbered lines from standard input and skips empty ones.
fn read(lines: mpsc::Sender<(u64, Result<Vec<u8>, String>)>) {
    let mut input = std::io::stdin().lock();
    for number in 1.. {
        let mut line = Vec::new();
        let read = input.by_ref().take(MAX_LINE as u64 + 1).read_until(b'\n', &mut line);
        let line = match read {
            Ok(0) => return,
            Ok(_) if line.len() > MAX_LINE => {
                // The rest of the line cannot be told from the next line, so reading stops.
                let _ = lines.blocking_send((number, Err(format!("the line is longer than {MAX_LINE} bytes"))));
                return;
            }
            Ok(_) if line.trim_ascii().is_empty() => continue,
            Ok(_) => Ok(line),
            Err(error) => Err(format!("cannot read standard input: {error}")),
        };
        let last = line.is_err();
        if lines.blocking_send((number, line)).is_err() || last {
            return;
        }
    }
}

/// Writes lines and flushes whenever no other is waiting.
fn write(mut lines: mpsc::Receiver<String>) -> std::io::Result<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    while let Some(line) = lines.blocking_recv() {
        out.write_all(line.as_bytes())?;
        while let Ok(line) = lines.try_recv() {
            out.write_all(line.as_bytes())?;
        }
        out.flush()?;
    }
    Ok(())
}
