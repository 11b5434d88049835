//! The embedded store: one SQLite file, one writer, any number of readers.
//!
//! WAL with `synchronous=FULL`: a commit is acknowledged only when it is on disk. Readers have connections of their own
//! and never wait for the writer, nor it for them.

mod apply;
mod keep;
mod query;
mod schema;
mod writer;

use crate::*;
use rusqlite::{Connection, OpenFlags, OptionalExtension, params};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use writer::Writer;

/// Prepared statements kept per connection.
const STATEMENTS: usize = 128;
/// Reader connections kept open.
const MAX_IDLE_READERS: usize = 8;
/// Pages the WAL may hold before it is copied back.
const CHECKPOINT_PAGES: u32 = 4_000;

pub struct SqliteStore {
    writer: Writer,
    readers: Arc<Readers>,
    /// Held for as long as the store is open: one directory, one process.
    _lock: File,
}

struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
}

impl SqliteStore {
    /// Opens the store in a directory, making both if need be. A directory that another process has open is refused.
    pub fn open(directory: &Path) -> Result<SqliteStore, Error> {
        let unusable = |what: &str, error: &dyn std::fmt::Display| {
            Error::Unusable(format!("{}: {what}: {error}", directory.display()))
        };
        std::fs::create_dir_all(directory).map_err(|error| unusable("the directory cannot be made", &error))?;
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(directory.join("stepwell.lock"))
            .map_err(|error| unusable("the lock file cannot be opened", &error))?;
        lock.try_lock().map_err(|error| unusable("another process has this directory open", &error))?;
        let path = directory.join("stepwell.db");
        let mut connection =
            Connection::open(&path).map_err(|error| unusable("the database cannot be opened", &error))?;
        prepare(&connection).map_err(|error| unusable("the database cannot be used", &error))?;
        schema::migrate(&mut connection)?;
        // The lock is ours, so whatever nodes are written there are gone.
        connection
            .execute("DELETE FROM nodes", [])
            .map_err(|error| unusable("the database cannot be written", &error))?;
        let position = connection
            .query_row(
                "SELECT max(position, coalesce((SELECT max(position) FROM workflow_events), 0)) FROM purged",
                [],
                |row| row.get(0),
            )
            .map_err(|error| unusable("the database cannot be read", &error))?;
        let writer =
            Writer::start(connection, position).map_err(|error| unusable("no thread for the writer", &error))?;
        let readers = Arc::new(Readers { path, idle: Mutex::new(Vec::new()) });
        Ok(SqliteStore { writer, readers, _lock: lock })
    }

    /// Runs a query on a connection of its own, away from the async threads.
    async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        let readers = self.readers.clone();
        let work = move || {
            let connection = readers.take()?;
            let result = query(&connection);
            readers.give_back(connection);
            result
        };
        let joined = tokio::task::spawn_blocking(work).await;
        joined.map_err(|error| Error::Unavailable(error.to_string()))?.map_err(|failed| apply::error(&failed))
    }
}

impl Readers {
    fn take(&self) -> rusqlite::Result<Connection> {
        let idle = self.idle.lock().ok().and_then(|mut idle| idle.pop());
        match idle {
            Some(connection) => Ok(connection),
            None => {
                let connection = Connection::open_with_flags(&self.path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
                connection.set_prepared_statement_cache_capacity(STATEMENTS);
                connection.busy_timeout(std::time::Duration::from_secs(5))?;
                Ok(connection)
            }
        }
    }

    fn give_back(&self, connection: Connection) {
        if let Ok(mut idle) = self.idle.lock()
            && idle.len() < MAX_IDLE_READERS
        {
            idle.push(connection);
        }
    }
}

/// Settings of the writing connection. `auto_vacuum` counts only before the first table is made.
fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "cache_size", -65_536)?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    connection.pragma_update(None, "journal_size_limit", 64 * 1024 * 1024)
}

#[async_trait]
impl Store for SqliteStore {
    async fn commit(&self, batch: Vec<Commit>) -> Result<Vec<Result<Position, Refused>>, Error> {
        self.writer.commit(batch).await
    }

    async fn load(&self, run: RunId) -> Result<Option<LoadedRun>, Error> {
        self.read(move |db| query::load(db, run)).await
    }

    async fn find_run(&self, public: &str) -> Result<Option<RunId>, Error> {
        let public = public.to_string();
        self.read(move |db| {
            let mut find = db.prepare_cached("SELECT id FROM workflow_runs WHERE public_id = ?1")?;
            find.query_row([public], |row| row.get(0).map(RunId)).optional()
        })
        .await
    }

    async fn run(&self, run: RunId) -> Result<Option<RunRow>, Error> {
        self.read(move |db| query::run(db, run)).await
    }

    async fn tail(&self, run: RunId, after: Version, limit: u32) -> Result<Vec<StoredLog>, Error> {
        self.read(move |db| query::tail(db, run, after, limit)).await
    }

    async fn values(&self, run: RunId, ids: &[ValueId]) -> Result<Vec<ValueRow>, Error> {
        let ids = ids.to_vec();
        self.read(move |db| query::values(db, run, &ids)).await
    }

    async fn attempts(&self, run: RunId) -> Result<Vec<StepRow>, Error> {
        self.read(move |db| query::attempts(db, run)).await
    }

    async fn claim(&self, claim: Claim) -> Result<Vec<Claimed>, Error> {
        self.writer.write(move |db| query::claim(db, claim)).await
    }

    async fn held(&self, node: NodeId) -> Result<Vec<Claimed>, Error> {
        self.read(move |db| query::held(db, node)).await
    }

