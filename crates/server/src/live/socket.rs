//! The WebSocket: a client joins runs, and receives their state and then every change.
//!
//! One task reads and writes, so nothing accumulates: while the client accepts no data, nothing is read for it, and
//! after a timeout it is dropped. Whatever it missed is read from the store.

use super::follow::Batch;
use super::hub::{Settings, Watch};
use super::joined::{Joined, message};
use super::run::find;
use super::stream::{Credentials, Over, measure};
use crate::app::App;
use crate::auth::Auth;
use crate::error::Problem;
use crate::rest::Problems;
use crate::view::ProblemView;
use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use stepwell_core::json;
use stepwell_engine::commands::Right;
use stepwell_engine::{Caller, Error};
use stepwell_store::{RunId, StoredLog, Version};
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, sleep_until, timeout};

/// Maximum number of runs joined on one socket.
const MOST_JOINED: usize = 100;
/// Maximum size of a client's message in bytes.
const MAX_MESSAGE: usize = 64 * 1024;
/// Maximum number of values in a client's message.
const MOST_VALUES: usize = 100;
/// Rows of one run that are reported change by change. Older rows only contribute to the state.
const MOST_ROWS: i64 = 1_000;

/// A WebSocket for joining runs
///
/// Send `{"event": "workflow_run_join", "data": {"runId": "run_…"}}` or `workflow_run_leave`. You receive
/// `workflow_node_update` and `workflow_status_update` with the state of the run and then for each change;
/// `notification` for events that concern you personally, joined or not; and `error` with a problem if a message fails.
#[utoipa::path(get, path = "/api/v1/ws", operation_id = "openSocket", tag = "live", responses(
    (status = 101, description = "The connection was upgraded to a WebSocket"), Problems))]
pub async fn live_socket(
    State(app): State<App>,
    Auth(caller): Auth,
    credentials: Credentials,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    caller.check(Right::Read)?;
    let upgrade = upgrade.map_err(|rejection| Problem::bad_request("not-a-websocket", rejection.body_text()))?;
    let watch = app.hub.watch(&caller).await?;
    let upgrade = upgrade.max_message_size(MAX_MESSAGE).max_frame_size(MAX_MESSAGE);
    Ok(upgrade.on_upgrade(move |socket| async move {
        let now = Instant::now();
        let settings = watch.hub.settings;
        let due = Due { recheck: now + settings.recheck, ping: now + settings.ping, silence: now + settings.silence };
        let joined = BTreeMap::new();
        let mut session = Session { socket, app, watch, credentials, caller, joined, due, settings };
        let Err(over) = session.serve().await else { return };
        over.count();
        session.close(over).await;
    }))
}

struct Session {
    socket: WebSocket,
    app: App,
    watch: Watch,
    credentials: Credentials,
    caller: Caller,
    joined: BTreeMap<RunId, Joined>,
    due: Due,
    settings: Settings,
}

#[derive(Clone, Copy)]
struct Due {
    recheck: Instant,
    ping: Instant,
    /// When the client will have been silent for too long.
    silence: Instant,
}

/// A message that failed, and the run it was about.
struct Refused {
    problem: Problem,
    run: Option<String>,
}

impl<P: Into<Problem>> From<P> for Refused {
    fn from(problem: P) -> Refused {
        Refused { problem: problem.into(), run: None }
    }
}

impl Session {
    /// Returns only with the reason why the session ended.
    async fn serve(&mut self) -> Result<(), Over> {
        let end = self.watch.end();
        tokio::pin!(end);
        loop {
            let due = self.due;
            tokio::select! {
                biased;
                over = &mut end => return Err(over),
                () = sleep_until(due.recheck) => self.recheck().await?,
                () = sleep_until(due.ping) => {
                    self.due.ping = Instant::now() + self.settings.ping;
                    self.send(Message::Ping(Bytes::new())).await?;
                }
                // Before the silence timeout: a message may have arrived while nothing was read.
                said = self.socket.recv() => {
                    let Some(Ok(said)) = said else { return Err(Over::Left) };
                    self.due.silence = Instant::now() + self.settings.silence;
                    self.hear(said).await?;
                }
                () = sleep_until(due.silence) => return Err(Over::Silent),
                batch = self.watch.batches.recv() => match batch {
                    Ok(batch) => self.pass_on(&batch).await?,
                    Err(RecvError::Lagged(_)) => self.all_again().await?,
                    Err(RecvError::Closed) => return Err(Over::Stopped),
                },
            }
        }
    }

    async fn send(&mut self, message: Message) -> Result<(), Over> {
        tokio::select! {
            biased;
            sent = timeout(self.settings.patience, self.socket.send(message)) => match sent {
                Ok(Ok(())) => Ok(()),
                Ok(Err(_)) => Err(Over::Left),
                Err(_) => Err(Over::Slow),
            },
            over = self.watch.end() => Err(over),
        }
    }

    async fn send_all(&mut self, messages: Vec<String>) -> Result<(), Over> {
        for message in messages {
            self.send(Message::text(message)).await?;
        }
        Ok(())
    }

    /// Closes the socket with the reason.
    async fn close(mut self, over: Over) {
        let (code, reason) = match over {
            Over::Stopped => (close_code::AWAY, "the server is stopping"),
            Over::Reclaimed => (close_code::AGAIN, "another organisation needs the place of this stream"),
            Over::Barred => (close_code::POLICY, "you are no longer allowed to read runs"),
            Over::Broken => (close_code::ERROR, "the log cannot be read at the moment"),
            Over::Done | Over::Left | Over::Slow | Over::Silent => return,
        };
        let close = Message::Close(Some(CloseFrame { code, reason: reason.into() }));
        let _ = timeout(self.settings.patience.min(std::time::Duration::from_secs(1)), self.socket.send(close)).await;
    }

