//! The threads that compile schemas and check values, so that none of it happens on a thread of the runtime.
//!
//! Schemas that are compiled and known to be fast have threads of their own: they do not wait behind slow ones.

use super::guard::{self, DEADLINE, THREAD_STACK};
use super::{Error, Fault, Schema};
use jsonschema::Validator;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Threads per lane.
const THREADS: usize = 2;
/// Values that wait per lane. More are refused.
const MAX_WAITING: usize = 1_000;
/// How long a value waits for a thread before it is refused.
const MAX_WAIT: Duration = Duration::from_secs(1);
/// Approximate memory of the compiled schemas that are kept. A full cache is cleared.
const MAX_MEMORY: usize = 64 * 1024 * 1024;
/// A check that takes longer makes its schema a slow one.
const SLOW: Duration = DEADLINE.checked_div(4).expect("not zero");

type Digest = [u8; 32];

struct Job {
    schema: Schema,
    /// Without a value the schema is only compiled.
    value: Option<Arc<Value>>,
    most: usize,
    since: Instant,
    reply: oneshot::Sender<Result<Vec<Fault>, Error>>,
}

struct Pool {
    fast: SyncSender<Job>,
    slow: SyncSender<Job>,
    compiled: Arc<Mutex<Compiled>>,
}

#[derive(Default)]
struct Compiled {
    by_digest: HashMap<Digest, Arc<Validator>>,
    memory: usize,
    slow: HashSet<Digest>,
}

static POOL: LazyLock<Pool> = LazyLock::new(|| {
    let compiled = Arc::<Mutex<Compiled>>::default();
    let lane = |name: &str| {
        let (jobs, queue) = sync_channel(MAX_WAITING);
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..THREADS {
            let (queue, compiled) = (queue.clone(), compiled.clone());
            let thread = thread::Builder::new().name(format!("schema-{name}")).stack_size(THREAD_STACK);
            if let Err(error) = thread.spawn(move || work(&queue, &compiled)) {
                tracing::error!(%error, "cannot start a thread that checks values against schemas");
            }
        }
        jobs
    };
    Pool { fast: lane("fast"), slow: lane("slow"), compiled }
});

fn lock(compiled: &Mutex<Compiled>) -> MutexGuard<'_, Compiled> {
    compiled.lock().unwrap_or_else(PoisonError::into_inner)
}

/// At most `most` faults of a value. Without a value: whether the schema compiles.
pub async fn check(schema: &Schema, value: Option<Arc<Value>>, most: usize) -> Result<Vec<Fault>, Error> {
    let (reply, answer) = oneshot::channel();
    let job = Job { schema: schema.clone(), value, most, since: Instant::now(), reply };
    let known = {
        let compiled = lock(&POOL.compiled);
        compiled.by_digest.contains_key(&schema.digest) && !compiled.slow.contains(&schema.digest)
    };
    let lane = if known { &POOL.fast } else { &POOL.slow };
    lane.try_send(job).map_err(|_| Error::Busy)?;
    answer.await.unwrap_or(Err(Error::Busy))
}

fn work(queue: &Mutex<Receiver<Job>>, compiled: &Mutex<Compiled>) {
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Job { schema, value, most, since, reply }) = next else { return };
        if reply.is_closed() {
            continue;
        }
        let checked = match since.elapsed() > MAX_WAIT {
            true => Err(Error::Busy),
            false => {
                catch_unwind(AssertUnwindSafe(|| run(compiled, &schema, value.as_deref(), most))).unwrap_or_else(|_| {
                    Err(Error::Invalid { path: String::new(), message: "the validator cannot handle it".into() })
                })
            }
        };
        // Dropped here and not by the caller: dropping a large value takes time too.
        drop(value);
        // The caller may have left.
        let _ = reply.send(checked);
    }
}

fn run(compiled: &Mutex<Compiled>, schema: &Schema, value: Option<&Value>, most: usize) -> Result<Vec<Fault>, Error> {
    let known = lock(compiled).by_digest.get(&schema.digest).cloned();
    let validator = match known {
        Some(validator) => validator,
        None => {
            let validator = Arc::new(guard::compile(&schema.source)?);
            lock(compiled).keep(schema, validator.clone());
            validator
        }
    };
    let Some(value) = value else { return Ok(Vec::new()) };
    let began = Instant::now();
    let faults = guard::faults(&validator, value, most);
    if began.elapsed() > SLOW {
        lock(compiled).slow.insert(schema.digest);
    }
    faults
}

impl Compiled {
    fn keep(&mut self, schema: &Schema, validator: Arc<Validator>) {
        if self.memory + schema.memory > MAX_MEMORY {
            *self = Compiled::default();
        }
        if self.by_digest.insert(schema.digest, validator).is_none() {
            self.memory += schema.memory;
        }
    }
}
