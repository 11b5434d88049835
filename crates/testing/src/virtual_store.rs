//! The store of suites that run on virtual time: in memory, or PostgreSQL.
//!
//! A database answers in real time. While a call to it lasts, the thread of the test waits, so that virtual time stands
//! still: for the engine it takes no time at all. Leases of nodes are measured on virtual time, and hints between nodes
//! are passed on in the process.
//!
//! An engine polls several times a second, and a test lets hours pass. So what a poll found is kept until the next write,
//! and a database is asked for what is due only when something is.

use crate::{Cluster, Schema, on_postgres};
use async_trait::async_trait;
use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use stepwell_core::time::Time;
use stepwell_core::value::ValueId;
use stepwell_store::memory::MemoryStore;
use stepwell_store::*;
use tokio::runtime::Runtime;
use tokio::sync::broadcast;
use tokio::time::Instant;

/// How long a node may be silent, unless the store says otherwise.
const LEASE: Duration = Duration::from_secs(10);
/// The database itself declares no node dead: its clock is not virtual.
const NEVER: Duration = Duration::from_secs(1_000_000);
const FOR_EVER: Time = Time(i64::MAX);

/// What the database is spoken to on.
static REAL_TIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
});

/// Something to be done in the middle of a call.
type Deed = Box<dyn FnOnce() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// Clones share all data.
#[derive(Clone)]
pub struct VirtualStore {
    disk: Disk,
    /// Set if several engines share the store: they send each other hints.
    hints: Option<broadcast::Sender<Hint>>,
    ahead: i64,
    lease: Duration,
    beats: Arc<Mutex<BTreeMap<NodeId, Instant>>>,
    /// The number of upcoming commits that are written but whose result is lost.
    lost_answers: Arc<AtomicU32>,
    before_commit: Arc<Mutex<Option<Deed>>>,
}

#[derive(Clone)]
enum Disk {
    Memory(MemoryStore),
    Postgres(Arc<Database>),
}

struct Database {
    store: Option<Arc<dyn Store>>,
    schema: Schema,
    /// What polls have found since the last write.
    found: Mutex<HashMap<String, Box<dyn Any + Send>>>,
}

impl Database {
    fn store(&self) -> &dyn Store {
        self.store.as_deref().expect("it is there until it is dropped")
    }

    /// Runs a statement behind the store's back.
    fn execute(&self, sql: &str) {
        self.schema.execute(sql);
        self.written();
    }

    fn written(&self) {
        self.found().clear();
    }

    /// The answer to a poll, which is not repeated until something is written.
    fn poll<T: Clone + Send + 'static>(
        &self,
        what: String,
        ask: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<T, Error> {
        if let Some(known) = self.found().get(&what).and_then(|known| known.downcast_ref::<T>()) {
            return Ok(known.clone());
        }
        let answer = in_real_time(ask)?;
        self.found().insert(what, Box::new(answer.clone()));
        Ok(answer)
    }

    fn found(&self) -> MutexGuard<'_, HashMap<String, Box<dyn Any + Send>>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn next_timer(&self) -> Result<Option<Time>, Error> {
        Ok(self.store().due(FOR_EVER, Share::ALL, 1).await?.first().map(|timer| timer.due))
    }

    async fn next_record(&self, kind: &str) -> Result<Option<Time>, Error> {
        Ok(self.store().due_records(kind, Due::by(FOR_EVER), 1).await?.first().and_then(|record| record.due))
    }

    async fn has_notices(&self) -> Result<bool, Error> {
        Ok(!self.store().outbox(FOR_EVER, 0, 1).await?.is_empty())
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let _real_time = REAL_TIME.enter();
        // Before the schema, which is in use until then.
        drop(self.store.take());
    }
}

/// Waits for a call where time is real.
fn in_real_time<T: Send>(call: impl Future<Output = T> + Send) -> T {
    std::thread::scope(|scope| scope.spawn(|| REAL_TIME.block_on(call)).join().unwrap())
}

impl Disk {
    fn new() -> Disk {
        if !on_postgres() {
            return Disk::Memory(MemoryStore::default());
        }
        let schema = Cluster::shared().schema();
        // Calls come one after the other.
        let options = PostgresOptions { lease: NEVER, writers: 1, readers: 1, ..PostgresOptions::new(schema.url()) };
        let location = Location::Postgres(options);
        let store = Some(in_real_time(location.open()).unwrap());
        Disk::Postgres(Arc::new(Database { store, schema, found: Mutex::default() }))
    }

