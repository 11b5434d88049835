//! How fast calls of one sort may follow each other. A call that comes too early is given a time of its own, so that many
//! that wait do not all come back at once.
//!
//! Each node lets its share through; what several nodes let through together is what the policy says.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use stepwell_core::time::Time;

/// Sorts of calls that are remembered. Those whose pace is long over are forgotten.
const MOST: usize = 10_000;

/// So many calls in so many milliseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Pace {
    pub calls: f64,
    pub millis: f64,
}

#[derive(Default)]
pub struct Paces {
    /// By sort of call: when the calls let through so far would have come if they had come evenly.
    even: Mutex<HashMap<String, f64>>,
}

impl Paces {
    fn even(&self) -> MutexGuard<'_, HashMap<String, f64>> {
        self.even.lock().expect("nothing panics while it holds the paces")
    }

    /// When a call that comes now may be made: now, or later. Its place is taken either way.
    pub fn place(&self, sort: String, pace: Pace, now: Time) -> Time {
        let (at, gap) = (now.0 as f64, pace.millis / pace.calls);
        let mut even = self.even();
        if even.len() >= MOST {
            even.retain(|_, next| *next > at);
        }
        let next = even.entry(sort).or_insert(at);
        let due = next.max(at);
        *next = due + gap;
        // As many as may come in the whole time may come at once.
        Time(((due - (pace.millis - gap)).ceil() as i64).max(now.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_may_come_come_at_once_and_the_others_one_by_one() {
        let paces = Paces::default();
        let pace = Pace { calls: 3.0, millis: 3_000.0 };
        let places = |now: i64| paces.place("a".into(), pace, Time(now)).0;
        assert_eq!([places(0), places(0), places(0)], [0, 0, 0]);
        assert_eq!([places(0), places(0)], [1_000, 2_000]);
        assert_eq!(places(10_000), 10_000);
        assert_eq!(paces.place("b".into(), pace, Time(0)), Time(0));
    }

    #[test]
    fn in_no_stretch_of_time_there_are_twice_as_many_as_allowed() {
        let paces = Paces::default();
        let pace = Pace { calls: 5.0, millis: 1_000.0 };
        let mut made: Vec<i64> = (0..200).map(|n| paces.place("a".into(), pace, Time(n * 37)).0).collect();
        made.sort_unstable();
        for from in 0..40 {
            let window = from * 1_000..(from + 1) * 1_000;
            assert!(made.iter().filter(|at| window.contains(*at)).count() <= 10, "{made:?}");
        }
    }
}
