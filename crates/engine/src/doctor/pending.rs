//! Timers, work and notices. A finished run must have none, and an unfinished run must have one that moves it on.

use super::{Check, RunState};
use crate::error::Error;
use crate::run::children;
use crate::run::{ChildTask, child_key, timer_key};
use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use stepwell_core::event::{Timer, TimerKind};
use stepwell_core::run::{Phase, RunStatus, StepState};
use stepwell_core::time::Time;
use stepwell_store::{LoadedRun, RunId, Share, Store, WorkKey};

/// The most timers that are read. If there are more, the timers of runs are not checked.
const MOST_TIMERS: u32 = 4_000_000;
/// The most rows of other kinds. A working store has few.
const MOST: u32 = 10_000_000;
/// Steps without work that are reported.
const MOST_REPORTED: usize = 20;

pub struct Pending {
    /// Hashes of timer keys by run. `None` if there are too many timers.
    pub timers: Option<BTreeMap<RunId, Vec<u64>>>,
    /// Claimed attempts.
    work: HashSet<(RunId, WorkKey)>,
    /// Runs with claimed attempts.
    busy: HashSet<RunId>,
    /// The number of attempts that are ready and not claimed. The store does not list their runs.
    ready: u64,
    notices: HashSet<(RunId, String)>,
    /// Running steps without claimed work: runs and paths. Bounded.
    unclaimed: Vec<(String, String)>,
    /// The number of all such steps.
    unclaimed_count: u64,
}

impl Pending {
    pub async fn read(store: &dyn Store) -> Result<Pending, Error> {
        let due = store.due(Time(i64::MAX), Share::ALL, MOST_TIMERS).await?;
        let mut timers: Option<BTreeMap<RunId, Vec<u64>>> = (due.len() < MOST_TIMERS as usize).then(BTreeMap::new);
        for timer in due {
            if let Some(timers) = &mut timers {
                timers.entry(timer.run).or_default().push(hashed(&timer.key));
            }
        }
        let mut claimed = store.orphans(None, MOST).await?;
        for row in store.nodes().await? {
            claimed.extend(store.held(row.node.id).await?);
        }
        let rows = store.stats(true).await?.rows;
        let all = rows.iter().find(|(table, _)| table == "work").map_or(0, |(_, rows)| *rows);
        let notices = store.outbox(Time(i64::MAX), 0, MOST).await?;
        Ok(Pending {
            timers,
            busy: claimed.iter().map(|work| work.run).collect(),
            ready: all.saturating_sub(claimed.len() as u64),
            work: claimed.into_iter().map(|work| (work.run, work.key)).collect(),
            notices: notices.into_iter().map(|notice| (notice.run, notice.key)).collect(),
            unclaimed: Vec::new(),
            unclaimed_count: 0,
        })
    }

    /// The timers and work that a finished run still has.
    pub fn leftover(&self, run: RunId) -> Vec<(Check, String)> {
        let timers = self.timers.as_ref().and_then(|timers| timers.get(&run)).map_or(0, Vec::len);
        let mut found = Vec::new();
        if timers > 0 {
            found.push((Check::Leftover, format!("the run is finished and has {timers} timers left")));
        }
        if self.busy.contains(&run) {
            found.push((Check::Leftover, "the run is finished and has work left".into()));
        }
        found
    }

