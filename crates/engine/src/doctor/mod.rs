//! Checks that all stored data is consistent, and reports what unfinished runs wait for. Changes nothing. No other
//! process may use the store meanwhile: data that changes during the check would seem inconsistent.
//!
//! Runs are read in pages and checked one by one, so memory does not grow with their number. Only timers and work are
//! held in memory all at once, as numbers.

mod anchor;
pub(crate) mod audit;
mod evidence;
mod export;
mod log;
mod pending;
mod rows;

pub use anchor::{Anchor, Heads, MOST_ANCHORS, WriterHead, anchor, verify as verify_anchors};
pub use evidence::EvidenceReport;
pub use export::{Export, FileCheck, FileVerdict, Lines};

use crate::error::Error;
use crate::notify::Channel;
use crate::run::{restore, status};
use crate::secrets::{Chain, SealedStore, Secret};
use crate::workflows::{Compiled, Database, Definitions};
use futures_util::future::join_all;
use log::Log;
use pending::Pending;
use serde::Serialize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use stepwell_core::graph::Graph;
use stepwell_core::run::{Run, Waiting, WaitingFor};
use stepwell_core::time::{Millis, Time};
use stepwell_store::{ChainKey, OrgId, RunFilter, RunId, RunRow, Store};

/// Runs listed per page, without their data. The page is large because a store may have to sort all runs for each page.
const PAGE: u32 = 5_000;
/// Runs checked concurrently: one is read while another is folded.
const CONCURRENT: usize = 8;
/// Faults that are listed. Further ones are counted.
const MOST_FAULTS: usize = 200;
/// The oldest waits that are listed for each kind.
const OLDEST: usize = 3;
/// Rows of finished runs removed in one transaction.
const PURGE_ROWS: u32 = 500;

/// Checks only the audit trail of an organisation. Other processes may use the store meanwhile.
pub async fn verify_audit(store: &dyn Store, org: OrgId) -> Result<audit::Verdict, Error> {
    audit::verify(store, org, Some(store.chain_key())).await
}

/// The findings.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    pub faults: Vec<Fault>,
    /// Faults that are not listed.
    pub more_faults: u64,
    pub runs: u64,
    pub unfinished: u64,
    /// Finished runs past their retention. They may be partly purged, so they are not checked.
    pub leaving: u64,
    /// The waits of unfinished runs.
    pub waiting: Vec<Waits>,
    /// How far the rows are known to be those that were written.
    pub evidence: EvidenceReport,
    /// There are too many timers to check that each run has its own.
    pub timers_unchecked: bool,
}

impl Report {
    /// Whether there are no faults.
    pub fn is_sound(&self) -> bool {
        self.faults.is_empty()
    }

    fn add(&mut self, fault: Fault) {
        if self.faults.len() < MOST_FAULTS {
            self.faults.push(fault);
        } else {
            self.more_faults += 1;
        }
    }

    fn wait(&mut self, run: &str, waiting: WaitingFor) {
        let position = self.waiting.iter().position(|waits| waits.what == waiting.what).unwrap_or_else(|| {
            self.waiting.push(Waits { what: waiting.what, count: 0, oldest: Vec::new() });
            self.waiting.len() - 1
        });
        let waits = &mut self.waiting[position];
        waits.count += 1;
        let position = waits.oldest.partition_point(|other| other.waiting.since <= waiting.since);
        if position < OLDEST {
            waits.oldest.insert(position, Oldest { run: run.to_string(), waiting });
            waits.oldest.truncate(OLDEST);
        }
    }
}

/// An inconsistency.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Fault {
    /// `run_…`. `None` if the fault concerns the store itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    pub check: Check,
    pub message: String,
}

/// The check that failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// The database passes its own integrity check.
    Integrity,
    /// Stored data can be read.
    Readable,
    /// The log has every version from the first to the run's own.
    Complete,
    /// Each log row follows from the one before it.
    Chain,
    /// Payloads have the digests that were logged.
    Payloads,
    /// The rows are those that were written: none was added, changed or removed from outside.
    Evidence,
    /// Each row of the audit trail follows from the one before it.
    Audit,
    /// Folding the log gives the state in the rows.
    Rows,
    /// A finished run has no timers or work left.
    Leftover,
    /// Something will move an unfinished run on.
    Stuck,
    /// Sealed values can be opened with this node's master keys.
    Sealed,
}

