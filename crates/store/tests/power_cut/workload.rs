//! The recorded workload: several tasks commit concurrently to a store that is closed and reopened in between.

use crate::random::Random;
use crate::recorder::{At, Recorder, Recording};
use crate::sample::story;
use crate::vfs;
use std::sync::Arc;
use stepwell_store::sqlite::SqliteStore;
use stepwell_store::*;
use tempfile::TempDir;

const TASKS: usize = 8;
const RUNS_PER_TASK: usize = 14;
const COMMITS_PER_RUN: std::ops::Range<usize> = 5..35;
/// The number of runs that a task works on in turn.
const AT_A_TIME: usize = 4;
/// The percentage of a task's calls made before the store is closed and reopened.
const BEFORE_REOPENING: usize = 10;

/// A recording, the commits that were made, and their acknowledgements.
pub struct Recorded {
    pub recording: Recording,
    /// Indexed by run.
    pub stories: Vec<Vec<Commit>>,
    pub acknowledged: Vec<Acknowledged>,
}

/// The acknowledgement of one commit.
#[derive(Clone, Copy, Debug)]
pub struct Acknowledged {
    pub run: usize,
    pub version: Version,
    pub position: Position,
    /// When the commit was acknowledged: a cut at this moment or later must not lose it.
    pub at: At,
}

/// Commits made in one call, by run and index in its story. Each call waits for the previous one.
type Call = Vec<(usize, usize)>;

pub fn record(seed: u64) -> Recorded {
    let mut random = Random::fork(seed, 1);
    let length = |random: &mut Random| COMMITS_PER_RUN.start + random.below(COMMITS_PER_RUN.len());
    let lengths: Vec<_> = (0..TASKS * RUNS_PER_TASK).map(|_| length(&mut random)).collect();
    let generated = lengths.into_iter().zip(0..).map(|(length, run)| story(run, length, &mut random));
    let stories: Vec<_> = generated.collect();
    let scripts: Vec<_> = (0..TASKS).map(|task| script(task, &stories, &mut random)).collect();

    let directory = TempDir::new().unwrap();
    let recorder = Arc::new(Recorder::new(directory.path()));
    vfs::watch(recorder.clone());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).build().unwrap();
    let stories = Arc::new(stories);
    let mut acknowledged = Vec::new();
    let halves = scripts.into_iter().map(|mut script| {
        let rest = script.split_off(script.len() * BEFORE_REOPENING / 100);
        (script, rest)
    });
    let (before, after): (Vec<_>, Vec<_>) = halves.unzip();
    for scripts in [before, after] {
        let store = Arc::new(SqliteStore::open(directory.path()).unwrap());
        let tasks = scripts.into_iter().map(|script| perform(store.clone(), recorder.clone(), stories.clone(), script));
        let tasks: Vec<_> = tasks.map(|task| runtime.spawn(task)).collect();
        for task in tasks {
            acknowledged.extend(runtime.block_on(task).unwrap());
        }
        drop(store);
        recorder.wait_until_closed();
    }
    let stories = Arc::into_inner(stories).unwrap();
    Recorded { recording: recorder.take(), stories, acknowledged }
}

/// The calls of one task, in order.
fn script(task: usize, stories: &[Vec<Commit>], random: &mut Random) -> Vec<Call> {
    let mut waiting: Vec<_> = (0..RUNS_PER_TASK).map(|n| (n * TASKS + task, 0)).collect();
    let mut script = Vec::new();
    while !waiting.is_empty() {
        let together = if random.percent(20) { 1 + random.below(3) } else { 1 };
        let first = random.below(waiting.len().min(AT_A_TIME));
        let mut call = Call::new();
        for (run, next) in waiting.iter_mut().skip(first).take(together) {
            call.push((*run, *next));
            *next += 1;
        }
        waiting.retain(|(run, next)| *next < stories[*run].len());
        script.push(call);
    }
    script
}

async fn perform(
    store: Arc<SqliteStore>,
    recorder: Arc<Recorder>,
    stories: Arc<Vec<Vec<Commit>>>,
    script: Vec<Call>,
) -> Vec<Acknowledged> {
    let mut acknowledged = Vec::new();
    for call in script {
        let batch = call.iter().map(|(run, n)| stories[*run][*n].clone()).collect();
        let answers = store.commit(batch).await.unwrap();
        let at = recorder.now();
        for ((run, n), answer) in call.into_iter().zip(answers) {
            let (version, position) = (Version(n as i64 + 1), answer.unwrap());
            acknowledged.push(Acknowledged { run, version, position, at });
            // An occasional reader, which prevents the WAL from being restarted.
            if n % 8 == 7 {
                let loaded = store.load(RunId(run as i64)).await.unwrap().unwrap();
                assert_eq!(loaded.version, version);
            }
        }
    }
    acknowledged
}
