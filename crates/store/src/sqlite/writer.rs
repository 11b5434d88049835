//! The only writer connection, on its own thread. It takes all queued jobs, applies them in one transaction and answers
//! only when that is on disk: many commits share one sync (group commit).
//!
//! A group is limited by bytes and by time too, organisations take turns in it, and small jobs pass large ones that do not
//! fit: a commit of a few rows never waits for many megabytes of other runs, nor for all that another organisation has
//! queued.
//!
//! A failing job must not affect the others. Failures are rare, so jobs share the transaction without savepoints; when
//! one fails, the transaction is rolled back and each job runs again in its own transaction.

use super::apply::{apply, count, error};
use super::evidence::{Ledger, Tx};
use crate::evidence::{RunEntry, locked};
use crate::round_robin::in_turns;
use crate::{Commit, Error, NewRun, OrgId, Position, Refused, panic_message};
use rusqlite::{Connection, TransactionBehavior};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;
use std::panic::AssertUnwindSafe;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};

/// The maximum number of jobs per transaction.
const MAX_GROUP: usize = 256;
/// The maximum number of payload bytes per transaction, beside those of its oldest job.
const MAX_GROUP_BYTES: usize = 4 * 1024 * 1024;
/// How long jobs are added to a transaction. The rest of the group is written by the next ones.
const MAX_GROUP_TIME: Duration = Duration::from_millis(10);
/// The same once an organisation waits that has no job in the transaction: it does not wait for all of another's.
const SHARED_GROUP_TIME: Duration = Duration::from_millis(2);
/// The capacity of the queue. When it is full, senders wait, so memory does not grow.
const QUEUE: usize = 4_096;
/// The jobs that are taken from the queue at a time, for organisations to take turns.
const MAX_WAITING: usize = 4_096;

/// The number of transactions between two checks of the journal's size.
const JOURNAL_CHECK_INTERVAL: u32 = 64;
/// The size in bytes at which the journal is restarted.
const MAX_JOURNAL: u64 = 96 * 1024 * 1024;

/// Something to write. It may run twice; only the last run counts.
trait Job: Send {
    /// About how many bytes it writes.
    fn bytes(&self) -> usize;
    /// The organisation it writes for, if that is known.
    fn org(&self) -> Option<OrgId>;
    fn run(&mut self, tx: &Tx<'_>, positions: &mut Positions) -> rusqlite::Result<()>;
    /// Reports the outcome of the transaction to the caller.
    fn finish(self: Box<Self>, ended: Result<(), Error>);
}

/// Numbers log rows in commit order. Numbers of rolled-back rows are not reused.
/// Counters are updated once per transaction, however many commits add to them.
struct Positions {
    last: i64,
    counted: BTreeMap<String, i64>,
    /// Set if overwritten data must not stay in the journal.
    truncate_journal: bool,
    ledger: Ledger,
}

impl Positions {
    fn next(&mut self) -> i64 {
        self.last += 1;
        self.last
    }

    fn count(&mut self, commit: &Commit) {
        for (counter, delta) in &commit.counted {
            *self.counted.entry(counter.clone()).or_default() += delta;
        }
    }
}

pub struct Writer {
    /// `None` only while the writer is dropped.
    jobs: Option<mpsc::Sender<Box<dyn Job>>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Writer {
    /// Waits for the last write: then the file is closed, and the next process to open it finds it complete and
    /// unlocked.
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // If the writer panicked there is nothing left to wait for.
            let _ = thread.join();
        }
    }
}

impl Writer {
    /// `position` is the highest assigned so far. The lock is released only after the last write.
    pub fn start(connection: Connection, position: i64, ledger: Ledger, lock: File) -> std::io::Result<Writer> {
        let (jobs, queue) = mpsc::channel(QUEUE);
        let writer = move || {
            let counted = BTreeMap::new();
            run(connection, queue, Positions { last: position, counted, truncate_journal: false, ledger });
            drop(lock);
        };
        let thread = std::thread::Builder::new().name("stepwell-writer".into()).spawn(writer)?;
        Ok(Writer { jobs: Some(jobs), thread: Some(thread) })
    }

