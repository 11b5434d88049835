//! A store between the engine and the disk that is slow, loses replies, refuses, runs full, and kills its process
//! before or after a write.
//!
//! The disk survives. Once a process is over, its store never answers again: nothing it still does can matter.

use crate::sim::Sim;
use async_trait::async_trait;
use futures_util::FutureExt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use stepwell_core::time::Time;
use stepwell_core::value::ValueId;
use stepwell_store::*;
use tokio_util::sync::CancellationToken;

/// What goes wrong with a call, out of 1,000, for a storm of 1.
const REFUSED: u64 = 12;
const LOST: u64 = 8;
const LATE: u64 = 4;
const CONTESTED: u64 = 8;
const DIES_BEFORE: u64 = 2;
const DIES_AFTER: u64 = 2;

/// How long a commit whose answer is an error may still be on its way.
const LATEST: u64 = 3_000;

pub struct Faulty {
    pub sim: Arc<Sim>,
    pub life: CancellationToken,
}

/// One in this many commits is followed by a look at all rows of its run.
const LOOK: u64 = 8;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Well,
    /// Not applied, and the caller is told so.
    Refused,
    /// Applied, and the caller is told that no one knows.
    Lost,
    /// The caller is told that no one knows, and then it is applied.
    Late,
    /// A commit is refused as if another had come before it.
    Contested,
    DiesBefore,
    DiesAfter,
}

impl Fate {
    fn name(self) -> &'static str {
        match self {
            Fate::Well => "store: well",
            Fate::Refused => "store: refused",
            Fate::Lost => "store: lost",
            Fate::Late => "store: late",
            Fate::Contested => "store: contested",
            Fate::DiesBefore => "store: dies before",
            Fate::DiesAfter => "store: dies after",
        }
    }
}

fn unavailable() -> Error {
    Error::Unavailable("so the dice fell".into())
}

async fn never<T>() -> T {
    std::future::pending().await
}

impl Faulty {
    fn fate(&self) -> Fate {
        let storm = self.sim.mood.storm;
        if storm == 0 || !self.sim.is_noisy() {
            return Fate::Well;
        }
        let mut die = self.sim.chance().below(1_000);
        let fates = [
            (REFUSED, Fate::Refused),
            (LOST, Fate::Lost),
            (LATE, Fate::Late),
            (CONTESTED, Fate::Contested),
            (DIES_BEFORE, Fate::DiesBefore),
            (DIES_AFTER, Fate::DiesAfter),
        ];
        for (share, fate) in fates {
            if die < share * storm {
                self.sim.saw(fate.name());
                return fate;
            }
            die -= share * storm;
        }
        Fate::Well
    }

    /// The way to the disk or back. It leads nowhere if the process is over by then.
    async fn travel(&self) {
        if self.sim.is_asked_too_often() {
            return never().await;
        }
        let slow = self.sim.mood.slow;
        if slow > 0 && self.sim.is_noisy() {
            let delay = {
                let mut chance = self.sim.chance();
                match chance.below(100) {
                    0..50 => 0,
                    50..90 => chance.below(4),
                    90..99 => chance.between(4, 100) * slow,
                    _ => chance.between(100, 3_000) * slow,
                }
            };
            if delay > 0 {
                tokio::time::sleep(Duration::from_millis(delay)).await;
            }
        }
        if self.life.is_cancelled() {
            never().await
        }
    }

    async fn through<T>(&self, apply: impl Future<Output = Result<T, Error>> + Send) -> Result<T, Error> {
        let fate = self.fate();
        self.travel().await;
        match self.still(fate) {
            Fate::Refused => return Err(unavailable()),
            Fate::DiesBefore => return self.die().await,
            Fate::Well | Fate::Lost | Fate::Late | Fate::Contested | Fate::DiesAfter => {}
        }
        let answer = apply.await;
        if self.still(fate) == Fate::DiesAfter {
            return self.die().await;
        }
        self.travel().await;
        match fate {
            Fate::Lost | Fate::Late => Err(unavailable()),
            Fate::Well | Fate::Refused | Fate::Contested | Fate::DiesBefore | Fate::DiesAfter => answer,
        }
    }

    async fn die<T>(&self) -> T {
        self.life.cancel();
        never().await
    }

    /// What was to go wrong does not once the noise is over.
    fn still(&self, fate: Fate) -> Fate {
        if self.sim.is_noisy() { fate } else { Fate::Well }
    }

    fn is_full(&self) -> bool {
        *self.sim.full_until.lock().unwrap() > self.sim.now()
    }

