//! Records, the audit trail, organisations and counters.

use super::apply::time;
use super::evidence::Tx;
use super::query::RUN_IS_OPEN;
use super::{SqliteStore, WRITER};
use crate::evidence::Entry;
use crate::*;
use rusqlite::{Connection, OptionalExtension, Row, params};

pub const COLUMNS: &str = "kind, id, org, key, due, body, version";

pub fn record(row: &Row) -> rusqlite::Result<Record> {
    Ok(Record {
        kind: row.get(0)?,
        id: row.get(1)?,
        org: OrgId(row.get(2)?),
        key: row.get(3)?,
        due: row.get::<_, Option<i64>>(4)?.map(Time),
        body: row.get(5)?,
        version: row.get(6)?,
    })
}

#[async_trait]
impl Registry for SqliteStore {
    async fn change(&self, change: Change) -> Result<Result<(), Refused>, Error> {
        self.writer.write(move |db| in_savepoint(db, |db| apply(db, &change))).await
    }

    async fn record(&self, kind: &str, id: &str) -> Result<Option<Record>, Error> {
        self.one("kind = ?1 AND id = ?2", kind, id).await
    }

    async fn record_with_key(&self, kind: &str, key: &str) -> Result<Option<Record>, Error> {
        self.one("kind = ?1 AND key = ?2", kind, key).await
    }

    async fn records(&self, filter: RecordFilter) -> Result<Vec<Record>, Error> {
        self.read(move |db| records(db, &filter)).await
    }

    async fn due_records(&self, kind: &str, due: Due, limit: u32) -> Result<Vec<Record>, Error> {
        let kind = kind.to_string();
        let (from, id) = due.after.map_or((i64::MIN, String::new()), |(due, id)| (due.0, id));
        let sql = format!(
            "SELECT {COLUMNS} FROM records WHERE kind = ?1 AND due <= ?2 AND (due, id) > (?3, ?4) ORDER BY due, id LIMIT ?5"
        );
        self.read(move |db| {
            db.prepare_cached(&sql)?.query_map(params![kind, due.until.0, from, id, limit], record)?.collect()
        })
        .await
    }

    async fn audit(&self, filter: AuditFilter) -> Result<Vec<AuditRow>, Error> {
        self.read(move |db| audit(db, &filter)).await
    }

    async fn found(&self, name: &str, at: Time) -> Result<Option<OrgId>, Error> {
        let name = name.to_string();
        let sql = "INSERT INTO organisations (name, created_at) VALUES (?1, ?2) ON CONFLICT DO NOTHING RETURNING id";
        self.writer
            .write(move |db| {
                db.prepare_cached(sql)?.query_row(params![name, at.0], |row| row.get(0).map(OrgId)).optional()
            })
            .await
    }

    async fn organisations(&self) -> Result<Vec<(OrgId, String)>, Error> {
        let sql = "SELECT id, name FROM organisations ORDER BY id";
        self.read(|db| db.prepare_cached(sql)?.query_map([], |row| Ok((OrgId(row.get(0)?), row.get(1)?)))?.collect())
            .await
    }

    async fn counted(&self, counter: &str) -> Result<i64, Error> {
        let counter = counter.to_string();
        let sql = "SELECT value FROM counters WHERE key = ?1";
        let found =
            self.read(move |db| db.prepare_cached(sql)?.query_row([counter], |row| row.get(0)).optional()).await?;
        Ok(found.unwrap_or_default())
    }

    async fn open_runs(&self, org: OrgId) -> Result<u64, Error> {
        self.read(move |db| open_runs(db, org)).await
    }
}

impl SqliteStore {
    async fn one(&self, which: &str, kind: &str, name: &str) -> Result<Option<Record>, Error> {
        let sql = format!("SELECT {COLUMNS} FROM records WHERE {which}");
        let (kind, name) = (kind.to_string(), name.to_string());
        self.read(move |db| db.prepare_cached(&sql)?.query_row(params![kind, name], record).optional()).await
    }
}

