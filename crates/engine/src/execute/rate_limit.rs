//! Rate limits of policies. A call that comes too early is given a time of its own, so that waiting calls do not all come
//! back at once.
//!
//! Each node admits its share of the calls that the policy allows.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use stepwell_core::time::Time;

/// Sorts of calls that are remembered. Those whose pace is long over are forgotten.
const MOST: usize = 10_000;

/// So many calls in so many milliseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RateLimit {
    pub calls: f64,
    pub millis: f64,
}

#[derive(Default)]
pub struct RateLimits {
    /// By sort of call: when the calls let through so far would have come if they had come evenly.
    even: Mutex<HashMap<String, f64>>,
}

impl RateLimits {
    fn even(&self) -> MutexGuard<'_, HashMap<String, f64>> {
        self.even.lock().expect("nothing panics while it holds the limits")
    }

    /// Takes a place for a call that can only be made now, or says when it could be.
    pub fn admit(&self, sorts: Vec<(String, RateLimit)>, now: Time) -> Result<(), Time> {
        let mut even = self.even();
        let free = |(sort, limit): &(String, RateLimit)| limit.after(even.get(sort).copied(), now).0;
        match sorts.iter().map(free).max().filter(|due| *due > now) {
            Some(due) => Err(due),
            None => {
                sorts.into_iter().for_each(|(sort, limit)| {
                    take(&mut even, sort, limit, now);
                });
                Ok(())
            }
        }
    }

    /// When a call that comes now may be made: now, or later. Its place is taken either way.
    pub fn place(&self, sort: String, limit: RateLimit, now: Time) -> Time {
        take(&mut self.even(), sort, limit, now)
    }
}

impl RateLimit {
    /// When a call may be made, and what is remembered if it is.
    fn after(self, next: Option<f64>, now: Time) -> (Time, f64) {
        let (at, gap) = (now.0 as f64, self.millis / self.calls);
        let due = next.unwrap_or(at).max(at);
        // As many as may come in the whole time may come at once; and the first always may.
        let early = (self.millis - gap).max(0.0);
        (Time(((due - early).ceil() as i64).max(now.0)), due + gap)
    }
}

fn take(even: &mut HashMap<String, f64>, sort: String, limit: RateLimit, now: Time) -> Time {
    if even.len() >= MOST {
        even.retain(|_, next| *next > now.0 as f64);
    }
    let (due, next) = limit.after(even.get(&sort).copied(), now);
    even.insert(sort, next);
    due
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_may_come_come_at_once_and_the_others_one_by_one() {
        let limits = RateLimits::default();
        let limit = RateLimit { calls: 3.0, millis: 3_000.0 };
        let places = |now: i64| limits.place("a".into(), limit, Time(now)).0;
        assert_eq!([places(0), places(0), places(0)], [0, 0, 0]);
        assert_eq!([places(0), places(0)], [1_000, 2_000]);
        assert_eq!(places(10_000), 10_000);
        assert_eq!(limits.place("b".into(), limit, Time(0)), Time(0));
    }

    #[test]
    fn a_share_of_less_than_one_call_lets_the_first_one_through() {
        let limits = RateLimits::default();
        let limit = RateLimit { calls: 1.0 / 3.0, millis: 1_000.0 };
        let places = |now: i64| limits.place("a".into(), limit, Time(now)).0;
        assert_eq!([places(0), places(0), places(9_000)], [0, 3_000, 9_000]);
    }

    #[test]
    fn a_call_that_cannot_wait_takes_a_place_only_if_there_is_one() {
        let limits = RateLimits::default();
        let limit = RateLimit { calls: 1.0, millis: 1_000.0 };
        let admit = |sorts: &[&str], now: i64| {
            limits.admit(sorts.iter().map(|sort| (sort.to_string(), limit)).collect(), Time(now)).map_err(|due| due.0)
        };
        assert_eq!(admit(&["a"], 0), Ok(()));
        assert_eq!([admit(&["a", "b"], 10), admit(&["a", "b"], 20)], [Err(1_000), Err(1_000)]);
        assert_eq!([admit(&["b"], 30), admit(&["a"], 1_000)], [Ok(()), Ok(())]);
    }

    #[test]
    fn in_no_stretch_of_time_there_are_twice_as_many_as_allowed() {
        let limits = RateLimits::default();
        let limit = RateLimit { calls: 5.0, millis: 1_000.0 };
        let mut made: Vec<i64> = (0..200).map(|n| limits.place("a".into(), limit, Time(n * 37)).0).collect();
        made.sort_unstable();
        for from in 0..40 {
            let window = from * 1_000..(from + 1) * 1_000;
            assert!(made.iter().filter(|at| window.contains(*at)).count() <= 10, "{made:?}");
        }
    }
}
