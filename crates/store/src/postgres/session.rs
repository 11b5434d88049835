//! One connection: statements that are sent as they come, answered in their order, within a time.

use super::args::Arg;
use super::tls::{Encrypted, Tls};
use crate::Error;
use crate::PostgresOptions;
use futures_util::TryStreamExt;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_postgres::error::{Severity, SqlState};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Config, Connection, Row, RowStream, Socket, Statement};

/// To get a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// For one answer. Whoever is not answered by then gives the connection up.
const ANSWER: Duration = Duration::from_secs(15);
/// Statements kept prepared; then all are prepared again. The server keeps a plan of some hundred kilobytes for each of the
/// larger ones.
const STATEMENTS: usize = 128;

/// With direct connections plans are kept, and must not be those of a table that was empty when they were made: everything
/// here is found by an index. Estimates made on that footing would have code compiled for nothing.
const SETTINGS: &str = "SET enable_seqscan = off; SET enable_mergejoin = off; SET jit = off;
                        SET plan_cache_mode = force_generic_plan; SET default_transaction_isolation = 'read committed'";
/// A few given rows are joined with what their keys lead to.
const BY_KEY: &str = "; SET enable_hashjoin = off";
/// The server gives up before we do: then the connection, which others use too, need not go.
const IN_TIME: &str = "; SET statement_timeout = '12s'";

/// What a connection is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    Reading,
    /// Commits, claims: rows by their keys.
    Writing,
    /// Something that takes as long as it takes.
    Keeping,
}

/// Where the nodes on one schema meet. Names may not be long.
pub const CHANNEL: &str = "SELECT left('stepwell_' || current_schema(), 63)";

/// Of all connections of this process.
static ROUND_TRIPS: AtomicU64 = AtomicU64::new(0);

pub fn round_trips() -> u64 {
    ROUND_TRIPS.load(Ordering::Relaxed)
}

pub struct Session {
    client: Client,
    /// Keeps the conversation going; ends with the client.
    carrier: JoinHandle<()>,
    statements: Mutex<HashMap<String, Statement>>,
    prepared: bool,
}

/// Why there is no answer that can be used.
#[derive(Debug)]
pub enum Failed {
    /// The server said no, and nothing of the statement or its transaction stands.
    Said(tokio_postgres::Error),
    /// Nobody knows what became of it.
    Lost(String),
}

impl Failed {
    /// The statement does not fit the tables or what is in them: the same would fail again, and the connection is sound.
    pub fn misfit(&self) -> bool {
        self.state().is_some_and(|state| ["21", "22", "23"].contains(&&state.code()[..2]))
    }

    pub fn state(&self) -> Option<&SqlState> {
        match self {
            Failed::Said(error) => error.code(),
            Failed::Lost(_) => None,
        }
    }
}

impl From<tokio_postgres::Error> for Failed {
    fn from(error: tokio_postgres::Error) -> Failed {
        match error.as_db_error() {
            // One that ends the connection may come after the work was done.
            Some(said) if !matches!(said.parsed_severity(), Some(Severity::Fatal | Severity::Panic)) => {
                Failed::Said(error)
            }
            Some(said) => Failed::Lost(said.message().to_string()),
            None => Failed::Lost(words(&error)),
        }
    }
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Error {
        let error = match failed {
            Failed::Lost(why) => return Error::Unavailable(why),
            Failed::Said(error) => error,
        };
        let class = error.code().map_or("", |state| &state.code()[..2]);
        let text = words(&error);
        match class {
            "53" if error.code() == Some(&SqlState::DISK_FULL) => Error::Full(text),
            // What does not fit the tables, or tables that do not fit: the same would fail again for ever.
            "21" | "22" | "23" | "42" | "3F" => Error::Unusable(text),
            _ => Error::Unavailable(text),
        }
    }
}

