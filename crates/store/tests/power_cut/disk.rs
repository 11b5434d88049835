//! A model of a disk: what is certain to survive a power cut, and what may survive.
//!
//! It guarantees only what syncs guarantee: any of the writes since a file's last sync may have arrived, whole or in
//! sectors, in any order; a name refers to what it did at some moment since its directory was last synced.

use crate::random::Random;
use crate::recorder::{At, Event, FileId, Kind, Recording};
use std::collections::BTreeMap;

/// What a disk writes atomically.
const SECTOR: usize = 512;

/// Which syncs take effect. All but the first simulate mistakes that the test must detect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Syncs {
    All,
    /// As with `synchronous=OFF`: files are never synced.
    NoneOfFiles,
    /// As with `synchronous=NORMAL`: the WAL is synced at a checkpoint or restart, not per commit.
    NotPerCommit,
    /// Files are synced, but their directory is not.
    NoneOfDirectory,
}

/// How much of the unsynced data survives the cut.
#[derive(Clone, Copy, Debug)]
pub struct Luck {
    /// The probability of each write, or each of its sectors, in percent.
    pub arrives: u8,
    /// Whether the sectors of one write arrive independently.
    pub torn: bool,
}

pub type Image = BTreeMap<String, Vec<u8>>;

pub struct Disk<'a> {
    recording: &'a Recording,
    syncs: Syncs,
    now: usize,
    files: Vec<File<'a>>,
    names: BTreeMap<&'a str, Name>,
}

#[derive(Clone, Default)]
struct File<'a> {
    synced: Vec<u8>,
    pending: Vec<(At, Change<'a>)>,
}

#[derive(Clone, Copy)]
enum Change<'a> {
    Write { offset: usize, data: &'a [u8] },
    Truncate { size: usize },
}

#[derive(Default)]
struct Name {
    synced: Option<FileId>,
    pending: Vec<(At, Option<FileId>)>,
}

impl<'a> Disk<'a> {
    pub fn new(recording: &'a Recording, syncs: Syncs) -> Disk<'a> {
        let files = vec![File::default(); recording.kinds.len()];
        Disk { recording, syncs, now: 0, files, names: BTreeMap::new() }
    }

    /// Applies all events before `at`. Time cannot go backwards.
    pub fn advance(&mut self, at: At) {
        let recording = self.recording;
        while self.now < at.0 {
            let now = At(self.now);
            match &recording.events[self.now] {
                Event::Create { name, file } => self.name(name).pending.push((now, Some(*file))),
                Event::Unlink { name } => self.name(name).pending.push((now, None)),
                Event::Write { file, offset, data } => {
                    let change = Change::Write { offset: *offset, data };
                    self.files[file.0].pending.push((now, change));
                }
                Event::Truncate { file, size } => {
                    self.files[file.0].pending.push((now, Change::Truncate { size: *size }));
                }
                Event::Sync { file, began } => {
                    if self.counts(*file) {
                        self.files[file.0].sync(*began);
                    }
                }
                Event::SyncDirectory { began } => {
                    if self.syncs != Syncs::NoneOfDirectory {
                        self.names.values_mut().for_each(|name| name.sync(*began));
                    }
                }
            }
            self.now += 1;
        }
    }

    /// The files as one power cut could leave them.
    pub fn cut(&self, random: &mut Random, luck: Luck) -> Image {
        let mut image = Image::new();
        for (name, state) in &self.names {
            let since = state.pending.iter().map(|(_, file)| *file);
            let possible: Vec<_> = std::iter::once(state.synced).chain(since).collect();
            if let Some(file) = random.pick(&possible) {
                image.insert((*name).into(), self.files[file.0].after_cut(random, luck));
            }
        }
        image
    }

    fn name(&mut self, name: &'a str) -> &mut Name {
        self.names.entry(name).or_default()
    }

    /// Whether the current sync takes effect.
    fn counts(&self, file: FileId) -> bool {
        match self.syncs {
            Syncs::All | Syncs::NoneOfDirectory => true,
            Syncs::NoneOfFiles => false,
            Syncs::NotPerCommit if self.recording.kinds[file.0] != Kind::Wal => true,
            Syncs::NotPerCommit => self.begins_wal() || self.is_before_copying_back(),
        }
    }

    fn begins_wal(&self) -> bool {
        let before = self.now.checked_sub(1).map(|before| &self.recording.events[before]);
        matches!(before, Some(Event::Write { offset: 0, .. }))
    }

    fn is_before_copying_back(&self) -> bool {
        let mut later = self.recording.events[self.now + 1..].iter();
        let next = later.find_map(|event| match event {
            Event::Write { file, .. } | Event::Truncate { file, .. } | Event::Sync { file, .. } => Some(*file),
            Event::Create { .. } | Event::Unlink { .. } | Event::SyncDirectory { .. } => None,
        });
        next.is_some_and(|file| self.recording.kinds[file.0] == Kind::Database)
    }
}

impl File<'_> {
    fn sync(&mut self, began: At) {
        let covered = self.pending.partition_point(|(at, _)| *at < began);
        for (_, change) in self.pending.drain(..covered) {
            match change {
                Change::Write { offset, data } => put(&mut self.synced, offset, data),
                Change::Truncate { size } => self.synced.resize(size, 0),
            }
        }
    }

    fn after_cut(&self, random: &mut Random, luck: Luck) -> Vec<u8> {
        let mut content = self.synced.clone();
        for (_, change) in &self.pending {
            match *change {
                Change::Truncate { size } if random.percent(luck.arrives) => content.resize(size, 0),
                Change::Truncate { .. } => {}
                Change::Write { offset, data } => {
                    for (offset, piece) in pieces(offset, data, luck.torn) {
                        if random.percent(luck.arrives) {
                            put(&mut content, offset, piece);
                        }
                    }
                    // A file's length is stored separately from its content and may arrive without it.
                    if random.percent(luck.arrives / 2) && content.len() < offset + data.len() {
                        content.resize(offset + data.len(), 0);
                    }
                }
            }
        }
        content
    }
}

impl Name {
    fn sync(&mut self, began: At) {
        let covered = self.pending.partition_point(|(at, _)| *at < began);
        if let Some((_, file)) = self.pending.drain(..covered).next_back() {
            self.synced = file;
        }
    }
}

/// Splits a write into the parts that arrive independently, at sector boundaries.
fn pieces(offset: usize, data: &[u8], torn: bool) -> impl Iterator<Item = (usize, &[u8])> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let left = data.len() - start;
        let length = if torn { left.min(SECTOR - (offset + start) % SECTOR) } else { left };
        let piece = (offset + start, &data[start..start + length]);
        start += length;
        (length > 0).then_some(piece)
    })
}

fn put(content: &mut Vec<u8>, offset: usize, data: &[u8]) {
    if content.len() < offset + data.len() {
        content.resize(offset + data.len(), 0);
    }
    content[offset..offset + data.len()].copy_from_slice(data);
}