/// The number of waits of one kind, and the oldest.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Waits {
    #[serde(rename = "for")]
    pub what: Waiting,
    pub count: u64,
    pub oldest: Vec<Oldest>,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Oldest {
    pub run: String,
    #[serde(flatten)]
    pub waiting: WaitingFor,
}

/// Checks everything in the store.
pub async fn examine(store: &dyn Store, now: Time) -> Result<Report, Error> {
    let mut report = Report::default();
    let broken = match store.integrity().await {
        // The database is too damaged for its own check.
        Err(stepwell_store::Error::Unusable(message)) => vec![message],
        found => found?,
    };
    for message in broken {
        report.add(Fault { run: None, check: Check::Integrity, message });
    }
    evidence::check(store, &mut report).await?;
    match check_runs(store, now, &mut report).await {
        Ok(()) => {}
        // The integrity faults found before explain the error.
        Err(error) if !report.faults.is_empty() => {
            let message = format!("the check could not be completed: {error}");
            report.add(Fault { run: None, check: Check::Readable, message });
        }
        Err(error) => return Err(error),
    }
    report.waiting.sort_by_key(|waits| std::cmp::Reverse(waits.count));
    Ok(report)
}

/// Checks that all sealed values can be opened, and reports the others.
pub async fn check_sealed(sealed: &SealedStore, report: &mut Report) -> Result<(), Error> {
    let mut locked = sealed.locked::<Secret>().await?;
    locked.extend(sealed.locked::<Database>().await?);
    locked.extend(sealed.locked::<Channel>().await?);
    locked.extend(sealed.locked::<Chain>().await?);
    for message in locked {
        report.add(Fault { run: None, check: Check::Sealed, message });
    }
    Ok(())
}

/// Checks the audit trail against anchors, one per line, and reports what does not fit.
pub async fn check_anchors(store: &dyn Store, lines: &[String], report: &mut Report) -> Result<(), Error> {
    for message in verify_anchors(store, lines).await? {
        report.add(Fault { run: None, check: Check::Evidence, message });
    }
    Ok(())
}

async fn check_runs(store: &dyn Store, now: Time, report: &mut Report) -> Result<(), Error> {
    let mut pending = Pending::read(store).await?;
    report.timers_unchecked = pending.timers.is_none();
    let context = Context { definitions: &Definitions::default(), now, key: report.evidence.key(store) };
    // Organisations are numbered from one, without gaps.
    for org in (1..).map(OrgId) {
        if store.epoch(org).await?.is_none() {
            break;
        }
        if let Some(row) = audit::verify(store, org, report.evidence.key(store)).await?.broken_at {
            let message = format!("row {row} of the audit trail was tampered with: its hash does not match");
            report.add(Fault { run: None, check: Check::Audit, message });
        }
        for tests in [false, true] {
            let mut before = None;
            loop {
                let page = store.runs(all_runs(org, tests, before)).await?;
                before = page.last().map(|run| run.id);
                for runs in page.chunks(CONCURRENT) {
                    let checks = runs.iter().map(|run| check_run(store, &context, &pending, run.id));
                    for checked in join_all(checks).await {
                        add_run(report, &mut pending, checked?);
                    }
                }
                if page.len() < PAGE as usize {
                    break;
                }
            }
        }
    }
    for (run, message) in pending.unaccounted() {
        report.add(Fault { run: Some(run), check: Check::Stuck, message });
    }
    Ok(())
}

/// Purges finished runs past their retention. Returns the number of removed rows.
pub async fn purge(store: &dyn Store, now: Time) -> Result<u64, Error> {
    let mut gone = 0;
    loop {
        match store.purge(now, PURGE_ROWS).await? {
            0 => return Ok(gone),
            rows => gone += rows,
        }
    }
}

fn all_runs(org: OrgId, tests: bool, before: Option<RunId>) -> RunFilter {
    RunFilter { tests, before, ..RunFilter::all(org, PAGE) }
}

/// The findings for one run.
#[derive(Default)]
struct CheckedRun {
    run: String,
    unfinished: bool,
    leaving: bool,
    faults: Vec<(Check, String)>,
    waiting: Vec<WaitingFor>,
    /// Running steps without claimed work.
    unclaimed: Vec<String>,
}

