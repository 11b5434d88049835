//! The WebSocket: a client joins runs, and is told how they are and what changes.
//!
//! One task reads and writes, so nothing piles up: while the client takes nothing, nothing is read for it, and after a while
//! it is dropped. What it missed meanwhile is read from the store.

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
use stepwell_engine::commands::Right;
use stepwell_engine::{Caller, Error};
use stepwell_store::{RunId, StoredLog, Version};
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, sleep_until, timeout};

/// Runs that one socket may have joined.
const MOST_JOINED: usize = 100;
/// Bytes of a client's message.
const MAX_MESSAGE: usize = 64 * 1024;
/// Rows of one run whose changes are told one by one; what lies further back only counts by what it led to.
const MOST_ROWS: i64 = 1_000;

/// A WebSocket on which runs can be joined
///
/// Send `{"event": "workflow_run_join", "data": {"runId": "run_…"}}` or `workflow_run_leave`. You get
/// `workflow_node_update` and `workflow_status_update` for how the run is, then for each change; `notification` for what
/// concerns you yourself, joined or not; and `error` with a problem for what cannot be done.
#[utoipa::path(get, path = "/api/v1/ws", tag = "live", responses(
    (status = 101, description = "The connection is a WebSocket now"), Problems))]
pub async fn live_socket(
    State(app): State<App>,
    Auth(caller): Auth,
    credentials: Credentials,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    caller.check(Right::Read)?;
    let upgrade = upgrade.map_err(|rejection| Problem::bad_request("not-a-websocket", rejection.body_text()))?;
    let watch = app.hub.watch().await?;
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
    /// When the client will have said nothing for too long.
    silence: Instant,
}

/// What a client asked for that cannot be done, and about which run.
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
    /// Never ends well: there is always more to come.
    async fn serve(&mut self) -> Result<(), Over> {
        let end = self.watch.hub.end();
        tokio::pin!(end);
        loop {
            let due = self.due;
            tokio::select! {
                biased;
                () = &mut end => return Err(Over::Stopped),
                () = sleep_until(due.recheck) => self.recheck().await?,
                () = sleep_until(due.ping) => {
                    self.due.ping = Instant::now() + self.settings.ping;
                    self.send(Message::Ping(Bytes::new())).await?;
                }
                // Before the next: an answer may have come while nothing was read.
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
            () = self.watch.hub.end() => Err(Over::Stopped),
        }
    }

    async fn send_all(&mut self, messages: Vec<String>) -> Result<(), Over> {
        for message in messages {
            self.send(Message::text(message)).await?;
        }
        Ok(())
    }

    /// Says why, if anyone hears it.
    async fn close(mut self, over: Over) {
        let (code, reason) = match over {
            Over::Stopped => (close_code::AWAY, "the server is stopping"),
            Over::Barred => (close_code::POLICY, "you may no longer look at runs"),
            Over::Broken => (close_code::ERROR, "the log cannot be read now"),
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
                Err(Problem::bad_request("invalid-message", "send JSON as text, not as bytes").into())
            }
            Message::Ping(_) | Message::Pong(_) => Ok(Vec::new()),
            Message::Close(_) => return Err(Over::Left),
        };
        let messages = done.unwrap_or_else(|refused| vec![refused.message()]);
        self.send_all(messages).await
    }

    /// What to answer.
    async fn obey(&mut self, text: &str) -> Result<Vec<String>, Refused> {
        let invalid = |error| Problem::bad_request("invalid-json", format!("the message is not JSON: {error}"));
        let said: Value = serde_json::from_str(text).map_err(invalid)?;
        let event = said.get("event").or_else(|| said.get("type")).and_then(Value::as_str);
        let run = said.get("data").unwrap_or(&said).get("runId").and_then(Value::as_str).map(str::to_string);
        let answer = match event {
            Some("workflow_run_join") => self.join(run.as_deref()).await,
            Some("workflow_run_leave") => self.leave(run.as_deref()),
            _ => {
                let detail = "this is no event that is known here: send workflow_run_join or workflow_run_leave";
                Err(Problem::bad_request("unknown-event", detail))
            }
        };
        answer.map_err(|problem| Refused { problem, run })
    }

    async fn join(&mut self, run: Option<&str>) -> Result<Vec<String>, Problem> {
        let run = run.ok_or_else(|| Problem::input("runId", "say which run, such as run_…"))?;
        // As a request of its own: rights and rates count.
        self.caller = self.credentials.again(&self.app).await?;
        let id = find(&self.app, &self.caller, run).await?.id;
        if self.joined.len() >= MOST_JOINED && !self.joined.contains_key(&id) {
            let detail =
                format!("{MOST_JOINED} runs are joined, and no more are allowed: leave one, or open another socket");
            return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "too-many-joined", detail));
        }
        let view = self.app.engine.runs(&self.caller).get(run).await?;
        let mut joined = Joined::new(run.to_string());
        let messages = joined.changes([], &view);
        self.joined.insert(id, joined);
        Ok(messages)
    }

    fn leave(&mut self, run: Option<&str>) -> Result<Vec<String>, Problem> {
        let run = run.ok_or_else(|| Problem::input("runId", "say which run, such as run_…"))?;
        self.joined.retain(|_, joined| joined.run != run);
        Ok(Vec::new())
    }

    /// Tells of everything in a batch that was not told yet.
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

    /// What has changed about a run; `rows` may be some of what led there.
    async fn tell(&mut self, run: RunId, rows: &[&StoredLog]) -> Result<(), Over> {
        let Some(joined) = self.joined.get_mut(&run) else { return Ok(()) };
        let view = match self.app.engine.runs(&self.caller).get(&joined.run).await {
            Ok(view) => view,
            // A test run that was removed, or one whose time was over.
            Err(error @ Error::NotFound { .. }) => {
                let gone = Refused { problem: error.into(), run: Some(joined.run.clone()) };
                self.joined.remove(&run);
                return self.send(Message::text(gone.message())).await;
            }
            Err(error) => {
                tracing::warn!(%error, "a live socket cannot read a run");
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
        // The answer of a request has it in words for the log; the socket's client gets the same.
        let response = self.problem.into_response();
        let mut problem = json!(response.extensions().get::<ProblemView>());
        if let (Some(run), Value::Object(fields)) = (self.run, &mut problem) {
            fields.insert("runId".into(), run.into());
        }
        message("error", &problem)
    }
}
