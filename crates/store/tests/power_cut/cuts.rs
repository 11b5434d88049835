//! Takes power cuts from the recording and counts what they break.

use crate::check::{Fault, check};
use crate::disk::{Disk, Image, Luck, Syncs};
use crate::random::Random;
use crate::recorder::{At, Event, Kind};
use crate::workload::Recorded;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Images are rebuilt and checked side by side.
const THREADS: usize = 2;
/// In percent: nothing of what was not synced, a little, half, most, all (which is what a killed process leaves).
const ARRIVES: [u8; 5] = [0, 5, 50, 95, 100];
/// Events from the first on in which the file is made, and in which its tables are.
const BEGINNINGS: [usize; 2] = [30, 200];
const SHARED_MEMORY: usize = 32 * 1024;

#[derive(Default)]
pub struct Survey {
    pub cuts: usize,
    /// Cuts after which something acknowledged was missing.
    pub lost: usize,
    /// Cuts after which the store could not be used or had something that no commit made.
    pub broken: usize,
    /// What was wrong first, and with which files.
    pub first: Option<(String, Image)>,
}

/// What one survey does: the seed and the number give the same cuts each time.
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

/// Moments in order. Many are where it is tight: when an answer has just come, and while the WAL is copied back.
fn choose(recorded: &Recorded, plan: Plan) -> Vec<Cut> {
    let (events, kinds) = (&recorded.recording.events, &recorded.recording.kinds);
    let copies = |event: &Event| matches!(event, Event::Write { file, .. } if kinds[file.0] == Kind::Database);
    let copying: Vec<_> = (0..events.len()).filter(|n| copies(&events[*n])).collect();
    let mut random = Random::fork(plan.seed, 2);
    let mut moments: Vec<At> = (0..plan.cuts)
        .map(|n| match n % 8 {
            0..3 => At(random.below(events.len() + 1)),
            3..6 => random.pick(&recorded.acknowledged).at,
            // Just before a page is written, just after, or when the sync that follows is over.
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
    // The index of the WAL is shared memory in a file; nobody syncs it, so after a cut it is anything.
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

/// Leaves the files for a person to look at; opening them mends them, so these are not the ones that were checked.
pub fn keep(image: &Image) -> PathBuf {
    let directory = TempDir::new().unwrap().keep();
    put(image, &directory);
    directory
}
