//! The store for several nodes: PostgreSQL, or a database that speaks its protocol.
//!
//! | part | file |
//! | --- | --- |
//! | commits of different runs in one statement | `batch.rs` |
//! | a commit in its own transaction | `single.rs` |
//! | a writer connection and its queue | `connection.rs`, `writer.rs` |
//! | queries over shared connections | `query.rs`, `rows.rs`, `readers.rs` |
//! | records, definitions, retention | `registry.rs`, `definitions.rs`, `retention.rs` |
//! | nodes and hints between them | `nodes.rs`, `hints.rs` |
//! | hosts, poolers | `hosts.rs`, `pooling.rs` |
//! | writes that stall, positions written here | `stalls.rs`, `own.rs` |
//! | connections, statement arguments, TLS | `session.rs`, `args.rs`, `tls.rs` |
//!
//! Plain SQL: no extensions or procedures, and no advisory locks but one while the schema is created. Decisions about a run
//! are serialised by its version, never by a lock that is held for more than a few statements.

mod args;
pub mod baseline;
mod batch;
mod connection;
mod definitions;
mod evidence;
mod hints;
mod hosts;
mod nodes;
mod own;
mod pooling;
mod query;
mod readers;
mod registry;
mod retention;
mod rows;
mod schema;
mod session;
mod single;
mod stalls;
mod tls;
pub(crate) mod transfer;
mod url;
mod writer;

pub use tls::Tls;
pub use url::{WrongUrl, read as read_url};

use crate::evidence::{Effects, SharedKey};
use crate::*;
use args::args;
use hints::Hints;
use hosts::Database;
use own::Own;
use readers::Readers;
use session::{Purpose, Session};
use stalls::Stalls;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64};
use tokio_util::sync::{CancellationToken, DropGuard};
use writer::Writers;

pub struct PgStore {
    database: Arc<Database>,
    writers: Writers,
    readers: Arc<Readers>,
    heartbeat: Readers,
    hints: Hints,
    supervisor: Supervisor,
    stalls: Arc<Stalls>,
    own: Own,
    /// The holder ids under which this process holds rows of `writers`.
    holders: Vec<i64>,
    /// Milliseconds by which the database's clock is ahead of this machine's.
    ahead: AtomicI64,
    key: SharedKey,
    /// Tallies are kept.
    tallied: AtomicBool,
    /// Stops background tasks when the store is dropped.
    _end: DropGuard,
}

impl PgStore {
    /// Connects and migrates the schema. Must be called within a Tokio runtime.
    pub async fn open(options: &PostgresOptions) -> Result<PgStore, Error> {
        let unreachable = |failed| Error::from(failed).at(&options.to_string());
        let database = Arc::new(Database::new(pooling::adapt(options).await.map_err(unreachable)?));
        let session = Session::connect(&database, Purpose::Maintenance).await.map_err(unreachable)?;
        if !database.unsafe_settings {
            schema::check_durability(&session).await?;
        }
        schema::migrate(&session).await?;
        drop(session);
        let holders: Vec<i64> = (0..database.writers.max(1)).map(|_| random()).collect();
        let readers = Arc::new(Readers::new(database.clone(), Purpose::Reading, database.readers));
        // Heartbeats and claims must not wait behind a long query.
        let heartbeat = Readers::new(database.clone(), Purpose::Heartbeat, 1);
        let end = CancellationToken::new();
        let supervisor = Supervisor::default();
        let (key, stalls, own) = (SharedKey::default(), Stalls::new(holders.len()), Own::default());
        let shared = writer::Shared { database: database.clone(), key, stalls, own };
        let store = PgStore {
            writers: Writers::start(&shared, &holders, &supervisor),
            hints: Hints::start(readers.clone(), holders[0], &supervisor, end.clone()),
            supervisor,
            stalls: shared.stalls,
            own: shared.own,
            key: shared.key,
            database,
            readers,
            heartbeat,
            holders,
            ahead: AtomicI64::new(nodes::UNKNOWN_OFFSET),
            tallied: AtomicBool::new(false),
            _end: end.drop_guard(),
        };
        store.set_clock().await?;
        store.start_tallies().await?;
        Ok(store)
    }
}

