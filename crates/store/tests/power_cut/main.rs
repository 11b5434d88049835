//! No acknowledged commit is lost in a power cut. Killing the process cannot test this: data that was written but never
//! synced survives a kill. Therefore all disk operations of SQLite are recorded, and files are rebuilt as they could be
//! after a cut at many points of the recording.
//!
//! `STEPWELL_SEED` sets the seed, `STEPWELL_CUTS` the number of cuts. The seed determines the workload, the cuts and
//! which writes arrive; how the tasks are scheduled is up to the machine. A failure prints its seed and keeps the
//! files.

// The VFS wraps SQLite's unix VFS.
#![cfg(unix)]
// In a test a panic reports the failure.
#![allow(clippy::unwrap_used)]
// A VFS is a table of C functions; there is no safe API to register one with SQLite.
#![allow(unsafe_code)]

mod check;
mod cuts;
mod disk;
mod random;
mod recorder;
mod sample;
mod vfs;
mod workload;

use cuts::{Plan, Survey, keep, survey};
use disk::Syncs;
use recorder::{Event, Kind};
use std::sync::OnceLock;
use std::time::Instant;
use workload::Recorded;

const DEFAULT_CUTS: u64 = 200;
/// Each simulated mistake gets one in this many cuts: far fewer are needed to detect it.
const SHARE_OF_A_MISTAKE: u64 = 6;
const MIN_CUTS_OF_A_MISTAKE: u64 = 30;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}: {text}")))
}

/// One recording for all tests: they differ in how the disk treats syncs.
fn recorded() -> &'static Recorded {
    static RECORDED: OnceLock<Recorded> = OnceLock::new();
    RECORDED.get_or_init(|| workload::record(setting("STEPWELL_SEED", 1)))
}

fn cut(syncs: Syncs) -> Survey {
    let (seed, cuts) = (setting("STEPWELL_SEED", 1), setting("STEPWELL_CUTS", DEFAULT_CUTS));
    let cuts = if syncs == Syncs::All { cuts } else { cuts.div_ceil(SHARE_OF_A_MISTAKE).max(MIN_CUTS_OF_A_MISTAKE) };
    let recorded = recorded();
    let start = Instant::now();
    let found = survey(recorded, Plan { syncs, seed, cuts: cuts as usize });
    let (commits, events) = (recorded.acknowledged.len(), recorded.recording.events.len());
    println!("STEPWELL_SEED={seed} {syncs:?}: {commits} commits, {events} events, {:.1?}", start.elapsed());
    println!("{} cuts: {} lost a commit, {} broke the store", found.cuts, found.lost, found.broken);
    if let Some((what, _)) = &found.first {
        println!("first fault: {what}");
    }
    found
}

#[test]
fn nothing_acknowledged_is_lost_when_the_power_goes() {
    if let Some((what, image)) = cut(Syncs::All).first {
        panic!("{what}\nthe files after the cut are in {}", keep(&image).display());
    }
}

#[test]
fn a_store_that_never_syncs_is_detected() {
    let found = cut(Syncs::NoneOfFiles);
    assert!(found.lost > 0 && found.broken > 0);
}

#[test]
fn a_store_that_does_not_sync_each_commit_loses_commits_but_stays_consistent() {
    let found = cut(Syncs::NotPerCommit);
    assert!(found.lost > 0);
    assert_eq!(found.broken, 0);
}

#[test]
fn a_store_that_does_not_sync_its_directory_is_detected() {
    let found = cut(Syncs::NoneOfDirectory);
    assert!(found.lost > 0);
}

/// A cut can only find faults in what was recorded: without these events the other tests prove less.
#[test]
fn the_recording_covers_every_kind_of_event() {
    let recording = &recorded().recording;
    let count = |wanted: &dyn Fn(&Event) -> bool| recording.events.iter().filter(|event| wanted(event)).count();
    let synced =
        |kind: Kind| count(&|event| matches!(event, Event::Sync { file, .. } if recording.kinds[file.0] == kind));
    let begun =
        count(&|event| matches!(event, Event::Write { file, offset: 0, .. } if recording.kinds[file.0] == Kind::Wal));
    let wals = recording.kinds.iter().filter(|kind| **kind == Kind::Wal).count();
    assert!(begun > wals, "after a checkpoint the WAL is written from its beginning again");
    assert!(synced(Kind::Database) > 3, "there is more than one checkpoint");
    assert!(synced(Kind::Wal) < recorded().acknowledged.len(), "commits share syncs");
    assert!(synced(Kind::Journal) > 0, "the file is created with a rollback journal");
    assert!(count(&|event| matches!(event, Event::Unlink { .. })) > 0, "files are deleted");
}
