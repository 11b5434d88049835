//! Rate limits of policies. A call that exceeds a limit is assigned a time of its own, so that waiting calls do not all
//! return at once.
//!
//! Each node admits its share of the calls that the policy allows.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use stepwell_core::time::Time;

/// Keys in memory, beyond which keys without an effect on the next call are dropped.
const MAX_KEYS: usize = 10_000;

/// At most `calls` calls per `millis` milliseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RateLimit {
    pub calls: f64,
    pub millis: f64,
}

#[derive(Default)]
pub struct RateLimits {
    /// By key: the theoretical arrival time of the next call, if all calls so far were evenly spaced (GCRA).
    next_arrivals: Mutex<HashMap<String, f64>>,
}

impl RateLimits {
    fn next_arrivals(&self) -> MutexGuard<'_, HashMap<String, f64>> {
        self.next_arrivals.lock().expect("nothing panics while it holds the limits")
    }

    /// Admits a call that cannot wait. Otherwise returns when it would be admitted, and reserves nothing.
    pub fn admit(&self, limits: Vec<(String, RateLimit)>, now: Time) -> Result<(), Time> {
        let mut arrivals = self.next_arrivals();
        let due = |(key, limit): &(String, RateLimit)| limit.after(arrivals.get(key).copied(), now).0;
        match limits.iter().map(due).max().filter(|due| *due > now) {
            Some(due) => Err(due),
            None => {
                limits.into_iter().for_each(|(key, limit)| {
                    reserve(&mut arrivals, key, limit, now);
                });
                Ok(())
            }
        }
    }

    /// Reserves a time for a call, now or later, and returns it.
    pub fn reserve(&self, key: String, limit: RateLimit, now: Time) -> Time {
        reserve(&mut self.next_arrivals(), key, limit, now)
    }
}

impl RateLimit {
    /// When a call may be made, and the arrival time of the next call if it is.
    fn after(self, next: Option<f64>, now: Time) -> (Time, f64) {
        let (at, gap) = (now.0 as f64, self.millis / self.calls);
        let due = next.unwrap_or(at).max(at);
        // The calls of a whole period may come in a burst. The first call is always admitted.
        let early = (self.millis - gap).max(0.0);
        (Time(((due - early).ceil() as i64).max(now.0)), due + gap)
    }
}

fn reserve(arrivals: &mut HashMap<String, f64>, key: String, limit: RateLimit, now: Time) -> Time {
    if arrivals.len() >= MAX_KEYS {
        arrivals.retain(|_, next| *next > now.0 as f64);
    }
    let (due, next) = limit.after(arrivals.get(&key).copied(), now);
    arrivals.insert(key, next);
    due
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_up_to_the_limit_is_admitted_and_the_rest_is_spaced() {
        let limits = RateLimits::default();
        let limit = RateLimit { calls: 3.0, millis: 3_000.0 };
        let reserve = |now: i64| limits.reserve("a".into(), limit, Time(now)).0;
        assert_eq!([reserve(0), reserve(0), reserve(0)], [0, 0, 0]);
        assert_eq!([reserve(0), reserve(0)], [1_000, 2_000]);
        assert_eq!(reserve(10_000), 10_000);
        assert_eq!(limits.reserve("b".into(), limit, Time(0)), Time(0));
    }

    #[test]
    fn a_share_of_less_than_one_call_admits_the_first() {
        let limits = RateLimits::default();
        let limit = RateLimit { calls: 1.0 / 3.0, millis: 1_000.0 };
        let reserve = |now: i64| limits.reserve("a".into(), limit, Time(now)).0;
        assert_eq!([reserve(0), reserve(0), reserve(9_000)], [0, 3_000, 9_000]);
    }

    #[test]
    fn a_call_that_cannot_wait_reserves_only_if_admitted() {
        let limits = RateLimits::default();
        let limit = RateLimit { calls: 1.0, millis: 1_000.0 };
        let admit = |keys: &[&str], now: i64| {
            limits.admit(keys.iter().map(|key| (key.to_string(), limit)).collect(), Time(now)).map_err(|due| due.0)
        };
        assert_eq!(admit(&["a"], 0), Ok(()));
        assert_eq!([admit(&["a", "b"], 10), admit(&["a", "b"], 20)], [Err(1_000), Err(1_000)]);
        assert_eq!([admit(&["b"], 30), admit(&["a"], 1_000)], [Ok(()), Ok(())]);
    }

    #[test]
    fn no_window_has_more_than_twice_the_limit() {
        let limits = RateLimits::default();
        let limit = RateLimit { calls: 5.0, millis: 1_000.0 };
        let mut made: Vec<i64> = (0..200).map(|n| limits.reserve("a".into(), limit, Time(n * 37)).0).collect();
        made.sort_unstable();
        for from in 0..40 {
            let window = from * 1_000..(from + 1) * 1_000;
            assert!(made.iter().filter(|at| window.contains(*at)).count() <= 10, "{made:?}");
        }
    }
}