    pub async fn commit(&self, batch: Vec<Commit>) -> Result<Vec<Result<Position, Refused>>, Error> {
        let about = About { bytes: batch.iter().map(weight).sum(), org: batch.first().map(|commit| commit.auth.org) };
        self.submit(about, move |tx, positions| {
            batch.iter().map(|commit| apply_in_savepoint(tx, commit, positions)).collect::<rusqlite::Result<_>>()
        })
        .await
    }

    /// Runs `job` in the next transaction and returns once that is on disk.
    pub async fn write<T: Send + 'static>(
        &self,
        job: impl Fn(&Tx<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        self.submit(About::default(), move |tx, _| job(tx)).await
    }

    /// Like [`Writer::write`], but leaves none of the overwritten data in the file or its journal.
    pub async fn write_secure<T: Send + 'static>(
        &self,
        job: impl Fn(&Tx<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        self.submit(About::default(), move |db, positions| {
            positions.truncate_journal = true;
            db.pragma_update_and_check(None, "secure_delete", true, |_| Ok(()))?;
            let done = job(db);
            db.pragma_update_and_check(None, "secure_delete", false, |_| Ok(()))?;
            done
        })
        .await
    }

    async fn submit<T: Send + 'static>(
        &self,
        about: About,
        work: impl Fn(&Tx<'_>, &mut Positions) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        let (answer, answered) = oneshot::channel();
        let gone = || Error::Unavailable("the writer has stopped".into());
        let job = Box::new(Task { about, work, result: None, answer });
        self.jobs.as_ref().ok_or_else(gone)?.send(job).await.map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }
}

/// What the writer needs to know of a job.
#[derive(Clone, Copy, Default)]
struct About {
    bytes: usize,
    org: Option<OrgId>,
}

struct Task<W, T> {
    about: About,
    work: W,
    result: Option<T>,
    answer: oneshot::Sender<Result<T, Error>>,
}

impl<T: Send, W: Fn(&Tx<'_>, &mut Positions) -> rusqlite::Result<T> + Send> Job for Task<W, T> {
    fn bytes(&self) -> usize {
        self.about.bytes
    }

    fn org(&self) -> Option<OrgId> {
        self.about.org
    }

    fn run(&mut self, tx: &Tx<'_>, positions: &mut Positions) -> rusqlite::Result<()> {
        self.result = Some((self.work)(tx, positions)?);
        Ok(())
    }

    fn finish(self: Box<Self>, ended: Result<(), Error>) {
        let Task { result, answer, .. } = *self;
        let none = || Error::Unavailable("the write was not attempted".into());
        // The caller may be gone; the write is committed all the same.
        let _ = answer.send(ended.and_then(|()| result.ok_or_else(none)));
    }
}

fn run(mut connection: Connection, mut queue: mpsc::Receiver<Box<dyn Job>>, mut positions: Positions) {
    let (mut group, mut waiting) = (VecDeque::with_capacity(MAX_GROUP), VecDeque::with_capacity(MAX_GROUP));
    let mut groups = 0u32;
    while receive(&mut queue, &mut waiting) {
        take_group(&mut waiting, &mut group);
        let members: BTreeSet<Option<OrgId>> = group.iter().map(|job| job.org()).collect();
        let mut others_wait = || {
            drain(&mut queue, &mut waiting);
            waiting.iter().any(|job| !members.contains(&job.org()))
        };
        // The unwinding rolls the transaction back. To the callers of the group the outcome is unknown.
        let write = AssertUnwindSafe(|| write_group(&mut connection, &mut group, &mut positions, &mut others_wait));
        if let Err(panic) = std::panic::catch_unwind(write) {
            tracing::error!(why = panic_message(&*panic), "a write panicked");
            group.clear();
            positions.ledger.close();
        }
        // What the transaction had no time for is next.
        group.drain(..).rev().for_each(|job| waiting.push_front(job));
        if std::mem::take(&mut positions.truncate_journal) {
            // Waits for current readers. If they block the truncation, the next journal check restarts the journal.
            let _ = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        }
        groups = groups.wrapping_add(1);
        if groups.is_multiple_of(JOURNAL_CHECK_INTERVAL) {
            limit_journal(&connection);
        }
    }
}

/// The payload bytes of a commit. Its other columns are small, or grow with the payloads.
fn weight(commit: &Commit) -> usize {
    let values: usize = commit.values.iter().map(|value| value.payload.len()).sum();
    let mail: usize = commit.mail.iter().map(|mail| mail.body.len()).sum();
    values + mail + commit.state.len() + commit.log.facts.len() + commit.log.payloads.len()
}