    async fn recheck(&mut self) -> Result<(), Over> {
        self.due.recheck = Instant::now() + self.settings.recheck;
        if self.credentials.is_barred(&self.app).await { Err(Over::Barred) } else { Ok(()) }
    }

    async fn hear(&mut self, said: Message) -> Result<(), Over> {
        let done = match said {
            Message::Text(text) => self.obey(&text).await,
            Message::Binary(_) => {
                Err(Problem::bad_request("invalid-message", "send JSON in text messages, not in binary ones").into())
            }
            Message::Ping(_) | Message::Pong(_) => Ok(Vec::new()),
            Message::Close(_) => return Err(Over::Left),
        };
        let messages = done.unwrap_or_else(|refused| vec![refused.message()]);
        self.send_all(messages).await
    }

    /// Handles a message and returns the responses.
    async fn obey(&mut self, text: &str) -> Result<Vec<String>, Refused> {
        let invalid = |error| Problem::bad_request("invalid-json", format!("the message is not JSON: {error}"));
        let found = json::measure(text.as_bytes());
        if found.values > MOST_VALUES {
            return Err(Problem::bad_request("invalid-json", "the message has too many values").into());
        }
        let said: Value = serde_json::from_str(text).map_err(invalid)?;
        let event = said.get("event").or_else(|| said.get("type")).and_then(Value::as_str);
        let run = said.get("data").unwrap_or(&said).get("runId").and_then(Value::as_str).map(str::to_string);
        let answer = match event {
            Some("workflow_run_join") => self.join(run.as_deref()).await,
            Some("workflow_run_leave") => self.leave(run.as_deref()),
            _ => {
                let detail = "unknown event: send workflow_run_join or workflow_run_leave";
                Err(Problem::bad_request("unknown-event", detail))
            }
        };
        answer.map_err(|problem| Refused { problem, run })
    }

    async fn join(&mut self, run: Option<&str>) -> Result<Vec<String>, Problem> {
        let run = run.ok_or_else(|| Problem::input("runId", "a run id is required, such as run_…"))?;
        // Counts as a request: rights and rate limits apply.
        self.caller = self.credentials.again(&self.app).await?;
        let id = find(&self.app, &self.caller, run).await?.id;
        if self.joined.len() >= MOST_JOINED && !self.joined.contains_key(&id) {
            let detail =
                format!("the limit of {MOST_JOINED} joined runs is reached: leave one, or open another socket");
            return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "too-many-joined", detail));
        }
        let view = self.app.engine.runs(&self.caller).get(run).await?;
        let mut joined = Joined::new(run.to_string());
        let messages = joined.changes([], &view);
        self.joined.insert(id, joined);
        Ok(messages)
    }

    fn leave(&mut self, run: Option<&str>) -> Result<Vec<String>, Problem> {
        let run = run.ok_or_else(|| Problem::input("runId", "a run id is required, such as run_…"))?;
        self.joined.retain(|_, joined| joined.run != run);
        Ok(Vec::new())
    }

    /// Sends all changes in a batch that were not sent yet.
    async fn pass_on(&mut self, batch: &Batch) -> Result<(), Over> {
        let mut news: BTreeMap<RunId, (Vec<&StoredLog>, Option<std::time::Instant>)> = BTreeMap::new();
        for row in &batch.rows {
            if self.joined.get(&row.fed.run).is_some_and(|joined| row.fed.log.version.0 > joined.version) {
                news.entry(row.fed.run).or_insert_with(|| (Vec::new(), row.since)).0.push(&row.fed.log);
            }
        }
        for (run, (rows, since)) in news {
            self.tell(run, &rows).await?;
            measure(since);
        }
        for row in &batch.rows {
            for told in row.announced(&self.watch.hub, &self.caller).await {
                self.send(Message::text(message("notification", &json!(told)))).await?;
            }
        }
        Ok(())
    }

    /// Some batches were missed.
    async fn all_again(&mut self) -> Result<(), Over> {
        let all: Vec<RunId> = self.joined.keys().copied().collect();
        for run in all {
            self.tell(run, &[]).await?;
        }
        Ok(())
    }

    /// Sends the changes of a run. `rows` may be only some of the rows in between.
    async fn tell(&mut self, run: RunId, rows: &[&StoredLog]) -> Result<(), Over> {
        let Some(joined) = self.joined.get_mut(&run) else { return Ok(()) };
        let view = match self.app.engine.runs(&self.caller).get(&joined.run).await {
            Ok(view) => view,
            // A test run that was deleted, or a run past its retention.
            Err(error @ Error::NotFound { .. }) => {
                let gone = Refused { problem: error.into(), run: Some(joined.run.clone()) };
                self.joined.remove(&run);
                return self.send(Message::text(gone.message())).await;
            }
            Err(error) => {
                tracing::warn!(%error, "cannot read a run for a live socket");
                return Err(Over::Broken);
            }
        };
        let missing = view.version - joined.version;
        let messages = if rows.len() as i64 == missing {
            joined.changes(rows.iter().copied(), &view)
        } else {
            let limit = u32::try_from(missing.clamp(0, MOST_ROWS)).unwrap_or_default();
            let rows = self.app.engine.log().tail(run, Version(joined.version), limit).await?;
            joined.changes(&rows, &view)
        };
        self.send_all(messages).await
    }
}

impl Refused {
    fn message(self) -> String {
        // The response has the view of the problem as an extension; the client receives that.
        let response = self.problem.into_response();
        let mut problem = json!(response.extensions().get::<ProblemView>());
        if let (Some(run), Value::Object(fields)) = (self.run, &mut problem) {
            fields.insert("runId".into(), run.into());
        }
        message("error", &problem)
    }
}
