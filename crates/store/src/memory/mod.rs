//! An in-memory store for simulations and tests. It models a disk that survives a simulated crash: a clone still has
//! everything that was committed, even after the process that wrote it is gone.
//!
//! No method waits, and the same calls in the same order return the same results: there are no threads, randomness or
//! unordered maps, and the only clock is that of the runtime, for leases of nodes. Not here: anything on a real disk, and
//! rolling back the earlier commits of a batch when a later one returns `Err` (the contract calls that outcome unknown;
//! only a planner bug leads there).

mod apply;
mod nodes;
mod registry;
mod retention;
mod state;
mod tables;

use crate::*;
use state::State;
use std::ops::Bound;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use stepwell_core::time::Time;
use stepwell_core::value::ValueId;
use tokio::sync::broadcast;

/// How long a node may be silent, unless the store says otherwise.
const LEASE: Duration = Duration::from_secs(10);

/// Clones share all data.
#[derive(Clone)]
pub struct MemoryStore {
    state: Arc<Mutex<State>>,
    /// Set if several engines share the store: they send each other hints.
    hints: Option<broadcast::Sender<Hint>>,
    ahead: i64,
    lease: Duration,
    /// The number of upcoming commits that are written but whose result is lost.
    lost_answers: Arc<AtomicU32>,
}

impl Default for MemoryStore {
    fn default() -> MemoryStore {
        MemoryStore {
            state: Arc::new(Mutex::new(State::new())),
            hints: None,
            ahead: 0,
            lease: LEASE,
            lost_answers: Arc::default(),
        }
    }
}

impl MemoryStore {
    /// Simulates opening the store in a new process: all nodes it knew are gone.
    pub fn restarted(&self) {
        self.lock().nodes.clear();
    }

    /// A store that several engines use at the same time, each with its own clone.
    pub fn shared() -> MemoryStore {
        MemoryStore { hints: Some(broadcast::channel(1_024).0), ..MemoryStore::default() }
    }

    /// Returns the same store for an engine whose clock is behind by this many milliseconds.
    pub fn ahead_of(&self, millis: i64) -> MemoryStore {
        MemoryStore { ahead: millis, ..self.clone() }
    }

    /// Returns the same store for an engine that exchanges no hints with the others.
    pub fn cut_off(&self) -> MemoryStore {
        MemoryStore { hints: Some(broadcast::channel(1_024).0), ..self.clone() }
    }

    /// Returns the same store with another lease for nodes.
    pub fn leased(&self, lease: Duration) -> MemoryStore {
        MemoryStore { lease, ..self.clone() }
    }

    /// Expires the node's lease.
    pub fn give_up(&self, node: NodeId) {
        self.lock().nodes.remove(&node);
    }

    /// Loses the results of the next commits: they are written, but the caller gets an error.
    pub fn lose_answers(&self, commits: u32) {
        self.lost_answers.store(commits, Ordering::SeqCst);
    }

    fn fed(&self, after: &Progress, limit: u32, wanted: impl Fn(&Fed) -> bool) -> Vec<Fed> {
        let state = self.lock();
        let fed = |(run, version): &(RunId, Version)| {
            let found = state.runs.get(run)?;
            let public = found.row.public.clone();
            Some(Fed { run: *run, public, org: found.row.org, log: found.log.get(version)?.clone() })
        };
        let rows = state.feed.range(after_key(Position::new(0, after.of(0)))).map(|(_, row)| row);
        rows.filter_map(fed).filter(wanted).take(limit as usize).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("the state is not poisoned: a panic may have left half a commit in it")
    }
}

/// The range of all greater keys.
fn after_key<K>(key: K) -> (Bound<K>, Bound<K>) {
    (Bound::Excluded(key), Bound::Unbounded)
}