/// Runs `work` in a savepoint, which is rolled back if the work is refused.
pub fn in_savepoint<T>(
    db: &Tx<'_>,
    work: impl FnOnce(&Tx<'_>) -> rusqlite::Result<Result<T, Refused>>,
) -> rusqlite::Result<Result<T, Refused>> {
    db.prepare_cached("SAVEPOINT registry_change")?.execute([])?;
    let tallied = db.tallied();
    let result = work(db)?;
    if result.is_err() {
        db.restore(tallied);
        db.prepare_cached("ROLLBACK TO registry_change")?.execute([])?;
    }
    db.prepare_cached("RELEASE registry_change")?.execute([])?;
    Ok(result)
}

pub fn open_runs(db: &Connection, org: OrgId) -> rusqlite::Result<u64> {
    let sql = format!(
        "SELECT count(*) FROM workflow_runs WHERE org = ?1 AND test = 0 AND {RUN_IS_OPEN}
                         AND status <> 'scheduled'"
    );
    db.prepare_cached(&sql)?.query_row([org.0], |row| row.get(0).map(i64::unsigned_abs))
}

/// Whether the organisation's grants are unchanged since the decision.
pub fn is_current(db: &Connection, auth: Auth) -> rusqlite::Result<bool> {
    let sql = "SELECT epoch FROM organisations WHERE id = ?1";
    let epoch: Option<i64> = db.prepare_cached(sql)?.query_row([auth.org.0], |row| row.get(0)).optional()?;
    Ok(epoch == Some(auth.epoch))
}

pub fn apply(db: &Tx<'_>, change: &Change) -> rusqlite::Result<Result<(), Refused>> {
    if let Some(auth) = change.decided
        && !is_current(db, auth)?
    {
        return Ok(Err(Refused::AuthChanged));
    }
    for record in &change.records {
        if let Err(refused) = put(db, record)? {
            return Ok(Err(refused));
        }
    }
    append(db, &change.audit)?;
    if let Some(org) = change.grants_of {
        db.prepare_cached("UPDATE organisations SET epoch = epoch + 1 WHERE id = ?1")?.execute([org.0])?;
    }
    Ok(Ok(()))
}

fn put(db: &Tx<'_>, change: &RecordChange) -> rusqlite::Result<Result<(), Refused>> {
    match change {
        RecordChange::Create(new) => {
            let sql = "INSERT INTO records (kind, id, org, key, due, body, version) VALUES (?1, ?2, ?3, ?4, ?5, ?6, 1)
                       ON CONFLICT DO NOTHING";
            let params = params![new.kind, new.id, new.org.0, new.key, time(new.due), new.body];
            if db.prepare_cached(sql)?.execute(params)? == 0 {
                return Ok(Err(Refused::Taken));
            }
            db.tally([Entry::record(&Record { version: 1, ..new.clone() })]);
            Ok(Ok(()))
        }
        RecordChange::Replace(new) => {
            let taken = "SELECT 1 FROM records WHERE kind = ?1 AND key = ?2 AND id <> ?3";
            if db.prepare_cached(taken)?.exists(params![new.kind, new.key, new.id])? {
                return Ok(Err(Refused::Taken));
            }
            let sql = format!("SELECT {COLUMNS} FROM records WHERE kind = ?1 AND id = ?2 AND version = ?3");
            let params = params![new.kind, new.id, new.version];
            let Some(before) = db.prepare_cached(&sql)?.query_row(params, record).optional()? else {
                return Ok(Err(Refused::Conflict));
            };
            let sql = "UPDATE records SET key = ?1, due = ?2, body = ?3, version = version + 1
                       WHERE kind = ?4 AND id = ?5";
            db.prepare_cached(sql)?.execute(params![new.key, time(new.due), new.body, new.kind, new.id])?;
            let after = Record { org: before.org, version: before.version + 1, ..new.clone() };
            db.tally([Entry::record(&before).removed(), Entry::record(&after)]);
            Ok(Ok(()))
        }
        RecordChange::Remove { kind, id } => {
            let sql = format!("DELETE FROM records WHERE kind = ?1 AND id = ?2 RETURNING {COLUMNS}");
            let gone = db.prepare_cached(&sql)?.query_row(params![kind, id], record).optional()?;
            db.tally(gone.iter().map(|gone| Entry::record(gone).removed()));
            Ok(Ok(()))
        }
    }
}

/// Appends rows to the audit trail, each chained to this writer's previous row by its hash.
pub fn append(db: &Tx<'_>, rows: &[NewAudit]) -> rusqlite::Result<()> {
    for row in rows {
        let sql = "SELECT hash FROM audit WHERE org = ?1 AND writer = ?2 ORDER BY id DESC LIMIT 1";
        let previous = db.prepare_cached(sql)?.query_row(params![row.org.0, WRITER], |row| row.get(0)).optional()?;
        let hash = db.key().seal(audit_hash(&previous.unwrap_or([0; 32]), row));
        let sql = "INSERT INTO audit (org, writer, at, by, action, target, detail, hash)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
        let NewAudit { org, at, by, action, target, detail } = row;
        db.prepare_cached(sql)?.execute(params![org.0, WRITER, at.0, by, action, target, detail, hash])?;
        db.audited(&hash);
    }
    Ok(())
}

fn records(db: &Connection, filter: &RecordFilter) -> rusqlite::Result<Vec<Record>> {
    let of = if filter.org.is_some() { "org = ?2" } else { "?2 IS NULL" };
    // The prefix is also a lower bound on the key, so that the index is used.
    let sql = format!(
        "SELECT {COLUMNS} FROM records WHERE kind = ?1 AND {of} AND key >= ?3 AND key > ?4
         AND substr(key, 1, length(?3)) = ?3 ORDER BY key LIMIT ?5"
    );
    let after = filter.after.as_deref().unwrap_or_default();
    let params = params![filter.kind, filter.org.map(|org| org.0), filter.prefix, after, filter.limit];
    db.prepare_cached(&sql)?.query_map(params, record)?.collect()
}

fn audit(db: &Connection, filter: &AuditFilter) -> rusqlite::Result<Vec<AuditRow>> {
    let sql = "SELECT id, org, at, by, action, target, detail, hash, writer FROM audit
               WHERE org = ?1 AND id < ?2 AND (?3 IS NULL OR by = ?3) AND (?4 IS NULL OR action = ?4)
                 AND (?5 IS NULL OR target = ?5) ORDER BY id DESC LIMIT ?6";
    let before = filter.before.unwrap_or(i64::MAX);
    let params = params![filter.org.0, before, filter.by, filter.action, filter.target, filter.limit];
    let row = |row: &Row| {
        let new = NewAudit {
            org: OrgId(row.get(1)?),
            at: Time(row.get(2)?),
            by: row.get(3)?,
            action: row.get(4)?,
            target: row.get(5)?,
            detail: row.get(6)?,
        };
        Ok(AuditRow { id: row.get(0)?, row: new, writer: row.get(8)?, hash: row.get(7)? })
    };
    db.prepare_cached(sql)?.query_map(params, row)?.collect()
}
