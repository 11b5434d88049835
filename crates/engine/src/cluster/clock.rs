//! Clocks. Code below the engine takes time as an argument.

use std::sync::Arc;
use stepwell_core::time::Time;
use stepwell_store::Store;

/// A source of the current time. Waits use tokio's clock, so that a paused runtime advances both together.
pub trait Clock: Send + Sync {
    fn now(&self) -> Time;
}

/// The clock of the machine.
#[derive(Clone, Copy, Default, Debug)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Time {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        // A clock set before 1970 reads as 1970.
        Time(since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX)))
    }
}

/// A virtual clock: it starts at `start` and follows tokio's clock, which a test can pause and advance.
#[derive(Clone, Copy, Debug)]
pub struct TokioClock {
    start: Time,
    since: tokio::time::Instant,
}

impl TokioClock {
    pub fn starting_at(start: Time) -> TokioClock {
        TokioClock { start, since: tokio::time::Instant::now() }
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Time {
        Time(self.start.0 + self.since.elapsed().as_millis() as i64)
    }
}

/// The time of a shared store, because the clocks of the machines that use it differ.
pub struct SharedClock {
    clock: Arc<dyn Clock>,
    store: Arc<dyn Store>,
}

impl SharedClock {
    pub fn new(clock: Arc<dyn Clock>, store: Arc<dyn Store>) -> SharedClock {
        SharedClock { clock, store }
    }
}

impl Clock for SharedClock {
    fn now(&self) -> Time {
        Time(self.clock.now().0 + self.store.ahead())
    }
}
