//! One connection. Statements are pipelined and answered in order, each with a timeout.

use super::args::Arg;
use super::hosts::{Connected, Database};
use crate::Error;
use futures_util::TryStreamExt;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_postgres::error::{Severity, SqlState};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Row, RowStream, Statement};

/// The timeout for one answer. After that the connection is closed.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);
/// The number of statements kept prepared. When it is exceeded, the cache is cleared: the server keeps a plan of some
/// hundred kilobytes for each of the larger statements.
const STATEMENTS: usize = 128;

/// Direct connections cache plans. A plan made while a table was empty must not be kept, and every query here uses an
/// index, so sequential scans are disabled. That distorts the cost estimates, which would trigger useless JIT
/// compilation.
const SETTINGS: &str = "SET enable_seqscan = off; SET enable_mergejoin = off; SET jit = off;
                        SET plan_cache_mode = force_generic_plan; SET default_transaction_isolation = 'read committed'";
/// Writers join a few given rows by key, so a hash join never pays off.
const BY_KEY: &str = "; SET enable_hashjoin = off";
/// The server times out before the client does, so that the shared connection need not be closed.
const STATEMENT_TIMEOUT: &str = "; SET statement_timeout = '12s'";

/// What a connection is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    Reading,
    /// Commits: rows by key.
    Writing,
    /// The lease and claims: rows by key. Its host is the one that all connections use.
    Heartbeat,
    /// Migrations, transfers and benchmarks: no statement timeout.
    Maintenance,
}

/// The notification channel of a schema. PostgreSQL limits the length of its name.
pub const CHANNEL: &str = "SELECT left('stepwell_' || current_schema(), 63)";

/// The number of round trips of all connections of this process.
static ROUND_TRIPS: AtomicU64 = AtomicU64::new(0);

pub fn round_trips() -> u64 {
    ROUND_TRIPS.load(Ordering::Relaxed)
}

pub struct Session {
    client: Client,
    /// The task that drives the connection; aborted with the session.
    driver: JoinHandle<()>,
    statements: Mutex<HashMap<String, Statement>>,
    prepared: bool,
}

/// Why a statement failed.
#[derive(Debug)]
pub enum Failed {
    /// The server rejected it; nothing of the statement or its transaction was applied.
    Rejected(tokio_postgres::Error),
    /// The connection was lost; the outcome is unknown.
    Lost(String),
}

impl Failed {
    /// Whether the data violates the schema or a limit of the database: a retry would fail again, and the connection
    /// is usable.
    pub fn is_data_error(&self) -> bool {
        self.state().is_some_and(|state| ["21", "22", "23", "54"].contains(&&state.code()[..2]))
    }

    pub fn state(&self) -> Option<&SqlState> {
        match self {
            Failed::Rejected(error) => error.code(),
            Failed::Lost(_) => None,
        }
    }
}

impl From<tokio_postgres::Error> for Failed {
    fn from(error: tokio_postgres::Error) -> Failed {
        match error.as_db_error() {
            // An error that ends the connection may come after the work was done.
            Some(db_error) if !matches!(db_error.parsed_severity(), Some(Severity::Fatal | Severity::Panic)) => {
                Failed::Rejected(error)
            }
            Some(db_error) => Failed::Lost(db_error.message().to_string()),
            None => Failed::Lost(error_text(&error)),
        }
    }
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Error {
        let error = match failed {
            Failed::Lost(why) => return Error::Unavailable(why),
            Failed::Rejected(error) => error,
        };
        classify(error.code().map_or("", SqlState::code), error_text(&error))
    }
}

/// What a caller can do about an error with this code.
fn classify(code: &str, text: String) -> Error {
    if code == SqlState::DISK_FULL.code() {
        return Error::Full(text);
    }
    match code.get(..2).unwrap_or_default() {
        // The data violates the schema or a limit of the database, or the schema is not the expected one: a retry would
        // fail again.
        "21" | "22" | "23" | "42" | "3F" | "54" => Error::Unusable(text),
        // Damaged data. The general code also stands for errors that pass.
        "XX" if code != SqlState::INTERNAL_ERROR.code() => Error::Unusable(text),
        _ => Error::Unavailable(text),
    }
}

