//! One connection: statements that are sent as they come, answered in their order, within a time.

use super::args::Arg;
use crate::PostgresOptions;
use super::tls::{Encrypted, Tls};
use crate::Error;
use futures_util::TryStreamExt;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_postgres::error::{Severity, SqlState};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Config, Connection, Row, RowStream, Socket, Statement};

/// To get a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// For one answer. Whoever is not answered by then gives the connection up.
const ANSWER: Duration = Duration::from_secs(15);
/// Statements kept prepared; then all are prepared again.
const STATEMENTS: usize = 512;

/// With direct connections plans are kept, and must not be those of a table that was empty when they were made: everything
/// here is found by an index. Estimates made on that footing would have code compiled for nothing.
const SETTINGS: &str = "SET enable_seqscan = off; SET enable_mergejoin = off; SET jit = off;
                        SET plan_cache_mode = force_generic_plan";
/// Writers join a few given rows with what their keys lead to.
const WRITING: &str = "; SET enable_hashjoin = off";

pub struct Session {
    client: Client,
    /// Keeps the conversation going; ends with the client.
    talk: JoinHandle<()>,
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
    if let Some(said) = error.as_db_error() {
        let detail = said.detail().map(|detail| format!(" ({detail})")).unwrap_or_default();
        return format!("{}{detail}", said.message());
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
    pub async fn connect(options: &PostgresOptions, writes: bool) -> Answer<Session> {
        let (client, connection) = dial(&options.url, options).await?;
        let talk = tokio::spawn(async move {
            // Whoever waits for an answer is told.
            let _ = connection.await;
        });
        let session = Session { client, talk, statements: Mutex::default(), prepared: options.prepared };
        if options.prepared {
            let more = if writes { WRITING } else { "" };
            // Databases that speak the protocol and do not know these settings plan in their own way.
            match session.script(&format!("{SETTINGS}{more}")).await {
                Ok(()) | Err(Failed::Said(_)) => {}
                Err(lost) => return Err(lost),
            }
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

    /// Rows one after the other, as many as there are. Nobody knows how long it takes until the first one comes, so only
    /// a connection that is gone ends this.
    pub async fn stream(&self, sql: &str) -> Answer<RowStream> {
        Ok(self.client.query_typed_raw(sql, std::iter::empty::<(&(dyn ToSql + Sync), Type)>()).await?)
    }

    async fn run(&self, sql: &str, args: &[Arg<'_>]) -> Answer<(Vec<Row>, u64)> {
        let work = async {
            let stream = if self.prepared {
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
        };
        self.in_time(work).await
    }

    async fn in_time<T>(&self, work: impl Future<Output = Answer<T>>) -> Answer<T> {
        metrics::counter!("stepwell_database_round_trips_total").increment(1);
        match tokio::time::timeout(ANSWER, work).await {
            Ok(answer) => answer,
            Err(_) => {
                // What comes of it later must not be taken for the answer to something else.
                self.talk.abort();
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
        self.talk.abort();
    }
}

async fn dial(url: &str, options: &PostgresOptions) -> Answer<(Client, Talk)> {
    let mut config: Config = url.parse().map_err(|error| Failed::Lost(words(&error)))?;
    let tls = Tls::new(options).map_err(Failed::Lost)?;
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
            _ = attend(&client) => {}
        }
    });
    Ok(messages)
}

/// Asks to be told, and then now and again whether the connection is still there: one that is cut somewhere on the way
/// does not show otherwise.
async fn attend(client: &Client) -> Option<()> {
    let schema: String = client.query_one("SELECT current_schema()", &[]).await.ok()?.get(0);
    client.batch_execute(&format!("LISTEN \"stepwell_{schema}\"")).await.ok()?;
    loop {
        tokio::time::sleep(ANSWER).await;
        tokio::time::timeout(ANSWER, client.batch_execute("SELECT 1")).await.ok()?.ok()?;
    }
}
