//! The schema: forward-only migrations that older nodes tolerate. Schemas of other programs are rejected.
//!
//! During an upgrade nodes of two versions run side by side. A migration may therefore only add what an older program
//! ignores (a table, an index, a column with a default), and may only remove what the previous version no longer uses.
//! Each migration states the oldest schema version that a program must know to use the result.

use super::args::args;
use super::session::{DbResult, Failed, Session};
use crate::Error;
use std::time::Duration;
use tokio_postgres::error::SqlState;

struct Migration {
    sql: &'static str,
    /// Programs that know at least this schema version can still use the schema after this migration.
    usable_by: i32,
}

/// Migration `n` takes the schema from version `n` to `n + 1`. Never edited once released.
const MIGRATIONS: &[Migration] = &[
    Migration { sql: include_str!("migrations/0001_start.sql"), usable_by: 1 },
    Migration { sql: include_str!("migrations/0002_roots.sql"), usable_by: 1 },
    Migration { sql: include_str!("migrations/0003_log_by_organisation.sql"), usable_by: 1 },
    // Older programs are refused from when the first tally is written.
    Migration { sql: include_str!("migrations/0004_tallies.sql"), usable_by: 1 },
];
/// The newest schema version that this program knows.
const KNOWN: i32 = MIGRATIONS.len() as i32;
const TUNING: &str = include_str!("migrations/tuning.sql");

/// The first schema version with tallies.
pub fn with_tallies() -> i32 {
    let before = MIGRATIONS.iter().take_while(|migration| !migration.sql.contains("CREATE TABLE tallies"));
    before.count() as i32 + 1
}

const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";
/// Creates the version table together with its only row.
const VERSIONS: &str = "CREATE TABLE IF NOT EXISTS stepwell_schema (id INTEGER PRIMARY KEY, version INTEGER NOT NULL,
                          usable_by INTEGER NOT NULL);
                        INSERT INTO stepwell_schema (id, version, usable_by) VALUES (1, 0, 0) ON CONFLICT DO NOTHING";
/// Lets one node after the other create the tables, so that none of them fails, which the database's log would show.
/// Databases without advisory locks refuse this; there a node that fails tries again.
const CREATE_LOCK: &str = "SELECT pg_advisory_xact_lock(hashtext('stepwell_schema'), hashtext(current_schema()))";
/// Retries when several nodes create the same table at the same time.
const TRIES: u32 = 10;

/// Migrates the schema. Several nodes may do so at the same time.
pub async fn migrate(db: &Session) -> Result<(), Error> {
    let mut tries = 0;
    loop {
        match try_migrate(db).await {
            Ok(done) => return done,
            Err(failed) if raced(&failed) && tries < TRIES => {
                tries += 1;
                db.script("ROLLBACK").await?;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Err(Failed::Rejected(error)) => {
                return Err(Error::Unusable(format!(
                    "the schema cannot be migrated: {}",
                    Error::from(Failed::Rejected(error))
                )));
            }
            Err(lost) => return Err(lost.into()),
        }
    }
}

fn raced(failed: &Failed) -> bool {
    let states = [
        SqlState::UNIQUE_VIOLATION,
        SqlState::DUPLICATE_TABLE,
        SqlState::DUPLICATE_OBJECT,
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
    ];
    failed.state().is_some_and(|state| states.contains(state))
}

async fn try_migrate(db: &Session) -> DbResult<Result<(), Error>> {
    let there =
        "SELECT count(*) FROM information_schema.tables WHERE table_schema = current_schema() AND table_name = $1";
    let has = async |name: &str| {
        Ok::<bool, Failed>(db.one(there, args![name]).await?.is_some_and(|row| row.get::<_, i64>(0) > 0))
    };
    db.script(BEGIN).await?;
    if !has("stepwell_schema").await?
        && let Err(failed) = db.script_untimed(CREATE_LOCK).await
    {
        if let Failed::Lost(_) = failed {
            return Err(failed);
        }
        db.script("ROLLBACK").await?;
        db.script(BEGIN).await?;
    }
    // Another node may have created it while this one waited.
    if !has("stepwell_schema").await? {
        if has("workflow_runs").await? {
            return Ok(Err(Error::Unusable("this schema contains tables of another program".into())));
        }
        db.script(VERSIONS).await?;
    }
    // Another node may be migrating.
    db.script_untimed("SELECT 1 FROM stepwell_schema WHERE id = 1 FOR UPDATE").await?;
    let row = db.one("SELECT version, usable_by FROM stepwell_schema WHERE id = 1", &[]).await?;
    let (version, usable_by) = row.map_or((0, 0), |row| (row.get::<_, i32>(0), row.get::<_, i32>(1)));
    if usable_by > KNOWN {
        db.script("ROLLBACK").await?;
        return Ok(Err(Error::Unusable(format!(
            "this database has schema version {version}, but this program only knows {KNOWN}: use a newer stepwell"
        ))));
    }
    for (migration, to) in MIGRATIONS.iter().zip(1..).skip(usize::try_from(version).unwrap_or(0)) {
        db.script_untimed(migration.sql).await?;
        let sql = "UPDATE stepwell_schema SET version = $1, usable_by = greatest(usable_by, $2) WHERE id = 1";
        db.execute(sql, args![to, migration.usable_by]).await?;
    }
    db.script("COMMIT").await?;
    if version < KNOWN
        && let Err(lost @ Failed::Lost(_)) = db.script_untimed(TUNING).await
    {
        return Err(lost);
    }
    Ok(Ok(()))
}

/// Rejects a database that may lose acknowledged commits.
pub async fn check_durability(db: &Session) -> Result<(), Error> {
    for name in ["fsync", "synchronous_commit", "full_page_writes"] {
        // A database that does not know the setting cannot turn it off.
        let sql = "SELECT coalesce(current_setting($1, true), 'on')";
        let row = match db.one(sql, args![name]).await {
            Err(Failed::Rejected(_)) => continue,
            answer => answer?,
        };
        if row.is_some_and(|row| row.get::<_, String>(0) == "off") {
            return Err(Error::Unusable(format!(
                "the database has {name} = off and may lose acknowledged commits when its machine fails. Set {name} = on, \
                 or accept the risk with unsafe_settings: true"
            )));
        }
    }
    Ok(())
}
