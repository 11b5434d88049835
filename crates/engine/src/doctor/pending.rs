//! What is to happen yet: timers, work, notices. Nothing of it may be left of a finished run, and something of it must
//! move an unfinished one on.

use super::Check;
use crate::error::Error;
use crate::run::children;
use crate::run::{ChildTask, child_key, timer_key};
use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use stepwell_core::event::{Timer, TimerKind};
use stepwell_core::graph::Graph;
use stepwell_core::run::{Phase, Run, RunStatus, StepState};
use stepwell_core::time::Time;
use stepwell_store::{LoadedRun, RunId, Share, Store, WorkKey};

/// Timers that are looked at. With more, it is not looked whether each run has its own.
const MOST_TIMERS: u32 = 4_000_000;
/// Rows of other kinds: those are few in any store that works.
const MOST: u32 = 10_000_000;
/// Steps told of which none has work.
const MOST_TOLD: usize = 20;

pub struct Pending {
    /// By run and a hash of the key. None if there are too many.
    pub timers: Option<BTreeMap<RunId, Vec<u64>>>,
    /// Attempts that some process had.
    work: HashSet<(RunId, WorkKey)>,
    busy: HashSet<RunId>,
    /// Attempts that are ready and that nobody had. The store does not say whose they are.
    ready: u64,
    notices: HashSet<(RunId, String)>,
    /// Running steps that were not found in `work`.
    searched: Vec<(String, String)>,
    searched_for: u64,
}

impl Pending {
    pub async fn read(store: &dyn Store) -> Result<Pending, Error> {
        let due = store.due(Time(i64::MAX), Share::ALL, MOST_TIMERS).await?;
        let mut timers: Option<BTreeMap<RunId, Vec<u64>>> = (due.len() < MOST_TIMERS as usize).then(BTreeMap::new);
        for timer in due {
            if let Some(timers) = &mut timers {
                timers.entry(timer.run).or_default().push(number(&timer.key));
            }
        }
        let mut claimed = store.orphans(MOST).await?;
        for row in store.nodes().await? {
            claimed.extend(store.held(row.node.id).await?);
        }
        let rows = store.stats(true).await?.rows;
        let all = rows.iter().find(|(table, _)| table == "work").map_or(0, |(_, rows)| *rows);
        let notices = store.outbox(Time(i64::MAX), MOST).await?;
        Ok(Pending {
            timers,
            busy: claimed.iter().map(|work| work.run).collect(),
            ready: all.saturating_sub(claimed.len() as u64),
            work: claimed.into_iter().map(|work| (work.run, work.key)).collect(),
            notices: notices.into_iter().map(|notice| (notice.run, notice.key)).collect(),
            searched: Vec::new(),
            searched_for: 0,
        })
    }

    /// What a finished run should not have any more.
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

    /// Why nothing will move the run on, and running steps whose work must be among what is ready.
    pub async fn stuck(
        &self,
        store: &dyn Store,
        stored: &LoadedRun,
        (graph, run): (&Graph, &Run),
    ) -> Result<(Vec<(Check, String)>, Vec<String>), Error> {
        let id = stored.row.id;
        let (mut why, mut unclaimed) = (Vec::new(), Vec::new());
        if run.status != RunStatus::Running {
            let waits = match &stored.group {
                Some(place) => store.first_queued(place).await?.is_some(),
                None => false,
            };
            if !waits {
                why.push("the run is queued, and there is no queue it is in".to_string());
            }
            return Ok((stuck(why), unclaimed));
        }
        if run.waiting_for(graph).is_empty() {
            why.push("the run is not finished and waits for nothing".to_string());
        }
        for (at, state) in run.steps(graph) {
            let path = run.path(graph, at);
            for kind in timers_of(state) {
                let timer = Timer { kind, at: Some(at), attempt: state.attempt };
                if !self.has_timer(id, &timer_key(graph, run, &timer)) {
                    why.push(format!("{path} has no timer to end what it waits for"));
                }
            }
            match state.phase {
                Phase::Running => {
                    let key = WorkKey { path: path.clone(), attempt: state.attempt };
                    if !self.work.contains(&(id, key)) {
                        unclaimed.push(path);
                    }
                }
                Phase::Child => why.extend(self.childless(store, id, (&path, state.attempt)).await?),
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
        timers.get(&run).is_some_and(|keys| keys.contains(&number(key)))
    }

    /// A step that waits for a child has one that will end, or has its mail, or is about to start it.
    async fn childless(
        &self,
        store: &dyn Store,
        run: RunId,
        (path, attempt): (&str, u32),
    ) -> Result<Option<String>, Error> {
        let key = child_key(ChildTask::Start, path, attempt);
        if self.notices.contains(&(run, key.clone())) {
            return Ok(None);
        }
        let child = store.keyed(children::SCOPE, &children::unique(run, path, attempt)).await?;
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
            Some(row) => format!("{path} waits for {}, which is finished and sent no word", row.public),
            None => format!("{path} waits for a child run that is not there and will not be started"),
        }))
    }

    pub fn unclaimed_steps(&mut self, run: &str, steps: Vec<String>) {
        self.searched_for += steps.len() as u64;
        let room = MOST_TOLD.saturating_sub(self.searched.len());
        self.searched.extend(steps.into_iter().take(room).map(|step| (run.to_string(), step)));
    }

    /// Running steps without work, if there are more of them than ready work could account for.
    pub fn unaccounted(&self) -> Vec<(String, String)> {
        if self.searched_for <= self.ready {
            return Vec::new();
        }
        let (steps, ready) = (self.searched_for, self.ready);
        let doubt = if ready == 0 {
            String::new()
        } else {
            format!(" (true of {} among {steps} such steps: {ready} have work)", steps - ready)
        };
        let say = |step: &str| format!("{step} is to run, and there is no work for it{doubt}");
        self.searched.iter().map(|(run, step)| (run.clone(), say(step))).collect()
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

fn number(key: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}