    fn store(&self) -> &dyn Store {
        match self {
            Disk::Memory(store) => store,
            Disk::Postgres(database) => database.store(),
        }
    }
}

impl Default for VirtualStore {
    fn default() -> VirtualStore {
        let shared = on_postgres().then(|| broadcast::channel(1_024).0);
        VirtualStore {
            disk: Disk::new(),
            hints: shared,
            ahead: 0,
            lease: LEASE,
            beats: Arc::default(),
            lost_answers: Arc::default(),
            before_commit: Arc::default(),
        }
    }
}

impl VirtualStore {
    /// A store that several engines use at the same time, each with its own clone.
    pub fn shared() -> VirtualStore {
        VirtualStore { hints: Some(broadcast::channel(1_024).0), ..VirtualStore::default() }
    }

    /// Returns the same store for an engine whose clock is behind by this many milliseconds.
    pub fn ahead_of(&self, millis: i64) -> VirtualStore {
        VirtualStore { ahead: millis, ..self.clone() }
    }

    /// Returns the same store for an engine that exchanges no hints with the others.
    pub fn cut_off(&self) -> VirtualStore {
        VirtualStore { hints: Some(broadcast::channel(1_024).0), ..self.clone() }
    }

    /// Returns the same store with another lease for nodes.
    pub fn leased(&self, lease: Duration) -> VirtualStore {
        VirtualStore { lease, ..self.clone() }
    }

    /// Simulates opening the store in a new process: all nodes it knew are gone.
    pub fn restarted(&self) {
        self.beats().clear();
        match &self.disk {
            Disk::Memory(store) => store.restarted(),
            Disk::Postgres(database) => database.execute("DELETE FROM nodes"),
        }
    }

    /// Expires the node's lease.
    pub fn give_up(&self, node: NodeId) {
        self.beats().remove(&node);
        match &self.disk {
            Disk::Memory(store) => store.give_up(node),
            Disk::Postgres(database) => database.execute(&format!("DELETE FROM nodes WHERE id = {}", node.0)),
        }
    }

    /// Loses the results of the next commits: they are written, but the caller gets an error.
    pub fn lose_answers(&self, commits: u32) {
        self.lost_answers.store(commits, Ordering::SeqCst);
    }

    /// Does something between the moment in which the next commit was decided and that in which it is written.
    pub fn before_next_commit<F: Future<Output = ()> + Send + 'static>(
        &self,
        deed: impl FnOnce() -> F + Send + 'static,
    ) {
        *self.before_commit.lock().unwrap() = Some(Box::new(move || Box::pin(deed())));
    }

    fn beats(&self) -> MutexGuard<'_, BTreeMap<NodeId, Instant>> {
        self.beats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Methods that do what those of the disk do.
macro_rules! passed_on {
    (
        reads { $(fn $read:ident($($of:ident: $by:ty),*) -> $told:ty;)* }
        polls { $(fn $poll:ident($($at:ident: $as:ty),*) -> $found:ty;)* }
        writes { $(fn $write:ident($($with:ident: $kind:ty),*) -> $done:ty;)* }
        own { $($own:tt)* }
        for $contract:ident
    ) => {
        #[async_trait]
        impl $contract for VirtualStore {
            $(async fn $read(&self, $($of: $by),*) -> Result<$told, Error> {
                match &self.disk {
                    Disk::Memory(store) => store.$read($($of),*).await,
                    Disk::Postgres(database) => in_real_time(database.store().$read($($of),*)),
                }
            })*
            $(async fn $poll(&self, $($at: $as),*) -> Result<$found, Error> {
                match &self.disk {
                    Disk::Memory(store) => store.$poll($($at),*).await,
                    Disk::Postgres(database) => {
                        let what = format!("{} {:?}", stringify!($poll), ($(&$at,)*));
                        database.poll(what, database.store().$poll($($at),*))
                    }
                }
            })*
            $(async fn $write(&self, $($with: $kind),*) -> Result<$done, Error> {
                match &self.disk {
                    Disk::Memory(store) => store.$write($($with),*).await,
                    Disk::Postgres(database) => {
                        let done = in_real_time(database.store().$write($($with),*));
                        database.written();
                        done
                    }
                }
            })*
            $($own)*
        }
    };
}

