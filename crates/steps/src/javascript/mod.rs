//! The `javascript` kind: evaluates user code in QuickJS, in a separate process that can be killed.
//!
//! On the server's side, `turns` shares the workers among organisations, `pool` manages their processes, `fetch` makes
//! requests for the code, and [`JavascriptKind`] passes an evaluation to a worker and waits for its end. On the worker's
//! side, `worker` confines itself (`confine`) and evaluates (`sandbox`). Both sides use the messages in `protocol`.
//!
//! A separate process is needed because some of QuickJS's native loops cannot be interrupted, and because a compromised
//! engine then has nothing to escape to.

mod confine;
mod fetch;
mod log;
mod pool;
mod protocol;
mod sandbox;
mod turns;
mod worker;

pub(crate) use log::Log;
pub(crate) use protocol::Line;
pub use worker::work;

use crate::http::Client;
use async_trait::async_trait;
use fetch::Fetcher;
use pool::{Pool, Worker};
use protocol::{Failed, FetchResponse, FromWorker, Job, ToWorker};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use stepwell_core::event::{Failure, FailureKind, Outcome, Reply};
use stepwell_engine::{StepCall, StepKind};
use stepwell_store::OrgId;
use tokio::io::AsyncWriteExt;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// The hidden command of the binary that runs a worker.
pub const WORKER: &str = "javascript-worker";
const DEFAULT_MEMORY: u64 = 64 << 20;
/// The defaults of the operator's limits.
const MAX_TIMEOUT: Duration = Duration::from_secs(300);
const MAX_MEMORY: u64 = 256 << 20;
/// Limit for checking the syntax of code.
const CHECK_TIMEOUT: Duration = Duration::from_secs(1);
/// Checks take turns as if an organisation of their own asked for them: they come from callers who may only read.
const CHECKS: OrgId = OrgId(0);
/// How long a worker may exceed the deadline to report its timeout, before it is killed.
const GRACE: Duration = Duration::from_millis(150);

#[derive(Clone)]
pub struct Config {
    /// The program and the arguments that start a worker.
    pub worker: Vec<OsString>,
    /// Concurrent evaluations.
    pub workers: usize,
    /// The longest timeout of a step; a longer one is cut to this.
    pub max_timeout: Duration,
    /// The most memory of a step, in bytes; a higher limit is cut to this.
    pub max_memory: u64,
}

/// Runs this program as the worker, once per core.
impl Default for Config {
    fn default() -> Config {
        // The link leads to the running program even if its file has been replaced.
        let program = if cfg!(target_os = "linux") { Ok("/proc/self/exe".into()) } else { std::env::current_exe() };
        let program = program.unwrap_or_else(|_| "stepwell".into());
        let workers = std::thread::available_parallelism().map_or(2, usize::from);
        Config {
            worker: vec![program.into(), WORKER.into()],
            workers,
            max_timeout: MAX_TIMEOUT,
            max_memory: MAX_MEMORY,
        }
    }
}

/// Input: `{code, ctx, memory?}`.
pub struct JavascriptKind {
    pool: Pool,
    client: Arc<Client>,
    max_timeout: Duration,
    max_memory: u64,
}

impl JavascriptKind {
    pub fn new(config: Config, client: Arc<Client>) -> JavascriptKind {
        let Config { worker, workers, max_timeout, max_memory } = config;
        JavascriptKind { pool: Pool::new(worker, workers), client, max_timeout, max_memory }
    }
}

#[async_trait]
impl StepKind for JavascriptKind {
    /// Code reaches the world through `fetch` only, and each of its requests is checked.
    fn is_read_only(&self, _input: &Value) -> bool {
        true
    }

    async fn run(&self, call: StepCall) -> Outcome {
        let mut transcript = Transcript::default();
        let result = match Fetcher::new(&self.client, &call) {
            Ok(fetcher) => match self.job(&call, fetcher.as_ref()) {
                Ok(job) => {
                    let result = self.evaluate(call.caller.org, job, fetcher.map(Arc::new), &mut transcript).await;
                    result.map_err(|failure| self.name_limit(&call, failure))
                }
                Err(failure) => Err(failure),
            },
            Err(failure) => Err(failure),
        };
        let log = transcript.log.into_value().map(Arc::new);
        match result {
            Ok(body) => Outcome::Success(Reply { log, ..Reply::body(body) }),
            Err(failure) => {
                // Only `fetch` can have external effects, and only after one can another attempt end differently.
                let failure = Failure {
                    may_have_happened: transcript.fetches > 0,
                    retryable: failure.retryable || transcript.fetches > 0 && &*failure.code != "bad_result",
                    ..failure
                };
                Outcome::Failure { failure, reply: log.map(|log| Reply { log: Some(log), ..Reply::default() }) }
            }
        }
    }

