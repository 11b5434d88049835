//! The schema of the file: forward-only migrations. Files of other programs or of newer versions are rejected.

use crate::Error;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::path::Path;

/// Marks a file as a Stepwell store: "Step" in ASCII.
pub const APPLICATION_ID: i32 = 0x5374_6570;

/// Migration `n` takes the schema from version `n` to `n + 1`. Never edited once released.
pub const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001_start.sql"),
    include_str!("migrations/0002_server.sql"),
    include_str!("migrations/0003_writers.sql"),
    include_str!("migrations/0004_roots.sql"),
    include_str!("migrations/0005_log_by_organisation.sql"),
    include_str!("migrations/0006_tallies.sql"),
];

/// Migrates the file in one transaction. A file that is not a store, or is newer, is left unchanged.
pub fn migrate(connection: &mut Connection) -> Result<(), Error> {
    let version = check(connection)?;
    if version == MIGRATIONS.len() {
        return Ok(());
    }
    let unusable = |error: rusqlite::Error| Error::Unusable(format!("the schema cannot be migrated: {error}"));
    let tx = connection.transaction().map_err(unusable)?;
    for migration in &MIGRATIONS[version..] {
        tx.execute_batch(migration).map_err(unusable)?;
    }
    let with_tallies = MIGRATIONS.iter().take_while(|sql| !sql.contains("CREATE TABLE tallies")).count() + 1;
    if version < with_tallies {
        super::evidence::start(&tx).map_err(unusable)?;
    }
    tx.pragma_update(None, "user_version", MIGRATIONS.len() as i64).map_err(unusable)?;
    tx.pragma_update(None, "application_id", APPLICATION_ID).map_err(unusable)?;
    tx.commit().map_err(unusable)
}

/// Rejects a file that is not a store known to this program, without changing it.
pub fn check_file(path: &Path) -> Result<(), Error> {
    if std::fs::metadata(path).map_or(0, |file| file.len()) == 0 {
        return Ok(());
    }
    let unusable = |error: &dyn std::fmt::Display| Error::Unusable(format!("{}: {error}", path.display()));
    let open = |flags| Connection::open_with_flags(path, flags).map_err(|error| unusable(&error));
    let connection = open(OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let first = connection.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0));
    let connection = match first.err().and_then(|error| error.sqlite_error_code()) {
        // A power cut left a journal that SQLite must roll back before the file can be read.
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen) => open(OpenFlags::SQLITE_OPEN_READ_WRITE)?,
        _ => connection,
    };
    check(&connection).map(|_| ()).map_err(|error| unusable(&error))
}

/// Returns the schema version of the file; 0 if it is empty.
pub fn check(connection: &Connection) -> Result<usize, Error> {
    let pragma = |name: &str| {
        let read = connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        read.map_err(|error| Error::Unusable(format!("this is not a readable database: {error}")))
    };
    let (application, version) = (pragma("application_id")?, pragma("user_version")?);
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(|error| Error::Unusable(format!("this is not a readable database: {error}")))?;
    if tables == 0 {
        return Ok(0);
    }
    if application != i64::from(APPLICATION_ID) {
        return Err(Error::Unusable("this database belongs to another program".into()));
    }
    match usize::try_from(version) {
        Ok(version) if version <= MIGRATIONS.len() => Ok(version),
        _ => Err(Error::Unusable(format!(
            "this store has schema version {version}, but this program only knows {}: use a newer stepwell",
            MIGRATIONS.len()
        ))),
    }
}
