//! SQLite: runs one statement on a file, on a blocking thread. The file is opened read-only unless the step writes.

use super::failure;
use super::pool::{Key, Lease, Pools};
use super::request::{Params, Request};
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

/// How long to wait for other writers.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Virtual machine instructions between two checks for cancellation: some microseconds.
const PROGRESS_INTERVAL: i32 = 1_000;

#[derive(Default)]
pub struct Sqlite {
    pools: Arc<Pools<OpenFile>>,
}

/// A file opened for reading. If the file is replaced, its identity changes.
struct OpenFile {
    db: Connection,
    file: (u64, u64),
}

/// Set on drop, when the caller has stopped waiting.
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Sqlite {
    /// Dropping the future interrupts the statement.
    pub async fn run(&self, request: Request, key: Key, path: &str) -> Result<Value, Failure> {
        let lease = self.pools.lease(key).await;
        let cancelled = CancelOnDrop(Arc::default());
        let (watch, path) = (cancelled.0.clone(), PathBuf::from(path.strip_prefix("//").unwrap_or(path)));
        let done = tokio::task::spawn_blocking(move || execute(&request, lease, &path, watch)).await;
        drop(cancelled);
        done.unwrap_or_else(|_| {
            Err(Failure { may_have_happened: true, ..Failure::new("internal", "the query's thread failed") })
        })
    }
}

fn execute(
    request: &Request,
    lease: Lease<OpenFile>,
    path: &Path,
    cancelled: Arc<AtomicBool>,
) -> Result<Value, Failure> {
    let file = identity(path).map_err(|error| failure::bad_connection(&request.connection, &error.to_string()))?;
    // Connections for writing are not pooled, so that no session state survives.
    let idle = lease.take_idle().filter(|idle| idle.file == file);
    let mut opened = match idle {
        Some(idle) => idle,
        None => OpenFile { db: open(path, request.write).map_err(|error| to_failure(&error))?, file },
    };
    let deadline = Instant::now() + request.timeout;
    let timed_out = Arc::new(AtomicBool::new(false));
    let flag = timed_out.clone();
    let stop = move || {
        flag.store(Instant::now() >= deadline, Ordering::Relaxed);
        cancelled.load(Ordering::Relaxed) || flag.load(Ordering::Relaxed)
    };
    let handled = opened.db.progress_handler(PROGRESS_INTERVAL, Some(stop));
    handled.map_err(|error| to_failure(&error))?;
    let done = if request.write { write(&mut opened.db, request) } else { read(&opened.db, request) };
    let clean = opened.db.progress_handler(0, None::<fn() -> bool>).is_ok() && opened.db.is_autocommit();
    if clean && !request.write {
        lease.put_back(opened);
    }
    done.map_err(|failure| {
        if timed_out.load(Ordering::Relaxed) && &*failure.code == STOPPED { failure::timed_out() } else { failure }
    })
}

fn identity(path: &Path) -> std::io::Result<(u64, u64)> {
    let found = std::fs::metadata(path)?;
    Ok((found.dev(), found.ino()))
}

fn open(path: &Path, write: bool) -> Result<Connection, Error> {
    let mode = if write { OpenFlags::SQLITE_OPEN_READ_WRITE } else { OpenFlags::SQLITE_OPEN_READ_ONLY };
    let mut db = Connection::open_with_flags(path, mode | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    db.busy_timeout(BUSY_TIMEOUT)?;
    db.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_PAYLOAD_BYTES as i32)?;
    db.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    // Limits what a tampered schema can do to what a statement could do.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    if !write {
        db.pragma_update(None, "query_only", true)?;
    }
    db.authorizer(Some(authorize))?;
    Ok(db)
}

/// Denies access to other files, settings and native code, for reads and writes alike.
fn authorize(context: AuthContext<'_>) -> Authorization {
    match context.action {
        AuthAction::Attach { .. } | AuthAction::Detach { .. } | AuthAction::Pragma { .. } => Authorization::Deny,
        AuthAction::Function { function_name: "load_extension" | "fts3_tokenizer" } => Authorization::Deny,
        AuthAction::Unknown { .. } => Authorization::Deny,
        _ => Authorization::Allow,
    }
}

