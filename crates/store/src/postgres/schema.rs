//! The schema: forward-only migrations that an older program can live with, and the refusal of what is not ours.
//!
//! Nodes of two versions run side by side while an installation is upgraded, so a migration may only add what an older
//! program does not mind (a table, an index, a column with a default), and what it takes away must not have been used by
//! the version before. Each says the oldest schema version that a program may know to go on with it.

use super::args::args;
use super::session::{Answer, Failed, Session};
use crate::Error;
use std::time::Duration;
use tokio_postgres::error::SqlState;

struct Migration {
    sql: &'static str,
    /// Programs that know at least this version can still use the schema after it.
    usable_by: i32,
}

/// Each brings the schema from the version of its position to the next. Never edited once released.
const MIGRATIONS: &[Migration] = &[Migration { sql: include_str!("migrations/0001_start.sql"), usable_by: 1 }];
/// The newest version that this program knows.
const KNOWN: i32 = MIGRATIONS.len() as i32;
const TUNING: &str = include_str!("migrations/tuning.sql");

/// Whoever finds the table finds its row.
const VERSIONS: &str = "CREATE TABLE IF NOT EXISTS stepwell_schema (id INTEGER PRIMARY KEY, version INTEGER NOT NULL,
                          usable_by INTEGER NOT NULL);
                        INSERT INTO stepwell_schema (id, version, usable_by) VALUES (1, 0, 0) ON CONFLICT DO NOTHING";
/// Several nodes may make the same table at the same time.
const TRIES: u32 = 10;

/// Brings the schema up to date; whoever comes second finds it so.
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
            Err(Failed::Said(error)) => {
                return Err(Error::Unusable(format!(
                    "the schema cannot be brought up to date: {}",
                    Error::from(Failed::Said(error))
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

async fn try_migrate(db: &Session) -> Answer<Result<(), Error>> {
    let there =
        "SELECT count(*) FROM information_schema.tables WHERE table_schema = current_schema() AND table_name = $1";
    let has = async |name: &str| {
        Ok::<bool, Failed>(db.one(there, args![name]).await?.is_some_and(|row| row.get::<_, i64>(0) > 0))
    };
    db.script("BEGIN ISOLATION LEVEL READ COMMITTED").await?;
    if !has("stepwell_schema").await? {
        if has("workflow_runs").await? {
            return Ok(Err(Error::Unusable("this schema has tables of some other program".into())));
        }
        db.script(VERSIONS).await?;
    }
    // Another node may be at it.
    db.script_patiently("SELECT 1 FROM stepwell_schema WHERE id = 1 FOR UPDATE").await?;
    let row = db.one("SELECT version, usable_by FROM stepwell_schema WHERE id = 1", &[]).await?;
    let (version, usable_by) = row.map_or((0, 0), |row| (row.get::<_, i32>(0), row.get::<_, i32>(1)));
    if usable_by > KNOWN {
        db.script("ROLLBACK").await?;
        return Ok(Err(Error::Unusable(format!(
            "this database has schema version {version}, and this program knows {KNOWN}: use a newer stepwell"
        ))));
    }
    for (migration, to) in MIGRATIONS.iter().zip(1..).skip(usize::try_from(version).unwrap_or(0)) {
        db.script_patiently(migration.sql).await?;
        let sql = "UPDATE stepwell_schema SET version = $1, usable_by = greatest(usable_by, $2) WHERE id = 1";
        db.execute(sql, args![to, migration.usable_by]).await?;
    }
    db.script("COMMIT").await?;
    if version < KNOWN
        && let Err(lost @ Failed::Lost(_)) = db.script_patiently(TUNING).await
    {
        return Err(lost);
    }
    Ok(Ok(()))
}

/// Refuses a database that may lose what it has acknowledged.
pub async fn check_durability(db: &Session) -> Result<(), Error> {
    for name in ["fsync", "synchronous_commit", "full_page_writes"] {
        // Databases that do not know the setting do not have the choice.
        let sql = "SELECT coalesce(current_setting($1, true), 'on')";
        let row = match db.one(sql, args![name]).await {
            Err(Failed::Said(_)) => continue,
            answer => answer?,
        };
        if row.is_some_and(|row| row.get::<_, String>(0) == "off") {
            return Err(Error::Unusable(format!(
                "the database has {name} = off: it may lose what it has acknowledged when its machine fails. Set {name} = on, or \
                 say that this is wanted with unsafe_settings: true"
            )));
        }
    }
    Ok(())
}
