//! What one transition may cost. What does not fit follows in the next transition of the run.
//!
//! The design bounds evaluation by time. Planning has no clock, so it counts the bytes that expressions and templates
//! read or copy instead: the same run costs the same on every machine, and a replay is cut at the same place.

use crate::limits;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    /// Steps started and skipped, items opened, passes and items closed.
    pub decisions: u32,
    /// Weight of new payloads; see [`crate::value::weight`].
    pub bytes: u64,
    /// Bytes that expressions and templates read or copy.
    pub work: u64,
    /// Weight of all payloads of the run. A run that exceeds it fails.
    pub run_bytes: u64,
}

/// What a transition has cost so far.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Spent {
    pub decisions: u32,
    pub bytes: u64,
    pub work: u64,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget {
            decisions: limits::TRANSITION_DECISIONS,
            bytes: limits::TRANSITION_BYTES,
            work: limits::TRANSITION_WORK,
            run_bytes: limits::DEFAULT_RUN_BYTES,
        }
    }
}

impl Budget {
    pub const UNLIMITED: Budget = Budget { decisions: u32::MAX, bytes: u64::MAX, work: u64::MAX, run_bytes: u64::MAX };

    /// Whether a transition that has cost this much must end.
    pub fn is_spent(&self, spent: &Spent) -> bool {
        spent.decisions >= self.decisions || spent.bytes >= self.bytes || spent.work >= self.work
    }

    /// What is left for later events of the same transition.
    pub fn less(self, spent: &Spent) -> Budget {
        Budget {
            decisions: self.decisions.saturating_sub(spent.decisions),
            bytes: self.bytes.saturating_sub(spent.bytes),
            work: self.work.saturating_sub(spent.work),
            run_bytes: self.run_bytes,
        }
    }
}

impl Spent {
    pub fn add(&mut self, later: Spent) {
        self.decisions += later.decisions;
        self.bytes += later.bytes;
        self.work += later.work;
    }
}
