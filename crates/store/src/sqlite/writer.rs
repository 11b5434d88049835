//! The one connection that writes, on a thread of its own. It takes whatever has queued up, applies it in one
//! transaction and answers only when that is on disk: many commits share one sync.

use super::apply::{apply, error};
use crate::{Commit, Error, Position, Refused};
use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};

/// Commands taken into one transaction at the most.
const MAX_GROUP: usize = 256;
/// Commands that may wait. More make their senders wait, not the memory grow.
const QUEUE: usize = 4_096;

type Job = Box<dyn FnOnce(&Connection) -> Finish + Send>;
/// Told how the transaction ended.
type Finish = Box<dyn FnOnce(Result<(), &rusqlite::Error>) + Send>;

pub struct Writer {
    jobs: mpsc::Sender<Job>,
}

impl Writer {
    pub fn start(connection: Connection) -> std::io::Result<Writer> {
        let (jobs, queue) = mpsc::channel(QUEUE);
        std::thread::Builder::new().name("stepwell-writer".into()).spawn(move || run(connection, queue))?;
        Ok(Writer { jobs })
    }

    pub async fn commit(&self, batch: Vec<Commit>) -> Result<Vec<Result<Position, Refused>>, Error> {
        self.write(move |db| batch.iter().map(|commit| apply_alone(db, commit)).collect()).await
    }

    /// Runs `job` inside the next transaction and answers once that is on disk.
    pub async fn write<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |db| {
            let result = guarded(db, job);
            Box::new(move |ended: Result<(), &rusqlite::Error>| {
                let result = match ended {
                    Ok(()) => result.map_err(error),
                    Err(failed) => Err(failure(failed)),
                };
                // Nobody may be waiting any more; the write stands all the same.
                let _ = answer.send(result);
            })
        });
        let gone = || Error::Unavailable("the writer has stopped".into());
        self.jobs.send(job).await.map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }
}

fn run(mut connection: Connection, mut queue: mpsc::Receiver<Job>) {
    let mut group = Vec::with_capacity(MAX_GROUP);
    while queue.blocking_recv_many(&mut group, MAX_GROUP) > 0 {
        let mut finish: Vec<Finish> = Vec::with_capacity(group.len());
        let ended = transact(&mut connection, &mut group, &mut finish);
        // Jobs that never ran drop their senders here: their callers hear that the writer is gone for them.
        group.clear();
        for finish in finish {
            finish(ended.as_ref().map(|_| ()));
        }
    }
}

fn transact(connection: &mut Connection, group: &mut Vec<Job>, finish: &mut Vec<Finish>) -> rusqlite::Result<()> {
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for job in group.drain(..) {
        finish.push(job(&tx));
    }
    tx.commit()
}

/// A job that fails leaves nothing behind and does not take the others with it.
fn guarded<T>(db: &Connection, job: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    db.prepare_cached("SAVEPOINT job")?.execute([])?;
    let result = job(db);
    if result.is_err() {
        db.prepare_cached("ROLLBACK TO job")?.execute([])?;
    }
    db.prepare_cached("RELEASE job")?.execute([])?;
    result
}

/// A refused commit of a batch is taken back without touching the others.
fn apply_alone(db: &Connection, commit: &Commit) -> rusqlite::Result<Result<Position, Refused>> {
    // The compare-and-swap is the first write, so a conflict has nothing to take back.
    if commit.unique.is_empty() && commit.counters.is_empty() {
        return apply(db, commit);
    }
    db.prepare_cached("SAVEPOINT commit_alone")?.execute([])?;
    let result = apply(db, commit);
    if !matches!(result, Ok(Ok(_))) {
        db.prepare_cached("ROLLBACK TO commit_alone")?.execute([])?;
    }
    db.prepare_cached("RELEASE commit_alone")?.execute([])?;
    result
}

/// The transaction failed as a whole; the error is shared by all who were in it.
fn failure(failed: &rusqlite::Error) -> Error {
    match failed.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DiskFull) => Error::Full(failed.to_string()),
        _ => Error::Unavailable(failed.to_string()),
    }
}
