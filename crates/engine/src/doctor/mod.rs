//! Looks whether everything stored is sound, and why runs that are not finished are not. Changes nothing, and must be the
//! only one that has the store: what moves while it is looked at would seem broken.
//!
//! Runs are read in pages and looked at one by one, so memory does not grow with their number; only timers and work are
//! held together, as numbers.

pub(crate) mod audit;
mod log;
mod pending;
mod rows;

use crate::error::Error;
use crate::notify::Channel;
use crate::run::{restore, status};
use crate::secrets::{SealedStore, Secret};
use crate::workflows::{Compiled, Database, Definitions};
use futures_util::future::join_all;
use log::Log;
use pending::Pending;
use serde::Serialize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use stepwell_core::run::{Run, Waiting, WaitingFor};
use stepwell_core::time::{Millis, Time};
use stepwell_store::{OrgId, RunFilter, RunId, RunRow, Store};

/// Runs listed in one go: a row each, without what they hold. Many, for a store may have to sort all of them each time.
const PAGE: u32 = 5_000;
/// Runs looked at side by side: reading one while another is folded.
const ABREAST: usize = 8;
/// Faults that are told; the rest are counted.
const MOST_FAULTS: usize = 200;
/// Waits that are told for each kind, the oldest.
const OLDEST: usize = 3;
/// Rows of finished runs removed in one transaction.
const PURGE_ROWS: u32 = 500;

/// Looks at the audit trail of an organisation alone; others may go on using the store.
pub async fn verify_audit(store: &dyn Store, org: OrgId) -> Result<audit::Verdict, Error> {
    audit::verify(store, org).await
}

/// What was found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    pub faults: Vec<Fault>,
    /// Faults that are not listed.
    pub more_faults: u64,
    pub runs: u64,
    pub unfinished: u64,
    /// Finished runs whose time is over, and which may be half removed: not looked into.
    pub leaving: u64,
    /// What unfinished runs wait for.
    pub waiting: Vec<Waits>,
    /// There are so many timers that it was not looked whether each is there.
    pub timers_unchecked: bool,
}

impl Report {
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
        let place = waits.oldest.partition_point(|other| other.waiting.since <= waiting.since);
        if place < OLDEST {
            waits.oldest.insert(place, Oldest { run: run.to_string(), waiting });
            waits.oldest.truncate(OLDEST);
        }
    }
}

/// Something that is wrong.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Fault {
    /// `run_…`; none if it is the store itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    pub check: Check,
    pub message: String,
}

/// What was looked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// The database finds itself in order.
    Integrity,
    /// What is stored can be read.
    Readable,
    /// The log has every version from the first to the run's own.
    Complete,
    /// Each log row follows from the one before it.
    Chain,
    /// Payloads are what the log says was written.
    Payloads,
    /// Each row of the audit trail follows from the one before it.
    Audit,
    /// Folding the log gives what the rows say.
    Rows,
    /// A finished run has nothing left to do.
    Leftover,
    /// An unfinished run will be moved on by something.
    Stuck,
    /// Secrets and connections can be opened with the master keys that are here.
    Sealed,
}

/// How many wait for one kind of thing, and which have for the longest.
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

/// Looks at everything.
pub async fn examine(store: &dyn Store, now: Time) -> Result<Report, Error> {
    let mut report = Report::default();
    let broken = match store.integrity().await {
        // So damaged that it cannot even look at itself.
        Err(stepwell_store::Error::Unusable(message)) => vec![message],
        found => found?,
    };
    for message in broken {
        report.add(Fault { run: None, check: Check::Integrity, message });
    }
    match look_at_runs(store, now, &mut report).await {
        Ok(()) => {}
        // What the database said of itself explains it.
        Err(error) if !report.faults.is_empty() => {
            let message = format!("no further look could be taken: {error}");
            report.add(Fault { run: None, check: Check::Readable, message });
        }
        Err(error) => return Err(error),
    }
    report.waiting.sort_by_key(|waits| std::cmp::Reverse(waits.count));
    Ok(report)
}

/// Looks whether everything that is sealed opens, and names what does not.
pub async fn check_sealed(sealed: &SealedStore, report: &mut Report) -> Result<(), Error> {
    let mut locked = sealed.locked::<Secret>().await?;
    locked.extend(sealed.locked::<Database>().await?);
    locked.extend(sealed.locked::<Channel>().await?);
    for message in locked {
        report.add(Fault { run: None, check: Check::Sealed, message });
    }
    Ok(())
}