/// A random number that identifies this process.
fn random() -> i64 {
    (RandomState::new().hash_one(std::process::id()) >> 1) as i64
}

#[async_trait]
impl Store for PgStore {
    async fn commit(&self, batch: Vec<Commit>) -> Result<Vec<Result<Position, Refused>>, Error> {
        self.writers.commit(batch).await
    }

    async fn load(&self, run: RunId) -> Result<Option<LoadedRun>, Error> {
        self.readers.with_retry(async |db| query::load(&db, run).await).await
    }

    async fn head(&self, run: RunId) -> Result<Option<LoadedRun>, Error> {
        self.readers.with_retry(async |db| query::head(&db, run).await).await
    }

    async fn outline(&self, run: RunId) -> Result<Option<LoadedRun>, Error> {
        self.readers.with_retry(async |db| query::outline(&db, run).await).await
    }

    async fn load_small(&self, runs: Vec<RunId>, bytes: u64) -> Result<Vec<LoadedRun>, Error> {
        let runs: Vec<i64> = runs.iter().map(|run| run.0).collect();
        self.readers.with_retry(async |db| query::load_small(&db, runs.clone(), bytes).await).await
    }

    async fn sizes(&self, run: RunId) -> Result<Vec<(ValueId, u64)>, Error> {
        self.readers.with_retry(async |db| query::sizes(&db, run).await).await
    }

    async fn find_run(&self, public: &str) -> Result<Option<RunId>, Error> {
        let sql = "SELECT id FROM workflow_runs WHERE public_id = $1";
        let found = self.readers.with_retry(async |db| db.one(sql, args![public]).await).await?;
        Ok(found.map(|row| RunId(row.get(0))))
    }

    async fn run_secret(&self, public: &str) -> Result<Option<(RunId, [u8; 16])>, Error> {
        let sql = "SELECT id, secret FROM workflow_runs WHERE public_id = $1";
        let found = self.readers.with_retry(async |db| db.one(sql, args![public]).await).await?;
        Ok(found.map(|row| (RunId(row.get(0)), rows::bytes(&row, 1))))
    }

    async fn run(&self, run: RunId) -> Result<Option<RunRow>, Error> {
        self.readers.with_retry(async |db| query::run(&db, run).await).await
    }

    async fn tail(&self, run: RunId, after: Version, limit: u32) -> Result<Vec<StoredLog>, Error> {
        self.readers.with_retry(async |db| query::tail(&db, run, after, limit).await).await
    }

    async fn values(&self, run: RunId, ids: &[ValueId]) -> Result<Vec<ValueRow>, Error> {
        self.readers.with_retry(async |db| query::values(&db, run, ids).await).await
    }

    async fn attempts(&self, run: RunId) -> Result<Vec<StepRow>, Error> {
        self.readers.with_retry(async |db| query::attempts(&db, run).await).await
    }

    async fn due(&self, until: Time, share: Share, limit: u32) -> Result<Vec<DueTimer>, Error> {
        self.readers.with_retry(async |db| query::due(&db, until, share, limit).await).await
    }

    async fn mail(&self, run: RunId) -> Result<Vec<StoredMail>, Error> {
        let sql = "SELECT id, key, body FROM mail WHERE run = $1 ORDER BY id";
        let found = self.readers.with_retry(async |db| db.query(sql, args![run.0]).await).await?;
        Ok(found.iter().map(|row| StoredMail { id: row.get(0), key: row.get(1), body: row.get(2) }).collect())
    }

    async fn mailed(&self, after: Option<RunId>, limit: u32) -> Result<Vec<RunId>, Error> {
        let sql = "SELECT DISTINCT run FROM mail WHERE run > $1 ORDER BY run LIMIT $2";
        let (after, limit) = (after.map_or(i64::MIN, |run| run.0), i64::from(limit));
        let found = self.readers.with_retry(async |db| db.query(sql, args![after, limit]).await).await?;
        Ok(found.iter().map(|row| RunId(row.get(0))).collect())
    }

