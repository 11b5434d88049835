//! Copies of a store: made while another process writes to it, and put in place as a new one.
//!
//! A copy is one plain SQLite file, without a journal beside it. It is checked and on disk before it gets its name, so a
//! file with that name is whole. Not here: key files, which are the server's.

use super::{apply, keep, lock, schema};
use crate::{Error, Stats};
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(super) const FILE: &str = "stepwell.db";
/// How often a store that is being recovered by another process is asked again, and how long to wait in between.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(100);

/// Copies the store of a directory to a file that is not there yet. The directory may be in use: what was acknowledged
/// before the call is in the copy.
pub fn backup(directory: &Path, to: &Path) -> Result<Stats, Error> {
    let source = find(directory)?;
    schema::check_file(&source)?;
    let partial = Partial::beside(to)?;
    copy(&source, &partial.path).map_err(|error| apply::error(&error))?;
    let stats = examine(&partial.path, &source)?;
    partial.keep()?;
    Ok(stats)
}

/// The file of a directory that has one.
pub(super) fn find(directory: &Path) -> Result<PathBuf, Error> {
    let file = directory.join(FILE);
    if file.is_file() {
        return Ok(file);
    }
    Err(Error::Unusable(format!("{} is not a data directory (no {FILE} in it)", directory.display())))
}

/// Makes a copy the store of a directory that has none.
pub fn restore(from: &Path, directory: &Path) -> Result<Stats, Error> {
    recognise(from)?;
    let _lock = lock(directory)?;
    // The journal of another store, left beside this one, would be taken for its own.
    let entries = std::fs::read_dir(directory).map_err(|error| cannot(directory, &error))?;
    let mut paths = entries.flatten().map(|entry| entry.path());
    let of_store = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(FILE));
    if let Some(there) = paths.find(of_store) {
        return Err(Error::Unusable(format!("{} is there already: restore into a new directory", there.display())));
    }
    let to = directory.join(FILE);
    let partial = Partial::beside(&to)?;
    let copied = File::open(from).and_then(|mut from| {
        let mut to = File::options().write(true).open(&partial.path)?;
        std::io::copy(&mut from, &mut to)
    });
    copied.map_err(|error| cannot(from, &error))?;
    let stats = examine(&partial.path, from)?;
    partial.keep()?;
    Ok(stats)
}

fn cannot(path: &Path, error: &std::io::Error) -> Error {
    let what = format!("{}: {error}", path.display());
    if error.kind() == std::io::ErrorKind::StorageFull { Error::Full(what) } else { Error::Unusable(what) }
}

/// All pages in one step, which is one snapshot. In several steps a store that is written to would make the copy begin
/// again each time. Its writer does not wait; only its journal cannot be reset meanwhile.
fn copy(source: &Path, to: &Path) -> rusqlite::Result<()> {
    let from = Connection::open_with_flags(source, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let mut copy = Connection::open_with_flags(to, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    // Nobody knows this file yet, and it is synced as a whole at the end.
    copy.pragma_update(None, "synchronous", "OFF")?;
    let backup = Backup::new(&from, &mut copy)?;
    let mut tries = 1;
    loop {
        match backup.step(-1)? {
            StepResult::Done => break,
            _ if tries < TRIES => std::thread::sleep(PAUSE),
            _ => return Err(busy()),
        }
        tries += 1;
    }
    drop(backup);
    // The mark of a write-ahead log was copied too: without it the file stands alone and can be read anywhere.
    copy.pragma_update(None, "journal_mode", "DELETE")?;
    copy.close().map_err(|(_, error)| error)
}

fn busy() -> rusqlite::Error {
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
    rusqlite::Error::SqliteFailure(code, Some("another process keeps the store locked".into()))
}

/// Whether a file looks like a copy at all, before anything is made for it.
fn recognise(from: &Path) -> Result<(), Error> {
    let not = |what: &str| Error::Unusable(format!("{} is not a backup: {what}", from.display()));
    let mut head = [0; 20];
    let file = File::open(from).map_err(|error| cannot(from, &error))?;
    if !file.metadata().is_ok_and(|about| about.is_file()) {
        return Err(not("it is not a file"));
    }
    if { file }.read_exact(&mut head).is_err() || !head.starts_with(b"SQLite format 3\0") {
        return Err(not("it is no database"));
    }
    // Read and write version: 2 stands for a write-ahead log.
    if head[18..20] != [1, 1] {
        return Err(not("it is the file of a store in use, and part of that may be in the journal beside it; \
                        `stepwell backup` makes a copy that is whole"));
    }
    open(from).and_then(|copy| version(&copy)).map(|_| ()).map_err(|error| not(&error.to_string()))
}

fn open(path: &Path) -> Result<Connection, Error> {
    let opened = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY);
    opened.map_err(|error| apply::error(&error))
}

fn version(copy: &Connection) -> Result<usize, Error> {
    match schema::check(copy)? {
        0 => Err(Error::Unusable("there is nothing in it".into())),
        version => Ok(version),
    }
}

/// Whether a copy is sound, and what is in it. Faults are told of the file that was copied.
fn examine(copy: &Path, of: &Path) -> Result<Stats, Error> {
    let of = |error: &dyn std::fmt::Display| Error::Unusable(format!("{}: {error}", of.display()));
    let copy = open(copy)?;
    version(&copy).map_err(|error| of(&error))?;
    let faults = keep::integrity(&copy).map_err(|error| of(&error))?;
    if let Some(fault) = faults.first() {
        return Err(of(&format!("damaged, and not copied: {fault}")));
    }
    keep::stats(&copy, true).map_err(|error| of(&error))
}

/// A file that has its name only when it is whole. Gone if it never gets there.
struct Partial {
    path: PathBuf,
    to: PathBuf,
}

impl Partial {
    fn beside(to: &Path) -> Result<Partial, Error> {
        let Some(name) = to.file_name() else {
            return Err(Error::Unusable(format!("{} is not the name of a file", to.display())));
        };
        free(to)?;
        let name = format!(".{}.{}.partial", name.to_string_lossy(), std::process::id());
        let path = to.with_file_name(name);
        let mut options = File::options();
        options.write(true).create_new(true);
        // What workflows were given is nobody else's business.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(&path).map_err(|error| cannot(&path, &error))?;
        Ok(Partial { path, to: to.to_path_buf() })
    }

    fn keep(self) -> Result<(), Error> {
        free(&self.to)?;
        let folder = self.to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let kept = File::open(&self.path)
            .and_then(|file| file.sync_all())
            .and_then(|()| std::fs::rename(&self.path, &self.to))
            .and_then(|()| File::open(folder)?.sync_all());
        kept.map_err(|error| cannot(&self.to, &error))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // After a rename there is nothing of that name.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn free(path: &Path) -> Result<(), Error> {
    match path.symlink_metadata() {
        Ok(_) => Err(Error::Unusable(format!("{} is there already, and stays as it is", path.display()))),
        Err(_) => Ok(()),
    }
}
