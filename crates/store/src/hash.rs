//! The hash chain of a run's log: each row's hash covers the one before it, so that a changed row shows.

use sha2::{Digest, Sha256};
use stepwell_core::time::Time;

/// The hash of a log row. The first row of a run follows 32 zero bytes.
pub fn hash(previous: &[u8; 32], at: Time, facts: &str) -> [u8; 32] {
    let mut digest = Sha256::new();
    digest.update(previous);
    digest.update(at.0.to_be_bytes());
    digest.update(facts.as_bytes());
    digest.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_a_row_counts() {
        let base = hash(&[0; 32], Time(1), "[]");
        assert_ne!(base, hash(&[1; 32], Time(1), "[]"));
        assert_ne!(base, hash(&[0; 32], Time(2), "[]"));
        assert_ne!(base, hash(&[0; 32], Time(1), "[1]"));
        assert_eq!(base, hash(&[0; 32], Time(1), "[]"));
    }
}