passed_on! {
    reads {
        fn load(run: RunId) -> Option<LoadedRun>;
        fn head(run: RunId) -> Option<LoadedRun>;
        fn outline(run: RunId) -> Option<LoadedRun>;
        fn load_small(runs: Vec<RunId>, bytes: u64) -> Vec<LoadedRun>;
        fn sizes(run: RunId) -> Vec<(ValueId, u64)>;
        fn find_run(public: &str) -> Option<RunId>;
        fn run_secret(public: &str) -> Option<(RunId, [u8; 16])>;
        fn run(run: RunId) -> Option<RunRow>;
        fn tail(run: RunId, after: Version, limit: u32) -> Vec<StoredLog>;
        fn values(run: RunId, ids: &[ValueId]) -> Vec<ValueRow>;
        fn attempts(run: RunId) -> Vec<StepRow>;
        fn mail(run: RunId) -> Vec<StoredMail>;
        fn notices(run: RunId, prefix: &str, limit: u32) -> Vec<StoredNotice>;
        fn keyed(scope: &str, key: &str, now: Time) -> Option<RunId>;
        fn first_queued(group: &str) -> Option<RunId>;
        fn holder(group: &str) -> Option<RunId>;
        fn progress() -> Progress;
        fn feed(after: &Progress, limit: u32) -> Vec<Fed>;
        fn feed_of(org: OrgId, after: &Progress, limit: u32) -> Vec<Fed>;
        fn definition(id: i64) -> Option<DefinitionRow>;
        fn find_definition(org: OrgId, name: &str) -> Option<DefinitionRow>;
        fn definitions(org: OrgId) -> Vec<DefinitionRow>;
        fn versions(org: OrgId, workflow: &str) -> Vec<DefinitionRow>;
        fn deleted(org: OrgId, named: Option<&str>) -> Vec<(DefinitionRow, Time)>;
        fn first_defined(org: OrgId, workflow: &str) -> Option<Time>;
        fn runs(filter: RunFilter) -> Vec<RunRow>;
        fn ended(runs: &[RunId]) -> Vec<RunId>;
        fn gates(org: OrgId, after: Option<(RunId, String)>, limit: u32) -> Vec<OpenGate>;
        fn epoch(org: OrgId) -> Option<i64>;
        fn tallies() -> Vec<WriterTally>;
        fn evidence(points: Vec<TrailPoint>) -> Evidence;
        fn stats(count: bool) -> Stats;
        fn integrity() -> Vec<String>;
    }
    polls {
        fn mailed(after: Option<RunId>, limit: u32) -> Vec<RunId>;
        fn queued(after: Option<&str>, limit: u32) -> Vec<(String, RunId)>;
        fn purgeable(before: Time) -> u64;
        fn backlog(now: Time) -> Backlog;
        fn shrink() -> bool;
        fn keep_evidence() -> ();
    }
    writes {
        fn forget(stale: Stale) -> ();
        fn define(definition: NewDefinition, with: Change) -> Result<DefinitionRow, Refused>;
        fn undefine(org: OrgId, workflow: &str, at: Time, with: Change) -> bool;
        fn redefine(org: OrgId, workflow: &str, with: Change) -> Result<(), Refused>;
        fn label(run: RunId, labels: Vec<String>, audit: Vec<NewAudit>) -> bool;
        fn grants_changed(org: OrgId) -> ();
        fn erase(run: RunId, at: Time, audit: Vec<NewAudit>) -> bool;
        fn expire(run: RunId, at: Time) -> bool;
        fn unlock(key: ChainKey) -> ();
        fn rekey(key: ChainKey, with: Change) -> Result<(), Refused>;
    }

    own {
        async fn commit(&self, batch: Vec<Commit>) -> Result<Vec<Result<Position, Refused>>, Error> {
            let deed = self.before_commit.lock().unwrap().take();
            if let Some(deed) = deed {
                deed().await;
            }
            let answers = match &self.disk {
                Disk::Memory(store) => store.commit(batch).await,
                Disk::Postgres(database) => {
                    let answers = in_real_time(database.store().commit(batch));
                    database.written();
                    answers
                }
            };
            match self.lost_answers.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)) {
                Ok(_) => Err(Error::Unavailable("the result was lost".into())),
                Err(_) => answers,
            }
        }

        async fn due(&self, until: Time, share: Share, limit: u32) -> Result<Vec<DueTimer>, Error> {
            match &self.disk {
                Disk::Memory(store) => store.due(until, share, limit).await,
                Disk::Postgres(database) => match database.poll("timers".into(), database.next_timer())? {
                    Some(next) if next <= until => in_real_time(database.store().due(until, share, limit)),
                    _ => Ok(Vec::new()),
                },
            }
        }

        async fn outbox(&self, until: Time, after: i64, limit: u32) -> Result<Vec<StoredNotice>, Error> {
            match &self.disk {
                Disk::Memory(store) => store.outbox(until, after, limit).await,
                Disk::Postgres(database) => match database.poll("notices".into(), database.has_notices())? {
                    true => in_real_time(database.store().outbox(until, after, limit)),
                    false => Ok(Vec::new()),
                },
            }
        }

        async fn purge(&self, before: Time, limit: u32) -> Result<u64, Error> {
            match &self.disk {
                Disk::Memory(store) => store.purge(before, limit).await,
                Disk::Postgres(database) => {
                    let purged = in_real_time(database.store().purge(before, limit))?;
                    if purged > 0 {
                        database.written();
                    }
                    Ok(purged)
                }
            }
        }

        fn chain_key(&self) -> ChainKey {
            self.disk.store().chain_key()
        }
    }
    for Store
}

