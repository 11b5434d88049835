//! Trace ids: a run is a trace, an attempt of a step is a span in it. Ids are derived from names, so they are the same
//! on all nodes and after a restart, and need not be stored.

use sha2::{Digest, Sha256};
use std::fmt::Write;

/// The trace of a run, by its public id.
pub fn trace_id(run: &str) -> [u8; 16] {
    derived(&["trace", run])
}

/// The span of the run itself: the root of its trace.
pub fn run_span(run: &str) -> [u8; 8] {
    derived(&["run", run])
}

/// The span of an attempt.
pub fn step_span(run: &str, path: &str, attempt: u32) -> [u8; 8] {
    derived(&["step", run, path, &attempt.to_string()])
}

/// The W3C header that makes a called service part of the run's trace.
pub fn traceparent(run: &str, path: &str, attempt: u32) -> String {
    format!("00-{}-{}-01", hex(&trace_id(run)), hex(&step_span(run, path, attempt)))
}

/// An id as headers and collectors expect it.
pub fn hex(id: &[u8]) -> String {
    id.iter().fold(String::with_capacity(2 * id.len()), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The beginning of a hash over the parts. Each part is prefixed with its length, so that different lists differ.
fn derived<const N: usize>(parts: &[&str]) -> [u8; N] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    let mut id = [0; N];
    id.copy_from_slice(&hash.finalize()[..N]);
    // All zeros would mean that there is no id.
    if id == [0; N] {
        id[N - 1] = 1;
    }
    id
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn ids_are_the_same_in_every_process() {
        assert_eq!(hex(&trace_id("run_1")), TRACE);
        assert_eq!(hex(&run_span("run_1")), RUN);
        assert_eq!(hex(&step_span("run_1", "charge", 1)), STEP);
        assert_eq!(traceparent("run_1", "charge", 1), format!("00-{TRACE}-{STEP}-01"));
    }

    #[test]
    fn no_two_attempts_share_a_span() {
        let attempts =
            [("run_1", "a", 1), ("run_1", "a", 2), ("run_1", "a1", 1), ("run_1", "a", 11), ("run_1a", "", 1)];
        let mut spans: BTreeSet<[u8; 8]> = attempts.iter().map(|(run, path, n)| step_span(run, path, *n)).collect();
        spans.insert(run_span("run_1"));
        assert_eq!(spans.len(), attempts.len() + 1);
    }

    const TRACE: &str = "c37f6972672317843e19017d12ec5218";
    const RUN: &str = "d5dc21fc1bbcdf1a";
    const STEP: &str = "de5de2d55cfaa707";
}
