//! Evidence that rows are those that were written: a signed tally per writer, kept in the transaction that changes them.
//!
//! A tally holds, for runs, definitions and records, how many rows its writer added and a sum of their tags. A tag is
//! an HMAC of the row, so adding a row adds its tag and removing one subtracts it, in any order and on any writer; only
//! the total over all writers means something. For the audit trail, which is never shortened, it holds the number of
//! the writer's rows and a hash over all of them. Sums are masked and the whole is signed, so nothing can be learnt from
//! two states of it. An older state can be put back only together with the rows of that time.
//!
//! Not here: where the key comes from (the engine), and how rows are read (each store).

use crate::{Commit, DefinitionRow, Error, NewAudit, Record, RunId, Version};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};
use stepwell_core::time::{Millis, Time};

/// How long after a key came into use rows without it are accepted: a commit may have been planned before.
const OVERLAP: Millis = Millis(60_000);

/// The key of hash chains and tallies, and since when it is in use.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ChainKey {
    bytes: [u8; 32],
    since: Time,
}

impl std::fmt::Debug for ChainKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ChainKey({})", crate::hash::hex(&self.id()))
    }
}

impl ChainKey {
    /// The key of an installation that has no secret one. Anyone can compute the same hashes.
    pub const PUBLIC: ChainKey = ChainKey { bytes: *b"stepwell evidence without a key.", since: Time(0) };

    pub fn new(bytes: [u8; 32], since: Time) -> ChainKey {
        ChainKey { bytes, since }
    }

    pub fn is_secret(&self) -> bool {
        self.bytes != ChainKey::PUBLIC.bytes
    }

    pub fn since(&self) -> Time {
        self.since
    }

    /// Identifies the key without revealing it.
    pub fn id(&self) -> [u8; 4] {
        let [a, b, c, d, ..] = self.sign("id", &[]);
        [a, b, c, d]
    }

    /// Returns the HMAC of the parts under this key, for one use of the key.
    pub fn sign(&self, purpose: &str, parts: &[&[u8]]) -> [u8; 32] {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.bytes).expect("an HMAC takes keys of any length");
        mac.update(&[purpose.len() as u8]);
        mac.update(purpose.as_bytes());
        for part in parts {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }

    /// The hash of a row as it is stored: keyed if the key is secret.
    pub fn seal(&self, hash: [u8; 32]) -> [u8; 32] {
        if self.is_secret() { self.sign("row", &[&hash]) } else { hash }
    }

    /// Whether the stored hash of a row is the one of a row with this plain hash. Only rows from before the key may have
    /// the plain one.
    pub fn fits(&self, plain: [u8; 32], stored: &[u8; 32], at: Time) -> bool {
        let before = !self.is_secret() || at <= self.since + OVERLAP;
        self.seal(plain) == *stored || (before && plain == *stored)
    }

    fn tag(&self, entry: &Entry) -> u128 {
        let bytes = self.sign(entry.class.name(), &[&entry.row]);
        u128::from_be_bytes(std::array::from_fn(|n| bytes[n]))
    }
}

/// The key of the store, which may still be that of no installation.
#[derive(Clone)]
pub(crate) struct SharedKey(Arc<RwLock<ChainKey>>);

impl Default for SharedKey {
    fn default() -> SharedKey {
        SharedKey(Arc::new(RwLock::new(ChainKey::PUBLIC)))
    }
}

impl SharedKey {
    pub fn get(&self) -> ChainKey {
        *self.0.read().expect("no thread panics while it holds the lock on the key")
    }

    pub fn set(&self, key: ChainKey) {
        *self.0.write().expect("no thread panics while it holds the lock on the key") = key;
    }
}

/// What a tally counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Class {
    Runs,
    Definitions,
    Records,
}

impl Class {
    pub const ALL: [Class; 3] = [Class::Runs, Class::Definitions, Class::Records];

    pub fn name(self) -> &'static str {
        match self {
            Class::Runs => "runs",
            Class::Definitions => "definitions",
            Class::Records => "records",
        }
    }
}