    /// Has a worker parse the code without running it.
    async fn check(&self, constant: &Value) -> Result<(), String> {
        let code = constant.get("code").and_then(Value::as_str).unwrap_or_default().to_owned();
        let timeout_ms = CHECK_TIMEOUT.as_millis() as u64;
        let job =
            Job { code, ctx: RawValue::NULL.to_owned(), timeout_ms, memory: DEFAULT_MEMORY, fetch: None, check: true };
        match self.evaluate(CHECKS, job, None, &mut Transcript::default()).await {
            Err(failure) if &*failure.code == "syntax_error" => Err(failure.message.to_string()),
            // Any other failure may not be the code's fault.
            _ => Ok(()),
        }
    }

    /// Code may wait for a worker; its timeout starts when it has one.
    fn keeps_time(&self) -> bool {
        true
    }
}

/// What a worker has reported so far.
#[derive(Default)]
struct Transcript {
    log: Log,
    /// Number of requests made.
    fetches: u32,
}

impl JavascriptKind {
    async fn evaluate(
        &self,
        org: OrgId,
        job: Job,
        fetcher: Option<Arc<Fetcher>>,
        transcript: &mut Transcript,
    ) -> Result<Value, Failure> {
        let timeout = Duration::from_millis(job.timeout_ms);
        let evaluate = protocol::frame(&ToWorker::Evaluate(job)).map_err(|error| unavailable(&error))?;
        let _turn = self.pool.turn(org).await;
        let mut worker = self.pool.worker().await.map_err(|error| unavailable(&error))?;
        loop {
            let used = worker.is_used();
            let exchange = Exchange {
                worker,
                fetcher: fetcher.clone(),
                fetches: JoinSet::new(),
                outbox: VecDeque::from([evaluate.clone()]),
                written: 0,
                deadline: Instant::now() + timeout + GRACE,
            };
            match exchange.run(transcript).await {
                Ended::Finished(worker, result) => {
                    // A process that has hit a limit may be in a bad state and is not reused.
                    let limit =
                        |failed: &Failed| ["timeout", "memory_limit", "stack_limit"].contains(&failed.code.as_str());
                    if let Some(worker) = worker.filter(|_| !result.as_ref().is_err_and(limit)) {
                        self.pool.put_back(*worker);
                    }
                    return result.map_err(failure).and_then(|result| read(&result));
                }
                Ended::TimedOut => return Err(failure(sandbox::timed_out(timeout.as_millis() as u64))),
                // An idle worker may have died before it received the code.
                Ended::Disconnected(_) if used && transcript.is_empty() => {
                    worker = self.pool.start().await.map_err(|error| unavailable(&error))?;
                }
                Ended::Disconnected(why) => return Err(Failure::retryable("crashed", why)),
            }
        }
    }
}

impl JavascriptKind {
    fn job(&self, call: &StepCall, fetcher: Option<&Fetcher>) -> Result<Job, Failure> {
        let bad = |what: &str| Failure::new("bad_input", format!("a javascript step has no {what}"));
        let code = call.input.get("code").and_then(Value::as_str).ok_or_else(|| bad("code"))?;
        let ctx = call.input.get("ctx").map(to_raw_value).and_then(Result::ok).ok_or_else(|| bad("context"))?;
        Ok(Job {
            code: code.to_owned(),
            ctx,
            timeout_ms: call.timeout.min(self.max_timeout).as_millis() as u64,
            memory: memory(call).min(self.max_memory),
            fetch: fetcher.map(|fetcher| fetcher.placeholder.clone()),
            check: false,
        })
    }

    /// Says so if the limit that the code reached is the server's and not the step's.
    fn name_limit(&self, call: &StepCall, failure: Failure) -> Failure {
        let setting = match &*failure.code {
            "timeout" if call.timeout > self.max_timeout => "timeout",
            "memory_limit" if memory(call) > self.max_memory => "memory",
            _ => return failure,
        };
        let message = failure.message.split(';').next().unwrap_or_default();
        let message = format!("{message}, which is this server's limit; its operator can raise `javascript.{setting}`");
        Failure { message: message.into(), ..failure }
    }
}