/// Waits until there is a job, and takes what else is queued. False once the queue is closed and all is written.
fn receive(queue: &mut mpsc::Receiver<Box<dyn Job>>, waiting: &mut VecDeque<Box<dyn Job>>) -> bool {
    if waiting.is_empty() {
        match queue.blocking_recv() {
            Some(job) => waiting.push_back(job),
            None => return false,
        }
    }
    drain(queue, waiting);
    true
}

/// Takes what is queued.
fn drain(queue: &mut mpsc::Receiver<Box<dyn Job>>, waiting: &mut VecDeque<Box<dyn Job>>) {
    while waiting.len() < MAX_WAITING
        && let Ok(job) = queue.try_recv()
    {
        waiting.push_back(job);
    }
}

/// Moves the next group: the oldest job, so that each gets its turn, and the small ones that fit beside it, of each
/// organisation one after the other. Their order does not matter: what depends on a write is sent when that write has
/// been answered.
fn take_group(waiting: &mut VecDeque<Box<dyn Job>>, group: &mut VecDeque<Box<dyn Job>>) {
    // The oldest does not count: it may be too large for a group, and the small ones must not wait for it as well.
    let mut bytes = 0;
    for job in in_turns(std::mem::take(waiting).into_iter(), |job| job.org()) {
        if group.is_empty() {
            group.push_back(job);
        } else if group.len() < MAX_GROUP && bytes + job.bytes() <= MAX_GROUP_BYTES {
            bytes += job.bytes();
            group.push_back(job);
        } else {
            waiting.push_back(job);
        }
    }
}

/// Writes a group in one transaction, or each job in its own if one of them fails. Leaves the jobs for which there was
/// no time.
fn write_group(
    connection: &mut Connection,
    group: &mut VecDeque<Box<dyn Job>>,
    positions: &mut Positions,
    others_wait: &mut dyn FnMut() -> bool,
) {
    let begun = Instant::now();
    let written = transact(connection, group.make_contiguous(), positions, others_wait);
    metrics::histogram!("stepwell_commit_batch_size").record(*written.as_ref().unwrap_or(&group.len()) as f64);
    metrics::histogram!("stepwell_commit_seconds").record(begun.elapsed().as_secs_f64());
    match written {
        Ok(written) => group.drain(..written).for_each(|job| job.finish(Ok(()))),
        Err(Failed::Commit(failed)) => group.drain(..).for_each(|job| job.finish(Err(error(&failed)))),
        Err(Failed::Locked(key)) => group.drain(..).for_each(|job| job.finish(Err(locked(key)))),
        Err(Failed::Job(_)) => {
            for mut job in group.drain(..) {
                let alone = transact(connection, std::slice::from_mut(&mut job), positions, &mut || false);
                job.finish(alone.map(drop).map_err(|failed| match failed {
                    Failed::Job(failed) | Failed::Commit(failed) => error(&failed),
                    Failed::Locked(key) => locked(key),
                }));
            }
        }
    }
}

/// Restarts the write-ahead log if it is too large. Continuously overlapping readers prevent SQLite from doing that on
/// its own; the checkpoint waits until the current readers are done.
fn limit_journal(connection: &Connection) {
    let journal = connection.path().map(|path| format!("{path}-wal"));
    let bytes = journal.and_then(|path| std::fs::metadata(path).ok()).map_or(0, |file| file.len());
    if bytes > MAX_JOURNAL {
        // If a read takes too long, the next check tries again.
        let _ = connection.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(()));
    }
}

enum Failed {
    /// A statement of a job failed.
    Job(rusqlite::Error),
    /// The transaction could not begin or commit.
    Commit(rusqlite::Error),
    /// The tallies were written under the key of this id, which is not the store's.
    Locked([u8; 4]),
}