/// A row that tallies cover, in an encoding that differs for any two rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    class: Class,
    row: Vec<u8>,
    added: bool,
}

/// A workflow version with the columns that its row does not show.
pub(crate) struct DefinitionEntry {
    pub row: DefinitionRow,
    pub deleted: Option<i64>,
    pub test: bool,
}

/// The head of a run: its hash covers the log, and through it all that never changes.
pub(crate) struct RunEntry {
    pub run: RunId,
    pub version: Version,
    pub hash: [u8; 32],
    pub erased: bool,
}

impl RunEntry {
    fn encoded(&self) -> Vec<u8> {
        let mut row = Encoder::default();
        row.number(self.run.0).number(self.version.0).bytes(&self.hash).number(i64::from(self.erased));
        row.0
    }

    pub fn added(&self) -> Entry {
        Entry { class: Class::Runs, row: self.encoded(), added: true }
    }

    pub fn removed(&self) -> Entry {
        Entry { added: false, ..self.added() }
    }

    /// What an applied commit changes.
    pub fn of(commit: &Commit) -> impl Iterator<Item = Entry> {
        let head = |version, hash| RunEntry { run: commit.run, version: Version(version), hash, erased: false };
        let before = (commit.expect.0 > 0).then(|| head(commit.expect.0, commit.previous).removed());
        before.into_iter().chain([head(commit.expect.0 + 1, commit.log.hash).added()])
    }
}

impl DefinitionEntry {
    pub fn added(&self) -> Entry {
        let DefinitionRow { id, workflow, org, name, version, source, by, author, at } = &self.row;
        let mut row = Encoder::default();
        row.number(*id).number(org.0).number(i64::from(*version)).number(at.0).number(i64::from(self.test));
        row.optional(self.deleted);
        for text in [workflow, name, source, by, author] {
            row.bytes(text.as_bytes());
        }
        Entry { class: Class::Definitions, row: row.0, added: true }
    }

    pub fn removed(&self) -> Entry {
        Entry { added: false, ..self.added() }
    }
}

impl Entry {
    pub fn record(record: &Record) -> Entry {
        let Record { kind, id, org, key, due, body, version } = record;
        let mut row = Encoder::default();
        row.number(org.0).number(*version).optional(due.map(|due| due.0));
        for text in [kind, id, key, body] {
            row.bytes(text.as_bytes());
        }
        Entry { class: Class::Records, row: row.0, added: true }
    }

    pub fn removed(self) -> Entry {
        Entry { added: false, ..self }
    }
}

#[derive(Default)]
struct Encoder(Vec<u8>);

impl Encoder {
    fn number(&mut self, number: i64) -> &mut Encoder {
        self.0.extend(number.to_be_bytes());
        self
    }

    fn optional(&mut self, number: Option<i64>) -> &mut Encoder {
        self.number(i64::from(number.is_some())).number(number.unwrap_or_default())
    }

    fn bytes(&mut self, bytes: &[u8]) -> &mut Encoder {
        self.number(bytes.len() as i64);
        self.0.extend(bytes);
        self
    }
}

/// What a change adds to the audit trail and to the tally.
#[derive(Clone, Default, Debug)]
pub(crate) struct Effects {
    pub audit: Vec<NewAudit>,
    pub entries: Vec<Entry>,
}

impl From<Vec<NewAudit>> for Effects {
    fn from(audit: Vec<NewAudit>) -> Effects {
        Effects { audit, entries: Vec::new() }
    }
}

/// How many rows of a class were added and not removed, and the sum of their tags.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Sum {
    pub count: i64,
    tags: u128,
}

impl Sum {
    fn plus(self, other: Sum) -> Sum {
        Sum { count: self.count + other.count, tags: self.tags.wrapping_add(other.tags) }
    }
}

/// A writer's part of the audit trail: the number of its rows, and a hash over the hashes of all of them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Trail {
    pub rows: i64,
    pub head: [u8; 32],
}

impl Trail {
    pub(crate) fn push(&mut self, hash: &[u8; 32]) {
        let mut digest = Sha256::new();
        digest.update(self.head);
        digest.update(hash);
        *self = Trail { rows: self.rows + 1, head: digest.finalize().into() };
    }
}

