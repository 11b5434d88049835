//! The `javascript` kind: the user's code in QuickJS, in a process that can be killed.
//!
//! Here the server's side: `pool` keeps the worker processes, `fetch` makes the requests that code asks for, and
//! [`JavascriptKind`] gives an evaluation to a worker and waits for its end. The worker's side is `worker`, which shuts
//! itself in (`confine`) and evaluates (`sandbox`). Both speak `wire`.
//!
//! A process, because some of the engine's native loops ask nobody whether they may go on; and because an engine that was
//! broken into then has nothing to break out to.

mod confine;
mod fetch;
mod log;
mod pool;
mod sandbox;
mod wire;
mod worker;

pub(crate) use log::Log;
pub(crate) use wire::Line;
pub use worker::work;

use crate::http::Client;
use async_trait::async_trait;
use fetch::Fetcher;
use pool::{Pool, Worker};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use stepwell_core::event::{Failure, FailureKind, Outcome, Reply};
use stepwell_engine::{StepCall, StepKind};
use tokio::io::AsyncWriteExt;
use tokio::task::JoinSet;
use tokio::time::Instant;
use wire::{Answer, Failed, Job, Order, Word};

/// The command of the binary that makes it a worker.
pub const WORKER: &str = "javascript-worker";
const DEFAULT_MEMORY: u64 = 64 << 20;
/// For reading code that is not run.
const CHECK: Duration = Duration::from_secs(5);
/// What a worker gets beyond the deadline to say that it is over, before it is killed.
const GRACE: Duration = Duration::from_millis(150);

#[derive(Clone)]
pub struct Config {
    /// What starts a worker: a program and its arguments.
    pub worker: Vec<OsString>,
    /// Evaluations at a time.
    pub workers: usize,
}

/// This same program, once for each core.
impl Default for Config {
    fn default() -> Config {
        // The link leads to the running program even if its file was replaced since.
        let program = if cfg!(target_os = "linux") { Ok("/proc/self/exe".into()) } else { std::env::current_exe() };
        let program = program.unwrap_or_else(|_| "stepwell".into());
        let workers = std::thread::available_parallelism().map_or(2, usize::from);
        Config { worker: vec![program.into(), WORKER.into()], workers }
    }
}

/// Input: `{code, ctx, memory?}`.
pub struct JavascriptKind {
    pool: Pool,
    client: Arc<Client>,
}

impl JavascriptKind {
    pub fn new(config: Config, client: Arc<Client>) -> JavascriptKind {
        JavascriptKind { pool: Pool::new(config.worker, config.workers), client }
    }
}

#[async_trait]
impl StepKind for JavascriptKind {
    async fn run(&self, call: StepCall) -> Outcome {
        let mut talk = Talk::default();
        let result = match Fetcher::new(&self.client, &call) {
            Ok(fetcher) => match job(&call, fetcher.as_ref()) {
                Ok(job) => self.evaluate(job, fetcher.map(Arc::new), &mut talk).await,
                Err(failure) => Err(failure),
            },
            Err(failure) => Err(failure),
        };
        let log = talk.log.into_value().map(Arc::new);
        match result {
            Ok(body) => Outcome::Success(Reply { log, ..Reply::body(body) }),
            Err(failure) => {
                // What code did to the world can only have been done by `fetch`; and only after that may it end otherwise.
                let failure = Failure {
                    may_have_happened: talk.asked > 0,
                    retryable: failure.retryable || talk.asked > 0 && &*failure.code != "bad_result",
                    ..failure
                };
                Outcome::Failure { failure, reply: log.map(|log| Reply { log: Some(log), ..Reply::default() }) }
            }
        }
    }

    /// A worker reads the code and does not run it.
    async fn check(&self, constant: &Value) -> Result<(), String> {
        let code = constant.get("code").and_then(Value::as_str).unwrap_or_default().to_owned();
        let timeout_ms = CHECK.as_millis() as u64;
        let job =
            Job { code, ctx: RawValue::NULL.to_owned(), timeout_ms, memory: DEFAULT_MEMORY, fetch: None, check: true };
        match self.evaluate(job, None, &mut Talk::default()).await {
            Err(failure) if &*failure.code == "syntax_error" => Err(failure.message.to_string()),
            // Others than the code may be to blame.
            _ => Ok(()),
        }
    }

    /// Code may wait for a worker; its time begins when it has one.
    fn keeps_time(&self) -> bool {
        true
    }
}

/// What a worker has said so far.
#[derive(Default)]
struct Talk {
    log: Log,
    /// Requests that were made.
    asked: u32,
}

impl JavascriptKind {
    async fn evaluate(&self, job: Job, fetcher: Option<Arc<Fetcher>>, talk: &mut Talk) -> Result<Value, Failure> {
        let timeout = Duration::from_millis(job.timeout_ms);
        let evaluate = wire::frame(&Order::Evaluate(job)).map_err(|error| unavailable(&error))?;
        let Some(_turn) = self.pool.turn().await else { return Err(Failure::retryable("unavailable", "no workers")) };
        let mut worker = self.pool.worker().await.map_err(|error| unavailable(&error))?;
        loop {
            let used = worker.is_used();
            let exchange = Exchange {
                worker,
                fetcher: fetcher.clone(),
                fetches: JoinSet::new(),
                outbox: VecDeque::from([evaluate.clone()]),
                told: 0,
                deadline: Instant::now() + timeout + GRACE,
            };
            match exchange.run(talk).await {
                Ended::Said(worker, result) => {
                    // A process that came to a limit is not what it was.
                    let limit =
                        |failed: &Failed| ["timeout", "memory_limit", "stack_limit"].contains(&failed.code.as_str());
                    if let Some(worker) = worker.filter(|_| !result.as_ref().is_err_and(limit)) {
                        self.pool.put_back(*worker);
                    }
                    return result.map_err(failure).and_then(|result| read(&result));
                }
                Ended::Late => return Err(failure(sandbox::too_late(timeout.as_millis() as u64))),
                // It may have died of old age before it took the code.
                Ended::HungUp(_) if used && talk.is_silent() => {
                    worker = self.pool.fresh().await.map_err(|error| unavailable(&error))?;
                }
                Ended::HungUp(why) => return Err(Failure::retryable("crashed", why)),
            }
        }
    }
}

