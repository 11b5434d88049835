//! Intercepts SQLite: a VFS that wraps the unix VFS and reports writes and syncs to a [`Recorder`].
//!
//! It is the default VFS of this process, because the store opens its file without naming one. Files outside the
//! watched directories (the images that are checked) pass through and are not synced: they need not be durable.

use crate::recorder::{Event, FileId, Kind, Recorder};
use rusqlite::ffi::{self, sqlite3_file, sqlite3_io_methods, sqlite3_vfs};
use std::cell::Cell;
use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

static WATCHED: Mutex<Vec<Arc<Recorder>>> = Mutex::new(Vec::new());
static UNIX: OnceLock<Unix> = OnceLock::new();

thread_local! {
    /// Set when the unix VFS opens a directory, which it only does to sync it.
    static DIRECTORY_SYNCED: Cell<bool> = const { Cell::new(false) };
}

/// The wrapped VFS.
struct Unix {
    vfs: *mut sqlite3_vfs,
    open_directory: OpenDirectory,
}

// SAFETY: SQLite's own VFS objects live as long as the process and are made to be used from any thread.
unsafe impl Send for Unix {}
// SAFETY: as above.
unsafe impl Sync for Unix {}

type OpenDirectory = unsafe extern "C" fn(*const c_char, *mut c_int) -> c_int;

/// Records everything in the recorder's directory from now on.
pub fn watch(recorder: Arc<Recorder>) {
    UNIX.get_or_init(install);
    WATCHED.lock().unwrap().push(recorder);
}

fn install() -> Unix {
    // SAFETY: the calls follow SQLite's documentation, and the new VFS is never freed.
    unsafe {
        assert_eq!(ffi::sqlite3_initialize(), ffi::SQLITE_OK);
        for absent in [c"NO_SYNC", c"DISABLE_DIRSYNC"] {
            assert_eq!(
                ffi::sqlite3_compileoption_used(absent.as_ptr()),
                0,
                "SQLite is built without syncs: {absent:?}"
            );
        }
        let unix = ffi::sqlite3_vfs_find(c"unix".as_ptr());
        let real = (*unix).xGetSystemCall.unwrap()(unix, c"openDirectory".as_ptr()).unwrap();
        let mine: unsafe extern "C" fn() = std::mem::transmute(open_directory as OpenDirectory);
        let set = (*unix).xSetSystemCall.unwrap()(unix, c"openDirectory".as_ptr(), Some(mine));
        assert_eq!(set, ffi::SQLITE_OK);
        let shim = Box::leak(Box::new(*unix));
        shim.szOsFile += size_of::<File>() as c_int;
        shim.zName = c"power-cut".as_ptr();
        shim.xOpen = Some(open);
        shim.xDelete = Some(delete);
        assert_eq!(ffi::sqlite3_vfs_register(shim, 1), ffi::SQLITE_OK);
        Unix { vfs: unix, open_directory: std::mem::transmute::<unsafe extern "C" fn(), OpenDirectory>(real) }
    }
}

/// SQLite's representation of an open file, directly followed by the unix VFS's own.
#[repr(C)]
struct File {
    base: sqlite3_file,
    /// Boxed by `open`, dropped by `close`; null for a file that is not watched.
    handle: *mut Handle,
}

struct Handle {
    recorder: Arc<Recorder>,
    file: FileId,
    synced: Cell<bool>,
}

fn unix() -> &'static Unix {
    UNIX.get().unwrap()
}

unsafe fn real(file: *mut sqlite3_file) -> *mut sqlite3_file {
    // SAFETY: `szOsFile` reserves space for both.
    unsafe { file.cast::<File>().add(1).cast() }
}

unsafe fn methods(file: *mut sqlite3_file) -> &'static sqlite3_io_methods {
    // SAFETY: the unix VFS has opened the file, and its method tables are constants.
    unsafe { &*(*real(file)).pMethods }
}

unsafe fn handle<'a>(file: *mut sqlite3_file) -> Option<&'a Handle> {
    // SAFETY: `open` has set it, and SQLite makes no call for a file during or after its `close`.
    unsafe { (*file.cast::<File>()).handle.as_ref() }
}

/// Returns the recorder that watches this path, and the file's name in its directory.
unsafe fn watcher(path: *const c_char) -> Option<(Arc<Recorder>, String)> {
    if path.is_null() {
        return None;
    }
    // SAFETY: SQLite passes NUL-terminated names.
    let path = Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes()));
    let watched = WATCHED.lock().unwrap();
    watched.iter().find_map(|recorder| Some((recorder.clone(), recorder.name(path)?)))
}

unsafe extern "C" fn open(
    _: *mut sqlite3_vfs,
    path: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    // SAFETY: SQLite has allocated `szOsFile` bytes at `file`; without methods it does not use them.
    unsafe {
        (*file).pMethods = std::ptr::null();
        let result = (*unix().vfs).xOpen.unwrap()(unix().vfs, path, real(file), flags, out);
        if result != ffi::SQLITE_OK {
            return result;
        }
        let handle = watcher(path).map(|(recorder, name)| {
            let kind = match flags {
                flags if flags & ffi::SQLITE_OPEN_MAIN_DB != 0 => Kind::Database,
                flags if flags & ffi::SQLITE_OPEN_WAL != 0 => Kind::Wal,
                flags if flags & ffi::SQLITE_OPEN_MAIN_JOURNAL != 0 => Kind::Journal,
                _ => panic!("a file of unknown kind: {name}"),
            };
            let file = recorder.open(name, kind);
            Box::into_raw(Box::new(Handle { recorder, file, synced: Cell::new(false) }))
        });
        file.cast::<File>()
            .write(File { base: sqlite3_file { pMethods: &METHODS }, handle: handle.unwrap_or(std::ptr::null_mut()) });
        result
    }
}