/// Writes as many of the jobs, from the first on, as there is time for. Returns how many.
fn transact(
    connection: &mut Connection,
    group: &mut [Box<dyn Job>],
    positions: &mut Positions,
    others_wait: &mut dyn FnMut() -> bool,
) -> Result<usize, Failed> {
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(Failed::Commit)?;
    positions.counted.clear();
    let tallied = Tx::begin(&tx, &mut positions.ledger).map_err(Failed::Commit)?.map_err(Failed::Locked)?;
    let (begun, mut written) = (Instant::now(), 0);
    for job in group {
        job.run(&tallied, positions).map_err(Failed::Job)?;
        written += 1;
        let taken = begun.elapsed();
        if taken >= MAX_GROUP_TIME || (taken >= SHARED_GROUP_TIME && others_wait()) {
            break;
        }
    }
    for (counter, delta) in &positions.counted {
        count(&tx, counter, *delta).map_err(Failed::Job)?;
    }
    let tally = tallied.finish().map_err(Failed::Job)?;
    // If it is unknown what is on disk, the tally is read again.
    positions.ledger.close();
    tx.commit().map_err(Failed::Commit)?;
    positions.ledger.open(tally);
    Ok(written)
}

/// Applies a commit so that it can be refused without affecting the rest of the batch.
fn apply_in_savepoint(
    db: &Tx<'_>,
    commit: &Commit,
    positions: &mut Positions,
) -> rusqlite::Result<Result<Position, Refused>> {
    // The compare-and-swap is the first write, so a conflict leaves nothing to roll back.
    let in_tree = commit.create.as_ref().and_then(NewRun::counted).is_some();
    if commit.unique.is_empty() && commit.groups.is_empty() && !in_tree {
        let result = apply(db, commit, positions.next())?;
        return Ok(result.inspect(|_| counted(db, commit, positions)));
    }
    db.prepare_cached("SAVEPOINT single_commit")?.execute([])?;
    // An error ends the whole transaction including the savepoint; on a full disk SQLite has already done so.
    let result = apply(db, commit, positions.next())?;
    if result.is_err() {
        db.prepare_cached("ROLLBACK TO single_commit")?.execute([])?;
    }
    db.prepare_cached("RELEASE single_commit")?.execute([])?;
    Ok(result.inspect(|_| counted(db, commit, positions)))
}