    async fn outbox(&self, until: Time, after: i64, limit: u32) -> Result<Vec<StoredNotice>, Error> {
        let sql = format!("SELECT {} FROM outbox WHERE due <= $1 AND id > $2 ORDER BY id LIMIT $3", rows::NOTICE);
        let limit = i64::from(limit);
        let found = self.readers.with_retry(async |db| db.query(&sql, args![until.0, after, limit]).await).await?;
        Ok(found.iter().map(rows::notice).collect())
    }

    async fn notices(&self, run: RunId, prefix: &str, limit: u32) -> Result<Vec<StoredNotice>, Error> {
        let sql = format!(
            "SELECT {} FROM outbox WHERE run = $1 AND left(key, length($2)) = $2 ORDER BY key COLLATE \"C\" LIMIT $3",
            rows::NOTICE
        );
        let limit = i64::from(limit);
        let found = self.readers.with_retry(async |db| db.query(&sql, args![run.0, prefix, limit]).await).await?;
        Ok(found.iter().map(rows::notice).collect())
    }

    async fn forget(&self, stale: Stale) -> Result<(), Error> {
        let (notice_runs, notice_keys): (Vec<i64>, Vec<&str>) =
            stale.notices.iter().map(|(run, key)| (run.0, key.as_str())).unzip();
        let (timer_runs, timer_keys): (Vec<i64>, Vec<&str>) =
            stale.timers.iter().map(|(run, key)| (run.0, key.as_str())).unzip();
        let mail = "DELETE FROM mail WHERE id = ANY($1)";
        let rows = |table: &str| {
            // Rows that another node is removing are skipped.
            format!(
                "DELETE FROM {table} WHERE (run, key) IN (SELECT t.run, t.key FROM {table} t JOIN unnest($1, $2) AS x(run, key)
                   ON t.run = x.run AND t.key = x.key FOR UPDATE OF t SKIP LOCKED)"
            )
        };
        let work = self.readers.with_retry(async |db| {
            if !stale.mail.is_empty() {
                db.execute(mail, args![stale.mail]).await?;
            }
            if !notice_runs.is_empty() {
                db.execute(&rows("outbox"), args![notice_runs, notice_keys]).await?;
            }
            if !timer_runs.is_empty() {
                db.execute(&rows("timers"), args![timer_runs, timer_keys]).await?;
            }
            Ok(())
        });
        work.await
    }

    async fn keyed(&self, scope: &str, key: &str, now: Time) -> Result<Option<RunId>, Error> {
        let sql =
            "SELECT run FROM unique_keys WHERE scope = $1 AND key = $2 AND (expires_at IS NULL OR expires_at > $3)";
        let found = self.readers.with_retry(async |db| db.one(sql, args![scope, key, now.0]).await).await?;
        Ok(found.map(|row| RunId(row.get(0))))
    }

    async fn queued(&self, after: Option<&str>, limit: u32) -> Result<Vec<(String, RunId)>, Error> {
        let sql = "SELECT key, min(run) FROM places WHERE NOT held AND key > $1 GROUP BY key ORDER BY key LIMIT $2";
        let (after, limit) = (after.unwrap_or_default(), i64::from(limit));
        let found = self.readers.with_retry(async |db| db.query(sql, args![after, limit]).await).await?;
        Ok(found.iter().map(|row| (row.get(0), RunId(row.get(1)))).collect())
    }

    async fn first_queued(&self, group: &str) -> Result<Option<RunId>, Error> {
        self.oldest(group, false).await
    }

    async fn holder(&self, group: &str) -> Result<Option<RunId>, Error> {
        self.oldest(group, true).await
    }

    async fn progress(&self) -> Result<Progress, Error> {
        let found = self.readers.with_retry(async |db| db.query("SELECT id, position FROM writers", &[]).await).await?;
        let positions = found.iter().map(|row| Position::new(row.get(0), row.get(1)));
        Ok(positions.filter(|position| position.number > 0).collect())
    }

    async fn feed(&self, after: &Progress, limit: u32) -> Result<Vec<Fed>, Error> {
        self.readers.with_retry(async |db| query::feed(&db, after, limit).await).await
    }

    async fn feed_of(&self, org: OrgId, after: &Progress, limit: u32) -> Result<Vec<Fed>, Error> {
        self.readers.with_retry(async |db| query::feed_of(&db, org, after, limit).await).await
    }

    async fn define(&self, definition: NewDefinition, with: Change) -> Result<Result<DefinitionRow, Refused>, Error> {
        self.writers.transact(|db| async move { definitions::define(&db, definition, with).await }).await
    }

    async fn definition(&self, id: i64) -> Result<Option<DefinitionRow>, Error> {
        self.readers.with_retry(async |db| query::definition(&db, "id = $1", args![id]).await).await
    }

    async fn find_definition(&self, org: OrgId, name: &str) -> Result<Option<DefinitionRow>, Error> {
        self.readers.with_retry(async |db| query::find_definition(&db, org, name).await).await
    }

    async fn definitions(&self, org: OrgId) -> Result<Vec<DefinitionRow>, Error> {
        self.readers.with_retry(async |db| query::definitions(&db, org).await).await
    }

    async fn versions(&self, org: OrgId, workflow: &str) -> Result<Vec<DefinitionRow>, Error> {
        self.readers.with_retry(async |db| query::versions(&db, org, workflow).await).await
    }

    async fn undefine(&self, org: OrgId, workflow: &str, at: Time, with: Change) -> Result<bool, Error> {
        let removal = definitions::Removal { org, workflow: workflow.to_string(), at, with };
        let work = move |db: Arc<Session>| async move { definitions::undefine(&db, removal).await };
        Ok(self.writers.transact(work).await?.is_ok())
    }

    async fn deleted(&self, org: OrgId, named: Option<&str>) -> Result<Vec<(DefinitionRow, Time)>, Error> {
        self.readers.with_retry(async |db| definitions::deleted(&db, org, named).await).await
    }

    async fn redefine(&self, org: OrgId, workflow: &str, with: Change) -> Result<Result<(), Refused>, Error> {
        let workflow = workflow.to_string();
        let work = move |db: Arc<Session>| async move { definitions::redefine(&db, org, workflow, with).await };
        self.writers.transact(work).await
    }

    async fn first_defined(&self, org: OrgId, workflow: &str) -> Result<Option<Time>, Error> {
        self.readers.with_retry(async |db| definitions::first_defined(&db, org, workflow).await).await
    }

    async fn runs(&self, filter: RunFilter) -> Result<Vec<RunRow>, Error> {
        self.readers.with_retry(async |db| query::runs(&db, &filter).await).await
    }

    async fn ended(&self, runs: &[RunId]) -> Result<Vec<RunId>, Error> {
        let wanted: Vec<i64> = runs.iter().map(|run| run.0).collect();
        let sql = "SELECT id FROM workflow_runs WHERE id = ANY($1) AND finished_at IS NULL";
        let open = self.readers.with_retry(async |db| db.query(sql, args![wanted]).await).await?;
        let open: Vec<RunId> = open.iter().map(|row| RunId(row.get(0))).collect();
        Ok(runs.iter().filter(|run| !open.contains(run)).copied().collect())
    }

    async fn label(&self, run: RunId, labels: Vec<String>, audit: Vec<NewAudit>) -> Result<bool, Error> {
        let work = move |db: Arc<Session>| async move {
            let sql = "UPDATE workflow_runs SET labels = $2 WHERE id = $1";
            if db.execute(sql, args![run.0, label_text(&labels)]).await? == 0 {
                return Ok(Err(Refused::Conflict));
            }
            db.execute("DELETE FROM run_labels WHERE run = $1", args![run.0]).await?;
            let sql =
                "INSERT INTO run_labels (label, run) SELECT DISTINCT label, $2::bigint FROM unnest($1) AS x(label)";
            db.execute(sql, args![labels, run.0]).await?;
            Ok(Ok(((), audit.into())))
        };
        Ok(self.writers.transact(work).await?.is_ok())
    }

    async fn gates(&self, org: OrgId, after: Option<(RunId, String)>, limit: u32) -> Result<Vec<OpenGate>, Error> {
        let after = after.map_or((i64::MIN, String::new()), |(run, path)| (run.0, path));
        self.readers.with_retry(async |db| query::gates(&db, org, after.clone(), limit).await).await
    }

    async fn epoch(&self, org: OrgId) -> Result<Option<i64>, Error> {
        let sql = "SELECT epoch FROM organisations WHERE id = $1";
        Ok(self.readers.with_retry(async |db| db.one(sql, args![org.0]).await).await?.map(|row| row.get(0)))
    }

    async fn grants_changed(&self, org: OrgId) -> Result<(), Error> {
        let sql = "UPDATE organisations SET epoch = epoch + 1 WHERE id = $1";
        self.readers.once(async |db| db.execute(sql, args![org.0]).await).await.map(|_| ())
    }

    async fn purge(&self, before: Time, limit: u32) -> Result<u64, Error> {
        let work = move |db: Arc<Session>| async move { Ok(Ok(retention::purge(&db, before, limit).await?)) };
        Ok(self.writers.transact(work).await?.unwrap_or_default())
    }

    async fn purgeable(&self, before: Time) -> Result<u64, Error> {
        let sql = "SELECT count(*) FROM workflow_runs WHERE purge_at <= $1";
        let found = self.readers.with_retry(async |db| db.one(sql, args![before.0]).await).await?;
        Ok(found.map_or(0, |row| row.get::<_, i64>(0).unsigned_abs()))
    }

    async fn erase(&self, run: RunId, at: Time, audit: Vec<NewAudit>) -> Result<bool, Error> {
        let work = move |db: Arc<Session>| async move {
            let erased = retention::erase(&db, run, at).await?;
            Ok(erased.map(|entries| ((), Effects { audit, entries })).ok_or(Refused::Conflict))
        };
        Ok(self.writers.transact(work).await?.is_ok())
    }

    async fn expire(&self, run: RunId, at: Time) -> Result<bool, Error> {
        let sql = "UPDATE workflow_runs SET purge_at = $1 WHERE id = $2 AND finished_at IS NOT NULL";
        Ok(self.readers.with_retry(async |db| db.execute(sql, args![at.0, run.0]).await).await? == 1)
    }

    fn chain_key(&self) -> ChainKey {
        self.key.get()
    }

    async fn unlock(&self, key: ChainKey) -> Result<(), Error> {
        self.use_key(key).await
    }

    async fn rekey(&self, key: ChainKey, with: Change) -> Result<Result<(), Refused>, Error> {
        self.change_key(key, with).await
    }

    async fn keep_evidence(&self) -> Result<(), Error> {
        self.start_tallies().await
    }

    async fn tallies(&self) -> Result<Vec<WriterTally>, Error> {
        self.readable().await
    }

    async fn evidence(&self, points: Vec<TrailPoint>) -> Result<Evidence, Error> {
        self.compare(points).await
    }

    async fn stats(&self, count: bool) -> Result<Stats, Error> {
        self.readers.with_retry(async |db| retention::stats(&db, count).await).await
    }

    async fn backlog(&self, now: Time) -> Result<Backlog, Error> {
        self.readers.with_retry(async |db| retention::backlog(&db, now).await).await
    }

    async fn integrity(&self) -> Result<Vec<String>, Error> {
        self.readers.with_retry(async |db| retention::integrity(&db).await).await
    }
}

impl PgStore {
    async fn oldest(&self, group: &str, held: bool) -> Result<Option<RunId>, Error> {
        let sql = "SELECT min(run) FROM places WHERE held = $1 AND key = $2";
        let found = self.readers.with_retry(async |db| db.one(sql, args![held, group]).await).await?;
        Ok(found.and_then(|row| row.get::<_, Option<i64>>(0)).map(RunId))
    }
}
