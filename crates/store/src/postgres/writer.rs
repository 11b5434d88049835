//! The writer connections, each with its own task. A task takes all queued jobs: commits of different runs share one
//! statement, every other job has its own transaction. All commits of a run go to the same task.
//!
//! No job waits for a free connection while holding another, so a burst only makes the queue longer and the statements
//! larger. Organisations take turns, so the burst of one does not delay the commits of another.

use super::connection::WriterConnection;
use super::hosts::Database;
use super::own::Own;
use super::session::{DbResult, Session};
use super::single;
use super::stalls::Stalls;
use crate::evidence::{Effects, SharedKey};
use crate::round_robin::in_turns;
use crate::{Commit, Error, OrgId, Position, Refused, Supervisor};
use async_trait::async_trait;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, mpsc, oneshot};

/// The maximum number of commits per statement.
const MAX_GROUP: usize = 256;
/// The maximum size of one statement, unless a single commit is larger.
const MAX_ROWS: usize = 10_000;
const MAX_BYTES: usize = 16 * 1024 * 1024;
/// The capacity of the queue. When it is full, senders wait, so memory does not grow.
const QUEUE: usize = 4_096;
/// The jobs that are taken from the queue at a time, for organisations to take turns.
const MAX_WAITING: usize = 4_096;
/// The delay after the database could not be reached.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// The result of one commit.
pub type Written = Result<Result<Position, Refused>, Error>;

#[allow(clippy::large_enum_variant, reason = "nearly all jobs are commits")]
enum Job {
    Commit(Commit, oneshot::Sender<Written>),
    Task(Box<dyn Task>),
}

impl Job {
    /// The organisation it writes for, if that is known.
    fn org(&self) -> Option<OrgId> {
        match self {
            Job::Commit(commit, _) => Some(commit.auth.org),
            Job::Task(_) => None,
        }
    }
}

/// Work that needs a transaction.
#[async_trait]
pub trait Task: Send {
    /// Does the work and returns its effects, unless it is refused.
    async fn run(&mut self, db: &Arc<Session>) -> DbResult<Result<Effects, Refused>>;
    /// Reports the outcome of the transaction to the caller.
    fn finish(self: Box<Self>, ended: Result<Result<(), Refused>, Error>);
}

pub struct Writers {
    queues: Vec<mpsc::Sender<Job>>,
    next: AtomicUsize,
}

/// What the writers of a store share.
#[derive(Clone)]
pub struct Shared {
    pub database: Arc<Database>,
    pub key: SharedKey,
    pub stalls: Arc<Stalls>,
    pub own: Own,
}

impl Writers {
    pub fn start(shared: &Shared, holders: &[i64], supervisor: &Supervisor) -> Writers {
        let queues = holders.iter().enumerate().map(|(writer, &holder)| {
            let (jobs, queue) = mpsc::channel(QUEUE);
            let (shared, queue) = (shared.clone(), Arc::new(Mutex::new(queue)));
            supervisor.spawn("store writer", move || {
                let watched = Watched { stalls: shared.stalls.clone(), writer };
                run(WriterConnection::new(shared.clone(), holder), queue.clone(), watched)
            });
            jobs
        });
        Writers { queues: queues.collect(), next: AtomicUsize::new(0) }
    }

    pub async fn commit(&self, batch: Vec<Commit>) -> Result<Vec<Result<Position, Refused>>, Error> {
        let mut answers = Vec::with_capacity(batch.len());
        for commit in batch {
            let (answer, answered) = oneshot::channel();
            let queue = commit.run.0.rem_euclid(self.queues.len() as i64) as usize;
            self.queues[queue].send(Job::Commit(commit, answer)).await.map_err(|_| gone())?;
            answers.push(answered);
        }
        let mut written = Vec::with_capacity(answers.len());
        for answer in answers {
            written.push(answer.await.map_err(|_| gone())??);
        }
        Ok(written)
    }

    /// Runs `work` in its own transaction, which is rolled back if the work is refused.
    pub async fn transact<T, W, F>(&self, work: W) -> Result<Result<T, Refused>, Error>
    where
        T: Send + 'static,
        W: FnOnce(Arc<Session>) -> F + Send + 'static,
        F: Future<Output = DbResult<Result<(T, Effects), Refused>>> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let task = Box::new(Submitted { work: Some(work), result: None, answer });
        let queue = self.next.fetch_add(1, Ordering::Relaxed) % self.queues.len();
        self.queues[queue].send(Job::Task(task)).await.map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }
}

fn gone() -> Error {
    Error::Unavailable("the writer has stopped or panicked".into())
}

struct Submitted<T, W> {
    work: Option<W>,
    result: Option<T>,
    answer: oneshot::Sender<Result<Result<T, Refused>, Error>>,
}

