//! What must hold at the end, and the report when it does not.

use crate::past::{Past, Story};
use crate::sim::Sim;
use crate::workflows::{ALL, SHORT_RETENTION};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::sync::Arc;
use stepwell_core::definition::Definition;
use stepwell_core::graph::Graph;
use stepwell_core::run::{Phase, Run, StoredFact};
use stepwell_core::simulate::EPOCH;
use stepwell_core::time::{Millis, Time};
use stepwell_engine::restore;
use stepwell_store::*;

/// How long after its parent (or after the noise) a child may still be under way.
const GRACE: Millis = Millis(20_000);
/// Within so many polls there is a purge.
pub const PURGE_POLLS: u32 = 13;

thread_local! {
    static COMPILED: RefCell<HashMap<String, Arc<Definition>>> = RefCell::default();
}

async fn definition(disk: &dyn Store, id: i64) -> Option<(DefinitionRow, Arc<Definition>)> {
    let row = disk.definition(id).await.unwrap()?;
    let known = COMPILED.with_borrow(|known| known.get(&row.source).cloned());
    let definition = known.unwrap_or_else(|| {
        let read = stepwell_formats::read(row.source.as_bytes(), Some("sim.yaml")).unwrap();
        let read = Arc::new(read);
        COMPILED.with_borrow_mut(|known| known.insert(row.source.clone(), read.clone()));
        read
    });
    Some((row, definition))
}

/// A run starts: the limit allowed it, and no run that queued longer was passed over.
pub fn place_taken(sim: &Sim, past: &Past, commit: &Commit) -> Option<String> {
    let story = past.runs.get(&commit.run)?;
    let place = story.place.as_ref()?;
    let limit = limit_of(sim, story)?;
    let others = past.runs.values().filter(|other| other.place.as_ref() == Some(place) && other.id != story.id);
    let (mut busy, mut passed) = (0, false);
    for other in others {
        busy += usize::from(matches!(other.status.as_str(), "running" | "paused"));
        passed |= other.status == "queued" && other.id < story.id;
    }
    if busy >= limit {
        let runs = past.runs.values().filter(|other| other.place.as_ref() == Some(place)).map(tell).collect::<String>();
        return Some(format!("{} starts although {busy} are under way of at most {limit}\n{runs}", story.public));
    }
    passed.then(|| format!("{} starts before an older run of its queue", story.public))
}

fn limit_of(sim: &Sim, story: &Story) -> Option<usize> {
    use futures_util::FutureExt;
    let row = sim.disk.definition(story.first).now_or_never()?.ok()??;
    ALL.iter().find(|workflow| workflow.name == row.name)?.limit
}

/// Some runs are not over, or some clients still wait. Says why.
pub async fn stuck(sim: &Arc<Sim>) {
    let open: Vec<String> = sim.opened();
    if !open.is_empty() {
        let past = sim.past();
        let watched = past.runs.values().filter(|story| open.iter().any(|open| open.contains(&story.public)));
        let told = watched.map(tell).collect::<String>();
        sim.breaks(format!("never answered: {}\n{told}", open.join(", ")));
    }
    let runs: Vec<RunId> = sim.past().runs.values().filter(|story| !story.is_over()).map(|story| story.id).collect();
    for id in runs {
        let why = match loaded(sim, id).await {
            Some((run, definition, _)) => format!("{:?}", run.waiting_for(&definition.graph)),
            None => "it is not on disk".into(),
        };
        let told = sim.past().runs.get(&id).map(tell).unwrap_or_default();
        sim.breaks(format!("run {} is never over: {why}\n{told}", id.0));
    }
}

/// A run's log in lines.
pub fn tell(story: &Story) -> String {
    let mut text = format!(
        "    {} (number {}) {} input {} work {:?} timers {:?}\n",
        story.public, story.id.0, story.status, story.input, story.work, story.timers
    );
    for (at, fact) in &story.log {
        let fact = serde_json::to_string(fact).unwrap();
        let _ = writeln!(text, "    {:>8} {fact}", at.0 - EPOCH.0);
    }
    text
}

/// A run as it is on disk.
pub async fn loaded(sim: &Sim, id: RunId) -> Option<(Run, Arc<Definition>, LoadedRun)> {
    let stored = sim.disk.load(id).await.unwrap()?;
    let (_, definition) = definition(&sim.disk, stored.row.definition).await?;
    let run = restore(&definition.graph, &stored).unwrap();
    Some((run, definition, stored))
}