    async fn orphans(&self, limit: u32) -> Result<Vec<Claimed>, Error> {
        self.read(move |db| query::orphans(db, limit)).await
    }

    async fn beat(&self, node: NodeId) -> Result<bool, Error> {
        // The lock on the directory says that this process is alive: no lease can run out.
        self.writer.write(move |db| db.execute("INSERT OR IGNORE INTO nodes (id) VALUES (?1)", [node.0])).await?;
        Ok(true)
    }

    async fn leave(&self, node: NodeId) -> Result<(), Error> {
        self.writer.write(move |db| db.execute("DELETE FROM nodes WHERE id = ?1", [node.0]).map(|_| ())).await
    }

    async fn due(&self, until: Time, limit: u32) -> Result<Vec<DueTimer>, Error> {
        self.read(move |db| query::due(db, until, limit)).await
    }

    async fn mail(&self, run: RunId) -> Result<Vec<StoredMail>, Error> {
        self.read(move |db| query::mail(db, run)).await
    }

    async fn mailed(&self, limit: u32) -> Result<Vec<RunId>, Error> {
        self.read(move |db| {
            let mut find = db.prepare_cached("SELECT DISTINCT run FROM mail ORDER BY run LIMIT ?1")?;
            find.query_map([limit], |row| row.get(0).map(RunId))?.collect()
        })
        .await
    }

    async fn outbox(&self, until: Time, limit: u32) -> Result<Vec<StoredNotice>, Error> {
        self.read(move |db| query::outbox(db, until, limit)).await
    }

    async fn forget(&self, stale: Stale) -> Result<(), Error> {
        self.writer.write(move |db| query::forget(db, &stale)).await
    }

    async fn keyed(&self, scope: &str, key: &str) -> Result<Option<RunId>, Error> {
        let (scope, key) = (scope.to_string(), key.to_string());
        self.read(move |db| {
            let mut find = db.prepare_cached("SELECT run FROM unique_keys WHERE scope = ?1 AND key = ?2")?;
            find.query_row(params![scope, key], |row| row.get(0).map(RunId)).optional()
        })
        .await
    }

    async fn queued(&self, limit: u32) -> Result<Vec<(String, RunId)>, Error> {
        self.read(move |db| query::queued(db, limit)).await
    }

    async fn first_queued(&self, place: &str) -> Result<Option<RunId>, Error> {
        let place = place.to_string();
        self.read(move |db| query::oldest(db, &place, false)).await
    }

    async fn holder(&self, place: &str) -> Result<Option<RunId>, Error> {
        let place = place.to_string();
        self.read(move |db| query::oldest(db, &place, true)).await
    }

    async fn feed(&self, after: Position, limit: u32) -> Result<Vec<Fed>, Error> {
        self.read(move |db| query::feed(db, after, limit)).await
    }

    async fn define(&self, definition: NewDefinition) -> Result<DefinitionRow, Error> {
        self.writer.write(move |db| query::define(db, &definition)).await
    }

    async fn definition(&self, id: i64) -> Result<Option<DefinitionRow>, Error> {
        self.read(move |db| query::definition(db, "id = ?1", params![id])).await
    }

    async fn find_definition(&self, org: OrgId, name: &str) -> Result<Option<DefinitionRow>, Error> {
        let name = name.to_string();
        self.read(move |db| query::definition(db, query::NEWEST, params![org.0, name])).await
    }

    async fn definitions(&self, org: OrgId) -> Result<Vec<DefinitionRow>, Error> {
        self.read(move |db| query::definitions(db, org)).await
    }

    async fn runs(&self, filter: RunFilter) -> Result<Vec<RunRow>, Error> {
        self.read(move |db| query::runs(db, &filter)).await
    }

    async fn epoch(&self, org: OrgId) -> Result<Option<i64>, Error> {
        self.read(move |db| {
            let mut get = db.prepare_cached("SELECT epoch FROM organisations WHERE id = ?1")?;
            get.query_row([org.0], |row| row.get(0)).optional()
        })
        .await
    }

    async fn grants_changed(&self, org: OrgId) -> Result<(), Error> {
        let sql = "UPDATE organisations SET epoch = epoch + 1 WHERE id = ?1";
        self.writer.write(move |db| db.execute(sql, [org.0]).map(|_| ())).await
    }

    async fn purge(&self, before: Time, limit: u32) -> Result<u64, Error> {
        self.writer.write(move |db| keep::purge(db, before, limit)).await
    }

    async fn purgeable(&self, before: Time) -> Result<u64, Error> {
        let sql = "SELECT count(*) FROM workflow_runs WHERE purge_at <= ?1";
        self.read(move |db| db.prepare_cached(sql)?.query_row([before.0], |row| row.get(0).map(i64::unsigned_abs)))
            .await
    }

    async fn expire(&self, run: RunId, at: Time) -> Result<bool, Error> {
        let sql = "UPDATE workflow_runs SET purge_at = ?1 WHERE id = ?2 AND finished_at IS NOT NULL";
        self.writer.write(move |db| Ok(db.prepare_cached(sql)?.execute(params![at.0, run.0])? == 1)).await
    }

    async fn stats(&self) -> Result<Stats, Error> {
        let stats = self.read(keep::stats).await?;
        let journal = std::fs::metadata(self.readers.path.with_extension("db-wal")).map_or(0, |file| file.len());
        Ok(Stats { journal, ..stats })
    }

    async fn integrity(&self) -> Result<Vec<String>, Error> {
        self.read(keep::integrity).await
    }
}