#[async_trait]
impl<T, W, F> Task for Submitted<T, W>
where
    T: Send + 'static,
    W: FnOnce(Arc<Session>) -> F + Send + 'static,
    F: Future<Output = DbResult<Result<(T, Effects), Refused>>> + Send + 'static,
{
    async fn run(&mut self, db: &Arc<Session>) -> DbResult<Result<Effects, Refused>> {
        let work = self.work.take().expect("a task is run once");
        let done = work(db.clone()).await?;
        Ok(done.map(|(result, effects)| {
            self.result = Some(result);
            effects
        }))
    }

    fn finish(self: Box<Self>, ended: Result<Result<(), Refused>, Error>) {
        let Submitted { result, answer, .. } = *self;
        let done = ended.and_then(|done| match (done, result) {
            (Ok(()), Some(result)) => Ok(Ok(result)),
            (Ok(()), None) => Err(Error::Unavailable("the task did not run".into())),
            (Err(refused), _) => Ok(Err(refused)),
        });
        // The caller may be gone; the write is committed all the same.
        let _ = answer.send(done);
    }
}

/// Where a writer reports that it is at work.
struct Watched {
    stalls: Arc<Stalls>,
    writer: usize,
}

async fn run(mut connection: WriterConnection, queue: Arc<Mutex<mpsc::Receiver<Job>>>, watched: Watched) {
    let mut queue = queue.lock().await;
    let mut waiting: VecDeque<Job> = VecDeque::new();
    let mut taken = Vec::new();
    loop {
        if waiting.is_empty() && queue.recv_many(&mut taken, MAX_WAITING).await == 0 {
            break;
        }
        // Jobs that arrived meanwhile join the batch.
        while waiting.len() + taken.len() < MAX_WAITING
            && let Ok(job) = queue.try_recv()
        {
            taken.push(job);
        }
        waiting = in_turns(waiting.drain(..).chain(taken.drain(..)), Job::org).collect();
        watched.stalls.began(watched.writer);
        let there = match waiting.pop_front() {
            None => true,
            Some(Job::Task(task)) => connection.serve(task).await,
            Some(Job::Commit(commit, answer)) if single::required(&commit) => {
                let written = connection.commit_single(&commit).await;
                let there = !matches!(written, Err(Error::Unavailable(_)));
                // The caller may be gone; the write is committed all the same.
                let _ = answer.send(written);
                there
            }
            Some(first) => {
                waiting.push_front(first);
                write_batch(&mut connection, &mut waiting).await
            }
        };
        watched.stalls.ended(watched.writer, there);
        if !there {
            tokio::time::sleep(RETRY_DELAY).await;
        }
    }
    connection.leave().await;
}

/// Writes the queued commits that can share a statement. Returns false if the database could not be reached.
async fn write_batch(connection: &mut WriterConnection, waiting: &mut VecDeque<Job>) -> bool {
    let (commits, answers) = group(waiting);
    let begun = Instant::now();
    let written = connection.commit(&commits).await;
    metrics::histogram!("stepwell_commit_batch_size").record(commits.len() as f64);
    metrics::histogram!("stepwell_commit_seconds").record(begun.elapsed().as_secs_f64());
    let there = !matches!(written.last(), Some(Err(Error::Unavailable(_))));
    for (answer, written) in answers.into_iter().zip(written) {
        let _ = answer.send(written);
    }
    there
}

/// Takes the next commits that can share a statement: of different runs, with different keys, and not too large in
/// total.
fn group(waiting: &mut VecDeque<Job>) -> (Vec<Commit>, Vec<oneshot::Sender<Written>>) {
    let (mut runs, mut keys) = (BTreeSet::new(), BTreeSet::new());
    let (mut commits, mut answers): (Vec<Commit>, _) = (Vec::new(), Vec::new());
    let mut rest = VecDeque::new();
    let mut size = Size::default();
    while let Some(job) = waiting.pop_front() {
        match job {
            Job::Commit(commit, answer) if commits.len() < MAX_GROUP => {
                let again = commit.unique.iter().any(|key| keys.contains(&(key.scope.clone(), key.key.clone())));
                let fits = commits.is_empty() || size.plus(&commit).fits();
                // Later commits of a run must not overtake one that is left in the queue.
                if !runs.insert(commit.run) || again || !fits || single::required(&commit) {
                    rest.push_back(Job::Commit(commit, answer));
                    continue;
                }
                size = size.plus(&commit);
                keys.extend(commit.unique.iter().map(|key| (key.scope.clone(), key.key.clone())));
                commits.push(commit);
                answers.push(answer);
            }
            other => rest.push_back(other),
        }
    }
    *waiting = rest;
    (commits, answers)
}

/// The size of a batch.
#[derive(Clone, Copy, Default)]
struct Size {
    rows: usize,
    bytes: usize,
}

impl Size {
    fn plus(self, commit: &Commit) -> Size {
        let rows = commit.steps.len() + commit.values.len() + commit.work.put.len() + commit.timers.put.len();
        let steps: usize = commit.steps.iter().map(|step| step.state.len()).sum();
        let values: usize = commit.values.iter().map(|value| value.payload.len()).sum();
        let bytes = commit.state.len() + commit.log.facts.len() + steps + values;
        Size { rows: self.rows + rows, bytes: self.bytes + bytes }
    }

    fn fits(self) -> bool {
        self.rows <= MAX_ROWS && self.bytes <= MAX_BYTES
    }
}