pub async fn all(sim: &Arc<Sim>) {
    let mut faults = Vec::new();
    nothing_is_left(sim, &mut faults).await;
    let ids: Vec<RunId> = sim.past().runs.keys().copied().collect();
    for id in ids {
        let before = faults.len();
        one(sim, id, &mut faults).await;
        if faults.len() > before {
            faults.extend(sim.past().runs.get(&id).map(tell));
        }
    }
    keys(sim, &sim.past(), &mut faults);
    executions(sim, &mut faults);
    families(sim, &mut faults);
    faults.into_iter().for_each(|fault| sim.breaks(fault));
}

/// Every run is over: no one waits, works, or holds a place.
async fn nothing_is_left(sim: &Sim, faults: &mut Vec<String>) {
    let stats = sim.disk.stats(true).await.unwrap();
    for (table, rows) in stats.rows {
        if ["work", "timers", "mail", "outbox"].contains(&table.as_str()) && rows > 0 {
            let mailed = sim.disk.mailed(None, 10).await.unwrap();
            let notices = sim.disk.outbox(Time(i64::MAX), 0, 10).await.unwrap();
            let timers = sim.disk.due(Time(i64::MAX), Share::ALL, 10).await.unwrap();
            faults.push(format!("{rows} rows of {table} are left: {mailed:?} {notices:?} {timers:?}"));
        }
    }
    faults.extend(sim.disk.integrity().await.unwrap());
    let queued = sim.disk.queued(None, 10).await.unwrap();
    if !queued.is_empty() {
        faults.push(format!("runs that are over queue: {queued:?}"));
    }
    let places: Vec<String> = sim.past().runs.values().filter_map(|story| story.place.clone()).collect();
    for place in places {
        if let Some(holder) = sim.disk.holder(&place).await.unwrap() {
            faults.push(format!("run {} is over and holds the place {place}", holder.0));
        }
    }
}

/// The log is whole, and folding it gives the rows.
async fn one(sim: &Sim, id: RunId, faults: &mut Vec<String>) {
    let (public, version, first, status) = {
        let past = sim.past();
        let story = &past.runs[&id];
        (story.public.clone(), story.version, story.first, story.status.clone())
    };
    let Some((run, on, stored)) = loaded(sim, id).await else {
        let source = definition(&sim.disk, first).await.map(|(row, _)| row.source).unwrap_or_default();
        if !source.contains(SHORT_RETENTION) {
            faults.push(format!("{public} is gone"));
        }
        sim.saw("a run was purged");
        return;
    };
    faults.extend(kept_too_long(sim, id).await);
    // Only the digests of its payloads are left.
    if stored.row.erased.is_some() {
        return;
    }
    if !run.status.is_terminal() || stored.row.status != run.status.name() || status != stored.row.status {
        faults
            .push(format!("{public} is {:?}, its row says {} and its commits {status}", run.status, stored.row.status));
    }
    let mut previous = Origin::of(&stored.row, first).hash();
    let mut facts: Vec<(Time, StoredFact)> = Vec::new();
    let key = sim.disk.chain_key();
    let log = sim.disk.tail(id, Version(0), u32::MAX).await.unwrap();
    for (n, row) in log.iter().enumerate() {
        if row.version.0 != n as i64 + 1
            || row.row.hash != key.seal(hash(&previous, row.row.at, &row.row.facts, &row.row.payloads))
        {
            faults.push(format!("row {n} of the log of {public} is not what comes next"));
        }
        previous = row.row.hash;
        let stored: Vec<StoredFact> = serde_json::from_str(&row.row.facts).unwrap();
        facts.extend(stored.into_iter().map(|fact| (row.row.at, fact)));
    }
    if (stored.version.0, stored.hash) != (version, previous) || log.len() as i64 != version {
        faults.push(format!(
            "{public} is at version {} with {} rows, and had {version} commits",
            stored.version.0,
            log.len()
        ));
    }
    let Some((begun, definition_then)) = definition(&sim.disk, first).await else { return };
    let mut versions: BTreeMap<u32, Arc<Definition>> = BTreeMap::new();
    for number in 1..100 {
        let Some((row, definition)) = definition(&sim.disk, number).await else { break };
        if row.workflow == begun.workflow {
            versions.insert(row.version, definition);
        }
    }
    let mut folded = Run::new(run.id.clone(), run.seed, run.max_duration);
    let at = |version: u32| versions.get(&version).map(|definition| &definition.graph);
    if let Err(error) = folded.replay(&definition_then.graph, facts, &at) {
        faults.push(format!("the log of {public} cannot be folded: {error}"));
        return;
    }
    folded.values = run.values.clone();
    let (rows, fold) = (rows(&run, &on.graph), rows(&folded, &on.graph));
    if rows != fold {
        faults.push(format!("folding the log of {public} gives another run:\nrows {rows:?}\nfold {fold:?}"));
    }
}