/// One writer's tally.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Tally {
    /// How often it was written.
    pub number: i64,
    pub sums: [Sum; 3],
    pub trail: Trail,
}

/// The version, the id of the key, the number, three sums, the audit trail and the signature.
const BODY: usize = 1 + 4 + 8 + 3 * 24 + 40 + 32;
const SIGNATURE: usize = 32;
const FORMAT: u8 = 1;

/// Why a stored tally cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unread {
    /// It was signed with the key of this id.
    OtherKey([u8; 4]),
    /// Its signature does not hold.
    Broken,
}

impl Tally {
    pub fn apply(&mut self, key: &ChainKey, entries: impl IntoIterator<Item = Entry>) {
        for entry in entries {
            let sum = &mut self.sums[entry.class as usize];
            let tag = key.tag(&entry);
            *sum = match entry.added {
                true => sum.plus(Sum { count: 1, tags: tag }),
                false => sum.plus(Sum { count: -1, tags: tag.wrapping_neg() }),
            };
        }
    }

    fn masks(&self, key: &ChainKey, writer: i32) -> [u128; 3] {
        let at = [&writer.to_be_bytes()[..], &self.number.to_be_bytes()];
        Class::ALL.map(|class| {
            let mask = key.sign("mask", &[at[0], at[1], class.name().as_bytes()]);
            u128::from_be_bytes(std::array::from_fn(|n| mask[n]))
        })
    }

    pub fn write(&self, key: &ChainKey, writer: i32) -> Vec<u8> {
        let mut body = Vec::with_capacity(BODY);
        body.push(FORMAT);
        body.extend(key.id());
        body.extend(self.number.to_be_bytes());
        for (sum, mask) in self.sums.iter().zip(self.masks(key, writer)) {
            body.extend(sum.count.to_be_bytes());
            body.extend(sum.tags.wrapping_add(mask).to_be_bytes());
        }
        body.extend(self.trail.rows.to_be_bytes());
        body.extend(self.trail.head);
        let signature = key.sign("tally", &[&writer.to_be_bytes(), &body]);
        body.extend(signature);
        body
    }

    pub fn read(key: &ChainKey, writer: i32, body: &[u8]) -> Result<Tally, Unread> {
        if body.len() != BODY || body[0] != FORMAT {
            return Err(Unread::Broken);
        }
        let (signed, signature) = body.split_at(BODY - SIGNATURE);
        let mut left = &signed[1..];
        let signer: [u8; 4] = take(&mut left)?;
        if signer != key.id() {
            return Err(Unread::OtherKey(signer));
        }
        if key.sign("tally", &[&writer.to_be_bytes(), signed]) != signature {
            return Err(Unread::Broken);
        }
        let mut tally = Tally { number: i64::from_be_bytes(take(&mut left)?), ..Tally::default() };
        let masks = tally.masks(key, writer);
        for (sum, mask) in tally.sums.iter_mut().zip(masks) {
            let count = i64::from_be_bytes(take(&mut left)?);
            *sum = Sum { count, tags: u128::from_be_bytes(take(&mut left)?).wrapping_sub(mask) };
        }
        tally.trail = Trail { rows: i64::from_be_bytes(take(&mut left)?), head: take(&mut left)? };
        Ok(tally)
    }
}

fn take<const N: usize>(left: &mut &[u8]) -> Result<[u8; N], Unread> {
    let (first, rest) = left.split_first_chunk::<N>().ok_or(Unread::Broken)?;
    *left = rest;
    Ok(*first)
}

/// A point of a writer's audit trail that was noted elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TrailPoint {
    pub writer: i32,
    pub trail: Trail,
}

/// A writer's tally as it is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WriterTally {
    pub writer: i32,
    /// How often the tally was written.
    pub number: i64,
    pub trail: Trail,
}

/// The rows of one class: how many there should be, and how many there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Compared {
    pub class: Class,
    pub expected: i64,
    pub found: i64,
    /// Whether the rows are those that were written.
    pub same: bool,
}