    /// The reasons why an unfinished run is stuck, and its running steps without claimed work. The work of those steps
    /// must be ready.
    pub async fn stuck(
        &self,
        store: &dyn Store,
        stored: &LoadedRun,
        state: RunState<'_>,
    ) -> Result<(Vec<(Check, String)>, Vec<String>), Error> {
        let RunState { graph, run } = state;
        let id = stored.row.id;
        let (mut why, mut unclaimed) = (Vec::new(), Vec::new());
        if run.status == RunStatus::Scheduled {
            let begin = Timer { kind: TimerKind::Begin, at: None, attempt: run.generation };
            if !self.has_timer(id, &timer_key(graph, run, &begin)) {
                why.push("the run is scheduled, but has no timer that begins it".to_string());
            }
            return Ok((stuck(why), unclaimed));
        }
        if run.status != RunStatus::Running {
            let waits = match &stored.group {
                Some(group) => store.first_queued(group).await?.is_some(),
                None => false,
            };
            if !waits {
                why.push("the run is queued, but is in no queue".to_string());
            }
            return Ok((stuck(why), unclaimed));
        }
        if run.waiting_for(graph).is_empty() {
            why.push("the run is not finished, but waits for nothing".to_string());
        }
        let continuation = Timer { kind: TimerKind::Continue, at: None, attempt: run.generation };
        if run.has_decisions_left() && !self.has_timer(id, &timer_key(graph, run, &continuation)) {
            why.push("the run has decisions left, but no timer that continues it".to_string());
        }
        for (at, state) in run.steps(graph) {
            let path = run.path(graph, at);
            for kind in timers_of(state) {
                let timer = Timer { kind, at: Some(at), attempt: state.attempt };
                if !self.has_timer(id, &timer_key(graph, run, &timer)) {
                    why.push(format!("{path} has no timer that ends its wait"));
                }
            }
            match state.phase {
                Phase::Running => {
                    let key = WorkKey { path: path.clone(), attempt: state.attempt };
                    if !self.work.contains(&(id, key)) {
                        unclaimed.push(path);
                    }
                }
                Phase::Child => why.extend(self.without_child(store, id, &path, state.attempt).await?),
                Phase::Idle
                | Phase::Backoff
                | Phase::Sleeping
                | Phase::Webhook
                | Phase::Gate
                | Phase::Unsure
                | Phase::Open
                | Phase::Done(_) => {}
            }
        }
        Ok((stuck(why), unclaimed))
    }

    fn has_timer(&self, run: RunId, key: &str) -> bool {
        let Some(timers) = &self.timers else { return true };
        timers.get(&run).is_some_and(|keys| keys.contains(&hashed(key)))
    }

    /// The reason why a step that waits for a child run is stuck. `None` if the child is unfinished, has sent its
    /// result, or is about to start.
    async fn without_child(
        &self,
        store: &dyn Store,
        run: RunId,
        path: &str,
        attempt: u32,
    ) -> Result<Option<String>, Error> {
        let key = child_key(ChildTask::Start, path, attempt);
        if self.notices.contains(&(run, key.clone())) {
            return Ok(None);
        }
        let child = store.keyed(children::SCOPE, &children::unique(run, path, attempt), Time(i64::MAX)).await?;
        let row = match child {
            Some(child) => store.run(child).await?,
            None => None,
        };
        if row.as_ref().is_some_and(|row| row.finished.is_none()) {
            return Ok(None);
        }
        if store.mail(run).await?.iter().any(|mail| mail.key == key) {
            return Ok(None);
        }
        Ok(Some(match row {
            Some(row) => format!("{path} waits for {}, which is finished but did not send its result", row.public),
            None => format!("{path} waits for a child run that does not exist and will not be started"),
        }))
    }

    /// Records the running steps of a run that have no claimed work.
    pub fn add_unclaimed(&mut self, run: &str, steps: Vec<String>) {
        self.unclaimed_count += steps.len() as u64;
        let room = MOST_REPORTED.saturating_sub(self.unclaimed.len());
        self.unclaimed.extend(steps.into_iter().take(room).map(|step| (run.to_string(), step)));
    }

    /// Running steps without work, if there are more unclaimed steps than ready attempts.
    pub fn unaccounted(&self) -> Vec<(String, String)> {
        if self.unclaimed_count <= self.ready {
            return Vec::new();
        }
        let (steps, ready) = (self.unclaimed_count, self.ready);
        let note = if ready == 0 {
            String::new()
        } else {
            format!(" (true for {} of {steps} such steps: {ready} have work)", steps - ready)
        };
        let message = |step: &str| format!("{step} is to run, and there is no work for it{note}");
        self.unclaimed.iter().map(|(run, step)| (run.clone(), message(step))).collect()
    }
}

fn stuck(why: Vec<String>) -> Vec<(Check, String)> {
    why.into_iter().map(|message| (Check::Stuck, message)).collect()
}

/// The timers a step must have in its phase.
fn timers_of(state: &StepState) -> Vec<TimerKind> {
    let main = match state.phase {
        Phase::Sleeping => Some(TimerKind::Wake),
        Phase::Backoff => Some(TimerKind::Retry),
        Phase::Webhook | Phase::Gate | Phase::Child => Some(TimerKind::Timeout),
        Phase::Idle | Phase::Running | Phase::Unsure | Phase::Open | Phase::Done(_) => None,
    };
    let escalates = state.phase == Phase::Gate
        && state.more.as_ref().is_some_and(|more| more.escalate.is_some() && !more.escalated);
    main.filter(|_| state.due.is_some()).into_iter().chain(escalates.then_some(TimerKind::Escalate)).collect()
}

fn hashed(key: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}
