//! Backup, which may run while another process writes to the store, and restore into a new directory.
//!
//! A backup is one plain SQLite file without a journal. It is verified and synced before it gets its final name, so a
//! file with that name is complete. Not here: key files, which belong to the server.

use super::{apply, lock, retention, schema};
use crate::{Error, Stats};
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(super) const FILE: &str = "stepwell.db";
/// How often to retry while another process recovers the store, and how long to wait in between.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(100);

/// Copies the store of a directory to a file that must not exist yet. The directory may be in use: everything
/// acknowledged before the call is in the backup.
pub fn backup(directory: &Path, to: &Path) -> Result<Stats, Error> {
    let source = find(directory)?;
    schema::check_file(&source)?;
    let partial = Partial::create_beside(to)?;
    copy(&source, &partial.path).map_err(|error| apply::error(&error))?;
    let stats = verify(&partial.path, &source)?;
    partial.persist()?;
    Ok(stats)
}

/// Returns the database file of a data directory.
pub(super) fn find(directory: &Path) -> Result<PathBuf, Error> {
    let file = directory.join(FILE);
    if file.is_file() {
        return Ok(file);
    }
    Err(Error::Unusable(format!("{} is not a data directory (no {FILE} in it)", directory.display())))
}

/// Restores a backup into a directory that has no store yet.
pub fn restore(from: &Path, directory: &Path) -> Result<Stats, Error> {
    check_backup(from)?;
    let _lock = lock(directory)?;
    // SQLite would apply a journal left over from another store to this one.
    let entries = std::fs::read_dir(directory).map_err(|error| io_error(directory, &error))?;
    let mut paths = entries.flatten().map(|entry| entry.path());
    let of_store = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(FILE));
    if let Some(there) = paths.find(of_store) {
        return Err(Error::Unusable(format!("{} already exists: restore into a new directory", there.display())));
    }
    let to = directory.join(FILE);
    let partial = Partial::create_beside(&to)?;
    let copied = File::open(from).and_then(|mut from| {
        let mut to = File::options().write(true).open(&partial.path)?;
        std::io::copy(&mut from, &mut to)
    });
    copied.map_err(|error| io_error(from, &error))?;
    let stats = verify(&partial.path, from)?;
    partial.persist()?;
    Ok(stats)
}

fn io_error(path: &Path, error: &std::io::Error) -> Error {
    let what = format!("{}: {error}", path.display());
    if error.kind() == std::io::ErrorKind::StorageFull { Error::Full(what) } else { Error::Unusable(what) }
}

/// Copies all pages in one step, which is one snapshot. With several steps, every write to the store would restart the
/// copy. The writer does not wait; only its journal cannot be reset meanwhile.
fn copy(source: &Path, to: &Path) -> rusqlite::Result<()> {
    let from = Connection::open_with_flags(source, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let mut copy = Connection::open_with_flags(to, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    // No other process uses this file yet, and it is synced as a whole at the end.
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
    // The WAL flag was copied too: without it the file is self-contained and can be read anywhere.
    copy.pragma_update(None, "journal_mode", "DELETE")?;
    copy.close().map_err(|(_, error)| error)
}

fn busy() -> rusqlite::Error {
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
    rusqlite::Error::SqliteFailure(code, Some("another process keeps the store locked".into()))
}

/// Checks that a file is a backup before anything is created for it.
fn check_backup(from: &Path) -> Result<(), Error> {
    let not = |what: &str| Error::Unusable(format!("{} is not a backup: {what}", from.display()));
    let mut head = [0; 20];
    let file = File::open(from).map_err(|error| io_error(from, &error))?;
    if !file.metadata().is_ok_and(|about| about.is_file()) {
        return Err(not("it is not a file"));
    }
    if { file }.read_exact(&mut head).is_err() || !head.starts_with(b"SQLite format 3\0") {
        return Err(not("it is not a database"));
    }
    // Bytes 18 and 19 are the write and read version: 2 means WAL.
    if head[18..20] != [1, 1] {
        return Err(not("it is the file of a live store, and part of its data may be in the journal beside it; \
                        use `stepwell backup` to make a complete copy"));
    }
    open(from).and_then(|copy| version(&copy)).map(|_| ()).map_err(|error| not(&error.to_string()))
}

fn open(path: &Path) -> Result<Connection, Error> {
    let opened = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY);
    opened.map_err(|error| apply::error(&error))
}

fn version(copy: &Connection) -> Result<usize, Error> {
    match schema::check(copy)? {
        0 => Err(Error::Unusable("it is empty".into())),
        version => Ok(version),
    }
}

/// Checks the integrity of a copy and returns its size. Errors name the file that was copied.
fn verify(copy: &Path, of: &Path) -> Result<Stats, Error> {
    let of = |error: &dyn std::fmt::Display| Error::Unusable(format!("{}: {error}", of.display()));
    let copy = open(copy)?;
    version(&copy).map_err(|error| of(&error))?;
    let faults = retention::integrity(&copy).map_err(|error| of(&error))?;
    if let Some(fault) = faults.first() {
        return Err(of(&format!("it is damaged and was not copied: {fault}")));
    }
    retention::stats(&copy, true).map_err(|error| of(&error))
}

/// A file that gets its final name only when it is complete. Removed on drop otherwise.
struct Partial {
    path: PathBuf,
    to: PathBuf,
}

impl Partial {
    fn create_beside(to: &Path) -> Result<Partial, Error> {
        let Some(name) = to.file_name() else {
            return Err(Error::Unusable(format!("{} is not a file name", to.display())));
        };
        check_absent(to)?;
        let name = format!(".{}.{}.partial", name.to_string_lossy(), std::process::id());
        let path = to.with_file_name(name);
        let mut options = File::options();
        options.write(true).create_new(true);
        // Workflow data must not be readable by other users.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(&path).map_err(|error| io_error(&path, &error))?;
        Ok(Partial { path, to: to.to_path_buf() })
    }

    fn persist(self) -> Result<(), Error> {
        check_absent(&self.to)?;
        let folder = self.to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let persisted = File::open(&self.path)
            .and_then(|file| file.sync_all())
            .and_then(|()| std::fs::rename(&self.path, &self.to))
            .and_then(|()| File::open(folder)?.sync_all());
        persisted.map_err(|error| io_error(&self.to, &error))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // After the rename this file no longer exists.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn check_absent(path: &Path) -> Result<(), Error> {
    match path.symlink_metadata() {
        Ok(_) => Err(Error::Unusable(format!("{} already exists and was not changed", path.display()))),
        Err(_) => Ok(()),
    }
}
