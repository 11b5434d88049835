//! The hash chain of a run's log: each row's hash covers the previous row's hash, so a changed row is detectable.
//!
//! A row covers its payloads by their digests, so payloads can be erased on request without breaking the chain.

use crate::{NewRun, OrgId, Parent, RunRow, ValueRow};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use stepwell_core::time::Time;

/// What never changes about a run, and the definition that it started with. The first row of its log follows its hash.
/// In logs of older programs the first row follows 32 zero bytes.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    pub public: &'a str,
    pub org: OrgId,
    pub definition: i64,
    pub by: &'a str,
    pub acts_as: &'a str,
    pub test: bool,
    pub parent: Option<&'a Parent>,
    pub created: Time,
}

impl Origin<'_> {
    pub fn of(row: &RunRow, definition: i64) -> Origin<'_> {
        let RunRow { public, org, by, acts_as, test, parent, created, .. } = row;
        let (org, test, parent, created) = (*org, *test, parent.as_ref(), *created);
        Origin { public, org, definition, by, acts_as, test, parent, created }
    }

    pub fn of_new(new: &NewRun, definition: i64) -> Origin<'_> {
        let NewRun { public, org, by, acts_as, test, parent, created, .. } = new;
        let (org, test, parent, created) = (*org, *test, parent.as_ref(), *created);
        Origin { public, org, definition, by, acts_as, test, parent, created }
    }

    pub fn hash(&self) -> [u8; 32] {
        let mut digest = Sha256::new();
        for text in ["stepwell run", self.public, self.by, self.acts_as, self.parent.map_or("", |parent| &parent.path)]
        {
            digest.update((text.len() as u64).to_be_bytes());
            digest.update(text.as_bytes());
        }
        let parent = self.parent.map_or([-1; 3], |it| [it.run.0, i64::from(it.attempt), i64::from(it.depth)]);
        let fixed = [self.org.0, self.definition, i64::from(self.test), self.created.0];
        for number in fixed.into_iter().chain(parent) {
            digest.update(number.to_be_bytes());
        }
        digest.finalize().into()
    }
}

/// Returns the hash of a log row. The first row of a run follows [`Origin::hash`]. Facts are JSON on one line, so the
/// payload digests after the newline cannot be mistaken for facts.
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

/// Returns the digests of a commit's payloads as the log row stores them: `7:3f…` (id and digest) for each.
pub fn payloads(values: &[ValueRow]) -> String {
    let mut text = String::with_capacity(values.len() * 70);
    for value in values {
        let gap = if text.is_empty() { "" } else { " " };
        let _ = write!(text, "{gap}{}:{}", value.id.0, digest(&value.payload));
    }
    text
}

/// Returns the SHA-256 digest of a payload in hexadecimal.
pub fn digest(payload: &str) -> String {
    hex(&Sha256::digest(payload.as_bytes()))
}

/// Returns bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepwell_core::value::ValueId;

    #[test]
    fn the_hash_covers_every_part_of_a_row() {
        let base = hash(&[0; 32], Time(1), "[]", "");
        assert_ne!(base, hash(&[1; 32], Time(1), "[]", ""));
        assert_ne!(base, hash(&[0; 32], Time(2), "[]", ""));
        assert_ne!(base, hash(&[0; 32], Time(1), "[1]", ""));
        assert_ne!(base, hash(&[0; 32], Time(1), "[]", "0:ab"));
        assert_ne!(hash(&[0; 32], Time(1), "[]0:ab", ""), hash(&[0; 32], Time(1), "[]", "0:ab"));
        assert_eq!(base, hash(&[0; 32], Time(1), "[]", ""));
    }

    #[test]
    fn payloads_are_listed_by_id_and_digest() {
        let value = |id, payload: &str| ValueRow { id: ValueId(id), payload: payload.into() };
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(payloads(&[value(3, ""), value(4, "")]), format!("3:{empty} 4:{empty}"));
        assert_eq!(payloads(&[]), "");
    }
}