#[async_trait]
impl Store for MemoryStore {
    async fn commit(&self, batch: Vec<Commit>) -> Result<Vec<Result<Position, Refused>>, Error> {
        let mut state = self.lock();
        let answers = batch.into_iter().map(|commit| apply::apply(&mut state, commit)).collect();
        match self.lost_answers.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)) {
            Ok(_) => Err(Error::Unavailable("the result was lost".into())),
            Err(_) => answers,
        }
    }

    async fn load(&self, run: RunId) -> Result<Option<LoadedRun>, Error> {
        Ok(self.lock().runs.get(&run).map(|run| run.load()))
    }

    async fn find_run(&self, public: &str) -> Result<Option<RunId>, Error> {
        Ok(self.lock().public.get(public).copied())
    }

    async fn run_secret(&self, public: &str) -> Result<Option<(RunId, [u8; 16])>, Error> {
        let state = self.lock();
        let Some(id) = state.public.get(public) else { return Ok(None) };
        Ok(state.runs.get(id).map(|run| (*id, run.secret)))
    }

    async fn run(&self, run: RunId) -> Result<Option<RunRow>, Error> {
        Ok(self.lock().runs.get(&run).map(|run| run.row.clone()))
    }

    async fn tail(&self, run: RunId, after: Version, limit: u32) -> Result<Vec<StoredLog>, Error> {
        let state = self.lock();
        let Some(run) = state.runs.get(&run) else { return Ok(Vec::new()) };
        Ok(run.log.range(after_key(after)).take(limit as usize).map(|(_, log)| log.clone()).collect())
    }

    async fn values(&self, run: RunId, ids: &[ValueId]) -> Result<Vec<ValueRow>, Error> {
        let state = self.lock();
        let Some(run) = state.runs.get(&run) else { return Ok(Vec::new()) };
        let found = ids.iter().filter_map(|&id| Some(ValueRow { id, payload: run.values.get(&id)?.clone() }));
        Ok(found.collect())
    }

    async fn attempts(&self, run: RunId) -> Result<Vec<StepRow>, Error> {
        let state = self.lock();
        let paths = state.runs.get(&run).into_iter().flat_map(|run| run.steps.values());
        Ok(paths.flat_map(|attempts| attempts.values().cloned()).collect())
    }

    async fn due(&self, until: Time, share: Share, limit: u32) -> Result<Vec<DueTimer>, Error> {
        Ok(self.lock().timers.due(until, share, limit))
    }

    async fn mail(&self, run: RunId) -> Result<Vec<StoredMail>, Error> {
        let state = self.lock();
        let stored = |id: i64| {
            let message = state.mail.get(id)?;
            Some(StoredMail { id, key: message.key.clone(), body: message.content.clone() })
        };
        Ok(state.mail.of_run(run).into_iter().filter_map(stored).collect())
    }

    async fn mailed(&self, after: Option<RunId>, limit: u32) -> Result<Vec<RunId>, Error> {
        let state = self.lock();
        let runs = state.mail.runs().filter(|run| after.is_none_or(|after| *run > after));
        Ok(runs.take(limit as usize).collect())
    }

    async fn outbox(&self, until: Time, after: i64, limit: u32) -> Result<Vec<StoredNotice>, Error> {
        Ok(self.lock().due_notices(until, after, limit))
    }

    async fn notices(&self, run: RunId, prefix: &str, limit: u32) -> Result<Vec<StoredNotice>, Error> {
        Ok(self.lock().notices(run, prefix, limit))
    }

    async fn forget(&self, stale: Stale) -> Result<(), Error> {
        let mut state = self.lock();
        for id in stale.mail {
            state.mail.remove(id);
        }
        for (run, key) in stale.notices {
            state.remove_notice(run, &key);
        }
        for (run, key) in stale.timers {
            state.timers.remove(run, key);
        }
        Ok(())
    }

    async fn keyed(&self, scope: &str, key: &str, now: Time) -> Result<Option<RunId>, Error> {
        let state = self.lock();
        let owner = state.unique.get(&(scope.to_string(), key.to_string()));
        Ok(owner.filter(|owner| owner.counts_at(now)).map(|owner| owner.run))
    }

    async fn queued(&self, after: Option<&str>, limit: u32) -> Result<Vec<(String, RunId)>, Error> {
        let state = self.lock();
        let queues = state.groups.queues.iter().filter(|(key, _)| after.is_none_or(|after| key.as_str() > after));
        let heads = queues.filter_map(|(key, runs)| Some((key.clone(), *runs.first()?)));
        Ok(heads.take(limit as usize).collect())
    }

    async fn first_queued(&self, group: &str) -> Result<Option<RunId>, Error> {
        Ok(self.lock().groups.queues.get(group).and_then(|runs| runs.first().copied()))
    }

    async fn holder(&self, group: &str) -> Result<Option<RunId>, Error> {
        Ok(self.lock().groups.held.get(group).and_then(|runs| runs.first().copied()))
    }

    async fn progress(&self) -> Result<Progress, Error> {
        Ok(Progress::from_iter([Position::new(0, self.lock().position)]))
    }

    async fn feed(&self, after: &Progress, limit: u32) -> Result<Vec<Fed>, Error> {
        Ok(self.fed(after, limit, |_| true))
    }

    async fn feed_of(&self, org: OrgId, after: &Progress, limit: u32) -> Result<Vec<Fed>, Error> {
        Ok(self.fed(after, limit, |fed| fed.org == org))
    }

    async fn define(&self, definition: NewDefinition, with: Change) -> Result<Result<DefinitionRow, Refused>, Error> {
        let mut state = self.lock();
        let same =
            |row: &&DefinitionRow| !definition.test && row.source == definition.source && row.name == definition.name;
        if let Some(newest) = state.definitions.find(definition.org, &definition.name).filter(same) {
            return Ok(Ok(newest.clone()));
        }
        if !state.definitions.accepts(&definition) {
            return Ok(Err(Refused::Conflict));
        }
        state.definitions.check(&definition)?;
        // A refused change must not leave a new version behind.
        if let Err(refused) = registry::apply(&mut state, with) {
            return Ok(Err(refused));
        }
        state.definitions.define(definition).map(Ok)
    }

    async fn definition(&self, id: i64) -> Result<Option<DefinitionRow>, Error> {
        Ok(self.lock().definitions.get(id).cloned())
    }

    async fn find_definition(&self, org: OrgId, name: &str) -> Result<Option<DefinitionRow>, Error> {
        Ok(self.lock().definitions.find(org, name).cloned())
    }

    async fn definitions(&self, org: OrgId) -> Result<Vec<DefinitionRow>, Error> {
        Ok(self.lock().definitions.of_org(org))
    }

    async fn versions(&self, org: OrgId, workflow: &str) -> Result<Vec<DefinitionRow>, Error> {
        Ok(self.lock().definitions.versions(org, workflow))
    }

    async fn undefine(&self, org: OrgId, workflow: &str, at: Time, with: Change) -> Result<bool, Error> {
        let mut state = self.lock();
        let alive = state.definitions.of_org(org).iter().any(|row| row.workflow == workflow);
        let done = alive && registry::apply(&mut state, with).is_ok();
        Ok(done && state.definitions.undefine(org, workflow, at))
    }

    async fn deleted(&self, org: OrgId, named: Option<&str>) -> Result<Vec<(DefinitionRow, Time)>, Error> {
        Ok(self.lock().definitions.deleted(org, named))
    }

    async fn redefine(&self, org: OrgId, workflow: &str, with: Change) -> Result<Result<(), Refused>, Error> {
        let mut state = self.lock();
        let newest = match state.definitions.restorable(org, workflow) {
            Ok(newest) => newest,
            Err(refused) => return Ok(Err(refused)),
        };
        if let Err(refused) = registry::apply(&mut state, with) {
            return Ok(Err(refused));
        }
        state.definitions.restore(newest);
        Ok(Ok(()))
    }

    async fn first_defined(&self, org: OrgId, workflow: &str) -> Result<Option<Time>, Error> {
        Ok(self.lock().definitions.versions(org, workflow).last().map(|first| first.at))
    }

    async fn label(&self, run: RunId, labels: Vec<String>, audit: Vec<NewAudit>) -> Result<bool, Error> {
        let mut state = self.lock();
        let Some(run) = state.runs.get_mut(&run) else { return Ok(false) };
        run.row.labels = labels;
        audit.into_iter().for_each(|row| state.registry.append(row));
        Ok(true)
    }

    async fn gates(&self, org: OrgId, after: Option<(RunId, String)>, limit: u32) -> Result<Vec<OpenGate>, Error> {
        let state = self.lock();
        let (run, path) = after.unwrap_or((RunId(i64::MIN), String::new()));
        let rows = state.gates.range(after_key((org, run, path))).take_while(|((of, _, _), _)| *of == org);
        let open = rows.filter_map(|((_, run, path), since)| {
            let public = state.runs.get(run)?.row.public.clone();
            Some(OpenGate { run: *run, public, path: path.clone(), since: *since })
        });
        Ok(open.take(limit as usize).collect())
    }

    async fn erase(&self, run: RunId, at: Time, audit: Vec<NewAudit>) -> Result<bool, Error> {
        let mut state = self.lock();
        let Some(run) = state.runs.get_mut(&run).filter(|run| run.row.finished.is_some()) else { return Ok(false) };
        run.row.erased = Some(at);
        run.values.values_mut().for_each(|payload| *payload = ERASED.to_string());
        audit.into_iter().for_each(|row| state.registry.append(row));
        Ok(true)
    }

    async fn runs(&self, filter: RunFilter) -> Result<Vec<RunRow>, Error> {
        Ok(self.lock().runs(&filter))
    }

    async fn ended(&self, runs: &[RunId]) -> Result<Vec<RunId>, Error> {
        let state = self.lock();
        let open = |run: &&RunId| state.runs.get(run).is_some_and(|run| run.row.finished.is_none());
        Ok(runs.iter().filter(|run| !open(run)).copied().collect())
    }

    async fn epoch(&self, org: OrgId) -> Result<Option<i64>, Error> {
        Ok(self.lock().epochs.get(&org).copied())
    }

    async fn grants_changed(&self, org: OrgId) -> Result<(), Error> {
        if let Some(epoch) = self.lock().epochs.get_mut(&org) {
            *epoch += 1;
        }
        Ok(())
    }

    async fn purge(&self, before: Time, limit: u32) -> Result<u64, Error> {
        Ok(retention::purge(&mut self.lock(), before, limit))
    }

    async fn purgeable(&self, before: Time) -> Result<u64, Error> {
        Ok(self.lock().to_purge.range(..=(before, RunId(i64::MAX))).count() as u64)
    }

    async fn expire(&self, run: RunId, at: Time) -> Result<bool, Error> {
        let mut state = self.lock();
        let finished = state.runs.get(&run).is_some_and(|run| run.row.finished.is_some());
        if finished {
            state.set_purge(run, Some(at));
        }
        Ok(finished)
    }

    fn chain_key(&self) -> ChainKey {
        self.lock().registry.key()
    }

    async fn unlock(&self, key: ChainKey) -> Result<(), Error> {
        self.lock().registry.key = Some(key);
        Ok(())
    }

    async fn rekey(&self, key: ChainKey, with: Change) -> Result<Result<(), Refused>, Error> {
        let mut state = self.lock();
        let before = state.registry.key.replace(key);
        let done = registry::apply(&mut state, with);
        if done.is_err() {
            state.registry.key = before;
        }
        Ok(done)
    }

    async fn tallies(&self) -> Result<Vec<WriterTally>, Error> {
        Ok(retention::evidence(&self.lock(), Vec::new()).tallies)
    }

    /// Memory cannot be changed from outside, so the rows themselves are the tally.
    async fn evidence(&self, points: Vec<TrailPoint>) -> Result<Evidence, Error> {
        Ok(retention::evidence(&self.lock(), points))
    }

    async fn stats(&self, count: bool) -> Result<Stats, Error> {
        Ok(retention::stats(&self.lock(), count))
    }

    async fn backlog(&self, now: Time) -> Result<Backlog, Error> {
        Ok(retention::backlog(&self.lock(), now))
    }

    async fn integrity(&self) -> Result<Vec<String>, Error> {
        Ok(retention::integrity(&self.lock()))
    }
}
