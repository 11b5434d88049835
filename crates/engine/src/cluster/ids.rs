//! New names for things: time-ordered, and unguessable where that matters.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use stepwell_core::time::Time;
use stepwell_store::{NodeId, RunId};

#[derive(Debug)]
pub struct Ids {
    source: Source,
    /// A counter of runs that starts at a random number.
    runs: AtomicU64,
}

/// The source of randomness.
#[derive(Debug)]
enum Source {
    System,
    Seeded(Mutex<u64>),
}

impl Ids {
    pub fn system() -> Ids {
        Ids::with_source(Source::System)
    }

    /// The same seed gives the same ids: for simulations only.
    pub fn seeded(seed: u64) -> Ids {
        Ids::with_source(Source::Seeded(Mutex::new(seed)))
    }

    fn with_source(source: Source) -> Ids {
        let ids = Ids { source, runs: AtomicU64::new(0) };
        ids.runs.store(ids.number(), Ordering::Relaxed);
        ids
    }

    pub fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        match &self.source {
            Source::System => {
                getrandom::fill(&mut bytes).expect("secrets need randomness from the operating system");
            }
            Source::Seeded(state) => {
                let mut state = state.lock().expect("no thread panics while it holds the lock on the seed");
                for chunk in bytes.chunks_mut(8) {
                    let next = splitmix(&mut state).to_le_bytes();
                    chunk.copy_from_slice(&next[..chunk.len()]);
                }
            }
        }
        bytes
    }

    pub fn number(&self) -> u64 {
        u64::from_le_bytes(self.bytes())
    }

    /// The time in milliseconds, followed by a counter: unique within this process, and very likely so among processes.
    pub fn run(&self, now: Time) -> RunId {
        let count = self.runs.fetch_add(1, Ordering::Relaxed);
        RunId((now.0.clamp(0, 1 << 41) << 21) | (count & 0x1f_ffff) as i64)
    }

    pub fn node(&self) -> NodeId {
        NodeId((self.number() >> 1) as i64)
    }

    /// `run_…`: a UUIDv7 without dashes, so ids sort by time.
    pub fn public(&self, prefix: &str, now: Time) -> String {
        let uuid = uuid::Builder::from_unix_timestamp_millis(now.0.unsigned_abs(), &self.bytes()).into_uuid();
        format!("{prefix}_{}", uuid.simple())
    }
}

fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut x = *state;
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_grow_with_time_and_a_seed_repeats_them() {
        let ids = Ids::system();
        assert!(ids.run(Time(1_000)) < ids.run(Time(1_001)));
        assert_ne!(ids.run(Time(1_000)), ids.run(Time(1_000)));
        assert!(ids.public("run", Time(1_000)) < ids.public("run", Time(1_001)));
        assert!(ids.run(Time(i64::MAX)).0 > 0);
        assert_eq!(Ids::seeded(7).public("run", Time(1)), Ids::seeded(7).public("run", Time(1)));
        assert_ne!(Ids::seeded(7).number(), Ids::seeded(8).number());
    }
}
