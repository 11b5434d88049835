//! SQLite: one statement on a file, on a thread of its own. A file is opened for reading only, unless the step writes.

use super::ask::{Ask, Params};
use super::failure;
use super::pool::{Key, Lease, Pools};
use super::rows::{Rows, float, integer};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::{ToSqlOutput, Value as Bound, ValueRef};
use rusqlite::{Connection, Error, ErrorCode, OpenFlags, Statement, ToSql};
use serde_json::Value;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use stepwell_core::event::Failure;
use stepwell_core::limits::MAX_PAYLOAD_BYTES;

/// For others who write.
const BUSY: Duration = Duration::from_secs(5);
/// Instructions between two looks at whether anybody still waits: some microseconds.
const LOOK: i32 = 1_000;

#[derive(Default)]
pub struct Sqlite {
    pools: Arc<Pools<Opened>>,
}

/// A file that is open for reading. One that was put in its place is another.
struct Opened {
    db: Connection,
    file: (u64, u64),
}

/// Set when nobody waits any more.
struct Gone(Arc<AtomicBool>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Sqlite {
    /// Dropping the future interrupts the statement.
    pub async fn run(&self, ask: Ask, key: Key, path: &str) -> Result<Value, Failure> {
        let lease = self.pools.lease(key).await;
        let gone = Gone(Arc::default());
        let (watch, path) = (gone.0.clone(), PathBuf::from(path.strip_prefix("//").unwrap_or(path)));
        let done = tokio::task::spawn_blocking(move || work(&ask, lease, &path, watch)).await;
        drop(gone);
        done.unwrap_or_else(|_| {
            Err(Failure { may_have_happened: true, ..Failure::new("internal", "the query broke down") })
        })
    }
}

fn work(ask: &Ask, lease: Lease<Opened>, path: &Path, gone: Arc<AtomicBool>) -> Result<Value, Failure> {
    let file = identity(path).map_err(|error| failure::bad_connection(&ask.connection, &error.to_string()))?;
    // What writes is opened anew, so that nothing it leaves in its session is met by the next.
    let kept = lease.kept().filter(|kept| kept.file == file);
    let mut opened = match kept {
        Some(kept) => kept,
        None => Opened { db: open(path, ask.write).map_err(|error| said(&error))?, file },
    };
    let deadline = Instant::now() + ask.timeout;
    let late = Arc::new(AtomicBool::new(false));
    let noted = late.clone();
    let stop = move || {
        noted.store(Instant::now() >= deadline, Ordering::Relaxed);
        gone.load(Ordering::Relaxed) || noted.load(Ordering::Relaxed)
    };
    let handled = opened.db.progress_handler(LOOK, Some(stop));
    handled.map_err(|error| said(&error))?;
    let done = if ask.write { write(&mut opened.db, ask) } else { read(&opened.db, ask) };
    let tidy = opened.db.progress_handler(0, None::<fn() -> bool>).is_ok() && opened.db.is_autocommit();
    if tidy && !ask.write {
        lease.give_back(opened);
    }
    done.map_err(
        |failure| if late.load(Ordering::Relaxed) && &*failure.code == STOPPED { failure::too_slow() } else { failure },
    )
}

fn identity(path: &Path) -> std::io::Result<(u64, u64)> {
    let found = std::fs::metadata(path)?;
    Ok((found.dev(), found.ino()))
}

fn open(path: &Path, write: bool) -> Result<Connection, Error> {
    let mode = if write { OpenFlags::SQLITE_OPEN_READ_WRITE } else { OpenFlags::SQLITE_OPEN_READ_ONLY };
    let mut db = Connection::open_with_flags(path, mode | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    db.busy_timeout(BUSY)?;
    db.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_PAYLOAD_BYTES as i32)?;
    db.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    // A schema that somebody has tampered with can do no more than a statement could.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    if !write {
        db.pragma_update(None, "query_only", true)?;
    }
    db.authorizer(Some(allowed))?;
    Ok(db)
}

/// Other files, settings and code are nobody's business here, whether a step reads or writes.
fn allowed(context: AuthContext<'_>) -> Authorization {
    match context.action {
        AuthAction::Attach { .. } | AuthAction::Detach { .. } | AuthAction::Pragma { .. } => Authorization::Deny,
        AuthAction::Function { function_name: "load_extension" | "fts3_tokenizer" } => Authorization::Deny,
        AuthAction::Unknown { .. } => Authorization::Deny,
        _ => Authorization::Allow,
    }
}

fn read(db: &Connection, ask: &Ask) -> Result<Value, Failure> {
    let mut statement = db.prepare(&ask.sql).map_err(|error| said(&error))?;
    if !statement.readonly() {
        return Err(failure::read_only("it is not one that only reads"));
    }
    rows(&mut statement, ask)?.body(0)
}

