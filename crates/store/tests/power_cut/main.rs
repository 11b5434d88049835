//! Nothing that was acknowledged is lost when the power goes. Killing the process cannot show this: what was written
//! and never synced survives a kill. So all that SQLite asks of the disk is recorded, and files are rebuilt as they
//! could be after a cut at many moments of the recording.
//!
//! `STEPWELL_SEED` sets the seed, `STEPWELL_CUTS` how many cuts. A seed chooses the workload, the cuts and what
//! arrives; how the tasks take turns is up to the machine. A failure prints its seed and keeps the files.

// The VFS stands in front of SQLite's unix one.
#![cfg(unix)]
// In a test a panic is the report.
#![allow(clippy::unwrap_used)]
// A VFS is a table of C functions, and there is no safe way to give SQLite one.
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
/// Of all cuts, those given to each mistake: far fewer are needed to find one.
const SHARE_OF_A_MISTAKE: u64 = 6;
const MIN_CUTS_OF_A_MISTAKE: u64 = 30;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}: {text}")))
}

/// One recording for all tests: they differ in what the disk makes of it.
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
        println!("the first: {what}");
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
fn a_store_that_never_syncs_is_found_out() {
    let found = cut(Syncs::NoneOfFiles);
    assert!(found.lost > 0 && found.broken > 0);
}

#[test]
fn a_store_that_does_not_sync_each_commit_is_found_to_lose_some_and_to_stay_whole() {
    let found = cut(Syncs::NotPerCommit);
    assert!(found.lost > 0);
    assert_eq!(found.broken, 0);
}

#[test]
fn a_store_that_does_not_sync_its_directory_is_found_out() {
    let found = cut(Syncs::NoneOfDirectory);
    assert!(found.lost > 0);
}

/// A cut can only find what was going on: if the workload no longer does these things, the other tests prove less.
#[test]
fn the_recording_has_all_that_can_go_wrong() {
    let recording = &recorded().recording;
    let count = |wanted: &dyn Fn(&Event) -> bool| recording.events.iter().filter(|event| wanted(event)).count();
    let synced =
        |kind: Kind| count(&|event| matches!(event, Event::Sync { file, .. } if recording.kinds[file.0] == kind));
    let begun =
        count(&|event| matches!(event, Event::Write { file, offset: 0, .. } if recording.kinds[file.0] == Kind::Wal));
    let wals = recording.kinds.iter().filter(|kind| **kind == Kind::Wal).count();
    assert!(begun > wals, "a WAL that was copied back is written from its beginning again");
    assert!(synced(Kind::Database) > 3, "the WAL is copied back more than once");
    assert!(synced(Kind::Wal) < recorded().acknowledged.len(), "commits share syncs");
    assert!(synced(Kind::Journal) > 0, "the file is made with a rollback journal");
    assert!(count(&|event| matches!(event, Event::Unlink { .. })) > 0, "files go");
}
