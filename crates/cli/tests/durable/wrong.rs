//! Data directories that cannot be used: each is refused with exit code 2 and one line that says what to do, and is
//! not changed.

use crate::harness::Installation;
use crate::run::CHAIN;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use stepwell_testing::embedded_only;

/// Every file in a directory: how long it is, and a hash of it. Without what holds no data: our lock, and the two files
/// that SQLite lays beside whatever it reads.
fn contents(directory: &Path) -> BTreeMap<String, (usize, u64)> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.map(|path| {
        let mut hash = DefaultHasher::new();
        let bytes = std::fs::read(&path).unwrap();
        bytes.hash(&mut hash);
        (path.file_name().unwrap().to_string_lossy().into_owned(), (bytes.len(), hash.finish()))
    });
    let empty = |name: &str, length| name.ends_with("-shm") || (name.ends_with("-wal") && length == 0);
    files.filter(|(name, (length, _))| name != "stepwell.lock" && !empty(name, *length)).collect()
}

/// Every command refuses the directory with these words and leaves it alone.
#[track_caller]
fn refused(place: &Installation, words: &str) {
    let file = place.file("chain.yaml", CHAIN);
    let before = place.data().is_dir().then(|| contents(&place.data()));
    let commands: [&[&str]; 7] = [
        &["run", &file],
        &["run", "--resume", "run_x"],
        &["pipe", &file],
        &["runs"],
        &["show", "run_x"],
        &["cancel", "run_x"],
        &["doctor"],
    ];
    for args in commands {
        let said = place.stepwell(args).expect(2).says(words).says("--data DIR");
        assert_eq!((said.err.lines().count(), said.out.as_str()), (1, ""), "{args:?}: {}", said.err);
        assert_eq!(before, place.data().is_dir().then(|| contents(&place.data())), "{args:?}");
    }
}

#[test]
fn a_file_is_not_a_directory() {
    if embedded_only("a database is no directory") {
        return;
    }
    let place = Installation::new();
    std::fs::write(place.data(), "mine").unwrap();
    refused(&place, "is a file, not a data directory");
    assert_eq!(std::fs::read(place.data()).unwrap(), b"mine");
}

#[test]
fn something_that_is_no_database_is_refused() {
    if embedded_only("a database is no directory") {
        return;
    }
    let place = Installation::new();
    std::fs::create_dir(place.data()).unwrap();
    std::fs::write(place.data().join("stepwell.db"), "these are my notes, not a database".repeat(100)).unwrap();
    refused(&place, "not a readable database");
}

#[test]
fn a_database_of_another_program_is_refused() {
    if embedded_only("a database is no directory") {
        return;
    }
    for journal in ["DELETE", "WAL"] {
        let place = Installation::new();
        std::fs::create_dir(place.data()).unwrap();
        let db = rusqlite::Connection::open(place.data().join("stepwell.db")).unwrap();
        db.pragma_update(None, "journal_mode", journal).unwrap();
        db.execute_batch("CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES ('mine')").unwrap();
        drop(db);
        refused(&place, "belongs to another program");
    }
}

#[test]
fn a_directory_of_a_newer_program_is_refused() {
    if embedded_only("a database is no directory") {
        return;
    }
    let place = Installation::new();
    let file = place.file("chain.yaml", CHAIN);
    place.stepwell(&["run", &file]).expect(0);
    let db = rusqlite::Connection::open(place.data().join("stepwell.db")).unwrap();
    db.pragma_update(None, "user_version", 999).unwrap();
    drop(db);
    refused(&place, "use a newer stepwell");
}

#[test]
fn a_database_whose_schema_is_damaged_is_refused() {
    if embedded_only("a database is no directory") {
        return;
    }
    let place = Installation::new();
    let file = place.file("chain.yaml", CHAIN);
    place.stepwell(&["run", &file]).expect(0);
    let path = place.data().join("stepwell.db");
    let db = rusqlite::Connection::open(&path).unwrap();
    db.pragma_update(None, "journal_mode", "DELETE").unwrap();
    drop(db);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[100..200].fill(0xee);
    std::fs::write(&path, bytes).unwrap();
    refused(&place, "not a readable database");
}

#[test]
fn a_directory_that_may_not_be_written_is_refused() {
    if embedded_only("a database is no directory") {
        return;
    }
    // Even root may not make directories here.
    if !Path::new("/sys/kernel").is_dir() {
        return;
    }
    let place = Installation::new();
    let file = place.file("chain.yaml", CHAIN);
    let said = place.stepwell(&["run", &file, "--data", "/sys/kernel/stepwell"]).expect(2);
    said.says("the directory cannot be created").says("--data DIR");
}

#[test]
fn a_directory_that_another_process_has_is_refused_and_the_process_is_named() {
    if embedded_only("a database is no directory") {
        return;
    }
    let place = Installation::new();
    let file = place.file("gate.yaml", "name: gate\ntasks: {ask: {approval: true}}\n");
    let mut running = place.start(&["run", &file]);
    running.until("asks for approval");
    let owner = format!("process {}", running.child.id());
    place.stepwell(&["runs"]).expect(2).says(&owner).says("has this directory open");
    // Looking needs no lock: a copy is examined.
    place.stepwell(&["doctor"]).expect(0).says("another process uses the directory").says("1 for approval");
    running.kill();
    // A lock dies with its process.
    place.stepwell(&["runs"]).expect(0);
}

#[test]
fn looking_makes_no_directory() {
    if embedded_only("a database is no directory") {
        return;
    }
    let place = Installation::new();
    for args in [&["runs"][..], &["doctor"], &["show", "run_x"], &["run", "--resume", "run_x"]] {
        place.stepwell(args).expect(2).says("there is no data directory");
        assert!(!place.data().exists(), "{args:?}");
    }
    std::fs::create_dir(place.data()).unwrap();
    place.stepwell(&["runs"]).expect(2).says("is not a data directory");
    assert_eq!(std::fs::read_dir(place.data()).unwrap().count(), 0);
}