async fn look_at_runs(store: &dyn Store, now: Time, report: &mut Report) -> Result<(), Error> {
    let mut pending = Pending::read(store).await?;
    report.timers_unchecked = pending.timers.is_none();
    let definitions = Definitions::default();
    // Organisations are numbered from one, without holes.
    for org in (1..).map(OrgId) {
        if store.epoch(org).await?.is_none() {
            break;
        }
        if let Some(row) = audit::verify(store, org).await?.broken_at {
            let message =
                format!("row {row} of the audit trail was tampered with: it does not have the hash that was written");
            report.add(Fault { run: None, check: Check::Audit, message });
        }
        for tests in [false, true] {
            let mut before = None;
            loop {
                let page = store.runs(everything(org, tests, before)).await?;
                before = page.last().map(|run| run.id);
                for runs in page.chunks(ABREAST) {
                    let looked = runs.iter().map(|run| look(store, &definitions, &pending, run.id, now));
                    for seen in join_all(looked).await {
                        tell(report, &mut pending, seen?);
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

/// Removes what the next purge would; says how many rows that were.
pub async fn purge(store: &dyn Store, now: Time) -> Result<u64, Error> {
    let mut gone = 0;
    loop {
        match store.purge(now, PURGE_ROWS).await? {
            0 => return Ok(gone),
            rows => gone += rows,
        }
    }
}

fn everything(org: OrgId, tests: bool, before: Option<RunId>) -> RunFilter {
    RunFilter { tests, before, ..RunFilter::all(org, PAGE) }
}

/// What one run was found to be.
#[derive(Default)]
struct Seen {
    run: String,
    unfinished: bool,
    leaving: bool,
    faults: Vec<(Check, String)>,
    waiting: Vec<WaitingFor>,
    /// Running steps for which no claimed work was found.
    unclaimed: Vec<String>,
}

fn tell(report: &mut Report, pending: &mut Pending, seen: Seen) {
    report.runs += 1;
    report.unfinished += u64::from(seen.unfinished);
    report.leaving += u64::from(seen.leaving);
    for (check, message) in seen.faults {
        report.add(Fault { run: Some(seen.run.clone()), check, message });
    }
    for waiting in seen.waiting {
        report.wait(&seen.run, waiting);
    }
    pending.unclaimed_steps(&seen.run, seen.unclaimed);
}

async fn look(
    store: &dyn Store,
    definitions: &Definitions,
    pending: &Pending,
    id: RunId,
    now: Time,
) -> Result<Seen, Error> {
    let Some(stored) = store.load(id).await? else { return Ok(Seen::default()) };
    let mut seen =
        Seen { run: stored.row.public.clone(), unfinished: stored.row.finished.is_none(), ..Seen::default() };
    let compiled = match definitions.get(store, stored.row.definition).await {
        Ok(compiled) => compiled,
        Err(Error::Broken(message)) => {
            seen.faults.push((Check::Readable, message));
            return Ok(seen);
        }
        Err(error) => return Err(error),
    };
    if is_leaving(&stored.row, &compiled, now) {
        seen.leaving = true;
        return Ok(seen);
    }
    let log = Log::read(store, &stored).await?;
    let attempts = store.attempts(id).await?;
    seen.faults.extend(log.faults.iter().cloned());
    let graph = &compiled.definition.graph;
    let run = match guarded(|| restore(graph, &stored).map_err(|error| error.to_string())) {
        Ok(run) => run,
        Err(message) => {
            seen.faults.push((Check::Readable, message));
            return Ok(seen);
        }
    };
    seen.faults.extend(rows::columns(&stored.row, status(&run), &attempts));
    if log.is_whole() {
        seen.faults.extend(rows::attempts(&log, &attempts));
        let versions = log.versions(store, definitions, &compiled).await?;
        seen.faults.extend(log.compare(&stored, (graph, &run), &versions));
    }
    if run.status.is_terminal() {
        seen.faults.extend(pending.leftover(id));
    } else {
        seen.waiting = run.waiting_for(graph);
        let (stuck, unclaimed) = pending.stuck(store, &stored, (graph, &run)).await?;
        seen.faults.extend(stuck);
        seen.unclaimed = unclaimed;
    }
    Ok(seen)
}

/// A purge removes a run in pieces, and may have been interrupted. Test runs can be told to leave at any time.
fn is_leaving(row: &RunRow, compiled: &Compiled, now: Time) -> bool {
    let kept = if row.test { Millis(0) } else { compiled.definition.retention };
    row.finished.is_some_and(|finished| finished + kept <= now)
}

/// Rows that were tampered with may be anything: what trips over them is a fault like another.
fn guarded(restore: impl FnOnce() -> Result<Run, String>) -> Result<Run, String> {
    let broken = |_| Err("the stored run contradicts itself and cannot be put together".to_string());
    catch_unwind(AssertUnwindSafe(restore)).unwrap_or_else(broken)
}

/// Versions of a workflow that its runs may have begun with.
type Versions = Vec<Arc<Compiled>>;