/// A writer's audit rows: those it wrote, and those that are there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ComparedTrail {
    pub writer: i32,
    pub expected: i64,
    pub found: i64,
    pub same: bool,
}

/// The tallies of a store compared with its rows.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Evidence {
    /// The store keeps tallies. A database that older nodes use does not yet.
    pub kept: bool,
    /// Writers whose tally was damaged: its signature does not hold.
    pub broken: Vec<i32>,
    /// The ids of the keys of tallies that this store's key cannot verify.
    pub other_keys: Vec<[u8; 4]>,
    pub tallies: Vec<WriterTally>,
    pub classes: Vec<Compared>,
    pub trails: Vec<ComparedTrail>,
    /// The given points of the audit trail that the rows do not pass through.
    pub missed: Vec<TrailPoint>,
}

impl Evidence {
    /// Whether the rows are those that were written, as far as this key can tell.
    pub fn holds(&self) -> bool {
        let unread = !self.broken.is_empty() || !self.other_keys.is_empty();
        let rows = self.classes.iter().all(|class| class.same) && self.trails.iter().all(|trail| trail.same);
        !unread && rows && self.missed.is_empty()
    }
}

/// Tallies all rows of a store, for a comparison with what its writers tallied.
pub(crate) struct Scan {
    key: ChainKey,
    total: Tally,
    trails: BTreeMap<i32, Trail>,
    /// Points that the audit trail has not passed through yet, by writer and number of rows.
    points: BTreeMap<(i32, i64), Vec<TrailPoint>>,
}

impl Scan {
    pub fn new(key: ChainKey, points: Vec<TrailPoint>) -> Scan {
        let mut ahead: BTreeMap<(i32, i64), Vec<TrailPoint>> = BTreeMap::new();
        for point in points.into_iter().filter(|point| point.trail.rows > 0) {
            ahead.entry((point.writer, point.trail.rows)).or_default().push(point);
        }
        Scan { key, total: Tally::default(), trails: BTreeMap::new(), points: ahead }
    }

    pub fn add(&mut self, entry: Entry) {
        self.total.apply(&self.key, [entry]);
    }

    /// Adds an audit row. Rows of a writer come in the order in which it wrote them.
    pub fn audit(&mut self, writer: i32, hash: &[u8; 32]) {
        let trail = self.trails.entry(writer).or_default();
        trail.push(hash);
        if let Some(points) = self.points.get_mut(&(writer, trail.rows)) {
            points.retain(|point| point.trail != *trail);
        }
    }

    /// The tallies that a store starts with: one that counts all rows, and one for each other writer's audit rows.
    pub fn tallies(mut self, first: i32) -> Vec<(i32, Tally)> {
        self.trails.entry(first).or_default();
        let total = self.total;
        let of = |(writer, trail)| {
            let sums = if writer == first { total.sums } else { Tally::default().sums };
            (writer, Tally { number: 1, sums, trail })
        };
        self.trails.into_iter().map(of).collect()
    }

    pub fn compare(mut self, kept: bool, stored: &[(i32, Vec<u8>)]) -> Evidence {
        let mut evidence = Evidence { kept, ..Evidence::default() };
        evidence.missed = self.points.into_values().flatten().collect();
        let mut sums = Tally::default().sums;
        for (writer, body) in stored {
            let tally = match Tally::read(&self.key, *writer, body) {
                Ok(tally) => tally,
                Err(Unread::Broken) => {
                    evidence.broken.push(*writer);
                    continue;
                }
                Err(Unread::OtherKey(id)) => {
                    evidence.other_keys.push(id);
                    continue;
                }
            };
            for (sum, of_writer) in sums.iter_mut().zip(tally.sums) {
                *sum = sum.plus(of_writer);
            }
            let found = self.trails.remove(writer).unwrap_or_default();
            let (expected, same) = (tally.trail.rows, tally.trail == found);
            evidence.trails.push(ComparedTrail { writer: *writer, expected, found: found.rows, same });
            evidence.tallies.push(WriterTally { writer: *writer, number: tally.number, trail: tally.trail });
        }
        evidence.other_keys.dedup();
        // Without all tallies there is nothing to compare with; that itself is a fault.
        if !evidence.kept || !evidence.broken.is_empty() || !evidence.other_keys.is_empty() {
            return evidence;
        }
        let unknown = self.trails.into_iter().map(|(writer, found)| (writer, found.rows));
        evidence.trails.extend(unknown.map(|(writer, found)| ComparedTrail {
            writer,
            expected: 0,
            found,
            same: false,
        }));
        evidence.classes.extend(Class::ALL.map(|class| {
            let (expected, found) = (sums[class as usize], self.total.sums[class as usize]);
            Compared { class, expected: expected.count, found: found.count, same: expected == found }
        }));
        evidence
    }
}