/// Counts a commit that was applied.
fn counted(tx: &Tx<'_>, commit: &Commit, positions: &mut Positions) {
    positions.count(commit);
    tx.tally(RunEntry::of(commit));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::*;
    use stepwell_core::time::Time;
    use stepwell_core::value::ValueId;

    /// Creates a run with a unique key, so that a savepoint is used.
    fn create(payload: String) -> Commit {
        let new = NewRun {
            public: "run_1".into(),
            org: OrgId(1),
            created: Time(1),
            by: "ann".into(),
            acts_as: "ann".into(),
            labels: Vec::new(),
            test: false,
            secret: [0; 16],
            parent: None,
            group: None,
            most_open: None,
            most_descendants: None,
        };
        let (status, at) = ("running".into(), Time(1));
        Commit {
            run: RunId(1),
            expect: Version(0),
            create: Some(new),
            auth: Auth { org: OrgId(1), epoch: 1 },
            head: Some(Head { status, definition: 1, started: None, finished: None, purge: None }),
            state: "{}".into(),
            log: LogRow { at, facts: "[]".into(), payloads: String::new(), hash: [0; 32] },
            previous: [0; 32],
            steps: Vec::new(),
            values: vec![ValueRow { id: ValueId(0), payload }],
            work: Diff::default(),
            timers: Diff::default(),
            mail: Vec::new(),
            read: Vec::new(),
            outbox: Vec::new(),
            sent: Vec::new(),
            unique: vec![UniqueKey { scope: "a".into(), key: "b".into(), digest: "c".into(), expires: None }],
            groups: Vec::new(),
            gates: Diff::default(),
            counted: Vec::new(),
            audit: Vec::new(),
        }
    }

    /// A job of this many bytes, and of an organisation, that writes nothing.
    struct Sized(usize, i64);

    impl Job for Sized {
        fn bytes(&self) -> usize {
            self.0
        }

        fn org(&self) -> Option<OrgId> {
            Some(OrgId(self.1))
        }

        fn run(&mut self, _: &Tx<'_>, _: &mut Positions) -> rusqlite::Result<()> {
            Ok(())
        }

        fn finish(self: Box<Self>, _: Result<(), Error>) {}
    }

    #[test]
    fn small_jobs_pass_large_ones_and_the_oldest_is_always_next() {
        const LARGE: usize = MAX_GROUP_BYTES + 1;
        let mut waiting: VecDeque<Box<dyn Job>> = VecDeque::new();
        for bytes in [LARGE, LARGE + 1, 10, 20, LARGE + 2] {
            waiting.push_back(Box::new(Sized(bytes, 1)));
        }
        let mut groups = Vec::new();
        while !waiting.is_empty() {
            let mut group = VecDeque::new();
            take_group(&mut waiting, &mut group);
            if groups.is_empty() {
                waiting.push_back(Box::new(Sized(30, 1)));
            }
            groups.push(group.iter().map(|job| job.bytes()).collect::<Vec<_>>());
        }
        assert_eq!(groups, [vec![LARGE, 10, 20], vec![LARGE + 1, 30], vec![LARGE + 2]]);
    }

    #[test]
    fn organisations_take_turns_and_none_is_left_out() {
        let mut waiting: VecDeque<Box<dyn Job>> = VecDeque::new();
        (0..1_000).for_each(|n| waiting.push_back(Box::new(Sized(n, 1))));
        (2_000..2_003).for_each(|n| waiting.push_back(Box::new(Sized(n, 2))));
        let mut group = VecDeque::new();
        take_group(&mut waiting, &mut group);
        let first: Vec<usize> = group.iter().take(8).map(|job| job.bytes()).collect();
        assert_eq!((first, group.len()), (vec![0, 2_000, 1, 2_001, 2, 2_002, 3, 4], MAX_GROUP));
        group.clear();
        take_group(&mut waiting, &mut group);
        assert_eq!((group[0].bytes(), group.len()), (MAX_GROUP - 3, MAX_GROUP));
    }

    /// A job that takes this long.
    struct Slow(Duration);

    impl Job for Slow {
        fn bytes(&self) -> usize {
            0
        }

        fn org(&self) -> Option<OrgId> {
            None
        }

        fn run(&mut self, _: &Tx<'_>, _: &mut Positions) -> rusqlite::Result<()> {
            let begun = Instant::now();
            while begun.elapsed() < self.0 {}
            Ok(())
        }

        fn finish(self: Box<Self>, ended: Result<(), Error>) {
            ended.expect("it is written");
        }
    }

    /// How many of three jobs that take this long are left after each transaction.
    fn check(each: Duration, others_wait: bool, expected: &[usize]) {
        let mut db = Connection::open_in_memory().expect("memory");
        super::super::schema::migrate(&mut db).expect("schema");
        let counted = BTreeMap::new();
        let mut positions = Positions { last: 0, counted, truncate_journal: false, ledger: Ledger::default() };
        let mut group: VecDeque<Box<dyn Job>> = VecDeque::new();
        (0..3).for_each(|_| group.push_back(Box::new(Slow(each))));
        for left in expected {
            write_group(&mut db, &mut group, &mut positions, &mut || others_wait);
            assert_eq!(group.len(), *left);
        }
    }

    #[test]
    fn a_transaction_ends_when_its_time_is_over_and_leaves_the_rest_to_the_next() {
        check(MAX_GROUP_TIME, false, &[2, 1, 0]);
    }

    #[test]
    fn a_transaction_ends_soon_if_another_organisation_waits() {
        check(SHARED_GROUP_TIME, true, &[2, 1, 0]);
    }

    #[test]
    fn a_payload_counts_where_a_group_is_limited() {
        assert!(weight(&create("0".repeat(100_000))) >= 100_000);
    }

    #[test]
    fn a_full_disk_is_distinguished_from_other_failures() {
        let mut db = Connection::open_in_memory().expect("memory");
        super::super::schema::migrate(&mut db).expect("schema");
        let pages: i64 = db.pragma_query_value(None, "page_count", |row| row.get(0)).expect("pages");
        db.pragma_update_and_check(None, "max_page_count", pages + 2, |_| Ok(())).expect("a limit");
        let tx = db.transaction().expect("a transaction");
        let counted = BTreeMap::new();
        let mut positions = Positions { last: 0, counted, truncate_journal: false, ledger: Ledger::default() };
        let tx = Tx::begin(&tx, &mut positions.ledger).expect("tallies").expect("no other key");
        let failed = apply_in_savepoint(&tx, &create("0".repeat(100_000)), &mut positions).expect_err("no room");
        assert!(matches!(error(&failed), Error::Full(_)), "{failed}");
    }
}