    /// Lets the commits arrive some time after their caller was told that no one knows.
    fn arrive_late(&self, batch: Vec<Commit>) {
        let delay = Duration::from_millis(self.sim.chance().below(LATEST));
        let (sim, life) = (self.sim.clone(), self.life.clone());
        tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            // One process has the file: what it had not written when it ended is never written.
            if !life.is_cancelled() {
                let _ = write(&sim, batch);
            }
        });
    }
}

/// Writes to the disk, and has what was written looked at.
fn write(sim: &Arc<Sim>, batch: Vec<Commit>) -> Result<Vec<Result<Position, Refused>>, Error> {
    let seen = batch.clone();
    let answers = sim.disk.commit(batch).now_or_never().unwrap()?;
    for (commit, answer) in seen.into_iter().zip(&answers) {
        if answer.is_ok() {
            let run = commit.run;
            crate::past::saw(sim, commit);
            if sim.past().commits.is_multiple_of(LOOK) {
                crate::rows::check(sim, run);
            }
        }
    }
    Ok(answers)
}

#[async_trait]
impl Store for Faulty {
    async fn commit(&self, batch: Vec<Commit>) -> Result<Vec<Result<Position, Refused>>, Error> {
        let fate = self.fate();
        self.travel().await;
        match self.still(fate) {
            Fate::Refused => return Err(unavailable()),
            Fate::DiesBefore => return self.die().await,
            Fate::Late => {
                self.arrive_late(batch);
                return Err(unavailable());
            }
            Fate::Contested => return Ok(batch.iter().map(|_| Err(Refused::Conflict)).collect()),
            Fate::Well | Fate::Lost | Fate::DiesAfter => {}
        }
        if self.is_full() {
            self.sim.saw("store: full");
            return Err(Error::Full("so the dice fell".into()));
        }
        let answer = write(&self.sim, batch);
        if self.still(fate) == Fate::DiesAfter {
            return self.die().await;
        }
        self.travel().await;
        if fate == Fate::Lost { Err(unavailable()) } else { answer }
    }

    async fn load(&self, run: RunId) -> Result<Option<LoadedRun>, Error> {
        self.through(self.sim.disk.load(run)).await
    }

    async fn find_run(&self, public: &str) -> Result<Option<RunId>, Error> {
        self.through(self.sim.disk.find_run(public)).await
    }

    async fn run_secret(&self, public: &str) -> Result<Option<(RunId, [u8; 16])>, Error> {
        self.through(self.sim.disk.run_secret(public)).await
    }

    async fn run(&self, run: RunId) -> Result<Option<RunRow>, Error> {
        self.through(self.sim.disk.run(run)).await
    }

    async fn tail(&self, run: RunId, after: Version, limit: u32) -> Result<Vec<StoredLog>, Error> {
        self.through(self.sim.disk.tail(run, after, limit)).await
    }

    async fn values(&self, run: RunId, ids: &[ValueId]) -> Result<Vec<ValueRow>, Error> {
        self.through(self.sim.disk.values(run, ids)).await
    }

    async fn attempts(&self, run: RunId) -> Result<Vec<StepRow>, Error> {
        self.through(self.sim.disk.attempts(run)).await
    }

    async fn due(&self, until: Time, share: Share, limit: u32) -> Result<Vec<DueTimer>, Error> {
        self.through(self.sim.disk.due(until, share, limit)).await
    }

    async fn mail(&self, run: RunId) -> Result<Vec<StoredMail>, Error> {
        self.through(self.sim.disk.mail(run)).await
    }

    async fn mailed(&self, after: Option<RunId>, limit: u32) -> Result<Vec<RunId>, Error> {
        self.through(self.sim.disk.mailed(after, limit)).await
    }

    async fn outbox(&self, until: Time, after: i64, limit: u32) -> Result<Vec<StoredNotice>, Error> {
        self.through(self.sim.disk.outbox(until, after, limit)).await
    }

    async fn notices(&self, run: RunId, prefix: &str, limit: u32) -> Result<Vec<StoredNotice>, Error> {
        self.through(self.sim.disk.notices(run, prefix, limit)).await
    }

    async fn forget(&self, stale: Stale) -> Result<(), Error> {
        for (run, key) in &stale.timers {
            let counts = self.sim.past().runs.get(run).is_some_and(|story| story.timers.contains_key(key));
            if counts {
                self.sim.breaks(format!("the timer {key} of run {} is thrown away and still counts", run.0));
            }
        }
        self.through(self.sim.disk.forget(stale)).await
    }

