//! The commits of the workload: the story of a run is all of its commits, generated in advance.
//!
//! Only this module knows the fields of a commit.

use crate::random::Random;
use std::collections::BTreeMap;
use stepwell_core::time::Time;
use stepwell_core::value::ValueId;
use stepwell_store::*;

pub const NODE: NodeId = NodeId(7);
const ORG: OrgId = OrgId(1);
/// From a payload that fits in a row to one that needs overflow pages.
const PAYLOAD: std::ops::Range<usize> = 20..6_000;
/// The number of steps that a run cycles through; returning to a step is its next attempt.
const STEPS: usize = 3;

/// The number of commits between two changes of the head.
const HEADS: usize = 4;
/// The number of pending notices.
const NOTICES: usize = 2;

/// Returns the commits of one run: the commit at `n` makes version `n + 1`.
pub fn story(run: i64, commits: usize, random: &mut Random) -> Vec<Commit> {
    let mut previous = [0; 32];
    let mut story = Vec::with_capacity(commits);
    for n in 0..commits {
        let commit = commit(run, n, previous, random);
        previous = commit.log.hash;
        story.push(commit);
    }
    story
}

/// Every commit changes every kind of row: a log row, a payload, the previous and this step, work, a timer, a notice.
fn commit(run: i64, n: usize, previous: [u8; 32], random: &mut Random) -> Commit {
    let at = Time(1_000 * run + n as i64);
    let facts = format!("[{{\"type\":\"sample\",\"n\":{n},\"salt\":{}}}]", random.next());
    let mut steps = vec![step(n, "running")];
    let mut work = Diff { put: vec![attempt(n)], remove: Vec::new() };
    if let Some(before) = n.checked_sub(1) {
        steps.push(step(before, "success"));
        work.remove.push(key(before));
    }
    let values = vec![ValueRow { id: ValueId(n as u32), payload: payload(random) }];
    let payloads = payloads(&values);
    Commit {
        run: RunId(run),
        expect: Version(n as i64),
        create: (n == 0).then(|| new_run(run)),
        auth: Auth { org: ORG, epoch: 1 },
        head: n.is_multiple_of(HEADS).then(|| head(n, at)),
        state: format!("{{\"salt\":{}}}", random.next()),
        log: LogRow { at, hash: hash(&previous, at, &facts, &payloads), facts, payloads },
        previous,
        steps,
        values,
        work,
        timers: Diff { put: vec![TimerRow { key: "next".into(), due: at }], remove: Vec::new() },
        mail: Vec::new(),
        read: Vec::new(),
        outbox: vec![Notice { key: notice(n), body: "{}".into(), due: at }],
        sent: n.checked_sub(NOTICES).map(notice).into_iter().collect(),
        unique: if n == 0 && run % 2 == 0 { vec![unique(run)] } else { Vec::new() },
        groups: Vec::new(),
        gates: Diff::default(),
        counted: Vec::new(),
        audit: Vec::new(),
    }
}

fn new_run(run: i64) -> NewRun {
    NewRun {
        public: format!("run_{run}"),
        org: ORG,
        created: Time(run),
        by: "ann".into(),
        acts_as: "ann".into(),
        labels: Vec::new(),
        test: false,
        secret: [3; 16],
        parent: None,
        group: None,
        most_open: None,
        most_descendants: None,
    }
}

fn head(n: usize, at: Time) -> Head {
    let status = if n.is_multiple_of(2 * HEADS) { "running" } else { "waiting" };
    Head { status: status.into(), definition: 1, started: Some(at), finished: None, purge: None }
}

fn notice(n: usize) -> String {
    format!("notice{n}")
}

fn key(n: usize) -> WorkKey {
    WorkKey { path: format!("step{}", n % STEPS), attempt: (n / STEPS) as u32 + 1 }
}

fn attempt(n: usize) -> Work {
    Work { key: key(n), org: ORG, kind: "tool".into(), ready: Time(n as i64), node: Some(NODE) }
}

fn step(n: usize, status: &str) -> StepRow {
    let WorkKey { path, attempt } = key(n);
    StepRow {
        path,
        attempt,
        status: status.into(),
        since: Time(n as i64),
        ended: None,
        input: Some(ValueId(n as u32)),
        output: None,
        state: format!("{{\"status\":\"{status}\",\"n\":{n}}}"),
    }
}

/// Mostly small, like real payloads.
fn payload(random: &mut Random) -> String {
    let longest = if random.percent(20) { PAYLOAD.end } else { PAYLOAD.end / 20 };
    let length = PAYLOAD.start + random.below(longest - PAYLOAD.start);
    let mut text = String::with_capacity(length + 20);
    while text.len() < length {
        text.push_str(&format!("{:016x}", random.next()));
    }
    format!("{{\"value\":\"{text}\"}}")
}

fn unique(run: i64) -> UniqueKey {
    UniqueKey { scope: "trigger".into(), key: format!("key-{run}"), digest: "d".into(), expires: None }
}

/// A run that must be refused once `first`, which has a unique key, is committed.
pub fn rival(first: &Commit, run: i64) -> Commit {
    let mut rival = commit(run, 0, [0; 32], &mut Random::new(0));
    rival.unique = first.unique.clone();
    rival
}

/// The expected state of a run after some of its commits, as a store returns it.
#[derive(Debug, PartialEq, Default)]
pub struct RunState {
    pub status: String,
    pub state: String,
    pub hash: [u8; 32],
    pub log: Vec<LogRow>,
    /// The newest attempt of each step.
    pub steps: BTreeMap<String, StepRow>,
    pub values: BTreeMap<u32, String>,
    pub work: Vec<WorkKey>,
    pub timers: Vec<(String, Time)>,
    /// Keys in write order.
    pub notices: Vec<String>,
}

pub fn state_after(story: &[Commit]) -> RunState {
    let mut state = RunState::default();
    for commit in story {
        if let Some(head) = &commit.head {
            state.status.clone_from(&head.status);
        }
        state.state.clone_from(&commit.state);
        state.hash = commit.log.hash;
        state.log.push(commit.log.clone());
        state.values.extend(commit.values.iter().map(|value| (value.id.0, value.payload.clone())));
        for step in &commit.steps {
            let newest = state.steps.entry(step.path.clone()).or_insert_with(|| step.clone());
            if newest.attempt <= step.attempt {
                newest.clone_from(step);
            }
        }
        state.work.retain(|key| !commit.work.remove.contains(key));
        state.work.extend(commit.work.put.iter().map(|work| work.key.clone()));
        state.timers = commit.timers.put.iter().map(|timer| (timer.key.clone(), timer.due)).collect();
        state.notices.retain(|key| !commit.sent.contains(key));
        state.notices.extend(commit.outbox.iter().map(|notice| notice.key.clone()));
    }
    state
}
