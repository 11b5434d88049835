//! Detects a pooler in transaction mode: one that gives the transactions of one client different connections to the
//! server. Statements that are prepared on one of them do not exist on the others, and settings made on one apply to
//! other clients.

use super::hosts::Database;
use super::session::{DbResult, Purpose, Session};
use crate::PostgresOptions;

/// How often the connection is compared with itself.
const TRIES: u32 = 3;

/// The options with which this database can be used: behind a pooler in transaction mode, statements are not prepared.
pub async fn adapt(options: &PostgresOptions) -> DbResult<PostgresOptions> {
    if !options.prepared || !is_pooled(options).await? {
        return Ok(options.clone());
    }
    tracing::warn!(
        "the database is behind a pooler in transaction mode: statements are not prepared. Set database.prepared: \
         false, and database.listen_url to an address without the pooler, or nodes poll instead of being notified"
    );
    Ok(PostgresOptions { prepared: false, ..options.clone() })
}

/// Whether two statements of one client run on different connections, or one connection serves two clients. Both
/// clients stay connected, so neither happens without a pooler.
async fn is_pooled(options: &PostgresOptions) -> DbResult<bool> {
    let database = Database::new(PostgresOptions { prepared: false, ..options.clone() });
    let one = Session::connect(&database, Purpose::Maintenance).await?;
    let other = Session::connect(&database, Purpose::Maintenance).await?;
    let first = process(&one).await?;
    for _ in 0..TRIES {
        // The transaction keeps its connection, so the pooler must give the first client another one.
        other.script("BEGIN").await?;
        if process(&other).await? == first || process(&one).await? != first {
            return Ok(first.is_some());
        }
        other.script("ROLLBACK").await?;
        if process(&one).await? != first {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The server process of a connection, if the database tells.
async fn process(db: &Session) -> DbResult<Option<i32>> {
    match db.one("SELECT pg_backend_pid()", &[]).await {
        Ok(row) => Ok(row.map(|row| row.get(0))),
        Err(failed) if failed.state().is_some() => Ok(None),
        Err(failed) => Err(failed),
    }
}
