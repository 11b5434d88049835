//! Simulates power cuts from the recording and counts the faults.

use crate::check::{Fault, check};
use crate::disk::{Disk, Image, Luck, Syncs};
use crate::random::Random;
use crate::recorder::{At, Event, Kind};
use crate::workload::Recorded;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Images are rebuilt and checked in parallel.
const THREADS: usize = 2;
/// The percentage of unsynced data that arrives: none, a little, half, most, all (as after a killed process).
const ARRIVES: [u8; 5] = [0, 5, 50, 95, 100];
/// The number of first events in which the file is created, and in which its tables are.
const BEGINNINGS: [usize; 2] = [30, 200];
const SHARED_MEMORY: usize = 32 * 1024;

#[derive(Default)]
pub struct Survey {
    pub cuts: usize,
    /// Cuts after which an acknowledged commit was missing.
    pub lost: usize,
    /// Cuts after which the store was unusable or contained data that no commit wrote.
    pub broken: usize,
    /// The first fault and the files that show it.
    pub first: Option<(String, Image)>,
}

/// The parameters of a survey: the same seed and number give the same cuts.
#[derive(Clone, Copy)]
pub struct Plan {
    pub syncs: Syncs,
    pub seed: u64,
    pub cuts: usize,
}

#[derive(Clone, Copy, Debug)]
struct Cut {
    number: usize,
    at: At,
    luck: Luck,
}

pub fn survey(recorded: &Recorded, plan: Plan) -> Survey {
    let cuts = choose(recorded, plan);
    let share = |thread: usize| {
        let mine: Vec<_> = cuts.iter().copied().skip(thread).step_by(THREADS).collect();
        move || survey_share(recorded, plan, &mine)
    };
    let shares: Vec<Survey> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(share(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut total = Survey { cuts: cuts.len(), ..Survey::default() };
    for share in shares {
        total.lost += share.lost;
        total.broken += share.broken;
        total.first = total.first.or(share.first);
    }
    total
}

/// Chooses the cuts, in order. Many are at critical moments: right after an acknowledgement, and during a checkpoint.
fn choose(recorded: &Recorded, plan: Plan) -> Vec<Cut> {
    let (events, kinds) = (&recorded.recording.events, &recorded.recording.kinds);
    let copies = |event: &Event| matches!(event, Event::Write { file, .. } if kinds[file.0] == Kind::Database);
    let copying: Vec<_> = (0..events.len()).filter(|n| copies(&events[*n])).collect();
    let mut random = Random::fork(plan.seed, 2);
    let mut moments: Vec<At> = (0..plan.cuts)
        .map(|n| match n % 8 {
            0..3 => At(random.below(events.len() + 1)),
            3..6 => random.pick(&recorded.acknowledged).at,
            // Just before a page is written, just after, or after the sync that follows.
            6 => At((random.pick(&copying) + random.below(4)).min(events.len())),
            _ => At(random.below(BEGINNINGS[n / 8 % 2])),
        })
        .collect();
    moments.sort();
    let luck = |random: &mut Random| Luck { arrives: *random.pick(&ARRIVES), torn: random.percent(50) };
    moments.into_iter().enumerate().map(|(number, at)| Cut { number, at, luck: luck(&mut random) }).collect()
}

fn survey_share(recorded: &Recorded, plan: Plan, cuts: &[Cut]) -> Survey {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut disk = Disk::new(&recorded.recording, plan.syncs);
    let mut survey = Survey::default();
    for cut in cuts {
        let mut random = Random::fork(plan.seed, 1_000 + cut.number as u64);
        disk.advance(cut.at);
        let image = image(&disk, cut.luck, &mut random);
        let directory = TempDir::new().unwrap();
        put(&image, directory.path());
        let Err(fault) = runtime.block_on(check(directory.path(), recorded, cut.at, &mut random)) else { continue };
        match &fault {
            Fault::Lost(_) => survey.lost += 1,
            Fault::Broken(_) => survey.broken += 1,
        }
        if survey.first.is_none() {
            survey.first = Some((format!("{cut:?} {fault}"), image));
        }
    }
    survey
}

fn image(disk: &Disk, luck: Luck, random: &mut Random) -> Image {
    let mut image = disk.cut(random, luck);
    // The WAL index is shared memory in a file; it is never synced, so after a cut its content is arbitrary.
    if random.percent(50) {
        image.insert("stepwell.db-shm".into(), (0..SHARED_MEMORY).map(|_| random.next() as u8).collect());
    }
    image
}

fn put(image: &Image, directory: &Path) {
    for (name, content) in image {
        std::fs::write(directory.join(name), content).unwrap();
    }
}

/// Keeps the files for inspection. Opening a store repairs it, so these are not the files that were checked.
pub fn keep(image: &Image) -> PathBuf {
    let directory = TempDir::new().unwrap().keep();
    put(image, &directory);
    directory
}
