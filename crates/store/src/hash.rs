//! The hash chain of a run's log: each row's hash covers the one before it, so that a changed row shows.
//!
//! Payloads are covered by their digests, which the row keeps: they can be erased on request without breaking the chain.

use crate::ValueRow;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use stepwell_core::time::Time;

/// The hash of a log row. The first row of a run follows 32 zero bytes. Facts are JSON in one line, so what comes after
/// them cannot be taken for a part of them.
pub fn hash(previous: &[u8; 32], at: Time, facts: &str, payloads: &str) -> [u8; 32] {
    let mut digest = Sha256::new();
    digest.update(previous);
    digest.update(at.0.to_be_bytes());
    digest.update(facts.as_bytes());
    if !payloads.is_empty() {
        digest.update(b"\n");
        digest.update(payloads.as_bytes());
    }
    digest.finalize().into()
}

/// What a log row says of the payloads that came with it: `7:3f…` for each, number and digest.
pub fn payloads(values: &[ValueRow]) -> String {
    let mut text = String::with_capacity(values.len() * 70);
    for value in values {
        let gap = if text.is_empty() { "" } else { " " };
        let _ = write!(text, "{gap}{}:{}", value.id.0, digest(&value.payload));
    }
    text
}

/// Of one payload, as hexadecimal digits.
pub fn digest(payload: &str) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let bytes = Sha256::digest(payload.as_bytes());
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepwell_core::value::ValueId;

    #[test]
    fn every_part_of_a_row_counts() {
        let base = hash(&[0; 32], Time(1), "[]", "");
        assert_ne!(base, hash(&[1; 32], Time(1), "[]", ""));
        assert_ne!(base, hash(&[0; 32], Time(2), "[]", ""));
        assert_ne!(base, hash(&[0; 32], Time(1), "[1]", ""));
        assert_ne!(base, hash(&[0; 32], Time(1), "[]", "0:ab"));
        assert_ne!(hash(&[0; 32], Time(1), "[]0:ab", ""), hash(&[0; 32], Time(1), "[]", "0:ab"));
        assert_eq!(base, hash(&[0; 32], Time(1), "[]", ""));
    }

    #[test]
    fn a_payload_is_named_by_number_and_digest() {
        let value = |id, payload: &str| ValueRow { id: ValueId(id), payload: payload.into() };
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(payloads(&[value(3, ""), value(4, "")]), format!("3:{empty} 4:{empty}"));
        assert_eq!(payloads(&[]), "");
    }
}
