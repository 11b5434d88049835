//! Read-only connections. They never wait for the writer, nor the writer for them. There are few, and reads are short,
//! so that the write-ahead log can be reset.

use super::apply::error;
use crate::Error;
use rusqlite::{Connection, OpenFlags};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tokio::sync::Semaphore;

/// Concurrent reads. Further reads wait: more concurrency would not make the database faster.
const READERS: usize = 4;

pub struct Readers {
    shared: Arc<Shared>,
    permits: Arc<Semaphore>,
}

struct Shared {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    pub fn new(path: PathBuf) -> Readers {
        let shared = Arc::new(Shared { path, idle: Mutex::default() });
        Readers { shared, permits: Arc::new(Semaphore::new(READERS)) }
    }

    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    pub async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        let closed = |_| Error::Unavailable("the store is closed".into());
        let permit = self.permits.clone().acquire_owned().await.map_err(closed)?;
        let shared = self.shared.clone();
        let work = move || {
            let connection = shared.take()?;
            let result = query(&connection);
            shared.give_back(connection);
            drop(permit);
            result
        };
        let joined = tokio::task::spawn_blocking(work).await;
        joined.map_err(|error| Error::Unavailable(error.to_string()))?.map_err(|failed| error(&failed))
    }
}

impl Shared {
    fn take(&self) -> rusqlite::Result<Connection> {
        let idle = self.idle.lock().ok().and_then(|mut idle| idle.pop());
        match idle {
            Some(connection) => Ok(connection),
            None => {
                let connection = Connection::open_with_flags(&self.path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
                connection.set_prepared_statement_cache_capacity(super::STATEMENTS);
                connection.busy_timeout(std::time::Duration::from_secs(5))?;
                Ok(connection)
            }
        }
    }

    fn give_back(&self, connection: Connection) {
        if let Ok(mut idle) = self.idle.lock() {
            idle.push(connection);
        }
    }
}
