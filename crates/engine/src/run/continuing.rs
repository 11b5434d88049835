//! Continues runs whose last transition left decisions for the next one, behind other runs.
//!
//! A run waits for its turn in memory. Its timer row is due some time later, so that another node, or this one after a
//! crash, continues the run if nothing happens here. The row is written with every such transition: while a node works
//! on the run, no other node sees it due.

use super::Runner;
use super::messages::Message;
use super::timers::FiredTimer;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Transitions of continued runs that are planned and written at a time. One, so that runs with many decisions leave
/// the other threads of a small machine to runs with few.
const TURNS: usize = 1;

/// First come, first served: each run gets one transition, then waits behind the others.
pub struct Continuations(Semaphore);

impl Default for Continuations {
    fn default() -> Continuations {
        Continuations(Semaphore::new(TURNS))
    }
}

/// Gives the run another transition when its turn comes.
pub fn queue(runner: &Arc<Runner>, timer: FiredTimer) {
    // A node that is stopping takes no new work: the row stays for the next one.
    if runner.cluster.is_draining() {
        return;
    }
    let runner = runner.clone();
    tokio::spawn(async move {
        let _turn = runner.continuations.0.acquire().await;
        // What went wrong is logged by the run's driver, and the row brings the run back.
        let _ = runner.ask(timer.run, Message::Timer { key: timer }).await;
    });
}