    async fn keyed(&self, scope: &str, key: &str, now: Time) -> Result<Option<RunId>, Error> {
        self.through(self.sim.disk.keyed(scope, key, now)).await
    }

    async fn queued(&self, after: Option<&str>, limit: u32) -> Result<Vec<(String, RunId)>, Error> {
        self.through(self.sim.disk.queued(after, limit)).await
    }

    async fn first_queued(&self, group: &str) -> Result<Option<RunId>, Error> {
        self.through(self.sim.disk.first_queued(group)).await
    }

    async fn holder(&self, group: &str) -> Result<Option<RunId>, Error> {
        self.through(self.sim.disk.holder(group)).await
    }

    async fn progress(&self) -> Result<Progress, Error> {
        self.through(self.sim.disk.progress()).await
    }

    async fn feed(&self, after: &Progress, limit: u32) -> Result<Vec<Fed>, Error> {
        self.through(self.sim.disk.feed(after, limit)).await
    }

    async fn feed_of(&self, org: OrgId, after: &Progress, limit: u32) -> Result<Vec<Fed>, Error> {
        self.through(self.sim.disk.feed_of(org, after, limit)).await
    }

    async fn define(&self, definition: NewDefinition, with: Change) -> Result<Result<DefinitionRow, Refused>, Error> {
        self.through(self.sim.disk.define(definition, with)).await
    }

    async fn definition(&self, id: i64) -> Result<Option<DefinitionRow>, Error> {
        self.through(self.sim.disk.definition(id)).await
    }

    async fn find_definition(&self, org: OrgId, name: &str) -> Result<Option<DefinitionRow>, Error> {
        self.through(self.sim.disk.find_definition(org, name)).await
    }

    async fn definitions(&self, org: OrgId) -> Result<Vec<DefinitionRow>, Error> {
        self.through(self.sim.disk.definitions(org)).await
    }

    async fn versions(&self, org: OrgId, workflow: &str) -> Result<Vec<DefinitionRow>, Error> {
        self.through(self.sim.disk.versions(org, workflow)).await
    }

    async fn undefine(&self, org: OrgId, workflow: &str, at: Time, with: Change) -> Result<bool, Error> {
        self.through(self.sim.disk.undefine(org, workflow, at, with)).await
    }

    async fn deleted(&self, org: OrgId, named: Option<&str>) -> Result<Vec<(DefinitionRow, Time)>, Error> {
        self.through(self.sim.disk.deleted(org, named)).await
    }

    async fn redefine(&self, org: OrgId, workflow: &str, with: Change) -> Result<Result<(), Refused>, Error> {
        self.through(self.sim.disk.redefine(org, workflow, with)).await
    }

    async fn first_defined(&self, org: OrgId, workflow: &str) -> Result<Option<Time>, Error> {
        self.through(self.sim.disk.first_defined(org, workflow)).await
    }

    async fn label(&self, run: RunId, labels: Vec<String>, audit: Vec<NewAudit>) -> Result<bool, Error> {
        self.through(self.sim.disk.label(run, labels, audit)).await
    }

    async fn gates(&self, org: OrgId, after: Option<(RunId, String)>, limit: u32) -> Result<Vec<OpenGate>, Error> {
        self.through(self.sim.disk.gates(org, after, limit)).await
    }

    async fn erase(&self, run: RunId, at: Time, audit: Vec<NewAudit>) -> Result<bool, Error> {
        self.through(self.sim.disk.erase(run, at, audit)).await
    }

    async fn runs(&self, filter: RunFilter) -> Result<Vec<RunRow>, Error> {
        self.through(self.sim.disk.runs(filter)).await
    }

    async fn ended(&self, runs: &[RunId]) -> Result<Vec<RunId>, Error> {
        self.through(self.sim.disk.ended(runs)).await
    }

    async fn epoch(&self, org: OrgId) -> Result<Option<i64>, Error> {
        self.through(self.sim.disk.epoch(org)).await
    }

    async fn grants_changed(&self, org: OrgId) -> Result<(), Error> {
        self.through(self.sim.disk.grants_changed(org)).await
    }

    async fn purge(&self, before: Time, limit: u32) -> Result<u64, Error> {
        self.through(self.sim.disk.purge(before, limit)).await
    }

    async fn backlog(&self, now: Time) -> Result<Backlog, Error> {
        self.through(self.sim.disk.backlog(now)).await
    }

