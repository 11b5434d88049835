//! Nodes and their claims. The database's clock decides when a lease expires.

use super::PgStore;
use super::args::args;
use super::rows;
use super::session::{DbResult, Session};
use crate::evidence::Effects;
use crate::*;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::broadcast;
use tokio_postgres::Row;

/// A round trip of this many milliseconds is too slow to measure the clock offset.
const MAX_ROUND_TRIP: i64 = 500;
/// How long a heartbeat may take; a quarter of the lease in between.
const SHORTEST_DEADLINE: Duration = Duration::from_millis(500);
const LONGEST_DEADLINE: Duration = Duration::from_secs(5);
/// The clock offset before the first measurement.
pub const UNKNOWN_OFFSET: i64 = i64::MAX;

#[async_trait]
impl Nodes for PgStore {
    async fn join(&self, node: NewNode) -> Result<(), Error> {
        let sql = "INSERT INTO nodes (id, name, version, slots, joined_at, seen_at, tallies)
                   VALUES ($1, $2, $3, $4, $5, now(), true)
                   ON CONFLICT (id) DO UPDATE SET seen_at = now()";
        let node = &node;
        let joined = self.readers.with_retry(async |db| {
            let slots = i64::from(node.slots);
            db.execute(sql, args![node.id.0, node.name, node.version, slots, node.joined.0]).await
        });
        joined.await.map(|_| ())
    }

    async fn beat(&self, node: NodeId) -> Result<bool, Error> {
        let sql = "UPDATE nodes SET seen_at = now() WHERE id = $1";
        // A silent host must be noticed before the lease ends.
        let deadline = (self.database.lease / 4).clamp(SHORTEST_DEADLINE, LONGEST_DEADLINE);
        let beat = async |db: Arc<Session>| db.execute(sql, args![node.0]).await;
        let alive = self.heartbeat.with_deadline(deadline, beat).await? == 1;
        // A locked row is in use by its writer, so it needs no heartbeat.
        let writers = "UPDATE writers SET seen_at = now() WHERE id IN
                         (SELECT id FROM writers WHERE holder = ANY($1) FOR NO KEY UPDATE SKIP LOCKED)";
        let holders = &self.holders;
        self.heartbeat.with_retry(async |db| db.execute(writers, args![holders]).await).await?;
        self.set_clock().await?;
        Ok(alive)
    }

    async fn leave(&self, node: NodeId) -> Result<(), Error> {
        self.readers
            .with_retry(async |db| db.execute("DELETE FROM nodes WHERE id = $1", args![node.0]).await)
            .await
            .map(|_| ())
    }

    async fn nodes(&self) -> Result<Vec<NodeRow>, Error> {
        let sql =
            format!("SELECT {}, (SELECT count(*) FROM work WHERE node = n.id) FROM nodes n ORDER BY n.id", rows::NODE);
        self.readers.with_retry(async |db| Ok(db.query(&sql, &[]).await?.iter().map(rows::node).collect())).await
    }

    async fn claim(&self, claim: Claim) -> Result<Vec<Claimed>, Error> {
        if claim.per_org.is_none() {
            return self.heartbeat.once(async |db| take_ready(&db, &claim).await).await;
        }
        // Claims under a limit per organisation count running attempts, so they must not run concurrently.
        let work = move |db: Arc<Session>| async move {
            db.one("SELECT id FROM turns WHERE id = 1 FOR UPDATE", &[]).await?;
            Ok(Ok((take_ready(&db, &claim).await?, Effects::default())))
        };
        Ok(self.writers.transact(work).await?.unwrap_or_default())
    }

    async fn held(&self, node: NodeId) -> Result<Vec<Claimed>, Error> {
        let sql = format!("SELECT {} FROM work WHERE node = $1 ORDER BY run, step, attempt", rows::CLAIMED);
        self.readers
            .with_retry(async |db| Ok(db.query(&sql, args![node.0]).await?.iter().map(rows::claimed).collect()))
            .await
    }

    async fn give_up_silent(&self) -> Result<(), Error> {
        // From then on their heartbeats return false.
        let expire = "DELETE FROM nodes WHERE seen_at < now() - make_interval(secs => $1)";
        let lease = self.database.lease.as_secs_f64();
        self.heartbeat.with_retry(async |db| db.execute(expire, args![lease]).await).await.map(|_| ())
    }

