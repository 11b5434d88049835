//! Records, the audit trail, organisations and counters.

use super::PgStore;
use super::args::{Arg, arg, args};
use super::rows;
use super::session::{DbResult, Session};
use crate::evidence::{Effects, Entry};
use crate::*;
use stepwell_core::time::Time;
use tokio_postgres::error::SqlState;

#[async_trait]
impl Registry for PgStore {
    async fn change(&self, change: Change) -> Result<Result<(), Refused>, Error> {
        self.writers.transact(|db| async move { Ok(apply(&db, change).await?.map(|effects| ((), effects))) }).await
    }

    async fn record(&self, kind: &str, id: &str) -> Result<Option<Record>, Error> {
        self.record_where("kind = $1 AND id = $2", kind, id).await
    }

    async fn record_with_key(&self, kind: &str, key: &str) -> Result<Option<Record>, Error> {
        self.record_where("kind = $1 AND key = $2", kind, key).await
    }

    async fn records(&self, filter: RecordFilter) -> Result<Vec<Record>, Error> {
        let of = if filter.org.is_some() { "org = $5" } else { "$5::bigint IS NULL" };
        let sql = format!(
            "SELECT {} FROM records WHERE kind = $1 AND key >= $2 AND key > $3 AND left(key, length($2)) = $2 AND {of}
             ORDER BY key LIMIT $4",
            rows::RECORD
        );
        let (after, limit) = (filter.after.unwrap_or_default(), i64::from(filter.limit));
        let org = filter.org.map(|org| org.0);
        let (kind, prefix) = (&filter.kind, &filter.prefix);
        let found = self.readers.with_retry(async |db| {
            Ok(db.query(&sql, args![*kind, *prefix, after, limit, org]).await?.iter().map(rows::record).collect())
        });
        found.await
    }

    async fn due_records(&self, kind: &str, due: Due, limit: u32) -> Result<Vec<Record>, Error> {
        let sql = format!(
            "SELECT {} FROM records WHERE kind = $1 AND due <= $2 AND (due, id) > ($3, $4) ORDER BY due, id LIMIT $5",
            rows::RECORD
        );
        let (from, id) = due.after.map_or((i64::MIN, String::new()), |(due, id)| (due.0, id));
        let limit = i64::from(limit);
        let found = self.readers.with_retry(async |db| {
            Ok(db.query(&sql, args![kind, due.until.0, from, id, limit]).await?.iter().map(rows::record).collect())
        });
        found.await
    }

    async fn audit(&self, filter: AuditFilter) -> Result<Vec<AuditRow>, Error> {
        let mut sql = format!("SELECT {} FROM audit WHERE org = $1 AND id < $2", rows::AUDIT);
        let (org, before, limit) = (filter.org.0, filter.before.unwrap_or(i64::MAX), i64::from(filter.limit));
        let mut args: Vec<Arg<'_>> = vec![arg(&org), arg(&before)];
        for (column, wanted) in [("by", &filter.by), ("action", &filter.action), ("target", &filter.target)] {
            if let Some(wanted) = wanted {
                args.push(arg(wanted));
                sql.push_str(&format!(" AND {column} = ${}", args.len()));
            }
        }
        args.push(arg(&limit));
        sql.push_str(&format!(" ORDER BY id DESC LIMIT ${}", args.len()));
        self.readers
            .with_retry(async |db| Ok(db.query_unprepared(&sql, &args).await?.iter().map(rows::audit).collect()))
            .await
    }

    async fn found(&self, name: &str, at: Time) -> Result<Option<OrgId>, Error> {
        // Checked first, because a failed insert would use up an id.
        let sql = "INSERT INTO organisations (name, created_at) SELECT $1, $2
                   WHERE NOT EXISTS (SELECT 1 FROM organisations WHERE name = $1) ON CONFLICT DO NOTHING RETURNING id";
        let made = self.readers.once(async |db| db.one(sql, args![name, at.0]).await).await?;
        Ok(made.map(|row| OrgId(row.get(0))))
    }

    async fn organisations(&self) -> Result<Vec<(OrgId, String)>, Error> {
        let sql = "SELECT id, name FROM organisations ORDER BY id";
        let found = self.readers.with_retry(async |db| db.query(sql, &[]).await).await?;
        Ok(found.iter().map(|row| (OrgId(row.get(0)), row.get(1))).collect())
    }

    async fn counted(&self, counter: &str) -> Result<i64, Error> {
        let sql = "SELECT coalesce(sum(value), 0)::bigint FROM counters WHERE key = $1";
        let found = self.readers.with_retry(async |db| db.one(sql, args![counter]).await).await?;
        Ok(found.map_or(0, |row| row.get(0)))
    }