/// The error message with its causes.
pub fn error_text(error: &tokio_postgres::Error) -> String {
    // The details of a server error may quote whole rows.
    if let Some(db_error) = error.as_db_error() {
        return db_error.message().to_string();
    }
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

pub type DbResult<T> = Result<T, Failed>;

impl Session {
    pub async fn connect(database: &Database, purpose: Purpose) -> DbResult<Session> {
        let connected = database.connect(purpose).await?;
        let left = connected.left();
        let Connected { client, driver, .. } = connected;
        let driver = tokio::spawn(async move {
            tokio::select! {
                // The error is reported to every pending request.
                _ = driver => {}
                () = left => {}
            }
        });
        let session = Session { client, driver, statements: Mutex::default(), prepared: database.prepared };
        let settings = match purpose {
            Purpose::Reading => format!("{SETTINGS}{STATEMENT_TIMEOUT}"),
            Purpose::Writing | Purpose::Heartbeat => format!("{SETTINGS}{BY_KEY}{STATEMENT_TIMEOUT}"),
            Purpose::Maintenance => return Ok(session),
        };
        // Behind a pooler the settings would apply to other clients. Databases that speak the protocol but do not know
        // these settings plan on their own.
        if database.prepared
            && let Err(lost @ Failed::Lost(_)) = session.script(&settings).await
        {
            return Err(lost);
        }
        Ok(session)
    }

    pub fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    pub async fn query(&self, sql: &str, args: &[Arg<'_>]) -> DbResult<Vec<Row>> {
        self.run(sql, args).await.map(|(rows, _)| rows)
    }

    pub async fn one(&self, sql: &str, args: &[Arg<'_>]) -> DbResult<Option<Row>> {
        Ok(self.query(sql, args).await?.into_iter().next())
    }

    /// Returns the number of rows written.
    pub async fn execute(&self, sql: &str, args: &[Arg<'_>]) -> DbResult<u64> {
        self.run(sql, args).await.map(|(_, count)| count)
    }

    /// Runs statements without arguments, sent as one message.
    pub async fn script(&self, sql: &str) -> DbResult<()> {
        self.with_timeout(async { Ok(self.client.batch_execute(sql).await?) }).await
    }

    /// Like [`Session::execute`], without a timeout.
    pub async fn execute_untimed(&self, sql: &str, args: &[Arg<'_>]) -> DbResult<u64> {
        self.send(sql, args, self.prepared).await.map(|(_, count)| count)
    }

    pub async fn script_untimed(&self, sql: &str) -> DbResult<()> {
        Ok(self.client.batch_execute(sql).await?)
    }

    /// Runs a query with a plan for these arguments: the best plan differs between large and small organisations.
    pub async fn query_unprepared(&self, sql: &str, args: &[Arg<'_>]) -> DbResult<Vec<Row>> {
        self.with_timeout(self.send(sql, args, false)).await.map(|(rows, _)| rows)
    }

    /// Streams the rows of a query. There is no timeout, because the time until the first row is unbounded; only a lost
    /// connection ends it.
    pub async fn stream(&self, sql: &str) -> DbResult<RowStream> {
        Ok(self.client.query_typed_raw(sql, std::iter::empty::<(&(dyn ToSql + Sync), Type)>()).await?)
    }

    async fn run(&self, sql: &str, args: &[Arg<'_>]) -> DbResult<(Vec<Row>, u64)> {
        self.with_timeout(self.send(sql, args, self.prepared)).await
    }

    async fn send(&self, sql: &str, args: &[Arg<'_>], prepared: bool) -> DbResult<(Vec<Row>, u64)> {
        let stream = if prepared {
            let statement = self.statement(sql, args).await?;
            self.client.query_raw(&statement, args.iter().map(|(value, _)| *value as &dyn ToSql)).await?
        } else {
            let typed = args.iter().map(|(value, ty)| (*value as &(dyn ToSql + Sync), ty.clone()));
            self.client.query_typed_raw(sql, typed).await?
        };
        let mut stream = std::pin::pin!(stream);
        let mut rows = Vec::new();
        while let Some(row) = stream.try_next().await? {
            rows.push(row);
        }
        Ok((rows, stream.rows_affected().unwrap_or_default()))
    }

    async fn with_timeout<T>(&self, work: impl Future<Output = DbResult<T>>) -> DbResult<T> {
        metrics::counter!("stepwell_database_round_trips_total").increment(1);
        ROUND_TRIPS.fetch_add(1, Ordering::Relaxed);
        match tokio::time::timeout(ANSWER_TIMEOUT, work).await {
            Ok(answer) => answer,
            Err(_) => {
                // A late answer must not be mistaken for the answer to another statement.
                self.close();
                Err(Failed::Lost(format!("the database did not answer within {} s", ANSWER_TIMEOUT.as_secs())))
            }
        }
    }

    /// Closes the connection; what waits for an answer fails.
    pub fn close(&self) {
        self.driver.abort();
    }

    /// Prepares the statement so that it can be pipelined.
    pub async fn prepare(&self, sql: &str, args: &[Arg<'_>]) -> DbResult<()> {
        if self.prepared {
            self.statement(sql, args).await?;
        }
        Ok(())
    }

    async fn statement(&self, sql: &str, args: &[Arg<'_>]) -> DbResult<Statement> {
        if let Some(known) = self.statements().get(sql) {
            return Ok(known.clone());
        }
        let types: Vec<Type> = args.iter().map(|(_, ty)| ty.clone()).collect();
        let statement = self.client.prepare_typed(sql, &types).await?;
        let mut statements = self.statements();
        if statements.len() >= STATEMENTS {
            statements.clear();
        }
        statements.insert(sql.to_string(), statement.clone());
        Ok(statement)
    }

    fn statements(&self) -> MutexGuard<'_, HashMap<String, Statement>> {
        self.statements.lock().expect("no panic while the lock is held")
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// Listens for notifications until the connection breaks.
pub async fn listen(database: &Database) -> DbResult<mpsc::Receiver<String>> {
    let connected = database.connect_to_listen().await?;
    // A URL of its own has other hosts.
    let own_url = database.listen_url.is_some();
    let left = connected.left();
    let Connected { client, driver: mut connection, .. } = connected;
    let (heard, messages) = mpsc::channel(64);
    let (asked, listening) = oneshot::channel();
    tokio::spawn(async move {
        let receive = async {
            while let Some(Ok(message)) = std::future::poll_fn(|cx| connection.poll_message(cx)).await {
                if let AsyncMessage::Notification(db_error) = message
                    && heard.send(db_error.payload().to_string()).await.is_err()
                {
                    return;
                }
            }
        };
        tokio::select! {
            () = receive => {}
            _ = subscribe(&client, asked) => {}
            () = heard.closed() => {}
            () = left, if !own_url => {}
        }
    });
    listening.await.map_err(|_| Failed::Lost("the server does not support LISTEN".into()))?;
    Ok(messages)
}

/// Subscribes to the channel, then pings the server periodically: a connection that was cut on the way is not detected
/// otherwise.
async fn subscribe(client: &Client, listening: oneshot::Sender<()>) -> Option<()> {
    let found = client.query_one(CHANNEL, &[]).await.ok()?;
    let channel: String = found.try_get(0).ok()?;
    client.batch_execute(&format!("LISTEN \"{}\"", channel.replace('"', "\"\""))).await.ok()?;
    listening.send(()).ok()?;
    loop {
        tokio::time::sleep(ANSWER_TIMEOUT).await;
        tokio::time::timeout(ANSWER_TIMEOUT, client.batch_execute("SELECT 1")).await.ok()?.ok()?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_never_work_is_not_taken_for_an_outage() {
        let check = |code: &str, expected: &str| {
            let text = format!("{:?}", classify(code, String::new()));
            assert!(text.starts_with(expected), "{code}: {text}");
        };
        for never in ["54000", "54011", "22001", "23505", "42P01", "XX001", "XX002"] {
            check(never, "Unusable");
        }
        for later in ["57P01", "40001", "53300", "53200", "55P03", "08006", "XX000", ""] {
            check(later, "Unavailable");
        }
        check("53100", "Full");
    }
}