passed_on! {
    reads {
        fn record_with_key(kind: &str, key: &str) -> Option<Record>;
        fn audit(filter: AuditFilter) -> Vec<AuditRow>;
        fn organisations() -> Vec<(OrgId, String)>;
        fn counted(counter: &str) -> i64;
        fn open_runs(org: OrgId) -> u64;
    }
    polls {
        fn record(kind: &str, id: &str) -> Option<Record>;
        fn records(filter: RecordFilter) -> Vec<Record>;
    }
    writes {
        fn change(change: Change) -> Result<(), Refused>;
        fn found(name: &str, at: Time) -> Option<OrgId>;
    }
    own {
        async fn due_records(&self, kind: &str, due: Due, limit: u32) -> Result<Vec<Record>, Error> {
            match &self.disk {
                Disk::Memory(store) => store.due_records(kind, due, limit).await,
                Disk::Postgres(database) => {
                    match database.poll(format!("due {kind}"), database.next_record(kind))? {
                        Some(next) if next <= due.until => {
                            in_real_time(database.store().due_records(kind, due, limit))
                        }
                        _ => Ok(Vec::new()),
                    }
                }
            }
        }
    }
    for Registry
}

passed_on! {
    reads {}
    polls {
        fn nodes() -> Vec<NodeRow>;
        fn held(node: NodeId) -> Vec<Claimed>;
        fn orphans(after: Option<(RunId, WorkKey)>, limit: u32) -> Vec<Claimed>;
    }
    writes {
        fn leave(node: NodeId) -> ();
    }
    own {
        async fn join(&self, node: NewNode) -> Result<(), Error> {
            self.beats().insert(node.id, Instant::now());
            match &self.disk {
                Disk::Memory(store) => store.join(node).await,
                Disk::Postgres(database) => {
                    let joined = in_real_time(database.store().join(node));
                    database.written();
                    joined
                }
            }
        }

        async fn beat(&self, node: NodeId) -> Result<bool, Error> {
            let alive = match &self.disk {
                Disk::Memory(store) => store.beat(node).await?,
                Disk::Postgres(_) => self.nodes().await?.iter().any(|row| row.node.id == node),
            };
            if alive {
                self.beats().insert(node, Instant::now());
            }
            Ok(alive)
        }

        async fn claim(&self, claim: Claim) -> Result<Vec<Claimed>, Error> {
            match &self.disk {
                Disk::Memory(store) => store.claim(claim).await,
                Disk::Postgres(database) => {
                    let claimed = database.poll(format!("claim {claim:?}"), database.store().claim(claim))?;
                    if !claimed.is_empty() {
                        database.written();
                    }
                    Ok(claimed)
                }
            }
        }

        async fn give_up_silent(&self) -> Result<(), Error> {
            let silent = |(node, beat): (&NodeId, &Instant)| (beat.elapsed() >= self.lease).then_some(*node);
            let silent: Vec<NodeId> = self.beats().iter().filter_map(silent).collect();
            for node in silent {
                self.beats().remove(&node);
                self.give_up(node);
            }
            Ok(())
        }

        fn is_shared(&self) -> bool {
            self.hints.is_some()
        }

        fn hear(&self) -> Option<broadcast::Receiver<Hint>> {
            self.hints.as_ref().map(broadcast::Sender::subscribe)
        }

        fn tell(&self, hint: Hint) {
            if let Some(hints) = &self.hints {
                // There may be no subscriber.
                let _ = hints.send(hint);
            }
        }

        fn ahead(&self) -> i64 {
            self.ahead
        }
    }
    for Nodes
}
