//! The embedded store: one SQLite file, one writer, any number of readers.
//!
//! WAL with `synchronous=FULL`: a commit is acknowledged only when it is on disk. Readers have their own connections
//! and never wait for the writer, nor the writer for them.

mod apply;
pub mod backup;
pub mod baseline;
mod evidence;
mod nodes;
mod query;
mod readers;
mod registry;
mod retention;
mod schema;
pub(crate) mod transfer;
mod writer;

use crate::evidence::SharedKey;
use crate::*;
use evidence::{Ledger, Tx};
use readers::Readers;
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use writer::Writer;

/// The only writer of an embedded store. Rows transferred from another store may have other writers.
const WRITER: i32 = 0;
/// Prepared statements kept per connection.
const STATEMENTS: usize = 128;

pub struct SqliteStore {
    writer: Writer,
    readers: Readers,
    /// Nodes of this process. Nodes of earlier processes are gone, because this process holds the lock.
    nodes: Mutex<BTreeMap<NodeId, NewNode>>,
    key: SharedKey,
    /// Every commit since recording started, so that a benchmark can replay it.
    recording: Option<Recording>,
}

/// Commits in the order in which they were requested.
pub type Recording = Arc<Mutex<Vec<Commit>>>;

impl SqliteStore {
    /// Opens the store in a directory, creating both if necessary. Fails if another process has the directory open.
    pub fn open(directory: &Path) -> Result<SqliteStore, Error> {
        let lock = lock(directory)?;
        let unusable = |what: &str, error: &dyn std::fmt::Display| {
            Error::Unusable(format!("{}: {what}: {error}", directory.display()))
        };
        let path = directory.join("stepwell.db");
        // Checked before any setting is changed: a file of another program must stay untouched.
        schema::check_file(&path)?;
        keep_private(&path).map_err(|error| unusable("the database's permissions cannot be set", &error))?;
        let mut connection =
            apply::open_for_writing(&path).map_err(|error| unusable("the database cannot be opened", &error))?;
        schema::migrate(&mut connection)?;
        let position = connection
            .query_row(
                "SELECT max(position, coalesce((SELECT max(position) FROM workflow_events), 0)) FROM purged",
                [],
                |row| row.get(0),
            )
            .map_err(|error| unusable("the database cannot be read", &error))?;
        let key = SharedKey::default();
        let writer = Writer::start(connection, position, Ledger::new(key.clone()), lock)
            .map_err(|error| unusable("the writer thread cannot be started", &error))?;
        let readers = Readers::new(path);
        Ok(SqliteStore { writer, readers, nodes: Mutex::default(), key, recording: None })
    }

    fn alive(&self) -> MutexGuard<'_, BTreeMap<NodeId, NewNode>> {
        self.nodes.lock().expect("no panic while the lock is held")
    }

    /// Limits the size of the file: writes beyond it fail as on a full disk; runs can still be removed.
    pub async fn limit_size(&self, bytes: u64) -> Result<(), Error> {
        self.writer.write(move |db| retention::limit(db, bytes)).await
    }

    /// Records every commit from now on: the benchmark's baseline writes the same rows.
    pub fn recording(mut self) -> (SqliteStore, Recording) {
        let recording = Recording::default();
        self.recording = Some(recording.clone());
        (self, recording)
    }

    /// Runs a query on a reader connection, off the async threads.
    async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        self.readers.read(query).await
    }
}

/// Creates the directory so that it survives a power cut.
fn create_directory(directory: &Path) -> std::io::Result<()> {
    let missing: Vec<&Path> = directory.ancestors().take_while(|path| !path.exists()).collect();
    let mut builder = std::fs::DirBuilder::new();
    // Workflow data must not be readable by other users.
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(directory)?;
    for created in missing {
        let parent = created.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(parent)?.sync_all()?;
    }
    Ok(())
}

