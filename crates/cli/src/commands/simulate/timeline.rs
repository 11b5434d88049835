//! Formats facts of the log as lines of a timeline.

use crate::describe;
use stepwell_core::run::StoredFact;
use stepwell_core::simulate::EPOCH;
use stepwell_core::time::{Millis, Time};

pub fn line(now: Time, fact: &StoredFact) -> String {
    format!("{:>14}  {}\n", clock(now), describe::fact(fact, &clock))
}

fn clock(time: Time) -> String {
    format!("+{}", time.since(EPOCH).max(Millis(0)))
}
