//! Anchors: the heads of the audit trail at some time, to be kept outside of the store.
//!
//! An anchor names, for every writer, how many audit rows it had written and a hash over all of them. Rows are only ever
//! appended, so a later trail that does not pass through an anchor was cut or changed. A tally whose number is lower than
//! in an anchor was put back to an earlier state, and with it the whole store.

use super::evidence::faults;
use crate::error::Error;
use crate::records::json;
use serde::{Deserialize, Serialize};
use stepwell_core::time::Time;
use stepwell_store::{ChainKey, Evidence, Store, Trail, TrailPoint, hex};

/// Anchors that are checked at a time: the newest ones.
pub const MOST_ANCHORS: usize = 10_000;

/// One anchor.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Anchor {
    pub anchor: Heads,
    /// HMAC over `anchor` under the chain key, in hexadecimal.
    pub signature: String,
}

/// What an anchor signs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Heads {
    pub at: Time,
    /// The id of the chain key; without one anyone can compute the signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    pub writers: Vec<WriterHead>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WriterHead {
    pub writer: i32,
    /// How often the writer's tally was written.
    pub number: i64,
    /// Audit rows that it has written.
    pub rows: i64,
    /// The hash over their hashes, in hexadecimal.
    pub head: String,
}

/// The anchor of the present state.
pub async fn anchor(store: &dyn Store, now: Time) -> Result<Anchor, Error> {
    let anchor = heads(store, now).await?;
    let signature = signature(&store.chain_key(), &anchor);
    Ok(Anchor { anchor, signature })
}

pub(super) async fn heads(store: &dyn Store, now: Time) -> Result<Heads, Error> {
    let key = store.chain_key();
    let writers = store.tallies().await?.into_iter().map(|tally| WriterHead {
        writer: tally.writer,
        number: tally.number,
        rows: tally.trail.rows,
        head: hex(&tally.trail.head),
    });
    Ok(Heads { at: now, key: key.is_secret().then(|| hex(&key.id())), writers: writers.collect() })
}

fn signature(key: &ChainKey, heads: &Heads) -> String {
    hex(&key.sign("anchor", &[json(heads).as_bytes()]))
}

/// Checks anchors, one per line, against the store. Returns what is wrong.
pub async fn verify(store: &dyn Store, lines: &[String]) -> Result<Vec<String>, Error> {
    let key = store.chain_key();
    let current = heads(store, Time(0)).await?;
    let (mut wrong, mut points) = (Vec::new(), Vec::new());
    for (n, line) in (1..).zip(lines) {
        let Ok(Anchor { anchor, signature: signed }) = serde_json::from_str::<Anchor>(line) else {
            wrong.push(format!("line {n} of the anchors cannot be read"));
            continue;
        };
        // Anchors from before the key count for what they say: their signature proves nothing.
        let same_key = anchor.key == current.key;
        if same_key && signature(&key, &anchor) != signed {
            wrong.push(format!("anchor {n} was changed: its signature does not hold"));
            continue;
        }
        for head in &anchor.writers {
            let now = current.writers.iter().find(|now| now.writer == head.writer);
            if same_key && now.is_none_or(|now| now.number < head.number) {
                let (writer, at) = (head.writer, anchor.at);
                wrong.push(format!("writer {writer} was put back to a state from before the anchor of {at}"));
            }
            match unhex(&head.head) {
                Some(bytes) => {
                    let trail = Trail { rows: head.rows, head: bytes };
                    points.push(TrailPoint { writer: head.writer, trail });
                }
                None => wrong.push(format!("line {n} of the anchors cannot be read")),
            }
        }
    }
    let evidence = store.evidence(points).await?;
    wrong.extend(faults(&Evidence { missed: evidence.missed, ..Evidence::default() }));
    Ok(wrong)
}

/// The 32 bytes of a hash in hexadecimal.
pub(super) fn unhex(text: &str) -> Option<[u8; 32]> {
    let digits = (0..32).map(|n| u8::from_str_radix(text.get(2 * n..2 * n + 2)?, 16).ok());
    digits.collect::<Option<Vec<u8>>>()?.try_into().ok()
}