/// A statement that fails, or whose rows are not to be had, leaves nothing behind.
fn write(db: &mut Connection, ask: &Ask) -> Result<Value, Failure> {
    let transaction = db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate);
    let transaction = transaction.map_err(|error| said(&error))?;
    let before = transaction.total_changes();
    let mut statement = transaction.prepare(&ask.sql).map_err(|error| said(&error))?;
    let rows = rows(&mut statement, ask)?;
    drop(statement);
    let changes_rows = transaction.total_changes() != before;
    let body = rows.body(if changes_rows { transaction.changes() } else { 0 })?;
    transaction.commit().map_err(|error| said(&error))?;
    Ok(body)
}

fn rows(statement: &mut Statement<'_>, ask: &Ask) -> Result<Rows, Failure> {
    let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let mut rows = Rows::new(names.clone(), ask.rows)?;
    bind(statement, &ask.params)?;
    let mut found = statement.raw_query();
    while let Some(row) = found.next().map_err(|error| said(&error))? {
        rows.push(names.iter().enumerate().map(|(n, name)| {
            let value = row.get_ref(n).map_err(|error| said(&error))?;
            json(value).ok_or_else(|| failure::unreadable(name, "its text is not UTF-8"))
        }))?;
    }
    Ok(rows)
}

fn json(value: ValueRef<'_>) -> Option<Value> {
    Some(match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => integer(number),
        ValueRef::Real(number) => float(number),
        ValueRef::Text(text) => std::str::from_utf8(text).ok()?.into(),
        ValueRef::Blob(bytes) => STANDARD.encode(bytes).into(),
    })
}

/// A list fills `?`, `?2`, `$3`; an object fills `:name`, `@name`, `$name`.
fn bind(statement: &mut Statement<'_>, params: &Params) -> Result<(), Failure> {
    let mut wanted = 0;
    for index in 1..=statement.parameter_count() {
        let shown = statement.parameter_name(index).map(str::to_owned);
        let name = shown.as_deref().map(|name| &name[1..]);
        let number = name.map_or(Ok(index), str::parse::<usize>);
        let (value, shown) = match (params, number, name) {
            (Params::List(list), Ok(number), _) => {
                wanted = wanted.max(number);
                let missing = || failure::count_of_params(wanted, list.len());
                (number.checked_sub(1).and_then(|n| list.get(n)).ok_or_else(missing)?, format!("${number}"))
            }
            (Params::Named(given), _, Some(name)) => {
                (given.get(name).ok_or_else(|| failure::missing_param(name))?, format!(":{name}"))
            }
            (Params::List(_), Err(_), _) => {
                let name = name.unwrap_or_default();
                return Err(failure::bad_query(format!("the parameter `:{name}` needs `params` to be an object")));
            }
            (Params::Named(_), _, None) => {
                return Err(failure::bad_query("a parameter `?` needs `params` to be a list".into()));
            }
        };
        let value = bound(value).ok_or_else(|| failure::bad_param(&shown, "the number is too large"))?;
        statement.raw_bind_parameter(index, Owned(value)).map_err(|error| said(&error))?;
    }
    match params {
        Params::List(list) if list.len() != wanted => Err(failure::count_of_params(wanted, list.len())),
        Params::List(_) | Params::Named(_) => Ok(()),
    }
}

struct Owned(Bound);

impl ToSql for Owned {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        self.0.to_sql()
    }
}

fn bound(value: &Value) -> Option<Bound> {
    Some(match value {
        Value::Null => Bound::Null,
        Value::Bool(value) => Bound::Integer(i64::from(*value)),
        Value::Number(number) if number.is_u64() || number.is_i64() => Bound::Integer(number.as_i64()?),
        Value::Number(number) => Bound::Real(number.as_f64()?),
        Value::String(text) => Bound::Text(text.clone()),
        Value::Array(_) | Value::Object(_) => Bound::Text(value.to_string()),
    })
}

const STOPPED: &str = "stopped";

fn said(error: &Error) -> Failure {
    let message = match error {
        Error::MultipleStatement => return failure::many_statements(),
        Error::SqliteFailure(_, Some(message)) => message.clone(),
        // Its own text has the whole statement.
        Error::SqlInputError { msg, .. } => msg.clone(),
        other => other.to_string(),
    };
    match error.sqlite_error_code() {
        Some(ErrorCode::ReadOnly) => failure::read_only(&message),
        Some(ErrorCode::OperationInterrupted) => Failure::retryable(STOPPED, "the statement was stopped"),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Failure::retryable("busy", message),
        Some(ErrorCode::AuthorizationForStatementDenied) => {
            failure::bad_query(format!("{message}: other files, settings and extensions are not for steps"))
        }
        Some(ErrorCode::CannotOpen | ErrorCode::NotADatabase) => Failure::new("bad_connection", message),
        Some(ErrorCode::TooBig) => failure::too_large(),
        Some(ErrorCode::ConstraintViolation) => Failure::new("constraint", message),
        _ => Failure::new("sql_error", message),
    }
}