    async fn open_runs(&self, org: OrgId) -> Result<u64, Error> {
        self.readers.with_retry(async |db| open_runs(&db, org).await).await
    }
}

impl PgStore {
    async fn record_where(&self, which: &str, kind: &str, name: &str) -> Result<Option<Record>, Error> {
        let sql = format!("SELECT {} FROM records WHERE {which}", rows::RECORD);
        let found = self.readers.with_retry(async |db| db.one(&sql, args![kind, name]).await).await?;
        Ok(found.map(|row| rows::record(&row)))
    }
}

pub async fn open_runs(db: &Session, org: OrgId) -> DbResult<u64> {
    let sql = "SELECT count(*) FROM workflow_runs
               WHERE org = $1 AND NOT test AND finished_at IS NULL AND status <> 'scheduled'";
    Ok(db.one(sql, args![org.0]).await?.map_or(0, |row| row.get::<_, i64>(0).unsigned_abs()))
}

/// Locks an organisation and returns its epoch: changes that decisions depend on are serialised.
pub async fn lock(db: &Session, org: OrgId) -> DbResult<Option<i64>> {
    let sql = "SELECT epoch FROM organisations WHERE id = $1 FOR NO KEY UPDATE";
    Ok(db.one(sql, args![org.0]).await?.map(|row| row.get(0)))
}

/// Applies a change and returns its effects. Runs in a transaction that is rolled back if the change is refused.
pub async fn apply(db: &Session, change: Change) -> DbResult<Result<Effects, Refused>> {
    if let Some(auth) = change.decided
        && lock(db, auth.org).await? != Some(auth.epoch)
    {
        return Ok(Err(Refused::AuthChanged));
    }
    if let Some(org) = change.grants_of {
        db.execute("UPDATE organisations SET epoch = epoch + 1 WHERE id = $1", args![org.0]).await?;
    }
    let mut entries = Vec::new();
    for record in change.records {
        match put(db, record).await? {
            Ok(changed) => entries.extend(changed),
            Err(refused) => return Ok(Err(refused)),
        }
    }
    Ok(Ok(Effects { audit: change.audit, entries }))
}

async fn put(db: &Session, change: RecordChange) -> DbResult<Result<Vec<Entry>, Refused>> {
    match change {
        RecordChange::Create(new) => {
            let sql = "INSERT INTO records (kind, id, org, key, due, body, version) VALUES ($1, $2, $3, $4, $5, $6, 1)
                       ON CONFLICT DO NOTHING";
            let due = new.due.map(|due| due.0);
            let put = db.execute(sql, args![new.kind, new.id, new.org.0, new.key, due, new.body]).await?;
            Ok(if put == 1 { Ok(vec![Entry::record(&Record { version: 1, ..new })]) } else { Err(Refused::Taken) })
        }
        RecordChange::Replace(new) => {
            let taken = "SELECT 1 FROM records WHERE kind = $1 AND key = $2 AND id <> $3";
            if db.one(taken, args![new.kind, new.key, new.id]).await?.is_some() {
                return Ok(Err(Refused::Taken));
            }
            let sql = format!(
                "WITH old AS (SELECT {0} FROM records WHERE kind = $4 AND id = $5 AND version = $6 FOR UPDATE),
                 put AS (UPDATE records r SET key = $1, due = $2, body = $3, version = r.version + 1 FROM old
                   WHERE r.kind = old.kind AND r.id = old.id RETURNING 1)
                 SELECT {0} FROM old, put",
                rows::RECORD
            );
            let due = new.due.map(|due| due.0);
            match db.one(&sql, args![new.key, due, new.body, new.kind, new.id, new.version]).await {
                // Another transaction took the key concurrently.
                Err(failed) if failed.state() == Some(&SqlState::UNIQUE_VIOLATION) => Ok(Err(Refused::Taken)),
                put => Ok(put?.map(|row| rows::record(&row)).ok_or(Refused::Conflict).map(|before| {
                    let after = Record { org: before.org, version: before.version + 1, ..new };
                    vec![Entry::record(&before).removed(), Entry::record(&after)]
                })),
            }
        }
        RecordChange::Remove { kind, id } => {
            let sql = format!("DELETE FROM records WHERE kind = $1 AND id = $2 RETURNING {}", rows::RECORD);
            let gone = db.one(&sql, args![kind, id]).await?;
            Ok(Ok(gone.iter().map(|row| Entry::record(&rows::record(row)).removed()).collect()))
        }
    }
}