/// The error with what caused it.
fn words(error: &tokio_postgres::Error) -> String {
    // Its details may quote whole rows.
    if let Some(said) = error.as_db_error() {
        return said.message().to_string();
    }
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

pub type Answer<T> = Result<T, Failed>;

/// The part of a connection that carries what is said.
type Talk = Connection<Socket, Encrypted<Socket>>;

impl Session {
    pub async fn connect(options: &PostgresOptions, purpose: Purpose) -> Answer<Session> {
        let (client, connection) = dial(&options.url, options).await?;
        let carrier = tokio::spawn(async move {
            // Whoever waits for an answer is told.
            let _ = connection.await;
        });
        let session = Session { client, carrier, statements: Mutex::default(), prepared: options.prepared };
        let settings = match purpose {
            Purpose::Reading => format!("{SETTINGS}{IN_TIME}"),
            Purpose::Writing => format!("{SETTINGS}{BY_KEY}{IN_TIME}"),
            Purpose::Keeping => return Ok(session),
        };
        // Behind a pooler they would be somebody else's. Databases that speak the protocol and do not know these settings
        // plan in their own way.
        if options.prepared
            && let Err(lost @ Failed::Lost(_)) = session.script(&settings).await
        {
            return Err(lost);
        }
        Ok(session)
    }

    pub fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    pub async fn query(&self, sql: &str, args: &[Arg<'_>]) -> Answer<Vec<Row>> {
        self.run(sql, args).await.map(|(rows, _)| rows)
    }

    pub async fn one(&self, sql: &str, args: &[Arg<'_>]) -> Answer<Option<Row>> {
        Ok(self.query(sql, args).await?.into_iter().next())
    }

    /// How many rows were written.
    pub async fn execute(&self, sql: &str, args: &[Arg<'_>]) -> Answer<u64> {
        self.run(sql, args).await.map(|(_, count)| count)
    }

    /// Statements without arguments, in one message.
    pub async fn script(&self, sql: &str) -> Answer<()> {
        self.in_time(async { Ok(self.client.batch_execute(sql).await?) }).await
    }

    /// Something that may take as long as it takes.
    pub async fn patiently(&self, sql: &str, args: &[Arg<'_>]) -> Answer<u64> {
        self.talk(sql, args, self.prepared).await.map(|(_, count)| count)
    }

    pub async fn script_patiently(&self, sql: &str) -> Answer<()> {
        Ok(self.client.batch_execute(sql).await?)
    }

    /// With a plan made for these very arguments: what is quick for a large organisation is not for a small one.
    pub async fn afresh(&self, sql: &str, args: &[Arg<'_>]) -> Answer<Vec<Row>> {
        self.in_time(self.talk(sql, args, false)).await.map(|(rows, _)| rows)
    }

    /// Rows one after the other, as many as there are. Nobody knows how long it takes until the first one comes, so only
    /// a connection that is gone ends this.
    pub async fn stream(&self, sql: &str) -> Answer<RowStream> {
        Ok(self.client.query_typed_raw(sql, std::iter::empty::<(&(dyn ToSql + Sync), Type)>()).await?)
    }

    async fn run(&self, sql: &str, args: &[Arg<'_>]) -> Answer<(Vec<Row>, u64)> {
        self.in_time(self.talk(sql, args, self.prepared)).await
    }

    async fn talk(&self, sql: &str, args: &[Arg<'_>], prepared: bool) -> Answer<(Vec<Row>, u64)> {
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

    async fn in_time<T>(&self, work: impl Future<Output = Answer<T>>) -> Answer<T> {
        metrics::counter!("stepwell_database_round_trips_total").increment(1);
        ROUND_TRIPS.fetch_add(1, Ordering::Relaxed);
        match tokio::time::timeout(ANSWER, work).await {
            Ok(answer) => answer,
            Err(_) => {
                // What comes of it later must not be taken for the answer to something else.
                self.carrier.abort();
                Err(Failed::Lost(format!("the database did not answer within {} s", ANSWER.as_secs())))
            }
        }
    }

    /// Makes sure that the statement can be sent at once.
    pub async fn prepare(&self, sql: &str, args: &[Arg<'_>]) -> Answer<()> {
        if self.prepared {
            self.statement(sql, args).await?;
        }
        Ok(())
    }

    async fn statement(&self, sql: &str, args: &[Arg<'_>]) -> Answer<Statement> {
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
        self.statements.lock().expect("nothing panics while it holds the statements")
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.carrier.abort();
    }
}

async fn dial(url: &str, options: &PostgresOptions) -> Answer<(Client, Talk)> {
    let mut config: Config = url.parse().map_err(|error| Failed::Lost(words(&error)))?;
    let tls = Tls::new(options.ca_file.as_deref()).map_err(Failed::Lost)?;
    config.connect_timeout(CONNECT).keepalives_idle(Duration::from_secs(10)).tcp_user_timeout(ANSWER);
    if config.get_application_name().is_none() {
        config.application_name("stepwell");
    }
    let connected = tokio::time::timeout(CONNECT, config.connect(tls)).await;
    let late = |_| Failed::Lost(format!("no connection within {} s", CONNECT.as_secs()));
    connected.map_err(late)?.map_err(|error| Failed::Lost(words(&error)))
}

/// What others say, for as long as the connection holds.
pub async fn listen(url: &str, options: &PostgresOptions) -> Answer<mpsc::Receiver<String>> {
    let (client, mut connection) = dial(url, options).await?;
    let (heard, messages) = mpsc::channel(64);
    let (asked, listening) = oneshot::channel();
    tokio::spawn(async move {
        let talk = async {
            while let Some(Ok(message)) = std::future::poll_fn(|cx| connection.poll_message(cx)).await {
                if let AsyncMessage::Notification(said) = message
                    && heard.send(said.payload().to_string()).await.is_err()
                {
                    return;
                }
            }
        };
        tokio::select! {
            () = talk => {}
            _ = attend(&client, asked) => {}
            () = heard.closed() => {}
        }
    });
    listening.await.map_err(|_| Failed::Lost("nobody can listen there".into()))?;
    Ok(messages)
}

/// Asks to be told, and then now and again whether the connection is still there: one that is cut somewhere on the way
/// does not show otherwise.
async fn attend(client: &Client, listening: oneshot::Sender<()>) -> Option<()> {
    let found = client.query_one(CHANNEL, &[]).await.ok()?;
    let channel: String = found.try_get(0).ok()?;
    client.batch_execute(&format!("LISTEN \"{}\"", channel.replace('"', "\"\""))).await.ok()?;
    listening.send(()).ok()?;
    loop {
        tokio::time::sleep(ANSWER).await;
        tokio::time::timeout(ANSWER, client.batch_execute("SELECT 1")).await.ok()?.ok()?;
    }
}