/// Lets only the owner read and write the database, whatever the mode of its directory. SQLite gives its journal the same
/// mode; the journal of an earlier version may still have another one.
#[cfg(unix)]
fn keep_private(database: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    const OWNER_ONLY: u32 = 0o600;
    File::options().create(true).append(true).mode(OWNER_ONLY).open(database)?;
    for suffix in ["", "-wal", "-shm"] {
        let mut path = database.as_os_str().to_owned();
        path.push(suffix);
        match std::fs::metadata(&path) {
            Ok(found) if found.permissions().mode() & 0o077 != 0 => {
                std::fs::set_permissions(&path, PermissionsExt::from_mode(OWNER_ONLY))?;
            }
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(not(unix))]
fn keep_private(_: &Path) -> std::io::Result<()> {
    Ok(())
}

/// Whether another process has the store of this directory open.
pub fn is_in_use(directory: &Path) -> bool {
    let file = File::open(directory.join("stepwell.lock"));
    file.is_ok_and(|lock| matches!(lock.try_lock(), Err(std::fs::TryLockError::WouldBlock)))
}

/// Locks the directory for this process. The error names the process that holds the lock.
fn lock(directory: &Path) -> Result<File, Error> {
    let path = directory.join("stepwell.lock");
    let unusable = |what: &str| Error::Unusable(format!("{}: {what}", directory.display()));
    create_directory(directory).map_err(|error| unusable(&format!("the directory cannot be created: {error}")))?;
    let opened = File::options().create(true).truncate(false).read(true).write(true).open(&path);
    let mut lock = opened.map_err(|error| unusable(&format!("the lock file cannot be opened: {error}")))?;
    if let Err(error) = lock.try_lock() {
        let holder = std::fs::read_to_string(&path).unwrap_or_default();
        let holder = holder.trim().parse::<u32>().map(|pid| format!(" (process {pid})")).unwrap_or_default();
        return Err(match error {
            std::fs::TryLockError::WouldBlock => unusable(&format!(
                "another stepwell{holder} has this directory open; stop it, or use another directory"
            )),
            std::fs::TryLockError::Error(error) => unusable(&format!("the directory cannot be locked: {error}")),
        });
    }
    // Only for the error message of other processes: the file lock is what counts, not its content.
    let pid = format!("{}\n", std::process::id());
    let written = lock.set_len(0).and_then(|()| std::io::Write::write_all(&mut lock, pid.as_bytes()));
    // A full disk must not prevent a store from being opened and cleaned up.
    drop(written);
    Ok(lock)
}

#[async_trait]
impl Store for SqliteStore {
    async fn commit(&self, batch: Vec<Commit>) -> Result<Vec<Result<Position, Refused>>, Error> {
        if let Some(recording) = self.recording.as_ref().and_then(|recording| recording.lock().ok()) {
            { recording }.extend(batch.iter().cloned());
        }
        self.writer.commit(batch).await
    }

    async fn load(&self, run: RunId) -> Result<Option<LoadedRun>, Error> {
        self.read(move |db| query::load(db, run)).await
    }

    async fn head(&self, run: RunId) -> Result<Option<LoadedRun>, Error> {
        self.read(move |db| query::head(db, run)).await
    }

    async fn outline(&self, run: RunId) -> Result<Option<LoadedRun>, Error> {
        self.read(move |db| query::outline(db, run)).await
    }

    async fn load_small(&self, runs: Vec<RunId>, bytes: u64) -> Result<Vec<LoadedRun>, Error> {
        // All runs in one trip to a reader.
        self.read(move |db| query::load_small(db, &runs, bytes)).await
    }

    async fn sizes(&self, run: RunId) -> Result<Vec<(ValueId, u64)>, Error> {
        self.read(move |db| query::sizes(db, run)).await
    }

    async fn find_run(&self, public: &str) -> Result<Option<RunId>, Error> {
        let public = public.to_string();
        self.read(move |db| {
            let mut find = db.prepare_cached("SELECT id FROM workflow_runs WHERE public_id = ?1")?;
            find.query_row([public], |row| row.get(0).map(RunId)).optional()
        })
        .await
    }

    async fn run_secret(&self, public: &str) -> Result<Option<(RunId, [u8; 16])>, Error> {
        let public = public.to_string();
        self.read(move |db| {
            let mut find = db.prepare_cached("SELECT id, secret FROM workflow_runs WHERE public_id = ?1")?;
            find.query_row([public], |row| Ok((RunId(row.get(0)?), row.get(1)?))).optional()
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

    async fn due(&self, until: Time, share: Share, limit: u32) -> Result<Vec<DueTimer>, Error> {
        self.read(move |db| query::due(db, until, share, limit)).await
    }

    async fn mail(&self, run: RunId) -> Result<Vec<StoredMail>, Error> {
        self.read(move |db| query::mail(db, run)).await
    }

    async fn mailed(&self, after: Option<RunId>, limit: u32) -> Result<Vec<RunId>, Error> {
        let after = after.map_or(i64::MIN, |run| run.0);
        self.read(move |db| {
            let mut find = db.prepare_cached("SELECT DISTINCT run FROM mail WHERE run > ?1 ORDER BY run LIMIT ?2")?;
            find.query_map(params![after, limit], |row| row.get(0).map(RunId))?.collect()
        })
        .await
    }

    async fn outbox(&self, until: Time, after: i64, limit: u32) -> Result<Vec<StoredNotice>, Error> {
        self.read(move |db| query::outbox(db, until, after, limit)).await
    }

    async fn notices(&self, run: RunId, prefix: &str, limit: u32) -> Result<Vec<StoredNotice>, Error> {
        let prefix = prefix.to_string();
        self.read(move |db| query::notices(db, run, &prefix, limit)).await
    }

    async fn forget(&self, stale: Stale) -> Result<(), Error> {
        self.writer.write(move |db| query::forget(db, &stale)).await
    }

    async fn keyed(&self, scope: &str, key: &str, now: Time) -> Result<Option<RunId>, Error> {
        let (scope, key) = (scope.to_string(), key.to_string());
        let sql =
            "SELECT run FROM unique_keys WHERE scope = ?1 AND key = ?2 AND (expires_at IS NULL OR expires_at > ?3)";
        self.read(move |db| {
            let mut find = db.prepare_cached(sql)?;
            find.query_row(params![scope, key, now.0], |row| row.get(0).map(RunId)).optional()
        })
        .await
    }

    async fn queued(&self, after: Option<&str>, limit: u32) -> Result<Vec<(String, RunId)>, Error> {
        let after = after.unwrap_or_default().to_string();
        self.read(move |db| query::queued(db, &after, limit)).await
    }

    async fn first_queued(&self, group: &str) -> Result<Option<RunId>, Error> {
        let group = group.to_string();
        self.read(move |db| query::oldest(db, &group, false)).await
    }

    async fn holder(&self, group: &str) -> Result<Option<RunId>, Error> {
        let group = group.to_string();
        self.read(move |db| query::oldest(db, &group, true)).await
    }

    async fn progress(&self) -> Result<Progress, Error> {
        let sql = "SELECT max(position, coalesce((SELECT max(position) FROM workflow_events), 0)) FROM purged";
        let number = self.read(move |db| db.prepare_cached(sql)?.query_row([], |row| row.get(0))).await?;
        Ok(Progress::from_iter([Position::new(WRITER, number)]))
    }

    async fn feed(&self, after: &Progress, limit: u32) -> Result<Vec<Fed>, Error> {
        let after = after.of(WRITER);
        self.read(move |db| query::feed(db, after, limit)).await
    }

    async fn feed_of(&self, org: OrgId, after: &Progress, limit: u32) -> Result<Vec<Fed>, Error> {
        let after = after.of(WRITER);
        self.read(move |db| query::feed_of(db, org, after, limit)).await
    }

    async fn define(&self, definition: NewDefinition, with: Change) -> Result<Result<DefinitionRow, Refused>, Error> {
        self.writer.write(move |db| registry::in_savepoint(db, |db| query::define(db, &definition, &with))).await
    }

    async fn definition(&self, id: i64) -> Result<Option<DefinitionRow>, Error> {
        self.read(move |db| query::definition(db, "id = ?1", params![id])).await
    }

    async fn find_definition(&self, org: OrgId, name: &str) -> Result<Option<DefinitionRow>, Error> {
        let name = name.to_string();
        self.read(move |db| {
            let by_name = query::definition(db, query::NEWEST, params![org.0, name])?;
            match by_name {
                None if name.starts_with("wf_") => query::definition(db, query::NEWEST_BY_ID, params![org.0, name]),
                found => Ok(found),
            }
        })
        .await
    }

    async fn definitions(&self, org: OrgId) -> Result<Vec<DefinitionRow>, Error> {
        self.read(move |db| query::definitions(db, org)).await
    }

    async fn versions(&self, org: OrgId, workflow: &str) -> Result<Vec<DefinitionRow>, Error> {
        let workflow = workflow.to_string();
        self.read(move |db| query::versions(db, org, &workflow)).await
    }

    async fn undefine(&self, org: OrgId, workflow: &str, at: Time, with: Change) -> Result<bool, Error> {
        let workflow = workflow.to_string();
        let work = move |db: &Tx<'_>| {
            registry::in_savepoint(db, |db| match query::undefine(db, org, &workflow, at)? {
                true => registry::apply(db, &with),
                false => Ok(Err(Refused::Conflict)),
            })
        };
        Ok(self.writer.write(work).await?.is_ok())
    }

    async fn deleted(&self, org: OrgId, named: Option<&str>) -> Result<Vec<(DefinitionRow, Time)>, Error> {
        let named = named.map(str::to_string);
        self.read(move |db| query::deleted(db, org, named.as_deref())).await
    }

    async fn redefine(&self, org: OrgId, workflow: &str, with: Change) -> Result<Result<(), Refused>, Error> {
        let workflow = workflow.to_string();
        let work = move |db: &Tx<'_>| {
            registry::in_savepoint(db, |db| match query::redefine(db, org, &workflow)? {
                Ok(()) => registry::apply(db, &with),
                refused => Ok(refused),
            })
        };
        self.writer.write(work).await
    }

    async fn first_defined(&self, org: OrgId, workflow: &str) -> Result<Option<Time>, Error> {
        let workflow = workflow.to_string();
        self.read(move |db| query::first_defined(db, org, &workflow)).await
    }

    async fn label(&self, run: RunId, labels: Vec<String>, audit: Vec<NewAudit>) -> Result<bool, Error> {
        let work = move |db: &Tx<'_>| {
            let there = query::label(db, run, &labels)?;
            registry::append(db, if there { &audit } else { &[] })?;
            Ok(there)
        };
        self.writer.write(work).await
    }

    async fn gates(&self, org: OrgId, after: Option<(RunId, String)>, limit: u32) -> Result<Vec<OpenGate>, Error> {
        let after = after.map_or((i64::MIN, String::new()), |(run, path)| (run.0, path));
        self.read(move |db| query::gates(db, org, after, limit)).await
    }

    async fn erase(&self, run: RunId, at: Time, audit: Vec<NewAudit>) -> Result<bool, Error> {
        let work = move |db: &Tx<'_>| {
            let erased = retention::erase(db, run, at)?;
            registry::append(db, if erased { &audit } else { &[] })?;
            Ok(erased)
        };
        self.writer.write_secure(work).await
    }

    async fn runs(&self, filter: RunFilter) -> Result<Vec<RunRow>, Error> {
        self.read(move |db| query::runs(db, &filter)).await
    }

    async fn ended(&self, runs: &[RunId]) -> Result<Vec<RunId>, Error> {
        let runs = runs.to_vec();
        self.read(move |db| query::ended(db, runs)).await
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
        self.writer.write(move |db| retention::purge(db, before, limit)).await
    }

    async fn shrink(&self) -> Result<bool, Error> {
        self.writer.write(|db| retention::shrink(db)).await
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

    fn chain_key(&self) -> ChainKey {
        self.key.get()
    }

    async fn unlock(&self, key: ChainKey) -> Result<(), Error> {
        self.use_key(key).await
    }

    async fn rekey(&self, key: ChainKey, with: Change) -> Result<Result<(), Refused>, Error> {
        self.writer.write(move |db| registry::in_savepoint(db, |db| db.rekey(key, &with))).await
    }

    async fn tallies(&self) -> Result<Vec<WriterTally>, Error> {
        self.readable().await
    }

    async fn evidence(&self, points: Vec<TrailPoint>) -> Result<Evidence, Error> {
        self.compare(points).await
    }

    async fn stats(&self, count: bool) -> Result<Stats, Error> {
        let stats = self.read(move |db| retention::stats(db, count)).await?;
        let journal = std::fs::metadata(self.readers.path().with_extension("db-wal")).map_or(0, |file| file.len());
        Ok(Stats { journal, ..stats })
    }

    async fn backlog(&self, now: Time) -> Result<Backlog, Error> {
        self.read(move |db| retention::backlog(db, now)).await
    }

    async fn integrity(&self) -> Result<Vec<String>, Error> {
        self.read(retention::integrity).await
    }
}
