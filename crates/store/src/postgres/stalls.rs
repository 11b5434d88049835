//! Since when writes fail or wait for an answer: a database can answer reads and heartbeats while no commit comes
//! through, as with a frozen synchronous standby or a locked table.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A writer that failed and had nothing to do since then is not known to fail any more.
const FORGET: Duration = Duration::from_secs(15);

/// The writers of a store.
pub struct Stalls(Mutex<Vec<Writer>>);

#[derive(Clone, Copy, Default)]
struct Writer {
    /// When the first of the writes began that all failed, or that is still going on.
    since: Option<Instant>,
    /// When the last write failed, if none is going on.
    failed: Option<Instant>,
}

impl Stalls {
    pub fn new(writers: usize) -> Arc<Stalls> {
        Arc::new(Stalls(Mutex::new(vec![Writer::default(); writers])))
    }

    pub fn began(&self, writer: usize) {
        self.at(writer, |writer, now| writer.began(now));
    }

    /// A write ended; `there` if the database answered, whatever the answer.
    pub fn ended(&self, writer: usize, there: bool) {
        self.at(writer, |writer, now| writer.ended(now, there));
    }

    /// For how long the writer that is worst off has written nothing although it had to.
    pub fn longest(&self) -> Option<Duration> {
        let now = Instant::now();
        self.writers().iter().filter_map(|writer| writer.stalled(now)).max()
    }

    fn at(&self, writer: usize, change: impl FnOnce(&mut Writer, Instant)) {
        if let Some(writer) = self.writers().get_mut(writer) {
            change(writer, Instant::now());
        }
    }

    fn writers(&self) -> MutexGuard<'_, Vec<Writer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writer {
    fn began(&mut self, now: Instant) {
        if self.failed.take().is_some_and(|failed| now.duration_since(failed) > FORGET) {
            self.since = None;
        }
        self.since.get_or_insert(now);
    }

    fn ended(&mut self, now: Instant, there: bool) {
        match there {
            true => *self = Writer::default(),
            false => self.failed = Some(now),
        }
    }

    fn stalled(&self, now: Instant) -> Option<Duration> {
        let forgotten = self.failed.is_some_and(|failed| now.duration_since(failed) > FORGET);
        self.since.filter(|_| !forgotten).map(|since| now.duration_since(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_lasts_over_failed_writes_until_one_succeeds_or_is_long_ago() {
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let mut writer = Writer::default();
        assert_eq!(writer.stalled(at(0)), None);
        writer.began(at(0));
        assert_eq!(writer.stalled(at(4)), Some(Duration::from_secs(4)), "no answer yet");
        writer.ended(at(12), false);
        assert_eq!(writer.stalled(at(13)), Some(Duration::from_secs(13)));
        writer.began(at(14));
        assert_eq!(writer.stalled(at(15)), Some(Duration::from_secs(15)), "the next one also waits");
        writer.ended(at(26), false);
        assert_eq!(writer.stalled(at(42)), None, "nothing was tried for a while");
        writer.began(at(43));
        assert_eq!(writer.stalled(at(44)), Some(Duration::from_secs(1)));
        writer.ended(at(44), true);
        assert_eq!(writer.stalled(at(50)), None);
    }
}
