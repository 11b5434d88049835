//! Opens the files left by a power cut, as the program would, and reports what is wrong with them.

use crate::random::Random;
use crate::recorder::At;
use crate::sample::{NODE, RunState, rival, state_after};
use crate::workload::{Acknowledged, Recorded};
use std::collections::BTreeMap;
use std::path::Path;
use stepwell_core::time::Time;
use stepwell_store::sqlite::SqliteStore;
use stepwell_store::*;

/// More than the number of rows in any table.
const ALL: u32 = 1_000_000;

#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// A commit was acknowledged but is missing.
    #[error("lost: {0}")]
    Lost(String),
    /// The data is not the result of any number of complete commits.
    #[error("broken: {0}")]
    Broken(String),
}

/// Checks the store in a directory after a cut at `at`.
pub async fn check(directory: &Path, recorded: &Recorded, at: At, random: &mut Random) -> Result<(), Fault> {
    let broken = |error: Error| Fault::Broken(error.to_string());
    let store = SqliteStore::open(directory).map_err(broken)?;
    is_sound(directory)?;
    let found = found(&store, recorded.stories.len()).await.map_err(broken)?;
    let promised = recorded.acknowledged.iter().filter(|answer| answer.at <= at);
    for answer in promised {
        is_kept(answer, &found)?;
    }
    for (run, found) in found.iter().enumerate() {
        is_whole(run, found, &recorded.stories[run])?;
    }
    is_usable(&store, recorded, &found, random).await
}

fn is_sound(directory: &Path) -> Result<(), Fault> {
    let check = || {
        let connection = rusqlite::Connection::open(directory.join("stepwell.db"))?;
        connection.pragma_query_value(None, "integrity_check", |row| row.get::<_, String>(0))
    };
    match check() {
        Ok(answer) if answer == "ok" => Ok(()),
        Ok(answer) => Err(Fault::Broken(answer)),
        Err(error) => Err(Fault::Broken(error.to_string())),
    }
}

/// A run as found in the store; version 0 if it does not exist.
struct Found {
    version: usize,
    state: RunState,
    positions: Vec<Position>,
    /// The versions of the log rows.
    versions: Vec<i64>,
}

async fn found(store: &SqliteStore, runs: usize) -> Result<Vec<Found>, Error> {
    let mut logs: BTreeMap<RunId, Vec<StoredLog>> = BTreeMap::new();
    for fed in store.feed(&Progress::default(), ALL).await? {
        logs.entry(fed.run).or_default().push(fed.log);
    }
    let mut work: BTreeMap<RunId, Vec<WorkKey>> = BTreeMap::new();
    for held in store.held(NODE).await? {
        work.entry(held.run).or_default().push(held.key);
    }
    let mut timers: BTreeMap<RunId, Vec<(String, Time)>> = BTreeMap::new();
    for timer in store.due(Time(i64::MAX), Share::ALL, ALL).await? {
        timers.entry(timer.run).or_default().push((timer.key, timer.due));
    }
    let mut notices: BTreeMap<RunId, Vec<String>> = BTreeMap::new();
    for notice in store.outbox(Time(i64::MAX), 0, ALL).await? {
        notices.entry(notice.run).or_default().push(notice.key);
    }
    let mut all = Vec::with_capacity(runs);
    for run in (0..runs).map(|run| RunId(run as i64)) {
        let loaded = store.load(run).await?;
        let log = match &loaded {
            Some(_) => logs.remove(&run).unwrap_or_default(),
            // The feed only returns log rows of existing runs.
            None => store.tail(run, Version(0), ALL).await?,
        };
        let mut state = RunState {
            work: work.remove(&run).unwrap_or_default(),
            timers: timers.remove(&run).unwrap_or_default(),
            notices: notices.remove(&run).unwrap_or_default(),
            log: log.iter().map(|log| log.row.clone()).collect(),
            ..RunState::default()
        };
        let version = loaded.as_ref().map_or(0, |loaded| loaded.version.0 as usize);
        if let Some(loaded) = loaded {
            state.status = loaded.row.status;
            state.state = loaded.state;
            state.hash = loaded.hash;
            state.steps = loaded.steps.into_iter().map(|step| (step.path.clone(), step)).collect();
            state.values = loaded.values.into_iter().map(|value| (value.id.0, value.payload)).collect();
        }
        let positions = log.iter().map(|log| log.position).collect();
        all.push(Found { version, state, positions, versions: log.iter().map(|log| log.version.0).collect() });
    }
    Ok(all)
}

fn is_kept(answer: &Acknowledged, found: &[Found]) -> Result<(), Fault> {
    let (found, version) = (&found[answer.run], answer.version.0 as usize);
    if found.version < version {
        return Err(Fault::Lost(format!("{answer:?}, but the run is at version {}", found.version)));
    }
    match found.positions.get(version - 1) {
        Some(position) if *position == answer.position => Ok(()),
        other => Err(Fault::Lost(format!("{answer:?}, but its log row is at {other:?}"))),
    }
}

/// Checks that the run is exactly the result of its first `version` commits: no gap, no partial commit, nothing later.
fn is_whole(run: usize, found: &Found, story: &[Commit]) -> Result<(), Fault> {
    let broken = |what: String| Err(Fault::Broken(format!("run {run} at version {}: {what}", found.version)));
    if !found.versions.iter().copied().eq(1..=found.version as i64) {
        return broken(format!("log rows {:?}", found.versions));
    }
    let mut previous = [0; 32];
    for (n, row) in found.state.log.iter().enumerate() {
        if row.hash != hash(&previous, row.at, &row.facts, &row.payloads) {
            return broken(format!("the hash of log row {} does not match the chain", n + 1));
        }
        previous = row.hash;
    }
    let expected = state_after(&story[..found.version]);
    if found.state != expected {
        return broken(format!("expected {expected:#?}\nfound {:#?}", found.state));
    }
    Ok(())
}

/// Checks that the store is usable: a run accepts its next commit, and a unique key still refuses a second run.
async fn is_usable(
    store: &SqliteStore,
    recorded: &Recorded,
    found: &[Found],
    random: &mut Random,
) -> Result<(), Fault> {
    let broken = |error: Error| Fault::Broken(error.to_string());
    let run = random.below(found.len());
    if let Some(next) = recorded.stories[run].get(found[run].version) {
        let answer = store.commit(vec![next.clone()]).await.map_err(broken)?.remove(0);
        if answer.is_err() {
            return Err(Fault::Broken(format!("the next commit of run {run} is refused: {answer:?}")));
        }
    }
    let keyed = (0..found.len()).filter(|run| found[*run].version > 0 && !recorded.stories[*run][0].unique.is_empty());
    let keyed: Vec<_> = keyed.collect();
    let rivals = keyed.iter().map(|run| rival(&recorded.stories[*run][0], (found.len() + run) as i64)).collect();
    let answers = store.commit(rivals).await.map_err(broken)?;
    for (run, answer) in keyed.into_iter().zip(answers) {
        if !matches!(&answer, Err(Refused::Duplicate { run: first, .. }) if first.0 == run as i64) {
            return Err(Fault::Broken(format!("the unique key of run {run} is not enforced: {answer:?}")));
        }
    }
    Ok(())
}
