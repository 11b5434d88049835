//! Prints facts of the log as lines a person can follow.

use crate::words;
use stepwell_core::run::StoredFact;
use stepwell_core::simulate::EPOCH;
use stepwell_core::time::{Millis, Time};

pub fn line(now: Time, fact: &StoredFact) -> String {
    format!("{:>14}  {}\n", clock(now), words::fact(fact, &clock))
}

fn clock(time: Time) -> String {
    format!("+{}", time.since(EPOCH).max(Millis(0)))
}