/// The stored tallies that the key can verify.
pub(crate) fn readable(key: &ChainKey, stored: &[(i32, Vec<u8>)]) -> Vec<WriterTally> {
    let read = |(writer, body): &(i32, Vec<u8>)| {
        let tally = Tally::read(key, *writer, body).ok()?;
        Some(WriterTally { writer: *writer, number: tally.number, trail: tally.trail })
    };
    stored.iter().filter_map(read).collect()
}

/// The error of a write under another key than the store's tallies have.
pub(crate) fn locked(key: [u8; 4]) -> Error {
    Error::Unavailable(format!(
        "this store's evidence is kept under the chain key {}, which this process has not opened: it needs the \
         installation's master key, set with STEPWELL_MASTER_KEY or STEPWELL_MASTER_KEY_FILE or as master.key in the \
         data directory",
        crate::hash::hex(&key)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(id: i64, version: i64) -> RunEntry {
        RunEntry { run: RunId(id), version: Version(version), hash: [version as u8; 32], erased: false }
    }

    #[test]
    fn a_tally_is_read_back_only_with_its_key_for_its_writer_and_unchanged() {
        let (key, other) = (ChainKey::new([7; 32], Time(0)), ChainKey::new([8; 32], Time(0)));
        let mut tally = Tally { number: 3, ..Tally::default() };
        tally.apply(&key, [run(1, 1).added(), run(2, 4).added()]);
        tally.trail.push(&[9; 32]);
        let body = tally.write(&key, 5);
        assert_eq!((Tally::read(&key, 5, &body), body.len()), (Ok(tally), BODY));
        assert_eq!(Tally::read(&key, 6, &body), Err(Unread::Broken));
        assert_eq!(Tally::read(&other, 5, &body), Err(Unread::OtherKey(key.id())));
        for n in 5..body.len() {
            let mut changed = body.clone();
            changed[n] ^= 1;
            assert_eq!(Tally::read(&key, 5, &changed), Err(Unread::Broken), "byte {n}");
        }
    }

    #[test]
    fn writers_add_up_to_the_rows_whichever_of_them_changed_a_row() {
        let key = ChainKey::new([7; 32], Time(0));
        let (mut one, mut two) = (Tally::default(), Tally::default());
        one.apply(&key, [run(1, 1).added(), run(2, 1).added()]);
        two.apply(&key, [run(1, 1).removed(), run(1, 2).added(), run(2, 1).removed()]);
        let stored = [(1, one.write(&key, 1)), (2, two.write(&key, 2))];
        let compare = |rows: &[RunEntry]| {
            let mut scan = Scan::new(key, Vec::new());
            rows.iter().for_each(|row| scan.add(row.added()));
            scan.compare(true, &stored)
        };
        assert!(compare(&[run(1, 2)]).holds());
        for wrong in [&[][..], &[run(1, 1)], &[run(2, 2)], &[run(1, 2), run(2, 1)]] {
            assert!(!compare(wrong).holds());
        }
    }

    #[test]
    fn the_same_sums_look_different_each_time_they_are_written() {
        let key = ChainKey::new([7; 32], Time(0));
        let tally = Tally { number: 1, ..Tally::default() };
        let sums = |number| Tally { number, ..tally }.write(&key, 1)[21..37].to_vec();
        assert_ne!(sums(1), sums(2));
    }
}