/// A run whose retention is over is removed by the next purge. Without faults there are no polls, and no purge.
async fn kept_too_long(sim: &Sim, id: RunId) -> Option<String> {
    let (public, on, ended) = {
        let past = sim.past();
        let story = &past.runs[&id];
        (story.public.clone(), story.definition, story.ended?)
    };
    let (row, _) = definition(&sim.disk, on).await?;
    let purges = Millis((sim.mood.poll * PURGE_POLLS).as_millis() as u64);
    let late = ended + Millis::from_secs(15) + purges < sim.now();
    let kept = row.source.contains(SHORT_RETENTION) && sim.mood.storm > 0 && late;
    kept.then(|| format!("{public} is kept after its retention"))
}

/// Everything about a run that is not numbered by memory.
fn rows(run: &Run, graph: &Graph) -> (Value, BTreeMap<String, Value>) {
    let snapshot = run.snapshot(graph);
    let steps = snapshot.steps.iter().map(|row| (row.path.clone(), serde_json::to_value(row).unwrap()));
    let ended = snapshot.instances.iter();
    let ended = ended.map(|row| (format!("{}[{}]", row.path, row.index), serde_json::to_value(row).unwrap()));
    let active = run.steps(graph).any(|(_, state)| matches!(state.phase, Phase::Running));
    let mut head = serde_json::to_value(run.head()).unwrap();
    head["active"] = active.into();
    (head, steps.chain(ended).collect())
}

/// Whether the time of the first run was over before the second began.
fn was_removed(sim: &Sim, first: &Story, second: &Story) -> bool {
    use futures_util::FutureExt;
    let row = sim.disk.definition(first.definition).now_or_never().and_then(Result::ok).flatten();
    let short = row.is_some_and(|row| row.source.contains(SHORT_RETENTION));
    let begun = second.log.first().map(|(at, _)| *at);
    let over = first.ended.map(|ended| ended + Millis::from_secs(15));
    short && over.zip(begun).is_some_and(|(over, begun)| over <= begun)
}

/// The same key never makes two runs, unless the first was removed: a run takes its key with it.
fn keys(sim: &Sim, past: &Past, faults: &mut Vec<String>) {
    let mut by_tag: BTreeMap<String, Vec<&Story>> = BTreeMap::new();
    for story in past.runs.values().filter(|story| story.parent.is_none() && story.input["keyed"] == true) {
        by_tag.entry(story.input["tag"].to_string()).or_default().push(story);
    }
    for (tag, mut runs) in by_tag.into_iter().filter(|(_, runs)| runs.len() > 1) {
        runs.sort_by_key(|story| story.id);
        if runs.windows(2).all(|pair| was_removed(sim, pair[0], pair[1])) {
            continue;
        }
        let runs: Vec<&str> = runs.iter().map(|story| story.public.as_str()).collect();
        faults.push(format!("the key {tag} made several runs: {runs:?}"));
    }
}

/// What may be called once was called once.
fn executions(sim: &Sim, faults: &mut Vec<String>) {
    let ledger = sim.ledger();
    let mut by_key: BTreeMap<(&str, &str, &str), u64> = BTreeMap::new();
    for ((run, path, _), execution) in &ledger.executions {
        *by_key.entry((run, path, &execution.key)).or_default() += 1;
    }
    for ((run, path, key), times) in by_key {
        let asked = ledger.asked_again.get(&(run.to_string(), path.to_string())).copied().unwrap_or_default();
        if path.contains("once") && times > 1 + asked {
            faults.push(format!("{path} of {run} may be called once and was called {times} times under {key}"));
        }
    }
}

/// A child does not outlive its parent for long, and a tree does not outgrow its limit.
fn families(sim: &Sim, faults: &mut Vec<String>) {
    let past = sim.past();
    let calm = past.calm;
    let mut by_root: BTreeMap<RunId, u32> = BTreeMap::new();
    for parent in past.runs.values().filter_map(|story| story.parent.as_ref()) {
        *by_root.entry(parent.root).or_default() += 1;
    }
    for (root, count) in by_root.into_iter().filter(|(_, count)| *count > sim.mood.descendants) {
        faults.push(format!("run {} has {count} descendants: more than {}", root.0, sim.mood.descendants));
    }
    for child in past.runs.values() {
        let Some(parent) = child.parent.as_ref().and_then(|parent| past.runs.get(&parent.run)) else { continue };
        let (Some(ended), Some(until)) = (child.ended, parent.ended) else { continue };
        // A child that a client took up again has its own life.
        if child.generation == 0 && ended > until.max(calm) + GRACE {
            faults.push(format!("{} goes on long after its parent\n{}{}", child.public, tell(child), tell(parent)));
        }
    }
}
