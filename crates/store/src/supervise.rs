//! Background tasks that must not be lost to a panic. Here, in the lowest crate that has tasks, because all crates above
//! have some too.

use futures_util::FutureExt;
use std::any::Any;
use std::collections::{BTreeSet, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// A task that panics more often than this within [`WINDOW`] is not restarted.
const MAX_RESTARTS: usize = 10;
const WINDOW: Duration = Duration::from_secs(600);
/// Pause before the first restart; doubled for each panic within the window.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Restarts background tasks that panic, and knows which are gone for good. Clones are the same one.
#[derive(Clone, Default)]
pub struct Supervisor {
    gone: Arc<Mutex<BTreeSet<Arc<str>>>>,
}

impl Supervisor {
    /// Starts a task that lasts until `begin`'s future ends. If it panics, it is begun again after a pause.
    pub fn spawn<F>(&self, name: impl Into<Arc<str>>, mut begin: impl FnMut() -> F + Send + 'static) -> JoinHandle<()>
    where
        F: Future<Output = ()> + Send,
    {
        let (supervisor, name) = (self.clone(), name.into());
        tokio::spawn(async move {
            let mut panics = Panics::default();
            while let Err(panic) = AssertUnwindSafe(async { begin().await }).catch_unwind().await {
                let why = panic_message(&*panic);
                metrics::counter!("stepwell_tasks_panicked_total", "task" => name.to_string()).increment(1);
                let Some(pause) = panics.pause(Instant::now()) else {
                    tracing::error!(task = %name, why, "a background task keeps panicking: it is not restarted");
                    supervisor.lock().insert(name);
                    return;
                };
                tracing::error!(task = %name, why, ?pause, "a background task panicked: it is restarted");
                tokio::time::sleep(pause).await;
            }
        })
    }

    /// The tasks that are not restarted any more. Only a restart of the process helps.
    pub fn gone(&self) -> Vec<Arc<str>> {
        self.lock().iter().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<Arc<str>>> {
        self.gone.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The panics of one task within the window.
#[derive(Default)]
struct Panics(VecDeque<Instant>);

impl Panics {
    /// The pause before the next restart. `None` if there were too many panics.
    fn pause(&mut self, now: Instant) -> Option<Duration> {
        self.0.push_back(now);
        while self.0.front().is_some_and(|first| now.duration_since(*first) > WINDOW) {
            self.0.pop_front();
        }
        let doublings = u32::try_from(self.0.len() - 1).unwrap_or(u32::MAX);
        let pause = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(doublings)).min(LONGEST_PAUSE);
        (self.0.len() <= MAX_RESTARTS).then_some(pause)
    }
}

/// The message of a panic.
pub fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_string());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without a message".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restarts_pause_longer_and_longer_and_end_after_too_many_panics() {
        let (mut panics, now) = (Panics::default(), Instant::now());
        let pauses: Vec<_> = std::iter::from_fn(|| panics.pause(now)).collect();
        assert_eq!(pauses.len(), MAX_RESTARTS);
        assert_eq!(pauses[..3], [1, 2, 4].map(|times| FIRST_PAUSE * times));
        assert_eq!(pauses.last(), Some(&LONGEST_PAUSE));
    }

    #[test]
    fn panics_that_are_far_apart_do_not_add_up() {
        let (mut panics, mut now) = (Panics::default(), Instant::now());
        for _ in 0..3 * MAX_RESTARTS {
            assert_eq!(panics.pause(now), Some(FIRST_PAUSE));
            now += WINDOW + Duration::from_secs(1);
        }
    }
}