/// The memory limit that the step asks for, in bytes.
fn memory(call: &StepCall) -> u64 {
    call.input.get("memory").and_then(Value::as_u64).unwrap_or(DEFAULT_MEMORY)
}

impl Transcript {
    fn is_empty(&self) -> bool {
        self.log.is_empty() && self.fetches == 0
    }
}

fn read(result: &RawValue) -> Result<Value, Failure> {
    serde_json::from_str(result.get())
        .map_err(|error| Failure::new("bad_result", format!("the result cannot be represented as JSON: {error}")))
}

fn failure(failed: Failed) -> Failure {
    let kind = if failed.code == "timeout" { FailureKind::Timeout } else { FailureKind::Error };
    Failure { kind, ..Failure::new(&failed.code, failed.message) }
}

fn unavailable(error: &io::Error) -> Failure {
    Failure::retryable("unavailable", format!("no worker process is available: {error}"))
}

/// One evaluation, from the command to its result.
struct Exchange {
    worker: Worker,
    fetcher: Option<Arc<Fetcher>>,
    fetches: JoinSet<(u32, Result<FetchResponse, String>)>,
    /// Frames to write to the worker, and how many bytes of the first are written.
    outbox: VecDeque<Vec<u8>>,
    written: usize,
    deadline: Instant,
}

enum Ended {
    /// With the worker, if all frames have been written: the rest of a partial frame would become the beginning of its
    /// next command.
    Finished(Option<Box<Worker>>, Result<Box<RawValue>, Failed>),
    TimedOut,
    Disconnected(String),
}

impl Exchange {
    async fn run(mut self, transcript: &mut Transcript) -> Ended {
        while let Some(event) = self.next().await {
            let result = match event {
                Ok(FromWorker::Log(line)) => {
                    transcript.log.keep(line);
                    continue;
                }
                // Requests beyond the limit are not made. The prelude reports the limit to the code.
                Ok(FromWorker::Fetch { id, request }) => {
                    if transcript.fetches < fetch::MAX_REQUESTS && self.fetch(id, request) {
                        transcript.fetches += 1;
                    }
                    continue;
                }
                Ok(FromWorker::Ready { .. }) => continue,
                Ok(FromWorker::Done(result)) => Ok(result),
                Ok(FromWorker::Failed(failed)) => Err(failed),
                Err(error) => return Ended::Disconnected(self.worker.died(&error).await),
            };
            return Ended::Finished(self.outbox.is_empty().then(|| Box::new(self.worker)), result);
        }
        Ended::TimedOut
    }

    /// The worker's next event; `None` after the deadline. Writes pending frames meanwhile, because a worker that is
    /// busy writing does not read. A worker with too many open requests is not read until it has taken responses.
    async fn next(&mut self) -> Option<io::Result<FromWorker>> {
        let Worker { stdin, stdout, .. } = &mut self.worker;
        let listen = protocol::read_event(stdout);
        tokio::pin!(listen);
        loop {
            let open = self.fetches.len() + self.outbox.len();
            let first = self.outbox.front().map(|frame| &frame[self.written..]).unwrap_or_default();
            let left = first.len();
            tokio::select! {
                biased;
                event = &mut listen, if open <= protocol::MAX_OPEN => return Some(event),
                () = tokio::time::sleep_until(self.deadline) => return None,
                written = stdin.write(first), if left > 0 => match written {
                    Ok(count) if count < left => self.written += count,
                    Ok(_) => {
                        self.outbox.pop_front();
                        self.written = 0;
                    }
                    // Its last events can still be read.
                    Err(_) => self.outbox.clear(),
                },
                Some(fetched) = self.fetches.join_next(), if !self.fetches.is_empty() => {
                    if let Ok((id, response)) = fetched
                        && let Ok(frame) = protocol::frame(&ToWorker::Fetched { id, response })
                    {
                        self.outbox.push_back(frame);
                    }
                }
            }
        }
    }

    /// Starts a request, if the code may make any.
    fn fetch(&mut self, id: u32, request: Box<RawValue>) -> bool {
        let Some(fetcher) = self.fetcher.clone() else { return false };
        self.fetches.spawn(async move {
            let request = serde_json::from_str(request.get()).unwrap_or_default();
            (id, fetcher.fetch(id, request).await)
        });
        true
    }
}