/// Adds the findings for one run to the report.
fn add_run(report: &mut Report, pending: &mut Pending, checked: CheckedRun) {
    report.runs += 1;
    report.unfinished += u64::from(checked.unfinished);
    report.leaving += u64::from(checked.leaving);
    for (check, message) in checked.faults {
        report.add(Fault { run: Some(checked.run.clone()), check, message });
    }
    for waiting in checked.waiting {
        report.wait(&checked.run, waiting);
    }
    pending.add_unclaimed(&checked.run, checked.unclaimed);
}

/// A run whose rows cannot be read.
async fn unreadable(store: &dyn Store, id: RunId, why: String) -> Result<CheckedRun, Error> {
    let Some(row) = store.run(id).await? else { return Ok(CheckedRun::default()) };
    let faults = vec![(Check::Readable, why)];
    Ok(CheckedRun { run: row.public, unfinished: row.finished.is_none(), faults, ..CheckedRun::default() })
}

/// What the checks of all runs share.
struct Context<'a> {
    definitions: &'a Definitions,
    now: Time,
    /// The key of the hashes, if it is here.
    key: Option<ChainKey>,
}

async fn check_run(
    store: &dyn Store,
    context: &Context<'_>,
    pending: &Pending,
    id: RunId,
) -> Result<CheckedRun, Error> {
    let Context { definitions, now, .. } = *context;
    let stored = match store.load(id).await {
        Ok(Some(stored)) => stored,
        Ok(None) => return Ok(CheckedRun::default()),
        Err(stepwell_store::Error::Unusable(why)) => return unreadable(store, id, why).await,
        Err(error) => return Err(error.into()),
    };
    let mut checked = CheckedRun {
        run: stored.row.public.clone(),
        unfinished: stored.row.finished.is_none(),
        ..CheckedRun::default()
    };
    let compiled = match definitions.get(store, stored.row.definition).await {
        Ok(compiled) => compiled,
        Err(Error::Broken(message)) => {
            checked.faults.push((Check::Readable, message));
            return Ok(checked);
        }
        Err(error) => return Err(error),
    };
    if is_leaving(&stored.row, &compiled, now) {
        checked.leaving = true;
        return Ok(checked);
    }
    let mut log = Log::read(store, &stored, context.key).await?;
    let versions = log.versions(store, definitions, &compiled).await?;
    log.check_origin(&stored.row, &versions);
    let attempts = store.attempts(id).await?;
    checked.faults.extend(log.faults.iter().cloned());
    let graph = &compiled.definition.graph;
    let run = match guarded(|| restore(graph, &stored).map_err(|error| error.to_string())) {
        Ok(run) => run,
        Err(message) => {
            checked.faults.push((Check::Readable, message));
            return Ok(checked);
        }
    };
    checked.faults.extend(rows::columns(&stored.row, status(&run), &attempts));
    if log.is_whole() {
        checked.faults.extend(rows::attempts(&log, &attempts));
        checked.faults.extend(log.compare(&stored, RunState { graph, run: &run }, &versions));
    }
    if run.status.is_terminal() {
        checked.faults.extend(pending.leftover(id));
    } else {
        checked.waiting = run.waiting_for(graph);
        let (stuck, unclaimed) = pending.stuck(store, &stored, RunState { graph, run: &run }).await?;
        checked.faults.extend(stuck);
        checked.unclaimed = unclaimed;
    }
    Ok(checked)
}

/// Whether a purge may have removed parts of the run: purges work in batches and can be interrupted. Test runs can be
/// purged at any time.
fn is_leaving(row: &RunRow, compiled: &Compiled, now: Time) -> bool {
    let kept = if row.test { Millis(0) } else { compiled.definition.retention };
    row.finished.is_some_and(|finished| finished + kept <= now)
}

/// Restores a run and turns a panic into an error: rows that were tampered with may hold anything.
fn guarded(restore: impl FnOnce() -> Result<Run, String>) -> Result<Run, String> {
    let broken = |_| Err("the stored run is inconsistent and cannot be restored".to_string());
    catch_unwind(AssertUnwindSafe(restore)).unwrap_or_else(broken)
}

/// A run's state and the graph that it belongs to.
#[derive(Clone, Copy)]
struct RunState<'a> {
    graph: &'a Graph,
    run: &'a Run,
}

/// Versions of a workflow with which a run may have started.
type Versions = Vec<Arc<Compiled>>;