    async fn orphans(&self, after: Option<(RunId, WorkKey)>, limit: u32) -> Result<Vec<Claimed>, Error> {
        let sql = format!(
            "SELECT {} FROM work w WHERE node IS NOT NULL AND NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = w.node)
               AND (run, step, attempt) > ($1, $2, $3) ORDER BY run, step, attempt LIMIT $4",
            rows::CLAIMED
        );
        let after = after.map(|(run, key)| (run.0, key.path, i64::from(key.attempt)));
        let (run, path, attempt) = after.unwrap_or((i64::MIN, String::new(), 0));
        let limit = i64::from(limit);
        let found = self.readers.with_retry(async |db| db.query(&sql, args![run, path, attempt, limit]).await).await?;
        Ok(found.iter().map(rows::claimed).collect())
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn hear(&self) -> Option<broadcast::Receiver<Hint>> {
        Some(self.hints.heard.subscribe())
    }

    fn tell(&self, hint: Hint) {
        self.hints.tell(hint);
    }

    fn gone_tasks(&self) -> Vec<Arc<str>> {
        self.supervisor.gone()
    }

    fn is_own(&self, position: Position) -> bool {
        self.own.has(position)
    }

    fn stalled(&self) -> Option<Duration> {
        self.stalls.longest()
    }

    fn ahead(&self) -> i64 {
        Some(self.ahead.load(Ordering::Relaxed)).filter(|ahead| *ahead != UNKNOWN_OFFSET).unwrap_or_default()
    }
}

impl PgStore {
    /// Measures the offset between the database's clock and this machine's.
    pub(super) async fn set_clock(&self) -> Result<(), Error> {
        let sql = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
        let asked = self.heartbeat.with_retry(async |db| {
            let before = machine_time();
            let row = db.one(sql, &[]).await?;
            Ok((before, machine_time(), row.map_or(before, |row| row.get::<_, i64>(0))))
        });
        let (before, after, database) = asked.await?;
        // With a slow round trip it is unknown when the database read its clock.
        if after - before < MAX_ROUND_TRIP || self.ahead.load(Ordering::Relaxed) == UNKNOWN_OFFSET {
            self.ahead.store(database - before - (after - before) / 2, Ordering::Relaxed);
        }
        Ok(())
    }
}

fn machine_time() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Claims work in turns over the organisations that have ready work, with one index lookup per organisation, however
/// much work it has. Only claimed rows are locked. Rows that another node is claiming are skipped; therefore
/// twice as many candidates as requested are considered.
async fn take_ready(db: &Session, claim: &Claim) -> DbResult<Vec<Claimed>> {
    let sql = "WITH RECURSIVE orgs AS (
                 (SELECT org FROM work WHERE node IS NULL ORDER BY org LIMIT 1)
                 UNION ALL
                 SELECT (SELECT w.org FROM work w WHERE w.node IS NULL AND w.org > o.org ORDER BY w.org LIMIT 1)
                 FROM orgs o WHERE o.org IS NOT NULL
               ), ready AS MATERIALIZED (
                 SELECT w.*, coalesce(h.held, 0)
                   + row_number() OVER (PARTITION BY w.org ORDER BY w.ready_at, w.run, w.step) AS turn
                 FROM orgs o LEFT JOIN unnest($5::bigint[], $6::bigint[]) AS h(org, held) ON h.org = o.org
                 CROSS JOIN LATERAL (
                   SELECT run, step, attempt, org, ready_at FROM work WHERE org = o.org AND node IS NULL ORDER BY ready_at
                   LIMIT least($2::bigint * 2, greatest(0, $7::bigint - coalesce(h.held, 0)), greatest(0, $4::bigint
                     - (SELECT count(*) FROM work x WHERE x.org = o.org AND x.node IS NOT NULL)))
                 ) w
               ), taken AS MATERIALIZED (
                 SELECT w.run, w.step, w.attempt, r.turn FROM ready r
                 JOIN work w ON w.run = r.run AND w.step = r.step AND w.attempt = r.attempt
                 WHERE w.node IS NULL ORDER BY r.turn, r.org <= $3, r.org LIMIT $2 FOR UPDATE OF w SKIP LOCKED
               )
               UPDATE work w SET node = $1 FROM taken t
               WHERE w.run = t.run AND w.step = t.step AND w.attempt = t.attempt AND w.node IS NULL
               RETURNING w.run, w.step, w.attempt, w.org, w.kind, t.turn";
    let most = claim.per_org.map_or(i64::from(u32::MAX), i64::from);
    let (node, limit, after) = (claim.node.0, i64::from(claim.limit), claim.after.0);
    let here = claim.per_org_here.map_or(i64::from(u32::MAX), i64::from);
    let (orgs, held): (Vec<i64>, Vec<i64>) = claim.held.iter().map(|(org, held)| (org.0, i64::from(*held))).unzip();
    let mut rows = db.query(sql, args![node, limit, after, most, orgs, held, here]).await?;
    rows.sort_by_key(|row: &Row| (row.get::<_, i64>(5), row.get::<_, i64>(3) <= after, row.get::<_, i64>(3)));
    Ok(rows.iter().map(rows::claimed).collect())
}