impl Talk {
    fn is_silent(&self) -> bool {
        self.log.is_empty() && self.asked == 0
    }
}

fn job(call: &StepCall, fetcher: Option<&Fetcher>) -> Result<Job, Failure> {
    let bad = |what: &str| Failure::new("bad_input", format!("a javascript step has no {what}"));
    let code = call.input.get("code").and_then(Value::as_str).ok_or_else(|| bad("code"))?;
    let ctx = call.input.get("ctx").map(to_raw_value).and_then(Result::ok).ok_or_else(|| bad("context"))?;
    Ok(Job {
        code: code.to_owned(),
        ctx,
        timeout_ms: call.timeout.as_millis() as u64,
        memory: call.input.get("memory").and_then(Value::as_u64).unwrap_or(DEFAULT_MEMORY),
        fetch: fetcher.map(|fetcher| fetcher.mark.clone()),
        check: false,
    })
}

fn read(result: &RawValue) -> Result<Value, Failure> {
    serde_json::from_str(result.get())
        .map_err(|error| Failure::new("bad_result", format!("the result cannot be kept as JSON: {error}")))
}

fn failure(failed: Failed) -> Failure {
    let kind = if failed.code == "timeout" { FailureKind::Timeout } else { FailureKind::Error };
    Failure { kind, ..Failure::new(&failed.code, failed.message) }
}

fn unavailable(error: &io::Error) -> Failure {
    Failure::retryable("unavailable", format!("no process to run the code in: {error}"))
}

/// One evaluation, from order to end.
struct Exchange {
    worker: Worker,
    fetcher: Option<Arc<Fetcher>>,
    fetches: JoinSet<(u32, Result<Answer, String>)>,
    /// What the worker is to be told, and how much of the first has been.
    outbox: VecDeque<Vec<u8>>,
    told: usize,
    deadline: Instant,
}

enum Ended {
    /// With the worker, if it has been told all that was to be told: the rest of an answer to a request would be the
    /// beginning of its next order.
    Said(Option<Box<Worker>>, Result<Box<RawValue>, Failed>),
    Late,
    HungUp(String),
}

impl Exchange {
    async fn run(mut self, talk: &mut Talk) -> Ended {
        while let Some(word) = self.next().await {
            let result = match word {
                Ok(Word::Log(line)) => {
                    talk.log.keep(line);
                    continue;
                }
                // More than it may make is not the code's doing: that is stopped before.
                Ok(Word::Fetch { id, request }) => {
                    if talk.asked < fetch::MOST && self.fetch(id, request) {
                        talk.asked += 1;
                    }
                    continue;
                }
                Ok(Word::Ready { .. }) => continue,
                Ok(Word::Done(result)) => Ok(result),
                Ok(Word::Failed(failed)) => Err(failed),
                Err(error) => return Ended::HungUp(self.worker.died(&error).await),
            };
            return Ended::Said(self.outbox.is_empty().then(|| Box::new(self.worker)), result);
        }
        Ended::Late
    }

    /// The worker's next word; none once it is too late for one. Meanwhile the worker is told what is to be told: one that
    /// is busy writing reads nothing. One that asks for more than it may is not listened to until it has taken answers.
    async fn next(&mut self) -> Option<io::Result<Word>> {
        let Worker { stdin, stdout, .. } = &mut self.worker;
        let listen = wire::listen(stdout);
        tokio::pin!(listen);
        loop {
            let open = self.fetches.len() + self.outbox.len();
            let first = self.outbox.front().map(|frame| &frame[self.told..]).unwrap_or_default();
            let left = first.len();
            tokio::select! {
                biased;
                word = &mut listen, if open <= wire::MAX_OPEN => return Some(word),
                () = tokio::time::sleep_until(self.deadline) => return None,
                written = stdin.write(first), if left > 0 => match written {
                    Ok(count) if count < left => self.told += count,
                    Ok(_) => {
                        self.outbox.pop_front();
                        self.told = 0;
                    }
                    // Its last words are still to be read.
                    Err(_) => self.outbox.clear(),
                },
                Some(fetched) = self.fetches.join_next(), if !self.fetches.is_empty() => {
                    if let Ok((id, answer)) = fetched
                        && let Ok(frame) = wire::frame(&Order::Fetched { id, answer })
                    {
                        self.outbox.push_back(frame);
                    }
                }
            }
        }
    }

    /// Begins a request, if the code may make any.
    fn fetch(&mut self, id: u32, request: Box<RawValue>) -> bool {
        let Some(fetcher) = self.fetcher.clone() else { return false };
        self.fetches.spawn(async move {
            let request = serde_json::from_str(request.get()).unwrap_or_default();
            (id, fetcher.fetch(id, request).await)
        });
        true
    }
}