    async fn purgeable(&self, before: Time) -> Result<u64, Error> {
        self.through(self.sim.disk.purgeable(before)).await
    }

    async fn expire(&self, run: RunId, at: Time) -> Result<bool, Error> {
        self.through(self.sim.disk.expire(run, at)).await
    }

    fn chain_key(&self) -> ChainKey {
        self.sim.disk.chain_key()
    }

    async fn unlock(&self, key: ChainKey) -> Result<(), Error> {
        self.through(self.sim.disk.unlock(key)).await
    }

    async fn rekey(&self, key: ChainKey, with: Change) -> Result<Result<(), Refused>, Error> {
        self.through(self.sim.disk.rekey(key, with)).await
    }

    async fn tallies(&self) -> Result<Vec<WriterTally>, Error> {
        self.through(self.sim.disk.tallies()).await
    }

    async fn evidence(&self, points: Vec<TrailPoint>) -> Result<Evidence, Error> {
        self.through(self.sim.disk.evidence(points)).await
    }

    async fn stats(&self, count: bool) -> Result<Stats, Error> {
        self.through(self.sim.disk.stats(count)).await
    }

    async fn integrity(&self) -> Result<Vec<String>, Error> {
        self.through(self.sim.disk.integrity()).await
    }
}

#[async_trait]
impl Registry for Faulty {
    async fn change(&self, change: Change) -> Result<Result<(), Refused>, Error> {
        self.through(self.sim.disk.change(change)).await
    }

    async fn record(&self, kind: &str, id: &str) -> Result<Option<Record>, Error> {
        self.through(self.sim.disk.record(kind, id)).await
    }

    async fn record_with_key(&self, kind: &str, key: &str) -> Result<Option<Record>, Error> {
        self.through(self.sim.disk.record_with_key(kind, key)).await
    }

    async fn records(&self, filter: RecordFilter) -> Result<Vec<Record>, Error> {
        self.through(self.sim.disk.records(filter)).await
    }

    async fn due_records(&self, kind: &str, due: Due, limit: u32) -> Result<Vec<Record>, Error> {
        self.through(self.sim.disk.due_records(kind, due, limit)).await
    }

    async fn audit(&self, filter: AuditFilter) -> Result<Vec<AuditRow>, Error> {
        self.through(self.sim.disk.audit(filter)).await
    }

    async fn found(&self, name: &str, at: Time) -> Result<Option<OrgId>, Error> {
        self.through(self.sim.disk.found(name, at)).await
    }

    async fn organisations(&self) -> Result<Vec<(OrgId, String)>, Error> {
        self.through(self.sim.disk.organisations()).await
    }

    async fn counted(&self, counter: &str) -> Result<i64, Error> {
        self.through(self.sim.disk.counted(counter)).await
    }

    async fn open_runs(&self, org: OrgId) -> Result<u64, Error> {
        self.through(self.sim.disk.open_runs(org)).await
    }
}

#[async_trait]
impl Nodes for Faulty {
    async fn join(&self, node: NewNode) -> Result<(), Error> {
        self.through(self.sim.disk.join(node)).await
    }

    async fn nodes(&self) -> Result<Vec<NodeRow>, Error> {
        self.through(self.sim.disk.nodes()).await
    }

    async fn claim(&self, claim: Claim) -> Result<Vec<Claimed>, Error> {
        self.through(self.sim.disk.claim(claim)).await
    }

    async fn held(&self, node: NodeId) -> Result<Vec<Claimed>, Error> {
        self.through(self.sim.disk.held(node)).await
    }

    async fn give_up_silent(&self) -> Result<(), Error> {
        self.through(self.sim.disk.give_up_silent()).await
    }

    async fn orphans(&self, after: Option<(RunId, WorkKey)>, limit: u32) -> Result<Vec<Claimed>, Error> {
        self.through(self.sim.disk.orphans(after, limit)).await
    }

    fn is_shared(&self) -> bool {
        self.sim.disk.is_shared()
    }

    fn hear(&self) -> Option<tokio::sync::broadcast::Receiver<Hint>> {
        self.sim.disk.hear()
    }

    fn tell(&self, hint: Hint) {
        self.sim.disk.tell(hint);
    }

    fn ahead(&self) -> i64 {
        self.sim.disk.ahead()
    }

    async fn beat(&self, node: NodeId) -> Result<bool, Error> {
        self.through(self.sim.disk.beat(node)).await
    }

    async fn leave(&self, node: NodeId) -> Result<(), Error> {
        self.through(self.sim.disk.leave(node)).await
    }
}
