//! Retention: purging finished runs; sizes and consistency checks.

use super::state::State;
use crate::evidence::{Entry, RunEntry, Scan};
use crate::*;
use std::collections::BTreeMap;
use stepwell_core::time::Time;

/// Removes up to `limit` rows. The run's own row goes last, so an interrupted purge continues where it stopped.
pub fn purge(state: &mut State, before: Time, limit: u32) -> u64 {
    let over = state.to_purge.range(..=(before, RunId(i64::MAX)));
    let runs: Vec<RunId> = over.map(|&(_, run)| run).take(limit as usize).collect();
    let mut left = limit as usize;
    for run in runs {
        left -= purge_rows(state, run, left);
        if left == 0 {
            break;
        }
        state.set_purge(run, None);
        if let Some(gone) = state.runs.remove(&run) {
            state.public.remove(&gone.row.public);
            if state.open_descendants(run).next().is_none() {
                state.registry.counters.remove(&descendants(run));
            }
            state.definitions.remove_if_test(gone.row.definition);
        }
        left -= 1;
    }
    (limit as usize - left) as u64
}

/// Removes up to `limit` rows that belong to a run; returns how many were removed.
fn purge_rows(state: &mut State, id: RunId, limit: usize) -> usize {
    let mut left = limit;
    if let Some(run) = state.runs.get_mut(&id) {
        while left > 0
            && let Some(mut attempts) = run.steps.first_entry()
        {
            while left > 0 && attempts.get_mut().pop_first().is_some() {
                left -= 1;
            }
            if attempts.get().is_empty() {
                attempts.remove();
            }
        }
        while left > 0 && run.values.pop_first().is_some() {
            left -= 1;
        }
        while left > 0
            && let Some((_, log)) = run.log.pop_first()
        {
            state.feed.remove(&log.position);
            left -= 1;
        }
    }
    let gates: Vec<_> = state.gates.keys().filter(|(_, run, _)| *run == id).take(left).cloned().collect();
    for gate in gates {
        state.gates.remove(&gate);
        left -= 1;
    }
    for mail in state.mail.of_run(id).into_iter().take(left) {
        state.mail.remove(mail);
        left -= 1;
    }
    for notice in state.outbox.of_run(id).into_iter().take(left) {
        state.remove_notice_by_id(notice);
        left -= 1;
    }
    for name in state.unique_of_run.get(&id).cloned().unwrap_or_default().iter().take(left) {
        state.remove_unique(name);
        left -= 1;
    }
    limit - left
}

/// The tally of all rows, compared with itself.
pub fn evidence(state: &State, points: Vec<TrailPoint>) -> Evidence {
    let key = state.registry.key();
    let scan = |points| {
        let mut scan = Scan::new(key, points);
        for (id, run) in &state.runs {
            let (version, hash) = (run.version, run.hash);
            scan.add(RunEntry { run: *id, version, hash, erased: run.row.erased.is_some() }.added());
        }
        state.registry.records.values().for_each(|record| scan.add(Entry::record(record)));
        state.registry.audit.iter().for_each(|row| scan.audit(row.writer, &row.hash));
        scan
    };
    let tallies = scan(Vec::new()).tallies(0).into_iter().map(|(writer, tally)| (writer, tally.write(&key, writer)));
    let tallies: Vec<(i32, Vec<u8>)> = tallies.collect();
    scan(points).compare(true, &tallies)
}

/// Row counts under the table names of a database. Sizes in bytes are always zero.
pub fn stats(state: &State, count: bool) -> Stats {
    let of_runs = |count: fn(&super::state::Run) -> usize| state.runs.values().map(count).sum::<usize>();
    let rows = [
        ("workflow_definitions", state.definitions.len()),
        ("workflow_runs", state.runs.len()),
        ("workflow_step_runs", of_runs(|run| run.steps.values().map(BTreeMap::len).sum())),
        ("workflow_events", state.feed.len()),
        ("step_values", of_runs(|run| run.values.len())),
        ("work", state.work.len()),
        ("timers", state.timers.len()),
        ("mail", state.mail.len()),
        ("outbox", state.outbox.len()),
        ("unique_keys", state.unique.len()),
        ("gates", state.gates.len()),
        ("records", state.registry.records.len()),
        ("audit", state.registry.audit.len()),
    ];
    let rows = rows.into_iter().filter(|_| count).map(|(table, count)| (table.to_string(), count as u64));
    Stats { rows: rows.collect(), ready: state.work.ready() as u64, ..Stats::default() }
}

pub fn backlog(state: &State, now: Time) -> Backlog {
    let (mut ready, oldest_ready) = state.work.waiting();
    ready.sort_by_key(|(org, count)| (std::cmp::Reverse(*count), *org));
    let late = Time(now.0.saturating_sub(Backlog::OVERDUE.0 as i64));
    Backlog {
        ready,
        oldest_ready,
        unfinished: state.runs.values().filter(|run| run.row.finished.is_none()).count() as u64,
        overdue_timers: state.timers.due(late, Share::ALL, Backlog::MOST_TIMERS).len() as u64,
        purgeable: state.to_purge.range(..=(now, RunId(i64::MAX))).count() as u64,
    }
}

/// Checks that indexes match their rows.
pub fn integrity(state: &State) -> Vec<String> {
    let logs: usize = state.runs.values().map(|run| run.log.len()).sum();
    let purges = state.runs.values().filter(|run| run.purge.is_some()).count();
    let owned: usize = state.unique_of_run.values().map(|names| names.len()).sum();
    let checks = [
        ("work", state.work.is_consistent()),
        ("timers", state.timers.is_consistent()),
        ("mail", state.mail.is_consistent()),
        ("outbox", state.outbox.is_consistent() && state.outbox.len() == state.outbox_due.len()),
        ("unique_keys", owned == state.unique.len()),
        ("workflow_events", logs == state.feed.len()),
        ("workflow_runs", state.public.len() == state.runs.len() && purges == state.to_purge.len()),
    ];
    let faults = checks.into_iter().filter(|(_, sound)| !sound);
    faults.map(|(table, _)| format!("{table}: an index does not match its rows")).collect()
}