unsafe extern "C" fn delete(_: *mut sqlite3_vfs, path: *const c_char, sync: c_int) -> c_int {
    // SAFETY: passes on SQLite's arguments.
    unsafe {
        let watcher = watcher(path);
        if let Some((recorder, name)) = &watcher {
            recorder.unlink(name.clone());
        }
        let began = watcher.as_ref().map(|(recorder, _)| recorder.now());
        DIRECTORY_SYNCED.set(false);
        let result = (*unix().vfs).xDelete.unwrap()(unix().vfs, path, sync);
        if let (Some((recorder, _)), Some(began), true) = (watcher, began, DIRECTORY_SYNCED.get()) {
            recorder.record(Event::SyncDirectory { began });
        }
        result
    }
}

unsafe extern "C" fn open_directory(path: *const c_char, descriptor: *mut c_int) -> c_int {
    // SAFETY: passes on SQLite's arguments.
    let result = unsafe { (unix().open_directory)(path, descriptor) };
    DIRECTORY_SYNCED.set(result == ffi::SQLITE_OK);
    result
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    // SAFETY: this is the last call for this file, and the box is the one that `open` created.
    unsafe {
        let result = methods(file).xClose.unwrap()(real(file));
        let handle = std::mem::replace(&mut (*file.cast::<File>()).handle, std::ptr::null_mut());
        if !handle.is_null() {
            Box::from_raw(handle).recorder.close();
        }
        result
    }
}

unsafe extern "C" fn write(file: *mut sqlite3_file, data: *const c_void, length: c_int, offset: i64) -> c_int {
    // SAFETY: SQLite passes `length` bytes at `data`.
    unsafe {
        if let Some(handle) = handle(file) {
            let data = std::slice::from_raw_parts(data.cast::<u8>(), length as usize).to_vec();
            handle.recorder.record(Event::Write { file: handle.file, offset: offset as usize, data });
        }
        methods(file).xWrite.unwrap()(real(file), data, length, offset)
    }
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, size: i64) -> c_int {
    // SAFETY: passes on SQLite's arguments.
    unsafe {
        if let Some(handle) = handle(file) {
            handle.recorder.record(Event::Truncate { file: handle.file, size: size as usize });
        }
        methods(file).xTruncate.unwrap()(real(file), size)
    }
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, flags: c_int) -> c_int {
    // SAFETY: passes on SQLite's arguments.
    unsafe {
        let Some(handle) = handle(file) else { return ffi::SQLITE_OK };
        let began = handle.recorder.now();
        DIRECTORY_SYNCED.set(false);
        // The unix VFS syncs the directory with the first sync of a file, so that one must be real. The others would
        // only make the test as slow as the disk.
        if !handle.synced.replace(true) {
            let result = methods(file).xSync.unwrap()(real(file), flags);
            if result != ffi::SQLITE_OK {
                return result;
            }
        }
        handle.recorder.record(Event::Sync { file: handle.file, began });
        if DIRECTORY_SYNCED.get() {
            handle.recorder.record(Event::SyncDirectory { began });
        }
        ffi::SQLITE_OK
    }
}

unsafe extern "C" fn barrier(file: *mut sqlite3_file) {
    // SAFETY: passes on SQLite's arguments.
    unsafe { methods(file).xShmBarrier.unwrap()(real(file)) }
}

/// Methods that are passed through without recording.
macro_rules! pass {
    ($($name:ident = $method:ident($($argument:ident: $type:ty),*);)*) => {
        $(unsafe extern "C" fn $name(file: *mut sqlite3_file, $($argument: $type),*) -> c_int {
            // SAFETY: passes on SQLite's arguments.
            unsafe { methods(file).$method.unwrap()(real(file), $($argument),*) }
        })*
    };
}

pass! {
    read = xRead(data: *mut c_void, length: c_int, offset: i64);
    file_size = xFileSize(size: *mut i64);
    lock = xLock(level: c_int);
    unlock = xUnlock(level: c_int);
    check_reserved_lock = xCheckReservedLock(out: *mut c_int);
    file_control = xFileControl(operation: c_int, argument: *mut c_void);
    sector_size = xSectorSize();
    device_characteristics = xDeviceCharacteristics();
    map = xShmMap(page: c_int, size: c_int, extend: c_int, out: *mut *mut c_void);
    shm_lock = xShmLock(offset: c_int, n: c_int, flags: c_int);
    unmap = xShmUnmap(delete: c_int);
}

/// Version 2 has shared memory, which WAL needs; version 3 would let SQLite bypass this VFS through a memory map.
static METHODS: sqlite3_io_methods = sqlite3_io_methods {
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: Some(map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(barrier),
    xShmUnmap: Some(unmap),
    xFetch: None,
    xUnfetch: None,
};