fn read(db: &Connection, request: &Request) -> Result<Value, Failure> {
    let mut statement = db.prepare(&request.sql).map_err(|error| to_failure(&error))?;
    if !statement.readonly() {
        return Err(failure::read_only("it is not a read-only statement"));
    }
    rows(&mut statement, request)?.body(0)
}

/// Runs a statement in a transaction. If it fails or its rows cannot be returned, nothing is changed.
fn write(db: &mut Connection, request: &Request) -> Result<Value, Failure> {
    let transaction = db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate);
    let transaction = transaction.map_err(|error| to_failure(&error))?;
    let before = transaction.total_changes();
    let mut statement = transaction.prepare(&request.sql).map_err(|error| to_failure(&error))?;
    let rows = rows(&mut statement, request)?;
    drop(statement);
    let changes_rows = transaction.total_changes() != before;
    let body = rows.body(if changes_rows { transaction.changes() } else { 0 })?;
    transaction.commit().map_err(|error| to_failure(&error))?;
    Ok(body)
}

fn rows(statement: &mut Statement<'_>, request: &Request) -> Result<Rows, Failure> {
    let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let mut rows = Rows::new(names.clone(), request.max_rows)?;
    bind(statement, &request.params)?;
    let mut found = statement.raw_query();
    while let Some(row) = found.next().map_err(|error| to_failure(&error))? {
        rows.push(names.iter().enumerate().map(|(n, name)| {
            let value = row.get_ref(n).map_err(|error| to_failure(&error))?;
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

/// Binds parameters: a list fills `?`, `?2`, `$3`; an object fills `:name`, `@name`, `$name`.
fn bind(statement: &mut Statement<'_>, params: &Params) -> Result<(), Failure> {
    let mut wanted = 0;
    for index in 1..=statement.parameter_count() {
        let shown = statement.parameter_name(index).map(str::to_owned);
        let name = shown.as_deref().map(|name| &name[1..]);
        let number = name.map_or(Ok(index), str::parse::<usize>);
        let (value, shown) = match (params, number, name) {
            (Params::List(list), Ok(number), _) => {
                wanted = wanted.max(number);
                let missing = || failure::wrong_param_count(wanted, list.len());
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
                return Err(failure::bad_query("a `?` parameter needs `params` to be a list".into()));
            }
        };
        let value = bound(value).ok_or_else(|| failure::bad_param(&shown, "the number is too large"))?;
        statement.raw_bind_parameter(index, BoundValue(value)).map_err(|error| to_failure(&error))?;
    }
    match params {
        Params::List(list) if list.len() != wanted => Err(failure::wrong_param_count(wanted, list.len())),
        Params::List(_) | Params::Named(_) => Ok(()),
    }
}

struct BoundValue(Bound);

impl ToSql for BoundValue {
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

fn to_failure(error: &Error) -> Failure {
    let message = match error {
        Error::MultipleStatement => return failure::multiple_statements(),
        Error::SqliteFailure(_, Some(message)) => message.clone(),
        // Its `Display` text contains the whole statement.
        Error::SqlInputError { msg, .. } => msg.clone(),
        other => other.to_string(),
    };
    match error.sqlite_error_code() {
        Some(ErrorCode::ReadOnly) => failure::read_only(&message),
        Some(ErrorCode::OperationInterrupted) => Failure::retryable(STOPPED, "the statement was stopped"),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Failure::retryable("busy", message),
        Some(ErrorCode::AuthorizationForStatementDenied) => {
            failure::bad_query(format!("{message}: steps may not use other files, settings or extensions"))
        }
        Some(ErrorCode::CannotOpen | ErrorCode::NotADatabase) => Failure::new("bad_connection", message),
        Some(ErrorCode::TooBig) => failure::too_large(),
        Some(ErrorCode::ConstraintViolation) => Failure::new("constraint", message),
        _ => Failure::new("sql_error", message),
    }
}
