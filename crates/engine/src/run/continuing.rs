//! Continues runs whose last transition left decisions for the next one, behind other runs.
//!
//! A run waits for its turn in memory. Its timer row is due some time later, so that another node, or this one after a
//! crash, continues the run if nothing happens here. The row is written with every such transition: while a node works on
//! the run, no other node sees it due.

use super::Runner;
use super::messages::Message;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};
use stepwell_store::RunId;
use tokio::sync::Semaphore;

/// Transitions of continued runs that are planned and written at a time. One, so that runs which never end their
/// decisions leave the other threads of a small machine to runs with little to do.
const TURNS: usize = 1;

pub struct Continuations {
    /// First come, first served: each run gets one transition, then waits behind the others.
    turns: Semaphore,
    waiting: Mutex<BTreeSet<RunId>>,
}

impl Default for Continuations {
    fn default() -> Continuations {
        Continuations { turns: Semaphore::new(TURNS), waiting: Mutex::default() }
    }
}

impl Continuations {
    fn waiting(&self) -> MutexGuard<'_, BTreeSet<RunId>> {
        self.waiting.lock().expect("nothing panics while it holds the waiting runs")
    }
}

/// Gives the run another transition when its turn comes. `key` is that of its timer.
pub fn queue(runner: &Arc<Runner>, run: RunId, key: String) {
    // A node that is stopping takes no new work: the row stays for the next one.
    if runner.cluster.is_draining() || !runner.continuations.waiting().insert(run) {
        runner.timers.forget(run, &key);
        return;
    }
    let runner = runner.clone();
    tokio::spawn(async move {
        let _turn = runner.continuations.turns.acquire().await;
        runner.continuations.waiting().remove(&run);
        // What went wrong is logged by the run's driver, and the row brings the run back.
        if runner.ask(run, Message::Timer { key: key.clone() }).await.is_err() {
            runner.timers.forget(run, &key);
        }
    });
}
