//! Records disk operations in order: the log that power cuts are simulated from.
//!
//! One recorder watches one directory. Not here: what a cut leaves behind (`disk`), how SQLite is intercepted (`vfs`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard};

/// A file and its content, independently of its name: a reused name is another file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FileId(pub usize);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Database,
    Wal,
    /// The rollback journal, used only until the file is in WAL mode.
    Journal,
}

/// A number of events: a power cut at `At(n)` happens after the first `n` events.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct At(pub usize);

pub enum Event {
    Create {
        name: String,
        file: FileId,
    },
    Unlink {
        name: String,
    },
    Write {
        file: FileId,
        offset: usize,
        data: Vec<u8>,
    },
    Truncate {
        file: FileId,
        size: usize,
    },
    /// A sync that ended here; it guarantees only what was written before it began.
    Sync {
        file: FileId,
        began: At,
    },
    SyncDirectory {
        began: At,
    },
}

/// All events in one directory.
#[derive(Default)]
pub struct Recording {
    pub events: Vec<Event>,
    /// By [`FileId`].
    pub kinds: Vec<Kind>,
}

pub struct Recorder {
    directory: PathBuf,
    state: Mutex<State>,
    closed: Condvar,
}

#[derive(Default)]
struct State {
    recording: Recording,
    names: BTreeMap<String, FileId>,
    handles: usize,
}

impl Recorder {
    pub fn new(directory: &Path) -> Recorder {
        // SQLite resolves links before it opens a file.
        let directory = directory.canonicalize().unwrap();
        Recorder { directory, state: Mutex::default(), closed: Condvar::new() }
    }

    /// Returns the name of a file in the watched directory; `None` for any other file.
    pub fn name(&self, path: &Path) -> Option<String> {
        let inside = path.parent() == Some(&self.directory);
        inside.then(|| path.file_name().unwrap().to_string_lossy().into_owned())
    }

    pub fn now(&self) -> At {
        At(self.lock().recording.events.len())
    }

    pub fn record(&self, event: Event) {
        self.lock().recording.events.push(event);
    }

    /// Records that a handle was opened, and that the file was created if the name was free.
    pub fn open(&self, name: String, kind: Kind) -> FileId {
        let mut state = self.lock();
        state.handles += 1;
        if let Some(file) = state.names.get(&name) {
            return *file;
        }
        let file = FileId(state.recording.kinds.len());
        state.recording.kinds.push(kind);
        state.names.insert(name.clone(), file);
        state.recording.events.push(Event::Create { name, file });
        file
    }

    pub fn unlink(&self, name: String) {
        let mut state = self.lock();
        if state.names.remove(&name).is_some() {
            state.recording.events.push(Event::Unlink { name });
        }
    }

    pub fn close(&self) {
        self.lock().handles -= 1;
        self.closed.notify_all();
    }

    /// Waits until no file in the directory is open: a dropped store closes its file on its own thread.
    pub fn wait_until_closed(&self) {
        let state = self.closed.wait_while(self.lock(), |state| state.handles > 0);
        drop(state.unwrap());
    }

    pub fn take(&self) -> Recording {
        std::mem::take(&mut self.lock().recording)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}
